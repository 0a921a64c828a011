//! Walks a question through the policy of its server: on its way to the person, and its answer on the
//! way back. What [`Policy`](crate::policy::Policy) decides, this carries out.
//!
//! # Invariants
//! - A question is in the book before anything is waited for, so that a withdrawal and the end of the
//!   session find it. Whoever takes it out owes its answer.
//! - What becomes of a question is on record before whoever asks hears of it.
//! - What a hook takes its time for keeps neither the server's stream nor the client's request waiting.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;

use super::asked::Asked;
use super::lease::Lease;
use super::pending::{
    Asker, Pending, about, action_of, answer_of, limited, of_verdict, record_of, said_of,
    unanswered, with_case,
};
use super::question::NO_CALL;
use super::session::{Face, LiveSession};
use super::{Answer, now};
use crate::error::Error;
use crate::limit::QuestionSlot;
use crate::policy::{By, Case, Refusal, Review, Said, Verdict};
use crate::protocol::capability::{Need, Undeclared};
use crate::protocol::elicitation::{Action as Answered, Summary};
use crate::protocol::message::{self, Message};
use crate::protocol::sampling;
use crate::protocol::server_legacy::Answered as Head;
use crate::protocol::session::{LegId, Question, QuestionId};
use crate::telemetry::audit::{Outcome, Record, Slot};

/// The word for an answer that an older server has no way to read.
const UNSAYABLE: &str = "unsayable_answer";

impl LiveSession {
    /// Takes a question of the server, which came on the stream of the call `leg`, or on its own. Returns when it
    /// is on its way to the client, or its answer on the way to who asks, or a hook is asked.
    pub(super) async fn ask(
        self: &Arc<Self>,
        leg: Option<LegId>,
        question: &Message,
        waits: Asker,
    ) {
        // Where the log is full and requests wait for it, a question waits too, but not for a session
        // that has ended.
        let reserving = self.ended.run_until_cancelled(self.shared.audit.reserve());
        let Some(Ok(slot)) = reserving.await else {
            let text = "the gateway can't record the question";
            return self
                .refuse(question, &waits, (-31006, "audit_full"), text, None)
                .await;
        };
        let carried = |face| self.state().streams.has_route(leg, face);
        if question.method() == "ping" && (self.face() == Face::Modern || !carried(Face::Legacy)) {
            // It asks whether the session lives. That is the gateway's to say where it holds the session, and where
            // the client, who need not listen, can't be asked.
            let id = question.id().unwrap_or("null");
            return self.tell_asker(&waits, message::result(id, "{}")).await;
        }
        if self.face() == Face::Modern && !carried(Face::Modern) {
            return self
                .refuse(question, &waits, (-32602, "no_call"), NO_CALL, Some(slot))
                .await;
        }
        let need = Need::of(question);
        let allowed = self.state().talk.allows(need);
        if let Err(undeclared) = allowed {
            self.note_need(leg, undeclared.required);
            let (code, text) = (undeclared.code, undeclared.message);
            return self
                .refuse(question, &waits, (code, "undeclared"), text, Some(slot))
                .await;
        }
        let asked = Arc::new(Asked::new(self, leg, (question.clone(), need), waits));
        let view = asked.view(self);
        let (mut case, verdict) = self.policy.check(&view);
        if let Some(verdict) = verdict {
            return self.decide(&asked, &case, &verdict, slot).await;
        }
        let place = match self.within_limits(&asked) {
            Ok(place) => place,
            Err(refusal) => {
                let verdict = case.settle(By::Limits, Verdict::Refuse(refusal));
                return self.decide(&asked, &case, &verdict, slot).await;
            }
        };
        case.note(By::Limits, Said::Pass);
        if let Some(verdict) = self.policy.rule(&view, &mut case) {
            return self.decide(&asked, &case, &verdict, slot).await;
        }
        let consult = self.policy.has_before(&case);
        if !consult && let Err(undeclared) = asked.caller.meets(need) {
            let verdict = self.absent(&asked, &mut case, undeclared);
            return self.decide(&asked, &case, &verdict, slot).await;
        }
        let Some(id) = self.book(&asked, case, place) else {
            let text = "the session of the client has ended";
            return self
                .refuse(
                    question,
                    &asked.asker,
                    (-31003, "session_lost"),
                    text,
                    Some(slot),
                )
                .await;
        };
        if consult {
            let session = Arc::clone(self);
            let consulting = async move { session.consult(id, &asked, slot).await };
            self.shared.tasks.spawn(consulting);
        } else {
            self.put_to_person(id, Some(slot)).await;
        }
    }

