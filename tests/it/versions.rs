//! Versions: what the client offers goes up, what the server chooses comes down, and each hop names
//! the version that was negotiated there.

use crate::support::client::initialize;
use crate::support::{Client, EVERYTHING, NOTHING, Server, Setup, json, pair, triple};

/// The client's version is offered upstream, the server's choice answered.
#[tokio::test]
async fn the_negotiation_is_relayed() {
    for (offered, chosen) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2025-11-25", "2025-03-26"),
        ("2025-11-25", "2025-06-18"),
        ("2025-03-26", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let server = Server::with(|habits| habits.version = Some(chosen)).await;
        let gateway = Setup::new().server("alpha", &server).start().await;
        let session = Client::new(&gateway, "alpha")
            .open_at(offered, EVERYTHING)
            .await;
        assert_eq!(session.version, chosen, "offered {offered}");
        let seen = server.seen_method("initialize").remove(0);
        let wanted = format!("\"{offered}\"");
        assert_eq!(seen.raw(&["params", "protocolVersion"]), Some(wanted));
        session.works().await;
    }
}

/// A client that offered a newer version than the server chose may still answer as that one has it: an
/// older server gets the one part that it can read.
#[tokio::test]
async fn what_a_model_said_to_an_older_server() {
    for (version, expected) in [
        ("2025-06-18", r#"{"type":"text","text":"a\nb"}"#),
        (
            "2025-11-25",
            r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#,
        ),
    ] {
        let said =
            |content: &str| format!(r#"{{"role":"assistant","content":{content},"model":"m"}}"#);
        let server = Server::with(|habits| habits.version = Some(version)).await;
        let gateway = Setup::new().server("alpha", &server).start().await;
        let session = Client::new(&gateway, "alpha")
            .open_at("2025-11-25", EVERYTHING)
            .await;
        let call = session.start(json::call("1", "ask", "{}"));
        let stream = server.called("ask").await.stream();
        let sampling = r#"{"messages":[],"maxTokens":9}"#;
        stream
            .send(&json::request("7", "sampling/createMessage", sampling))
            .await;
        let mut reply = call.await.unwrap();
        let question = reply.question("sampling/createMessage").await;
        let texts = r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#;
        assert_eq!(session.answer(&question, &said(texts)).await, 202);
        assert_eq!(
            server.answer_to("7").await,
            json::result("7", &said(expected)),
            "{version}"
        );
        stream.result("{}").await;
        reply.next().await;
    }
}

/// C24: the header names the version of that hop, to servers that check it; before 2025-06-18 there
/// was none.
/// Reported in agentgateway/agentgateway#2980, modelcontextprotocol/python-sdk#1746.
#[tokio::test]
async fn the_header_is_per_hop() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let server = Server::with(|habits| {
            habits.version = Some(version);
            habits.strict = true;
        })
        .await;
        let gateway = Setup::new().server("alpha", &server).start().await;
        let session = Client::new(&gateway, "alpha")
            .open_at("2025-11-25", EVERYTHING)
            .await;
        server.last_get_stream().await;
        session.works().await;
        assert!(session.delete().await.is_success());
        server.sees("DELETE", |seen| seen.http == "DELETE").await;
        for seen in server.seen().into_iter().filter(|seen| !seen.is_probe()) {
            if seen.method().as_deref() != Some("initialize") && version != "2025-03-26" {
                assert_eq!(
                    seen.header("mcp-protocol-version"),
                    version,
                    "{}",
                    seen.http
                );
            }
        }
    }
}

/// A header that contradicts the session is refused, whatever the method; without one the session
/// speaks for itself.
#[tokio::test]
async fn a_header_that_contradicts_the_session() {
    let (server, _gateway, session) = triple().await;
    let before = server.seen_method("tools/call").len();
    for version in ["2025-06-18", "2024-11-05", "2099-01-01", "nonsense"] {
        let client = session.client.with("mcp-protocol-version", version);
        let mut reply = client.post(json::call("1", "echo", "{}")).await;
        assert_eq!(reply.status, 400, "{version}");
        assert!(reply.json().await["error"]["code"].is_i64());
        assert_eq!(client.get().await.status, 400, "{version}");
        assert_eq!(
            client.send(hyper::Method::DELETE, "").await.status,
            400,
            "{version}"
        );
    }
    assert_eq!(server.seen_method("tools/call").len(), before);
    let silent = session.client.with("mcp-protocol-version", "");
    let mut reply = silent.post(json::call("1", "echo", r#"{"x":1}"#)).await;
    assert_eq!(json::text_of(&reply.next().await), "1");
    session.works().await;
}

/// Some clients name the version that they are about to offer with `initialize` already.
#[tokio::test]
async fn a_header_on_initialize() {
    let (_server, gateway) = pair().await;
    let client = Client::new(&gateway, "alpha").with("mcp-protocol-version", "2025-11-25");
    assert_eq!(
        client.post(initialize("2025-11-25", NOTHING)).await.status,
        200
    );
}
