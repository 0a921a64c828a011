//! Which call a message belongs to that came on a connection of the whole session: the pipes of a program, or
//! HTTP+SSE. Nothing on it says so.
//!
//! # Invariants
//! - Only calls of the same session come into question: a wrong guess shows a question beside another call
//!   of the same person, and its answer goes back by its own id all the same.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::exchange::InFlight;
use super::session::LiveSession;
use crate::protocol::message::{Kind, Message};
use crate::protocol::object::{members, text};
use crate::protocol::session::LegId;

impl LiveSession {
    /// The call that a message of the server most probably belongs to.
    pub(super) fn cause_on_link(&self, message: &Message) -> Option<LegId> {
        let state = self.state();
        let open = state.pending.values().filter_map(|it| it.asked.cause);
        let open = open.collect();
        guess(&state.calls, &open, message)
    }
}

/// Progress names its call by a token. A question is most probably of the call that began last, of those
/// in which a server may ask and that don't wait for an answer already; what else is said, of the only one.
fn guess(
    calls: &HashMap<LegId, InFlight>,
    open: &HashSet<LegId>,
    message: &Message,
) -> Option<LegId> {
    match (message.kind(), message.method()) {
        (Kind::Request, _) => {
            let asking = calls
                .iter()
                .filter(|(_, call)| !call.unsent && may_ask(call.request.method()));
            let calm = |(leg, call): &(&LegId, &InFlight)| {
                (!open.contains(leg), Reverse(call.asked), **leg)
            };
            asking.max_by_key(calm).map(|(leg, _)| *leg)
        }
        (_, "notifications/progress") => {
            let [token] = message.param(["progressToken"]).ok()?;
            let token = token?;
            let of_this = |call: &&InFlight| {
                own_token(&call.request).is_some_and(|own| {
                    own == token || (text(own).is_some() && text(own) == text(token))
                })
            };
            let call = calls.iter().find(|(_, call)| of_this(call));
            call.map(|(leg, _)| *leg)
        }
        _ => match calls.len() {
            1 => calls.keys().next().copied(),
            _ => None,
        },
    }
}

/// The requests in which a server asks (2026-07-28 mrtr names the same three).
fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

fn own_token(request: &Message) -> Option<&str> {
    let [meta] = request.param(["_meta"]).ok()?;
    let [token] = members(meta?, ["progressToken"]).ok()?;
    token
}