    /// Writes a question into the book; none when the session has ended.
    pub(super) fn book(
        &self,
        asked: &Arc<Asked>,
        case: Case,
        place: QuestionSlot,
    ) -> Option<QuestionId> {
        let mut state = self.state();
        let booked = match (&asked.asker, asked.cause) {
            (Asker::Gateway(_), Some(call)) => state.talk.ask_own(now(), call, &asked.question),
            _ => state.talk.ask(now(), asked.cause, &asked.question),
        };
        let id = booked.ok()?;
        let pending = Pending {
            asked: Arc::clone(asked),
            case,
            again: None,
            summary: Summary::of(&asked.question),
            clock: None,
            held: Arc::new(Notify::new()),
            slot: place,
        };
        state.pending.insert(id, pending);
        Some(id)
    }

    /// A place for one more question, within the limits of its call, its server and its person.
    fn within_limits(&self, asked: &Asked) -> Result<QuestionSlot, Refusal> {
        if let Some(refusal) = self.policy.over_limit(asked.number) {
            return Err(refusal);
        }
        let limiter = &self.shared.limiter;
        let place = limiter.question(self.server().name(), self.principal());
        place.map_err(limited)
    }

    /// Asks the hook before the person, and goes on as it says.
    async fn consult(self: &Arc<Self>, id: QuestionId, asked: &Arc<Asked>, slot: Slot) {
        let Some(mut case) = self.state().pending.get_mut(&id).map(Pending::take_case) else {
            return;
        };
        let view = asked.view(self);
        // When the session ends, its questions have their answers.
        let hook = self.policy.before(&view, &mut case);
        let Some(verdict) = self.ended.run_until_cancelled(hook).await else {
            return;
        };
        let verdict = verdict.or_else(|| {
            let undeclared = asked.caller.meets(asked.need).err()?;
            Some(self.absent(asked, &mut case, undeclared))
        });
        let Some(verdict) = verdict else {
            if let Some(pending) = self.state().pending.get_mut(&id) {
                pending.case = case;
            }
            return self.put_to_person(id, Some(slot)).await;
        };
        if self.take(id).is_some() {
            self.decide(asked, &case, &verdict, slot).await;
        }
    }

    /// What becomes of a question whose client can't be asked.
    fn absent(&self, asked: &Asked, case: &mut Case, undeclared: Undeclared) -> Verdict {
        let verdict = self.policy.absent(case, Refusal::undeclared(undeclared));
        if let Verdict::Refuse(_) = &verdict {
            self.note_need(asked.cause, undeclared.required);
        }
        verdict
    }

    /// Puts on record that a question needs no person, and answers it.
    async fn decide(self: &Arc<Self>, asked: &Asked, case: &Case, verdict: &Verdict, slot: Slot) {
        let question = &asked.question;
        let record = self
            .about(Record::question_answered)
            .question(record_of(question, &Summary::of(question)));
        slot.write(of_verdict(record, verdict, case));
        self.reply(asked, verdict).await;
    }

    /// Takes an answer of the client to whoever waits for it, if it fits.
    ///
    /// # Errors
    /// When the server no longer knows the session.
    pub async fn answer(self: &Arc<Self>, answer: &Message) -> Result<Answer, Error> {
        let taken = {
            let mut state = self.state();
            let taken = answer.id().and_then(|id| state.talk.answer(now(), id));
            taken.and_then(|(id, question)| Some((question, state.pending.remove(&id)?)))
        };
        let Some((question, mut pending)) = taken else {
            // Late, twice, or never asked: the answer goes nowhere, and the client needs no error.
            let record = self
                .about(Record::answer_ignored)
                .reason("no_such_question");
            self.shared.audit.note(Some(self.principal()), record);
            return Ok(Answer::Accepted);
        };
        pending.stop_clock();
        if let Asker::Gateway(_) = &pending.asked.asker {
            // It is about no matter of the server, whose policy has no say.
            let said = Answered::of(&question.method, answer);
            pending.case.note(By::Person, said_of(said));
            return self.give(&question, &pending, answer).await;
        }
        let Some(result) = answer.result() else {
            pending.case.note(By::Person, Said::Refuse);
            return self.give(&question, &pending, answer).await;
        };
        let params = pending.asked.question.params().unwrap_or("{}");
        let good = match self.policy.review(&mut pending.case, params, result) {
            Review::Good(Cow::Borrowed(_)) => answer.clone(),
            Review::Good(Cow::Owned(result)) => {
                Message::parse(&answer.with_body(answer.id().unwrap_or("null"), &result))?
            }
            Review::Again(params) => {
                pending.again = Some(params);
                // Beside this: it may have to wait for the one who answers here to read on.
                let session = Arc::clone(self);
                let asking = async move { session.ask_again(question, pending).await };
                self.shared.tasks.spawn(asking);
                return Ok(Answer::Accepted);
            }
            Review::Bad => {
                Message::parse(&answer_of(answer.id().unwrap_or("null"), &Verdict::Cancel))?
            }
        };
        if self.policy.has_after(&pending.case) {
            let session = Arc::clone(self);
            let consulting = async move { session.consult_after(&question, pending, good).await };
            self.shared.tasks.spawn(consulting);
            return Ok(Answer::Accepted);
        }
        self.give(&question, &pending, &good).await
    }

