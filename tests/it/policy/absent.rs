//! Where nobody sits who could be asked: rules and hooks answer, or what the operator said; nothing hangs.

use std::fmt::Write as _;

use super::{Asking, CANCEL, DECLINE, ENTITY, gateway};
use crate::support::{Client, EVERYTHING, NOTHING, Server, Setup, json};

/// The `elicitation` that the server saw when the session began.
fn declared(it: &Asking) -> Option<String> {
    it.server.seen_method("initialize")[0].raw(&["params", "capabilities", "elicitation"])
}

/// Servers see what the client can do, and take their own way without questions.
#[tokio::test]
async fn by_default_servers_see_that_nobody_can_be_asked() {
    let it = Asking::of("{}", NOTHING).await;
    assert_eq!(declared(&it), None);
    it.elicit("7", ENTITY).await;
    assert_eq!(it.refused("7").await, (-32601, "undeclared".to_owned()));
    it.ends_quietly().await;
}

/// The operator answers for clients that can't be asked, so that servers do ask.
#[tokio::test]
async fn the_operator_answers_for_them() {
    for (policy, answer) in [
        ("{ when_client_cannot: decline }", DECLINE),
        ("{ when_client_cannot: cancel }", CANCEL),
        ("{ rules: [ { when: 'false', cancel: true } ] }", DECLINE),
    ] {
        let it = Asking::of(policy, NOTHING).await;
        assert!(declared(&it).is_some(), "{policy}");
        it.elicit("7", ENTITY).await;
        it.answered("7", answer).await;
        it.ends_quietly().await;
    }
}

/// A rule answers what it can, and the rest is declined.
#[tokio::test]
async fn a_rule_for_those_without_a_person() {
    let policy =
        r#"{ rules: [ { when: 'headless && "name" in fields', accept: { name: auto } } ] }"#;
    let it = Asking::of(policy, NOTHING).await;
    it.elicit("7", ENTITY).await;
    it.answered("7", r#"{"action":"accept","content":{"name":"auto"}}"#)
        .await;
    it.elicit("8", &json::form("?")).await;
    it.answered("8", DECLINE).await;
    it.ends_quietly().await;
}

/// A client that could ask says that nobody sits there.
#[tokio::test]
async fn a_client_says_that_it_is_alone() {
    let (server, gateway) = gateway("{}").await;
    let client = Client::new(&gateway, "memory").with("x-contraflow-headless", "1");
    let session = client.open(EVERYTHING).await;
    let it = Asking::by(server, gateway, session).await;
    assert_eq!(declared(&it), None);
    it.elicit("7", ENTITY).await;
    assert_eq!(it.refused("7").await, (-32601, "undeclared".to_owned()));
    it.ends_quietly().await;
}

/// The operator knows it of a key.
#[tokio::test]
async fn a_key_of_which_the_operator_says_it() {
    let server = Server::start().await;
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, b"key-of-ci");
    let mut sha256 = String::new();
    for byte in digest.as_ref() {
        write!(sha256, "{byte:02x}").unwrap();
    }
    let auth =
        format!("auth: {{ api_keys: [ {{ name: ci, sha256: \"{sha256}\", headless: true }} ] }}");
    let policy = "{ questions: { when_client_cannot: decline } }";
    let setup = Setup::new()
        .server_with("memory", &server, policy)
        .yaml(&auth);
    let gateway = setup.start().await;
    let client = Client::new(&gateway, "memory").bearer("key-of-ci");
    let session = client.open(EVERYTHING).await;
    let it = Asking::by(server, gateway, session).await;
    it.elicit("7", ENTITY).await;
    it.answered("7", DECLINE).await;
    it.ends_quietly().await;
}

/// What a client says of itself reaches the server at any version; what the operator adds, only where the
/// version has it.
#[tokio::test]
async fn older_versions_see_what_the_client_said() {
    let (server, gateway) = gateway("{ when_client_cannot: decline }").await;
    let client = Client::new(&gateway, "memory");
    let everything = client.open_at("2025-03-26", EVERYTHING).await;
    let nothing = client.open_at("2025-03-26", NOTHING).await;
    let newer = client.open_at("2025-06-18", NOTHING).await;
    let seen = server.seen_method("initialize");
    let declared = |at: usize| seen[at].raw(&["params", "capabilities"]).unwrap();
    assert_eq!(declared(0), EVERYTHING);
    assert_eq!(declared(1), NOTHING);
    assert_eq!(declared(2), r#"{"elicitation":{}}"#);
    for session in [everything, nothing, newer] {
        session.works().await;
    }
}
