//! Signing keys, tokens, an issuer on loopback, and a gateway configuration around them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::header::{AUTHORIZATION, CACHE_CONTROL, LOCATION};
use http::{HeaderMap, HeaderValue, Request, Response};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::auth::{Authenticator, Denied, Identity, LastToken};
use crate::config::{
    Access, ApiKey, Auth, Config, Issuer, KeySource, LimitAnswer, Limits, PrincipalLimits,
    PublicUrl, RateLimits, Server, ServerName, Sessions, Timeouts,
};
use crate::upstream::client::HttpClient;

/// The time at which every request of these tests arrives, in seconds since 1970.
pub(super) const NOW: u64 = 1_800_000_000;
pub(super) const PUBLIC_URL: &str = "https://gw.example.test";
/// The audience of server `a`.
pub(super) const AUD_A: &str = "https://gw.example.test/mcp/a";

pub(super) fn now() -> SystemTime {
    at(NOW)
}

pub(super) fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

pub(super) fn server(name: &str) -> ServerName {
    ServerName(Arc::from(name))
}

/// A private key, its public part as an issuer publishes it, and its id.
#[derive(Clone)]
pub(super) struct SigningKey {
    pub(super) id: String,
    pub(super) algorithm: Algorithm,
    pub(super) private: EncodingKey,
}

impl SigningKey {
    /// RSA keys take long to make, so this one is shared.
    pub(super) fn rsa(id: &str, algorithm: Algorithm) -> Self {
        static SHARED: OnceLock<EncodingKey> = OnceLock::new();
        let private = SHARED.get_or_init(new_rsa).clone();
        Self {
            id: id.to_owned(),
            algorithm,
            private,
        }
    }

    pub(super) fn other_rsa(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            algorithm: Algorithm::RS256,
            private: new_rsa(),
        }
    }

    pub(super) fn ec(id: &str, algorithm: Algorithm) -> Self {
        let signing = match algorithm {
            Algorithm::ES384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
            _ => &ECDSA_P256_SHA256_FIXED_SIGNING,
        };
        let document = EcdsaKeyPair::generate_pkcs8(signing, &SystemRandom::new()).unwrap();
        let private = EncodingKey::from_ec_der(document.as_ref());
        Self {
            id: id.to_owned(),
            algorithm,
            private,
        }
    }

    pub(super) fn ed25519(id: &str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new()).unwrap();
        let private = EncodingKey::from_ed_der(document.as_ref());
        Self {
            id: id.to_owned(),
            algorithm: Algorithm::EdDSA,
            private,
        }
    }

    pub(super) fn jwk(&self) -> Value {
        let jwk = Jwk::from_encoding_key(&self.private, self.algorithm).unwrap();
        let mut jwk = serde_json::to_value(jwk).unwrap();
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk
    }

    pub(super) fn header(&self) -> Value {
        json!({"alg": self.algorithm, "kid": self.id, "typ": "at+jwt"})
    }

    /// Signs any header and any payload, well-formed or not.
    pub(super) fn sign_text(&self, header: &str, payload: &str) -> String {
        let signed = format!("{}.{}", encode(header), encode(payload));
        let signature = crypto::sign(signed.as_bytes(), &self.private, self.algorithm).unwrap();
        format!("{signed}.{signature}")
    }

    pub(super) fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// A token like those this key's issuer gives out, with these claims changed; `null` removes
    /// one.
    pub(super) fn token(&self, issuer: &str, changes: &Value) -> String {
        self.sign(&self.header(), &claims(issuer, changes))
    }
}

fn new_rsa() -> EncodingKey {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let der = pair.as_der().unwrap();
    let pem = STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{pem}\n-----END PRIVATE KEY-----\n");
    EncodingKey::from_rsa_pem(pem.as_bytes()).unwrap()
}

