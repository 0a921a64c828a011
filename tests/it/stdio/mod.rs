//! Servers that are programs. The program is `server.sh` beside this file, in bash: what its tools do is
//! written there.

mod asking;
mod crashes;
mod floods;
mod framing;
mod idle;
mod leaving;
mod limits;
mod logs;
mod modern;
mod owners;
mod probing;
mod shared;
mod starting;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Client, EVERYTHING, Gateway, Modern, Session, Setup, token, within};

/// The words of its command, with these arguments.
fn command(arguments: &[&'static str]) -> Vec<&'static str> {
    const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stdio/server.sh");
    let mut words = vec!["bash", SERVER];
    words.extend(arguments);
    words
}

/// A gateway with a legacy program behind it as `alpha`.
async fn legacy() -> Gateway {
    legacy_with(&[], "").await
}

/// The same with these habits and keys.
async fn legacy_with(habits: &[&'static str], more: &str) -> Gateway {
    setup(habits, more).start().await
}

/// What becomes such a gateway.
fn setup(habits: &[&'static str], more: &str) -> Setup {
    let words = [&["legacy"], habits].concat();
    Setup::new().program("alpha", &command(&words), &merged("era: legacy", more))
}

/// A gateway with a modern program behind it as `alpha`.
async fn modern_with(habits: &[&'static str], more: &str) -> Gateway {
    let words = [&["modern"], habits].concat();
    let more = merged("era: modern", more);
    let setup = Setup::new().program("alpha", &command(&words), &more);
    setup.start().await
}

fn merged(first: &str, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { ", " };
    format!("{first}{comma}{more}")
}

/// A session that declared every capability.
async fn open(gateway: &Gateway) -> Session {
    Client::new(gateway, "alpha").open(EVERYTHING).await
}

/// A modern client that can be asked everything.
fn visitor(gateway: &Gateway) -> Modern {
    Modern::new(gateway, "alpha")
}

/// People with keys.
const PEOPLE: [&str; 3] = ["mira", "joris", "noor"];

/// YAML that knows them.
fn people() -> String {
    let keys = PEOPLE.map(|name| {
        let digest = token::sha256(&key_of(name));
        format!("{{ name: {name}, sha256: \"{digest}\" }}")
    });
    format!("auth: {{ api_keys: [ {} ] }}", keys.join(", "))
}

fn key_of(name: &str) -> String {
    format!("{name}-0123456789abcdef")
}

/// A process that a test knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Process(u32);

impl Process {
    /// The one that serves a session.
    async fn of(session: &Session) -> Self {
        Self::read(&session.text("pid", "{}").await)
    }

    fn read(text: &str) -> Self {
        Self(text.trim().parse().unwrap())
    }

    /// Those whose numbers are in a text.
    fn all(text: &str) -> Vec<Self> {
        text.split_whitespace().map(Self::read).collect()
    }

    /// Whether it is there, other than as a zombie.
    fn runs(self) -> bool {
        self.state().is_some_and(|state| state != 'Z')
    }

    /// Its state as the system names it: `S` sleeps, `T` is stopped, `Z` is a zombie. None: it is gone.
    fn state(self) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?;
        let (_, after) = stat.rsplit_once(')')?;
        after.trim().chars().next()
    }

    /// Waits until nothing is left of it, not even a zombie that somebody would have to bury.
    async fn is_gone(self) {
        within(
            &format!("{self:?} to end"),
            until(|| self.state().is_none()),
        )
        .await;
    }

    /// Waits until it does not run any more. Whoever is in its place may be slow to bury it.
    async fn ends(self) {
        within(&format!("{self:?} to end"), until(|| !self.runs())).await;
    }

    /// Sends it a signal.
    fn signal(self, name: &str) {
        let status = std::process::Command::new("kill")
            .args([format!("-{name}"), self.0.to_string()])
            .status();
        assert!(status.unwrap().success(), "{name} to {self:?}");
    }
}

/// Waits for something that nobody is told of.
async fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A file in which the program writes down its processes.
#[derive(Debug)]
struct Starts(PathBuf);

impl Starts {
    fn within(folder: &Path) -> Self {
        Self(folder.join("starts"))
    }

    /// The variable that names it, as YAML.
    fn env(&self) -> String {
        format!("env: {{ STARTS: \"{}\" }}", self.0.display())
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// The processes so far.
    fn all(&self) -> Vec<Process> {
        Process::all(&std::fs::read_to_string(&self.0).unwrap_or_default())
    }
}

/// The children that a process has at this moment, by its number.
fn children(parent: u32) -> Vec<Process> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).unwrap();
    let lists = tasks.map(|task| task.unwrap().path().join("children"));
    lists
        .flat_map(|list| Process::all(&std::fs::read_to_string(list).unwrap_or_default()))
        .collect()
}
