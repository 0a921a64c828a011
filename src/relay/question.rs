//! Carries out what the book of questions decides: asks the client, brings the answer to whoever
//! waits ([`Asker`]), and sees to it that no question stays without one.
//!
//! Whoever takes a question out of the book ([`Session`](crate::protocol::session::Session)) owes the
//! server the answer, and pays it here: [`LiveSession::answer`], [`LiveSession::give_up`],
//! [`LiveSession::withdraw`], or the teardown of the session.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;

use super::deliver::Item;
use super::lease::Lease;
use super::pending::{Asker, Pending, about, action_of, record_of, unanswered};
use super::session::{Face, LiveSession};
use super::{Answer, now};
use crate::error::Error;
use crate::protocol::elicitation::{Action as Answered, Summary};
use crate::protocol::message::{self, Message};
use crate::protocol::parked::Limits;
use crate::protocol::rounds::Leg;
use crate::protocol::sampling;
use crate::protocol::server_legacy::Answered as Head;
use crate::protocol::session::{LegId, NotAsked, Question, QuestionId};
use crate::telemetry::audit::{Outcome, Record};

/// What a server is told that asks in no call of a modern client.
const NO_CALL: &str = "no request that could be answered with a question is in progress";

/// The reason for an answer that the server's version has no way to say.
const UNSAYABLE: &str = "unsayable_answer";

/// How the gateway answers a question by itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Settlement {
    /// The elicitation is cancelled.
    Dismissed,
    /// An error with this code and text.
    Refused(i32, &'static str),
}

/// Why a question ended without an answer of its client.
#[derive(Clone, Copy, Debug)]
enum Unanswered {
    /// No stream could carry it to the client.
    NoStream,
    /// The person did not answer in time.
    Timeout,
}

impl LiveSession {
    /// Puts a question to the client: it came on the stream of `cause`, or on its own. Returns when it
    /// is on its way to the client, or the refusal on its way to who asks.
    pub(super) async fn ask(
        self: &Arc<Self>,
        cause: Option<LegId>,
        question: &Message,
        asker: Asker,
    ) {
        // Where the log is full and requests wait for it, a question waits too, but not for a session
        // that has ended.
        let reserving = self.ended.run_until_cancelled(self.shared.audit.reserve());
        let Some(Ok(slot)) = reserving.await else {
            let text = "the gateway can't record the question";
            return self
                .refuse(question, &asker, -31006, "audit_full", text)
                .await;
        };
        if self.face() == Face::Modern && question.method() == "ping" {
            // It asks whether the session lives, and that is the gateway's.
            let id = question.id().unwrap_or("null");
            return self.tell_unanswered(message::result(id, "{}")).await;
        }
        if self.face() == Face::Modern && !self.state().streams.has_route(cause, Face::Modern) {
            return self
                .refuse(question, &asker, -32602, "no_call", NO_CALL)
                .await;
        }
        let limiter = &self.shared.limiter;
        let place = match limiter.question(self.server().name(), self.principal()) {
            Ok(place) => place,
            Err(why) => {
                return self
                    .refuse(question, &asker, why.code(), why.reason(), why.text())
                    .await;
            }
        };
        let summary = Summary::of(question);
        let held = Arc::new(Notify::new());
        let booked = {
            let mut state = self.state();
            state.talk.ask(now(), cause, question).inspect(|id| {
                let pending = Pending {
                    asker: asker.clone(),
                    summary: summary.clone(),
                    clock: None,
                    held: Arc::clone(&held),
                    _slot: place,
                };
                state.pending.insert(*id, pending);
            })
        };
        let id = match booked {
            Ok(id) => id,
            Err(NotAsked::Undeclared(undeclared)) => {
                self.note_need(cause, undeclared.required);
                return self
                    .refuse(
                        question,
                        &asker,
                        undeclared.code,
                        "undeclared",
                        undeclared.message,
                    )
                    .await;
            }
            Err(NotAsked::Closed) => {
                return self
                    .refuse(
                        question,
                        &asker,
                        -31003,
                        "session_lost",
                        "the session of the client has ended",
                    )
                    .await;
            }
        };
        slot.write(
            self.about(Record::question_asked)
                .question(record_of(question, &summary)),
        );
        let clock = self
            .shared
            .tasks
            .spawn(Arc::clone(self).watch(id, held))
            .abort_handle();
        match self.state().pending.get_mut(&id) {
            Some(pending) => pending.clock = Some(clock),
            None => clock.abort(),
        }
        self.deliver(cause, Item::Question(id, question.with_id(&id.to_string())))
            .await;
        if self.face() == Face::Modern && self.state().streams.waiting.drop_question(id) {
            // The call ended in this moment. No other request of the client is the right one.
            self.settle(id, Settlement::Refused(-32602, NO_CALL)).await;
        }
    }

