//! Where credentials are looked for, API keys, and what a refusal looks like.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{SHA256, digest};
use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::support::*;
use crate::auth::{Denied, Principal};
use crate::config::{Access, ApiKey};

fn key(name: &str, secret: &str, servers: Option<&[&str]>) -> ApiKey {
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    let servers = servers.map(|names| {
        names
            .iter()
            .map(|name| server(name))
            .collect::<BTreeSet<_>>()
    });
    ApiKey {
        headless: false,
        name: name.to_owned(),
        sha256,
        servers,
    }
}

/// Headers by name and value.
type Sent<'a> = &'a [(&'static str, &'a str)];

fn door_with_keys() -> Door {
    let keys = vec![
        key("ci", "secret-ci", Some(&["a", "b"])),
        key("ops", "secret-ops", None),
    ];
    Door::open(&config(required(Vec::new(), keys)))
}

#[tokio::test]
async fn without_auth_everybody_is_local_and_with_open_nobody_in_particular() {
    let sent = headers(&[("authorization", "Bearer x"), ("authorization", "Basic y")]);
    let identity = Door::open(&config(Access::Local))
        .ask("a", &sent)
        .await
        .unwrap();
    assert_eq!(
        (identity.principal, identity.expires),
        (Principal::local(), None)
    );
    let identity = Door::open(&config(Access::Open))
        .ask("a", &sent)
        .await
        .unwrap();
    assert!(identity.principal.is_anonymous());
}

#[tokio::test]
async fn an_api_key_comes_in_either_header_and_opens_its_servers() {
    let door = door_with_keys();
    for sent in [
        headers(&[("authorization", "Bearer secret-ci")]),
        headers(&[("authorization", "bEARER   secret-ci")]),
        headers(&[("x-api-key", "secret-ci")]),
    ] {
        for name in ["a", "b"] {
            let identity = door.ask(name, &sent).await.unwrap();
            assert_eq!(identity.principal, Principal::api_key("ci"));
            assert_eq!(identity.expires, None);
        }
        let denied = door.ask("c", &sent).await.unwrap_err();
        assert_eq!(denied.status(), 403);
        assert_eq!(denied.reason(), "api_key_not_for_server");
        assert_eq!(denied.www_authenticate(), None, "a login would not help");
    }
    let everywhere = headers(&[("x-api-key", "secret-ops")]);
    assert_eq!(
        door.ask("c", &everywhere).await.unwrap().principal,
        Principal::api_key("ops")
    );
}

