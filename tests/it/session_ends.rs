//! How sessions end: by DELETE, by idleness, at a cap, by the server that forgot them; and what must
//! not end them.

use hyper::Method;

use crate::support::client::Session;
use crate::support::client::initialize;
use crate::support::{Client, EVERYTHING, Gateway, NOTHING, Server, Setup, json, triple};

/// B14: DELETE ends it everywhere: streams close, the server is told, the id is gone.
/// Reported in higress-group/wasm-go#46, platformatic/mcp#25, envoyproxy/envoy#43499, openclaw/openclaw#145831.
#[tokio::test]
async fn delete_ends_it_upstream_too() {
    let (server, gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let up = server.last_get_stream().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();

    assert!(session.delete().await.is_success());
    let deleted = server
        .sees("DELETE", |seen| seen.http == Method::DELETE)
        .await;
    assert_eq!(deleted.session(), server.opened()[0]);
    while reply.maybe_next().await.is_some() {}
    while listening.maybe_next().await.is_some() {}
    up.left().await;
    stream.left().await;

    assert_eq!(session.delete().await, 404);
    assert_eq!(session.call("2", "echo", "{}").await.status, 404);
    gateway
        .audited("the end", |line| line["type"] == "session.closed")
        .await;
    assert_eq!(
        server
            .seen()
            .iter()
            .filter(|seen| seen.http == Method::DELETE)
            .count(),
        1
    );
}

/// B14: servers that don't offer DELETE, or have already forgotten, are no failure for the client.
/// Reported in higress-group/wasm-go#46, platformatic/mcp#25, envoyproxy/envoy#43499, openclaw/openclaw#145831.
#[tokio::test]
async fn delete_at_a_server_that_does_not_offer_it() {
    for status in [405, 404, 500] {
        let server = Server::with(|habits| habits.deleted = status).await;
        let gateway = Setup::new().server("alpha", &server).start().await;
        let session = Client::new(&gateway, "alpha").open(NOTHING).await;
        assert!(session.delete().await.is_success(), "upstream {status}");
        assert_eq!(session.delete().await, 404);
    }
}

/// Where the operator wants that: upstream forgets, and the client gets the 404 that makes it start anew, on
/// every later request.
#[tokio::test]
async fn the_server_forgets() {
    let (server, gateway, session) = telling().await;
    session.works().await;
    server.forget();
    let mut reply = session.call("1", "echo", "{}").await;
    assert_eq!(reply.status, 404);
    assert!(reply.json().await["error"]["code"].is_i64());
    assert_eq!(session.call("2", "echo", "{}").await.status, 404);
    assert_eq!(session.client.get().await.status, 404);
    gateway
        .audited("the end", |line| line["type"] == "session.closed")
        .await;
    Client::new(&gateway, "alpha")
        .open(EVERYTHING)
        .await
        .works()
        .await;
    assert_eq!(
        server.seen_method("initialize").len(),
        2,
        "the gateway made no session up"
    );
}

/// The same when the gateway learns it from its own stream: no call of the client was lost to it.
#[tokio::test]
async fn the_server_restarts_between_two_calls() {
    let (server, gateway, session) = telling().await;
    let stream = server.last_get_stream().await;
    session.works().await;
    server.forget();
    stream.abort().await;
    gateway
        .audited("the end", |line| line["type"] == "session.closed")
        .await;
    assert_eq!(session.call("1", "echo", "{}").await.status, 404);
    assert_eq!(server.seen_method("initialize").len(), 1);
}

/// A session at a server whose sessions are not renewed.
async fn telling() -> (Server, Gateway, Session) {
    let server = Server::start().await;
    let setup = Setup::new().server_with("alpha", &server, "{ on_session_lost: tell }");
    let gateway = setup.start().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    (server, gateway, session)
}

/// B15: almost no client sends DELETE. Idle sessions end, here and at the server.
/// Reported in mark3labs/mcp-go#723, UsefulSoftwareCo/executor#1684, modelcontextprotocol/python-sdk#1283,
/// openai/codex#41600.
#[tokio::test]
async fn idle_sessions_end() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("sessions: { idle: 300ms }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    session.works().await;
    let closed = gateway
        .audited("the end", |line| line["type"] == "session.closed")
        .await;
    assert_eq!(closed["server"], "alpha");
    server
        .sees("DELETE", |seen| seen.http == Method::DELETE)
        .await;
    assert_eq!(server.live(), 0);
    assert_eq!(session.call("1", "echo", "{}").await.status, 404);
}

/// A session whose client listens, and one whose call runs, are not idle.
#[tokio::test]
async fn open_streams_and_running_calls_are_not_idle() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("sessions: { idle: 500ms }")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha");
    let listener = client.open(NOTHING).await;
    let _listening = listener.listen().await;
    let caller = client.open(NOTHING).await;
    let call = caller.start(json::call("1", "slow", "{}"));
    let held = server.called("slow").await;
    // The measure of time is a third session that does nothing and came last.
    client.open(NOTHING).await;
    gateway
        .audited("an end", |line| line["type"] == "session.closed")
        .await;
    listener.works().await;
    held.result(&json::text_result("still there"));
    assert_eq!(
        json::text_of(&call.await.unwrap().next().await),
        "still there"
    );
    caller.works().await;
}

