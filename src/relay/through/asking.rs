//! A modern server asks: what policy answers by itself goes back to the server, the rest to the client.
//!
//! # Invariants
//! - A retry has no word for an error, so one question that is refused ends the request, and nobody is asked.
//! - What is asked is remembered before the client sees it.

use std::sync::Arc;

use super::super::pending::limited;
use super::super::{now, today};
use super::flow::Walked;
use super::rewrite::{self, Shown};
use super::table::Round;
use super::{End, Passage, alive};
use crate::error::Error;
use crate::limit::QuestionLimited;
use crate::policy::{By, Refusal, Verdict};
use crate::protocol::client_modern::Rejected;
use crate::protocol::message::{self, Message};
use crate::protocol::object::quoted;
use crate::protocol::server_modern::{Required, Retry, responses};
use crate::telemetry::audit::Record;

/// The most questions of one round.
const MOST_QUESTIONS: usize = 64;

/// What is done about a response.
pub(super) enum Step {
    /// The request is over.
    Over(End),
    /// The server goes on with this request.
    On(Message),
}

impl Passage {
    /// Takes the questions of a result.
    pub(super) async fn ask(
        &mut self,
        response: &Message,
        required: Required,
    ) -> Result<Step, Error> {
        if required.questions.len() > MOST_QUESTIONS {
            return Err(Error::Misbehaved("asked too much at once".into()));
        }
        self.replace(required.state.as_deref()).await;
        let shared = Arc::clone(&self.shared);
        let walking = self.flow.walk(&required.questions, &shared.limiter);
        let Some(walked) = alive(&mut self.sink, self.keep_alive, walking).await else {
            return Ok(Step::Over(End::Gone));
        };
        let mut walked =
            walked.ok_or_else(|| Error::Misbehaved("asked what is no question".into()))?;
        if let Some(refused) = walked.iter().find(|it| it.is_refused()) {
            return self.refuse_question(refused).await.map(Step::Over);
        }
        if !walked.is_empty() && walked.iter().all(|it| it.verdict.is_some()) {
            self.record(&walked).await;
            return self.go_on(&walked, required.state).map(Step::On);
        }
        let shown = self.shown(response, &walked)?;
        match self.remember(&walked, required.state.as_deref()) {
            Ok(late) => self.lose_late(late).await,
            Err(at) => {
                if let Some(walked) = walked.get_mut(at) {
                    let verdict = Verdict::Refuse(limited(QuestionLimited::Questions));
                    walked.verdict = Some(walked.case.settle(By::Limits, verdict));
                    return self.refuse_question(walked).await.map(Step::Over);
                }
            }
        }
        self.record(&walked).await;
        Ok(Step::Over(End::Response(200, shown)))
    }

    /// The request with the answers to a round that needs no client.
    fn go_on(&self, walked: &[Walked], state: Option<String>) -> Result<Message, Error> {
        let answers = decided(walked);
        let answers = answers.iter().map(|(key, result)| (&**key, &**result));
        let retry = Retry {
            responses: Some(responses(answers)),
            state,
        };
        let params = rewrite::going_on(self.sent.params().unwrap_or("{}"), &retry);
        let params = params.ok_or_else(|| Error::Misbehaved("asked in no call".into()))?;
        Ok(Message::parse(&self.sent.with_body(&self.id, &params))?)
    }

    /// What the client sees of a round: the very bytes, where policy has nothing to change.
    fn shown(&self, response: &Message, walked: &[Walked]) -> Result<Message, Error> {
        let id = self.flow.request.id().unwrap_or("null");
        let changes = |it: &Walked| it.verdict.is_some() || it.case.shown().is_some();
        if !walked.iter().any(changes) {
            return Ok(Message::parse(&response.with_id(id))?);
        }
        let of = |key: &str| match walked.iter().find(|it| it.key == key) {
            Some(Walked {
                verdict: Some(_), ..
            }) => Shown::Taken,
            Some(it) => it.case.shown().map_or(Shown::Unchanged, Shown::Changed),
            None => Shown::Unchanged,
        };
        let result = rewrite::shown(response.result().unwrap_or("{}"), of);
        let result = result.ok_or_else(|| Error::Misbehaved("asked what can't be read".into()))?;
        Ok(Message::parse(&response.with_body(id, &result))?)
    }

    /// Remembers a round until the client comes back; the error is the place of a question for which there is
    /// no room. Gives those that are forgotten for it. One without questions is remembered for their number alone.
    fn remember(&self, walked: &[Walked], state: Option<&str>) -> Result<Vec<Round>, usize> {
        if self.flow.asked == 0 {
            return Ok(Vec::new());
        }
        let open = walked.iter().filter(|it| it.verdict.is_none());
        let round = Round {
            place: self.flow.place(state),
            until: now() + self.patience(),
            questions: open.map(|it| it.open(now())).collect(),
            decided: decided(walked),
            asked: self.flow.asked,
            answered: walked.is_empty(),
        };
        let first = walked.iter().position(|it| it.verdict.is_none());
        let table = &self.shared.asked;
        let kept = table.keep(&self.flow.principal, round, now());
        kept.or_else(|_full| first.map_or(Ok(Vec::new()), Err))
    }

    /// Puts on record what becomes of the questions of a round.
    async fn record(&self, walked: &[Walked]) {
        for it in walked {
            let record = match &it.verdict {
                Some(verdict) => self.flow.decided(&it.key, &it.question, &it.case, verdict),
                None => self
                    .flow
                    .about(Record::question_asked, &it.key, &it.question),
            };
            self.shared.audit.write(record.at(today())).await;
        }
    }

    /// The request ends for a question that is refused.
    async fn refuse_question(&mut self, walked: &Walked) -> Result<End, Error> {
        let Some(verdict @ Verdict::Refuse(refusal)) = &walked.verdict else {
            return Err(Error::Denied(
                "the gateway does not allow what the server asked",
            ));
        };
        let record = self
            .flow
            .decided(&walked.key, &walked.question, &walked.case, verdict);
        self.shared.audit.write(record).await;
        match walked.lacks {
            // The client can do something about it: declare more, and call again.
            Some(required) => Err(Rejected::Capability(required).into()),
            None => self.refuse(refusal),
        }
    }

    /// The request ends, since the server can't be told that this is refused.
    pub(super) fn refuse(&mut self, refusal: &Refusal) -> Result<End, Error> {
        let why = refusal.told();
        self.fail(why, Error::Denied(why))
    }

    /// The request failed. A tool says so in its result, which a model can read.
    pub(super) fn fail(&mut self, why: &str, error: Error) -> Result<End, Error> {
        if self.flow.request.method() != "tools/call" {
            return Err(error);
        }
        self.record = self.record.clone().reason("interaction_failed");
        let result = format!(
            r#"{{"resultType":"complete","content":[{{"type":"text","text":{}}}],"isError":true}}"#,
            quoted(why)
        );
        let id = self.flow.request.id().unwrap_or("null");
        let response = Message::parse(&message::result(id, &result))?;
        Ok(End::Response(200, response))
    }
}

/// What policy answered: key and result (JSON text).
fn decided(walked: &[Walked]) -> Vec<(String, String)> {
    let answers = walked.iter().filter_map(|it| {
        let result = it.verdict.as_ref()?.result()?;
        Some((it.key.clone(), result))
    });
    answers.collect()
}
