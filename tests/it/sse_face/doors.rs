//! What is there to open, what the stream begins with, and what is refused at the door.

use hyper::Method;

use super::{Old, before, gateway, knock, triple};
use crate::support::client::initialize;
use crate::support::{Client, EVERYTHING, NOTHING, Server, Setup, json, pair};

/// Without the operator's word there is nothing, as at any other path that nobody knows.
#[tokio::test]
async fn nothing_is_there_unless_the_operator_wants_it() {
    let (server, gateway) = pair().await;
    for path in ["sse", "messages", "messages?sessionId=x"] {
        let client = Client::at(&format!("{}/mcp/alpha/{path}", gateway.url));
        for method in [Method::GET, Method::POST, Method::OPTIONS] {
            let mut reply = client.send(method.clone(), "").await;
            assert_eq!(reply.status, 404, "{method} {path}");
            let error = reply.json().await;
            assert_eq!(error["error"]["data"]["reason"], "no_such_path", "{error}");
        }
    }
    assert_eq!(server.seen().len(), 0);
}

/// The address is relative, so that a client posts to the host that it knows.
#[tokio::test]
async fn the_stream_begins_with_the_address_to_post_to() {
    let (_server, gateway) = gateway("").await;
    let client = Client::new(&gateway, "alpha");
    let old = Old::connect(&client).await;
    let id = old
        .address
        .strip_prefix("/mcp/alpha/messages?sessionId=")
        .unwrap_or_else(|| panic!("{}", old.address));
    assert!(id.len() >= 43, "256 bits that nobody can guess: {id}");
    assert!(
        old.stream
            .raw()
            .starts_with("event: endpoint\ndata: /mcp/alpha/messages?")
    );
    assert_eq!(old.stream.header("content-type"), "text/event-stream");
    assert_eq!(old.stream.header("x-accel-buffering"), "no");
    assert!(old.stream.header("cache-control").contains("no-cache"));
    assert_eq!(old.stream.header("mcp-session-id"), "");
    let other = Old::connect(&client).await;
    assert_ne!(old.address, other.address);
}

/// C26 (modelcontextprotocol/python-sdk#412, #2255; modelcontextprotocol/typescript-sdk#583): behind a path
/// prefix the address has the public prefix, whatever Host a client sends.
#[tokio::test]
async fn the_address_is_under_the_public_prefix() {
    let server = Server::start().await;
    let gateway = before(&server, "public_url: https://gw.example.test/team/one").await;
    let client = Client::new(&gateway, "alpha").with("host", "gw.example.test");
    let mut stream = knock(&client).await;
    let address = stream.event().await.unwrap().data.unwrap();
    assert!(
        address.starts_with("/team/one/mcp/alpha/messages?sessionId="),
        "{address}"
    );
}

/// Each path has the one method of the transport.
#[tokio::test]
async fn other_methods_are_not_there() {
    let (_server, gateway, old) = triple().await;
    let stream = Client::at(&format!("{}/mcp/alpha/sse", gateway.url));
    for (client, allowed, others) in [
        (
            &stream,
            "GET, OPTIONS",
            [Method::POST, Method::DELETE, Method::PUT],
        ),
        (
            &old.client,
            "POST, OPTIONS",
            [Method::GET, Method::DELETE, Method::PUT],
        ),
    ] {
        for method in others {
            let reply = client.send(method.clone(), initialize("2025-11-25", NOTHING));
            let reply = reply.await;
            assert_eq!(reply.status, 405, "{method} {}", client.url);
            assert_eq!(reply.header("allow"), allowed);
        }
    }
    let json = stream.with("accept", "application/json").get().await;
    assert_eq!(json.status, 406);
    let nobody = Client::new(&gateway, "beta");
    assert_eq!(knock(&nobody).await.status, 404);
}

/// C16 (supercorp-ai/supergateway#190, #112): one bad POST has its own status, and changes nothing else.
#[tokio::test]
async fn a_bad_post_does_not_end_the_session() {
    let (server, gateway) = gateway("limits: { body: 2KiB }").await;
    let mut old = Old::open(&Client::new(&gateway, "alpha")).await;
    old.call("1", "slow").await;
    let call = server.called("slow").await.stream();
    let before = server.posts();
    let large = json::call("2", "echo", &format!(r#"{{"x":"{}"}}"#, "x".repeat(4096)));
    for (body, status) in [
        (large.as_str(), 413),
        ("", 400),
        ("{", 400),
        ("hello", 400),
        ("{}", 400),
        ("7", 400),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, 400),
        ("[]", 400),
    ] {
        assert_eq!(old.refused(body).await, status, "{body}");
    }
    let plain = old.client.with("content-type", "text/plain");
    let ping = json::request("3", "ping", "{}");
    assert_eq!(plain.post(ping.clone()).await.status, 415);
    let charset = old
        .client
        .with("content-type", "application/json; charset=utf-8");
    assert_eq!(server.posts(), before);
    assert_eq!(charset.post(ping).await.status, 202);
    assert_eq!(json::id(&old.stream.next().await), "3");
    call.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&old.stream.next().await), "done");
    old.works().await;
}

