//! Hooks: commands and URLs that are asked before a question reaches a person, and after the person
//! answered it.
//!
//! # The contract
//!
//! Hooks speak the contract that Claude Code has for the events `Elicitation` and `ElicitationResult`,
//! so that scripts written for it run here unchanged. Its reference
//! (<https://code.claude.com/docs/en/hooks>) says:
//!
//! - A command gets one JSON object on standard input, a URL the same in the body of a POST.
//! - Exit code 0: standard output is the answer, and empty output is no opinion. 2: the question is
//!   denied, or the person's answer becomes a refusal; standard error says why and standard output is
//!   not read. Any other code: the hook failed and decides nothing.
//! - A URL answers in the body of a 2xx; an empty one is no opinion. Another status, no connection and
//!   no answer in time are failures.
//! - `hookSpecificOutput` names its event in `hookEventName`, an `action` (`accept`, `decline`,
//!   `cancel`) and the `content` of what is accepted. Beside it stand members that every event has:
//!   `continue: false` with `stopReason` ends everything, whatever else is said.
//!
//! It is not told the same everywhere how the form and the person's answer look. Both ways are in what
//! a hook gets:
//!
//! | the reference | others, with scripts in use | here |
//! |---|---|---|
//! | `requested_schema` | `elicitation_form.fields` and `tool_name` | both, and `requestedSchema` as MCP spells it |
//! | `action` and `content` | `user_response` with the values as its members | both; in `user_response` stand `action` and `content` too, where no field has that name |
//! | `session_id`, `transcript_path`, `cwd`, `permission_mode` | | what logs call the session; empty; the folder of the command; `default` |
//!
//! `principal` and `session` are ours.
//!
//! Where it is unclear, this is what was chosen:
//!
//! - A field's `type` is `text`, `number`, `boolean`, `select`, or `multiselect` where several can be
//!   chosen; its `label` is the title, else the name.
//! - `tool_name` has server and tool as they are called. Claude Code puts `_` for what is no letter, digit,
//!   `_` or `-`; two tools could then have one name, and a rule for one of them would hold for both.
//! - The `content` of a hook takes the place of the person's as a whole.
//! - `accept` without `content` is an error before a form, the person's own answer after one, and the
//!   consent to a visit where the question is a URL. `content` without `action` changes what a person
//!   accepted.
//! - `decision: block` with a `reason`, which later versions have for these events too, is as exit code
//!   2, and so is `continue: false`.
//! - Output that is no JSON object is a failure. Claude Code takes it for a remark; but a policy that
//!   can't be read must not pass for one that has no objection.
//! - Other members (`systemMessage`, `suppressOutput`) have no meaning here.
//!
//! # Invariants
//! - A hook has a time, in which waiting for a place counts, and output beyond [`MAX_OUTPUT`] ends it.
//! - At most [`AT_ONCE`] of one hook run at once, unless it was given another number.
//! - No hook decides what becomes of a question when it failed: [`HookError`] goes to whoever asked.

mod command;
mod contract;
mod excerpt;
mod input;
mod output;
mod url;

#[cfg(test)]
mod tests;

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::contract::{Event, Junk, Opinion, Question, Unreadable};
use self::input::Call;
pub use self::url::Endpoint;
use crate::telemetry::{Causes, Pace};
use crate::upstream::client::ClientError;
use crate::upstream::command::{Command, NotStarted};

/// Somebody who is asked what is to become of a question.
#[derive(Debug)]
pub struct Hook {
    target: Target,
    /// What logs call it.
    name: String,
    within: Duration,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    pace: Pace,
}

/// Whom a hook asks.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command.
    Command(Arc<Command>),
    /// A URL.
    Url(Box<Endpoint>),
}

