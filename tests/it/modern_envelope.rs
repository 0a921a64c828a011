//! What a modern request must be (2026-07-28 transports/streamable-http, "Server Validation"), and
//! that nothing else reaches a server.

use hyper::Method;
use serde_json::json as value;

use crate::support::modern::{MODERN, encoded};
use crate::support::{Client, EVERYTHING, NOTHING, json, modern};

/// Version, method and name are mirrored in headers; one that is missing, doubled or different is
/// refused, under the id of the request.
#[tokio::test]
async fn headers_mirror_the_body() {
    let (server, _gateway, client) = modern().await;
    let call = client.call("\"c-1\"", "echo", "{}");
    let table = [
        ("mcp-protocol-version", ""),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", "2027-01-01"),
        ("mcp-method", ""),
        ("mcp-method", "tools/list"),
        ("mcp-method", "Tools/Call"),
        ("mcp-name", ""),
        ("mcp-name", "other"),
        ("mcp-name", "Echo"),
        ("mcp-name", "=?base64?%%%?="),
    ];
    for (name, value) in table {
        let (status, code, _) = call.clone().header(name, value).refused().await;
        assert_eq!((status, code), (400, -32020), "{name}: {value}");
    }
    for name in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        let mut twice = call.client();
        let value = twice.headers[name].clone();
        twice
            .headers
            .append(name.parse::<hyper::header::HeaderName>().unwrap(), value);
        let mut reply = twice.post(call.body()).await;
        assert_eq!(reply.status, 400, "{name} twice");
        assert_eq!(reply.error().await, -32020, "{name} twice");
    }
    assert_eq!(server.seen().len(), 0, "nothing reached the server");
    client.works().await;
}

/// Prompts are mirrored by their name, resources by their URI.
#[tokio::test]
async fn prompts_and_resources_are_mirrored_too() {
    let (server, _gateway, client) = modern().await;
    for (method, params) in [
        ("prompts/get", r#"{"name":"greet"}"#),
        ("resources/read", r#"{"uri":"shop://1"}"#),
    ] {
        let ask = client.request("1", method, params);
        for value in ["", "other"] {
            let (status, code, _) = ask.clone().header("mcp-name", value).refused().await;
            assert_eq!((status, code), (400, -32020), "{method} {value:?}");
        }
    }
    assert_eq!(server.seen().len(), 0);
}

/// What no header can carry is in base64 between markers; what only looks like it is itself.
#[tokio::test]
async fn names_in_base64() {
    let (server, _gateway, client) = modern().await;
    let names = [
        "bestätigen",
        " lead",
        "trail ",
        "tab\there",
        "=?base64?eA==?=",
        "=?BASE64?eA==?=",
        "=?base64?eA==",
        "名前",
    ];
    for name in names {
        let params = value!({ "name": name, "arguments": {} }).to_string();
        let going = client.request("1", "tools/call", &params).start();
        let held = server.called(name).await;
        held.result(&json::text_result("yes"));
        assert_eq!(
            json::text_of(&going.await.unwrap().next().await),
            "yes",
            "{name:?}"
        );
    }
    // A plain name may be encoded all the same.
    let call = client
        .call("1", "echo", "{}")
        .header("mcp-name", "=?base64?ZWNobw==?=");
    call.result().await;
}

/// Base64 has one spelling, and names are UTF-8.
#[tokio::test]
async fn base64_that_is_none() {
    let (_server, _gateway, client) = modern().await;
    for (name, header) in [
        ("a", "=?base64?YQ?="),
        ("a", "=?base64?YR==?="),
        ("a", "=?base64?YQ==YQ==?="),
        ("a", "=?base64?_w==?="),
        ("a", "=?base64?/w==?="),
    ] {
        let refused = client
            .call("1", name, "{}")
            .header("mcp-name", header)
            .refused()
            .await;
        assert_eq!((refused.0, refused.1), (400, -32020), "{header}");
    }
}

/// A version that is not spoken here is told, with those that are.
#[tokio::test]
async fn an_unsupported_version() {
    let (server, _gateway, client) = modern().await;
    for version in ["2025-11-25", "2026-07-29", "2027-01-01", "1"] {
        let ask = client
            .request("7", "tools/list", "{}")
            .envelope("protocolVersion", &format!("\"{version}\""))
            .header("mcp-protocol-version", version);
        let mut reply = ask.send().await;
        let message = reply.json().await;
        assert_eq!(reply.status, 400, "{message}");
        assert_eq!(message["id"], 7);
        assert_eq!(message["error"]["code"], -32022, "{message}");
        assert_eq!(message["error"]["data"]["supported"], value!([MODERN]));
        assert_eq!(message["error"]["data"]["requested"], version);
    }
    assert_eq!(server.seen().len(), 0);
}

/// An envelope that lacks something, or has it in another shape.
#[tokio::test]
async fn an_incomplete_envelope() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("7", "echo", "{}");
    let list = client.request("7", "tools/list", "{}");
    let table = [
        ("no envelope", ask.clone().bare()),
        ("no parameters", list.clone().bare()),
        ("no version", ask.clone().envelope("protocolVersion", "")),
        (
            "no capabilities",
            ask.clone().envelope("clientCapabilities", ""),
        ),
        ("capabilities that are none", ask.clone().declaring("[]")),
        (
            "no name",
            ask.clone().param("name", "").header("mcp-name", "echo"),
        ),
        ("an unknown level", ask.clone().level("loud")),
    ];
    for (case, ask) in table {
        let (status, code, _) = ask.refused().await;
        assert_eq!((status, code), (400, -32602), "{case}");
    }
    assert_eq!(server.seen().len(), 0);
}

/// The header is checked before the rest of the envelope.
#[tokio::test]
async fn a_wrong_header_comes_before_missing_capabilities() {
    let (_server, _gateway, client) = modern().await;
    let ask = client
        .call("1", "echo", "{}")
        .envelope("clientCapabilities", "");
    let (status, code, _) = ask.header("mcp-method", "other").refused().await;
    assert_eq!((status, code), (400, -32020));
}

/// Methods of the revisions before are gone, whatever the server has.
#[tokio::test]
async fn methods_of_the_revisions_before() {
    let (server, _gateway, client) = modern().await;
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    ] {
        let (status, code, _) = client.request("1", method, "{}").refused().await;
        assert_eq!((status, code), (404, -32601), "{method}");
    }
    // But for the gateway's own question about its era, the server hears nothing.
    let probes = server.seen_method("server/discover").len();
    assert_eq!(server.seen().len(), probes);
}

