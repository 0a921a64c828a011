//! How such a session ends: with its stream, for whatever reason either ends.

use super::{Old, before, gateway, knock, triple};
use crate::support::client::initialize;
use crate::support::{Client, NOTHING, Server, Setup, json};

/// Losing the stream is losing the session: calls are cancelled at the server, questions have an answer, the
/// server's session ends, and nothing of it can be taken up again.
#[tokio::test]
async fn the_session_ends_with_the_stream() {
    let (server, gateway, mut old) = triple().await;
    let up = server.last_get_stream().await;
    old.call("1", "ask").await;
    let asking = server.called("ask").await.stream();
    asking
        .send(&json::request("7", "elicitation/create", &json::form("?")))
        .await;
    old.stream.question("elicitation/create").await;
    old.call("2", "slow").await;
    let slow = server.called("slow").await.stream();
    let Old { client, stream, .. } = old;
    drop(stream);
    server.error_to("7").await;
    let deleted = server.sees("DELETE", |seen| seen.http == "DELETE").await;
    assert_eq!(deleted.session(), server.opened()[0]);
    let cancelled: Vec<_> = server
        .seen_method("notifications/cancelled")
        .iter()
        .filter_map(|seen| seen.raw(&["params", "requestId"]))
        .collect();
    for call in [&asking, &slow] {
        assert!(cancelled.contains(&call.id), "{cancelled:?}");
        call.left().await;
    }
    up.left().await;
    assert_eq!(server.live(), 0);
    let status = client.post(json::call("3", "echo", "{}")).await.status;
    assert_eq!(status, 404);
    let closed = gateway
        .audited("the end", |line| line["type"] == "session.closed")
        .await;
    assert_eq!(closed["reason"], "stream_closed");
    let answered = gateway
        .audited("the question", |line| line["type"] == "question.answered")
        .await;
    assert_eq!(answered["outcome"], "lost");
}

/// The client leaves in the midst of the handshake: the server's session does not stay behind.
#[tokio::test]
async fn a_stream_that_closes_during_the_handshake() {
    let server = Server::with(|habits| habits.hold_initialize = true).await;
    let gateway = before(&server, "").await;
    let old = Old::connect(&Client::new(&gateway, "alpha")).await;
    old.post(&initialize("2024-11-05", NOTHING)).await;
    let held = server.asked("initialize").await;
    let Old { client, stream, .. } = old;
    drop(stream);
    // The gateway has noticed as soon as the address is gone.
    let ping = json::request("1", "ping", "{}");
    while client.post(ping.clone()).await.status != 404 {}
    let body = json::result(
        &held.id(),
        r#"{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
    );
    let mut response = crate::support::server::response(200, "application/json", body);
    let id = "orphan".parse().unwrap();
    response.headers_mut().insert("mcp-session-id", id);
    held.respond_with(response);
    server
        .sees("DELETE", |seen| {
            seen.http == "DELETE" && seen.session() == "orphan"
        })
        .await;
}

/// What a server refuses comes on the stream, and is the last that does.
#[tokio::test]
async fn a_handshake_that_fails_ends_the_stream() {
    let server = Server::with(|habits| habits.hold_initialize = true).await;
    let gateway = before(&server, "").await;
    let mut old = Old::connect(&Client::new(&gateway, "alpha")).await;
    old.post(&initialize("1999-01-01", NOTHING)).await;
    let held = server.asked("initialize").await;
    let error = json::error(&held.id(), -32602, "Unsupported protocol version");
    held.respond(200, "application/json", &error);
    let answer = old.stream.next().await;
    json::same_but_id(&answer, &error);
    assert_eq!(json::id(&answer), "\"init\"");
    old.stream.ends().await;

    let nobody = Setup::new().server_at("alpha", "http://127.0.0.1:1/mcp", "{}");
    let gateway = nobody.yaml("legacy_sse: true").start().await;
    let mut old = Old::connect(&Client::new(&gateway, "alpha")).await;
    old.post(&initialize("2024-11-05", NOTHING)).await;
    let error = old.stream.json().await;
    assert_eq!(
        (&error["id"], &error["error"]["code"]),
        (&"init".into(), &(-31001).into())
    );
    old.stream.ends().await;
    let call = gateway
        .audited("the try", |line| line["method"] == "initialize")
        .await;
    assert_eq!(call["reason"], "upstream_unavailable");
}

