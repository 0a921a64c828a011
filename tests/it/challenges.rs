//! The way in for those who are outside: challenges and documents that lead a client to its login, and
//! the keys of issuers that come, change, and are sometimes out of reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use parking_lot::Mutex;
use serde_json::json as value;

use crate::support::client::initialize;
use crate::support::token::{ISSUER, Key, PUBLIC, claims, claims_with, jwks};
use crate::support::{Client, Gateway, NOTHING, Server, Setup};

/// D1, D2, C23: the 401 names a document, the document names the resource and the issuer, and all of
/// it is built on the public URL, whatever the client calls us.
/// Reported in BerriAI/litellm#34845, sigbit/mcp-auth-proxy#115.
#[tokio::test]
async fn the_challenge_leads_to_the_document() {
    let server = Server::start().await;
    let setup = Setup::new()
        .server("alpha", &server)
        .server("beta", &server);
    let jwks = Key::write(&[&Key::new("k1")], setup.folder());
    let yaml = format!(
        "public_url: {PUBLIC}\nallowed_hosts: [ internal.example.test ]\nauth: {{ issuers: [ {{ issuer: \"{ISSUER}\", jwks_file: \"{}\" }} ] }}",
        jwks.display()
    );
    let gateway = setup.yaml(&yaml).start().await;
    for name in ["alpha", "beta"] {
        for slash in ["", "/"] {
            let client = Client::at(&format!("{}/mcp/{name}{slash}", gateway.url))
                .with("host", "internal.example.test")
                .with("x-forwarded-host", "evil.example.test")
                .with("x-forwarded-proto", "http");
            let reply = client.post(initialize("2025-11-25", NOTHING)).await;
            assert_eq!(reply.status, 401);
            let challenge = reply.header("www-authenticate").to_owned();
            assert!(challenge.starts_with("Bearer "), "{challenge}");
            let document = format!("/.well-known/oauth-protected-resource/mcp/{name}");
            assert!(
                challenge.contains(&format!("resource_metadata=\"{PUBLIC}{document}\"")),
                "{challenge}"
            );
            for spelling in [document.clone(), format!("{document}/")] {
                let client = Client::at(&format!("{}{spelling}", gateway.url));
                let mut reply = client.get().await;
                assert_eq!(reply.status, 200, "{spelling}");
                assert_eq!(reply.header("access-control-allow-origin"), "*");
                assert!(reply.header("content-type").starts_with("application/json"));
                let text = reply.text().await;
                assert!(
                    !text.contains("http://") && !text.contains("evil"),
                    "{text}"
                );
                let document = crate::support::json::parse(&text);
                assert_eq!(document["resource"], format!("{PUBLIC}/mcp/{name}"));
                assert_eq!(document["authorization_servers"], value!([ISSUER]));
                assert_eq!(document["bearer_methods_supported"], value!(["header"]));
            }
        }
    }
    let unknown = format!(
        "{}/.well-known/oauth-protected-resource/mcp/nowhere",
        gateway.url
    );
    assert_eq!(Client::at(&unknown).get().await.status, 404);
}

/// A token that is no good is told apart from none, without saying what is wrong with it.
#[tokio::test]
async fn a_bad_token_is_called_invalid() {
    let (gateway, _issuer) = with_issuer(&[&Key::new("k1")]).await;
    let client = Client::new(&gateway, "alpha");
    let bare = client.post(initialize("2025-11-25", NOTHING)).await;
    assert!(!bare.header("www-authenticate").contains("error="));
    let reply = client
        .bearer("nonsense")
        .post(initialize("2025-11-25", NOTHING))
        .await;
    assert!(
        reply
            .header("www-authenticate")
            .contains("error=\"invalid_token\"")
    );
}

/// A refusal is on the record, the token is not.
#[tokio::test]
async fn refusals_are_audited() {
    let (gateway, _issuer) = with_issuer(&[&Key::new("k1")]).await;
    let token = Key::new("k1").token("mira");
    Client::new(&gateway, "alpha")
        .bearer(&token)
        .post(initialize("2025-11-25", NOTHING))
        .await;
    let line = gateway
        .audited("the refusal", |line| line["type"] == "refused")
        .await;
    assert_eq!(line["server"], "alpha");
    assert!(!line.to_string().contains(&token));
}

/// D12: a new key is fetched when the first token that is signed with it arrives.
#[tokio::test]
async fn a_rotated_key() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let (gateway, issuer) = with_issuer(&[&old]).await;
    let client = Client::new(&gateway, "alpha");
    assert_eq!(status(&client, &old.token("mira")).await, 200);
    issuer.set(&[&old, &new]);
    assert_eq!(status(&client, &new.token("mira")).await, 200);
    assert_eq!(status(&client, &old.token("mira")).await, 200);
    assert!(issuer.fetches() <= 3, "{}", issuer.fetches());
}

