//! What programs write to standard error is in the log: escaped, and so much and no more.

use super::{legacy, legacy_with, open};

#[tokio::test]
async fn standard_error_is_logged_with_the_name_of_the_server() {
    let gateway = legacy_with(&["grumbles"], "").await;
    open(&gateway).await;
    gateway.says("starting up").await;
    let output = gateway.output();
    let line = output.lines().find(|line| line.contains("starting up"));
    let line = line.unwrap();
    assert!(
        line.contains("server=alpha") && line.contains("process="),
        "{line}"
    );
}

#[tokio::test]
async fn what_could_play_tricks_on_a_terminal_is_escaped() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    assert_eq!(session.text("stderr", "{}").await, "done");
    gateway.says(r#"a\u{1b}[31m"b"\0"#).await;
    assert!(!gateway.output().contains("\u{1b}[31m\"b"));
}

#[tokio::test]
async fn a_flood_is_counted_and_not_logged() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    assert_eq!(session.text("stderr_flood", "{}").await, "done");
    assert!(session.delete().await.is_success());
    gateway
        .says("the server writes too much to standard error")
        .await;
    let output = gateway.output();
    assert!(output.len() < 100_000, "{}", output.len());
    assert!(!output.contains(&"y".repeat(2000)));
    session_works_elsewhere(&gateway).await;
}

async fn session_works_elsewhere(gateway: &crate::support::Gateway) {
    open(gateway).await.works().await;
}
