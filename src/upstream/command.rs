//! How a program is started: without a shell, in an environment that is written down, and so that nothing
//! of it is left behind.
//!
//! # Invariants
//! - A program leads a process group of its own, and whoever is in it when the program has ended, or is to
//!   end, is killed. Only a process that leaves the group survives.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::config::Program;

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

    /// As a configuration says it.
    pub fn configured(program: &Program) -> Self {
        let (name, arguments) = program
            .argv
            .split_first()
            .map_or(("", &[][..]), |(name, arguments)| {
                (name.as_str(), arguments)
            });
        let folder = program.cwd.as_deref().unwrap_or_else(|| Path::new("."));
        let command = Self::new(name, arguments.to_vec(), folder);
        let variables = program.env.iter();
        variables.fold(command, |it, (name, value)| it.env(name, value))
    }

    /// One variable more in its environment. It finds no others but these, and those of [`INHERITED`] that
    /// the gateway has.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The program, as the configuration names it.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The folder that it runs in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts it, with pipes to all three of its standard streams.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(&self) -> Result<Group, NotStarted> {
        let started = self.wrapped().spawn();
        Ok(Group {
            child: started.map_err(|error| self.not_started(error))?,
            killed: false,
        })
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
                .envs(self.environment.iter().map(|(name, value)| (name, value)))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        });
        wrapped.wrap(KillOnDrop).wrap(ProcessGroup::leader());
        wrapped
    }

    /// What to say when it could not be started.
    fn not_started(&self, source: io::Error) -> NotStarted {
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
        NotStarted {
            program: self.program.clone(),
            why,
            source,
        }
    }
}

/// A program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("`{program}` can't be started: {why}")]
pub struct NotStarted {
    /// The program, as it is configured.
    pub program: String,
    /// What is wrong, plainly.
    pub why: &'static str,
    /// What the system says.
    pub source: io::Error,
}

/// A running program and whatever it has started since.
pub struct Group {
    child: Box<dyn ChildWrapper>,
    killed: bool,
}

impl Group {
    /// The number of the process, and of its group.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Its standard input. Once.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin().take()
    }

    /// Its standard output. Once.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout().take()
    }

    /// Its standard error. Once.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr().take()
    }

    /// Waits until the program itself has ended, and ends what it has left behind: that could hold its
    /// output open, and nobody would ever end it.
    ///
    /// # Errors
    /// When the system does not say.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        // Not the group's own wait: that one waits for those who are left behind, too.
        let status = self.child.inner_mut().wait().await;
        self.kill();
        status
    }

    /// Asks them all to end.
    pub fn terminate(&self) {
        if !self.killed {
            let _nobody_left = self.child.signal(SIGTERM);
        }
    }

    /// Kills them all, and once only: as soon as the command is reaped and nobody else is left, the
    /// number of the group can become that of another.
    pub fn kill(&mut self) {
        if !std::mem::replace(&mut self.killed, true) {
            let _nobody_left = self.child.start_kill();
        }
    }

    /// Leaves nobody running, and no zombies. False when the killed do not end.
    pub async fn end(mut self) -> bool {
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

/// Names what runs. Arguments and variables can hold secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.id()).finish()
    }
}

/// The variables of the gateway's environment that a program finds in its own.
pub const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// The signal that asks a process to end (POSIX `<signal.h>`).
const SIGTERM: i32 = 15;

/// Time for the killed to end.
const REAP: Duration = Duration::from_secs(5);