/// D12: made-up key ids don't turn the gateway into a flood, alone or all at once.
#[tokio::test]
async fn made_up_key_ids() {
    let key = Key::new("k1");
    let (gateway, issuer) = with_issuer(&[&key]).await;
    let client = Client::new(&gateway, "alpha");
    assert_eq!(status(&client, &key.token("mira")).await, 200);
    let mut tasks = Vec::new();
    for number in 0..100 {
        let header =
            value!({ "alg": "ES256", "typ": "at+jwt", "kid": format!("made-up-{number}") });
        let (client, token) = (client.clone(), key.sign(&header, &claims("mira")));
        tasks.push(tokio::spawn(async move { status(&client, &token).await }));
    }
    for task in tasks {
        assert_eq!(task.await.unwrap(), 401);
    }
    // One at the start, one for the first unknown id; none for the rest of the half minute.
    assert!(issuer.fetches() <= 3, "{} fetches", issuer.fetches());
    assert_eq!(status(&client, &key.token("mira")).await, 200);
}

/// D12: the issuer is out of reach: known keys go on, unknown ones are 401, never 500.
#[tokio::test]
async fn an_issuer_that_is_down() {
    let key = Key::new("k1");
    let (gateway, issuer) = with_issuer(&[&key]).await;
    let client = Client::new(&gateway, "alpha");
    assert_eq!(status(&client, &key.token("mira")).await, 200);
    issuer.down.store(true, Ordering::SeqCst);
    assert_eq!(status(&client, &Key::new("new").token("mira")).await, 401);
    assert_eq!(status(&client, &key.token("joris")).await, 200);
}

/// Keys that the gateway can't use don't spoil those that it can.
#[tokio::test]
async fn odd_keys_beside_good_ones() {
    let key = Key::new("good");
    let (gateway, issuer) = with_issuer(&[]).await;
    let odd = value!({ "keys": [
        { "kty": "oct", "k": "c2VjcmV0", "kid": "secret" },
        { "kty": "future", "kid": "f" },
        { "kty": "RSA", "use": "enc", "kid": "e", "n": "AQAB", "e": "AQAB" },
        { "kty": "OKP", "crv": "X25519", "x": "AAAA", "kid": "x" },
        key.public(),
        { "kty": "EC", "crv": "P-256", "x": "!!", "y": "!!", "kid": "broken" },
    ] });
    *issuer.document.lock() = odd.to_string();
    assert_eq!(
        status(&Client::new(&gateway, "alpha"), &key.token("mira")).await,
        200
    );
}

/// Without `jwks_url` the keys are found by the issuer's own metadata, whichever of the two it has.
#[tokio::test]
async fn discovery() {
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ] {
        let key = Key::new("k1");
        let issuer = Issuer::new(&[&key]);
        let address = issuer.serve(Some(path)).await;
        let own = format!("http://{address}");
        let server = Server::start().await;
        let yaml =
            format!("public_url: {PUBLIC}\nauth: {{ issuers: [ {{ issuer: \"{own}\" }} ] }}");
        let gateway = Setup::new()
            .server("alpha", &server)
            .yaml(&yaml)
            .start()
            .await;
        let token = key.sign(&key.header(), &claims_with("mira", &value!({ "iss": own })));
        assert_eq!(
            status(&Client::new(&gateway, "alpha"), &token).await,
            200,
            "{path}"
        );
    }
}

/// An authorization server, as far as a gateway sees it.
#[derive(Clone, Debug)]
struct Issuer {
    document: Arc<Mutex<String>>,
    fetched: Arc<AtomicUsize>,
    down: Arc<AtomicBool>,
}

impl Issuer {
    fn new(keys: &[&Key]) -> Self {
        Self {
            document: Arc::new(Mutex::new(jwks(keys))),
            fetched: Arc::default(),
            down: Arc::default(),
        }
    }

    fn set(&self, keys: &[&Key]) {
        *self.document.lock() = jwks(keys);
    }

    fn fetches(&self) -> usize {
        self.fetched.load(Ordering::SeqCst)
    }

    async fn serve(&self, metadata: Option<&str>) -> std::net::SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let issuer = self.clone();
        let keys = get(move || {
            issuer.fetched.fetch_add(1, Ordering::SeqCst);
            let down = issuer.down.load(Ordering::SeqCst);
            let document = issuer.document.lock().clone();
            async move {
                let status = if down {
                    StatusCode::SERVICE_UNAVAILABLE
                } else {
                    StatusCode::OK
                };
                (status, [("content-type", "application/json")], document)
            }
        });
        let mut routes = Router::new().route("/jwks", keys);
        if let Some(path) = metadata {
            let own = format!("http://{address}");
            let document = value!({ "issuer": own, "jwks_uri": format!("{own}/jwks") }).to_string();
            routes = routes.route(
                path,
                get(|| async { ([("content-type", "application/json")], document) }),
            );
        }
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        address
    }
}

async fn with_issuer(keys: &[&Key]) -> (Gateway, Issuer) {
    let server = Server::start().await;
    let issuer = Issuer::new(keys);
    let address = issuer.serve(None).await;
    let yaml = format!(
        "public_url: {PUBLIC}\nauth: {{ issuers: [ {{ issuer: \"{ISSUER}\", jwks_url: \"http://{address}/jwks\" }} ] }}"
    );
    (
        Setup::new()
            .server("alpha", &server)
            .yaml(&yaml)
            .start()
            .await,
        issuer,
    )
}

async fn status(client: &Client, token: &str) -> u16 {
    client
        .bearer(token)
        .post(initialize("2025-11-25", NOTHING))
        .await
        .status
        .as_u16()
}
