//! How a parked call ends when it does not end well: nobody comes back, somebody leaves, the server
//! dies or forgets. Nothing is executed twice, and no question stays without an answer.

use super::{Parked, elicit, parked};
use crate::support::{Gateway, Modern, Server, Setup, accepted, json, modern};

/// A gateway whose people have this long to come back.
async fn impatient(time: &str) -> (Server, Gateway, Modern) {
    let server = Server::start().await;
    let yaml = format!("timeouts: {{ question: {time} }}");
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml(&yaml)
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    (server, gateway, client)
}

/// The place of the first request that fits, in the order in which the server got them.
fn place(server: &Server, what: &str, fits: impl Fn(&str) -> bool) -> usize {
    let seen = server.seen();
    seen.iter()
        .position(|seen| fits(seen.text()))
        .unwrap_or_else(|| panic!("the server never got {what}"))
}

/// The server is told first that the call is cancelled, then that nobody answers.
async fn cancelled_then_answered(server: &Server, call: &str, question: &str, answer: &str) {
    let notice = server.notice("notifications/cancelled").await;
    assert_eq!(notice.raw(&["params", "requestId"]).as_deref(), Some(call));
    assert_eq!(
        server.answer_to(question).await,
        json::result(question, answer)
    );
    let cancelled = place(server, "the cancel", |it| {
        it.contains("notifications/cancelled")
    });
    let answered = place(server, "the answer", |it| {
        it == json::result(question, answer)
    });
    assert!(
        cancelled < answered,
        "a handler must not take absence for a reason to go on"
    );
}

/// F13, F2: nobody comes back. The server hears of it; whoever comes later is told why.
#[tokio::test]
async fn f13_nobody_comes_back() {
    let (server, _gateway, client) = impatient("1s").await;
    let call = parked(&server, &client).await;
    cancelled_then_answered(&server, &call.stream.id, "7", r#"{"action":"cancel"}"#).await;
    call.stream.left().await;
}

/// F2: too late.
#[tokio::test]
async fn f2_a_retry_after_its_time() {
    let (server, _gateway, client) = impatient("1s").await;
    let call = parked(&server, &client).await;
    server.answer_to("7").await;
    for id in ["2", "3"] {
        let retry = call
            .ask
            .retry(id, &call.round, &call.round.all(&accepted("late")));
        let (status, code, reason) = retry.refused().await;
        assert_eq!(
            (status, code, reason.as_str()),
            (200, -32602, "state_expired")
        );
    }
    client.works().await;
    assert!(!server.answers().iter().any(|it| it.contains("late")));
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// Each round has the whole time.
#[tokio::test]
async fn the_time_begins_anew_with_each_round() {
    let (server, _gateway, client) = impatient("2s").await;
    let mut call = parked(&server, &client).await;
    for id in ["2", "3", "4", "5", "6", "7"] {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        call.round = call
            .ask
            .retry(id, &call.round, "{}")
            .send()
            .await
            .round()
            .await;
    }
    finishes(&server, call).await;
}

/// Sampling and roots have no way to say "no" but not to come back; each is told in its own words.
#[tokio::test]
async fn f13_other_kinds_of_questions() {
    for (method, params, code) in [
        (
            "sampling/createMessage",
            r#"{"messages":[],"maxTokens":9}"#,
            -1,
        ),
        ("roots/list", "{}", -32603),
    ] {
        let (server, _gateway, client) = impatient("1s").await;
        let going = client.call("1", "ask", "{}").start();
        let stream = server.called("ask").await.stream();
        stream.send(&json::request("7", method, params)).await;
        going.await.unwrap().round().await;
        server.notice("notifications/cancelled").await;
        assert_eq!(server.error_to("7").await, code, "{method}");
    }
}

/// F15: an outcome that nobody fetches is dropped; the server has been done with it for long.
#[tokio::test]
async fn an_outcome_that_nobody_fetches() {
    let (server, gateway, client) = impatient("1s").await;
    let call = parked(&server, &client).await;
    call.stream.result("{}").await;
    gateway
        .audited("the call", |line| line["method"] == "tools/call")
        .await;
    let fence = parked(&server, &client).await;
    server.notice("notifications/cancelled").await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("late")));
    assert_eq!(retry.refused().await.2, "state_expired");
    let cancels = server.seen_method("notifications/cancelled");
    assert_eq!(cancels.len(), 1, "what is done is not cancelled");
    assert_eq!(
        cancels[0].raw(&["params", "requestId"]),
        Some(fence.stream.id)
    );
}

