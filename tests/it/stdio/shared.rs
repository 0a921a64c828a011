//! One process for all callers (`shared: true`).

use super::{Process, command, key_of, people, setup};
use crate::support::{Client, EVERYTHING, Gateway, Session, Setup, json, within};

async fn gateway() -> Gateway {
    gateway_with("").await
}

async fn gateway_with(more: &str) -> Gateway {
    let more = format!("shared: true{more}");
    setup(&[], &more).yaml(&people()).start().await
}

async fn session_of(gateway: &Gateway, name: &str) -> Session {
    let client = Client::new(gateway, "alpha").bearer(&key_of(name));
    client.open(EVERYTHING).await
}

async fn both(gateway: &Gateway) -> (Session, Session) {
    (
        session_of(gateway, "mira").await,
        session_of(gateway, "joris").await,
    )
}

#[tokio::test]
async fn all_callers_use_one_process() {
    let gateway = gateway().await;
    let (mira, joris) = both(&gateway).await;
    let process = Process::of(&mira).await;
    assert_eq!(process, Process::of(&joris).await);
    assert_eq!(mira.delete().await, 200);
    assert_eq!(process, Process::of(&joris).await);
}

#[tokio::test]
async fn callers_may_choose_the_same_ids_and_tokens() {
    let gateway = gateway().await;
    let (mira, joris) = both(&gateway).await;
    let call = |name: &str| {
        let params = format!(
            r#"{{"name":"progress_and_hang","arguments":{{"x":"{name}"}},"_meta":{{"progressToken":7}}}}"#
        );
        json::request("1", "tools/call", &params)
    };
    let mut replies = Vec::new();
    for (session, name) in [(&mira, "mira"), (&joris, "joris")] {
        replies.push((session.post(call(name)).await, name));
    }
    for (reply, name) in &mut replies {
        let progress = reply.json().await;
        assert_eq!(progress["params"]["message"], *name, "{progress}");
        assert_eq!(progress["params"]["progressToken"], 7, "{progress}");
    }
    assert_eq!(mira.text("echo", r#"{"x":"m"}"#).await, r#""m""#);
    assert_eq!(joris.text("echo", r#"{"x":"j"}"#).await, r#""j""#);
}

/// Nobody knows whose it would be.
#[tokio::test]
async fn a_question_is_refused_and_reaches_nobody() {
    let gateway = gateway().await;
    let (mira, joris) = both(&gateway).await;
    let mut others = joris.listen().await;
    let told = mira.text("ask", r#"{"x":"who?"}"#).await;
    assert!(told.starts_with("error"), "{told}");
    // The fence: this goes to all who listen, and is the first thing that comes.
    let mut own = mira.call("9", "changed", "{}").await;
    let told = others.json().await;
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    assert!(own.next().await.contains("list_changed"));
}

#[tokio::test]
async fn a_cancel_is_for_the_call_of_its_own_session() {
    let gateway = gateway().await;
    let (mira, joris) = both(&gateway).await;
    let hanging = [
        mira.start(json::call("5", "hang", "{}")),
        joris.start(json::call("5", "hang", "{}")),
    ];
    let cancel = r#"{"requestId":5}"#;
    mira.works().await;
    mira.notify("notifications/cancelled", cancel).await;
    within("the cancel to arrive", async {
        while mira
            .text("cancelled", "{}")
            .await
            .split_whitespace()
            .count()
            != 1
        {}
    })
    .await;
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Old clients leave when they are answered in a version that they don't know.
#[tokio::test]
async fn nobody_is_answered_in_a_newer_version_than_they_ask_for() {
    let gateway = gateway().await;
    session_of(&gateway, "mira").await;
    let client = Client::new(&gateway, "alpha").bearer(&key_of("joris"));
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = client.open_at(version, EVERYTHING).await;
        assert_eq!(session.version, version);
        session.works().await;
    }
}

#[tokio::test]
async fn a_process_that_has_ended_is_replaced_for_all() {
    let gateway = gateway().await;
    let (mira, joris) = both(&gateway).await;
    // Where what is made up for them goes.
    let _streams = (mira.listen().await, joris.listen().await);
    let process = Process::of(&mira).await;
    process.signal("KILL");
    process.is_gone().await;
    let next = Process::of(&joris).await;
    assert_ne!(next, process);
    assert_eq!(next, Process::of(&mira).await);
}

#[tokio::test]
async fn the_process_stops_when_nobody_has_used_it_for_a_while() {
    let setup = Setup::new().program("alpha", &command(&["legacy"]), "era: legacy, shared: true");
    let gateway = setup.yaml("sessions: { idle: 1s }").start().await;
    let session = super::open(&gateway).await;
    let process = Process::of(&session).await;
    session.delete().await;
    process.is_gone().await;
    super::open(&gateway).await.works().await;
}