/// Methods of a capability that the server did not declare; tasks of the revision before are none.
#[tokio::test]
async fn methods_that_the_server_does_not_offer() {
    let (server, _gateway, client) = modern().await;
    for method in [
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "tasks/list",
    ] {
        let ask = client.request("1", method, r#"{"name":"x"}"#);
        let (status, code, _) = ask.refused().await;
        assert_eq!((status, code), (404, -32601), "{method}");
        assert!(server.seen_method(method).is_empty(), "{method}");
    }
}

/// A modern endpoint takes POST and nothing else.
/// Reported in higress-group/wasm-go#46, platformatic/mcp#25, envoyproxy/envoy#43499, openclaw/openclaw#145831.
#[tokio::test]
async fn get_and_delete_are_not_allowed() {
    let (server, gateway, _client) = modern().await;
    let client = Client::new(&gateway, "alpha").with("mcp-protocol-version", MODERN);
    for method in [Method::GET, Method::DELETE] {
        let reply = client.send(method.clone(), "").await;
        assert_eq!(reply.status, 405, "{method}");
        assert!(reply.header("allow").contains("POST"), "{method}");
        assert!(!reply.header("allow").contains(method.as_str()), "{method}");
    }
    assert_eq!(server.seen().len(), 0);
}

/// Both eras at one endpoint: each message says what it is. A modern request that names a live
/// session of a legacy client does not enter it, and gets none.
#[tokio::test]
async fn the_message_tells_the_era() {
    let (server, gateway, client) = modern().await;
    let legacy = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    assert_eq!(legacy.text("count", "{}").await, "1");
    let call = client
        .call("1", "count", "{}")
        .header("mcp-session-id", &legacy.id);
    let mut reply = call.send().await;
    assert_eq!(reply.header("mcp-session-id"), "");
    assert_eq!(json::text_of(&reply.next().await), "1");
    assert_eq!(legacy.text("count", "{}").await, "2");
    assert_eq!(client.text("count", "{}").await, "2");
    assert_eq!(server.opened().len(), 2);
    // A header that names the revision is not enough, nor is it enough to leave it out.
    let bare = client
        .call("1", "count", "{}")
        .bare()
        .header("mcp-session-id", &legacy.id);
    assert_eq!(bare.refused().await.0, 400);
    let mut none = client
        .call("1", "count", "{}")
        .header("mcp-protocol-version", "")
        .send()
        .await;
    assert_eq!(none.status, 400);
    assert_eq!(none.error().await, -32020);
}

/// The header of sessions is neither read nor written, on any kind of answer.
/// Reported in envoyproxy/ai-gateway#1555 and #1958.
#[tokio::test]
async fn a_session_id_means_nothing() {
    let (_server, _gateway, client) = modern().await;
    let session = ("mcp-session-id", "0123456789abcdef0123456789abcdef");
    for ask in [
        client.call("1", "echo", "{}"),
        client.request("1", "server/discover", "{}"),
        client.request("1", "ping", "{}"),
        client.call("1", "echo", "{}").header("mcp-name", "other"),
    ] {
        let with = ask.clone().header(session.0, session.1).send().await;
        assert_eq!(with.status, ask.send().await.status);
        assert_eq!(with.header("mcp-session-id"), "");
    }
}

/// Notifications are taken and mean nothing: cancelling is closing the stream.
#[tokio::test]
async fn a_notification_is_accepted() {
    let (server, _gateway, client) = modern().await;
    client.works().await;
    let posts = server.posts();
    for method in ["notifications/cancelled", "notifications/vendor"] {
        let template = client.request("0", method, r#"{"requestId":1}"#);
        let body = template.body().replacen(r#""id":0,"#, "", 1);
        let mut reply = template.client().post(body).await;
        assert_eq!(reply.status, 202, "{method}");
        assert_eq!(reply.text().await, "");
    }
    client.works().await;
    assert_eq!(server.posts(), posts + 1, "the call alone");
}

/// There are no responses of clients.
/// Reported in agentgateway/agentgateway#2187, cloudflare/agents#714.
#[tokio::test]
async fn a_response_is_refused() {
    let (server, _gateway, client) = modern().await;
    let headers = client.request("1", "tools/list", "{}").client();
    for body in [
        json::result("1", "{}"),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#.to_owned(),
    ] {
        let mut reply = headers.post(body).await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.error().await, -32600);
    }
    assert_eq!(server.seen().len(), 0);
}

/// There are no batches, whatever session is named beside.
#[tokio::test]
async fn a_batch_is_refused() {
    let (server, gateway, client) = modern().await;
    let legacy = Client::new(&gateway, "alpha")
        .open_at("2025-03-26", NOTHING)
        .await;
    let ask = client.request("1", "tools/list", "{}");
    let batch = format!("[{}]", ask.body());
    for session in ["", "0123456789abcdef", &legacy.id] {
        let mut reply = ask
            .client()
            .with("mcp-session-id", session)
            .post(batch.clone())
            .await;
        assert_eq!(reply.status, 400, "{session:?}");
        assert_eq!(reply.error().await, -32600, "{session:?}");
    }
    let mixed = format!("[{},{}]", json::request("2", "ping", "{}"), ask.body());
    let mut reply = legacy.post(mixed).await;
    assert_eq!(reply.status, 400, "one modern element");
    assert_eq!(reply.error().await, -32600);
    assert!(server.seen_method("tools/list").is_empty());
}

/// What can't be read is no message of any era.
#[tokio::test]
async fn a_body_that_is_none() {
    let (server, _gateway, client) = modern().await;
    let headers = client.request("1", "tools/list", "{}").client();
    for (body, code) in [("{", -32700), ("7", -32600), ("{}", -32600)] {
        let mut reply = headers.post(body).await;
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.error().await, code, "{body}");
    }
    // Said twice: which one would count?
    let doubled = client.call("1", "echo", "{}").body().replacen(
        r#""name":"echo""#,
        r#""name":"echo","name":"other""#,
        1,
    );
    let reply = client.call("1", "echo", "{}").client().post(doubled).await;
    assert_eq!(reply.status, 400);
    assert_eq!(server.seen().len(), 0);
}

/// An encoding that the tests compute is the one that the revision gives.
#[test]
fn values_are_encoded_as_the_revision_says() {
    assert_eq!(encoded("plain name"), "plain name");
    assert_eq!(encoded("é"), "=?base64?w6k=?=");
    assert_eq!(encoded(" x"), "=?base64?IHg=?=");
}
