//! Brings what a server sends to its client: to one stream, or to the place where it waits for one.

use std::sync::Arc;

use bytes::Bytes;

use super::session::LiveSession;
use crate::protocol::message::Message;
use crate::protocol::session::{LegId, QuestionId};
use crate::protocol::sse;

/// What becomes of an event when no stream is open.
#[derive(Clone, Copy, Debug)]
pub(super) enum Otherwise {
    /// It waits; the question's own clock bounds that.
    Ask(QuestionId),
    /// It waits; newer notices may push it out.
    Keep,
    /// It is worth nothing later.
    Drop,
}

impl LiveSession {
    /// Puts an event where the client reads it. Waits while that place is full, so that a slow
    /// client slows its own server's stream and nothing else.
    pub(super) async fn deliver(&self, cause: Option<LegId>, otherwise: Otherwise, event: Bytes) {
        loop {
            let pipe = {
                let mut state = self.state();
                let question = match otherwise {
                    Otherwise::Ask(id) if !state.talk.is_open(id) => return,
                    Otherwise::Ask(id) => Some(id),
                    Otherwise::Keep | Otherwise::Drop => None,
                };
                match (state.streams.route(cause), otherwise) {
                    (Some(pipe), _) => pipe,
                    (None, Otherwise::Drop) => return,
                    (None, _) => return state.streams.hold(question, event),
                }
            };
            // A closed pipe is not found by the next look for a route.
            let sent = self
                .ended
                .run_until_cancelled(pipe.send(event.clone()))
                .await;
            if !matches!(sent, Some(Err(_))) {
                return;
            }
        }
    }

    /// Takes a notification of the server, which came on the stream of `cause` or on its own.
    pub(super) async fn notice(self: &Arc<Self>, cause: Option<LegId>, notice: &Message) {
        let mut otherwise = Otherwise::Keep;
        match notice.method() {
            "notifications/cancelled" => {
                // The id is the server's own; under it the client knows nothing.
                if let Ok([Some(id)]) = notice.param(["requestId"]) {
                    self.withdraw(cause, notice, id).await;
                }
                return;
            }
            "notifications/progress" => {
                // Clients take progress that they did not ask for as a broken connection.
                let Ok([Some(token)]) = notice.param(["progressToken"]) else {
                    return;
                };
                if !self.state().talk.expects_progress(token) {
                    return;
                }
                otherwise = Otherwise::Drop;
            }
            _ => {}
        }
        self.deliver(cause, otherwise, sse::encode(notice.bytes()))
            .await;
    }
}
