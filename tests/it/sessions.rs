//! Sessions: one upstream session each, bound to one person, told apart by nothing but their id.

use std::collections::BTreeSet;

use hyper::Method;

use crate::support::client::initialize;
use crate::support::token::{ISSUER, Key, PUBLIC, claims_with};
use crate::support::{
    Client, EVERYTHING, Gateway, NOTHING, Server, Session, Setup, json, pair, triple,
};

/// B7: three calls, one upstream session, one handshake.
/// Reported in BerriAI/litellm#20242.
#[tokio::test]
async fn one_upstream_session_for_all_calls() {
    let (server, _gateway, session) = triple().await;
    for count in ["1", "2", "3"] {
        assert_eq!(session.text("count", "{}").await, count);
    }
    assert_eq!(server.seen_method("initialize").len(), 1);
    assert_eq!(server.seen_method("notifications/initialized").len(), 1);
    let opened = server.opened();
    assert_eq!(opened.len(), 1);
    for seen in server
        .seen()
        .iter()
        .filter(|seen| seen.method().as_deref() != Some("initialize") && !seen.is_probe())
    {
        assert_eq!(seen.session(), opened[0]);
    }
}

/// B8: two conversations of one person are two sessions there, too.
/// Reported in IBM/mcp-context-forge#4205 and #4299.
#[tokio::test]
async fn two_sessions_of_one_person_share_nothing() {
    let (server, gateway, first) = triple().await;
    let second = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    for count in ["1", "2", "3"] {
        assert_eq!(first.text("count", "{}").await, count);
    }
    assert_eq!(second.text("count", "{}").await, "1");
    assert_eq!(server.opened().len(), 2);
}

/// Ids are the gateway's own: long, random, visible ASCII, and never the server's.
#[tokio::test]
async fn ids_are_random_and_the_servers_id_stays_inside() {
    let (server, gateway) = pair().await;
    let client = Client::new(&gateway, "alpha");
    let mut ids = BTreeSet::new();
    for _ in 0..10 {
        let session = client.open(NOTHING).await;
        assert!(session.id.len() >= 22, "less than 128 bits: {}", session.id);
        assert!(session.id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
        assert!(!server.opened().contains(&session.id));
        assert!(!session.initialized.contains("upstream-"));
        assert!(ids.insert(session.id.clone()));
    }
}

/// A server that hands out no session id (stateless) gets none; the client has one all the same.
/// Reported in envoyproxy/ai-gateway#1555 and #1958.
#[tokio::test]
async fn a_server_without_session_ids() {
    let server = Server::with(|habits| habits.sessions = false).await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    session.works().await;
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| !seen.headers.contains_key("mcp-session-id"))
    );
}

/// B1: a request that names no session gets 400 and an error that can be read.
/// Reported in envoyproxy/ai-gateway#1555 and #1958.
#[tokio::test]
async fn no_session_named() {
    let (_server, gateway) = pair().await;
    let client = Client::new(&gateway, "alpha");
    let mut reply = client.post(json::request("7", "tools/list", "{}")).await;
    assert_eq!(reply.status, 400);
    assert!(reply.json().await["error"]["code"].is_i64());
    assert_eq!(client.get().await.status, 400);
    assert_eq!(client.send(Method::DELETE, "").await.status, 400);
}

/// B3: unknown ids get 404 on every method, with a whole JSON-RPC error.
/// Reported in supercorp-ai/supergateway#123, DAWNCR0W/affine-mcp-server#301, markmhendrickson/neotoma#1923,
/// OneUptime/oneuptime#2459, helidon-io/helidon-mcp#152.
#[tokio::test]
async fn an_unknown_session() {
    let (_server, _gateway, session) = triple().await;
    let lost = session
        .client
        .with("mcp-session-id", "0123456789abcdef0123456789abcdef");
    refused_as_unknown(&lost).await;
    session.works().await;
}

/// B3: the same after a restart; then the client starts anew.
/// Reported in supercorp-ai/supergateway#123, DAWNCR0W/affine-mcp-server#301, markmhendrickson/neotoma#1923,
/// OneUptime/oneuptime#2459, helidon-io/helidon-mcp#152.
#[tokio::test]
async fn a_session_of_the_process_before() {
    let (server, mut gateway, session) = triple().await;
    gateway.kill().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha");
    refused_as_unknown(&client.session(&session.id, &session.version)).await;
    client.open(EVERYTHING).await.works().await;
}

/// A session belongs to one server: another path does not know it.
#[tokio::test]
async fn a_session_at_another_server() {
    let (alpha, beta) = (Server::start().await, Server::start().await);
    let gateway = Setup::new()
        .server("alpha", &alpha)
        .server("beta", &beta)
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let crossed = Client::new(&gateway, "beta").session(&session.id, &session.version);
    refused_as_unknown(&crossed).await;
    session.works().await;
    assert_eq!(beta.seen().len(), 0);
}

/// B17: `initialize` with an old id starts anew; with a live one it does not break that one.
/// Reported in diegosouzapw/OmniRoute#5957.
#[tokio::test]
async fn initialize_with_an_old_or_a_live_id() {
    let (server, gateway, session) = triple().await;
    let stale = Client::new(&gateway, "alpha").with("mcp-session-id", "no-longer-known-0123456789");
    let fresh = stale.post(initialize("2025-11-25", NOTHING)).await;
    assert_eq!(fresh.status, 200);
    assert!(!fresh.header("mcp-session-id").is_empty());
    let mut again = session.post(initialize("2025-11-25", NOTHING)).await;
    if again.status == 200 {
        assert_ne!(again.header("mcp-session-id"), session.id);
    } else {
        assert_eq!(again.status, 400);
        assert_eq!(again.error().await, -32600);
    }
    session.works().await;
    assert_eq!(
        server.seen_method("tools/call")[0].session(),
        server.opened()[0]
    );
}

