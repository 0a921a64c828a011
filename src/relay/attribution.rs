//! Which call a question belongs to that came on a connection of the whole session: the pipes of a program, or
//! HTTP+SSE. Nothing on it says so. (What else is about a call comes on the stream of the call: the link knows
//! as much as there is to know.)
//!
//! # Invariants
//! - Only calls of the same session come into question: a wrong guess shows a question beside another call
//!   of the same person, and its answer goes back by its own id all the same.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::exchange::InFlight;
use super::session::LiveSession;
use crate::protocol::message::{Kind, Message};
use crate::protocol::modern::may_ask;
use crate::protocol::session::LegId;

impl LiveSession {
    /// The call that a message of the server most probably belongs to.
    pub(super) fn cause_on_link(&self, message: &Message) -> Option<LegId> {
        if message.kind() != Kind::Request {
            return None;
        }
        let state = self.state();
        let open = state.pending.values().filter_map(|it| it.asked.cause);
        let open = open.collect();
        guess(&state.calls, &open)
    }
}

/// A question is most probably of the call that began last, of those in which a server may ask and that
/// don't wait for an answer already.
fn guess(calls: &HashMap<LegId, InFlight>, open: &HashSet<LegId>) -> Option<LegId> {
    let asking = calls
        .iter()
        .filter(|(_, call)| !call.unsent && may_ask(call.request.method()));
    let calm =
        |(leg, call): &(&LegId, &InFlight)| (!open.contains(leg), Reverse(call.asked), **leg);
    asking.max_by_key(calm).map(|(leg, _)| *leg)
}
