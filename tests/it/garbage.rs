//! Broken requests: each one gets its own refusal, and nothing else on the session changes.

use hyper::Method;

use crate::support::{Client, Reply, json, triple};

/// Bodies that are refused with 400, and the code of the error.
fn broken() -> Vec<(&'static str, Vec<u8>, i64)> {
    let table: [(&str, &[u8], i64); 28] = [
        ("empty", b"", -32700),
        ("spaces", b"  \n ", -32700),
        ("not JSON", b"hello", -32700),
        ("cut off", br#"{"jsonrpc":"2.0","id":1,"method":"tools/list""#, -32700),
        ("two documents", br#"{"jsonrpc":"2.0","id":1,"method":"ping"}{}"#, -32700),
        ("trailing comma", br#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#, -32700),
        ("invalid UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700),
        ("a form", b"jsonrpc=2.0&id=1&method=ping", -32700),
        ("a number", b"1", -32600),
        ("a string", br#""ping""#, -32600),
        ("null", b"null", -32600),
        ("an empty object", b"{}", -32600),
        ("no version", br#"{"id":1,"method":"ping"}"#, -32600),
        ("another version", br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        ("id is an object", br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        ("id is a list", br#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600),
        ("id is true", br#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600),
        ("id is null", br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        ("method is a number", br#"{"jsonrpc":"2.0","id":1,"method":1}"#, -32600),
        ("method is null", br#"{"jsonrpc":"2.0","id":1,"method":null}"#, -32600),
        ("result and error", br#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, -32600),
        ("neither", br#"{"jsonrpc":"2.0","id":1}"#, -32600),
        ("two ids", br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"echo"}}"#, -32600),
        ("two methods", br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#, -32600),
        ("a method of another case", br#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#, -32600),
        ("two methods, one in disguise", br#"{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/call"}"#, -32600),
        ("two ids, one in disguise", br#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"ping"}"#, -32600),
        ("two tools", br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"who"}}"#, -32600),
    ];
    table
        .into_iter()
        .map(|(name, body, code)| (name, body.to_vec(), code))
        .collect()
}

/// C16: all of it on a live session with an open stream and a call in flight.
/// Reported in supercorp-ai/supergateway#190 and #112.
#[tokio::test]
async fn broken_messages_change_nothing_else() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let up = server.last_get_stream().await;
    let call = session.start(json::call("\"running\"", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut running = call.await.unwrap();
    let before = server.posts();

    for (name, body, code) in broken() {
        let mut reply = session.post(body).await;
        assert_eq!(reply.status, 400, "{name}");
        let error = reply.json().await;
        assert_eq!(error["error"]["code"], code, "{name}: {error}");
        assert_eq!(error["jsonrpc"], "2.0", "{name}");
    }
    assert_eq!(server.posts(), before, "nothing of it reached the server");

    stream.result(&json::text_result("unharmed")).await;
    assert_eq!(json::text_of(&running.next().await), "unharmed");
    running.ends().await;
    up.send(&json::notice("notifications/x", "{}")).await;
    assert!(listening.next().await.contains("notifications/x"));
    session.works().await;
}

/// C16, C7: bodies that are not said to be JSON.
/// Reported in supercorp-ai/supergateway#190 and #112, mark3labs/mcp-go#501,
/// modelcontextprotocol/csharp-sdk#1527, modelcontextprotocol/python-sdk#1382.
#[tokio::test]
async fn other_content_types() {
    let (server, _gateway, session) = triple().await;
    let before = server.posts();
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "multipart/form-data",
    ] {
        let client = session.client.with("content-type", content_type);
        let mut reply = client.post(json::call("1", "echo", "{}")).await;
        assert_eq!(reply.status, 415, "{content_type}");
        assert!(reply.json().await["error"]["code"].is_i64());
    }
    assert_eq!(server.posts(), before);
    session.works().await;
}

/// Deep nesting is somebody's attempt at a stack: refused or passed on, and survived.
#[tokio::test]
async fn deep_nesting() {
    let (_server, _gateway, session) = triple().await;
    for depth in [100, 10_000, 1_000_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let mut reply = session
            .call("1", "echo", &format!(r#"{{"x":{deep}}}"#))
            .await;
        assert!(
            reply.status == 200 || reply.status == 400,
            "{}",
            reply.status
        );
        drop(reply.maybe_next().await);
        session.works().await;
    }
}

/// A request that names itself `initialize` inside a session, or arrives where nothing is.
#[tokio::test]
async fn requests_without_a_body() {
    let (_server, gateway, session) = triple().await;
    let client = Client::new(&gateway, "alpha").with("content-type", "");
    let status = client.send(Method::POST, "").await.status;
    assert!(status == 400 || status == 415, "{status}");
    session.works().await;
}

/// Messages that are whole but make no sense to the gateway are the server's to judge.
#[tokio::test]
async fn unknown_methods_are_passed_on() {
    let (server, _gateway, session) = triple().await;
    let body = r#"{"jsonrpc":"2.0","id":9,"method":"vendor/x","params":[1,2]}"#;
    let call = session.start(body.to_owned());
    let held = server.asked("vendor/x").await;
    json::same_but_id(held.seen.text(), body);
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32601,"message":"Method not found"}}}}"#,
        held.id()
    );
    held.respond(200, "application/json", &error);
    let mut reply: Reply = call.await.unwrap();
    assert_eq!(reply.status, 200, "404 would end the session");
    assert_eq!(reply.error().await, -32601);
}
