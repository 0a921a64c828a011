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

/// A door with one RSA key, and the makers of tokens that differ from a good one in one thing.
struct Setting {
    door: Door,
    idp: Idp,
    key: SigningKey,
}

impl Setting {
    async fn new() -> Self {
        let key = SigningKey::rsa("k1", Algorithm::RS256);
        let (door, idp) = Door::trusting(&[&key]).await;
        Self { door, idp, key }
    }

    fn good(&self) -> String {
        self.claim(&json!({}))
    }

    fn claim(&self, changes: &Value) -> String {
        self.key.token(&self.idp.url, changes)
    }

    fn header(&self, name: &str, value: Value) -> String {
        self.signed_by(&self.key, name, value)
    }

    fn signed_by(&self, key: &SigningKey, name: &str, value: Value) -> String {
        key.sign(
            &changed(key.header(), name, value),
            &claims(&self.idp.url, &json!({})),
        )
    }

    fn payload(&self, payload: &str) -> String {
        self.key.sign_text(&self.key.header().to_string(), payload)
    }

    /// Good claims with this text behind the last one.
    fn appended(&self, text: &str) -> String {
        let good = claims(&self.idp.url, &json!({})).to_string();
        self.payload(&format!("{},{text}}}", good.strip_suffix('}').unwrap()))
    }
}

#[tokio::test]
async fn times_are_kept_with_thirty_seconds_of_leeway() {
    let s = Setting::new().await;
    let rows = vec![
        (
            "expired an hour ago",
            s.claim(&json!({"exp": NOW - 3600})),
            "token_expired",
        ),
        (
            "expired beyond the leeway",
            s.claim(&json!({"exp": NOW - 30})),
            "token_expired",
        ),
        ("expired within it", s.claim(&json!({"exp": NOW - 29})), ""),
        ("no expiry", s.claim(&json!({"exp": null})), "missing_claim"),
        (
            "expiry as text",
            s.claim(&json!({"exp": "1800000300"})),
            "malformed_claim",
        ),
        (
            "negative expiry",
            s.claim(&json!({"exp": -1})),
            "malformed_claim",
        ),
        (
            "fractional expiry",
            s.claim(&json!({"exp": 1_800_000_300.5})),
            "",
        ),
        (
            "expiry in a million years",
            s.claim(&json!({"exp": u64::MAX})),
            "",
        ),
        (
            "begins beyond the leeway",
            s.claim(&json!({"nbf": NOW + 31})),
            "token_not_yet_valid",
        ),
        ("begins within it", s.claim(&json!({"nbf": NOW + 30})), ""),
        (
            "issued tomorrow",
            s.claim(&json!({"iat": NOW + 86_400})),
            "token_issued_in_future",
        ),
        (
            "issued beyond the leeway",
            s.claim(&json!({"iat": NOW + 31})),
            "token_issued_in_future",
        ),
        ("issued within it", s.claim(&json!({"iat": NOW + 30})), ""),
    ];
    check(&s.door, rows).await;
}

#[tokio::test]
async fn issuer_and_audience_are_required_and_exact() {
    let s = Setting::new().await;
    let issuer = s.idp.url.clone();
    let behind = format!("{AUD_A}x");
    let among = ["https://other.example.test", AUD_A];
    let rows = vec![
        (
            "other audience",
            s.claim(&json!({"aud": "https://other.example.test"})),
            "wrong_audience",
        ),
        (
            "no audience",
            s.claim(&json!({"aud": null})),
            "missing_claim",
        ),
        ("empty list", s.claim(&json!({"aud": []})), "wrong_audience"),
        ("ours among others", s.claim(&json!({"aud": among})), ""),
        (
            "several others",
            s.claim(&json!({"aud": ["x", "y"]})),
            "wrong_audience",
        ),
        (
            "audience is a number",
            s.claim(&json!({"aud": 7})),
            "malformed_claim",
        ),
        (
            "something behind ours",
            s.claim(&json!({"aud": behind})),
            "wrong_audience",
        ),
        (
            "other issuer",
            s.claim(&json!({"iss": "https://evil.example.test"})),
            "unknown_issuer",
        ),
        (
            "issuer with a slash",
            s.claim(&json!({"iss": format!("{issuer}/")})),
            "unknown_issuer",
        ),
        (
            "issuer in a list",
            s.claim(&json!({"iss": [issuer]})),
            "malformed_claim",
        ),
        ("no issuer", s.claim(&json!({"iss": null})), "missing_claim"),
    ];
    check(&s.door, rows).await;
}

#[tokio::test]
async fn names_can_be_shown() {
    let s = Setting::new().await;
    let rows = vec![
        (
            "no subject",
            s.claim(&json!({"sub": null})),
            "missing_claim",
        ),
        (
            "empty subject",
            s.claim(&json!({"sub": ""})),
            "malformed_claim",
        ),
        (
            "subject is a number",
            s.claim(&json!({"sub": 42})),
            "malformed_claim",
        ),
        (
            "a line break",
            s.claim(&json!({"sub": "alice\r\nx-admin: 1"})),
            "malformed_claim",
        ),
        (
            "an escape",
            s.claim(&json!({"sub": "alice\u{1b}[2J"})),
            "malformed_claim",
        ),
        (
            "written backwards",
            s.claim(&json!({"sub": "a\u{202e}b"})),
            "malformed_claim",
        ),
        (
            "other scripts",
            s.claim(&json!({"sub": "\u{5c71}\u{7530} \u{e9}"})),
            "",
        ),
        ("255 bytes", s.claim(&json!({"sub": "a".repeat(255)})), ""),
        (
            "256 bytes",
            s.claim(&json!({"sub": "a".repeat(256)})),
            "malformed_claim",
        ),
        (
            "a line break in the client",
            s.claim(&json!({"client_id": "a\nb"})),
            "malformed_claim",
        ),
        (
            "one in the other client",
            { s.claim(&json!({"client_id": null, "azp": "a\nb"})) },
            "malformed_claim",
        ),
    ];
    check(&s.door, rows).await;
}

