//! RFC 9728 documents and their addresses.

use serde_json::{Value, json};

use super::support::*;
use crate::auth::metadata;
use crate::config::{Access, Issuer, KeySource, PublicUrl};

fn issuer(name: &str) -> Issuer {
    Issuer {
        issuer: name.to_owned(),
        keys: KeySource::Discovery,
        audiences: Vec::new(),
    }
}

#[test]
fn each_server_has_a_document_of_its_own() {
    let issuers = vec![
        issuer("https://one.example.test"),
        issuer("https://two.example.test/"),
    ];
    let config = config(required(issuers, Vec::new()));
    let document: Value =
        serde_json::from_str(&metadata::document(&config, &server("b")).unwrap()).unwrap();
    let expected = json!({
        "resource": "https://gw.example.test/mcp/b",
        "authorization_servers": ["https://one.example.test", "https://two.example.test/"],
        "bearer_methods_supported": ["header"],
        "resource_name": "b",
    });
    assert_eq!(document, expected);
}

#[test]
fn there_is_no_document_where_no_login_helps() {
    let document = |access| metadata::document(&config(access), &server("a"));
    assert_eq!(document(Access::Local), None);
    assert_eq!(document(Access::Open), None);
    assert_eq!(document(required(Vec::new(), Vec::new())), None);
    let guarded = config(required(
        vec![issuer("https://one.example.test")],
        Vec::new(),
    ));
    assert_eq!(metadata::document(&guarded, &server("unknown")), None);
}

#[test]
fn the_well_known_name_goes_between_host_and_path() {
    for (public_url, url) in [
        (
            "https://h",
            "https://h/.well-known/oauth-protected-resource/mcp/a",
        ),
        (
            "https://h/base",
            "https://h/.well-known/oauth-protected-resource/base/mcp/a",
        ),
        (
            "https://h/b/c",
            "https://h/.well-known/oauth-protected-resource/b/c/mcp/a",
        ),
        ("http://127.0.0.1:8080", {
            "http://127.0.0.1:8080/.well-known/oauth-protected-resource/mcp/a"
        }),
        (
            "http://[::1]:80/x",
            "http://[::1]:80/.well-known/oauth-protected-resource/x/mcp/a",
        ),
    ] {
        let public_url = PublicUrl(public_url.to_owned());
        assert_eq!(metadata::url(&public_url, &server("a")), url);
        assert!(url.ends_with(&metadata::path(&public_url, &server("a"))));
    }
}

#[tokio::test]
async fn a_public_url_can_not_break_out_of_a_challenge() {
    let mut config = config(required(
        vec![issuer("https://one.example.test")],
        Vec::new(),
    ));
    config.public_url = PublicUrl("https://h/\"x\\\r\n\u{e9}".to_owned());
    let denied = Door::open(&config)
        .ask("a", &headers(&[]))
        .await
        .unwrap_err();
    let challenge = denied.www_authenticate().unwrap().to_str().unwrap();
    assert_eq!(
        challenge,
        "Bearer resource_metadata=\"https://h/.well-known/oauth-protected-resource\
         /%22x%5C%0D%0A%C3%A9/mcp/a\""
    );
}
