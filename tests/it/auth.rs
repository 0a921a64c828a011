//! Who gets in: tokens of the configured issuers for this very server, and API keys. Everything else
//! stops at the door, and what opened the door goes no further.

use std::path::Path;

use serde_json::json as value;

use crate::support::client::initialize;
use crate::support::token::{ISSUER, Key, PUBLIC, claims, claims_with, now, sha256};
use crate::support::{Client, EVERYTHING, Gateway, NOTHING, Server, Setup, json};

/// Tokens that are good, in their various spellings.
#[tokio::test]
async fn tokens_that_are_accepted() {
    let (_server, gateway, key) = guarded("").await;
    let client = Client::new(&gateway, "alpha");
    let ours = format!("{PUBLIC}/mcp/alpha");
    for change in [
        value!({ "aud": [ours] }),
        value!({ "aud": ["https://other.example.test", ours] }),
        value!({ "nbf": now() - 10 }),
        value!({ "client_id": null, "azp": "app" }),
        value!({ "scope": "a b", "groups": ["x"], "act": { "sub": "agent" } }),
    ] {
        let token = key.sign(&key.header(), &claims_with("mira", &change));
        client.bearer(&token).open(NOTHING).await.works().await;
    }
    for typ in ["at+jwt", "application/at+jwt", "AT+JWT"] {
        let header = value!({ "alg": "ES256", "typ": typ, "kid": "k1" });
        client
            .bearer(&key.sign(&header, &claims("mira")))
            .open(NOTHING)
            .await;
    }
    let lower = client.with("authorization", &format!("bearer {}", key.token("mira")));
    lower.open(NOTHING).await;
}

/// Only the header carries a token, and it does so on every request.
#[tokio::test]
async fn the_header_and_nothing_else() {
    let (server, gateway, key) = guarded("").await;
    let token = key.token("mira");
    let client = Client::new(&gateway, "alpha");
    let query = Client::at(&format!("{}/mcp/alpha?access_token={token}", gateway.url));
    assert_eq!(
        query.post(initialize("2025-11-25", NOTHING)).await.status,
        401
    );
    let cookie = client.with("cookie", &format!("access_token={token}"));
    assert_eq!(
        cookie.post(initialize("2025-11-25", NOTHING)).await.status,
        401
    );
    let basic = client.with("authorization", &format!("Basic {token}"));
    assert_eq!(
        basic.post(initialize("2025-11-25", NOTHING)).await.status,
        401
    );

    let session = client.bearer(&token).open(NOTHING).await;
    let bare = session.client.with("authorization", "");
    for method in [
        hyper::Method::POST,
        hyper::Method::GET,
        hyper::Method::DELETE,
    ] {
        let body = if method == hyper::Method::POST {
            json::call("1", "echo", "{}")
        } else {
            String::new()
        };
        let reply = bare.send(method.clone(), body).await;
        assert_eq!(reply.status, 401, "{method}");
        assert!(
            reply
                .header("www-authenticate")
                .contains("resource_metadata="),
            "{method}"
        );
    }
    session.works().await;
    assert_eq!(server.seen_method("tools/call").len(), 1);
}

/// One gateway, two servers: a token opens the one that it was made for.
#[tokio::test]
async fn the_audience_is_per_server() {
    let (alpha, beta) = (Server::start().await, Server::start().await);
    let key = Key::new("k1");
    let setup = Setup::new().server("alpha", &alpha).server("beta", &beta);
    let yaml = access(&key, setup.folder(), "");
    let gateway = setup.yaml(&yaml).start().await;
    let token = key.token("mira");
    Client::new(&gateway, "alpha")
        .bearer(&token)
        .open(NOTHING)
        .await
        .works()
        .await;
    let crossed = Client::new(&gateway, "beta").bearer(&token);
    assert_eq!(
        crossed.post(initialize("2025-11-25", NOTHING)).await.status,
        401
    );
    assert_eq!(beta.seen().len(), 0);
}

/// D4: configured audiences: the slash of the root and the case of the host don't matter, all else does.
#[tokio::test]
async fn configured_audiences() {
    let (_server, gateway, key) = guarded("audiences: [ \"https://gw.example.test\" ],").await;
    let client = Client::new(&gateway, "alpha");
    let status = async |audience: &str| {
        let change = value!({ "aud": audience });
        let token = key.sign(&key.header(), &claims_with("mira", &change));
        client
            .bearer(&token)
            .post(initialize("2025-11-25", NOTHING))
            .await
            .status
    };
    for good in [
        "https://gw.example.test",
        "https://gw.example.test/",
        "HTTPS://GW.example.test",
    ] {
        assert_eq!(status(good).await, 200, "{good}");
    }
    for bad in [
        "https://gw.example.test.evil",
        "https://gw.example.test/other",
        "http://gw.example.test",
        "https://gw.example.test:8443",
        "gw.example.test",
        "",
    ] {
        assert_eq!(status(bad).await, 401, "{bad}");
    }
}

