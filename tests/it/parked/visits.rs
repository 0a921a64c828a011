//! A server that ends the call with addresses to visit (-32042) is called again when the person has
//! been there.

use hyper::Method;

use super::{elicit, parked};
use crate::support::server::Held;
use crate::support::{Ask, Modern, NOTHING, Round, Server, Setup, Stream, accepted, json, modern};

/// The person opens the page.
const OPENED: &str = r#"{"action":"accept"}"#;

/// More often than the gateway calls again by itself while anybody here waits for it.
const OFTEN: usize = 7;

/// The end of the request with this id: one address.
fn addresses(id: &str, elicitation: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32042,"message":"log in first","data":{{"elicitations":[{{"mode":"url","elicitationId":"{elicitation}","url":"https://login.example.test/?a=%2F","message":"Log in"}}]}}}}}}"#
    )
}

/// Ends the request with one address.
fn send_to(held: Held, elicitation: &str) {
    let body = addresses(&held.id(), elicitation);
    held.respond(200, "application/json", &body);
}

/// The server says that a person is done at an address.
async fn done(listening: &Stream, elicitation: &str) {
    let params = format!(r#"{{"elicitationId":"{elicitation}"}}"#);
    let notice = json::notice("notifications/elicitation/complete", &params);
    listening.send(&notice).await;
}

/// A call of `order` whose client is away with one address.
pub(super) async fn sent_away(server: &Server, ask: &Ask) -> Round {
    let going = ask.start();
    send_to(server.called("order").await, "e-0");
    going.await.unwrap().round().await
}

/// F25: a client that can't be sent anywhere is told what it lacks.
#[tokio::test]
async fn f25_a_client_that_can_not_be_sent_anywhere() {
    let (server, _gateway, client) = modern().await;
    for capabilities in [NOTHING, r#"{"elicitation":{}}"#] {
        let going = client
            .declaring(capabilities)
            .call("1", "order", "{}")
            .start();
        send_to(server.called("order").await, "e-1");
        let mut reply = going.await.unwrap();
        let message = reply.json().await;
        assert_eq!(reply.status, 400, "{message}");
        assert_eq!(message["id"], 1);
        assert_eq!(message["error"]["code"], -32021);
        let required = &message["error"]["data"]["requiredCapabilities"];
        assert_eq!(*required, json::parse(r#"{"elicitation":{"url":{}}}"#));
    }
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// F24: the same for a tool that fails because it could not ask.
#[tokio::test]
async fn f24_a_tool_that_could_not_ask() {
    let (server, _gateway, client) = modern().await;
    let going = client.declaring(NOTHING).call("1", "ask", "{}").start();
    let stream = server.called("ask").await.stream();
    elicit(&stream, "7", "Who?").await;
    assert_eq!(server.error_to("7").await, -32601);
    stream.result(r#"{"isError":true,"content":[]}"#).await;
    let mut reply = going.await.unwrap();
    let message = reply.json().await;
    assert_eq!(
        (reply.status.as_u16(), &message["error"]["code"]),
        (400, &(-32021).into())
    );
    let required = &message["error"]["data"]["requiredCapabilities"]["elicitation"];
    assert!(required.is_object(), "{message}");
}

/// The person has been there, the server says so, and the call is made again.
#[tokio::test]
async fn the_call_is_made_again_after_the_visit() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "order", r#"{"n":2}"#);
    let going = ask.start();
    let held = server.called("order").await;
    let first = held.seen.clone();
    send_to(held, "e-1");
    let round = going.await.unwrap().round().await;
    assert_eq!(
        round.part(round.only(), "params"),
        r#"{"mode":"url","url":"https://login.example.test/?a=%2F","message":"Log in"}"#
    );
    let going = ask.retry("2", &round, &round.all(OPENED)).start();
    done(&server.last_get_stream().await, "e-1").await;
    let held = server.called("order").await;
    assert_eq!(
        held.seen.raw(&["params", "arguments"]),
        first.raw(&["params", "arguments"])
    );
    assert_ne!(held.id(), json::id(first.text()));
    let stream = held.stream();
    // What it asks now goes the ordinary way.
    elicit(&stream, "7", "Who?").await;
    let round = going.await.unwrap().round().await;
    let going = ask
        .retry("3", &round, &round.all(&accepted("Mira")))
        .start();
    assert_eq!(
        server.answer_to("7").await,
        json::result("7", &accepted("Mira"))
    );
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// F26: as long as the server says that nobody has been there, the client waits and is not sent away.
#[tokio::test]
async fn f26_the_server_says_it_again() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "order", "{}");
    let going = ask.start();
    send_to(server.called("order").await, "e-1");
    let round = going.await.unwrap().round().await;
    let going = ask.retry("2", &round, &round.all(OPENED)).start();
    // Tried after a while by itself; the server has a new name for the same visit.
    send_to(server.called("order").await, "e-2");
    done(&server.last_get_stream().await, "e-2").await;
    server
        .called("order")
        .await
        .result(&json::text_result("done"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// F27: who says no gets an answer, and the call is not made again.
#[tokio::test]
async fn f27_the_visit_is_declined() {
    let (server, _gateway, client) = modern().await;
    for action in ["decline", "cancel"] {
        let ask = client.call("1", "order", "{}");
        let going = ask.start();
        send_to(server.called("order").await, "e-1");
        let round = going.await.unwrap().round().await;
        let answer = format!(r#"{{"action":"{action}"}}"#);
        let result = ask.retry("2", &round, &round.all(&answer)).result().await;
        assert_eq!(result["isError"], true, "{result}");
    }
    let ask = client.request("1", "resources/read", r#"{"uri":"shop://1"}"#);
    let going = ask.start();
    send_to(server.asked("resources/read").await, "e-1");
    let round = going.await.unwrap().round().await;
    let refused = ask
        .retry("2", &round, &round.all(r#"{"action":"decline"}"#))
        .refused()
        .await;
    assert_eq!(refused.1, -31007);
    client.works().await;
    assert_eq!(server.seen_method("tools/call").len(), 3);
}

/// The server forgets the session before the call is made again: it goes to a new one, where the
/// server logs as much and is heard as well as in the first.
#[tokio::test]
async fn the_call_is_made_again_in_another_session() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "order", "{}").level("info");
    let warm = client.call("1", "echo", "{}").level("info").start();
    server.asked("logging/setLevel").await.result("{}");
    warm.await.unwrap();
    let round = sent_away(&server, &ask).await;
    server.forget();
    let going = ask.retry("2", &round, &round.all(OPENED)).start();
    let level = server.asked("logging/setLevel").await;
    let session = server.opened()[1].clone();
    assert_eq!(level.seen.session(), session);
    level.result("{}");
    let listening = server.get_stream(&session).await;
    for number in 1..=OFTEN {
        let held = server.called("order").await;
        assert_eq!(held.seen.session(), session);
        let name = format!("e-{number}");
        send_to(held, &name);
        done(&listening, &name).await;
    }
    server
        .called("order")
        .await
        .result(&json::text_result("done"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(server.opened().len(), 2);
}

/// A call whose session is its own gets one of its own again when it finds the first gone, whether the
/// gateway has noticed that before or learns it by the call.
#[tokio::test]
async fn a_call_with_a_session_of_its_own_gets_its_own_again() {
    let table = [
        ("{ session_scope: call }", "", true),
        ("{ session_scope: call }", "", false),
        ("{}", "auth: open", true),
        ("{}", "auth: open", false),
    ];
    let all = table.map(|(server, yaml, noticed)| own_again(server, yaml, noticed));
    futures_util::future::join_all(all).await;
}

async fn own_again(settings: &str, yaml: &str, noticed: bool) {
    let server = Server::start().await;
    let setup = Setup::new().server_with("alpha", &server, settings);
    let gateway = setup.yaml(yaml).start().await;
    let client = Modern::new(&gateway, "alpha");
    let ask = client.call("1", "order", "{}");
    let round = sent_away(&server, &ask).await;
    let listening = server.last_get_stream().await;
    server.forget();
    if noticed {
        listening.abort().await;
        gateway
            .audited("the next session", |line| line["type"] == "session.renewed")
            .await;
    }
    let going = ask.retry("2", &round, &round.all(OPENED)).start();
    let held = server.called("order").await;
    let own = held.seen.session().to_owned();
    assert_eq!(own, server.opened()[1]);
    // Another call of the same client meets it nowhere.
    assert_eq!(client.text("count", "{}").await, "1");
    held.result(&json::text_result("done"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    server
        .sees("the end of its session", |seen| {
            seen.http == Method::DELETE && seen.session() == own
        })
        .await;
    let calls = server.seen_method("tools/call");
    let used = calls.iter().filter(|seen| seen.session() == own);
    assert_eq!(used.count(), 1, "{settings} {yaml} {noticed}");
}

/// The server ends the call with addresses while its client is away with a question. The client gets
/// them when it is back, and no error that it can't read.
#[tokio::test]
async fn addresses_that_come_while_the_client_is_away() {
    let (server, gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    call.stream.send(&addresses(&call.stream.id, "e-1")).await;
    gateway
        .audited("the call", |line| line["method"] == "tools/call")
        .await;
    let round = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("late")))
        .send()
        .await
        .round()
        .await;
    assert_eq!(
        round.part(round.only(), "params"),
        r#"{"mode":"url","url":"https://login.example.test/?a=%2F","message":"Log in"}"#
    );
    assert_ne!(round.only(), call.round.only());
    let going = call.ask.retry("3", &round, &round.all(OPENED)).start();
    done(&server.last_get_stream().await, "e-1").await;
    server
        .called("ask")
        .await
        .result(&json::text_result("done"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert!(!server.answers().iter().any(|it| it.contains("late")));
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// F25: the same for a client that comes back and can't be sent anywhere.
#[tokio::test]
async fn f25_addresses_for_a_client_that_comes_back_with_less() {
    let (server, gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    call.stream.send(&addresses(&call.stream.id, "e-1")).await;
    gateway
        .audited("the call", |line| line["method"] == "tools/call")
        .await;
    let retry = call.ask.declaring(r#"{"elicitation":{}}"#).retry(
        "2",
        &call.round,
        &call.round.all(&accepted("late")),
    );
    let (status, code, _) = retry.refused().await;
    assert_eq!((status, code), (400, -32021));
    assert_eq!(server.seen_method("tools/call").len(), 1);
}
