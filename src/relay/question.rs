//! Carries out what the book of questions decides: asks the client, brings the answer to whoever
//! waits ([`Asker`]), and sees to it that no question stays without one.
//!
//! Whoever takes a question out of the book ([`Session`](crate::protocol::session::Session)) owes the
//! server the answer, and pays it here: [`LiveSession::answer`], [`LiveSession::give_up`],
//! [`LiveSession::withdraw`], or the teardown of the session. What it pays with is on record before.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;

use super::approval::{NOBODY, NOT_APPROVED, TOO_LATE};
use super::asked::Asked;
use super::deliver::Item;
use super::lease::Tenure;
use super::now;
use super::pending::{Asker, Pending, about, answer_of, record_of, unanswered, with_case};
use super::session::{Face, LiveSession};
use crate::policy::{By, Said, Verdict};
use crate::protocol::elicitation::Summary;
use crate::protocol::message::{self, Message};
use crate::protocol::parked::Limits;
use crate::protocol::session::{LegId, Question, QuestionId};
use crate::telemetry::audit::{Outcome, Record, Slot};

/// What a server is told that asks in no call of a modern client.
pub(super) const NO_CALL: &str = "no request that could be answered with a question is in progress";

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
    /// Puts a question that is in the book before its person.
    pub(super) async fn put_to_person(self: &Arc<Self>, id: QuestionId, slot: Option<Slot>) {
        let (held, cause, question, record) = {
            let state = self.state();
            let Some(pending) = state.pending.get(&id) else {
                return;
            };
            let record = record_of(&pending.asked.question, &pending.summary);
            let cause = state.talk.cause_of(id);
            (Arc::clone(&pending.held), cause, pending.shown(id), record)
        };
        let record = self.about(Record::question_asked).question(record);
        match slot {
            Some(slot) => slot.write(record),
            None => self.shared.audit.write(record).await,
        }
        let watch = Arc::clone(self).watch(id, held);
        let clock = self.shared.tasks.spawn(watch).abort_handle();
        match self.state().pending.get_mut(&id) {
            Some(pending) => pending.clock = Some(clock),
            None => clock.abort(),
        }
        self.deliver(cause, Item::Question(id, question)).await;
        if self.face() == Face::Modern && self.state().streams.waiting.drop_question(id) {
            // The call ended in this moment. No other request of the client is the right one, where that is certain.
            if self.adopt(id).await {
                return;
            }
            self.settle(id, Settlement::Refused(-32602, NO_CALL)).await;
        }
    }

    /// Remembers that a call of a modern client failed for want of a capability, if it fails.
    pub(super) fn note_need(&self, cause: Option<LegId>, required: &'static str) {
        let mut state = self.state();
        let call = cause
            .and_then(|leg| state.talk.client_id(leg))
            .map(Into::into);
        if let Some(call) = call.filter(|_| self.face() == Face::Modern) {
            state.needs.insert(call, required);
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
        if !unread && pending.was_shown() {
            let told = notice.replacing(server_id, &id.to_string());
            self.deliver(cause.or(question.cause), Item::Withdrawn(id, told))
                .await;
        }
    }

    /// A question of a request is over before it has its answer: the client is told. `whose` says which
    /// of the call's. False when there is none.
    pub(super) async fn call_off(
        self: &Arc<Self>,
        call: LegId,
        whose: impl Fn(&Asker) -> bool + Send,
    ) -> bool {
        let taken = {
            let mut state = self.state();
            let found = state.pending.iter().find_map(|(id, pending)| {
                let own = whose(&pending.asked.asker);
                (own && state.talk.cause_of(*id) == Some(call)).then_some(*id)
            });
            found.and_then(|id| {
                let question = state.talk.give_up(now(), id)?;
                let unread = state.streams.waiting.drop_question(id);
                Some((id, question, state.pending.remove(&id)?, unread))
            })
        };
        let Some((id, question, pending, unread)) = taken else {
            return false;
        };
        pending.stop_clock();
        self.record_unanswered(&question, &pending, Outcome::Cancelled, "request_over")
            .await;
        if !unread && pending.was_shown() {
            let params = format!(r#"{{"requestId":{id},"reason":"the request is over"}}"#);
            let notice = message::notification("notifications/cancelled", &params);
            self.deliver(Some(call), Item::Withdrawn(id, notice)).await;
        }
        true
    }

    /// Waits with a question, and ends it when its time is over: the person's, or that of a stream
    /// which could carry it to them.
    async fn watch(self: Arc<Self>, id: QuestionId, held: Arc<Notify>) {
        let times = &self.shared.config.timeouts;
        let patience = self.policy.patience().unwrap_or(times.question);
        if self.face() == Face::Modern {
            // The parked call keeps the time, and anew in each round; should its task have died, the
            // question still ends.
            let rounds = Limits::default().rounds + 1;
            tokio::time::sleep(patience * rounds).await;
            return self.give_up(id, Unanswered::Timeout).await;
        }
        let streamless = async {
            loop {
                held.notified().await;
                // Who lost the stream of a call may come back to it, and finds the question there.
                let awaited = self.state().streams.is_awaited();
                let pause = if awaited { times.resume } else { times.stream };
                tokio::time::sleep(pause).await;
                if self.state().streams.waiting.drop_question(id) {
                    return;
                }
            }
        };
        let why = tokio::select! {
            () = streamless => Unanswered::NoStream,
            () = tokio::time::sleep(patience) => Unanswered::Timeout,
        };
        self.give_up(id, why).await;
    }

    /// Takes a question out of the book: whoever gets it owes the answer. Its clock goes on, since it may
    /// be the clock that asks.
    pub(super) fn take(&self, id: QuestionId) -> Option<(Question, Pending)> {
        let mut state = self.state();
        let question = state.talk.give_up(now(), id)?;
        Some((question, state.pending.remove(&id)?))
    }

    /// Writes down how a question ended that its client did not answer.
    pub(super) async fn record_unanswered(
        &self,
        question: &Question,
        pending: &Pending,
        outcome: Outcome,
        reason: &'static str,
    ) {
        let record = about(self, Record::question_answered, pending)
            .outcome(outcome)
            .reason(reason)
            .waited(now().saturating_duration_since(question.asked));
        let record = with_case(record, &pending.case);
        self.shared.audit.write(record).await;
    }

    /// Ends a question whose client is not there to answer it. The gateway answers.
    pub(super) async fn settle(self: &Arc<Self>, id: QuestionId, settlement: Settlement) {
        let Some((question, mut pending)) = self.take(id) else {
            return;
        };
        pending.stop_clock();
        let (outcome, reason) = match settlement {
            Settlement::Dismissed => {
                pending.case.note(By::Timeout, Said::Cancel);
                (Outcome::Timeout, "nobody_came_back")
            }
            Settlement::Refused(..) => {
                pending.case.note(By::Client, Said::Refuse);
                (Outcome::Refused, "not_answerable")
            }
        };
        self.record_unanswered(&question, &pending, outcome, reason)
            .await;
        let answer = match settlement {
            Settlement::Dismissed => message::result(&question.server_id, r#"{"action":"cancel"}"#),
            Settlement::Refused(code, text) => {
                let data = serde_json::json!({ "source": "gateway" });
                message::error(Some(&question.server_id), code, text, Some(&data))
            }
        };
        match &pending.asked.asker {
            Asker::Gateway(approver) => approver.deny(NOT_APPROVED),
            asker => self.tell_asker(asker, answer).await,
        }
    }

    async fn give_up(self: &Arc<Self>, id: QuestionId, why: Unanswered) {
        let Some((question, mut pending)) = self.take(id) else {
            return;
        };
        if matches!(why, Unanswered::NoStream) {
            let text = "the client has no stream on which it could be asked";
            pending.case.note(By::Client, Said::Refuse);
            self.record_unanswered(&question, &pending, Outcome::Lost, "no_stream")
                .await;
            match &pending.asked.asker {
                Asker::Server(tenure) => {
                    let answer = unanswered(&question.server_id, "no_stream", text);
                    self.tell_unanswered(tenure, answer).await;
                }
                Asker::Driver(driver) => driver.fail(text).await,
                Asker::Gateway(approver) => approver.deny(NOBODY),
            }
            return;
        }
        let params = format!(r#"{{"requestId":{id},"reason":"nobody answered in time"}}"#);
        let notice = message::notification("notifications/cancelled", &params);
        // Not waited for: a client that reads nothing must not keep the server waiting.
        let (session, cause) = (Arc::clone(self), question.cause);
        self.shared.tasks.spawn(async move {
            session.deliver(cause, Item::Withdrawn(id, notice)).await;
        });
        let verdict = match &pending.asked.asker {
            Asker::Gateway(_) => pending.case.settle(By::Timeout, Verdict::Cancel),
            _ => self.policy.timed_out(&mut pending.case),
        };
        self.record_unanswered(&question, &pending, Outcome::Timeout, "timeout")
            .await;
        match &pending.asked.asker {
            Asker::Gateway(approver) => approver.deny(TOO_LATE),
            _ => self.reply(&pending.asked, &verdict).await,
        }
    }

    /// Answers a question without its person.
    pub(super) async fn reply(self: &Arc<Self>, asked: &Asked, verdict: &Verdict) {
        let id = asked.question.id().unwrap_or("null");
        let answer = answer_of(id, verdict);
        match (&asked.asker, verdict) {
            (Asker::Server(tenure), _) => self.tell_unanswered(tenure, answer).await,
            (Asker::Driver(driver), Verdict::Refuse(refusal)) => {
                driver.fail(refusal.told()).await;
            }
            (Asker::Driver(driver), _) => {
                if let Ok(answer) = Message::parse(&answer) {
                    driver.pass(&answer).await;
                }
            }
            // Only a person approves.
            (Asker::Gateway(approver), _) => approver.deny(NOT_APPROVED),
        }
    }

    /// Answers a question with an error, without asking anybody, when that is on record. `slot` is the place
    /// for the record, where there is one.
    pub(super) async fn refuse(
        self: &Arc<Self>,
        question: &Message,
        asker: &Asker,
        (code, reason): (i32, &'static str),
        text: &'static str,
        slot: Option<Slot>,
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
        match slot {
            Some(slot) => slot.write(record),
            None => self.shared.audit.write(record).await,
        }
        match asker {
            Asker::Server(tenure) => self.tell_unanswered(tenure, answer).await,
            Asker::Driver(driver) => driver.fail(text).await,
            Asker::Gateway(approver) => approver.deny(text),
        }
    }

    /// Answers a request of the server that could not be read for certain.
    pub(super) async fn refuse_unreadable(self: &Arc<Self>, tenure: &Arc<Tenure>, id: &str) {
        let refusal = message::error(
            Some(id),
            -32600,
            "the request can't be read for certain",
            None,
        );
        self.tell_unanswered(tenure, refusal).await;
    }

    /// Sends an answer of ours to who asked, if that is the server.
    pub(super) async fn tell_asker(self: &Arc<Self>, asker: &Asker, answer: Bytes) {
        if let Asker::Server(tenure) = asker {
            self.tell_unanswered(tenure, answer).await;
        }
    }

    /// Sends an answer of ours, beside what else is going on. Waits while many are on their way.
    pub(super) async fn tell_unanswered(self: &Arc<Self>, tenure: &Arc<Tenure>, answer: Bytes) {
        let turn = Arc::clone(&self.replies).acquire_owned();
        let Some(Ok(turn)) = self.ended.run_until_cancelled(turn).await else {
            return;
        };
        let (session, tenure) = (Arc::clone(self), Arc::clone(tenure));
        self.shared.tasks.spawn(async move {
            // The loss of the session shows itself to whoever asks next.
            let _gone = session.tell(&tenure, answer).await;
            drop(turn);
        });
    }
}
