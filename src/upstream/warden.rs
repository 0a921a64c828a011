//! Sees to it that no process of a server outlives the gateway, not even one that is killed: a second, tiny
//! process is told of each, and kills those that are left when it hears nothing more.
//!
//! The system closes the pipe between the two when the gateway is gone, however it went.
//!
//! # Invariants
//! - What is watched is a process group. It is told before the program in it can do anything for long, and
//!   taken back when it has ended: its number could become that of another.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write as _};
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use parking_lot::Mutex;
use process_wrap::std::{CommandWrap, ProcessGroup};

/// The name of the command that [`keep`] belongs to.
pub const COMMAND: &str = "warden";

/// How long the left may take to end by themselves: their input has just been closed.
const GRACE: Duration = Duration::from_secs(1);

/// Who is told of processes.
#[derive(Clone, Debug)]
pub struct Warden(Arc<Mutex<ChildStdin>>);

/// A process group that is killed when the gateway is gone. Dropping it says that it has ended.
#[derive(Debug)]
pub struct Watch {
    warden: Warden,
    group: u32,
}

impl Warden {
    /// Starts one; `gateway` is this program.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(gateway: &Path) -> io::Result<Self> {
        let mut command = CommandWrap::with_new(gateway, |command| {
            command
                .arg(COMMAND)
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
        });
        // In a group of its own: an interrupt at the terminal is not for it.
        let mut child = command.wrap(ProcessGroup::leader()).spawn()?;
        let stdin = child.stdin().take();
        let stdin = stdin.ok_or_else(|| io::Error::other("the warden has no input"))?;
        Ok(Self(Arc::new(Mutex::new(stdin))))
    }

    /// Has a process group watched.
    pub fn watch(&self, group: u32) -> Watch {
        self.say('+', group);
        Watch {
            warden: self.clone(),
            group,
        }
    }

    fn say(&self, what: char, group: u32) {
        // A line is less than a pipe takes at once. Without a warden the gateway works, too.
        if let Err(error) = writeln!(self.0.lock(), "{what}{group}") {
            tracing::debug!(%error, "the warden is gone");
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.warden.say('-', self.group);
    }
}

/// What the second process does: listens to `told` until it ends, and kills who is left.
pub fn keep(told: impl BufRead) {
    let mut groups = BTreeSet::new();
    for line in told.lines() {
        let Ok(line) = line else { break };
        let mut letters = line.chars();
        let what = letters.next();
        // Never one's own group, nor all processes.
        let Some(group) = letters.as_str().parse().ok().filter(|group| *group > 1_i32) else {
            continue;
        };
        match what {
            Some('+') => groups.insert(group),
            _ => groups.remove(&group),
        };
    }
    if groups.is_empty() {
        return;
    }
    let all = |signal| {
        for group in &groups {
            let _ended = killpg(Pid::from_raw(*group), signal);
        }
    };
    all(Signal::SIGTERM);
    std::thread::sleep(GRACE);
    all(Signal::SIGKILL);
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read as _};
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command};

    use super::*;

    /// A process in a group of its own, which has begun.
    fn process(before: &str) -> Child {
        let script = format!("{before} echo ready; exec sleep 1000");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).process_group(0);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 6];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut ready).unwrap();
        child
    }

    /// The signal that ended it.
    fn ended_by(mut child: Child) -> Option<i32> {
        child.wait().unwrap().signal()
    }

    #[test]
    fn when_the_gateway_is_gone_those_are_killed_that_were_not_taken_back() {
        let [left, stubborn] = [process(""), process("trap '' TERM;")];
        let [mut over, mut other] = [process(""), process("")];
        let told = format!(
            "+{}\n+{}\n+{}\n-{}\n+0\n+1\n+-5\n+\nnonsense\n\n+{}x\n",
            left.id(),
            over.id(),
            stubborn.id(),
            over.id(),
            other.id(),
        );
        keep(BufReader::new(told.as_bytes()));
        assert_eq!(ended_by(left), Some(15), "it was asked to end");
        assert_eq!(ended_by(stubborn), Some(9));
        for child in [&mut over, &mut other] {
            assert!(child.try_wait().unwrap().is_none(), "not its business");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
