//! What was on its way when the server lost its session: nothing is executed twice, and no answer goes to a
//! session that did not ask.

use super::{asking, failure, next, set_level};
use crate::support::{accepted, json, modern, triple};

/// A call that the old session had is left be while its stream lives.
#[tokio::test]
async fn a_call_that_goes_on_at_the_server_ends_well() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    server.forget();
    session.works().await;
    stream.result(&json::text_result("done")).await;
    let mut reply = call.await.unwrap();
    assert_eq!(json::text_of(&next(&mut reply).await), "done");
}

/// When that breaks, nobody knows whether the call was carried out, and it is not made again.
#[tokio::test]
async fn a_call_that_breaks_is_not_made_again() {
    let (server, gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    server.forget();
    session.works().await;
    stream.abort().await;
    let mut reply = call.await.unwrap();
    let (code, reason) = failure(&mut reply).await;
    assert_eq!((code, reason.as_str()), (-31003, "session_lost"));
    session.works().await;
    let slow = server.seen_method("tools/call");
    let slow = slow
        .iter()
        .filter(|seen| seen.tool().as_deref() == Some("slow"));
    assert_eq!(slow.count(), 1);
    let record = gateway
        .audited("the call", |line| line["target"] == "slow")
        .await;
    assert_eq!(record["outcome"], "lost");
}

/// What changes nothing at the server is asked again, once, with the new session.
#[tokio::test]
async fn a_list_that_breaks_is_asked_for_again() {
    let (server, _gateway, session) = triple().await;
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "completion/complete",
        "resources/read",
        "prompts/get",
    ] {
        let call = session.start(json::request("1", method, "{}"));
        let stream = server.asked(method).await.stream();
        server.forget();
        stream.abort().await;
        let again = server.asked(method).await;
        assert_eq!(
            Some(again.seen.session()),
            server.opened().last().map(|it| &**it)
        );
        again.result(r#"{"again":true}"#);
        let result = call.await.unwrap().json().await;
        assert_eq!(result["result"]["again"], true, "{method}: {result}");
    }
}

/// Once, and not twice: a server that breaks off each answer is not asked for ever.
#[tokio::test]
async fn a_list_that_breaks_twice_fails() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::request("1", "tools/list", "{}"));
    for _ in 0..2 {
        server.asked("tools/list").await.stream().abort().await;
    }
    let mut reply = call.await.unwrap();
    let (code, reason) = failure(&mut reply).await;
    assert_eq!((code, reason.as_str()), (-32603, "outcome_unknown"));
    session.works().await;
    assert_eq!(server.seen_method("tools/list").len(), 2);
}