/// The server forgets the session, and the operator wants no new one: the call says so, and the stream ends, which
/// is all that makes such a client begin anew.
#[tokio::test]
async fn the_stream_ends_with_the_servers_session() {
    let server = Server::start().await;
    let strict = "{ on_session_lost: tell }";
    let setup = Setup::new().server_with("alpha", &server, strict);
    let gateway = setup.yaml("legacy_sse: true").start().await;
    let mut old = Old::open(&Client::new(&gateway, "alpha")).await;
    old.works().await;
    server.forget();
    old.call("1", "echo").await;
    let error = old.stream.json().await;
    assert_eq!(error["id"], 1);
    assert_eq!(error["error"]["data"]["reason"], "forgotten_by_server");
    old.stream.ends().await;
    let status = old.client.post(json::call("2", "echo", "{}")).await.status;
    assert_eq!(status, 404);
    let mut again = Old::open(&Client::new(&gateway, "alpha")).await;
    again.works().await;
}

/// Where the gateway goes on with a new session at the server, the stream goes on too.
#[tokio::test]
async fn the_stream_outlives_a_server_that_forgets() {
    let (server, _gateway, mut old) = triple().await;
    old.works().await;
    server.forget();
    old.call("1", "echo").await;
    while json::parse(&old.stream.next().await)["id"] != 1 {}
    assert_eq!(server.opened().len(), 2);
}

/// Shutdown: a call that runs has its outcome, then the stream ends. One that nobody uses ends at once.
#[tokio::test]
async fn the_stream_ends_with_the_gateway() {
    let (server, mut gateway, mut old) = triple().await;
    let mut fresh = Old::connect(&Client::new(&gateway, "alpha")).await;
    old.call("1", "slow").await;
    let call = server.called("slow").await.stream();
    gateway.terminate().await;
    fresh.stream.ends().await;
    assert_eq!(knock(&Client::new(&gateway, "alpha")).await.status, 503);
    old.call("2", "echo").await;
    assert_eq!(old.stream.error().await, -31006);
    call.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&old.stream.next().await), "done");
    old.stream.ends().await;
    server.sees("DELETE", |seen| seen.http == "DELETE").await;
    assert_eq!(gateway.exit().await.code(), Some(0));
}

/// A stream counts as a session from its first moment on, until it ends.
#[tokio::test]
async fn streams_count_as_sessions() {
    let (server, gateway) = gateway("limits: { per_principal: { sessions: 2 } }").await;
    let client = Client::new(&gateway, "alpha");
    let mut fresh = Old::connect(&client).await;
    let mut old = Old::open(&client).await;
    let mut third = knock(&client).await;
    assert_eq!(third.status, 503);
    assert!(third.headers.contains_key("retry-after"));
    assert_eq!(third.error().await, -31006);
    let mut other = client.post(initialize("2025-11-25", NOTHING)).await;
    assert_eq!(other.error().await, -31006);
    fresh.post(&initialize("2024-11-05", NOTHING)).await;
    fresh.stream.next().await;
    drop(fresh);
    server.sees("DELETE", |seen| seen.http == "DELETE").await;
    let mut next = knock(&client).await;
    while next.status == 503 {
        next = knock(&client).await;
    }
    assert_eq!(next.status, 200);
    old.works().await;
}

/// A stream that never becomes a session is not kept for ever; a session is not idle while its stream is
/// open.
#[tokio::test]
async fn a_stream_that_nobody_uses_ends() {
    let (_server, gateway) = gateway("sessions: { idle: 500ms }").await;
    let client = Client::new(&gateway, "alpha");
    let mut old = Old::open(&client).await;
    let mut fresh = Old::connect(&client).await;
    fresh.stream.ends().await;
    // The measure of time is a session of the other transport, which came last and does nothing.
    client.open(NOTHING).await;
    gateway
        .audited("an end", |line| line["reason"] == "idle")
        .await;
    old.works().await;
}
