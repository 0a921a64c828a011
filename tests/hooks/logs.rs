//! What an operator reads about hooks.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use crate::support::{PATIENCE, Scripts, after, before};

thread_local! {
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what every thread logs. For the whole process and before anything is logged: a place in the
/// code that logs first while another thread alone listens is not listened to.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_writer(|| ThisThread)
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

struct ThisThread;

impl io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What this thread has logged since it was asked last.
fn logged() -> String {
    String::from_utf8(LOGGED.take()).unwrap()
}

#[tokio::test]
async fn a_failure_is_told_with_the_first_line_of_standard_error() {
    let scripts = Scripts::new();
    let hook = scripts.hook("echo 'no database' >&2; echo more >&2; exit 1", PATIENCE);
    logged();
    assert!(before(&hook).await.is_err());
    let text = logged();
    let told = text.lines().find(|line| line.contains("a hook failed"));
    let told = told.unwrap_or_else(|| panic!("nothing told: {text}"));
    for part in [
        "WARN",
        r#"hook="./hook.sh""#,
        "event=Elicitation",
        r#"server="booking""#,
        "error=it failed (exit status: 1): no database",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[tokio::test]
async fn what_a_person_or_a_hook_wrote_and_what_the_hook_was_given_is_in_no_log() {
    let scripts = Scripts::new();
    let answer = r#"{"action":"accept","content":{"name":"secret-1"}}"#;
    logged();
    for body in [
        r#"echo '{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"accept","content":{"name":"secret-2"}}}'"#,
        "echo secret-2",
        "cat",
    ] {
        scripts.write("hook.sh", &format!("#!/usr/bin/env bash\n{body}\n"));
        let command = scripts.command("./hook.sh").env("KEY", "secret-3");
        let _opinion = after(&scripts.run(command, PATIENCE), answer).await;
    }
    let text = logged();
    assert!(
        text.contains("a hook answered") && text.contains("a hook failed"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
}
