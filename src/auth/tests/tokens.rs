//! Which tokens are access tokens.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::support::*;

/// One row: what it is, the token, and why it is refused (empty: it is not).
type Row = (&'static str, String, &'static str);

async fn check(door: &Door, rows: Vec<Row>) {
    let mut wrong = Vec::new();
    for (name, token, expected) in rows {
        let reason = door.reason(&token).await;
        if reason != expected {
            wrong.push(format!("{name}: {reason:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn changed(mut value: Value, name: &str, to: Value) -> Value {
    value[name] = to;
    value
}

fn without(mut value: Value, name: &str) -> Value {
    value.as_object_mut().unwrap().remove(name);
    value
}

#[tokio::test]
async fn a_good_token_names_issuer_subject_client_and_expiry() {
    let key = SigningKey::rsa("k1", Algorithm::RS256);
    let (door, idp) = Door::trusting(&[&key]).await;
    let identity = door.bearer(&key.token(&idp.url, &json!({}))).await.unwrap();
    assert_eq!(identity.principal.issuer(), idp.url);
    assert_eq!(identity.principal.subject(), "alice");
    assert_eq!(identity.principal.client(), Some("cli"));
    assert_eq!(
        identity.expires,
        Some(at(NOW + 300 + 30)),
        "the leeway is part of the life"
    );
}

#[tokio::test]
async fn every_allowed_algorithm_works_and_keys_are_pinned_to_theirs() {
    let rsa = [
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
    ]
    .map(|algorithm| SigningKey::rsa(&format!("{algorithm:?}"), algorithm));
    let ec = [Algorithm::ES256, Algorithm::ES384]
        .map(|algorithm| SigningKey::ec(&format!("{algorithm:?}"), algorithm));
    let ed = SigningKey::ed25519("EdDSA");
    let keys: Vec<&SigningKey> = rsa.iter().chain(&ec).chain([&ed]).collect();
    let (door, idp) = Door::trusting(&keys).await;
    for key in &keys {
        assert_eq!(
            door.reason(&key.token(&idp.url, &json!({}))).await,
            "",
            "{}",
            key.id
        );
    }
    let named = |key: &SigningKey, alg: &str| {
        key.sign(
            &changed(key.header(), "alg", json!(alg)),
            &claims(&idp.url, &json!({})),
        )
    };
    let claims = claims(&idp.url, &json!({}));
    let pinned = SigningKey {
        id: "RS256".into(),
        ..rsa[3].clone()
    };
    check(
        &door,
        vec![
            (
                "Ed25519 is EdDSA by its newer name",
                named(&ed, "Ed25519"),
                "",
            ),
            (
                "PS256 with a key published for RS256",
                pinned.sign(&pinned.header(), &claims),
                { "algorithm_not_allowed" },
            ),
            (
                "ES256 named, signed with an RSA key",
                named(&rsa[0], "ES256"),
                "algorithm_not_allowed",
            ),
            ("ES512", named(&rsa[0], "ES512"), "algorithm_not_allowed"),
            (
                "an algorithm nobody knows",
                named(&rsa[0], "XS256"),
                "algorithm_not_allowed",
            ),
        ],
    )
    .await;
}

/// The tokens that the `jsonwebtoken` crate refuses as well, and those that it leaves to us.
#[tokio::test]
async fn hostile_tokens_are_refused() {
    let (key, evil) = (
        SigningKey::rsa("k1", Algorithm::RS256),
        SigningKey::other_rsa("evil"),
    );
    let (door, idp) = Door::trusting(&[&key]).await;
    let with = |changes: Value| key.token(&idp.url, &changes);
    let header = |name: &str, value: Value| {
        key.sign(
            &changed(key.header(), name, value),
            &claims(&idp.url, &json!({})),
        )
    };
    let good = with(json!({}));
    let payload = claims(&idp.url, &json!({})).to_string();
    let closed = payload.strip_suffix('}').unwrap();
    let text = |payload: &str| key.sign_text(&key.header().to_string(), payload);
    let parts: Vec<&str> = good.split('.').collect();
    let unsigned = |alg: &str| {
        let header = json!({"alg": alg, "typ": "at+jwt", "kid": "k1"}).to_string();
        format!("{}.{}.", encode(&header), parts[1])
    };
    let foreign = SigningKey {
        id: "k1".to_owned(),
        ..evil.clone()
    };
    let evil_header = |name: &str, value: Value| {
        evil.sign(
            &changed(evil.header(), name, value),
            &claims(&idp.url, &json!({})),
        )
    };
    let hmac = jsonwebtoken::EncodingKey::from_secret(key.jwk()["n"].as_str().unwrap().as_bytes());
    let hmac = SigningKey {
        algorithm: Algorithm::HS256,
        private: hmac.unwrap(),
        ..key.clone()
    };
    let issuer = idp.url.as_str();
    check(
        &door,
        vec![
            ("good", good.clone(), ""),
            ("alg none", unsigned("none"), "algorithm_not_allowed"),
            ("alg nOnE", unsigned("nOnE"), "algorithm_not_allowed"),
            (
                "HMAC with the public key",
                hmac.token(issuer, &json!({})),
                "algorithm_not_allowed",
            ),
            (
                "expired an hour ago",
                with(json!({"exp": NOW - 3600})),
                "token_expired",
            ),
            (
                "expired beyond the leeway",
                with(json!({"exp": NOW - 30})),
                "token_expired",
            ),
            (
                "expired within the leeway",
                with(json!({"exp": NOW - 29})),
                "",
            ),
            (
                "not before a time beyond the leeway",
                with(json!({"nbf": NOW + 31})),
                { "token_not_yet_valid" },
            ),
            (
                "not before a time within the leeway",
                with(json!({"nbf": NOW + 30})),
                "",
            ),
            (
                "issued tomorrow",
                with(json!({"iat": NOW + 86_400})),
                "token_issued_in_future",
            ),
            (
                "issued within the leeway",
                with(json!({"iat": NOW + 30})),
                "",
            ),
            (
                "other audience",
                with(json!({"aud": "https://other.example.test"})),
                "wrong_audience",
            ),
            ("no audience", with(json!({"aud": null})), "missing_claim"),
            (
                "empty list of audiences",
                with(json!({"aud": []})),
                "wrong_audience",
            ),
            (
                "audience among others",
                with(json!({"aud": ["https://o.example.test", AUD_A]})),
                "",
            ),
            (
                "several others",
                with(json!({"aud": ["x", "y"]})),
                "wrong_audience",
            ),
            (
                "audience is a number",
                with(json!({"aud": 7})),
                "malformed_claim",
            ),
            (
                "audience with something behind",
                with(json!({"aud": format!("{AUD_A}x")})),
                { "wrong_audience" },
            ),
            ("no expiry", with(json!({"exp": null})), "missing_claim"),
            (
                "expiry as text",
                with(json!({"exp": "1800000300"})),
                "malformed_claim",
            ),
            (
                "negative expiry",
                with(json!({"exp": -1})),
                "malformed_claim",
            ),
            (
                "fractional expiry",
                with(json!({"exp": 1_800_000_300.5})),
                "",
            ),
            (
                "expiry in a million years",
                with(json!({"exp": u64::MAX})),
                "",
            ),
            ("no subject", with(json!({"sub": null})), "missing_claim"),
            ("empty subject", with(json!({"sub": ""})), "malformed_claim"),
            (
                "subject is a number",
                with(json!({"sub": 42})),
                "malformed_claim",
            ),
            (
                "subject with a line break",
                with(json!({"sub": "alice\r\nx-admin: 1"})),
                { "malformed_claim" },
            ),
            (
                "subject with an escape",
                with(json!({"sub": "alice\u{1b}[2J"})),
                "malformed_claim",
            ),
            (
                "subject written backwards",
                with(json!({"sub": "a\u{202e}b"})),
                "malformed_claim",
            ),
            (
                "subject of 255 bytes",
                with(json!({"sub": "a".repeat(255)})),
                "",
            ),
            (
                "subject of 256 bytes",
                with(json!({"sub": "a".repeat(256)})),
                "malformed_claim",
            ),
            (
                "client with a line break",
                with(json!({"client_id": "a\nb"})),
                "malformed_claim",
            ),
            (
                "other issuer",
                with(json!({"iss": "https://evil.example.test"})),
                "unknown_issuer",
            ),
            (
                "issuer with a slash",
                with(json!({"iss": format!("{issuer}/")})),
                "unknown_issuer",
            ),
            (
                "issuer in a list",
                with(json!({"iss": [issuer]})),
                "malformed_claim",
            ),
            ("no issuer", with(json!({"iss": null})), "missing_claim"),
            (
                "no key id",
                key.sign(&without(key.header(), "kid"), &claims(issuer, &json!({}))),
                "",
            ),
            (
                "key id of nobody",
                header("kid", json!("deadbeef")),
                "unknown_signing_key",
            ),
            (
                "key id as a path",
                header("kid", json!("../../../dev/null")),
                "unknown_signing_key",
            ),
            (
                "key id as SQL",
                header("kid", json!("x' UNION SELECT 'k")),
                "unknown_signing_key",
            ),
            (
                "key id is a number",
                header("kid", json!(1)),
                "malformed_token",
            ),
            (
                "key of somebody else under a known id",
                foreign.token(issuer, &json!({})),
                { "bad_signature" },
            ),
            (
                "jku",
                evil_header("jku", json!(format!("{issuer}/evil"))),
                "unknown_signing_key",
            ),
            (
                "x5u",
                evil_header("x5u", json!(format!("{issuer}/evil"))),
                "unknown_signing_key",
            ),
            (
                "embedded key",
                evil_header("jwk", evil.jwk()),
                "unknown_signing_key",
            ),
            (
                "critical extension",
                header("crit", json!(["x-unknown"])),
                "critical_header",
            ),
            (
                "payload that is not Base64",
                header("b64", json!(false)),
                "critical_header",
            ),
            (
                "claim twice",
                text(&format!(r#"{closed},"sub":"carol"}}"#)),
                "malformed_claim",
            ),
            (
                "claim twice, once in disguise",
                text(&format!("{closed},\"\\u0073ub\":\"carol\"}}")),
                { "malformed_claim" },
            ),
            (
                "tampered",
                {
                    let changed = claims(issuer, &json!({"sub": "carol"})).to_string();
                    format!("{}.{}.{}", parts[0], encode(&changed), parts[2])
                },
                "bad_signature",
            ),
            (
                "signature of zeros",
                format!("{}.{}.{}", parts[0], parts[1], encode(&"\0".repeat(256))),
                { "bad_signature" },
            ),
            (
                "no signature",
                format!("{}.{}.", parts[0], parts[1]),
                "bad_signature",
            ),
            (
                "large",
                with(json!({"pad": "A".repeat(16 * 1024)})),
                "token_too_large",
            ),
            (
                "nested 17 deep",
                text(&format!(
                    "{closed},\"x\":{}{}}}",
                    "[".repeat(16),
                    "]".repeat(16)
                )),
                { "malformed_claim" },
            ),
            (
                "nested 16 deep",
                text(&format!(
                    "{closed},\"x\":{}{}}}",
                    "[".repeat(15),
                    "]".repeat(15)
                )),
                { "" },
            ),
            (
                "brackets in text are no nesting",
                with(json!({"x": "[\"{".repeat(40)})),
                "",
            ),
            ("not JSON", text("alice"), "malformed_claim"),
            (
                "no Base64",
                format!("{}.%%%.{}", parts[0], parts[2]),
                "malformed_token",
            ),
            ("a JWE", "a.b.c.d.e".to_owned(), "unknown_api_key"),
            ("two dots missing", good.replace('.', ""), "unknown_api_key"),
            (
                "nothing between the dots",
                "..".to_owned(),
                "malformed_token",
            ),
        ],
    )
    .await;
    assert!(
        idp.jwks_fetches() <= 2,
        "no key is fetched from where a token says"
    );
}

#[tokio::test]
async fn other_tokens_of_the_same_issuer_are_no_access_tokens() {
    let key = SigningKey::ec("k1", Algorithm::ES256);
    let (door, idp) = Door::trusting(&[&key]).await;
    let token = |typ: Option<&str>, extra: Value| {
        let mut header = without(key.header(), "typ");
        if let Some(typ) = typ {
            header["typ"] = json!(typ);
        }
        key.sign(&header, &claims(&idp.url, &extra))
    };
    let logout = json!({"events": {"http://schemas.openid.net/event/backchannel-logout": {}}});
    check(
        &door,
        vec![
            ("at+jwt", token(Some("at+jwt"), json!({})), ""),
            (
                "its long form, in capitals",
                token(Some("APPLICATION/AT+JWT"), json!({})),
                "",
            ),
            ("JWT", token(Some("JWT"), json!({})), ""),
            ("no type", token(None, json!({})), ""),
            (
                "ID token: nonce",
                token(Some("JWT"), json!({"nonce": "n"})),
                "wrong_token_type",
            ),
            (
                "ID token: at_hash",
                token(None, json!({"at_hash": "x"})),
                "wrong_token_type",
            ),
            (
                "ID token: c_hash",
                token(None, json!({"c_hash": "x"})),
                "wrong_token_type",
            ),
            (
                "ID token of Keycloak",
                token(None, json!({"typ": "ID"})),
                "wrong_token_type",
            ),
            (
                "access token of Keycloak",
                token(Some("JWT"), json!({"typ": "Bearer"})),
                "",
            ),
            (
                "refresh token of Keycloak",
                token(Some("JWT"), json!({"typ": "Refresh"})),
                { "wrong_token_type" },
            ),
            (
                "ID token of Cognito",
                token(None, json!({"token_use": "id"})),
                "wrong_token_type",
            ),
            (
                "access token of Cognito",
                token(None, json!({"token_use": "access"})),
                "",
            ),
            (
                "logout token",
                token(Some("logout+jwt"), json!({})),
                "wrong_token_type",
            ),
            (
                "logout token by its shape",
                token(Some("JWT"), logout.clone()),
                "wrong_token_type",
            ),
            (
                "logout token that says it is none",
                token(Some("at+jwt"), logout),
                "wrong_token_type",
            ),
            (
                "ID-JAG",
                token(Some("oauth-id-jag+jwt"), json!({})),
                "wrong_token_type",
            ),
            (
                "DPoP proof",
                token(Some("dpop+jwt"), json!({})),
                "wrong_token_type",
            ),
            (
                "token introspection",
                token(Some("token-introspection+jwt"), json!({})),
                { "wrong_token_type" },
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_token_without_key_id_is_tried_with_four_keys_of_its_algorithm() {
    let keys: Vec<SigningKey> = (0..6)
        .map(|n| SigningKey::ec(&format!("k{n}"), Algorithm::ES256))
        .collect();
    let rsa = SigningKey::rsa("r", Algorithm::RS256);
    // Keys of other algorithms don't count.
    let published: Vec<&SigningKey> = [&rsa, &rsa, &rsa, &rsa].into_iter().chain(&keys).collect();
    let (door, idp) = Door::trusting(&published).await;
    for (n, key) in keys.iter().enumerate() {
        let token = key.sign(&without(key.header(), "kid"), &claims(&idp.url, &json!({})));
        let expected = if n < 4 { "" } else { "unknown_signing_key" };
        assert_eq!(door.reason(&token).await, expected, "key {n}");
    }
}

#[tokio::test]
async fn a_remembered_token_still_expires() {
    let key = SigningKey::ec("k1", Algorithm::ES256);
    let (door, idp) = Door::trusting(&[&key]).await;
    let token = key.token(&idp.url, &json!({"exp": NOW + 10}));
    assert!(door.bearer_at("a", &token, now()).await.is_ok());
    assert!(door.bearer_at("a", &token, at(NOW + 39)).await.is_ok());
    let denied = door.bearer_at("a", &token, at(NOW + 40)).await.unwrap_err();
    assert_eq!(denied.reason(), "token_expired");
    assert_eq!(denied.status(), 401);
}
