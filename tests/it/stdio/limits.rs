//! So many processes and no more; and programs that don't read hold up nobody else.

use super::{Process, legacy_with, open, setup, visitor};
use crate::support::client::initialize;
use crate::support::{Client, EVERYTHING, Setup, json, within};

#[tokio::test]
async fn one_process_too_many_is_refused_and_its_place_is_free_again() {
    let gateway = legacy_with(&[], "processes: 2").await;
    let client = Client::new(&gateway, "alpha");
    let (one, two) = (open(&gateway).await, open(&gateway).await);
    let mut reply = client.post(initialize("2025-11-25", EVERYTHING)).await;
    let error = reply.json().await["error"].clone();
    assert_eq!(error["code"], -31006, "{error}");
    assert_eq!(
        error["message"],
        r#"as many processes of the server "alpha" run as may; try again later"#
    );
    assert_eq!(error["data"]["reason"], "capacity", "{error}");
    two.works().await;
    assert!(two.delete().await.is_success());
    for _ in 0..5 {
        let next = open(&gateway).await;
        next.works().await;
        assert!(next.delete().await.is_success());
    }
    one.works().await;
}

#[tokio::test]
async fn the_place_of_a_process_that_ended_by_itself_is_free_again() {
    let gateway = legacy_with(&[], "processes: 1").await;
    for _ in 0..5 {
        let session = open(&gateway).await;
        assert_eq!(session.call("1", "exit", "{}").await.error().await, -31003);
    }
}

/// A process that is only kept for the next request of its caller makes room for another's.
#[tokio::test]
async fn the_process_that_was_not_used_for_the_longest_time_makes_room() {
    let gateway = Setup::new()
        .program(
            "alpha",
            &super::command(&["modern"]),
            "era: modern, processes: 2",
        )
        .yaml(&super::people())
        .start()
        .await;
    let [mira, joris, noor] =
        super::PEOPLE.map(|name| visitor(&gateway).bearer(&super::key_of(name)));
    let hers = Process::read(&mira.text("pid", "{}").await);
    let his = Process::read(&joris.text("pid", "{}").await);
    assert_eq!(hers, Process::read(&mira.text("pid", "{}").await));
    // His was not used for longer.
    noor.works().await;
    assert!(!his.runs() && hers.runs());
    assert_eq!(hers, Process::read(&mira.text("pid", "{}").await));
    // Who waits for something keeps their process.
    let waiting = [&mira, &noor].map(|it| it.call("1", "hang", "{}").start());
    for it in [&mira, &noor] {
        it.works().await;
    }
    let (_, code, reason) = joris.call("2", "pid", "{}").refused().await;
    assert_eq!((code, reason.as_str()), (-31006, "capacity"));
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_program_that_does_not_read_holds_up_nobody_else_and_its_calls_end() {
    let gateway = setup(&[], "").yaml("timeouts: { call: 2s }").start().await;
    let (frozen, other) = (open(&gateway).await, open(&gateway).await);
    let process = Process::read(&frozen.text("freeze", "{}").await);
    within(
        "it to freeze",
        super::until(|| process.state() == Some('T')),
    )
    .await;
    // More than the pipe and the queue take.
    let long = "x".repeat(60_000);
    let calls: Vec<_> = (0..60)
        .map(|id| {
            frozen.start(json::call(
                &id.to_string(),
                "echo",
                &format!(r#"{{"x":"{long}"}}"#),
            ))
        })
        .collect();
    for _ in 0..10 {
        other.works().await;
    }
    for call in calls {
        let mut reply = call.await.unwrap();
        assert_eq!(reply.error().await, -31002);
    }
    other.works().await;
    assert!(frozen.delete().await.is_success());
    process.is_gone().await;
}

/// Reported in supercorp-ai/supergateway#139, anthropics/claude-code#35287.
#[tokio::test]
async fn a_program_that_never_answers_initialize_is_ended() {
    let gateway = setup(&["never-answers"], "processes: 1")
        .yaml("timeouts: { call: 1s }")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha");
    for _ in 0..2 {
        let mut reply = client.post(initialize("2025-11-25", EVERYTHING)).await;
        assert_eq!(reply.error().await, -31002);
    }
}

/// After many sessions nothing is left in the gateway: no descriptor, no child, no zombie.
#[tokio::test]
async fn nothing_leaks_over_many_sessions() {
    let gateway = legacy_with(&[], "").await;
    let round = async || {
        let session = open(&gateway).await;
        session.works().await;
        assert!(session.delete().await.is_success());
    };
    round().await;
    let settled = |gateway: &crate::support::Gateway| {
        (gateway.descriptors(), super::children(gateway.id()).len())
    };
    within(
        "the first to settle",
        super::until(|| settled(&gateway).1 == 1),
    )
    .await;
    let (before, _) = settled(&gateway);
    for _ in 0..60 {
        round().await;
    }
    within(
        "no child to be left",
        super::until(|| settled(&gateway).1 == 1),
    )
    .await;
    within(
        "no descriptor to be left",
        super::until(|| settled(&gateway).0 <= before + 2),
    )
    .await;
}