    /// Asks the hook after the person, and gives the server what that says.
    async fn consult_after(
        self: &Arc<Self>,
        question: &Question,
        pending: Pending,
        answer: Message,
    ) {
        let mut pending = pending;
        let asked = Arc::clone(&pending.asked);
        let result = answer.result().unwrap_or("{}");
        let view = asked.view(self);
        let verdict = self.policy.after(&view, &mut pending.case, result).await;
        let changed = verdict.map(|verdict| answer_of(answer.id().unwrap_or("null"), &verdict));
        let answer = changed
            .and_then(|it| Message::parse(&it).ok())
            .unwrap_or(answer);
        // The loss of the session shows itself to whoever asks next.
        let _gone = self.give(question, &pending, &answer).await;
    }

    /// Asks once more, under an id of its own: that of the answer is used up.
    async fn ask_again(self: &Arc<Self>, question: Question, pending: Pending) {
        let asked = Arc::clone(&pending.asked);
        let booked = {
            let mut state = self.state();
            let booked = state.talk.ask(now(), question.cause, &asked.question);
            match booked {
                Ok(id) => {
                    let held = Arc::new(Notify::new());
                    let pending = Pending {
                        held,
                        clock: None,
                        ..pending
                    };
                    state.pending.insert(id, pending);
                    Ok(id)
                }
                Err(_) => Err(pending),
            }
        };
        match booked {
            Ok(id) => self.put_to_person(id, None).await,
            Err(pending) => {
                let id = &*question.server_id;
                if let Ok(answer) = Message::parse(&answer_of(id, &Verdict::Cancel)) {
                    let _gone = self.give(&question, &pending, &answer).await;
                }
            }
        }
    }

    /// Gives an answer to whoever waits for it, and puts that on record.
    async fn give(
        self: &Arc<Self>,
        question: &Question,
        pending: &Pending,
        answer: &Message,
    ) -> Result<Answer, Error> {
        let action = Answered::of(&question.method, answer);
        let (sent, outcome) = self.as_the_server_takes_it(question, answer);
        let mut record = about(self, Record::question_answered, pending)
            .outcome(outcome)
            .waited(now().saturating_duration_since(question.asked));
        if outcome == Outcome::Refused {
            record = record.reason(UNSAYABLE);
        }
        if let Some(action) = action_of(action) {
            record = record.action(action);
        }
        // Before it is sent: the outcome of the call, which follows it, has a record too.
        self.shared
            .audit
            .write(with_case(record, &pending.case))
            .await;
        let tenure = match &pending.asked.asker {
            Asker::Driver(driver) => {
                driver.pass(answer).await;
                return Ok(Answer::Accepted);
            }
            Asker::Gateway(approver) => {
                approver.hear(action);
                return Ok(Answer::Accepted);
            }
            Asker::Server(tenure) => tenure,
        };
        let sent = self.post_patiently(&tenure.wire, sent).await;
        let lost = match &sent {
            Ok(reply) if reply.status.is_success() => None,
            Ok(reply) if reply.what == Head::SessionGone => Some("forgotten_by_server"),
            Ok(_) => Some("refused_by_server"),
            Err(_) => Some("server_unreachable"),
        };
        if let Some(reason) = lost {
            tracing::warn!(server = %self.server().name(), session = self.tag(), reason, "an answer did not reach its server");
            let record = about(self, Record::answer_lost, pending)
                .outcome(Outcome::Lost)
                .reason(reason);
            self.shared.audit.write(record).await;
        }
        match sent {
            Ok(reply) if reply.what == Head::SessionGone => {
                // Its call waits for an answer that can't come any more.
                let call = |leg| self.state().calls.get(&leg).map(|it| Arc::clone(&it.halt));
                if let Some(halt) = question.cause.and_then(call) {
                    halt.lost.notify_one();
                }
                self.lose(tenure).map(|()| Answer::Accepted)
            }
            _ => Ok(Answer::Accepted),
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
}
