//! Calls of tools that a legacy server runs as tasks and in no other way. A modern client knows nothing
//! of such tasks (those of its revision are another thing), so the gateway drives them: the call creates
//! the task, `tasks/result` waits for its outcome, and questions come in its midst as in any call.
//!
//! # Invariants
//! - What a session's list of tools says is used for that session alone.
//! - A task whose client leaves is cancelled as a task, also when its id is not known yet.
//! - A task is known from the moment in which its call ends: what belongs to it is never another call's.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Mutex, Notify};

use super::super::deliver::Item;
use super::super::exchange::InFlight;
use super::super::now;
use super::super::session::{Face, LiveSession, State};
use super::super::sink::Sink;
use super::attempt::cancel;
use super::call::{Driver, is_own};
use super::pool::Pooled;
use crate::protocol::message::Message;
use crate::protocol::object::edit;
use crate::protocol::parked::{Limits, Output};
use crate::protocol::tasks::{self, Step, Task};

/// The tools of one session that run as tasks only, as far as that is known.
#[derive(Debug, Default)]
pub(in crate::relay) struct Tasked {
    known: Mutex<Option<Known>>,
    /// How often the server said that its list has changed.
    changes: AtomicU64,
    /// Told when a call becomes a task, or a task has a request that waits for it.
    moved: Notify,
}

/// What a task was as a call.
#[derive(Debug)]
pub(in crate::relay) struct Became {
    /// The id under which the session knows the call (JSON text).
    pub(in crate::relay) call: Box<str>,
    /// The call.
    pub(in crate::relay) request: Message,
    /// How many questions it caused.
    pub(in crate::relay) asked: u32,
}

#[derive(Debug)]
struct Known {
    tools: HashSet<String>,
    until: Instant,
    /// The changes that the list has in it.
    changes: u64,
}

/// How long a list is used: a tool that has changed is refused by the server at worst.
const FRESH: Duration = Duration::from_mins(5);

/// How long nothing is asked again of a server that gave no list.
const NO_LIST: Duration = Duration::from_secs(10);

/// How long a server may take to give its whole list.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most pages of one list.
const PAGES: usize = 100;

/// How long a server is waited for that is to cancel a task.
const CANCEL: Duration = Duration::from_secs(5);

impl Pooled {
    /// A call as it has to be sent for this tool: as a task, if the tool runs in no other way.
    pub(super) async fn as_the_tool_runs(&self, call: Message, tool: &str) -> (Message, bool) {
        let offered = self.said(|welcome| tasks::are_offered(welcome.result()));
        if offered != Some(true) || !self.session.runs_as_task(tool).await {
            return (call, false);
        }
        let shared = &self.session.shared;
        let config = &shared.config.timeouts;
        let patience = shared.patience(self.session.server().name());
        let life = patience.call + config.question * (Limits::default().rounds + 1);
        let task = tasks::as_task(call.params().unwrap_or("{}"), life)
            .map(|params| call.with_body(call.id().unwrap_or("null"), &params))
            .and_then(|call| Message::parse(&call).ok());
        match task {
            Some(task) => (task, true),
            None => (call, false),
        }
    }
}

impl Tasked {
    /// The list has changed.
    pub(in crate::relay) fn change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}

impl LiveSession {
    /// A call has ended with this response: perhaps it is a task now. One that nobody waits for is not.
    pub(in crate::relay) fn learn_task(
        &self,
        state: &mut State,
        call: InFlight,
        sink: &Sink,
        response: &Message,
    ) {
        if self.face() == Face::Legacy || !is_to_be_task(&call.request) {
            return;
        }
        let waits = sink.pipe().is_some_and(|pipe| !pipe.is_closed());
        if let Some(task) = response.result().and_then(tasks::created).filter(|_| waits) {
            let became = Became {
                call: call.request.id().unwrap_or("null").into(),
                request: call.request,
                asked: call.asked,
            };
            state.tasks.insert(task.into(), became);
        }
        self.tasked().moved.notify_waiters();
    }

    /// Waits until a task has a request that waits for it, or will have none. One of which nothing was heard
    /// may be that of a call which has no response yet, if `unheard` says that such ones count.
    pub(in crate::relay) async fn task_is_there(&self, task: &str, unheard: bool) {
        loop {
            let moved = self.tasked().moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            {
                let state = self.state();
                let coming = if let Some(became) = state.tasks.get(task) {
                    state.talk.leg(&became.call).is_none()
                } else {
                    let mut calls = state.calls.values();
                    unheard && calls.any(|call| is_to_be_task(&call.request))
                };
                if !coming {
                    return;
                }
            }
            moved.await;
        }
    }