/// Why a hook has no opinion that could be used.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// It was not asked: what it would be told is not clear.
    #[error("the question can't be shown to it")]
    Unreadable(#[from] Unreadable),
    /// It was not asked: others were, all the time.
    #[error("too many of it were running, and none ended within {0:?}")]
    Busy(Duration),
    /// It did not answer in time.
    #[error("it did not answer within {0:?}")]
    Timeout(Duration),
    /// The command could not be started.
    #[error(transparent)]
    Start(#[from] NotStarted),
    /// The system does not let us hear it.
    #[error("it can't be heard")]
    Pipe(#[source] std::io::Error),
    /// It wrote too much.
    #[error("{0} is larger than {MAX_OUTPUT} bytes")]
    TooMuch(&'static str),
    /// The command failed.
    #[error("it failed ({status}){}{said}", if said.is_empty() { "" } else { ": " })]
    Exit {
        /// How it ended.
        status: ExitStatus,
        /// The first line that it wrote to standard error.
        said: String,
    },
    /// The URL is none that can be asked.
    #[error("its URL is no address that can be asked")]
    Address,
    /// The URL gave no answer.
    #[error("it gave no answer")]
    Unreachable(#[source] ClientError),
    /// The URL answered with another status than one of success.
    #[error("it answered HTTP {0}")]
    Status(StatusCode),
    /// It wrote something that is no answer.
    #[error("its output is no answer")]
    Junk(#[from] Junk),
    /// The gateway is ending.
    #[error("the gateway is ending")]
    Stopped,
}

/// What came back, before it is understood.
enum Reply {
    /// What it wrote.
    Output(Bytes),
    /// It blocks, and why.
    Block(String),
}

impl Hook {
    /// A hook that has this time for an answer. What it starts is tracked by `tasks`.
    pub fn new(target: Target, within: Duration, tasks: &TaskTracker) -> Self {
        let target = match target {
            Target::Command(command) => {
                // What scripts of that contract expect to find.
                let folder = command.folder().to_string_lossy().into_owned();
                let command = Command::clone(&command).env("CLAUDE_PROJECT_DIR", &folder);
                Target::Command(Arc::new(command))
            }
            other @ Target::Url(_) => other,
        };
        Self {
            name: match &target {
                Target::Command(command) => command.program().to_owned(),
                Target::Url(endpoint) => endpoint.origin(),
            },
            target,
            within,
            places: Arc::new(Semaphore::new(AT_ONCE)),
            tasks: tasks.clone(),
            pace: Pace::default(),
        }
    }

    /// Lets so many of it run at once, at least one.
    #[must_use]
    pub fn at_once(mut self, most: usize) -> Self {
        self.places = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        self
    }

    /// What logs call it: the program, or where the URL is.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks it. Whoever stops waiting ends it.
    ///
    /// # Errors
    /// When it has no opinion that could be used. That has been logged.
    pub async fn ask(
        &self,
        question: &Question<'_>,
        event: Event<'_>,
    ) -> Result<Opinion, HookError> {
        let asked = self.opinion(*question, event).await;
        match &asked {
            Ok(opinion) => tracing::debug!(hook = self.name, ?event, ?opinion, "a hook answered"),
            Err(error) => {
                if let Some(left_out) = self.pace.now() {
                    let error = Causes(error);
                    tracing::warn!(hook = self.name, ?event, server = question.server, left_out, %error, "a hook failed");
                }
            }
        }
        asked
    }

    async fn opinion(
        &self,
        question: Question<'_>,
        event: Event<'_>,
    ) -> Result<Opinion, HookError> {
        let call = Call::read(question, event)?;
        let cwd = match &self.target {
            Target::Command(command) => command.folder().to_string_lossy(),
            Target::Url(_) => "".into(),
        };
        match self.reply(call.input(&cwd)).await? {
            Reply::Output(output) => Ok(call.expected().opinion(&output)?),
            Reply::Block(reason) => Ok(Opinion::Block(reason)),
        }
    }

    async fn reply(&self, input: Bytes) -> Result<Reply, HookError> {
        let mut over = std::pin::pin!(tokio::time::sleep(self.within));
        let place = tokio::select! {
            place = Arc::clone(&self.places).acquire_owned() => place,
            () = &mut over => return Err(HookError::Busy(self.within)),
        };
        let place = place.map_err(|_| HookError::Stopped)?;
        let reply = async {
            match &self.target {
                Target::Url(endpoint) => endpoint.ask(input, self.within).await,
                Target::Command(command) => {
                    let gone = CancellationToken::new();
                    let run = command::run(Arc::clone(command), input, gone.clone(), place);
                    // In a task of its own: it has to clear up also when nobody waits any more.
                    let _left = gone.drop_guard();
                    let run = self.tasks.spawn(run).await;
                    run.unwrap_or(Err(HookError::Stopped))
                }
            }
        };
        tokio::select! {
            reply = reply => reply,
            () = &mut over => Err(HookError::Timeout(self.within)),
        }
    }
}

/// How many of one hook run at once.
pub const AT_ONCE: usize = 16;

/// The largest output of a hook.
pub const MAX_OUTPUT: usize = 256 * 1024;
