//! Modern programs: requests that stand for themselves, many in one process.

use super::{Process, modern_with, open, visitor};
use crate::support::{accepted, json};

#[tokio::test]
async fn a_modern_client_passes_through() {
    let gateway = modern_with(&[], "").await;
    let client = visitor(&gateway);
    client.works().await;
    let seen = client.text("whole", r#"{"n":1.50,"u":"é"}"#).await;
    assert!(seen.contains(r#""arguments":{"n":1.50,"u":"é"}"#), "{seen}");
    assert!(
        seen.contains("io.modelcontextprotocol/clientCapabilities"),
        "{seen}"
    );
    let ask = client.call("1", "ask", r#"{"x":"who"}"#);
    let round = ask.send().await.round().await;
    assert_eq!(round.message(round.only()), "who");
    let again = ask.retry("2", &round, &round.all(&accepted("Mo")));
    assert_eq!(json::text_of(&again.send().await.next().await), "Mo");
}

#[tokio::test]
async fn a_legacy_client_is_asked_what_a_modern_program_asks() {
    let gateway = modern_with(&[], "").await;
    let session = open(&gateway).await;
    session.works().await;
    let mut reply = session.call("1", "ask", r#"{"x":"who"}"#).await;
    let question = reply.question("elicitation/create").await;
    assert!(question.contains("who"), "{question}");
    assert_eq!(session.answer(&question, &accepted("Mo")).await, 202);
    assert_eq!(json::text_of(&reply.next().await), "Mo");
}

/// Who goes away cancels: there is no stream that could end, so the program is told.
#[tokio::test]
async fn a_request_whose_client_is_gone_is_cancelled() {
    let gateway = modern_with(&[], "").await;
    let client = visitor(&gateway);
    let ask = client
        .call("1", "progress_and_hang", r#"{"x":"begun"}"#)
        .token("\"t\"");
    let mut reply = ask.send().await;
    assert_eq!(reply.json().await["params"]["message"], "begun");
    drop(reply);
    gateway.says("cancelled ").await;
    let cancelled = client.text("cancelled", "{}").await;
    assert_eq!(cancelled.split_whitespace().count(), 1, "{cancelled}");
}

#[tokio::test]
async fn a_legacy_client_cancels_at_a_modern_program() {
    let gateway = modern_with(&[], "").await;
    let session = open(&gateway).await;
    let call = json::request(
        "1",
        "tools/call",
        r#"{"name":"progress_and_hang","arguments":{"x":"begun"},"_meta":{"progressToken":1}}"#,
    );
    let mut reply = session.post(call).await;
    reply.next().await;
    assert_eq!(
        session
            .notify("notifications/cancelled", r#"{"requestId":1}"#)
            .await,
        202
    );
    gateway.says("cancelled ").await;
    session.works().await;
}

/// A request that has ended by its time is cancelled, too.
#[tokio::test]
async fn a_request_that_takes_too_long_is_cancelled() {
    let gateway = crate::support::Setup::new()
        .program("alpha", &super::command(&["modern"]), "era: modern")
        .yaml("timeouts: { call: 1s }")
        .start()
        .await;
    let client = visitor(&gateway);
    let (_, code, _) = client.call("1", "hang", "{}").refused().await;
    assert_eq!(code, -31002);
    gateway.says("cancelled ").await;
    client.works().await;
}

/// Two clients of one caller choose the same token, and each hears of its own call.
#[tokio::test]
async fn progress_of_two_clients_does_not_mix() {
    let gateway = modern_with(&[], "").await;
    let (one, two) = (visitor(&gateway), visitor(&gateway));
    let ask = |client: &crate::support::Modern, x: &str| {
        client
            .call("1", "progress_and_hang", &format!(r#"{{"x":"{x}"}}"#))
            .token("\"t\"")
    };
    let mut first = ask(&one, "first").send().await;
    let mut second = ask(&two, "second").send().await;
    for (reply, x) in [(&mut first, "first"), (&mut second, "second")] {
        let progress = reply.json().await;
        assert_eq!(progress["params"]["message"], x, "{progress}");
        assert_eq!(progress["params"]["progressToken"], "t", "{progress}");
    }
}

#[tokio::test]
async fn changes_are_heard_under_the_subscription_of_the_client() {
    let gateway = modern_with(&[], "").await;
    let client = visitor(&gateway);
    let params = r#"{"notifications":{"toolsListChanged":true}}"#;
    let mut listening = client
        .request("\"mine\"", "subscriptions/listen", params)
        .send()
        .await;
    let tag = "io.modelcontextprotocol/subscriptionId";
    let acknowledged = listening.json().await;
    assert_eq!(
        acknowledged["params"]["_meta"][tag], "mine",
        "{acknowledged}"
    );
    assert_eq!(client.text("changed", "{}").await, "told");
    let changed = listening.json().await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"][tag], "mine", "{changed}");
    drop(listening);
    gateway.says("cancelled ").await;
}

/// What it wrote before its end arrives; then a call in flight fails, and the next has a new process.
#[tokio::test]
async fn a_modern_program_that_ends_is_started_again() {
    let gateway = modern_with(&[], "").await;
    let client = visitor(&gateway);
    let process = Process::read(&client.text("pid", "{}").await);
    let mut reply = client.call("1", "result_and_exit", "{}").send().await;
    let mut last = reply.next().await;
    if last.contains("notifications/message") {
        last = reply.next().await;
    }
    assert_eq!(json::text_of(&last), "done");
    process.is_gone().await;
    let (_, code, reason) = client.call("2", "exit", "{}").refused().await;
    assert_eq!((code, reason.as_str()), (-32603, "outcome_unknown"));
    client.works().await;
}

/// Answers to nobody, to others and twice are nobody's.
#[tokio::test]
async fn what_nobody_waits_for_is_left_out() {
    let gateway = modern_with(&[], "").await;
    let client = visitor(&gateway);
    for tool in ["strangers", "junk"] {
        client.text(tool, "{}").await;
    }
    client.works().await;
}
