//! No process is left behind, however its session ends, and however the gateway does.

use super::{Process, Starts, children, legacy, legacy_with, modern_with, open, setup, visitor};
use crate::support::gateway::run;
use crate::support::{Client, NOTHING, within};

/// The process of a session, and two that it has started: one that ignores being asked to end, and one more.
async fn family(session: &crate::support::Session) -> [Process; 3] {
    let children = [
        session.text("child", "{}").await,
        session.text("child", "{}").await,
    ];
    let [one, two] = children.map(|text| Process::read(&text));
    [Process::of(session).await, one, two]
}

async fn gone(family: [Process; 3]) {
    let [program, children @ ..] = family;
    program.is_gone().await;
    for child in children {
        child.ends().await;
    }
}

/// Reported in openclaw/openclaw#72112 and #86412, NousResearch/hermes-agent#60385 and #22963,
/// DeusData/codebase-memory-mcp#406.
#[tokio::test]
async fn delete_ends_the_process_and_its_children() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let (family, other) = (family(&session).await, open(&gateway).await);
    assert!(family.iter().all(|process| process.runs()));
    assert!(session.delete().await.is_success());
    gone(family).await;
    other.works().await;
}

/// Reported in mcpjungle/MCPJungle#207.
#[tokio::test]
async fn a_program_that_ignores_the_end_of_its_input_and_being_asked_is_killed() {
    let gateway = legacy_with(&["stubborn"], "").await;
    let session = open(&gateway).await;
    let process = Process::of(&session).await;
    assert!(session.delete().await.is_success());
    process.is_gone().await;
}

#[tokio::test]
async fn a_program_that_does_not_even_read_is_killed() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let process = Process::read(&session.text("stubborn", "{}").await);
    assert!(session.delete().await.is_success());
    process.is_gone().await;
}

#[tokio::test]
async fn a_frozen_program_is_killed() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let process = Process::read(&session.text("freeze", "{}").await);
    within(
        "it to freeze",
        super::until(|| process.state() == Some('T')),
    )
    .await;
    assert!(session.delete().await.is_success());
    process.is_gone().await;
}

#[tokio::test]
async fn a_call_in_flight_does_not_keep_the_process() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let family = family(&session).await;
    let call = session.start(crate::support::json::call("1", "hang_and_tell", "{}"));
    let mut reply = call.await.unwrap();
    reply.next().await;
    assert!(session.delete().await.is_success());
    gone(family).await;
    while reply.maybe_next().await.is_some() {}
}

/// Reported in openclaw/openclaw#72112 and #86412, NousResearch/hermes-agent#60385 and #22963,
/// DeusData/codebase-memory-mcp#406.
#[tokio::test]
async fn the_end_of_the_gateway_ends_them_all() {
    let mut gateway = legacy().await;
    let (one, two) = (open(&gateway).await, open(&gateway).await);
    let families = [family(&one).await, family(&two).await];
    let everybody = children(gateway.id());
    gateway.terminate().await;
    assert!(gateway.exit().await.success());
    for family in families {
        gone(family).await;
    }
    // Among them the one that watches for a gateway that is killed.
    for process in everybody {
        process.ends().await;
    }
}

/// Reported in openclaw/openclaw#72112 and #86412, NousResearch/hermes-agent#60385 and #22963,
/// DeusData/codebase-memory-mcp#406.
#[tokio::test]
async fn a_gateway_that_is_killed_leaves_nobody() {
    let mut gateway = legacy_with(&["stubborn"], "").await;
    let (one, two) = (open(&gateway).await, open(&gateway).await);
    let families = [family(&one).await, family(&two).await];
    let everybody = children(gateway.id());
    assert_eq!(everybody.len(), 3, "two programs and who watches");
    gateway.kill().await;
    for process in families.into_iter().flatten().chain(everybody) {
        process.ends().await;
    }
}

#[tokio::test]
async fn a_gateway_that_is_killed_leaves_no_modern_program_either() {
    let mut gateway = modern_with(&["stubborn"], "").await;
    let client = visitor(&gateway);
    let process = Process::read(&client.text("pid", "{}").await);
    let child = Process::read(&client.text("child", "{}").await);
    gateway.kill().await;
    process.ends().await;
    child.ends().await;
}

#[tokio::test]
async fn what_a_program_that_ends_by_itself_leaves_behind_is_killed() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let family = family(&session).await;
    drop(session.call("1", "exit", "{}").await);
    gone(family).await;
}

#[tokio::test]
async fn many_children_end_with_their_program() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    let more = format!("env: {{ LIST: \"{}\" }}", list.display());
    let gateway = legacy_with(&[], &more).await;
    let session = open(&gateway).await;
    let children = Process::all(&session.text("children", "{}").await);
    assert_eq!(children.len(), 60);
    assert!(session.delete().await.is_success());
    for child in children {
        child.ends().await;
    }
}

/// A process that makes itself independent on purpose is not caught (docs/servers.md says so); it must not
/// keep anything of the gateway either.
#[tokio::test]
async fn a_child_that_has_left_the_group_does_not_keep_the_session_from_ending() {
    let gateway = legacy_with(&[], "processes: 1").await;
    let session = open(&gateway).await;
    let process = Process::of(&session).await;
    let runaway = Process::read(&session.text("runaway", "{}").await);
    assert!(session.delete().await.is_success());
    process.is_gone().await;
    let next = Client::new(&gateway, "alpha").open(NOTHING).await;
    next.works().await;
    runaway.signal("KILL");
}

#[tokio::test]
async fn a_check_that_asks_a_program_leaves_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let starts = Starts::within(folder.path());
    let setup = setup(&["stubborn"], &starts.env());
    let config = setup.write();
    let arguments = ["check", "--probe", "--config", config.to_str().unwrap()];
    let output = run(&arguments).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("alpha") && said.contains("legacy"), "{said}");
    assert!(!starts.all().is_empty());
    for process in starts.all() {
        process.is_gone().await;
    }
}
