//! The one way out of a session: DELETE, expiry, a server that forgot it, shutdown.
//!
//! The order matters. First nobody can find the session any more; then what is left is taken from
//! the books, so that each call and question is ended once; then the server is told, calls first,
//! so that no handler takes an answer of absence for a reason to go on; at last the server's session
//! ends. All of it within [`PATIENCE`].

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::session::LiveSession;
use super::{now, question};
use crate::protocol::message;
use crate::protocol::session::Remains;
use crate::telemetry::audit::{Outcome, Record};

/// How long the server is waited for, in all.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client said so.
    Deleted,
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
            if session.shared.sessions.remove(session.id()).is_none() {
                return;
            }
            let (remains, pending) = {
                let mut state = session.state();
                let pending = std::mem::take(&mut state.pending);
                pending.values().for_each(question::Pending::stop_clock);
                (state.talk.close(), pending)
            };
            session.ended.cancel();
            tracing::info!(session = session.tag(), server = %session.server().name(), reason = why.reason(), "session ended");
            if why != Ending::Forgotten {
                let telling = session.tell_end(&remains, why);
                if tokio::time::timeout(PATIENCE, telling).await.is_err() {
                    tracing::warn!(
                        session = session.tag(),
                        "the server did not take the end of the session"
                    );
                }
            }
            let audit = &session.shared.audit;
            for (id, question) in &remains.questions {
                let Some(held) = pending.get(id) else {
                    continue;
                };
                let record = question::about(&session, Record::question_answered, question, held)
                    .outcome(Outcome::Lost)
                    .reason(why.reason())
                    .waited(now().saturating_duration_since(question.asked));
                audit.write(record).await;
            }
            audit
                .write(session.about(Record::session_closed).reason(why.reason()))
                .await;
            // The exchanges have put their last word into their streams by now, or are doing so; a
            // stream ends when nobody can put more into it.
            session.state().streams.close();
        }
    }

    async fn tell_end(self: &Arc<Self>, remains: &Remains, why: Ending) {
        join_all(remains.calls.iter().map(|(leg, _)| {
            let params = format!(
                r#"{{"requestId":{leg},"reason":"session ended: {}"}}"#,
                why.reason()
            );
            self.server().post(
                self.wire(),
                message::notification("notifications/cancelled", &params),
            )
        }))
        .await;
        join_all(remains.questions.iter().map(|(_, question)| {
            let answer = question::lost(&question.server_id, "the session of the client has ended");
            self.server().post(self.wire(), answer)
        }))
        .await;
        if self.wire().session.is_some() {
            let _told = self.server().end(self.wire()).await;
        }
    }
}
