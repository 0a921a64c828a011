//! Tokens that look good and are not: each one alone would open the door to somebody.
//!
//! D6, and the kinds of token that a check of signature, issuer and audience alone lets through.

use serde_json::{Value, json as value};

use crate::support::client::initialize;
use crate::support::token::{ISSUER, Key, PUBLIC, claims, claims_with, hmac, now, unsigned};
use crate::support::{Client, EVERYTHING, Gateway, NOTHING, Server, Setup};

/// Made for somebody else, by somebody else, for another time, or for nobody.
#[tokio::test]
async fn claims_that_do_not_fit() {
    let door = Door::new().await;
    let table = [
        (
            "another audience",
            value!({ "aud": "https://other.example.test" }),
        ),
        (
            "another server's audience",
            value!({ "aud": format!("{PUBLIC}/mcp/beta") }),
        ),
        (
            "a longer audience",
            value!({ "aud": format!("{PUBLIC}/mcp/alpha2") }),
        ),
        (
            "a shorter audience",
            value!({ "aud": format!("{PUBLIC}/mcp") }),
        ),
        ("no audience", value!({ "aud": null })),
        ("an empty list of audiences", value!({ "aud": [] })),
        ("a list without ours", value!({ "aud": ["a", "b"] })),
        (
            "another issuer",
            value!({ "iss": "https://evil.example.test" }),
        ),
        (
            "the issuer with a slash",
            value!({ "iss": format!("{ISSUER}/") }),
        ),
        ("no issuer", value!({ "iss": null })),
        ("expired an hour ago", value!({ "exp": now() - 3600 })),
        ("no expiry", value!({ "exp": null })),
        ("an expiry that is a word", value!({ "exp": "tomorrow" })),
        ("not valid yet", value!({ "nbf": now() + 3600 })),
        ("issued in the future", value!({ "iat": now() + 3600 })),
        ("no subject", value!({ "sub": null })),
        ("an empty subject", value!({ "sub": "" })),
        (
            "a subject with a line break",
            value!({ "sub": "mira\r\nadmin" }),
        ),
        (
            "more claims than any login needs",
            value!({ "fill": "a".repeat(14_000) }),
        ),
    ];
    for (case, change) in table {
        let token = door
            .key
            .sign(&door.key.header(), &claims_with("mira", &change));
        door.stays_shut(case, &token).await;
    }
    door.opens().await;
}

/// Signed by the right key, but for another purpose.
#[tokio::test]
async fn tokens_of_another_kind() {
    let door = Door::new().await;
    let of_type = |typ: &str, change: Value| {
        let header = value!({ "alg": "ES256", "typ": typ, "kid": "k1" });
        door.key.sign(&header, &claims_with("mira", &change))
    };
    let critical = value!({ "alg": "ES256", "typ": "at+jwt", "kid": "k1", "crit": ["x"], "x": 1 });
    let table = [
        (
            "an ID token",
            of_type("JWT", value!({ "nonce": "n", "at_hash": "h" })),
        ),
        (
            "a logout token",
            of_type("logout+jwt", value!({ "events": {} })),
        ),
        (
            "an identity assertion",
            of_type("oauth-id-jag+jwt", value!({})),
        ),
        (
            "a critical extension",
            door.key.sign(&critical, &claims("mira")),
        ),
    ];
    for (case, token) in table {
        door.stays_shut(case, &token).await;
    }
    door.opens().await;
}

/// Signed by nobody, by somebody else, or with the wrong kind of key.
#[tokio::test]
async fn signatures_that_do_not_fit() {
    let door = Door::new().await;
    let good = door.key.token("mira");
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let header = |alg: &str, kid: &str| value!({ "alg": alg, "typ": "at+jwt", "kid": kid });
    let claims = claims("mira");
    let backwards: String = signature.chars().rev().collect();
    let secret = door.key.public_bytes();
    let table = [
        ("a key of the same name", Key::new("k1").token("mira")),
        (
            "an unknown key",
            door.key.sign(&header("ES256", "nobody"), &claims),
        ),
        (
            "a key by path",
            door.key.sign(&header("ES256", "../../etc/passwd"), &claims),
        ),
        (
            "no signature",
            format!("{}.", unsigned(&header("none", "k1"), &claims)),
        ),
        (
            "no signature, in capitals",
            format!("{}.", unsigned(&header("NONE", "k1"), &claims)),
        ),
        (
            "HMAC with the public key",
            hmac(&header("HS256", "k1"), &claims, secret),
        ),
        (
            "HMAC with nothing",
            hmac(&header("HS256", "k1"), &claims, b""),
        ),
        (
            "another algorithm's name",
            door.key.sign(&header("RS256", "k1"), &claims),
        ),
        ("two parts", signed.to_owned()),
        ("an empty signature", format!("{signed}.")),
        ("a changed signature", format!("{signed}.{backwards}")),
        ("a fourth part", format!("{good}.{signature}")),
        ("not a token", "hello".to_owned()),
    ];
    for (case, token) in table {
        door.stays_shut(case, &token).await;
    }
    door.opens().await;
}

/// A gateway with one issuer, and that issuer's key.
struct Door {
    server: Server,
    gateway: Gateway,
    key: Key,
}

impl Door {
    async fn new() -> Self {
        let server = Server::start().await;
        let key = Key::new("k1");
        let setup = Setup::new().server("alpha", &server);
        let jwks = Key::write(&[&key], setup.folder());
        let yaml = format!(
            "public_url: {PUBLIC}\nauth: {{ issuers: [ {{ issuer: \"{ISSUER}\", jwks_file: \"{}\" }} ] }}",
            jwks.display()
        );
        let gateway = setup.yaml(&yaml).start().await;
        Self {
            server,
            gateway,
            key,
        }
    }

    async fn stays_shut(&self, case: &str, token: &str) {
        let client = Client::new(&self.gateway, "alpha").bearer(token);
        let reply = client.post(initialize("2025-11-25", NOTHING)).await;
        assert_eq!(reply.status, 401, "{case}");
        assert!(
            reply
                .header("www-authenticate")
                .contains("resource_metadata="),
            "{case}"
        );
        assert_eq!(reply.header("mcp-session-id"), "", "{case}");
        assert_eq!(self.server.seen().len(), 0, "{case}");
    }

    async fn opens(&self) {
        let client = Client::new(&self.gateway, "alpha").bearer(&self.key.token("mira"));
        client.open(EVERYTHING).await.works().await;
    }
}
