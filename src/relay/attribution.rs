//! Which call a question belongs to that came on a connection of the whole session: the pipes of a program, or
//! HTTP+SSE. Nothing on it says so. (What else is about a call comes on the stream of the call: the link knows
//! as much as there is to know.)
//!
//! # Invariants
//! - Only calls of the same session come into question: a wrong guess shows a question beside another call
//!   of the same person, and its answer goes back by its own id all the same.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::deliver::Item;
use super::now;
use super::pending::Asker;
use super::session::{Face, LiveSession, State};
use crate::protocol::message::{Kind, Message};
use crate::protocol::modern::may_ask;
use crate::protocol::session::{LegId, QuestionId};

impl LiveSession {
    /// The call that a message of the server most probably belongs to.
    pub(super) fn cause_on_link(&self, message: &Message) -> Option<LegId> {
        if message.kind() != Kind::Request {
            return None;
        }
        guess_in(&mut self.state(), self.face())
    }

    /// The call has ended that an open question was taken for one of. On a link it was probably another's, if
    /// there is one, and goes there. False when it does not.
    pub(super) async fn adopt(self: &Arc<Self>, id: QuestionId) -> bool {
        let (cause, item) = {
            let state = &mut *self.state();
            let Some(pending) = state.pending.get(&id) else {
                return false;
            };
            if !matches!(&pending.asked.asker, Asker::Server(tenure) if tenure.wire.is_link()) {
                return false;
            }
            let item = pending.shown(id);
            let Some(cause) = guess_in(state, self.face()) else {
                return false;
            };
            state.talk.recast(now(), id, cause);
            (cause, item)
        };
        tracing::debug!(
            session = self.tag(),
            "a question outlived the call that it was taken for"
        );
        self.deliver(Some(cause), Item::Question(id, item)).await;
        !self.state().streams.waiting.drop_question(id)
    }
}

fn guess_in(state: &mut State, face: Face) -> Option<LegId> {
    let (talk, streams) = (&state.talk, &mut state.streams);
    let mut calls: Vec<Candidate> = state
        .calls
        .iter()
        .filter(|(leg, call)| {
            let heard = face == Face::Legacy || streams.has_route(Some(**leg), face);
            let asking = call.tenure.is_some() && may_ask(call.request.method());
            heard && asking && !talk.is_cancelled(**leg)
        })
        .map(|(leg, call)| Candidate {
            leg: *leg,
            began: call.began,
            asked: call.asked,
            open: false,
        })
        .collect();
    for cause in state.pending.keys().filter_map(|id| talk.cause_of(*id)) {
        if let Some(call) = calls.iter_mut().find(|call| call.leg == cause) {
            call.open = true;
        }
    }
    guess(&calls)
}

/// A call in flight in which a server may ask, and whose client still waits for it.
struct Candidate {
    leg: LegId,
    began: Instant,
    /// How many questions it has caused, and whether one is open.
    asked: u32,
    open: bool,
}

/// Calls that begin within this time of each other are made at once, and a server takes them in their order.
const AT_ONCE: Duration = Duration::from_millis(500);

/// A question is most probably of the call that began last, of those that don't wait for an answer already;
/// of several that began at once, it is of the first.
fn guess(calls: &[Candidate]) -> Option<LegId> {
    let free = || calls.iter().filter(|call| !call.open);
    let Some(last) = free().map(|call| call.began).max() else {
        let calm = calls
            .iter()
            .max_by_key(|call| (Reverse(call.asked), call.leg));
        return calm.map(|call| call.leg);
    };
    let at_once = |call: &&Candidate| last.saturating_duration_since(call.began) <= AT_ONCE;
    free().filter(at_once).map(|call| call.leg).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(number: u64) -> LegId {
        LegId::parse(&number.to_string()).unwrap()
    }

    /// The guess among these calls, which begin so long after each other: number, questions so far, one is open.
    #[expect(clippy::disallowed_methods, reason = "any moment will do")]
    #[track_caller]
    fn check(pause: Duration, calls: &[(u64, u32, bool)], expected: Option<u64>) {
        let mut began = Instant::now();
        let candidate = |(number, asked, open): &(u64, u32, bool)| {
            began += pause;
            Candidate {
                leg: leg(*number),
                began,
                asked: *asked,
                open: *open,
            }
        };
        let calls: Vec<_> = calls.iter().map(candidate).collect();
        assert_eq!(guess(&calls), expected.map(leg));
    }

    #[test]
    fn a_question_is_of_the_call_that_began_last_and_does_not_wait() {
        let apart = Duration::from_mins(1);
        check(apart, &[], None);
        check(apart, &[(1, 0, false)], Some(1));
        check(apart, &[(1, 0, false), (2, 3, false)], Some(2));
        check(apart, &[(1, 9, false), (2, 1, true)], Some(1));
        check(apart, &[(1, 1, true), (2, 2, true)], Some(1));
        check(apart, &[(1, 2, true), (2, 2, true)], Some(2));
    }

    #[test]
    fn of_calls_made_at_once_the_first_asks_first() {
        let soon = Duration::from_millis(100);
        check(
            soon,
            &[(1, 0, false), (2, 0, false), (3, 0, false)],
            Some(1),
        );
        check(soon, &[(1, 1, true), (2, 0, false), (3, 0, false)], Some(2));
        let many: Vec<_> = (1..=20).map(|number| (number, 0, false)).collect();
        check(soon, &many, Some(15));
    }
}
