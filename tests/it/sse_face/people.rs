//! Whose a stream is: each POST shows a credential, which has to be that of the one who opened it.

use serde_json::json as value;

use super::{Old, knock};
use crate::support::client::initialize;
use crate::support::token::{ISSUER, Key, PUBLIC, claims_with, now, sha256};
use crate::support::{Client, EVERYTHING, Gateway, NOTHING, Server, Setup, json, within};

async fn guarded() -> (Server, Gateway, Key) {
    let server = Server::start().await;
    let key = Key::new("k1");
    let setup = Setup::new().server("alpha", &server);
    let jwks = Key::write(&[&key], setup.folder());
    let yaml = format!(
        "legacy_sse: true\npublic_url: {PUBLIC}\nauth: {{ issuers: [ {{ issuer: \"{ISSUER}\", jwks_file: \"{}\" }} ], api_keys: [ {{ name: ci, sha256: \"{}\" }} ] }}",
        jwks.display(),
        sha256("key-0123456789abcdef")
    );
    let gateway = setup.yaml(&yaml).start().await;
    (server, gateway, key)
}

/// Who shows nothing learns where to log in, on both paths.
#[tokio::test]
async fn nobody_comes_in_without_a_credential() {
    let (server, gateway, key) = guarded().await;
    let endpoint = Client::new(&gateway, "alpha");
    let old = Old::connect(&endpoint.bearer(&key.token("mira"))).await;
    let stranger = old.client.with("authorization", "");
    let unknown = Client::at(&format!("{}/mcp/alpha/messages?sessionId=x", gateway.url));
    let body = || initialize("2024-11-05", NOTHING);
    for reply in [
        knock(&endpoint).await,
        stranger.post(body()).await,
        stranger.bearer("nonsense").post(body()).await,
        unknown.post(body()).await,
    ] {
        assert_eq!(reply.status, 401);
        let challenge = reply.header("www-authenticate");
        let metadata = format!("{PUBLIC}/.well-known/oauth-protected-resource/mcp/alpha");
        assert!(challenge.contains(&metadata), "{challenge}");
    }
    assert_eq!(server.posts(), 0);
}

/// For anybody else the session does not exist, whatever they know of it; the operator learns who tried.
#[tokio::test]
async fn a_foreign_principal_finds_nothing() {
    let (server, gateway, key) = guarded().await;
    let endpoint = Client::new(&gateway, "alpha");
    let mut mira = Old::connect(&endpoint.bearer(&key.token("mira"))).await;
    let thieves = [
        mira.client.bearer(&key.token("joris")),
        mira.client.bearer("key-0123456789abcdef"),
    ];
    let stolen = initialize("2024-11-05", NOTHING);
    for thief in &thieves {
        assert_eq!(thief.post(stolen.clone()).await.status, 404);
    }
    assert_eq!(server.posts(), 0, "not even before the session is open");
    mira.post(&initialize("2024-11-05", EVERYTHING)).await;
    mira.stream.next().await;
    mira.call("1", "ask").await;
    let call = server.called("ask").await.stream();
    call.send(&json::request("7", "elicitation/create", &json::form("?")))
        .await;
    let question = mira.stream.question("elicitation/create").await;
    for thief in &thieves {
        let answer = json::result(&json::id(&question), r#"{"action":"decline"}"#);
        let status = thief.post(answer).await.status;
        assert_eq!(status, 404);
    }
    mira.answer(&question, r#"{"action":"cancel"}"#).await;
    server.cancelled("7").await;
    let tried = gateway
        .audited_times("the tries", 4, |line| line["reason"] == "foreign_session")
        .await;
    assert_eq!(tried[0]["principal"]["subject"], "joris");
    assert_eq!(tried[1]["principal"]["subject"], "ci");
    let opened = gateway
        .audited("the session", |line| line["type"] == "session.opened")
        .await;
    assert_eq!(tried[0]["session"], opened["session"]);
    let id = mira.address.split_once('=').unwrap().1;
    assert!(!gateway.output().contains(id));
    let audit = std::fs::read_to_string(gateway.audit_file()).unwrap();
    assert!(!audit.contains(id), "the id is a secret");
}

/// A stream lasts as long as the credentials that were shown for it: a fresh one prolongs it, none ends it.
#[tokio::test]
async fn a_stream_lasts_as_long_as_its_credentials() {
    let (server, gateway, key) = guarded().await;
    let endpoint = Client::new(&gateway, "alpha");
    // A token counts for 30 s after it expired, for clocks that differ.
    let short = |subject: &str| {
        let short = claims_with(subject, &value!({ "exp": now() - 22 }));
        key.sign(&key.header(), &short)
    };
    let mut renewed = Old::connect(&endpoint.bearer(&short("mira"))).await;
    renewed.client = renewed.client.bearer(&key.token("mira"));
    renewed.post(&initialize("2024-11-05", NOTHING)).await;
    renewed.stream.next().await;

    let mut left = Old::open(&endpoint.bearer(&short("joris"))).await;
    let session = server.opened()[1].clone();
    left.call("1", "slow").await;
    let call = server.called("slow").await.stream();
    while within("the end of the stream", left.stream.maybe_next())
        .await
        .is_some()
    {}
    call.left().await;
    server
        .sees("DELETE", |seen| {
            seen.http == "DELETE" && seen.session() == session
        })
        .await;
    // It began to end before the other did.
    renewed.works().await;
    assert_eq!(server.live(), 1);
}
