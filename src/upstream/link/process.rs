//! A server that is a program: a link over its standard input and output (2024-11-05 … 2026-07-28
//! transports/stdio).
//!
//! # Invariants
//! - One task starts a process, serves its pipes, and does not end before the process has: first its input
//!   is closed, then it is asked to end, then it is killed, with all that it has started.
//! - What it has written before it ended is read.
//! - What it writes to standard error goes into the log, so many lines in a second, each of a bounded length.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{FusedFuture as _, FutureExt as _};
use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use super::lines::{Line, Lines};
use super::{Intake, Service};
use crate::config::ServerName;
use crate::upstream::breaker::Breaker;
use crate::upstream::command::Group;
use crate::upstream::warden::Watch;

/// How long a process may take to end when its input is closed, and then when it is asked to.
const STEP: Duration = Duration::from_secs(2);

/// How long what a process wrote at last is waited for: others may hold its pipes.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Lines of standard error that are logged in a second, and how long they may be.
const LOGGED: u32 = 20;
const LOGGED_LENGTH: usize = 1024;

/// A process that runs.
#[derive(Debug)]
pub(in crate::upstream) struct Process {
    pub(in crate::upstream) server: ServerName,
    pub(in crate::upstream) group: Group,
    /// The largest line.
    pub(in crate::upstream) limit: usize,
    /// Its place among the processes of the server.
    pub(in crate::upstream) place: OwnedSemaphorePermit,
    /// Who kills it when the gateway is killed.
    pub(in crate::upstream) watch: Option<Watch>,
    /// What learns whether the program works.
    pub(in crate::upstream) breaker: Arc<Mutex<Breaker>>,
}

impl Process {
    /// Serves a link until the process has ended or is to end, and ends it.
    pub(in crate::upstream) async fn serve(mut self, service: Service) {
        let Service {
            outbox,
            mut intake,
            closing,
        } = service;
        let id = self.group.id().unwrap_or_default();
        let server = &self.server;
        tracing::info!(%server, process = id, "server process started");
        let (shut, mute) = (CancellationToken::new(), CancellationToken::new());
        let (stdin, stdout) = (self.group.stdin(), self.group.stdout());
        let stderr = self.group.stderr();
        let (status, wanted) = {
            let hear = async {
                hear(stdout, &mut intake, self.limit, &self.breaker).await;
                // It says nothing more, so nobody need wait for it.
                mute.cancel();
            };
            let talk = async {
                tokio::join!(hear, write(stdin, outbox, &shut), log(server, id, stderr));
            };
            let mut talk = std::pin::pin!(talk.fuse());
            let (ended, wanted) = tokio::select! {
                biased;
                () = closing.cancelled() => (None, true),
                status = self.group.ended() => (Some(status), false),
                () = talk.as_mut() => (None, false),
                () = mute.cancelled() => (None, false),
            };
            // From here on nothing is sent.
            closing.cancel();
            shut.cancel();
            let status = match ended {
                Some(status) => status,
                None => stop(&mut self.group, talk.as_mut()).await,
            };
            if !talk.is_terminated() {
                let _held_by_others = tokio::time::timeout(LAST_WORDS, talk).await;
            }
            (status, wanted)
        };
        tell(server, id, &status, wanted);
        if !wanted && !intake.spoke {
            self.breaker.lock().bad(now());
        }
        if !self.group.end().await {
            tracing::warn!(server = %self.server, process = id, "a process was killed and does not end");
        }
        // Who learns that it has ended may want its place.
        drop((self.watch, self.place));
        drop(intake);
    }
}

/// Ends a process, one step after the other, while its pipes are still served.
async fn stop(group: &mut Group, talk: impl Future<Output = ()>) -> io::Result<ExitStatus> {
    let ending = async {
        if let Ok(status) = tokio::time::timeout(STEP, group.ended()).await {
            return status;
        }
        group.terminate();
        if let Ok(status) = tokio::time::timeout(STEP, group.ended()).await {
            return status;
        }
        group.kill();
        group.ended().await
    };
    let mut ending = std::pin::pin!(ending);
    tokio::select! {
        status = &mut ending => status,
        () = talk => ending.await,
    }
}

fn tell(server: &ServerName, process: u32, status: &io::Result<ExitStatus>, wanted: bool) {
    match status {
        Ok(status) if wanted => {
            tracing::info!(%server, process, %status, "server process ended");
        }
        Ok(status) => {
            tracing::warn!(%server, process, %status, "the server process has ended by itself");
        }
        Err(error) => {
            tracing::warn!(%server, process, %error, "the server process can't be waited for");
        }
    }
}

/// Writes what is to be sent, until the input is to be closed or nobody reads it any more.
async fn write(stdin: Option<ChildStdin>, mut outbox: Receiver<Bytes>, shut: &CancellationToken) {
    let Some(mut stdin) = stdin else { return };
    let write = async {
        while let Some(line) = outbox.recv().await {
            if stdin.write_all(&line).await.is_err() {
                return;
            }
        }
    };
    let _shut = shut.run_until_cancelled(write).await;
}

/// Takes what the server says, until it has said everything, or something that nobody could be given.
async fn hear(
    stdout: Option<ChildStdout>,
    intake: &mut Intake,
    limit: usize,
    breaker: &Mutex<Breaker>,
) {
    let Some(stdout) = stdout else { return };
    let mut lines = Lines::new(BufReader::new(stdout), limit);
    let mut works = false;
    while let Some(line) = lines.next().await {
        match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => {}
            Line::Whole(line) => intake.take(&line).await,
            Line::TooLong { beginning, end } => {
                if !intake.too_large(&beginning, &end).await {
                    return;
                }
            }
        }
        if intake.spoke && !std::mem::replace(&mut works, true) {
            breaker.lock().good();
        }
    }
}

/// Logs what the server writes to standard error.
async fn log(server: &ServerName, process: u32, stderr: Option<ChildStderr>) {
    let Some(stderr) = stderr else { return };
    let mut lines = Lines::new(BufReader::new(stderr), LOGGED_LENGTH);
    let mut second = now();
    let (mut logged, mut left_out) = (0, 0_u64);
    let tell = |left_out| {
        if left_out > 0 {
            tracing::warn!(%server, process, left_out, "the server writes too much to standard error");
        }
    };
    while let Some(
        Line::Whole(line)
        | Line::TooLong {
            beginning: line, ..
        },
    ) = lines.next().await
    {
        if now().saturating_duration_since(second) >= Duration::from_secs(1) {
            tell(left_out);
            (second, logged, left_out) = (now(), 0, 0);
        }
        if logged == LOGGED {
            left_out += 1;
            continue;
        }
        logged += 1;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if !line.is_empty() {
            tracing::info!(%server, process, stderr = %escaped(line), "the server says");
        }
    }
    tell(left_out);
}

/// A line as a terminal can be shown it. Quotes are harmless there.
fn escaped(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for letter in line.chars() {
        match letter {
            '"' | '\'' => shown.push(letter),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}

#[expect(
    clippy::disallowed_methods,
    reason = "log lines are paced by the clock on the wall"
)]
fn now() -> Instant {
    Instant::now()
}
