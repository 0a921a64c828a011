//! The transport: browsers, redirects, batches.

use hyper::Method;

use crate::support::client::initialize;
use crate::support::server::response;
use crate::support::token::sha256;
use crate::support::{Client, EVERYTHING, NOTHING, Server, Setup, json, triple};

const APP: &str = "https://app.example.test";

/// A page that is a modern client sends headers whose names only the tool knows; it asks for them beforehand.
/// Reported in netdata/netdata#22258 and modelcontextprotocol/typescript-sdk#764.
#[tokio::test]
async fn a_web_page_may_send_the_headers_for_arguments() {
    let server = Server::start().await;
    let yaml = format!("allowed_origins: [ \"{APP}\" ]");
    let setup = Setup::new().server("alpha", &server).yaml(&yaml);
    let gateway = setup.start().await;
    let wanted = [
        "authorization",
        "content-type",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "Mcp-Param-Region",
        "mcp-param-x-y",
        "x-contraflow-headless",
    ];
    let preflight = Client::new(&gateway, "alpha")
        .with("origin", APP)
        .with("access-control-request-method", "POST")
        .with(
            "access-control-request-headers",
            &format!("{}, cookie, not a name", wanted.join(", ")),
        )
        .send(Method::OPTIONS, "")
        .await;
    assert_eq!(preflight.status, 204);
    let allowed = preflight.headers.get_all("access-control-allow-headers");
    let allowed: Vec<_> = allowed
        .iter()
        .flat_map(|names| names.to_str().unwrap().split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    for name in wanted {
        let name = name.to_ascii_lowercase();
        assert!(allowed.contains(&name), "{name} in {allowed:?}");
    }
    assert!(!allowed.iter().any(|name| name == "cookie"), "{allowed:?}");
}

/// What a page may read is said on the answers themselves, on those that refuse it too: else it can't learn where
/// to log in, or that its session is gone.
/// Reported in netdata/netdata#22258, kernel/kernel-mcp-server#128 and agentgateway/website#82.
#[tokio::test]
async fn a_web_page_can_read_why_it_was_refused() {
    let server = Server::start().await;
    let yaml = format!(
        "allowed_origins: [ \"{APP}\" ]\nauth: {{ api_keys: [ {{ name: ci, sha256: \"{}\", servers: [ beta ] }}, {{ name: all, sha256: \"{}\" }} ] }}",
        sha256("beta-0123456789abcdef"),
        sha256("all-0123456789abcdef")
    );
    let setup = Setup::new()
        .server("alpha", &server)
        .server("beta", &server);
    let gateway = setup.yaml(&yaml).start().await;
    let page = Client::new(&gateway, "alpha").with("origin", APP);
    let known = page.bearer("all-0123456789abcdef");
    let nowhere = Client::new(&gateway, "nowhere").with("origin", APP);
    for (client, status) in [
        (known.clone(), 200),
        (page.clone(), 401),
        (page.bearer("beta-0123456789abcdef"), 403),
        (nowhere, 404),
        (known.with("content-type", "text/plain"), 415),
    ] {
        let reply = client.post(initialize("2025-11-25", NOTHING)).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("access-control-allow-origin"), APP, "{status}");
        let exposed = reply.header("access-control-expose-headers");
        for name in ["mcp-session-id", "www-authenticate", "mcp-protocol-version"] {
            assert!(exposed.contains(name), "{status}: {exposed}");
        }
    }
    let gone = known.with("mcp-session-id", "x");
    let reply = gone.post(json::call("1", "echo", "{}")).await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.header("access-control-allow-origin"), APP);
}

/// A server that wants its slash, and says so by 307 or 308, gets the same request there, credentials and all; one
/// that says 301 or 302 would get another one.
/// Reported in BerriAI/litellm#34845, sigbit/mcp-auth-proxy#115 and agentic-community/mcp-gateway-registry#1606.
#[tokio::test]
async fn a_redirect_to_the_same_server_is_followed_whole() {
    let server = Server::start().await;
    let more = "{ headers: { x-inner: inner-credential } }";
    let gateway = Setup::new()
        .server_with("alpha", &server, more)
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    for status in [301, 302, 307, 308] {
        let call = session.start(json::call("\"mine\"", "move", r#"{"x":1}"#));
        let first = server.called("move").await;
        let sent = first.seen.clone();
        let mut moved = response(status, "", String::new());
        moved
            .headers_mut()
            .insert("location", "/mcp/".parse().unwrap());
        first.respond_with(moved);
        if status < 307 {
            let error = call.await.unwrap().json().await;
            assert_eq!(error["error"]["data"]["source"], "gateway", "{error}");
            continue;
        }
        let second = server.called("move").await;
        assert_eq!(second.seen.text(), sent.text());
        assert_eq!(second.seen.header("x-inner"), "inner-credential");
        assert_eq!(second.seen.session(), sent.session());
        second.result(&json::text_result("moved"));
        let mut reply = call.await.unwrap();
        assert_eq!(reply.status, 200);
        assert_eq!(json::text_of(&reply.next().await), "moved");
    }
    session.works().await;
}

/// A batch does not get past policy by what stands before it.
/// Reported in stacklok/toolhive#5931, NVIDIA/OpenShell#2082 and luckyPipewrench/pipelock#335.
#[tokio::test]
async fn a_batch_behind_a_byte_order_mark_is_refused() {
    let (server, gateway, session) = triple().await;
    let before = server.posts();
    let batch = format!("[{}]", json::call("1", "echo", "{}"));
    for lead in ["\u{feff}", "\u{feff}\n ", " \u{feff}", "\u{a0}", "\0"] {
        let mut reply = session.post(format!("{lead}{batch}")).await;
        assert_eq!(reply.status, 400, "{lead:?}");
        let error = reply.json().await;
        assert_eq!(error["id"], serde_json::Value::Null, "{error}");
    }
    assert_eq!(server.posts(), before);
    gateway
        .audited_times("the refusals", 5, |line| line["type"] == "refused")
        .await;
    session.works().await;
}
