//! Whose a process is: of one session, or of the requests of one caller.

use super::{Process, key_of, legacy, modern_with, open, people, setup, visitor};
use crate::support::{Client, EVERYTHING, Gateway, Session};

/// Reported in supercorp-ai/supergateway#35, #138 and #182, abir-taheer/mcp-runner#4.
#[tokio::test]
async fn each_session_has_a_process_of_its_own() {
    let gateway = legacy().await;
    let (one, two) = (open(&gateway).await, open(&gateway).await);
    let process = Process::of(&one).await;
    assert_ne!(process, Process::of(&two).await);
    assert_eq!(process, Process::of(&one).await);
}

/// Reported in supercorp-ai/supergateway#35, #138 and #182, abir-taheer/mcp-runner#4.
/// So that no question can be taken for one of another call.
#[tokio::test]
async fn each_call_of_a_stateless_client_has_its_own_where_the_scope_says_so() {
    let gateway = setup(&[], "session_scope: call").start().await;
    let client = visitor(&gateway);
    let one = Process::read(&client.text("pid", "{}").await);
    let two = Process::read(&client.text("pid", "{}").await);
    assert_ne!(one, two);
    one.is_gone().await;
    two.is_gone().await;
}

#[tokio::test]
async fn two_people_never_share_a_process() {
    let gateway = setup(&[], "").yaml(&people()).start().await;
    let of = async |name: &str| {
        let client = visitor(&gateway).bearer(&key_of(name));
        let session = session_of(&gateway, name).await;
        let modern = Process::read(&client.text("pid", "{}").await);
        assert_eq!(modern, Process::read(&client.text("pid", "{}").await));
        [Process::of(&session).await, modern]
    };
    let mut all = [of("mira").await, of("joris").await].concat();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 4, "{all:?}");
}

/// A key of one person opens nothing of another, and so no process of theirs.
#[tokio::test]
async fn the_session_of_another_is_unknown() {
    let gateway = setup(&[], "").yaml(&people()).start().await;
    let session = session_of(&gateway, "mira").await;
    let process = Process::of(&session).await;
    let thief = Session {
        client: session.client.bearer(&key_of("joris")),
        ..session.clone()
    };
    assert_eq!(thief.call("1", "exit", "{}").await.status, 404);
    assert_eq!(thief.delete().await, 404);
    assert_eq!(process, Process::of(&session).await);
}

#[tokio::test]
async fn requests_of_one_caller_to_a_modern_program_go_to_one_process() {
    let words = super::command(&["modern"]);
    let gateway = crate::support::Setup::new()
        .program("alpha", &words, "era: modern")
        .yaml(&people())
        .start()
        .await;
    let [mira, joris] = ["mira", "joris"].map(|name| visitor(&gateway).bearer(&key_of(name)));
    let process = Process::read(&mira.text("pid", "{}").await);
    for _ in 0..3 {
        assert_eq!(process, Process::read(&mira.text("pid", "{}").await));
    }
    assert_ne!(process, Process::read(&joris.text("pid", "{}").await));
    // A legacy client of hers is she, too.
    let session = session_of(&gateway, "mira").await;
    assert_eq!(process, Process::of(&session).await);
}

/// Where nobody is known, nobody has anything in common with anybody.
#[tokio::test]
async fn strangers_share_no_process() {
    let words = super::command(&["modern"]);
    let gateway = crate::support::Setup::new()
        .program("alpha", &words, "era: modern")
        .yaml("auth: open")
        .start()
        .await;
    let client = visitor(&gateway);
    let process = Process::read(&client.text("pid", "{}").await);
    assert_ne!(process, Process::read(&client.text("pid", "{}").await));
    process.is_gone().await;
}

/// All at once, too: they don't race for a process each.
#[tokio::test]
async fn requests_that_come_together_go_to_one_process() {
    let gateway = modern_with(&[], "").await;
    let client = visitor(&gateway);
    let asks = (0..8).map(|_| client.call("1", "pid", "{}").start());
    let mut processes = Vec::new();
    for ask in asks.collect::<Vec<_>>() {
        let text = crate::support::json::text_of(&ask.await.unwrap().next().await);
        processes.push(Process::read(&text));
    }
    processes.dedup();
    assert_eq!(processes.len(), 1, "{processes:?}");
}

async fn session_of(gateway: &Gateway, name: &str) -> Session {
    let client = Client::new(gateway, "alpha").bearer(&key_of(name));
    client.open(EVERYTHING).await
}
