//! Host and Origin: a web page that somebody visits can't reach a gateway on their machine, and a
//! public gateway answers to its own names.

use hyper::Method;

use crate::support::client::initialize;
use crate::support::{Client, Gateway, NOTHING, Server, Setup, pair};

/// On loopback: loopback names, with any port.
#[tokio::test]
async fn loopback_names_only() {
    let (server, gateway) = pair().await;
    let port = gateway.address().rsplit_once(':').unwrap().1;
    for good in ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"] {
        assert_eq!(
            status(&gateway, &[("host", &format!("{good}:{port}"))]).await,
            200,
            "{good}"
        );
        assert_eq!(status(&gateway, &[("host", good)]).await, 200, "{good}");
    }
    let before = server.posts();
    for bad in [
        "evil.example.test",
        "evil.example.test:80",
        "localhost.evil.example.test",
        "evil-localhost",
        "127.0.0.1.evil.example.test",
        "10.0.0.1",
        "localhost@evil.example.test",
    ] {
        let status = status(&gateway, &[("host", bad)]).await;
        assert!(matches!(status, 400 | 403 | 421), "{bad}: {status}");
    }
    assert_eq!(server.posts(), before);
}

/// C14: an Origin that is not allowed is 403, on every method and route; none is fine.
/// Reported in PrefectHQ/fastmcp#4468, smart-mcp-proxy/mcpproxy-go#898, modelcontextprotocol/python-sdk#1798.
#[tokio::test]
async fn origins() {
    let (server, gateway) = pair().await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let before = server.posts();
    for origin in [
        "https://evil.example.test",
        "null",
        "http://localhost.evil.example.test",
        "file://",
        "x",
    ] {
        let client = session.client.with("origin", origin);
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let reply = client.send(method.clone(), "{}").await;
            assert_eq!(reply.status, 403, "{method} {origin}");
            assert_eq!(reply.header("access-control-allow-origin"), "");
        }
    }
    assert_eq!(server.posts(), before);
    session.works().await;
}

/// C14: the names that are configured, with and without a port, and the public URL's own.
/// Reported in PrefectHQ/fastmcp#4468, smart-mcp-proxy/mcpproxy-go#898, modelcontextprotocol/python-sdk#1798.
#[tokio::test]
async fn configured_names() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("public_url: https://gw.example.test\nallowed_hosts: [ mcp.example.test ]\nallowed_origins: [ \"https://app.example.test\" ]")
        .start()
        .await;
    for good in [
        "mcp.example.test",
        "mcp.example.test:443",
        "MCP.example.test",
        "gw.example.test",
    ] {
        assert_eq!(status(&gateway, &[("host", good)]).await, 200, "{good}");
    }
    for bad in ["evil.mcp.example.test", "example.test"] {
        assert!(
            matches!(status(&gateway, &[("host", bad)]).await, 403 | 421),
            "{bad}"
        );
    }
    let forged = [
        ("host", "evil.example.test"),
        ("x-forwarded-host", "mcp.example.test"),
    ];
    assert!(matches!(status(&gateway, &forged).await, 403 | 421));
    let unread = [
        ("host", "mcp.example.test"),
        ("x-forwarded-host", "evil.example.test"),
    ];
    assert_eq!(status(&gateway, &unread).await, 200);
    assert_eq!(
        status(&gateway, &[("origin", "https://app.example.test")]).await,
        200
    );
    for bad in [
        "http://app.example.test",
        "https://app.example.test:8443",
        "https://app.example.test.evil",
    ] {
        assert_eq!(status(&gateway, &[("origin", bad)]).await, 403, "{bad}");
    }
}

/// C13: a page of an allowed origin can ask beforehand, read its session id, and find its login.
/// Reported in netdata/netdata#22258, modelcontextprotocol/typescript-sdk#764.
#[tokio::test]
async fn web_pages_of_allowed_origins() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("allowed_origins: [ \"https://app.example.test\" ]")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha").with("origin", "https://app.example.test");
    let wanted = "authorization,content-type,mcp-protocol-version,mcp-session-id,last-event-id";
    let preflight = client
        .with("access-control-request-method", "POST")
        .with("access-control-request-headers", wanted)
        .send(Method::OPTIONS, "")
        .await;
    assert!(preflight.status.is_success(), "{}", preflight.status);
    assert_eq!(
        preflight.header("access-control-allow-origin"),
        "https://app.example.test"
    );
    let allowed = preflight
        .header("access-control-allow-headers")
        .to_ascii_lowercase();
    for name in wanted.split(',') {
        assert!(allowed.contains(name), "{name} in {allowed}");
    }
    for method in ["POST", "GET", "DELETE"] {
        assert!(
            preflight
                .header("access-control-allow-methods")
                .contains(method)
        );
    }
    let reply = client.post(initialize("2025-11-25", NOTHING)).await;
    assert_eq!(
        reply.header("access-control-allow-origin"),
        "https://app.example.test"
    );
    let exposed = reply
        .header("access-control-expose-headers")
        .to_ascii_lowercase();
    for name in ["mcp-session-id", "www-authenticate"] {
        assert!(exposed.contains(name), "{name} in {exposed}");
    }
    let evil = client
        .with("origin", "https://evil.example.test")
        .send(Method::OPTIONS, "")
        .await;
    assert_eq!(evil.status, 403);
    assert_eq!(evil.header("access-control-allow-origin"), "");
}

async fn status(gateway: &Gateway, headers: &[(&str, &str)]) -> u16 {
    let mut client = Client::new(gateway, "alpha");
    for (name, value) in headers {
        client = client.with(name, value);
    }
    client
        .post(initialize("2025-11-25", NOTHING))
        .await
        .status
        .as_u16()
}
