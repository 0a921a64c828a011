//! Programs that are asked before and after the person.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Asking, CANCEL, DECLINE, ENTITY, RIGHT};
use crate::support::{Client, EVERYTHING, Server, Setup, json};

/// A server with a hook at this moment that is this script.
async fn with_hook(when: &str, script: &str, more: &str) -> Asking {
    let server = Server::start().await;
    let setup = Setup::new();
    let path = write(setup.folder(), script);
    let policy = format!(
        "{{ questions: {{ hooks: {{ {when}: {{ command: [\"{}\"]{more} }} }} }} }}",
        path.display()
    );
    let gateway = setup.server_with("memory", &server, &policy).start().await;
    let session = Client::new(&gateway, "memory").open(EVERYTHING).await;
    Asking::by(server, gateway, session).await
}

fn write(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("hook.sh");
    std::fs::write(&path, format!("#!/usr/bin/env bash\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Fills in for one tool, and leaves the others to the person.
const FILLS: &str = r#"
if [ "$(jq -r .tool_name)" = mcp__memory__create ]; then
  echo '{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{"name":"hook","size":3}}}'
fi"#;

#[tokio::test]
async fn a_hook_fills_in() {
    let it = with_hook("before", FILLS, "").await;
    it.elicit("7", ENTITY).await;
    it.answered(
        "7",
        r#"{"action":"accept","content":{"name":"hook","size":3}}"#,
    )
    .await;
    let record = it
        .gateway
        .audited("the answer", |line| line["type"] == "question.answered");
    assert_eq!(record.await["decided_by"], "before");
    it.ends_quietly().await;
}

/// What a hook fills in has to fit as well; if it does not, the person is asked.
#[tokio::test]
async fn what_a_hook_fills_in_must_fit() {
    let mut it = with_hook("before", &FILLS.replace("3}", "0}"), "").await;
    it.elicit("7", ENTITY).await;
    let question = it.reply.question("elicitation/create").await;
    it.session.answer(&question, RIGHT).await;
    it.answered("7", RIGHT).await;
    it.ends_quietly().await;
}

/// No opinion: the person is asked.
#[tokio::test]
async fn a_hook_without_an_opinion() {
    let mut it = with_hook("before", "cat >/dev/null", "").await;
    it.elicit("7", ENTITY).await;
    let question = it.reply.question("elicitation/create").await;
    it.session.answer(&question, RIGHT).await;
    it.answered("7", RIGHT).await;
    it.ends_quietly().await;
}

/// A hook that hangs has its time, and then what the operator said for that.
#[tokio::test]
async fn a_hook_that_hangs() {
    let it = with_hook("before", "sleep 1000", ", timeout: 200ms, on_error: cancel").await;
    it.elicit("7", ENTITY).await;
    it.answered("7", CANCEL).await;
    it.ends_quietly().await;
}

/// A hook that fails, talks nonsense or floods: the person is asked, as the operator said.
#[tokio::test]
async fn hooks_that_are_of_no_use() {
    for script in ["exit 1", "echo junk", "cat /dev/zero"] {
        let mut it = with_hook("before", script, ", on_error: ask").await;
        it.elicit("7", ENTITY).await;
        it.reply.question("elicitation/create").await;
    }
}

/// While a hook thinks, other messages of the call pass, and the server may withdraw.
#[tokio::test]
async fn a_hook_holds_nobody_up() {
    let mut it = with_hook("before", "sleep 1000", ", timeout: 10m").await;
    it.elicit("7", ENTITY).await;
    let notice = json::notice("notifications/message", r#"{"data":1}"#);
    it.stream.send(&notice).await;
    assert_eq!(it.reply.next().await, notice);
    it.stream
        .send(&json::notice(
            "notifications/cancelled",
            r#"{"requestId":7}"#,
        ))
        .await;
    it.gateway
        .audited("the end", |line| {
            line["type"] == "question.answered" && line["outcome"] == "cancelled"
        })
        .await;
    it.session.works().await;
}

/// The session ends while a hook thinks: the server has its answer, and no process is left.
#[tokio::test]
async fn a_session_that_ends_meanwhile() {
    let it = with_hook("before", "exec sleep 4321.5", ", timeout: 10m").await;
    it.elicit("7", ENTITY).await;
    while !runs("4321.5") {
        tokio::task::yield_now().await;
    }
    assert!(it.session.delete().await.is_success());
    it.server.error_to("7").await;
    while runs("4321.5") {
        tokio::task::yield_now().await;
    }
}

/// Whether a process with this argument runs.
fn runs(argument: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().any(|entry| {
        let line = std::fs::read(entry.unwrap().path().join("cmdline")).unwrap_or_default();
        let mut arguments = line.split(|byte| *byte == 0);
        arguments.next() == Some(b"sleep") && arguments.next() == Some(argument.as_bytes())
    })
}

/// After the person: trims the name, and rejects short ones.
const TRIMS: &str = r#"
in=$(cat)
name=$(jq -r '.user_response.name | gsub("^ +| +$"; "")' <<<"$in")
if [ ${#name} -lt 3 ]; then
  echo '{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"decline"}}'
else
  jq -nc --arg name "$name" '{hookSpecificOutput:{hookEventName:"ElicitationResult",action:"accept",content:{name:$name}}}'
fi"#;

#[tokio::test]
async fn a_hook_changes_or_rejects_an_answer() {
    for (name, taken) in [
        (
            "  Mira ",
            r#"{"action":"accept","content":{"name":"Mira"}}"#,
        ),
        (" x ", DECLINE),
    ] {
        let mut it = with_hook("after", TRIMS, "").await;
        it.elicit("7", ENTITY).await;
        let question = it.reply.question("elicitation/create").await;
        let answer = format!(r#"{{"action":"accept","content":{{"name":"{name}"}}}}"#);
        assert_eq!(it.session.answer(&question, &answer).await, 202);
        it.answered("7", taken).await;
        it.ends_quietly().await;
    }
}

/// What a person refused no program agrees to.
#[tokio::test]
async fn a_hook_can_not_agree_for_who_declined() {
    let agrees = r#"cat >/dev/null; echo '{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"accept","content":{"name":"hook"}}}'"#;
    let mut it = with_hook("after", agrees, ", on_error: cancel").await;
    it.elicit("7", ENTITY).await;
    let question = it.reply.question("elicitation/create").await;
    it.session.answer(&question, DECLINE).await;
    it.answered("7", CANCEL).await;
    it.ends_quietly().await;
}
