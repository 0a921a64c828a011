//! Shutdown: no new work, the running work ends, everyone who waits is told, within a bounded time.

use crate::support::client::initialize;
use crate::support::{Client, EVERYTHING, NOTHING, Server, Setup, json, triple};

/// A running call ends as it should; then the process does.
#[tokio::test]
async fn running_calls_end() {
    let (server, mut gateway, session) = triple().await;
    let up = server.last_get_stream().await;
    let mut listening = session.listen().await;
    let streaming = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = streaming.await.unwrap();
    let waiting = session.start(json::call("2", "other", "{}"));
    let held = server.called("other").await;
    gateway.terminate().await;
    // Closing the idle stream is the first thing that a client notices.
    while listening.maybe_next().await.is_some() {}
    stream.result(&json::text_result("streamed")).await;
    held.result(&json::text_result("waited"));
    assert_eq!(json::text_of(&reply.next().await), "streamed");
    reply.ends().await;
    assert_eq!(
        json::text_of(&waiting.await.unwrap().next().await),
        "waited"
    );
    assert_eq!(gateway.exit().await.code(), Some(0));
    up.left().await;
    server.sees("DELETE", |seen| seen.http == "DELETE").await;
    let last = gateway.audit().pop().unwrap();
    assert_eq!(last["type"], "gateway.stopped");
}

/// A question that waits for a person can't wait any longer: the server is told.
#[tokio::test]
async fn pending_questions_are_answered() {
    let server = Server::start().await;
    let timeouts = "timeouts: { shutdown: 1s }";
    let mut gateway = Setup::new()
        .server("alpha", &server)
        .yaml(timeouts)
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    stream
        .send(&json::request(
            "\"q\"",
            "elicitation/create",
            &json::form("?"),
        ))
        .await;
    reply.question("elicitation/create").await;
    gateway.terminate().await;
    server.error_to("\"q\"").await;
    while reply.maybe_next().await.is_some() {}
    assert_eq!(gateway.exit().await.code(), Some(0));
    stream.left().await;
    let kinds: Vec<_> = gateway
        .audit()
        .into_iter()
        .map(|line| line["type"].clone())
        .collect();
    assert!(kinds.contains(&"question.answered".into()), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"gateway.stopped".into()));
}

/// A call that never ends does not keep the process: the client gets its error, the server its news.
#[tokio::test]
async fn endless_calls_do_not_hold_it() {
    let server = Server::start().await;
    let timeouts = "timeouts: { shutdown: 500ms }";
    let mut gateway = Setup::new()
        .server("alpha", &server)
        .yaml(timeouts)
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let streaming = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut streaming = streaming.await.unwrap();
    let waiting = session.start(json::call("2", "other", "{}"));
    let mut held = server.called("other").await;
    gateway.terminate().await;
    assert!(streaming.json().await["error"]["code"].is_i64());
    assert!(waiting.await.unwrap().json().await["error"]["code"].is_i64());
    assert_eq!(gateway.exit().await.code(), Some(0));
    stream.left().await;
    held.abandoned().await;
}

/// Nobody is there: it ends at once.
#[tokio::test]
async fn idle() {
    let (_server, mut gateway) = crate::support::pair().await;
    gateway.terminate().await;
    assert_eq!(gateway.exit().await.code(), Some(0));
    assert_eq!(gateway.audit().pop().unwrap()["type"], "gateway.stopped");
}

/// Whoever signals twice does not want to wait for the calls: it ends, and says that it was not clean.
#[tokio::test]
async fn a_second_signal() {
    let server = Server::start().await;
    let timeouts = "timeouts: { shutdown: 10m }";
    let mut gateway = Setup::new()
        .server("alpha", &server)
        .yaml(timeouts)
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let mut listening = session.listen().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let _held = server.called("slow").await;
    gateway.terminate().await;
    while listening.maybe_next().await.is_some() {}
    gateway.terminate().await;
    assert_eq!(gateway.exit().await.code(), Some(1));
    assert!(call.await.is_err(), "no answer came");
}

/// New sessions are refused while old calls end; `readyz` sends the balancer elsewhere.
#[tokio::test]
async fn no_new_sessions() {
    let (server, mut gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let held = server.called("slow").await;
    // A connection from before: the listener itself may be closed by then.
    let newcomer = Client::new(&gateway, "alpha");
    let ready = Client::at(&format!("{}/readyz", gateway.url));
    assert_eq!(
        ready.get().await.text().await,
        ready.get().await.text().await
    );
    gateway.terminate().await;
    while listening.maybe_next().await.is_some() {}
    let task = tokio::spawn(async move { newcomer.post(initialize("2025-11-25", NOTHING)).await });
    if let Ok(mut reply) = task.await {
        let said = reply.maybe_next().await;
        assert_eq!(
            reply.header("mcp-session-id"),
            "",
            "{} {said:?}",
            reply.status
        );
    }
    held.result("{}");
    assert_eq!(call.await.unwrap().json().await["id"], 1);
    assert_eq!(gateway.exit().await.code(), Some(0));
}
