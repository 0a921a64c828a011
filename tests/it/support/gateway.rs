//! The gateway as a process: started from YAML, watched through its output, ended by signals.
//!
//! # Invariants
//! - The process dies with its `Gateway`, also when the test panics.
//! - What it wrote is kept whole, so that a test can search it for what must not be there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::{Server, within};

/// What a gateway is going to be told.
#[derive(Debug)]
pub(crate) struct Setup {
    servers: String,
    rest: String,
    environment: Vec<(String, String)>,
    audit: bool,
    blocks: Option<u32>,
    folder: Arc<TempDir>,
}

/// A running gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// `http://127.0.0.1:PORT`, as the gateway said it.
    pub(crate) url: String,
    child: Child,
    folder: Arc<TempDir>,
    stdout: Captured,
    stderr: Captured,
}

/// Everything that came out of one pipe so far.
#[derive(Clone, Debug)]
struct Captured {
    text: Arc<Mutex<String>>,
    grown: watch::Receiver<usize>,
}

impl Setup {
    /// A gateway on a free port of loopback, with an audit log.
    pub(crate) fn new() -> Self {
        Self {
            servers: String::new(),
            rest: String::new(),
            environment: Vec::new(),
            audit: true,
            blocks: None,
            folder: Arc::new(tempfile::tempdir().unwrap()),
        }
    }

    /// Puts a scripted server behind it.
    pub(crate) fn server(self, name: &str, server: &Server) -> Self {
        self.server_at(name, &server.url(), "{}")
    }

    /// The same, with more keys of that server as flow YAML: `{ limits: { requests: 5/m } }`.
    pub(crate) fn server_with(self, name: &str, server: &Server, more: &str) -> Self {
        self.server_at(name, &server.url(), more)
    }

    /// Puts whatever listens at `url` behind it.
    pub(crate) fn server_at(mut self, name: &str, url: &str, more: &str) -> Self {
        let more = more
            .trim()
            .trim_start_matches('{')
            .trim_end_matches('}')
            .trim();
        let comma = if more.is_empty() { "" } else { ", " };
        writeln!(self.servers, "  {name}: {{ url: \"{url}\"{comma}{more} }}").unwrap();
        self
    }

    /// Puts a server behind it of which these keys say all, as flow YAML.
    pub(crate) fn server_as(mut self, name: &str, keys: &str) -> Self {
        writeln!(self.servers, "  {name}: {keys}").unwrap();
        self
    }

    /// Puts a program behind it: the words of its command, and more keys as flow YAML without braces.
    pub(crate) fn program(mut self, name: &str, command: &[&str], more: &str) -> Self {
        let command = Value::from(command);
        writeln!(self.servers, "  {name}: {{ command: {command}, {more} }}").unwrap();
        self
    }

    /// More top-level YAML.
    pub(crate) fn yaml(mut self, yaml: &str) -> Self {
        writeln!(self.rest, "{yaml}").unwrap();
        self
    }

    /// A variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves `audit` to the test.
    pub(crate) fn no_audit(mut self) -> Self {
        self.audit = false;
        self
    }

    /// Lets it write files of this many blocks of 512 bytes and no more: a disk that is full.
    pub(crate) fn disk(mut self, blocks: u32) -> Self {
        self.blocks = Some(blocks);
        self
    }

    /// Uses the folder of an earlier gateway: the same audit file goes on.
    pub(crate) fn after(mut self, earlier: &Gateway) -> Self {
        self.folder = Arc::clone(&earlier.folder);
        self
    }