#[tokio::test]
async fn whatever_is_not_exactly_one_known_credential_is_refused() {
    let door = door_with_keys();
    let long = "k".repeat(16 * 1024 + 1);
    let rows: &[(Sent<'_>, u16, &str)] = &[
        (&[], 401, "no_credentials"),
        (&[("cookie", "token=secret-ci")], 401, "no_credentials"),
        (
            &[("authorization", "Basic secret-ci")],
            401,
            "unsupported_scheme",
        ),
        (&[("authorization", "secret-ci")], 401, "unsupported_scheme"),
        (
            &[("authorization", "Bearersecret-ci")],
            401,
            "unsupported_scheme",
        ),
        (&[("authorization", "Bearer")], 401, "malformed_credentials"),
        (
            &[("authorization", "Bearer ")],
            401,
            "malformed_credentials",
        ),
        (
            &[("authorization", "Bearer secret-ci secret-ci")],
            401,
            "malformed_credentials",
        ),
        (
            &[("authorization", "Bearer secret-ci, Bearer x")],
            401,
            "malformed_credentials",
        ),
        (
            &[("authorization", "Bearer secret-c")],
            401,
            "unknown_api_key",
        ),
        (
            &[("authorization", "Bearer secret-ci2")],
            401,
            "unknown_api_key",
        ),
        (&[("x-api-key", "")], 401, "malformed_credentials"),
        (&[("x-api-key", "SECRET-CI")], 401, "unknown_api_key"),
        (&[("x-api-key", "Bearer secret-ci")], 401, "unknown_api_key"),
        (&[("x-api-key", &long)], 401, "token_too_large"),
        (
            &[("x-api-key", "secret-ci"), ("x-api-key", "secret-ci")],
            400,
            "several_credentials",
        ),
        (
            &[
                ("authorization", "Bearer secret-ci"),
                ("authorization", "Bearer secret-ci"),
            ],
            400,
            "several_credentials",
        ),
        (
            &[
                ("authorization", "Bearer secret-ci"),
                ("x-api-key", "secret-ci"),
            ],
            400,
            "several_credentials",
        ),
        (
            &[("authorization", "Basic x"), ("x-api-key", "secret-ci")],
            400,
            "several_credentials",
        ),
    ];
    for (sent, status, reason) in rows {
        let denied = door.ask("a", &headers(sent)).await.unwrap_err();
        assert_eq!(
            (denied.status().as_u16(), denied.reason()),
            (*status, *reason),
            "{sent:?}"
        );
    }
}

#[tokio::test]
async fn a_key_is_never_taken_for_a_token_nor_a_token_for_a_key() {
    let signing = SigningKey::ec("k1", Algorithm::ES256);
    let idp = Idp::start(Answer::Json(set(&[&signing]))).await;
    let token = signing.token(&idp.url, &json!({}));
    // The hash of a whole token is configured as a key: as a bearer it is a token all the same.
    let keys = vec![
        key("odd", &token, None),
        key("dots", "a.b.c", None),
        key("one", "a.b", None),
    ];
    let door = Door::open(&config(required(vec![idp.by_url()], keys)));
    door.until_ready(&idp.url).await;
    assert_eq!(
        door.bearer(&token).await.unwrap().principal.subject(),
        "alice"
    );
    assert_eq!(
        door.bearer_at("b", &token, now())
            .await
            .unwrap_err()
            .reason(),
        "wrong_audience"
    );
    assert_eq!(door.reason("a.b.c").await, "malformed_token");
    assert_eq!(
        door.bearer("a.b").await.unwrap().principal,
        Principal::api_key("one")
    );
}

fn body(denied: &Denied) -> Value {
    serde_json::from_str(&denied.body()).unwrap()
}

fn challenge(denied: &Denied) -> &str {
    denied.www_authenticate().unwrap().to_str().unwrap()
}

#[tokio::test]
async fn challenges_are_complete_and_say_no_more_than_a_client_needs() {
    let key = SigningKey::ec("k1", Algorithm::ES256);
    let (door, idp) = Door::trusting(&[&key]).await;
    let metadata =
        r#"resource_metadata="https://gw.example.test/.well-known/oauth-protected-resource/mcp/a""#;
    let without = door.ask("a", &headers(&[])).await.unwrap_err();
    assert_eq!(challenge(&without), format!("Bearer {metadata}"));
    assert_eq!(body(&without)["error"]["code"], -31008);
    assert_eq!(body(&without)["id"], Value::Null);
    assert_eq!(
        body(&without)["error"]["message"],
        "authentication is required: send Authorization: Bearer <token or key>"
    );
    assert_eq!(
        body(&without)["error"]["data"],
        json!({"source": "gateway", "reason": "no_credentials"})
    );

    let bad = |description: &str| {
        format!(r#"Bearer error="invalid_token", error_description="{description}", {metadata}"#)
    };
    let with = |changes| key.token(&idp.url, &changes);
    let invalid = ("the credential is not valid", "invalid_credentials");
    for (token, (description, reason)) in [
        (
            with(json!({"exp": 1})),
            ("the token has expired", "token_expired"),
        ),
        (
            with(json!({"aud": "x"})),
            ("the token was not issued for this server", "wrong_audience"),
        ),
        (with(json!({"sub": "a\"\r\nb"})), invalid),
        (with(json!({"iss": "https://evil.example.test"})), invalid),
        (with(json!({})) + "x", invalid),
    ] {
        let denied = door.bearer(&token).await.unwrap_err();
        assert_eq!(denied.status(), 401);
        assert_eq!(challenge(&denied), bad(description));
        assert_eq!(body(&denied)["error"]["message"], description);
        assert_eq!(body(&denied)["error"]["data"]["reason"], reason);
        assert_eq!(denied.retry_after(), None);
    }
    let twice = headers(&[("authorization", "Bearer x"), ("authorization", "Bearer x")]);
    let denied = door.ask("a", &twice).await.unwrap_err();
    assert!(challenge(&denied).starts_with(r#"Bearer error="invalid_request", "#));
}

#[tokio::test]
async fn with_api_keys_only_a_challenge_sends_nobody_to_a_login() {
    let denied = door_with_keys().ask("a", &headers(&[])).await.unwrap_err();
    assert_eq!(challenge(&denied), "Bearer");
    assert_eq!(denied.status(), 401);
}

#[tokio::test]
async fn nothing_of_a_credential_is_in_what_can_be_printed() {
    let door = door_with_keys();
    let denied = door
        .ask("a", &headers(&[("x-api-key", "canary-7f3a")]))
        .await
        .unwrap_err();
    let printed = format!(
        "{denied} {denied:?} {} {:?}",
        denied.body(),
        denied.www_authenticate()
    );
    assert!(!printed.contains("canary"), "{printed}");
}
