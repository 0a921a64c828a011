//! What an open question holds beside its entry in the book, who waits for its answer, and what the
//! log says of it.
//!
//! # Invariant
//! Names of fields and addresses without their secrets are all that a record tells of a question.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;
use tokio::task::AbortHandle;

use super::approval::Approver;
use super::asked::Asked;
use super::lease::Tenure;
use super::session::LiveSession;
use crate::limit::{QuestionLimited, QuestionSlot};
use crate::policy::{Case, Refusal, Said, Verdict};
use crate::protocol::elicitation::{Action as Answered, Summary};
use crate::protocol::message::{self, Message};
use crate::protocol::rounds::{Input, Leg};
use crate::protocol::session::QuestionId;
use crate::telemetry::audit::{self, Action, Outcome, Record};

/// What an open question holds beside its entry in the book.
pub(super) struct Pending {
    pub(super) asked: Arc<Asked>,
    /// What policy found out about it.
    pub(super) case: Case,
    /// The parameters (JSON text) with which it is asked again.
    pub(super) again: Option<String>,
    pub(super) summary: Summary,
    pub(super) clock: Option<AbortHandle>,
    /// Told when the question has no stream, and has to wait for one.
    pub(super) held: Arc<Notify>,
    /// Its place among the questions of its person, free again when it ends.
    #[expect(dead_code, reason = "held for its drop")]
    pub(super) slot: QuestionSlot,
}

/// Who waits for the answer to a question.
#[derive(Clone, Debug)]
pub(super) enum Asker {
    /// The server, in this session that it keeps: the answer is posted to that, and to no other.
    Server(Arc<Tenure>),
    /// A request at a modern server, which goes on with it.
    Driver(Driver),
    /// The gateway: a call that it sends on when its person approves.
    Gateway(Approver),
}

/// The place in a request to which an answer belongs.
#[derive(Clone, Debug)]
pub(super) struct Driver {
    pub(super) leg: Leg,
    pub(super) answers: Sender<Input>,
}

impl Driver {
    /// Brings an answer, or that there is none. Nobody waits for it any more: then it goes nowhere.
    pub(super) async fn pass(&self, answer: &Message) {
        let input = match answer.result() {
            Some(result) => Input::Leg(self.leg, result.to_owned()),
            None => Input::LegFailed(self.leg, "the client answered the question with an error"),
        };
        let _over = self.answers.send(input).await;
    }

    pub(super) async fn fail(&self, why: &'static str) {
        let _over = self.answers.send(Input::LegFailed(self.leg, why)).await;
    }
}

impl Pending {
    /// What policy found out, for whoever asks a hook about it.
    pub(super) fn take_case(&mut self) -> Case {
        std::mem::take(&mut self.case)
    }

    /// The question as its person sees it, under our id.
    pub(super) fn shown(&self, id: QuestionId) -> Bytes {
        let (question, id) = (&self.asked.question, id.to_string());
        match self.again.as_deref().or_else(|| self.case.shown()) {
            Some(shown) => question.with_body(&id, shown),
            None => question.with_id(&id),
        }
    }

    /// The question waits for a stream, from now on.
    pub(super) fn hold(&self) {
        self.held.notify_one();
    }

    /// Whether the client was told of it: until then only a hook knows.
    pub(super) fn was_shown(&self) -> bool {
        self.clock.is_some()
    }

    /// The question is over before its time.
    pub(super) fn stop_clock(&self) {
        if let Some(clock) = &self.clock {
            clock.abort();
        }
    }
}

/// What the server is told when the one who was asked is gone.
pub(super) fn lost(server_id: &str, text: &str) -> Bytes {
    unanswered(server_id, "session_lost", text)
}

pub(super) fn unanswered(server_id: &str, reason: &str, text: &str) -> Bytes {
    let data = serde_json::json!({ "source": "gateway", "reason": reason });
    message::error(Some(server_id), -31007, text, Some(&data))
}

/// A response with this id (JSON text) that says what policy decided.
pub(super) fn answer_of(id: &str, verdict: &Verdict) -> Bytes {
    match (verdict, verdict.result()) {
        (Verdict::Refuse(refusal), _) => {
            let data = serde_json::json!({ "source": "gateway", "reason": refusal.reason });
            message::error(Some(id), refusal.code, &refusal.text, Some(&data))
        }
        (_, result) => message::result(id, result.as_deref().unwrap_or("{}")),
    }
}

/// A record that a question was answered without its person.
pub(super) fn of_verdict(record: Record, verdict: &Verdict, case: &Case) -> Record {
    let record = match verdict {
        Verdict::Refuse(refusal) => record
            .outcome(Outcome::Refused)
            .reason(refusal.reason)
            .code(i64::from(refusal.code)),
        other => record.outcome(Outcome::Ok).action(said_by(other)),
    };
    with_case(record, case)
}

/// The action of an answer that policy gave.
fn said_by(verdict: &Verdict) -> Action {
    match verdict {
        Verdict::Accept(_) => Action::Accept,
        Verdict::Decline => Action::Decline,
        Verdict::Cancel => Action::Cancel,
        Verdict::Refuse(_) => Action::Error,
    }
}

/// The error for a question that is one too many, or comes too fast.
pub(super) fn limited(why: QuestionLimited) -> Refusal {
    Refusal {
        code: why.code(),
        reason: why.reason(),
        text: why.text().to_owned(),
    }
}

/// A record that tells what the steps of policy said, and which of them decided.
pub(super) fn with_case(record: Record, case: &Case) -> Record {
    let steps = &case.steps;
    let told = steps
        .iter()
        .map(|step| (step.by.word(), step.by.name(), step.said.word()));
    let record = record.policy(told);
    match case.decided() {
        Some(by) => record.decided(by.word()),
        None => record,
    }
}

/// A record about a question that was asked.
pub(super) fn about(
    session: &LiveSession,
    record: fn(SystemTime) -> Record,
    pending: &Pending,
) -> Record {
    session
        .about(record)
        .question(record_of(&pending.asked.question, &pending.summary))
}

pub(super) fn record_of(question: &Message, summary: &Summary) -> audit::Question {
    describe(
        question.id().unwrap_or_default(),
        question.method(),
        summary,
    )
}

pub(super) fn describe(id: &str, method: &str, summary: &Summary) -> audit::Question {
    let described = audit::Question::new(id, method);
    match summary {
        Summary::Other => described,
        Summary::Form(fields) => described.form(fields.iter().map(String::as_str)),
        Summary::Url(url) => described.url(url),
    }
}

/// What a person said about a question of the gateway's own.
pub(super) fn said_of(action: Answered) -> Said {
    match action {
        Answered::Accept => Said::Accept,
        Answered::Decline => Said::Decline,
        Answered::Cancel => Said::Cancel,
        _ => Said::Refuse,
    }
}

pub(super) fn action_of(action: Answered) -> Option<Action> {
    Some(match action {
        Answered::Accept => Action::Accept,
        Answered::Decline => Action::Decline,
        Answered::Cancel => Action::Cancel,
        Answered::Result => Action::Result,
        Answered::Error => Action::Error,
        Answered::Unknown => return None,
    })
}