/// The session is the one of the address, and no other way of naming one counts.
#[tokio::test]
async fn only_the_address_names_the_session() {
    let server = Server::start().await;
    let setup = Setup::new()
        .server("alpha", &server)
        .server("beta", &server);
    let gateway = setup.yaml("legacy_sse: true").start().await;
    let endpoint = Client::new(&gateway, "alpha");
    let mut old = Old::open(&endpoint).await;
    let streamable = endpoint.open(EVERYTHING).await;
    let id = old.address.split_once('=').unwrap().1.to_owned();
    let before = server.posts();
    let call = json::call("1", "echo", "{}");
    let at = |path: &str| Client::at(&format!("{}/mcp/{path}", gateway.url));
    for (client, status) in [
        (at("alpha/messages"), 400),
        (at("alpha/messages").with("mcp-session-id", &id), 400),
        (at("alpha/messages?sessionId="), 404),
        (at("alpha/messages?sessionId=x"), 404),
        (at(&format!("alpha/messages?sessionid={id}")), 400),
        (at(&format!("alpha/messages?sessionId={id}x")), 404),
        (at(&format!("beta/messages?sessionId={id}")), 404),
        (
            at("alpha/messages?sessionId=x").with("mcp-session-id", &id),
            404,
        ),
        // Of the two transports neither knows the sessions of the other.
        (at("alpha").with("mcp-session-id", &id), 404),
        (
            at(&format!("alpha/messages?sessionId={}", streamable.id)),
            404,
        ),
    ] {
        assert_eq!(
            client.post(call.clone()).await.status,
            status,
            "{}",
            client.url
        );
    }
    let listen = endpoint.with("mcp-session-id", &id);
    assert_eq!(listen.get().await.status, 404);
    assert_eq!(listen.send(Method::DELETE, "").await.status, 404);
    assert_eq!(server.posts(), before);
    old.works().await;
    streamable.works().await;
}

/// First the session, then what is in it; and one session a stream.
#[tokio::test]
async fn initialize_comes_first_and_once() {
    let (server, gateway) = gateway("").await;
    let mut old = Old::connect(&Client::new(&gateway, "alpha")).await;
    let call = json::call("1", "echo", "{}");
    assert_eq!(old.refused(&call).await, 400);
    assert_eq!(old.refused(&format!("[{call}]")).await, 400);
    assert_eq!(server.posts(), 0);
    let initialize = initialize("2024-11-05", NOTHING);
    old.post(&initialize).await;
    old.stream.next().await;
    assert_eq!(old.refused(&initialize).await, 400);
    old.works().await;
    assert_eq!(server.seen_method("initialize").len(), 1);
}

/// A version header has to be the session's, and a message of the modern era has no place here.
#[tokio::test]
async fn messages_of_other_versions_are_refused() {
    let (server, gateway) = gateway("").await;
    let client = Client::new(&gateway, "alpha");
    let mut old = Old::open_at(&client, "2025-11-25", EVERYTHING).await;
    let before = server.posts();
    let call = json::call("1", "echo", "{}");
    for version in ["2025-06-18", "2026-07-28", "x"] {
        let other = old.client.with("mcp-protocol-version", version);
        assert_eq!(other.post(call.clone()).await.status, 400, "{version}");
    }
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    assert_eq!(old.refused(modern).await, 400);
    assert_eq!(old.refused(&format!("[{modern}]")).await, 400);
    assert_eq!(server.posts(), before);
    old.client = old.client.with("mcp-protocol-version", "2025-11-25");
    old.works().await;
}

/// The checks of Host and Origin hold on both paths, and what browsers are told.
#[tokio::test]
async fn web_pages_come_in_as_at_the_endpoint() {
    let app = "https://app.example.test";
    let (server, gateway) = gateway(&format!("allowed_origins: [ \"{app}\" ]")).await;
    let endpoint = Client::new(&gateway, "alpha");
    let mut old = Old::open(&endpoint.with("origin", app)).await;
    assert_eq!(old.stream.header("access-control-allow-origin"), app);
    old.works().await;
    let before = server.posts();
    for (name, value) in [
        ("origin", "https://evil.example.test"),
        ("host", "evil.example.test"),
    ] {
        assert_eq!(
            knock(&endpoint.with(name, value)).await.status,
            403,
            "{value}"
        );
        let post = old.client.with(name, value);
        assert_eq!(post.post(json::call("1", "echo", "{}")).await.status, 403);
    }
    assert_eq!(server.posts(), before);
    let preflight = old
        .client
        .with("access-control-request-method", "POST")
        .send(Method::OPTIONS, "")
        .await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), app);
}
