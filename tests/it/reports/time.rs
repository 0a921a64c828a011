//! Limits and times.

use std::time::Duration;

use crate::support::{Client, EVERYTHING, NOTHING, Server, Setup, json};

/// The clock of a call stands still while its person thinks, and goes on after that: who has all the time in the
/// world to answer gives none of it to the server.
/// Reported in UsefulSoftwareCo/executor#1953, anomalyco/opencode#35275 and MCPJam/inspector#1603.
#[tokio::test]
async fn a_call_has_the_rest_of_its_time_after_the_answer() {
    let server = Server::start().await;
    let yaml = "timeouts: { call: 1s }";
    let setup = Setup::new().server("alpha", &server).yaml(yaml);
    let gateway = setup.start().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    stream
        .send(&json::request("1", "elicitation/create", &json::form("?")))
        .await;
    let question = reply.question("elicitation/create").await;
    // The person thinks for longer than the call may take: this is the scenario, not a wait for luck.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    session
        .answer(
            &question,
            r#"{"action":"accept","content":{"nick":"Mira"}}"#,
        )
        .await;
    assert!(server.answer_to("1").await.contains("Mira"));
    // The server goes on for ever.
    assert_eq!(reply.error().await, -31002);
    let cancelled = server.notice("notifications/cancelled").await;
    assert_eq!(
        cancelled.raw(&["params", "requestId"]),
        Some(stream.id.clone())
    );
    stream.left().await;
    session.works().await;
}

/// A limit says how long to wait, and means it.
/// Reported in stacklok/toolhive#4550 and #4551, and openstatusHQ/openstatus#2689.
#[tokio::test]
async fn after_the_time_that_a_limit_names_there_is_room() {
    let server = Server::start().await;
    let more = "{ limits: { requests: 1/s, burst: 2 } }";
    let gateway = Setup::new()
        .server_with("alpha", &server, more)
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let wait = loop {
        let answer = session.call("1", "echo", "{}").await.json().await;
        if let Some(wait) = answer["error"]["data"]["retryAfterMs"].as_u64() {
            break wait;
        }
    };
    assert!((1..=1000).contains(&wait), "{wait}");
    tokio::time::sleep(Duration::from_millis(wait)).await;
    session.works().await;
}
