//! A hook that is a command: started without a shell, told on standard input, heard on standard output.
//!
//! Its exit code says how to read it. 0: its output is the answer. 2: it blocks, and standard error
//! says why. Anything else, and an end by a signal: it failed.
//!
//! # Invariants
//! - The command leads a process group of its own, and whoever is in it is killed when the command has
//!   ended, has written too much, or is no longer waited for. Only a process that leaves the group
//!   survives, and it holds nobody up beyond the hook's time.
//! - What was started is reaped by the task that started it; that task is never dropped half-way.
//! - Whether the command reads its input makes no difference.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::excerpt::excerpt;
use super::{HookError, MAX_OUTPUT, Reply};

/// A command with its arguments, and what it finds around it.
#[derive(Clone)]
pub struct Command {
    program: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    folder: PathBuf,
}

impl Command {
    /// A program, with its arguments, that runs in this folder. A program with a slash in it is taken
    /// from there, any other from `PATH`.
    pub fn new(program: &str, arguments: Vec<String>, folder: &Path) -> Self {
        // The folder of a file that is named without one.
        let here = folder.as_os_str().is_empty();
        let folder = if here { Path::new(".") } else { folder };
        Self {
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
        }
    }

    /// One variable more in its environment. It finds no others but these: those of [`INHERITED`] that
    /// the gateway has, and `CLAUDE_PROJECT_DIR`, which is the folder.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The program, as the configuration names it.
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// The folder that it runs in.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs it, until it has answered or `gone` says that nobody waits for it any more. `place` is given
    /// back when nothing is left of it.
    pub(super) async fn run(
        self: Arc<Self>,
        input: Bytes,
        gone: CancellationToken,
        place: OwnedSemaphorePermit,
    ) -> Result<Reply, HookError> {
        let mut group = Group::start(&self)?;
        let reply = tokio::select! {
            reply = self.talk(&mut group, &input) => reply,
            () = gone.cancelled() => Err(HookError::Stopped),
        };
        if !group.end().await {
            tracing::warn!(hook = self.program, "a hook was killed and does not end");
        }
        drop(place);
        reply
    }

    async fn talk(&self, group: &mut Group, input: &[u8]) -> Result<Reply, HookError> {
        let stdin = group.child.stdin().take();
        let stdout = group.child.stdout().take();
        let stderr = group.child.stderr().take();
        let tell = async {
            if let Some(mut stdin) = stdin {
                // A hook need not read what it does not want to know.
                let _unread = stdin.write_all(input).await;
            }
            std::future::pending::<Infallible>().await
        };
        let hear = async {
            tokio::try_join!(
                group.ended(),
                read(stdout, "standard output"),
                read(stderr, "standard error"),
            )
        };
        let (status, output, errors) = tokio::select! {
            heard = hear => heard?,
            never = tell => match never {},
        };
        let said = excerpt(&errors);
        match status.code() {
            Some(0) => {
                if !said.is_empty() {
                    tracing::debug!(hook = self.program, said, "a hook wrote to standard error");
                }
                Ok(Reply::Output(output.into()))
            }
            Some(2) => Ok(Reply::Block(said)),
            _ => Err(HookError::Exit { status, said }),
        }
    }

    fn wrapped(&self) -> CommandWrap {
        let mut program = PathBuf::from(&self.program);
        if self.program.contains('/') {
            // Systems differ in where they look for a relative path when a folder is given too.
            program = self.folder.join(program);
        }
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let mut wrapped = CommandWrap::with_new(program, |command| {
            command
                .args(&self.arguments)
                .current_dir(&self.folder)
                .env_clear()
                .envs(inherited)
                .env("CLAUDE_PROJECT_DIR", &self.folder)
                .envs(self.environment.iter().map(|(name, value)| (name, value)))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        });
        wrapped.wrap(KillOnDrop).wrap(ProcessGroup::leader());
        wrapped
    }

    /// What to say when it could not be started.
    fn not_started(&self, source: io::Error) -> HookError {
        let path = self.folder.join(&self.program);
        let why = match source.kind() {
            io::ErrorKind::NotFound if !self.folder.is_dir() => {
                "the folder that it is to run in does not exist"
            }
            io::ErrorKind::NotFound if !self.program.contains('/') => {
                "there is no such program on PATH"
            }
            io::ErrorKind::NotFound if path.exists() => {
                "the interpreter that its first line names does not exist"
            }
            io::ErrorKind::NotFound => "there is no such file",
            io::ErrorKind::PermissionDenied if path.is_dir() => "it is a folder",
            io::ErrorKind::PermissionDenied => "it is not executable",
            _ => "the system refuses to run it",
        };
        HookError::Start {
            program: self.program.clone(),
            why,
            source,
        }
    }
}

/// A running command and whatever it has started since.
struct Group {
    child: Box<dyn ChildWrapper>,
    killed: bool,
}

impl Group {
    fn start(command: &Command) -> Result<Self, HookError> {
        let started = command.wrapped().spawn();
        Ok(Self {
            child: started.map_err(|error| command.not_started(error))?,
            killed: false,
        })
    }

    /// Waits until the command itself has ended, and ends what it has left behind: that could hold its
    /// output open, and nobody would ever end it.
    async fn ended(&mut self) -> Result<ExitStatus, HookError> {
        // Not the group's own wait: that one waits for those who are left behind, too.
        let status = self.child.inner_mut().wait().await;
        self.kill();
        status.map_err(HookError::Pipe)
    }

    /// Kills them all, and once only: as soon as the command is reaped and nobody else is left, the
    /// number of the group can become that of another.
    fn kill(&mut self) {
        if !std::mem::replace(&mut self.killed, true) {
            let _nobody_left = self.child.start_kill();
        }
    }

    /// Leaves nobody running, and no zombies. Whether it could.
    async fn end(mut self) -> bool {
        self.kill();
        let reaped = tokio::time::timeout(REAP, self.child.wait()).await;
        reaped.is_ok()
    }
}

/// The runtime may end before the task does.
impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads one of the command's outputs to its end, or to the size that is too much.
async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    name: &'static str,
) -> Result<Vec<u8>, HookError> {
    let mut all = Vec::new();
    if let Some(pipe) = pipe {
        // One byte more than allowed, to tell an output of exactly that size from a larger one.
        let mut pipe = pipe.take(MAX_OUTPUT as u64 + 1);
        pipe.read_to_end(&mut all).await.map_err(HookError::Pipe)?;
    }
    if all.len() > MAX_OUTPUT {
        return Err(HookError::TooMuch(name));
    }
    Ok(all)
}

/// Names what runs. Arguments and variables can hold secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// The variables of the gateway's environment that a command finds in its own.
pub const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// Time for the killed to end.
const REAP: Duration = Duration::from_secs(5);