/// F14: the connection to the server breaks while the client is away. It is told when it comes, and the
/// call is not made again.
#[tokio::test]
async fn f14_the_server_dies() {
    let (server, gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    call.stream.abort().await;
    gateway
        .audited("the call", |line| line["method"] == "tools/call")
        .await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("x")));
    let (status, code, _) = retry.refused().await;
    assert_eq!(status, 200);
    assert!([-31003, -32603].contains(&code), "{code}");
    assert_eq!(retry.id("3").refused().await.2, "state_consumed");
    client.works().await;
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// F14: the server forgets the session while the client is away.
#[tokio::test]
async fn f14_the_server_forgets_the_session() {
    let (server, _gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    server.forget();
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("x")));
    let (status, code, _) = retry.refused().await;
    assert_eq!((status, code), (200, -31003));
    assert_eq!(server.seen_method("tools/call").len(), 1);
    client.works().await;
    assert_eq!(server.opened().len(), 2);
}

/// The server no longer knows the session when a call comes: it was not carried out, so it goes to a
/// new session, once, with what the request wanted.
#[tokio::test]
async fn a_forgotten_session_is_opened_anew() {
    let (server, _gateway, client) = modern().await;
    client.works().await;
    for round in 1..=3 {
        server.forget();
        match round {
            1 => client.works().await,
            2 => {
                let going = client.request("1", "tools/list", "{}").start();
                server.asked("tools/list").await.result(r#"{"tools":[]}"#);
                assert_eq!(going.await.unwrap().status, 200);
            }
            _ => {
                let call = parked(&server, &client).await;
                finishes(&server, call).await;
            }
        }
        assert_eq!(server.opened().len(), 1 + round);
    }
}

/// Many calls come at once after the server has forgotten: none was carried out, all are, once.
#[tokio::test]
async fn a_forgotten_session_and_many_calls_at_once() {
    let (server, _gateway, client) = modern().await;
    for _ in 0..5 {
        client.works().await;
        server.forget();
        let going: Vec<_> = (0..8)
            .map(|id| client.call(&id.to_string(), "echo", r#"{"x":1}"#).start())
            .collect();
        for going in going {
            assert_eq!(json::text_of(&going.await.unwrap().next().await), "1");
        }
    }
}

/// A request that also wants logs comes to the new session as well, and gets them.
#[tokio::test]
async fn a_forgotten_session_with_a_log_level() {
    let (server, _gateway, client) = modern().await;
    client.works().await;
    for _ in 0..2 {
        server.forget();
        let ask = client.call("1", "order", "{}").level("info");
        let going = ask.start();
        let level = server.asked("logging/setLevel").await;
        assert_eq!(
            Some(level.seen.session()),
            server.opened().last().map(String::as_str)
        );
        level.result("{}");
        let held = server.called("order").await;
        assert_eq!(
            Some(held.seen.session()),
            server.opened().last().map(String::as_str)
        );
        held.result(&json::text_result("done"));
        let mut reply = going.await.unwrap();
        assert_eq!(json::text_of(&reply.next().await), "done");
    }
}

/// When the new session is unknown at once, too, the client is told; nothing is tried a third time.
#[tokio::test]
async fn a_server_that_forgets_for_ever() {
    let (server, _gateway, client) = modern().await;
    client.works().await;
    for ask in [
        client.call("1", "order", "{}"),
        client.request("1", "tools/list", "{}"),
    ] {
        let opened = server.seen_method("initialize").len();
        server.change(|habits| habits.hold_initialize = true);
        server.forget();
        let going = ask.start();
        let initialize = server.asked("initialize").await;
        let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"ghost","version":"1"}}"#;
        let mut response = crate::support::server::response(
            200,
            "application/json",
            json::result(&initialize.id(), result),
        );
        response
            .headers_mut()
            .insert("mcp-session-id", "ghost".parse().unwrap());
        initialize.respond_with(response);
        let mut reply = going.await.unwrap();
        let message = reply.json().await;
        assert_eq!(message["error"]["code"], -31003, "{message}");
        assert_eq!(server.seen_method("initialize").len(), opened + 1);
        server.change(|habits| habits.hold_initialize = false);
        client.works().await;
    }
    let orders = server.seen_method("tools/call");
    let orders = orders
        .iter()
        .filter(|seen| seen.tool().as_deref() == Some("order"));
    assert!(orders.count() <= 2);
}

/// F28: the client closes its request before there was a question. That cancels.
#[tokio::test]
async fn f28_the_client_leaves_before_an_answer() {
    let (server, _gateway, client) = modern().await;
    let going = client.call("1", "ask", "{}").start();
    let stream = server.called("ask").await.stream();
    going.abort();
    drop(going.await);
    let notice = server.notice("notifications/cancelled").await;
    assert_eq!(
        notice.raw(&["params", "requestId"]).as_deref(),
        Some(stream.id.as_str())
    );
    assert_eq!(notice.session(), stream.seen.session());
    client.works().await;
}

/// F28: the same before the server has answered at all.
#[tokio::test]
async fn f28_the_client_leaves_before_the_server_has_a_word() {
    let (server, _gateway, client) = modern().await;
    let going = client.call("1", "ask", "{}").start();
    let held = server.called("ask").await;
    going.abort();
    drop(going.await);
    let notice = server.notice("notifications/cancelled").await;
    assert_eq!(notice.raw(&["params", "requestId"]), Some(held.id()));
    client.works().await;
}

/// F28: the client leaves while its stream is open and questions wait: first the cancel, then the
/// answers.
#[tokio::test]
async fn f28_the_client_leaves_with_questions_open() {
    // Should the client leave too slowly, it was sent away again: then its time ends the call.
    let (server, _gateway, client) = impatient("3s").await;
    let ask = client.call("1", "ask", "{}").token("\"t\"");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    elicit(&stream, "7", "Who?").await;
    let round = going.await.unwrap().round().await;
    let token = stream
        .seen
        .raw(&["params", "_meta", "progressToken"])
        .unwrap();
    let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
    stream
        .send(&json::notice("notifications/progress", &params))
        .await;
    let mut reply = ask.retry("2", &round, "{}").send().await;
    assert!(reply.next().await.contains("progress"));
    drop(reply);
    cancelled_then_answered(&server, &stream.id, "7", r#"{"action":"cancel"}"#).await;
    let late = ask
        .retry("3", &round, &round.all(&accepted("late")))
        .refused()
        .await;
    assert!(
        ["state_expired", "state_consumed"].contains(&late.2.as_str()),
        "{late:?}"
    );
}

/// What the server says after it was cancelled reaches nobody.
#[tokio::test]
async fn an_outcome_after_the_cancel() {
    let (server, _gateway, client) = modern().await;
    let going = client.call("1", "ask", "{}").start();
    let stream = server.called("ask").await.stream();
    going.abort();
    drop(going.await);
    server.notice("notifications/cancelled").await;
    elicit(&stream, "8", "still there?").await;
    let answer = json::parse(&server.answer_to("8").await);
    assert!(
        answer["result"]["action"] == "cancel" || answer["error"]["code"].is_i64(),
        "{answer}"
    );
    let _left = stream.try_send(&json::result(&stream.id, "{}"));
    client.works().await;
}

/// The gateway ends while a client is away: the server is not left with a call and a question.
#[tokio::test]
async fn the_gateway_ends() {
    let server = Server::start().await;
    let mut gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { shutdown: 500ms }")
        .start()
        .await;
    let call = parked(&server, &Modern::new(&gateway, "alpha")).await;
    gateway.terminate().await;
    let notice = server.notice("notifications/cancelled").await;
    assert_eq!(
        notice.raw(&["params", "requestId"]),
        Some(call.stream.id.clone())
    );
    server.answer_to("7").await;
    assert!(gateway.exit().await.success());
    assert_eq!(server.live(), 0, "the session was ended");
    assert_eq!(super::answers_to(&server, "7"), 1);
}

async fn finishes(server: &Server, call: Parked) {
    let going = call
        .ask
        .retry("9", &call.round, &call.round.all(&accepted("Mira")))
        .start();
    assert_eq!(
        server.answer_to("7").await,
        json::result("7", &accepted("Mira"))
    );
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}