    /// Remembers that a call of a modern client failed for want of a capability, if it fails.
    fn note_need(&self, cause: Option<LegId>, required: &'static str) {
        let mut state = self.state();
        let call = cause
            .and_then(|leg| state.talk.client_id(leg))
            .map(Into::into);
        if let Some(call) = call.filter(|_| self.face() == Face::Modern) {
            state.needs.insert(call, required);
        }
    }

    /// Takes an answer of the client to whoever waits for it.
    ///
    /// # Errors
    /// When the server no longer knows the session.
    pub async fn answer(self: &Arc<Self>, answer: &Message) -> Result<Answer, Error> {
        let now = now();
        let taken = {
            let mut state = self.state();
            let taken = answer.id().and_then(|id| state.talk.answer(now, id));
            taken.and_then(|(id, question)| Some((question, state.pending.remove(&id)?)))
        };
        let Some((question, pending)) = taken else {
            // Late, twice, or never asked: the answer goes nowhere, and the client needs no error.
            let record = self
                .about(Record::answer_ignored)
                .reason("no_such_question");
            self.shared.audit.note(Some(self.principal()), record);
            return Ok(Answer::Accepted);
        };
        pending.stop_clock();
        let action = Answered::of(&question.method, answer);
        let (sent, outcome) = self.as_the_server_takes_it(&question, answer);
        let mut record = about(self, Record::question_answered, &question, &pending)
            .outcome(outcome)
            .waited(now.saturating_duration_since(question.asked));
        if outcome == Outcome::Refused {
            record = record.reason(UNSAYABLE);
        }
        if let Some(action) = action_of(action) {
            record = record.action(action);
        }
        // Before it is sent: the outcome of the call, which follows it, has a record too.
        self.shared.audit.write(record).await;
        let wire = match (&pending.asker, self.lease()) {
            (Asker::Driver(driver), _) => {
                driver.pass(answer).await;
                return Ok(Answer::Accepted);
            }
            (Asker::Server, Lease::Modern(_)) => return Ok(Answer::Accepted),
            (Asker::Server, Lease::Legacy(wire)) => wire,
        };
        let sent = self.post_patiently(wire, sent).await;
        let lost = match &sent {
            Ok(reply) if reply.status.is_success() => None,
            Ok(reply) if reply.what == Head::SessionGone => Some("forgotten_by_server"),
            Ok(_) => Some("refused_by_server"),
            Err(_) => Some("server_unreachable"),
        };
        if let Some(reason) = lost {
            tracing::warn!(server = %self.server().name(), session = self.tag(), reason, "an answer did not reach its server");
            let record = about(self, Record::answer_lost, &question, &pending)
                .outcome(Outcome::Lost)
                .reason(reason);
            self.shared.audit.write(record).await;
        }
        match sent {
            Ok(reply) => self.check_gone(&reply).map(|()| Answer::Accepted),
            Err(_) => Ok(Answer::Accepted),
        }
    }

