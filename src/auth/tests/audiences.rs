//! Which audience opens which server.

use jsonwebtoken::Algorithm;
use serde_json::json;

use super::support::*;
use crate::auth::audience::{Audiences, canonical};
use crate::config::{Access, Issuer, KeySource};

fn opens(configured: &[&str], server_name: &str, claimed: &str) -> bool {
    let issuer = Issuer {
        issuer: "https://idp.example.test".to_owned(),
        keys: KeySource::Discovery,
        audiences: configured
            .iter()
            .map(|audience| (*audience).to_owned())
            .collect(),
    };
    Audiences::of(&issuer, &config(Access::Local), &server(server_name))
        .admit(&[canonical(claimed)])
}

#[test]
fn a_server_is_opened_by_its_own_endpoint_unless_something_is_configured() {
    for name in ["a", "b", "c"] {
        for other in ["a", "b", "c"] {
            let claimed = format!("{PUBLIC_URL}/mcp/{other}");
            assert_eq!(
                opens(&[], name, &claimed),
                name == other,
                "{claimed} at {name}"
            );
        }
        assert!(
            !opens(&[], name, PUBLIC_URL),
            "the origin alone is no server"
        );
        assert!(!opens(&[], name, ""));
    }
}

#[test]
fn a_configured_endpoint_opens_its_server_and_anything_else_opens_all() {
    let configured = [AUD_A, "api://gateway"];
    assert!(opens(&configured, "a", AUD_A));
    assert!(!opens(&configured, "b", AUD_A));
    for name in ["a", "b", "c"] {
        assert!(opens(&configured, name, "api://gateway"));
    }
    // What is configured replaces the default.
    assert!(!opens(&configured, "b", "https://gw.example.test/mcp/b"));
    assert!(!opens(&["api://gateway"], "a", AUD_A));
}

#[test]
fn only_the_slash_of_a_root_and_the_case_of_the_host_are_forgiven() {
    let root = [PUBLIC_URL];
    for same in [
        PUBLIC_URL,
        "https://gw.example.test/",
        "HTTPS://GW.example.test",
    ] {
        assert!(opens(&root, "a", same), "{same}");
        assert!(opens(&[same], "a", PUBLIC_URL), "{same} configured");
    }
    for other in [
        "https://gw.example.test.evil",
        "https://gw.example.test/other",
        "http://gw.example.test",
        "https://gw.example.test:443",
        "https://gw.example.test//",
        "https://gw.example.test/?x",
        "https://user@gw.example.test",
        "https://gw.example.test/%2e",
        " https://gw.example.test",
        "gw.example.test",
    ] {
        assert!(!opens(&root, "a", other), "{other}");
    }
    assert!(opens(&[], "a", "HTTPS://gw.EXAMPLE.test/mcp/a"));
    for other in [
        "/mcp/a/",
        "/mcp/A",
        "/mcp/a/..",
        "/mcp/a?",
        "/mcp/a#",
        "/mcp//a",
    ] {
        assert!(!opens(&[], "a", &format!("{PUBLIC_URL}{other}")), "{other}");
    }
    assert!(
        !opens(&["https://User@h"], "a", "https://user@h"),
        "names before a host have case"
    );
    assert!(
        !opens(&["api://Gateway"], "a", "api://gateway"),
        "other schemes have case"
    );
}

#[tokio::test]
async fn a_token_remembered_at_one_server_does_not_open_another() {
    let key = SigningKey::ec("k1", Algorithm::ES256);
    let (door, idp) = Door::trusting(&[&key]).await;
    let token = key.token(&idp.url, &json!({}));
    for _ in 0..2 {
        assert!(door.bearer_at("a", &token, now()).await.is_ok());
        let denied = door.bearer_at("b", &token, now()).await.unwrap_err();
        assert_eq!(denied.reason(), "wrong_audience");
        assert_eq!(denied.status(), 401);
    }
}
