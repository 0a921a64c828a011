//! Brings what a server sends to its client: to one stream, or to the place where it waits for one.

use std::sync::Arc;

use bytes::Bytes;

use super::session::LiveSession;
use crate::protocol::message::Message;
use crate::protocol::session::{LegId, QuestionId};

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

impl LiveSession {
    /// Puts something where the client reads it. Waits while that place is full, so that a slow
    /// client slows its own server's stream and nothing else.
    pub(super) async fn deliver(&self, cause: Option<LegId>, item: Item) {
        loop {
            let pipe = {
                let mut state = self.state();
                if item.asks().is_some_and(|id| !state.talk.is_open(id)) {
                    return;
                }
                match state.streams.route(cause) {
                    Some(pipe) => pipe,
                    None => return state.streams.hold(item),
                }
            };
            // A closed pipe is not found by the next look for a route.
            let sent = self
                .ended
                .run_until_cancelled(pipe.send(item.clone()))
                .await;
            if !matches!(sent, Some(Err(_))) {
                return;
            }
        }
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
                if self.state().talk.expects_progress(token) {
                    self.deliver(cause, Item::Progress(bytes)).await;
                }
            }
            _ => self.deliver(cause, Item::Notice(bytes)).await,
        }
    }
}
