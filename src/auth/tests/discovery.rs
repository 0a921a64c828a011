//! How an issuer's keys are found.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use url::Url;

use super::support::*;
use crate::auth::source::metadata_urls;
use crate::config::{Issuer, KeySource};

#[test]
fn metadata_is_looked_for_where_the_standards_say_in_their_order() {
    let urls = |issuer: &str| -> Vec<String> {
        metadata_urls(&Url::parse(issuer).unwrap())
            .iter()
            .map(Url::to_string)
            .collect()
    };
    for root in ["https://idp.test", "https://idp.test/"] {
        assert_eq!(
            urls(root),
            [
                "https://idp.test/.well-known/oauth-authorization-server",
                "https://idp.test/.well-known/openid-configuration",
            ]
        );
    }
    for tenant in ["https://idp.test/t/1", "https://idp.test/t/1/"] {
        assert_eq!(
            urls(tenant),
            [
                "https://idp.test/.well-known/oauth-authorization-server/t/1",
                "https://idp.test/.well-known/openid-configuration/t/1",
                "https://idp.test/t/1/.well-known/openid-configuration",
            ]
        );
    }
}

/// Whether an issuer at `path` whose metadata is served at `at` becomes ready.
async fn is_found(path: &str, at: &str, change: impl Fn(&Idp, &mut Value)) -> bool {
    let key = SigningKey::ec("k1", Algorithm::ES256);
    let idp = Idp::start(Answer::Json(set(&[&key]))).await;
    let name = format!("{}{path}", idp.url);
    let mut document = json!({"issuer": name, "jwks_uri": idp.jwks_url(), "other": [1, 2]});
    change(&idp, &mut document);
    idp.serve_metadata(at, document);
    let issuer = Issuer {
        issuer: name.clone(),
        keys: KeySource::Discovery,
        audiences: Vec::new(),
    };
    let door = Door::open(&config(required(vec![issuer], Vec::new())));
    // The first fetch ends before a token of this issuer is answered.
    let reason = door.reason(&key.token(&name, &json!({}))).await;
    assert_eq!(door.is_ready(&name), reason.is_empty(), "{reason}");
    reason.is_empty()
}

#[tokio::test]
async fn every_variant_of_discovery_works() {
    for (path, at) in [
        ("", "/.well-known/oauth-authorization-server"),
        ("", "/.well-known/openid-configuration"),
        ("/", "/.well-known/openid-configuration"),
        ("/tenant", "/.well-known/oauth-authorization-server/tenant"),
        ("/tenant", "/.well-known/openid-configuration/tenant"),
        ("/tenant", "/tenant/.well-known/openid-configuration"),
        ("/tenant/", "/tenant/.well-known/openid-configuration"),
    ] {
        assert!(is_found(path, at, |_, _| {}).await, "{path:?} at {at}");
    }
}

#[tokio::test]
async fn metadata_that_can_not_be_trusted_is_not_followed() {
    // Another origin without TLS could be anything in the gateway's network.
    let other = Idp::start(Answer::Json(json!({"keys": []}))).await;
    let not_found = async |member: &str, value: &dyn Fn(&Idp) -> Value| {
        let at = "/.well-known/oauth-authorization-server";
        let found = is_found("", at, |idp, document| document[member] = value(idp)).await;
        assert!(!found, "{member}");
    };
    not_found("issuer", &|idp| json!(format!("{}/", idp.url))).await;
    not_found("issuer", &|_| json!("https://other.test")).await;
    not_found("jwks_uri", &|_| json!(other.jwks_url())).await;
    not_found("jwks_uri", &|_| json!("file:///etc/passwd")).await;
    not_found("jwks_uri", &|_| json!(7)).await;
    let with_user = |idp: &Idp| json!(idp.jwks_url().replace("http://", "http://user:secret@"));
    not_found("jwks_uri", &with_user).await;
    assert_eq!(other.jwks_fetches(), 0);
}
