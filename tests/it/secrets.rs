//! Secrets appear nowhere: canaries in everything that is confidential, and a search for them through
//! all that the process ever wrote, at the most talkative log level.

use crate::support::token::{ISSUER, Key, PUBLIC, claims_with, sha256};
use crate::support::{Client, EVERYTHING, Gateway, Server, Session, Setup, json};

/// Good weather and bad: a whole life of sessions, with every kind of failure on the way.
#[tokio::test]
async fn canaries_in_no_output() {
    let server = Server::start().await;
    let key = Key::new("k1");
    let setup = Setup::new()
        .server_with(
            "alpha",
            &server,
            "{ headers: { x-inner: \"${INNER_KEY}\" } }",
        )
        .server_at("down", "http://127.0.0.1:9/mcp?k=canary-url", "{}")
        .env("INNER_KEY", "canary-upstream-header")
        .env("CONTRAFLOW_LOG", "trace");
    let jwks = Key::write(&[&key], setup.folder());
    let yaml = format!(
        "public_url: {PUBLIC}\ntimeouts: {{ question: 500ms, call: 5s }}\nauth:\n  issuers: [ {{ issuer: \"{ISSUER}\", jwks_file: \"{}\" }} ]\n  api_keys: [ {{ name: ci, sha256: \"{}\" }} ]",
        jwks.display(),
        sha256("canary-api-key-0123456789")
    );
    let mut gateway = setup.yaml(&yaml).start().await;
    let token = key.sign(
        &key.header(),
        &claims_with("mira", &serde_json::json!({ "canary": "canary-claim" })),
    );
    let client = Client::new(&gateway, "alpha");

    let session = good_weather(&server, &client.bearer(&token)).await;
    bad_weather(&server, &gateway, &session, &token).await;
    session.delete().await;
    gateway.terminate().await;
    gateway.exit().await;

    let audit = std::fs::read_to_string(gateway.audit_file()).unwrap();
    assert!(
        audit.contains("question.answered"),
        "the log is there: {audit}"
    );
    let output = gateway.output();
    for (name, text) in [("the audit log", &audit), ("the output", &output)] {
        for line in text.lines() {
            assert!(!line.contains("canary"), "in {name}: {line}");
            assert!(
                !line.contains(&token[token.len() - 40..]),
                "a token in {name}: {line}"
            );
            assert!(
                !line.contains(&session.id),
                "a session id in {name}: {line}"
            );
            assert!(
                !line.contains("upstream-0-"),
                "the server's session id in {name}: {line}"
            );
        }
    }
    // What made it to clients is checked where they read it; here only that nothing was echoed.
    assert!(
        server
            .seen()
            .iter()
            .any(|seen| seen.header("x-inner") == "canary-upstream-header")
    );
}

/// A question that is answered twice, one that nobody answers, a log line, garbage, a result.
async fn good_weather(server: &Server, client: &Client) -> Session {
    let session = client.open(EVERYTHING).await;
    let call = session.start(json::call("1", "ask", r#"{"pin":"canary-argument"}"#));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    stream
        .send(&json::request(
            "1",
            "elicitation/create",
            &json::form("canary-question"),
        ))
        .await;
    let question = reply.question("elicitation/create").await;
    let answer = r#"{"action":"accept","content":{"nick":"canary-answer"}}"#;
    session.answer(&question, answer).await;
    session.answer(&question, answer).await;
    server.answer_to("1").await;
    stream
        .send(&json::request(
            "2",
            "elicitation/create",
            &json::form("canary-question"),
        ))
        .await;
    server.cancelled("2").await;
    stream.send("canary-garbage").await;
    stream
        .send(&json::notice(
            "notifications/message",
            r#"{"data":"canary-log"}"#,
        ))
        .await;
    stream.result(&json::text_result("canary-result")).await;
    while reply.maybe_next().await.is_some() {}
    session
}

/// Everything that can go wrong, with a secret in it.
async fn bad_weather(server: &Server, gateway: &Gateway, session: &Session, token: &str) {
    let client = Client::new(gateway, "alpha");
    let failing = session.start(json::call("2", "fail", r#"{"pin":"canary-argument"}"#));
    server
        .called("fail")
        .await
        .respond(500, "text/html", "canary-page");
    failing.await.unwrap().next().await;
    let failing = session.start(json::call("3", "fail", "{}"));
    server
        .called("fail")
        .await
        .respond(200, "application/json", "{canary-page");
    failing.await.unwrap().next().await;

    for body in [
        "{\"canary-broken\":",
        "[{\"canary-broken\":1}]",
        "{\"canary-broken\":1}",
    ] {
        session.post(body).await;
    }
    session
        .client
        .bearer(&format!("{token}canary-bad-token"))
        .post("{}")
        .await;
    client.bearer("canary-wrong-key").post("{}").await;
    client
        .bearer("canary-api-key-0123456789")
        .open(EVERYTHING)
        .await
        .works()
        .await;
    let down = Client::new(gateway, "down").bearer("canary-api-key-0123456789");
    let body = crate::support::client::initialize("2025-11-25", "{\"canary-capability\":{}}");
    down.post(body).await;
    Client::at(&format!("{}/mcp/alpha?token=canary-query", gateway.url))
        .post("{}")
        .await;
}