    /// Whether a tool runs as a task only; asks the server, if that isn't known.
    async fn runs_as_task(self: &Arc<Self>, tool: &str) -> bool {
        // Held while the server is asked: who comes meanwhile waits for the answer.
        let mut known = self.tasked().known.lock().await;
        let changes = self.tasked().changes.load(Ordering::Relaxed);
        let fresh = |it: &&Known| it.changes == changes && now() < it.until;
        if let Some(known) = known.as_ref().filter(fresh) {
            return known.tools.contains(tool);
        }
        let listed = tokio::time::timeout(PATIENCE, self.list_tasks()).await;
        let listed = listed.ok().flatten();
        if listed.is_none() {
            tracing::warn!(server = %self.server().name(), session = self.tag(), "no list of tools from the server");
        }
        let until = now() + if listed.is_some() { FRESH } else { NO_LIST };
        let tools = listed.unwrap_or_default();
        let found = tools.contains(tool);
        *known = Some(Known {
            tools,
            until,
            changes,
        });
        found
    }

    async fn list_tasks(self: &Arc<Self>) -> Option<HashSet<String>> {
        let mut tools = HashSet::new();
        let mut params = "{}".to_owned();
        for _ in 0..PAGES {
            let listed = self.request("tools/list", &params).await.ok()?;
            let page = tasks::page(listed.result()?)?;
            tools.extend(page.tasks);
            let Some(next) = page.next else {
                return Some(tools);
            };
            params = edit("{}", &[("cursor", Some(&next))]).ok()?.into_owned();
        }
        Some(tools)
    }
}

impl Driver {
    /// What a response means where the call runs as a task: its outcome, or none yet.
    pub(super) async fn outcome_of(&mut self, response: Message) -> Result<Message, Vec<Output>> {
        let Some(task) = &mut self.task else {
            return Ok(response);
        };
        let broken = is_own(&response, "-32603", "outcome_unknown");
        match task.take(response, broken) {
            Step::Outcome(outcome) => {
                self.attempt.leave_place();
                if broken {
                    // It may still run, and nobody will ask for its outcome.
                    let session = Arc::clone(&self.attempt.pooled.session);
                    self.cancel_task(&session).await;
                }
                Ok(outcome)
            }
            Step::Wait => Err(self.wait_for_task().await),
        }
    }

    /// Asks for the outcome of the task, which comes when there is one.
    async fn wait_for_task(&mut self) -> Vec<Output> {
        let mut outputs = self.drain().await;
        let task = self.task.as_ref();
        let Some(params) = task.and_then(Task::params) else {
            return outputs;
        };
        let session = Arc::clone(&self.attempt.pooled.session);
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"tasks/result","params":{params}}}"#,
            self.inner
        );
        let sent = match Message::parse(&Bytes::from(request)) {
            Ok(request) => self.attempt.go_on(request).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = sent {
            self.cancel_task(&session).await;
            outputs.extend(self.fail(&error));
        }
        session.tasked().moved.notify_waiters();
        outputs
    }

    /// Cancels the call at the server, as what it is there.
    pub(super) async fn cancel(&mut self) -> Vec<Output> {
        let mut outputs = Vec::new();
        if self.task == Some(Task::Asked) && !self.attempt.consent.is_awaited() {
            // The id of the task is on its way, and without it nothing ends there.
            let _unknown = tokio::time::timeout(CANCEL, self.learn_task(&mut outputs)).await;
        }
        let session = Arc::clone(&self.attempt.pooled.session);
        self.cancel_task(&session).await;
        cancel(&session, &self.inner).await;
        outputs
    }

    /// Waits for the response to the call.
    async fn learn_task(&mut self, outputs: &mut Vec<Output>) {
        while let Some(item) = self.attempt.pipe.recv().await {
            let Item::Outcome(response) = item else {
                outputs.extend(self.take(item));
                continue;
            };
            if let (Some(task), Ok(response)) = (&mut self.task, Message::parse(&response)) {
                task.take(response, false);
            }
            return;
        }
    }

    /// The task is over, or another will be begun.
    pub(super) fn forget_task(&self) {
        if let Some(id) = self.task.as_ref().and_then(Task::id) {
            let session = &self.attempt.pooled.session;
            session.state().tasks.remove(id);
            session.tasked().moved.notify_waiters();
        }
    }

    async fn cancel_task(&self, session: &Arc<LiveSession>) {
        if let Some(params) = self.task.as_ref().and_then(Task::params) {
            let cancelling = session.request("tasks/cancel", &params);
            let _slow = tokio::time::timeout(CANCEL, cancelling).await;
        }
    }
}

/// Whether a call is to become a task.
fn is_to_be_task(request: &Message) -> bool {
    request.method() == "tools/call" && matches!(request.param(["task"]), Ok([Some(_)]))
}