/// B15: a cap per person. The one too many is told so; those that live go on.
/// Reported in mark3labs/mcp-go#723, UsefulSoftwareCo/executor#1684, modelcontextprotocol/python-sdk#1283,
/// openai/codex#41600.
#[tokio::test]
async fn a_cap_for_each_person() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("limits: { per_principal: { sessions: 2 } }")
        .start()
        .await;
    at_the_cap(&Client::new(&gateway, "alpha"), &server).await;
}

/// A cap over all.
#[tokio::test]
async fn a_cap_over_all() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("sessions: { max: 2 }")
        .start()
        .await;
    at_the_cap(&Client::new(&gateway, "alpha"), &server).await;
}

async fn at_the_cap(client: &Client, server: &Server) {
    let first = client.open(NOTHING).await;
    let second = client.open(NOTHING).await;
    let mut third = client.post(initialize("2025-11-25", NOTHING)).await;
    assert_eq!(third.header("mcp-session-id"), "");
    let error = third.json().await;
    assert_eq!(error["error"]["code"], -31006, "{error}");
    assert_eq!(error["error"]["data"]["source"], "gateway");
    assert_eq!(error["id"], "init");
    assert_eq!(
        server.opened().len(),
        2,
        "the server never heard of the third"
    );
    first.works().await;
    second.works().await;
    assert!(first.delete().await.is_success());
    client.open(NOTHING).await.works().await;
    second.works().await;
}

/// B4: connections come and go; the session stays.
/// Reported in modelcontextprotocol/rust-sdk#384 and #559, modelcontextprotocol/java-sdk#952.
#[tokio::test]
async fn broken_streams_do_not_end_it() {
    let (server, _gateway, session) = triple().await;
    let up = server.last_get_stream().await;
    for id in ["1", "2", "3"] {
        drop(session.listen().await);
        let call = session.start(json::call(id, "slow", "{}"));
        let stream = server.called("slow").await.stream();
        drop(call.await.unwrap());
        session.works().await;
        drop(stream);
    }
    session.works().await;
    assert!(!up.is_left(), "the server's stream outlives the client's");
    assert_eq!(server.seen_method("initialize").len(), 1);
}

/// A handshake that the server refuses is answered as the server answered, and leaves no session.
#[tokio::test]
async fn a_refused_handshake_leaves_nothing() {
    let server = Server::with(|habits| habits.hold_initialize = true).await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha");
    let task = {
        let client = client.clone();
        tokio::spawn(async move { client.post(initialize("2025-11-25", NOTHING)).await })
    };
    let held = server.asked("initialize").await;
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32602,"message":"Unsupported protocol version","data":{{"supported":["1999-01-01"]}}}}}}"#,
        held.id()
    );
    held.respond(200, "application/json", &error);
    let mut reply = task.await.unwrap();
    assert_eq!(reply.header("mcp-session-id"), "");
    let answer = reply.next().await;
    json::same_but_id(&answer, &error);
    assert_eq!(json::id(&answer), "\"init\"");
}

/// The client goes away in the middle of the handshake: the session that the server opened for it
/// does not stay behind.
#[tokio::test]
async fn a_client_that_leaves_during_the_handshake() {
    let server = Server::with(|habits| habits.hold_initialize = true).await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("sessions: { idle: 300ms }")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha");
    let task = tokio::spawn(async move { client.post(initialize("2025-11-25", NOTHING)).await });
    let held = server.asked("initialize").await;
    task.abort();
    drop(task.await);
    // Somebody else's handshake and call: by then the gateway knows that the first client has gone.
    server.change(|habits| habits.hold_initialize = false);
    Client::new(&gateway, "alpha")
        .open(NOTHING)
        .await
        .works()
        .await;
    let body = json::result(
        &held.id(),
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
    );
    let mut response = crate::support::server::response(200, "application/json", body);
    response
        .headers_mut()
        .insert("mcp-session-id", "orphan".parse().unwrap());
    held.respond_with(response);
    server
        .sees("DELETE", |seen| {
            seen.http == Method::DELETE && seen.session() == "orphan"
        })
        .await;
}

/// Unanswered handshakes, sessions without `initialized`: nothing is kept for ever.
#[tokio::test]
async fn a_session_that_was_never_initialized_ends_too() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("sessions: { idle: 300ms }")
        .start()
        .await;
    let reply = Client::new(&gateway, "alpha")
        .post(initialize("2025-11-25", NOTHING))
        .await;
    assert_eq!(reply.status, 200);
    gateway
        .audited("the end", |line| line["type"] == "session.closed")
        .await;
    server
        .sees("DELETE", |seen| seen.http == Method::DELETE)
        .await;
}
