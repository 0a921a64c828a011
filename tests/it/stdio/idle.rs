//! Processes that nobody uses end.

use super::{Process, command, open, setup, visitor};
use crate::support::{Modern, Setup};

const SOON: &str = "sessions: { idle: 1s }";

#[tokio::test]
async fn the_process_of_an_idle_session_ends() {
    let gateway = setup(&[], "").yaml(SOON).start().await;
    let session = open(&gateway).await;
    let process = Process::of(&session).await;
    process.is_gone().await;
    assert_eq!(session.call("1", "pid", "{}").await.status, 404);
    gateway
        .audited("the end", |line| {
            line["type"] == "session.closed" && line["reason"] == "idle"
        })
        .await;
}

#[tokio::test]
async fn the_process_of_a_modern_client_ends_and_the_next_request_starts_another() {
    for era in ["legacy", "modern"] {
        let words = command(if era == "legacy" {
            &["legacy"]
        } else {
            &["modern"]
        });
        let gateway = Setup::new()
            .program("alpha", &words, &format!("era: {era}"))
            .yaml(SOON)
            .start()
            .await;
        let client = visitor(&gateway);
        let process = Process::read(&client.text("pid", "{}").await);
        process.is_gone().await;
        assert_ne!(process, Process::read(&client.text("pid", "{}").await));
    }
}

/// Who waits for an answer uses the process.
#[tokio::test]
async fn a_process_with_work_to_do_is_not_idle() {
    let words = command(&["modern"]);
    let gateway = Setup::new()
        .program("alpha", &words, "era: modern")
        .program("beta", &words, "era: modern")
        .yaml("sessions: { idle: 500ms }")
        .start()
        .await;
    let (alpha, beta) = (visitor(&gateway), Modern::new(&gateway, "beta"));
    let params = r#"{"notifications":{"toolsListChanged":true}}"#;
    let mut listening = alpha
        .request("1", "subscriptions/listen", params)
        .send()
        .await;
    listening.next().await;
    let process = Process::read(&alpha.text("pid", "{}").await);
    // Twice somebody who came later has been idle for too long.
    for _ in 0..2 {
        Process::read(&beta.text("pid", "{}").await).is_gone().await;
    }
    assert!(process.runs());
    drop(listening);
    process.is_gone().await;
}
