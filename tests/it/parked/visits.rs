//! A server that ends the call with addresses to visit (-32042) is called again when the person has
//! been there.

use super::elicit;
use crate::support::server::Held;
use crate::support::{NOTHING, accepted, json, modern};

/// Ends the request with one address.
fn send_to(held: Held, elicitation: &str) {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32042,"message":"log in first","data":{{"elicitations":[{{"mode":"url","elicitationId":"{elicitation}","url":"https://login.example.test/?a=%2F","message":"Log in"}}]}}}}}}"#,
        held.id()
    );
    held.respond(200, "application/json", &body);
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
    let going = ask
        .retry("2", &round, &round.all(r#"{"action":"accept"}"#))
        .start();
    let done = json::notice(
        "notifications/elicitation/complete",
        r#"{"elicitationId":"e-1"}"#,
    );
    let listening = server.last_get_stream().await;
    listening.send(&done).await;
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
    let going = ask
        .retry("2", &round, &round.all(r#"{"action":"accept"}"#))
        .start();
    // Tried after a while by itself; the server has a new name for the same visit.
    send_to(server.called("order").await, "e-2");
    let listening = server.last_get_stream().await;
    let done = json::notice(
        "notifications/elicitation/complete",
        r#"{"elicitationId":"e-2"}"#,
    );
    listening.send(&done).await;
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
