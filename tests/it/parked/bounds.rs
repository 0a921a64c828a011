//! What is too large, and what is too much: it ends in an error for the one who sent it, and nobody
//! else's call suffers.

use super::visits::sent_away;
use super::{elicit, parked};
use crate::support::{Modern, Server, Setup, accepted, json, modern, two_people};

/// F50: a state beyond 8 KiB is not looked at, an answer beyond the size of a body is not read. The call
/// stays as it was.
#[tokio::test]
async fn f50_a_state_or_an_answer_that_is_too_large() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("limits: { body: 64KiB }")
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    let call = parked(&server, &client).await;
    let answers = call.round.all(&accepted("x"));
    let longer = format!(
        "{}{}\"",
        call.round.state.trim_end_matches('"'),
        "A".repeat(8 * 1024)
    );
    let retry = call
        .ask
        .retry("2", &call.round, &answers)
        .param("requestState", &longer);
    let (status, code, reason) = retry.refused().await;
    assert_eq!(
        (status, code, reason.as_str()),
        (200, -32602, "state_invalid")
    );
    let large = accepted(&"x".repeat(64 * 1024));
    let reply = call
        .ask
        .retry("2", &call.round, &call.round.all(&large))
        .send()
        .await;
    assert_eq!(reply.status, 413);
    let large = accepted(&"x".repeat(32 * 1024));
    let going = call
        .ask
        .retry("3", &call.round, &call.round.all(&large))
        .start();
    assert_eq!(server.answer_to("7").await, json::result("7", &large));
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(server.answers().len(), 1);
}

/// F50: a question that is larger than a message may be ends its call, and no other.
#[tokio::test]
async fn f50_a_question_that_is_too_large() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("limits: { message: 64KiB }")
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    let call = parked(&server, &client).await;
    let going = client.call("2", "order", "{}").start();
    let stream = server.called("order").await.stream();
    elicit(&stream, "8", &"x".repeat(64 * 1024)).await;
    let message = going.await.unwrap().json().await;
    assert_eq!(message["error"]["code"], -32603, "{message}");
    stream.left().await;
    let going = call
        .ask
        .retry("3", &call.round, &call.round.all(&accepted("x")))
        .start();
    server.answer_to("7").await;
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// F58: one person can't take the places of others. Whoever has as many calls away as questions may wait
/// for one person loses the oldest, which is cancelled at the server and told to who comes back to it.
#[tokio::test]
async fn f58_too_many_calls_of_one_person_are_away() {
    let (server, _gateway, mira, joris) = two_people().await;
    let other = parked(&server, &joris).await;
    let oldest = mira.call("1", "ask", r#"{"n":2}"#);
    let going = oldest.start();
    let stream = server.called("ask").await.stream();
    elicit(&stream, "\"oldest\"", "Who?").await;
    let first = going.await.unwrap().round().await;
    let mut away = Vec::new();
    for number in 0..16 {
        let ask = mira.call("1", "order", &format!(r#"{{"n":{number}}}"#));
        away.push((sent_away(&server, &ask).await, ask));
    }
    let notice = server.notice("notifications/cancelled").await;
    assert_eq!(
        notice.raw(&["params", "requestId"]),
        Some(stream.id.clone())
    );
    assert_eq!(
        server.answer_to("\"oldest\"").await,
        json::result("\"oldest\"", r#"{"action":"cancel"}"#)
    );
    let late = oldest.retry("2", &first, &first.all(&accepted("x")));
    assert_eq!(late.refused().await.2, "state_expired");
    // The others are all there, and so is the other person's.
    let no = r#"{"action":"decline"}"#;
    for (round, ask) in &away {
        let result = ask.retry("2", round, &round.all(no)).result().await;
        assert_eq!(result["isError"], true);
    }
    let going = other
        .ask
        .retry("2", &other.round, &other.round.all(&accepted("x")))
        .start();
    server.answer_to("7").await;
    other.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(server.seen_method("notifications/cancelled").len(), 1);
}

/// A place is free again when its client is back, so calls one after the other are never too many.
#[tokio::test]
async fn a_client_that_comes_back_leaves_its_place() {
    let (server, _gateway, client) = modern().await;
    let waiting = parked(&server, &client).await;
    for _ in 0..16 {
        let ask = client.call("1", "order", "{}");
        let round = sent_away(&server, &ask).await;
        let no = round.all(r#"{"action":"decline"}"#);
        ask.retry("2", &round, &no).result().await;
    }
    let going = waiting
        .ask
        .retry("2", &waiting.round, &waiting.round.all(&accepted("x")))
        .start();
    server.answer_to("7").await;
    waiting.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}