    /// Where files that the configuration names may be put.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the configuration, without starting anything.
    pub(crate) fn write(&self) -> PathBuf {
        let mut text = String::new();
        if !self.rest.contains("listen:") {
            text.push_str("listen: 127.0.0.1:0\n");
        }
        if !self.servers.is_empty() {
            write!(text, "servers:\n{}", self.servers).unwrap();
        }
        text.push_str(&self.rest);
        if self.audit {
            let file = self.folder.path().join("audit.jsonl");
            writeln!(text, "audit: {{ file: \"{}\" }}", file.display()).unwrap();
        }
        let path = self.folder.path().join("gateway.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Starts the gateway and waits until it says where it listens.
    pub(crate) async fn start(self) -> Gateway {
        let config = self.write();
        let mut command = match self.blocks {
            None => binary(),
            // The signal for a file that is too large is ignored, so that a write fails instead.
            Some(blocks) => {
                let mut shell = quiet(Command::new("sh"));
                let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
                shell
                    .arg("-c")
                    .arg(script)
                    .arg(env!("CARGO_BIN_EXE_contraflow"));
                shell
            }
        };
        command.args(["serve", "--config"]).arg(&config);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().unwrap();
        let stdout = Captured::of(child.stdout.take().unwrap());
        let stderr = Captured::of(child.stderr.take().unwrap());
        let url = within("the listening line", stderr.find(listening)).await;
        let Some(url) = url else {
            let config = std::fs::read_to_string(&config).unwrap();
            panic!(
                "the gateway ended:\n{}{}\n--- {config}",
                stdout.text(),
                stderr.text()
            );
        };
        Gateway {
            url,
            child,
            folder: self.folder,
            stdout,
            stderr,
        }
    }

    /// Runs `serve` to its end, for configurations that must not start.
    pub(crate) async fn refused(self) -> Output {
        let config = self.write();
        let mut command = binary();
        command.args(["serve", "--config"]).arg(config);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        within("the gateway to refuse", command.output())
            .await
            .unwrap()
    }
}

/// Runs the command to its end.
pub(crate) async fn run<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Output {
    within("the command to end", binary().args(arguments).output())
        .await
        .unwrap()
}

fn binary() -> Command {
    quiet(Command::new(env!("CARGO_BIN_EXE_contraflow")))
}

/// No logging that the environment asks for, no terminal, all output kept, no survivors.
fn quiet(mut command: Command) -> Command {
    command
        .env_remove("CONTRAFLOW_LOG")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn listening(output: &str) -> Option<String> {
    let (_, after) = output.split_once("listening on ")?;
    let (url, _) = after.split_once(|c: char| c.is_whitespace() || c == '"' || c == '\u{1b}')?;
    url.starts_with("http://").then(|| url.to_owned())
}

impl Captured {
    fn of(mut pipe: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let (grow, grown) = watch::channel(0);
        let copy = Arc::clone(&text);
        tokio::spawn(async move {
            let mut chunk = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
                copy.lock()
                    .push_str(&String::from_utf8_lossy(&chunk[..length]));
                grow.send_modify(|total| *total += length);
            }
        });
        Self { text, grown }
    }

    fn text(&self) -> String {
        self.text.lock().clone()
    }

    /// What `find` finds, or nothing when the pipe closed before.
    async fn find<T>(&self, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut grown = self.grown.clone();
        loop {
            if let Some(found) = find(&self.text.lock()) {
                return Some(found);
            }
            if grown.changed().await.is_err() {
                return find(&self.text.lock());
            }
        }
    }
}

impl Gateway {
    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// Where its audit log is.
    pub(crate) fn audit_file(&self) -> PathBuf {
        self.folder.path().join("audit.jsonl")
    }

    /// The audit log so far, whole lines only.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.audit_file()).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(super::json::parse).collect()
    }

    /// Waits until the audit log has a line that `fits`.
    pub(crate) async fn audited(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.audited_times(what, 1, fits).await.remove(0)
    }

    /// Waits until the audit log has at least `times` lines that fit, and gives them.
    pub(crate) async fn audited_times(
        &self,
        what: &str,
        times: usize,
        fits: impl Fn(&Value) -> bool,
    ) -> Vec<Value> {
        let look = async {
            loop {
                let fitting: Vec<Value> = self.audit().into_iter().filter(&fits).collect();
                if fitting.len() >= times {
                    return fitting;
                }
                // A file tells nobody that it grew.
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let Ok(fitting) = tokio::time::timeout(super::PATIENCE, look).await else {
            panic!(
                "no audit line: {what}. There are:\n{}",
                lines(&self.audit())
            );
        };
        fitting
    }

    /// Everything that it wrote to standard output and standard error so far.
    pub(crate) fn output(&self) -> String {
        self.stdout.text() + &self.stderr.text()
    }

    /// Waits until it has written something that contains `text`.
    pub(crate) async fn says(&self, text: &str) {
        let found = self.stderr.find(|all| all.contains(text).then_some(()));
        assert!(
            within(text, found).await.is_some(),
            "never said {text}: {}",
            self.output()
        );
    }

    /// How much memory it has in use, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let status = self.process("status");
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next());
        kibibytes.unwrap().parse::<usize>().unwrap() * 1024
    }

    /// How many files and sockets it has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(self.process("fd")).unwrap().count()
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("still running")
    }

    fn process(&self, what: &str) -> PathBuf {
        let id = self.id();
        Path::new("/proc").join(id.to_string()).join(what)
    }

    /// Asks it to end (SIGTERM), without waiting.
    pub(crate) async fn terminate(&self) {
        let id = self.child.id().expect("still running");
        let kill = Command::new("sh")
            .arg("-c")
            .arg(format!("kill -TERM {id}"))
            .status();
        assert!(within("kill", kill).await.unwrap().success());
    }

    /// Waits until it has ended.
    pub(crate) async fn exit(&mut self) -> ExitStatus {
        let status = within("the gateway to end", self.child.wait())
            .await
            .unwrap();
        // The pipes close with the process: only then is the output complete.
        for pipe in [&self.stdout, &self.stderr] {
            within("the output to end", pipe.find(|_| None::<()>)).await;
        }
        status
    }

    /// Ends it the hard way.
    pub(crate) async fn kill(&mut self) {
        within("the gateway to die", self.child.kill())
            .await
            .unwrap();
    }
}

/// Shows what the gateway said when the test that used it fails.
#[expect(
    clippy::print_stderr,
    reason = "what a failing test has to say goes to the terminal"
)]
impl Drop for Gateway {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- gateway said:\n{}---", self.output());
        }
    }
}

fn lines(values: &[Value]) -> String {
    values
        .iter()
        .map(Value::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