pub(super) fn encode(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// Good claims for server `a`, changed.
pub(super) fn claims(issuer: &str, changes: &Value) -> Value {
    let mut claims = json!({
        "iss": issuer, "sub": "alice", "aud": AUD_A, "client_id": "cli",
        "iat": NOW - 10, "exp": NOW + 300, "jti": "1", "scope": "mcp:tools",
    });
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

pub(super) fn set(keys: &[&SigningKey]) -> Value {
    json!({"keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>()})
}

/// An issuer's web server.
pub(super) struct Idp {
    pub(super) url: String,
    shared: Arc<Shared>,
    _stop: tokio_util::sync::DropGuard,
}

#[derive(Default)]
struct Shared {
    jwks: Mutex<Answer>,
    metadata: Mutex<HashMap<String, Value>>,
    jwks_fetches: AtomicUsize,
    release: Notify,
}

/// How the issuer answers a request for its keys.
#[derive(Clone, Default)]
pub(super) enum Answer {
    Json(Value),
    Text(String),
    #[default]
    Unavailable,
    Redirect(String),
    /// The keys, once they are released.
    Held(Value),
}

impl Idp {
    pub(super) async fn start(answer: Answer) -> Self {
        let shared = Arc::new(Shared::default());
        *shared.jwks.lock() = answer;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new()
            .fallback(respond)
            .with_state(Arc::clone(&shared));
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let serve = axum::serve(listener, app).with_graceful_shutdown(stopped);
        TaskTracker::new().spawn(async move { serve.await.unwrap() });
        Self {
            url,
            shared,
            _stop: stop.drop_guard(),
        }
    }

    pub(super) fn answer(&self, answer: Answer) {
        *self.shared.jwks.lock() = answer;
    }

    pub(super) fn publish(&self, keys: &[&SigningKey]) {
        self.answer(Answer::Json(set(keys)));
    }

    /// Lets one held answer go.
    pub(super) fn release(&self) {
        self.shared.release.notify_one();
    }

    pub(super) fn serve_metadata(&self, path: &str, document: Value) {
        self.shared
            .metadata
            .lock()
            .insert(path.to_owned(), document);
    }

    pub(super) fn jwks_fetches(&self) -> usize {
        self.shared.jwks_fetches.load(Ordering::SeqCst)
    }

    pub(super) fn jwks_url(&self) -> String {
        format!("{}/jwks", self.url)
    }

    pub(super) fn by_url(&self) -> Issuer {
        let keys = KeySource::Url(Url::parse(&self.jwks_url()).unwrap());
        Issuer {
            issuer: self.url.clone(),
            keys,
            audiences: Vec::new(),
        }
    }
}

async fn respond(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path();
    if path.contains("/.well-known/") {
        let found = shared.metadata.lock().get(path).map(Value::to_string);
        let status = if found.is_some() { 200 } else { 404 };
        return Response::builder()
            .status(status)
            .body(Body::from(found.unwrap_or_default()))
            .unwrap();
    }
    shared.jwks_fetches.fetch_add(1, Ordering::SeqCst);
    let answer = shared.jwks.lock().clone();
    let response = Response::builder();
    match answer {
        Answer::Json(set) => response
            .header(CACHE_CONTROL, "public, max-age=300")
            .body(Body::from(set.to_string())),
        Answer::Text(text) => response.body(Body::from(text)),
        Answer::Unavailable => response.status(503).body(Body::empty()),
        Answer::Redirect(to) => response
            .status(302)
            .header(LOCATION, to)
            .body(Body::empty()),
        Answer::Held(set) => {
            shared.release.notified().await;
            response.body(Body::from(set.to_string()))
        }
    }
    .unwrap()
}

/// A configuration with servers `a`, `b` and `c`.
pub(super) fn config(access: Access) -> Config {
    let servers = ["a", "b", "c"].map(|name| {
        let (name, url) = (server(name), Url::parse("http://127.0.0.1:9/mcp").unwrap());
        let server = Server::at(name.clone(), url);
        (name, Arc::new(server))
    });
    let some_time = Duration::from_secs(1);
    Config {
        listen: "127.0.0.1:8080".parse().unwrap(),
        public_url: PublicUrl(PUBLIC_URL.to_owned()),
        servers: BTreeMap::from(servers),
        access,
        limits: Limits {
            per_principal: PrincipalLimits {
                rates: RateLimits::default(),
                sessions: None,
                questions: None,
            },
            body: None,
            message: None,
            streams: None,
            buffer: 1,
            connections: None,
            answer: LimitAnswer::JsonRpc,
        },
        timeouts: Timeouts {
            connect: some_time,
            call: some_time,
            headers: None,
            idle: None,
            question: some_time,
            stream: some_time,
            resume: some_time,
            shutdown: some_time,
            keep_alive: some_time,
        },
        sessions: Sessions {
            idle: some_time,
            max: None,
        },
        allowed_hosts: Vec::new(),
        allowed_origins: Vec::new(),
        legacy_sse: false,
        audit: None,
    }
}

pub(super) fn required(issuers: Vec<Issuer>, api_keys: Vec<ApiKey>) -> Access {
    Access::Required(Auth { issuers, api_keys })
}

/// A running authenticator. It stops fetching keys when it goes.
pub(super) struct Door {
    authenticator: Arc<Authenticator>,
    _stop: tokio_util::sync::DropGuard,
}

impl Door {
    pub(super) fn open(config: &Config) -> Self {
        let client = HttpClient::new(Duration::from_secs(1)).unwrap();
        let authenticator = Arc::new(Authenticator::new(config, client));
        let stop = CancellationToken::new();
        authenticator.start(&TaskTracker::new(), &stop);
        Self {
            authenticator,
            _stop: stop.drop_guard(),
        }
    }

    /// A door whose only issuer publishes these keys, and has been asked for them.
    pub(super) async fn trusting(keys: &[&SigningKey]) -> (Self, Idp) {
        let idp = Idp::start(Answer::Json(set(keys))).await;
        let door = Self::open(&config(required(vec![idp.by_url()], Vec::new())));
        door.until_ready(&idp.url).await;
        (door, idp)
    }

    pub(super) fn is_ready(&self, issuer: &str) -> bool {
        self.authenticator.ready().contains(&(issuer, true))
    }

    pub(super) async fn until_ready(&self, issuer: &str) {
        until(|| self.is_ready(issuer)).await;
    }

    pub(super) async fn ask(&self, name: &str, headers: &HeaderMap) -> Result<Identity, Denied> {
        self.ask_on(&LastToken::default(), name, headers).await
    }

    /// Asks on a connection that remembers the last token.
    pub(super) async fn ask_on(
        &self,
        last: &LastToken,
        name: &str,
        headers: &HeaderMap,
    ) -> Result<Identity, Denied> {
        self.authenticator
            .authenticate(&server(name), headers, now(), last)
            .await
    }

    /// Sends a bearer token to server `a`.
    pub(super) async fn bearer(&self, token: &str) -> Result<Identity, Denied> {
        self.bearer_at("a", token, now()).await
    }

    pub(super) async fn bearer_at(
        &self,
        name: &str,
        token: &str,
        now: SystemTime,
    ) -> Result<Identity, Denied> {
        self.bearer_on(&LastToken::default(), name, token, now)
            .await
    }

    /// Sends it on a connection that remembers the last one.
    pub(super) async fn bearer_on(
        &self,
        last: &LastToken,
        name: &str,
        token: &str,
        now: SystemTime,
    ) -> Result<Identity, Denied> {
        self.authenticator
            .authenticate(&server(name), &bearer(token), now, last)
            .await
    }

    /// Why server `a` refuses the token; empty when it does not.
    pub(super) async fn reason(&self, token: &str) -> &'static str {
        self.bearer(token)
            .await
            .map_or_else(|denied| denied.reason(), |_| "")
    }
}

pub(super) fn bearer(token: &str) -> HeaderMap {
    headers(&[(AUTHORIZATION.as_str(), &format!("Bearer {token}"))])
}

pub(super) fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

/// Waits for a condition, and gives up after a time that no healthy run needs.
pub(super) async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .expect("the condition never held");
}