/// A read in whose midst a person was asked is not repeated: they would be asked again.
#[tokio::test]
async fn a_read_that_asked_somebody_is_not_repeated() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::request("1", "resources/read", r#"{"uri":"a://1"}"#));
    let stream = server.asked("resources/read").await.stream();
    let question = json::request("7", "elicitation/create", &json::form("Who?"));
    stream.send(&question).await;
    let mut reply = call.await.unwrap();
    let question = reply.question("elicitation/create").await;
    session.answer(&question, r#"{"action":"decline"}"#).await;
    server.answer_to("7").await;
    stream.abort().await;
    let (code, _) = failure(&mut reply).await;
    assert_eq!(code, -32603);
    assert_eq!(server.seen_method("resources/read").len(), 1);
}

/// What the old session asked is withdrawn at the client, its call ends, and a late answer goes nowhere.
#[tokio::test]
async fn an_open_question_is_withdrawn() {
    let (server, gateway, session) = triple().await;
    let (_stream, mut reply, question) = asking(&server, &session).await;
    server.forget();
    session.works().await;
    let withdrawn = next(&mut reply).await;
    let method = json::method(&withdrawn);
    assert_eq!(
        method.as_deref(),
        Some("notifications/cancelled"),
        "{withdrawn}"
    );
    let named = json::raw(&withdrawn, &["params", "requestId"]);
    assert_eq!(named, Some(json::id(&question)));
    let (code, reason) = failure(&mut reply).await;
    assert_eq!((code, reason.as_str()), (-31003, "session_lost"));
    reply.ends().await;
    let status = session.answer(&question, &accepted("late")).await;
    assert_eq!(status, 202);
    gateway
        .audited("the late answer", |line| line["type"] == "answer.ignored")
        .await;
    let record = gateway
        .audited("the end of the question", |line| {
            line["type"] == "question.answered"
        })
        .await;
    assert_eq!(
        (&record["outcome"], &record["reason"]),
        (&"lost".into(), &"session_lost".into())
    );
    session.works().await;
    assert!(server.answers().is_empty());
}

/// The answer itself meets the loss: it is not given to the new session, and its call ends.
#[tokio::test]
async fn an_answer_that_comes_too_late_for_its_session() {
    let (server, gateway, session) = triple().await;
    let (_stream, mut reply, question) = asking(&server, &session).await;
    server.forget();
    let status = session.answer(&question, &accepted("mira")).await;
    assert_eq!(status, 202);
    let (code, reason) = failure(&mut reply).await;
    assert_eq!((code, reason.as_str()), (-31003, "session_lost"));
    gateway
        .audited("the lost answer", |line| line["type"] == "answer.lost")
        .await;
    session.works().await;
    assert_eq!(server.opened().len(), 2);
    let old = server.opened()[0].clone();
    let answers = server.seen();
    let answers: Vec<_> = answers
        .iter()
        .filter(|seen| seen.text().contains("mira"))
        .map(|seen| seen.session().to_owned())
        .collect();
    assert_eq!(answers, [old]);
}

/// The old session may still ask, on a stream of its own: whoever answers, answers that one.
#[tokio::test]
async fn what_the_old_session_asks_later_is_answered_there() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    server.forget();
    session.works().await;
    stream.send(&json::request("1", "ping", "{}")).await;
    let mut reply = call.await.unwrap();
    let ping = next(&mut reply).await;
    assert_eq!(json::method(&ping).as_deref(), Some("ping"));
    session.answer(&ping, "{}").await;
    server.answer_to("1").await;
    let answered = server
        .sees("the answer", |seen| seen.text() == json::result("1", "{}"))
        .await;
    assert_eq!(answered.session(), server.opened()[0]);
    assert_eq!(server.seen_method("initialize").len(), 2);
}

/// A call that is cancelled while it waits for the new session is never sent there.
#[tokio::test]
async fn a_call_that_is_cancelled_meanwhile() {
    let (server, _gateway, session) = triple().await;
    set_level(&server, &session, "info").await;
    server.forget();
    let call = session.start(json::call("1", "slow", "{}"));
    let level = server.asked("logging/setLevel").await;
    let cancel = r#"{"requestId":1}"#;
    assert_eq!(session.notify("notifications/cancelled", cancel).await, 202);
    level.result("{}");
    let mut reply = call.await.unwrap();
    assert_eq!(reply.error().await, -32800);
    session.works().await;
    let calls = server.seen_method("tools/call");
    let slow = calls
        .iter()
        .filter(|seen| seen.tool().as_deref() == Some("slow"));
    let sessions: Vec<_> = slow.map(|seen| seen.session().to_owned()).collect();
    assert_eq!(
        sessions,
        [server.opened()[0].clone()],
        "which did not know it"
    );
    assert!(server.seen_method("notifications/cancelled").is_empty());
}

/// F14: a modern client that is away with a question when another request of its meets the loss.
#[tokio::test]
async fn f14_a_call_whose_client_is_away_ends_with_its_session() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    let question = json::request("7", "elicitation/create", &json::form("Who?"));
    stream.send(&question).await;
    let round = going.await.unwrap().round().await;
    server.forget();
    client.works().await;
    let retry = ask.retry("2", &round, &round.all(&accepted("mira")));
    let (status, code, reason) = retry.refused().await;
    assert_eq!(
        (status, code, reason.as_str()),
        (200, -31003, "session_lost")
    );
    assert!(server.answers().is_empty());
    client.works().await;
    assert_eq!(server.opened().len(), 2);
}