/// API keys: as a bearer or in their own header; only where they may go.
#[tokio::test]
async fn api_keys() {
    let (alpha, beta) = (Server::start().await, Server::start().await);
    let keys = format!(
        "auth: {{ api_keys: [ {{ name: ci, sha256: \"{}\", servers: [alpha] }}, {{ name: all, sha256: \"{}\" }} ] }}",
        sha256("key-of-ci-0123456789"),
        sha256("key-of-all-0123456789")
    );
    let gateway = Setup::new()
        .server("alpha", &alpha)
        .server("beta", &beta)
        .yaml(&keys)
        .start()
        .await;
    let to = |name: &str| Client::new(&gateway, name);
    to("alpha")
        .bearer("key-of-ci-0123456789")
        .open(NOTHING)
        .await
        .works()
        .await;
    to("alpha")
        .with("x-api-key", "key-of-ci-0123456789")
        .open(NOTHING)
        .await
        .works()
        .await;
    to("beta")
        .bearer("key-of-all-0123456789")
        .open(NOTHING)
        .await
        .works()
        .await;
    let opened = initialize("2025-11-25", NOTHING);
    for wrong in [
        "key-of-ci-012345678",
        "key-of-ci-0123456789x",
        "KEY-OF-CI-0123456789",
        "x",
    ] {
        assert_eq!(
            to("alpha").bearer(wrong).post(opened.clone()).await.status,
            401,
            "{wrong}"
        );
    }
    // The hash is no key.
    let hash = sha256("key-of-ci-0123456789");
    assert_eq!(
        to("alpha").bearer(&hash).post(opened.clone()).await.status,
        401
    );
    let before = beta.posts();
    let status = to("beta")
        .bearer("key-of-ci-0123456789")
        .post(opened)
        .await
        .status;
    assert_eq!(status, 403, "a good key at a server that it does not open");
    assert_eq!(beta.posts(), before);
    let line = gateway
        .audited("a call", |line| line["type"] == "call")
        .await;
    assert_eq!(line["principal"]["subject"], "ci");
}

/// D8: whatever the client sends beside its message stays here.
#[tokio::test]
async fn nothing_of_the_client_goes_upstream() {
    let server = Server::start().await;
    let key = Key::new("k1");
    let setup = Setup::new()
        .server_with("alpha", &server, "{ headers: { x-inner: \"${INNER}\" } }")
        .env("INNER", "inner-credential");
    let yaml = access(&key, setup.folder(), "");
    let gateway = setup.yaml(&yaml).start().await;
    let token = key.token("mira");
    let mut client = Client::new(&gateway, "alpha").bearer(&token);
    for name in [
        "cookie",
        "proxy-authorization",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-real-ip",
        "x-custom",
        "referer",
        "traceparent",
        "last-event-id",
    ] {
        client = client.with(name, "canary-of-the-client");
    }
    let session = client.open(EVERYTHING).await;
    session.works().await;
    server.last_get_stream().await;
    session.delete().await;
    server.sees("DELETE", |seen| seen.http == "DELETE").await;
    for seen in server.seen() {
        let headers = format!("{:?}", seen.headers);
        assert!(
            !headers.contains("canary-of-the-client"),
            "{} {headers}",
            seen.http
        );
        assert!(!headers.contains(&token), "{} {headers}", seen.http);
        assert!(!headers.contains(&session.id), "{} {headers}", seen.http);
        assert_eq!(seen.header("authorization"), "");
        assert_eq!(seen.header("x-inner"), "inner-credential", "{}", seen.http);
    }
}

/// Without `auth` everybody on loopback is `local`.
#[tokio::test]
async fn without_auth_everybody_is_local() {
    let (_server, gateway, session) = crate::support::triple().await;
    session.works().await;
    let line = gateway
        .audited("a call", |line| line["type"] == "call")
        .await;
    assert_eq!(line["principal"]["subject"], "local");
}

async fn guarded(more: &str) -> (Server, Gateway, Key) {
    let server = Server::start().await;
    let key = Key::new("k1");
    let setup = Setup::new().server("alpha", &server);
    let yaml = access(&key, setup.folder(), more);
    let gateway = setup.yaml(&yaml).start().await;
    (server, gateway, key)
}

fn access(key: &Key, folder: &Path, more: &str) -> String {
    let jwks = Key::write(&[key], folder);
    format!(
        "public_url: {PUBLIC}\nauth: {{ issuers: [ {{ issuer: \"{ISSUER}\", {more} jwks_file: \"{}\" }} ] }}",
        jwks.display()
    )
}
