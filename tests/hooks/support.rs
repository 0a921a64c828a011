//! What the tests are told with: a folder of scripts, hooks that run them, a question to ask.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use contraflow::policy::hook::{Event, Hook, HookError, Opinion, Question, Target};
use contraflow::upstream::command::Command;
use tempfile::TempDir;
use tokio_util::task::TaskTracker;

use crate::logs;

/// How long anything that must happen may take. It decides nothing, it only ends a test that would
/// hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Time for a hook that is not going to answer.
pub(crate) const SOON: Duration = Duration::from_millis(300);

/// A folder with scripts in it. The processes that come from them carry its mark.
#[derive(Debug)]
pub(crate) struct Scripts {
    folder: TempDir,
    pub(crate) tasks: TaskTracker,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        logs::listen();
        Self {
            folder: tempfile::tempdir().unwrap(),
            tasks: TaskTracker::new(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file that can be executed.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let mut shell = Process::new("bash")
            .args(["-c", "cat >\"$0\" && chmod +x \"$0\""])
            .arg(self.path().join(name))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = shell.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        drop(stdin);
        assert!(shell.wait().unwrap().success());
    }

    /// The command that a file of the folder is.
    pub(crate) fn command(&self, program: &str) -> Command {
        Command::new(program, Vec::new(), self.path()).env(MARK, &self.mark())
    }

    /// A hook that runs a bash script with this body.
    pub(crate) fn hook(&self, body: &str, within: Duration) -> Hook {
        self.write("hook.sh", &format!("#!/usr/bin/env bash\n{body}\n"));
        self.run(self.command("./hook.sh"), within)
    }

    pub(crate) fn run(&self, command: Command, within: Duration) -> Hook {
        Hook::new(Target::Command(Arc::new(command)), within, &self.tasks)
    }

    /// What a file of the folder holds, once it holds a line.
    pub(crate) async fn line_of(&self, name: &str) -> String {
        let path = self.path().join(name);
        let line = || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            text.split_once('\n').map(|(line, _)| line.to_owned())
        };
        eventually(&format!("a line in {name}"), line).await
    }

    /// Waits until nothing runs any more that came from here, and no child of ours is a zombie.
    pub(crate) async fn nothing_left(&self) {
        let mark = format!("{MARK}={}", self.mark());
        let none = || {
            let left = processes().any(|process| process.is_zombie_of_ours() || process.has(&mark));
            (!left).then_some(())
        };
        eventually("no process of the hook to be left", none).await;
    }

    fn mark(&self) -> String {
        self.path().to_string_lossy().into_owned()
    }
}

/// The variable by which the processes of one test are found.
const MARK: &str = "HOOK_TEST";

/// A process of this machine.
struct Found(PathBuf);

fn processes() -> impl Iterator<Item = Found> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .map(|entry| Found(entry.path()))
        .filter(|found| found.0.join("stat").exists())
}

impl Found {
    /// Whether this stands in the environment that it was started with.
    fn has(&self, variable: &str) -> bool {
        let environment = fs::read(self.0.join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == variable.as_bytes())
    }

    fn is_zombie_of_ours(&self) -> bool {
        let stat = fs::read_to_string(self.0.join("stat")).unwrap_or_default();
        // The name, in parentheses, may hold anything.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let mut parts = rest.split(' ');
        let zombie = parts.next() == Some("Z");
        zombie && parts.next() == Some(&std::process::id().to_string())
    }
}

/// Waits until there is something.
pub(crate) async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            // Neither files nor processes of others tell that they changed.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(what, found).await
}

/// Waits for `future`, and says what was awaited when it does not come.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"))
}

/// A question of the tool `book_table` of the server `booking`.
pub(crate) const QUESTION: Question<'static> = Question {
    server: "booking",
    tool: Some("book_table"),
    principal: "mira@login.example",
    session: "5f0c",
    params: r#"{"message":"For whom?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"guests":{"type":"integer"}},"required":["name"]}}"#,
};

/// Asks before a person does.
pub(crate) async fn before(hook: &Hook) -> Result<Opinion, HookError> {
    within("the hook", hook.ask(&QUESTION, Event::Before)).await
}

/// Asks after a person answered this.
pub(crate) async fn after(hook: &Hook, user_response: &str) -> Result<Opinion, HookError> {
    let event = Event::After { user_response };
    within("the hook", hook.ask(&QUESTION, event)).await
}

/// The values of an opinion that accepts a form.
#[track_caller]
pub(crate) fn content(opinion: Result<Opinion, HookError>) -> String {
    match opinion {
        Ok(Opinion::Accept(Some(content))) => content,
        other => panic!("not accepted: {other:?}"),
    }
}

/// Whether a file can be executed by somebody.
pub(crate) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).unwrap().permissions().mode() & 0o111 != 0
}

/// These tests say what scripts with `jq` do: without it they can't.
#[track_caller]
pub(crate) fn needs_jq() {
    let found = Process::new("jq")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    assert!(
        found.is_ok_and(|status| status.success()),
        "jq is missing on this machine; on Debian: apt-get install jq"
    );
}