#[tokio::test]
async fn a_token_can_not_choose_how_or_with_which_key_it_is_checked() {
    let s = Setting::new().await;
    let evil = SigningKey::other_rsa("evil");
    let foreign = SigningKey {
        id: "k1".to_owned(),
        ..evil.clone()
    };
    let secret = jsonwebtoken::EncodingKey::from_secret(s.key.jwk()["n"].to_string().as_bytes());
    let hmac = SigningKey {
        algorithm: Algorithm::HS256,
        private: secret.unwrap(),
        ..s.key.clone()
    };
    let claims = claims(&s.idp.url, &json!({}));
    let unsigned = |alg: &str| {
        let header = json!({"alg": alg, "typ": "at+jwt", "kid": "k1"}).to_string();
        format!("{}.{}.", encode(&header), encode(&claims.to_string()))
    };
    let address = json!(format!("{}/evil", s.idp.url));
    let rows = vec![
        ("alg none", unsigned("none"), "algorithm_not_allowed"),
        ("alg nOnE", unsigned("nOnE"), "algorithm_not_allowed"),
        (
            "HMAC",
            hmac.token(&s.idp.url, &json!({})),
            "algorithm_not_allowed",
        ),
        (
            "no algorithm",
            s.key.sign(&without(s.key.header(), "alg"), &claims),
            "malformed_token",
        ),
        (
            "no key id",
            s.key.sign(&without(s.key.header(), "kid"), &claims),
            "",
        ),
        (
            "unknown key id",
            s.header("kid", json!("deadbeef")),
            "unknown_signing_key",
        ),
        (
            "a path",
            s.header("kid", json!("../../../dev/null")),
            "unknown_signing_key",
        ),
        (
            "SQL",
            s.header("kid", json!("x' UNION SELECT 'k")),
            "unknown_signing_key",
        ),
        (
            "key id is a number",
            s.header("kid", json!(1)),
            "malformed_token",
        ),
        (
            "other key, known id",
            foreign.token(&s.idp.url, &json!({})),
            "bad_signature",
        ),
        (
            "jku",
            s.signed_by(&evil, "jku", address.clone()),
            "unknown_signing_key",
        ),
        (
            "x5u",
            s.signed_by(&evil, "x5u", address),
            "unknown_signing_key",
        ),
        (
            "embedded key",
            s.signed_by(&evil, "jwk", evil.jwk()),
            "unknown_signing_key",
        ),
        (
            "embedded key, known id",
            s.signed_by(&foreign, "jwk", evil.jwk()),
            "bad_signature",
        ),
        (
            "critical extension",
            s.header("crit", json!(["x-unknown"])),
            "critical_header",
        ),
        (
            "payload as it is",
            s.header("b64", json!(false)),
            "critical_header",
        ),
    ];
    check(&s.door, rows).await;
    assert!(
        s.idp.jwks_fetches() <= 2,
        "no key is fetched from where a token says"
    );
}

#[tokio::test]
async fn a_token_is_one_well_formed_thing() {
    let s = Setting::new().await;
    let good = s.good();
    let parts: Vec<&str> = good.split('.').collect();
    let carol = encode(&claims(&s.idp.url, &json!({"sub": "carol"})).to_string());
    let zeros = encode(&"\0".repeat(256));
    let nested = |depth: usize| {
        s.appended(&format!(
            "\"x\":{}{}",
            "[".repeat(depth - 1),
            "]".repeat(depth - 1)
        ))
    };
    let rows = vec![
        ("good", good.clone(), ""),
        (
            "subject twice",
            s.appended(r#""sub":"carol""#),
            "malformed_claim",
        ),
        (
            "twice in disguise",
            s.appended("\"\\u0073ub\":\"carol\""),
            "malformed_claim",
        ),
        (
            "tampered",
            format!("{}.{carol}.{}", parts[0], parts[2]),
            "bad_signature",
        ),
        (
            "signature of zeros",
            format!("{}.{}.{zeros}", parts[0], parts[1]),
            "bad_signature",
        ),
        (
            "no signature",
            format!("{}.{}.", parts[0], parts[1]),
            "bad_signature",
        ),
        (
            "large",
            s.claim(&json!({"pad": "A".repeat(16 * 1024)})),
            "token_too_large",
        ),
        ("nested 16 deep", nested(16), ""),
        ("nested 17 deep", nested(17), "malformed_claim"),
        (
            "brackets in text",
            s.claim(&json!({"x": "[\"{\\".repeat(40)})),
            "",
        ),
        ("not JSON", s.payload("alice"), "malformed_claim"),
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
    ];
    check(&s.door, rows).await;
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