/// B12: a refreshed token, and one that another client application got, are the same person.
/// Reported in stacklok/toolhive#5306 and #3867.
#[tokio::test]
async fn a_refreshed_token_keeps_the_session() {
    let (_server, gateway, key) = guarded().await;
    let client = Client::new(&gateway, "alpha");
    let session = client.bearer(&key.token("mira")).open(EVERYTHING).await;
    assert_eq!(session.text("count", "{}").await, "1");
    let change = serde_json::json!({ "jti": "mira-2", "exp": crate::support::token::now() + 900 });
    let refreshed = key.sign(&key.header(), &claims_with("mira", &change));
    let session = Session {
        client: session.client.bearer(&refreshed),
        ..session
    };
    assert_eq!(session.text("count", "{}").await, "2");
}

/// B13: for anybody else the session does not exist, by POST, GET and DELETE, to the last byte.
/// Reported in agentic-community/mcp-gateway-registry#1357, Repliers-io/mcp-server#14, GHSA-f6c5-f2ph-7x7p.
#[tokio::test]
async fn somebody_elses_session() {
    let (server, gateway, key) = guarded().await;
    let client = Client::new(&gateway, "alpha");
    let mira = client.bearer(&key.token("mira")).open(EVERYTHING).await;
    let stolen = mira.client.bearer(&key.token("joris"));
    let invented = stolen.with("mcp-session-id", &"z".repeat(mira.id.len()));
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let body = if method == Method::POST {
            json::call("1", "echo", "{}")
        } else {
            String::new()
        };
        let mut foreign = stolen.send(method.clone(), body.clone()).await;
        let mut unknown = invented.send(method.clone(), body).await;
        assert_eq!(foreign.status, 404, "{method}");
        assert_eq!(unknown.status, 404, "{method}");
        assert_eq!(foreign.text().await, unknown.text().await, "{method}");
        let names = |headers: &hyper::HeaderMap| {
            headers
                .keys()
                .map(ToString::to_string)
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(names(&foreign.headers), names(&unknown.headers), "{method}");
    }
    gateway
        .audited_times("refusals", 3, |line| {
            line["type"] == "refused" && line["principal"]["subject"] == "joris"
        })
        .await;
    mira.works().await;
    assert_eq!(server.seen_method("tools/call").len(), 1);
    assert_eq!(server.live(), 1, "nobody ended mira's session upstream");
}

/// The issuer is part of who somebody is: the same `sub` elsewhere is somebody else.
#[tokio::test]
async fn the_same_subject_of_another_issuer() {
    let server = Server::start().await;
    let setup = Setup::new().server("alpha", &server);
    let key = Key::new("k1");
    let jwks = Key::write(&[&key], setup.folder());
    let issuer = |name: &str| {
        format!(
            "{{ issuer: \"{name}\", jwks_file: \"{}\" }}",
            jwks.display()
        )
    };
    let other = "https://other.example.test";
    let gateway = setup
        .yaml(&format!(
            "public_url: {PUBLIC}\nauth: {{ issuers: [ {}, {} ] }}",
            issuer(ISSUER),
            issuer(other)
        ))
        .start()
        .await;
    let client = Client::new(&gateway, "alpha");
    let mira = client.bearer(&key.token("mira")).open(EVERYTHING).await;
    let change = serde_json::json!({ "iss": other });
    let namesake = key.sign(&key.header(), &claims_with("mira", &change));
    refused_as_unknown(&mira.client.bearer(&namesake)).await;
    client
        .bearer(&namesake)
        .open(EVERYTHING)
        .await
        .works()
        .await;
    mira.works().await;
}

/// `auth: open`: nobody logs in, yet each session is somebody of its own.
#[tokio::test]
async fn open_access_gives_each_session_its_own_principal() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("auth: open")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha");
    client.open(NOTHING).await.works().await;
    client.open(NOTHING).await.works().await;
    let calls = gateway
        .audited_times("two calls", 2, |line| line["type"] == "call")
        .await;
    assert_ne!(calls[0]["principal"], calls[1]["principal"]);
}

/// A gateway with one issuer, and its key.
async fn guarded() -> (Server, Gateway, Key) {
    let server = Server::start().await;
    let setup = Setup::new().server("alpha", &server);
    let key = Key::new("k1");
    let jwks = Key::write(&[&key], setup.folder());
    let yaml = format!(
        "public_url: {PUBLIC}\nauth: {{ issuers: [ {{ issuer: \"{ISSUER}\", jwks_file: \"{}\" }} ] }}",
        jwks.display()
    );
    let gateway = setup.yaml(&yaml).start().await;
    (server, gateway, key)
}

async fn refused_as_unknown(client: &Client) {
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let body = if method == Method::POST {
            json::request("7", "tools/list", "{}")
        } else {
            String::new()
        };
        let mut reply = client.send(method.clone(), body).await;
        assert_eq!(reply.status, 404, "{method}");
        let error = reply.json().await;
        assert!(error["error"]["code"].is_i64(), "{method}: {error}");
        assert!(error["error"]["message"].is_string(), "{method}: {error}");
        assert_eq!(error["jsonrpc"], "2.0");
    }
}
