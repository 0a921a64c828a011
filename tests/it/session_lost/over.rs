//! A session that can't be made what its client was told of ends, so that the client begins anew.

use hyper::Method;

use super::set_level;
use crate::support::{Gateway, Modern, Server, Session, Setup, json, triple};

/// The server chooses another version, has no tools any more, or tells of no changes.
#[tokio::test]
async fn a_server_that_is_not_what_it_was() {
    type Change = fn(&mut crate::support::server::Habits);
    let changes: [Change; 3] = [
        |habits| habits.version = Some("2025-06-18"),
        |habits| habits.capabilities = r#"{"logging":{},"resources":{"subscribe":true}}"#,
        |habits| {
            habits.capabilities = r#"{"tools":{},"logging":{},"resources":{"subscribe":true}}"#;
        },
    ];
    for change in changes {
        let (server, gateway, session) = triple().await;
        server.change(change);
        server.forget();
        is_over(&gateway, &session).await;
        // What it opened in vain does not stay behind.
        let ended = server
            .sees("DELETE", |seen| seen.http == Method::DELETE)
            .await;
        assert_eq!(ended.session(), server.opened()[1]);
    }
}

/// One that offers more is fine.
#[tokio::test]
async fn a_server_that_can_do_more() {
    let (server, _gateway, session) = triple().await;
    server.change(|habits| {
        habits.capabilities = r#"{"prompts":{},"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true,"listChanged":true}}"#;
    });
    server.forget();
    session.works().await;
}

/// The server refuses `initialize`.
#[tokio::test]
async fn a_server_that_refuses() {
    let (server, gateway, session) = triple().await;
    server.change(|habits| habits.hold_initialize = true);
    server.forget();
    let call = session.start(json::call("1", "echo", "{}"));
    let held = server.asked("initialize").await;
    let error = json::error(&held.id(), -32602, "Unsupported protocol version");
    held.respond(200, "application/json", &error);
    assert_eq!(call.await.unwrap().status, 404);
    server.change(|habits| habits.hold_initialize = false);
    is_over(&gateway, &session).await;
    assert_eq!(server.seen_method("initialize").len(), 2);
}

/// The new session is unknown at once, too: a request is sent twice at most.
#[tokio::test]
async fn a_server_that_forgets_for_ever() {
    let (server, gateway, session) = triple().await;
    set_level(&server, &session, "info").await;
    server.forget();
    let call = session.start(json::call("1", "echo", r#"{"x":1}"#));
    let level = server.asked("logging/setLevel").await;
    server.forget();
    level.result("{}");
    let mut reply = call.await.unwrap();
    assert_eq!(reply.status, 404);
    assert_eq!(reply.json().await["error"]["code"], -31003);
    is_over(&gateway, &session).await;
    assert_eq!(server.seen_method("initialize").len(), 2);
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// The client ends its session while another one is opened at the server: that is ended, too.
#[tokio::test]
async fn a_client_that_leaves_meanwhile() {
    let (server, gateway, session) = triple().await;
    server.change(|habits| habits.hold_initialize = true);
    server.forget();
    let call = session.start(json::call("1", "echo", "{}"));
    let held = server.asked("initialize").await;
    assert!(session.delete().await.is_success());
    let mut reply = call.await.unwrap();
    assert_eq!(reply.error().await, -31003);
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"late","version":"1"}}"#;
    let mut response =
        crate::support::server::response(200, "application/json", json::result(&held.id(), result));
    let headers = response.headers_mut();
    headers.insert("mcp-session-id", "late".parse().unwrap());
    held.respond_with(response);
    let ended = |seen: &crate::support::server::Seen| {
        seen.http == Method::DELETE && seen.session() == "late"
    };
    server.sees("the end of the new session", ended).await;
    assert!(
        !gateway
            .audit()
            .iter()
            .any(|line| line["type"] == "session.renewed")
    );
    assert_eq!(server.seen_method("tools/call").len(), 1);
}

/// The gateway ends meanwhile, and does not wait for it.
#[tokio::test]
async fn a_gateway_that_ends_meanwhile() {
    let server = Server::start().await;
    let setup = Setup::new().server("alpha", &server);
    let mut gateway = setup.yaml("timeouts: { shutdown: 100ms }").start().await;
    let client = crate::support::Client::new(&gateway, "alpha");
    let session = client.open("{}").await;
    server.change(|habits| habits.hold_initialize = true);
    server.forget();
    let call = session.start(json::call("1", "echo", "{}"));
    let held = server.asked("initialize").await;
    gateway.terminate().await;
    assert_eq!(call.await.unwrap().error().await, -31003);
    held.respond(503, "text/plain", "");
    assert!(gateway.exit().await.success());
}

/// Where the operator does not want it, a modern client gets another session all the same: it holds none.
#[tokio::test]
async fn a_modern_client_of_a_server_that_is_not_renewed() {
    let server = Server::start().await;
    let setup = Setup::new().server_with("alpha", &server, "{ on_session_lost: tell }");
    let gateway = setup.start().await;
    let client = Modern::new(&gateway, "alpha");
    client.works().await;
    server.forget();
    client.works().await;
    assert_eq!(server.opened().len(), 2);
    gateway
        .audited("the end", |line| line["type"] == "session.closed")
        .await;
}

/// The client is told that its session is unknown, from now on.
async fn is_over(gateway: &Gateway, session: &Session) {
    assert_eq!(session.call("1", "echo", "{}").await.status, 404);
    let ended = |line: &serde_json::Value| line["type"] == "session.closed";
    let record = gateway.audited("the end", ended).await;
    assert_eq!(record["reason"], "forgotten_by_server");
    assert_eq!(session.call("2", "echo", "{}").await.status, 404);
}
