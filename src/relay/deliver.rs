//! Brings what a server sends to its client: to one stream, or to the place where it waits for one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;

use super::session::{Face, LiveSession};
use crate::protocol::message::Message;
use crate::protocol::session::{LegId, QuestionId};
use crate::protocol::tasks;

/// Something that a client is to read, as the JSON text of a message. What kind it is decides what
/// becomes of it while no stream is open.
#[derive(Clone, Debug)]
pub enum Item {
    /// A question, under the id that its answer must name. It waits; its own clock bounds that.
    Question(QuestionId, Bytes),
    /// The question with this id is not to be answered any more. It waits as a notice does.
    Withdrawn(QuestionId, Bytes),
    /// A notification. It waits; newer ones may push it out.
    Notice(Bytes),
    /// How far a call is. Worth nothing later.
    Progress(Bytes),
    /// The answer to a request. Only ever on the request's own stream.
    Outcome(Bytes),
}

impl Item {
    /// The message.
    pub fn message(&self) -> &Bytes {
        match self {
            Self::Question(_, message)
            | Self::Withdrawn(_, message)
            | Self::Notice(message)
            | Self::Progress(message)
            | Self::Outcome(message) => message,
        }
    }

    /// The question that it asks.
    pub fn asks(&self) -> Option<QuestionId> {
        match self {
            Self::Question(id, _) => Some(*id),
            _ => None,
        }
    }
}

/// How long a stream may be full before it is taken for dead.
const STALLED: Duration = Duration::from_secs(30);

impl LiveSession {
    /// Puts something where the client reads it. Waits while that place is full, so that a slow
    /// client slows its own server's stream and nothing else; one that does not read at all loses the
    /// stream.
    pub(super) async fn deliver(&self, cause: Option<LegId>, item: Item) {
        let mut item = item;
        loop {
            let pipe = {
                let mut state = self.state();
                if item.asks().is_some_and(|id| !state.talk.is_open(id)) {
                    return;
                }
                match state.streams.route(cause, self.face()) {
                    Some(pipe) => pipe,
                    None => return state.hold(item),
                }
            };
            item = match pipe.try_send(item) {
                Ok(()) => return,
                // A closed pipe is not found by the next look for a route.
                Err(TrySendError::Closed(item)) => item,
                Err(TrySendError::Full(item)) => {
                    let room = tokio::time::timeout(STALLED, pipe.reserve());
                    match self.ended.run_until_cancelled(room).await {
                        None => return,
                        Some(Ok(Ok(room))) => return room.send(item),
                        Some(Ok(Err(_closed))) => item,
                        Some(Err(_stalled)) => {
                            self.state().streams.cut(&pipe);
                            item
                        }
                    }
                }
            };
        }
    }

    /// Takes back what a stream carried that nobody read.
    pub(super) fn take_back(&self, unread: Vec<Item>) {
        if unread.is_empty() {
            return;
        }
        let mut state = self.state();
        for item in unread {
            // An outcome has its own stream or none; of a question that is over nobody wants to hear.
            let over = item.asks().is_some_and(|id| !state.talk.is_open(id));
            if over || matches!(item, Item::Outcome(_) | Item::Progress(_)) {
                continue;
            }
            let item = match state.streams.route(None, self.face()) {
                Some(pipe) => match pipe.try_send(item) {
                    Ok(()) => continue,
                    Err(full) => full.into_inner(),
                },
                None => item,
            };
            state.hold(item);
        }
    }

    /// The call that a message belongs to which came on the stream of `stream`: the one that drives the
    /// task that it names, if it names one. Such messages may come on any stream (2025-11-25
    /// basic/utilities/tasks).
    pub(super) fn cause_of(&self, stream: Option<LegId>, message: &Message) -> Option<LegId> {
        if self.face() == Face::Legacy || !is_of_task(message) {
            return stream;
        }
        let task = message.params().and_then(tasks::related);
        let state = self.state();
        let own = task
            .and_then(|id| state.tasks.get(id.as_str()))
            .and_then(|call| state.talk.leg(call));
        own.or(stream)
    }

    /// Takes a notification of the server, which came on the stream of `cause` or on its own.
    pub(super) async fn notice(self: &Arc<Self>, cause: Option<LegId>, notice: &Message) {
        let bytes = notice.bytes().clone();
        match notice.method() {
            "notifications/cancelled" => {
                // The id is the server's own; under it the client knows nothing.
                if let Ok([Some(id)]) = notice.param(["requestId"]) {
                    self.withdraw(cause, notice, id).await;
                }
            }
            "notifications/progress" => {
                // Clients take progress that they did not ask for as a broken connection.
                let Ok([Some(token)]) = notice.param(["progressToken"]) else {
                    return;
                };
                let (expected, own) = {
                    let state = self.state();
                    (state.talk.expects_progress(token), state.talk.leg(token))
                };
                if expected || is_of_task(notice) {
                    // The token of a modern client's call is its id, on whatever stream it comes.
                    let own = own.filter(|_| self.face() == Face::Modern);
                    self.deliver(own.or(cause), Item::Progress(bytes)).await;
                }
            }
            "notifications/message" if self.face() == Face::Modern => {
                if self.state().streams.is_clear(cause) {
                    self.deliver(cause, Item::Notice(bytes)).await;
                }
            }
            _ if self.face() == Face::Modern => self.tell_listeners(notice),
            _ => self.deliver(cause, Item::Notice(bytes)).await,
        }
    }
}

/// Whether a message belongs to a task, which outlives the call that began it (2025-11-25
/// basic/utilities/tasks).
fn is_of_task(message: &Message) -> bool {
    memchr::memmem::find(message.bytes(), tasks::RELATED.as_bytes()).is_some()
}
