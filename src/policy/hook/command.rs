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
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::excerpt::excerpt;
use super::{HookError, MAX_OUTPUT, Reply};
use crate::upstream::command::{Command, Group};

/// Runs a command, until it has answered or `gone` says that nobody waits for it any more. `place` is given
/// back when nothing is left of it.
pub(super) async fn run(
    command: Arc<Command>,
    input: Bytes,
    gone: CancellationToken,
    place: OwnedSemaphorePermit,
) -> Result<Reply, HookError> {
    let mut group = command.start()?;
    let reply = tokio::select! {
        reply = talk(&command, &mut group, &input) => reply,
        () = gone.cancelled() => Err(HookError::Stopped),
    };
    if !group.end().await {
        tracing::warn!(
            hook = command.program(),
            "a hook was killed and does not end"
        );
    }
    drop(place);
    reply
}

async fn talk(command: &Command, group: &mut Group, input: &[u8]) -> Result<Reply, HookError> {
    let stdin = group.stdin();
    let stdout = group.stdout();
    let stderr = group.stderr();
    let tell = async {
        if let Some(mut stdin) = stdin {
            // A hook need not read what it does not want to know.
            let _unread = stdin.write_all(input).await;
        }
        std::future::pending::<Infallible>().await
    };
    let hear = async {
        tokio::try_join!(
            async { group.ended().await.map_err(HookError::Pipe) },
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
                tracing::debug!(
                    hook = command.program(),
                    said,
                    "a hook wrote to standard error"
                );
            }
            Ok(Reply::Output(output.into()))
        }
        Some(2) => Ok(Reply::Block(said)),
        _ => Err(HookError::Exit { status, said }),
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
