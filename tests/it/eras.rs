//! Which era a server speaks is found out, kept, and found out again when it was wrong.

use crate::support::gateway::run;
use crate::support::{Client, EVERYTHING, Server, Setup, json};

async fn modern() -> Server {
    Server::with(|habits| habits.modern = true).await
}

/// The probe is asked once, however many sessions begin.
#[tokio::test]
async fn a_server_is_asked_once_what_it_is() {
    let server = Server::start().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha");
    let sessions = futures_util::future::join_all((0..4).map(|_| client.open(EVERYTHING))).await;
    for session in &sessions {
        session.works().await;
    }
    assert_eq!(server.seen_method("server/discover").len(), 1);
    assert_eq!(server.seen_method("initialize").len(), 4);
}

/// Whoever says what a server is needs no probe.
#[tokio::test]
async fn a_configured_era_is_not_asked() {
    let server = Server::start().await;
    let setup = Setup::new().server_with("alpha", &server, "{ era: legacy }");
    let gateway = setup.start().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    session.works().await;
    assert!(server.seen_method("server/discover").is_empty());
}

/// F45: trouble is no verdict. The server is asked again the next time.
#[tokio::test]
async fn f45_trouble_says_nothing_about_the_era() {
    let server = modern().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha");
    server.change(|habits| habits.always = Some((503, "text/plain", "busy")));
    let opening = crate::support::client::initialize("2025-11-25", EVERYTHING);
    assert!(client.post(opening).await.error().await < 0);
    server.change(|habits| habits.always = None);
    let session = client.open(EVERYTHING).await;
    session.works().await;
}

/// F45: nor is a server that isn't there.
#[tokio::test]
async fn f45_a_server_that_can_not_be_reached_has_no_era() {
    let gateway = Setup::new()
        .server_at("alpha", "http://127.0.0.1:9/mcp", "{}")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha");
    let opening = crate::support::client::initialize("2025-11-25", EVERYTHING);
    assert_eq!(client.post(opening).await.error().await, -31001);
}

/// A server that was legacy and says -32022 to `initialize` has been upgraded.
#[tokio::test]
async fn f47_an_upgraded_server_is_noticed() {
    let server = Server::start().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha");
    client.open(EVERYTHING).await.works().await;
    server.change(|habits| habits.modern = true);
    let session = client.open(EVERYTHING).await;
    session.works().await;
    assert_eq!(server.seen_method("server/discover").len(), 2);
}

/// F44: a server that went back to sessions is found out, and its client begins again.
#[tokio::test]
async fn f44_a_downgraded_server_is_noticed() {
    let server = modern().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha");
    let session = client.open(EVERYTHING).await;
    let call = session.start(json::call("1", "any", "{}"));
    let held = server.called("any").await;
    server.change(|habits| habits.modern = false);
    let refusal = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"unsupported","data":{"supported":["2025-11-25"]}}}"#;
    let refusal = json::with_id(refusal, &held.id());
    held.respond(400, "application/json", &refusal);
    assert_eq!(call.await.unwrap().status, 404);
    client.open(EVERYTHING).await.works().await;
}

/// `check --probe` tells each server's era, versions and capabilities as found, leaves no session behind,
/// and fails when a server does not answer.
#[tokio::test]
async fn check_probes_every_server() {
    let (old, new) = (Server::start().await, modern().await);
    let setup = Setup::new()
        .server("new", &new)
        .server("old", &old)
        .server_at("down", "http://127.0.0.1:9/mcp", "");
    let config = setup.write();
    let output = run(&["check", "--config", config.to_str().unwrap(), "--probe"]).await;
    let said = String::from_utf8(output.stdout).unwrap();
    let line = |name: &str| {
        let line = said
            .lines()
            .find(|line| line.starts_with(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("{name} in {said}"))
            .to_owned()
    };
    assert!(
        line("old").starts_with("old: legacy, 2025-11-25; "),
        "{said}"
    );
    assert!(
        line("new").starts_with("new: modern, 2026-07-28; "),
        "{said}"
    );
    assert!(
        line("old").contains("tools") && line("new").contains("tools"),
        "{said}"
    );
    assert_eq!(line("down"), "down: the server is not reachable");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        old.seen()
            .iter()
            .filter(|seen| seen.http == "DELETE")
            .count(),
        1
    );
}