    /// An answer under the server's own id, and what the record says of it. What an older server has no
    /// way to read is told to it as an error.
    fn as_the_server_takes_it(&self, question: &Question, answer: &Message) -> (Bytes, Outcome) {
        let id = &*question.server_id;
        let said = match (answer.result(), self.lease()) {
            (Some(result), Lease::Legacy(_)) if &*question.method == "sampling/createMessage" => {
                sampling::for_server(self.version(), result)
            }
            _ => return (answer.with_id(id), Outcome::Ok),
        };
        match said {
            Ok(Cow::Borrowed(_)) => (answer.with_id(id), Outcome::Ok),
            Ok(Cow::Owned(changed)) => (answer.with_body(id, &changed), Outcome::Ok),
            Err(unsayable) => {
                let text = unsayable.to_string();
                (unanswered(id, UNSAYABLE, &text), Outcome::Refused)
            }
        }
    }

    /// The server withdraws its question: the client is told, under the id it knows.
    pub(super) async fn withdraw(
        self: &Arc<Self>,
        cause: Option<LegId>,
        notice: &Message,
        server_id: &str,
    ) {
        let taken = {
            let mut state = self.state();
            let taken = state.talk.withdraw(now(), server_id);
            taken.and_then(|(id, question)| {
                let unread = state.streams.waiting.drop_question(id);
                Some((id, question, state.pending.remove(&id)?, unread))
            })
        };
        let Some((id, question, pending, unread)) = taken else {
            return;
        };
        pending.stop_clock();
        self.record_unanswered(
            &question,
            &pending,
            Outcome::Cancelled,
            "withdrawn_by_server",
        )
        .await;
        if !unread {
            let told = notice.replacing(server_id, &id.to_string());
            self.deliver(cause.or(question.cause), Item::Withdrawn(id, told))
                .await;
        }
    }

