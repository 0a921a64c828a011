//! Which call a message belongs to that came on a connection of the whole session: the pipes of a program, or
//! HTTP+SSE. Nothing on it says so.
//!
//! # Invariants
//! - Only calls of the same session come into question: a wrong guess shows a question beside another call
//!   of the same person, and its answer goes back by its own id all the same.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::deliver::Item;
use super::pending::Asker;
use super::session::{Face, LiveSession, State};
use crate::protocol::message::{Kind, Message};
use crate::protocol::object::{members, text};
use crate::protocol::session::{LegId, QuestionId};

impl LiveSession {
    /// The call that a message of the server most probably belongs to.
    pub(super) fn cause_on_link(&self, message: &Message) -> Option<LegId> {
        guess_in(&mut self.state(), self.face(), message)
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
            let (question, item) = (pending.asked.question.clone(), pending.shown(id));
            let Some(cause) = guess_in(state, self.face(), &question) else {
                return false;
            };
            state.talk.recast(id, cause);
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

fn guess_in(state: &mut State, face: Face, message: &Message) -> Option<LegId> {
    let (talk, streams) = (&state.talk, &mut state.streams);
    let mut calls: Vec<Candidate<'_>> = state
        .calls
        .iter()
        .filter(|(leg, call)| {
            let heard = face == Face::Legacy || streams.has_route(Some(**leg), face);
            heard && call.tenure.is_some() && !talk.is_cancelled(**leg)
        })
        .map(|(leg, call)| Candidate {
            leg: *leg,
            request: &call.request,
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
    guess(&calls, message)
}

/// A call in flight whose client still waits for it.
struct Candidate<'a> {
    leg: LegId,
    request: &'a Message,
    began: Instant,
    /// How many questions it has caused, and whether one is open.
    asked: u32,
    open: bool,
}

/// Calls that begin within this time of each other are made at once, and a server takes them in their order.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Progress names its call by a token. A question is most probably of the call that began last, of those
/// in which a server may ask and that don't wait for an answer already; of several that began at once, it is of
/// the first. What else is said is of the only call, or of none.
fn guess(calls: &[Candidate<'_>], message: &Message) -> Option<LegId> {
    match (message.kind(), message.method()) {
        (Kind::Request, _) => {
            let asking = || calls.iter().filter(|call| may_ask(call.request.method()));
            let free = || asking().filter(|call| !call.open);
            let Some(last) = free().map(|call| call.began).max() else {
                return asking()
                    .max_by_key(|call| (Reverse(call.asked), call.leg))
                    .map(|call| call.leg);
            };
            let at_once =
                |call: &&Candidate<'_>| last.saturating_duration_since(call.began) <= AT_ONCE;
            free().filter(at_once).map(|call| call.leg).min()
        }
        (_, "notifications/progress") => {
            let [token] = message.param(["progressToken"]).ok()?;
            let token = token?;
            let same =
                |own: &str| own == token || (text(own).is_some() && text(own) == text(token));
            let of_this = |call: &&Candidate<'_>| own_token(call.request).is_some_and(same);
            calls.iter().find(of_this).map(|call| call.leg)
        }
        _ => match calls {
            [only] => Some(only.leg),
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn message(text: &str) -> Message {
        Message::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn leg(number: u64) -> LegId {
        LegId::parse(&number.to_string()).unwrap()
    }

    /// The guess among these calls: number, method, questions so far, one is open. They begin a minute apart.
    #[track_caller]
    fn check(calls: &[(u64, &str, u32, bool)], said: &str, expected: Option<u64>) {
        check_apart(Duration::from_mins(1), calls, said, expected);
    }

    #[expect(clippy::disallowed_methods, reason = "any moment will do")]
    #[track_caller]
    fn check_apart(
        pause: Duration,
        calls: &[(u64, &str, u32, bool)],
        said: &str,
        expected: Option<u64>,
    ) {
        let mut began = Instant::now();
        let requests: Vec<_> = calls
            .iter()
            .map(|(number, method, _, _)| {
                message(&format!(
                    r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{"_meta":{{"progressToken":"t{number}"}}}}}}"#
                ))
            })
            .collect();
        let candidates: Vec<_> = calls
            .iter()
            .zip(&requests)
            .map(|((number, _, asked, open), request)| Candidate {
                leg: leg(*number),
                request,
                began: {
                    began += pause;
                    began
                },
                asked: *asked,
                open: *open,
            })
            .collect();
        assert_eq!(
            guess(&candidates, &message(said)),
            expected.map(leg),
            "{said}"
        );
    }

    const ASKS: &str = r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}"#;
    const CALL: &str = "tools/call";

    #[test]
    fn a_question_is_of_the_call_that_began_last_and_does_not_wait() {
        check(&[], ASKS, None);
        check(&[(1, CALL, 0, false)], ASKS, Some(1));
        check(&[(1, CALL, 0, false), (2, CALL, 3, false)], ASKS, Some(2));
        check(&[(1, CALL, 9, false), (2, CALL, 1, true)], ASKS, Some(1));
        check(&[(1, CALL, 1, true), (2, CALL, 2, true)], ASKS, Some(1));
        check(&[(1, CALL, 2, true), (2, CALL, 2, true)], ASKS, Some(2));
    }

    #[test]
    fn of_calls_made_at_once_the_first_asks_first() {
        let check = |calls: &[(u64, &str, u32, bool)], expected| {
            check_apart(Duration::from_millis(100), calls, ASKS, Some(expected));
        };
        check(
            &[
                (1, CALL, 0, false),
                (2, CALL, 0, false),
                (3, CALL, 0, false),
            ],
            1,
        );
        check(
            &[(1, CALL, 1, true), (2, CALL, 0, false), (3, CALL, 0, false)],
            2,
        );
        let many: Vec<_> = (1..=20).map(|number| (number, CALL, 0, false)).collect();
        check(&many, 15);
    }

    #[test]
    fn in_a_list_nobody_asks() {
        check(
            &[(1, "prompts/get", 0, false), (2, "tools/list", 0, false)],
            ASKS,
            Some(1),
        );
        check(&[(1, "tools/list", 0, false)], ASKS, None);
    }

    #[test]
    fn progress_is_of_the_call_that_it_names() {
        let calls = [(1, CALL, 0, false), (2, CALL, 0, false)];
        let progress = |token: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token}}}}}"#
            )
        };
        check(&calls, &progress(r#""t1""#), Some(1));
        check(&calls, &progress(r#""\u00742""#), Some(2));
        check(&calls, &progress(r#""t3""#), None);
    }

    #[test]
    fn what_else_is_said_is_of_the_only_call_or_of_none() {
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        check(&[(1, "tools/list", 0, false)], log, Some(1));
        check(&[(1, CALL, 0, false), (2, CALL, 0, false)], log, None);
    }
}
