//! Which call a question belongs to that came on a connection of the whole session: the pipes of a program, or
//! HTTP+SSE. Nothing on it says so. (What else is about a call comes on the stream of the call: the link knows
//! as much as there is to know.)
//!
//! # Invariants
//! - Only calls of the same session come into question: a wrong guess shows a question beside another call
//!   of the same person, and its answer goes back by its own id all the same.

use std::collections::HashMap;

use super::exchange::InFlight;
use super::session::LiveSession;
use crate::protocol::message::{Kind, Message};
use crate::protocol::modern::may_ask;
use crate::protocol::session::LegId;

impl LiveSession {
    /// The call that a message of the server most probably belongs to.
    pub(super) fn cause_on_link(&self, message: &Message) -> Option<LegId> {
        let asks = message.kind() == Kind::Request;
        asks.then(|| guess(&self.state().calls)).flatten()
    }
}

/// The call that began last, of those in which a server may ask.
fn guess(calls: &HashMap<LegId, InFlight>) -> Option<LegId> {
    let asking = calls
        .iter()
        .filter(|(_, call)| !call.unsent && may_ask(call.request.method()));
    asking.map(|(leg, _)| *leg).max()
}
