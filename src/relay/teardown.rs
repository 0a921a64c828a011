//! The one way out of a session: DELETE, the end of the stream that it is, expiry, a server that forgot it,
//! shutdown.
//!
//! The order matters. First nobody can find the session any more; then what is left is taken from
//! the books, so that each call and question is ended once; then the server is told, calls first,
//! so that no handler takes an answer of absence for a reason to go on; at last the server's session
//! ends. All of it within [`PATIENCE`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::now;
use super::pending::{self, Asker, Pending};
use super::session::{LiveSession, SessionId};
use crate::protocol::message;
use crate::protocol::session::{LegId, QuestionId, Remains};
use crate::protocol::tasks;
use crate::telemetry::audit::{Outcome, Record};

/// How long the server is waited for, in all.
pub(super) const PATIENCE: Duration = Duration::from_secs(6);

/// How long each step of it may take.
const STEP: Duration = Duration::from_secs(2);

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client said so.
    Deleted,
    /// Its client closed the stream that it is, or lost it.
    Left,
    /// Nobody used it.
    Idle,
    /// The server no longer knows it.
    Forgotten,
    /// The gateway ends.
    Shutdown,
}

impl Ending {
    /// A short word for records and errors.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Left => "stream_closed",
            Self::Idle => "idle",
            Self::Forgotten => "forgotten_by_server",
            Self::Shutdown => "shutdown",
        }
    }
}

impl LiveSession {
    /// Ends the session. The second time it does nothing.
    pub fn end(self: &Arc<Self>, why: Ending) -> impl Future<Output = ()> + Send + use<> {
        let session = Arc::clone(self);
        async move {
            // Somebody may have come back in the moment before.
            let still = |_: &SessionId, it: &Arc<Self>| {
                why != Ending::Idle || it.is_idle(now(), it.shared.config.sessions.idle)
            };
            if session
                .shared
                .sessions
                .remove_if(session.id(), still)
                .is_none()
            {
                return;
            }
            let (remains, pending, tasks) = {
                let mut state = session.state();
                let pending = std::mem::take(&mut state.pending);
                pending.values().for_each(Pending::stop_clock);
                let tasks = std::mem::take(&mut state.tasks);
                let mut remains = state.talk.close();
                // Of what was not sent the server knows nothing, nor of what a session had that it has lost.
                let generation = session.generation();
                let calls = &state.calls;
                let known = |leg: &LegId| {
                    let tenure = calls.get(leg).and_then(|call| call.tenure.as_ref());
                    tenure.is_some_and(|tenure| tenure.generation == generation)
                };
                remains.calls.retain(|(leg, _)| known(leg));
                (remains, pending, tasks)
            };
            session.ended.cancel();
            tracing::info!(session = session.tag(), server = %session.server().name(), reason = why.reason(), "session ended");
            // Beside each other: the record must not wait for the server, nor the server for the log.
            let telling = async {
                if why != Ending::Forgotten {
                    let tasks = tasks.into_keys().collect();
                    session.tell_end(&remains, &pending, tasks, why).await;
                }
                session.close_streams();
            };
            tokio::join!(telling, session.record_end(&remains, &pending, why));
        }
    }

    /// The exchanges have put their last word into their streams by now, or are doing so; a stream
    /// ends when nobody can put more into it.
    fn close_streams(&self) {
        self.state().streams.close();
        if let Some(line) = self.line() {
            line.close();
        }
    }

    async fn record_end(
        &self,
        remains: &Remains,
        pending: &HashMap<QuestionId, Pending>,
        why: Ending,
    ) {
        let audit = &self.shared.audit;
        for (id, question) in &remains.questions {
            let Some(held) = pending.get(id) else {
                continue;
            };
            let record = pending::about(self, Record::question_answered, held)
                .outcome(Outcome::Lost)
                .reason(why.reason())
                .waited(now().saturating_duration_since(question.asked));
            audit.write(record).await;
        }
        audit
            .write(self.about(Record::session_closed).reason(why.reason()))
            .await;
    }

    /// Tells the server, a step after the other, each in its share of the time.
    async fn tell_end(
        self: &Arc<Self>,
        remains: &Remains,
        pending: &HashMap<QuestionId, Pending>,
        tasks: Vec<Box<str>>,
        why: Ending,
    ) {
        // At a modern server nothing is left but streams, which end with the tasks that read them.
        let Some(tenure) = self.tenure() else {
            return;
        };
        let wire = &tenure.wire;
        let Some(partings) = self.shared.partings.get(self.server().name()) else {
            return;
        };
        let turn = tokio::time::timeout(STEP, partings.acquire()).await;
        let Ok(Ok(_turn)) = turn else { return };
        let open = remains
            .calls
            .iter()
            .filter(|(_, call)| !call.is_cancelled());
        let cancels = open.map(|(leg, _)| {
            let params = format!(
                r#"{{"requestId":{leg},"reason":"session ended: {}"}}"#,
                why.reason()
            );
            self.server().post(
                wire,
                message::notification("notifications/cancelled", &params),
            )
        });
        let tasks = tasks.iter().enumerate().map(|(number, task)| {
            let params = tasks::params(task);
            let request = format!(
                r#"{{"jsonrpc":"2.0","id":"cf-end-{number}","method":"tasks/cancel","params":{params}}}"#
            );
            self.server().post(wire, request.into())
        });
        let cancels = async { tokio::join!(join_all(tasks), join_all(cancels)) };
        self.step(cancels).await;
        let asked = remains.questions.iter().filter(|(id, _)| {
            let held = pending.get(id);
            held.is_none_or(|it| match &it.asked.asker {
                Asker::Server(asked) => asked.generation == tenure.generation,
                Asker::Driver(_) => true,
                Asker::Gateway(_) => false,
            })
        });
        let answers = asked.map(|(_, question)| {
            let answer = pending::lost(&question.server_id, "the session of the client has ended");
            self.server().post(wire, answer)
        });
        self.step(join_all(answers)).await;
        if wire.is_held() {
            self.step(self.server().end(wire)).await;
        }
    }

    async fn step<T>(&self, telling: impl Future<Output = T>) {
        if tokio::time::timeout(STEP, telling).await.is_err() {
            tracing::warn!(session = self.tag(), server = %self.server().name(), "the server is slow to take the end of a session");
        }
    }
}