    /// A question of a request is over before it has its answer: the client is told.
    pub(super) async fn call_off(self: &Arc<Self>, call: LegId, leg: Leg) {
        let taken = {
            let mut state = self.state();
            let found = state.pending.iter().find_map(|(id, pending)| {
                let own = matches!(&pending.asker, Asker::Driver(driver) if driver.leg == leg);
                (own && state.talk.cause_of(*id) == Some(call)).then_some(*id)
            });
            found.and_then(|id| {
                let question = state.talk.give_up(now(), id)?;
                let unread = state.streams.waiting.drop_question(id);
                Some((id, question, state.pending.remove(&id)?, unread))
            })
        };
        let Some((id, question, pending, unread)) = taken else {
            return;
        };
        pending.stop_clock();
        self.record_unanswered(&question, &pending, Outcome::Cancelled, "request_over")
            .await;
        if !unread {
            let params = format!(r#"{{"requestId":{id},"reason":"the request is over"}}"#);
            let notice = message::notification("notifications/cancelled", &params);
            self.deliver(Some(call), Item::Withdrawn(id, notice)).await;
        }
    }

    /// Waits with a question, and ends it when its time is over: the person's, or that of a stream
    /// which could carry it to them.
    async fn watch(self: Arc<Self>, id: QuestionId, held: Arc<Notify>) {
        let times = &self.shared.config.timeouts;
        if self.face() == Face::Modern {
            // The parked call keeps the time, and anew in each round; should its task have died, the
            // question still ends.
            let rounds = Limits::default().rounds + 1;
            tokio::time::sleep(times.question * rounds).await;
            return self.give_up(id, Unanswered::Timeout).await;
        }
        let streamless = async {
            loop {
                held.notified().await;
                // Who lost the stream of a call may come back to it, and finds the question there.
                let awaited = self.state().streams.is_awaited();
                let patience = if awaited { times.resume } else { times.stream };
                tokio::time::sleep(patience).await;
                if self.state().streams.waiting.drop_question(id) {
                    return;
                }
            }
        };
        let why = tokio::select! {
            () = streamless => Unanswered::NoStream,
            () = tokio::time::sleep(times.question) => Unanswered::Timeout,
        };
        self.give_up(id, why).await;
    }

    /// Takes a question out of the book: whoever gets it owes the answer. Its clock goes on, since it may
    /// be the clock that asks.
    fn take(&self, id: QuestionId) -> Option<(Question, Pending)> {
        let mut state = self.state();
        let question = state.talk.give_up(now(), id)?;
        Some((question, state.pending.remove(&id)?))
    }

    /// Writes down how a question ended that its client did not answer.
    async fn record_unanswered(
        &self,
        question: &Question,
        pending: &Pending,
        outcome: Outcome,
        reason: &'static str,
    ) {
        let record = about(self, Record::question_answered, question, pending)
            .outcome(outcome)
            .reason(reason)
            .waited(now().saturating_duration_since(question.asked));
        self.shared.audit.write(record).await;
    }

    /// Ends a question whose client is not there to answer it. The gateway answers.
    pub(super) async fn settle(self: &Arc<Self>, id: QuestionId, settlement: Settlement) {
        let Some((question, pending)) = self.take(id) else {
            return;
        };
        pending.stop_clock();
        let (answer, outcome, reason) = match settlement {
            Settlement::Dismissed => (
                message::result(&question.server_id, r#"{"action":"cancel"}"#),
                Outcome::Timeout,
                "nobody_came_back",
            ),
            Settlement::Refused(code, text) => {
                let data = serde_json::json!({ "source": "gateway" });
                let answer = message::error(Some(&question.server_id), code, text, Some(&data));
                (answer, Outcome::Refused, "not_answerable")
            }
        };
        self.tell_unanswered(answer).await;
        self.record_unanswered(&question, &pending, outcome, reason)
            .await;
    }

    async fn give_up(self: &Arc<Self>, id: QuestionId, why: Unanswered) {
        let Some((question, pending)) = self.take(id) else {
            return;
        };
        let (outcome, reason, text) = match why {
            Unanswered::NoStream => (
                Outcome::Lost,
                "no_stream",
                "the client has no stream on which it could be asked",
            ),
            Unanswered::Timeout => (
                Outcome::Timeout,
                "timeout",
                "the person did not answer in time",
            ),
        };
        if matches!(why, Unanswered::Timeout) {
            let params = format!(r#"{{"requestId":{id},"reason":"nobody answered in time"}}"#);
            let notice = message::notification("notifications/cancelled", &params);
            // Not waited for: a client that reads nothing must not keep the server waiting.
            let session = Arc::clone(self);
            self.shared.tasks.spawn(async move {
                session
                    .deliver(question.cause, Item::Withdrawn(id, notice))
                    .await;
            });
        }
        match &pending.asker {
            Asker::Server => {
                self.tell_unanswered(unanswered(&question.server_id, reason, text))
                    .await;
            }
            Asker::Driver(driver) => driver.fail(text).await,
        }
        self.record_unanswered(&question, &pending, outcome, reason)
            .await;
    }

    /// Answers a question with an error, without asking anybody.
    async fn refuse(
        self: &Arc<Self>,
        question: &Message,
        asker: &Asker,
        code: i32,
        reason: &'static str,
        text: &'static str,
    ) {
        let Some(id) = question.id() else { return };
        let data = serde_json::json!({ "source": "gateway", "reason": reason });
        let answer = message::error(Some(id), code, text, Some(&data));
        let record = self
            .about(Record::question_answered)
            .question(record_of(question, &Summary::of(question)))
            .outcome(Outcome::Refused)
            .reason(reason)
            .code(i64::from(code));
        match asker {
            Asker::Server => self.tell_unanswered(answer).await,
            Asker::Driver(driver) => driver.fail(text).await,
        }
        self.shared.audit.write(record).await;
    }

    /// Answers a request of the server that could not be read for certain.
    pub(super) async fn refuse_unreadable(self: &Arc<Self>, id: &str) {
        self.tell_unanswered(message::error(
            Some(id),
            -32600,
            "the request is ambiguous",
            None,
        ))
        .await;
    }

    /// Sends an answer of ours, beside what else is going on. Waits while many are on their way.
    async fn tell_unanswered(self: &Arc<Self>, answer: Bytes) {
        let turn = Arc::clone(&self.replies).acquire_owned();
        let Some(Ok(turn)) = self.ended.run_until_cancelled(turn).await else {
            return;
        };
        let session = Arc::clone(self);
        self.shared.tasks.spawn(async move {
            // The loss of the session shows itself to whoever asks next.
            let _gone = session.tell_server(answer).await;
            drop(turn);
        });
    }
}
