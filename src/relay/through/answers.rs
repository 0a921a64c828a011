//! A modern client comes back with answers: they are looked at with the questions that they answer.
//!
//! # Invariants
//! - The server gets the answers of a round together, or none: while one does not fit, the others wait here.
//! - What nobody here asked goes to the server as it is, since answers may come ahead of their questions
//!   (2026-07-28 patterns/mrtr: servers ignore what they don't know), and is on record.
//! - An answer that stands there twice is none: who reads it later could take the other.

use std::collections::HashSet;

use futures_util::future::join_all;

use super::super::now;
use super::super::pending::{action_of, with_case};
use super::rewrite;
use super::table::{Open, Round};
use super::{End, Passage, alive};
use crate::error::Error;
use crate::policy::{Refusal, Review, Verdict};
use crate::protocol::client_modern::Rejected;
use crate::protocol::elicitation::Action;
use crate::protocol::message::{self, Message};
use crate::protocol::object::{entries, members, quoted};
use crate::telemetry::audit::{self, Outcome, Record};

/// An answer: key and result (JSON text).
type Answer = (String, String);

impl Passage {
    /// Looks at the answers that the request brings, and makes of them what the server gets. Some: the request
    /// ends before it got there.
    pub(super) async fn come_back(&mut self) -> Result<Option<End>, Error> {
        let [responses, state] = self
            .flow
            .request
            .param(["inputResponses", "requestState"])?
            .map(|it| it.filter(|it| *it != "null").map(str::to_owned));
        if responses.is_none() && state.is_none() {
            return Ok(None);
        }
        let brought = brought(responses.as_deref().unwrap_or("{}"))?;
        let place = self.flow.place(state.as_deref());
        let found = self.shared.asked.find(&self.flow.principal, &place, now());
        for (key, result) in &brought {
            let known = found.as_ref().is_some_and(|round| round.asks(key));
            if !known {
                self.note_unknown(key, result);
            }
        }
        let Some(round) = found else {
            return Ok(None);
        };
        self.flow.asked = round.asked;
        let mut reviewed = round.clone();
        let again = self.review(&mut reviewed, &brought);
        if !again.is_empty() {
            let end = self.ask_again(reviewed, &again, state.as_deref()).await;
            return end.map(Some);
        }
        if let Some(end) = self.after(&mut reviewed).await? {
            return Ok(Some(end));
        }
        self.keep(round.come_back(&reviewed)).await;
        for open in &reviewed.questions {
            self.record_answer(open).await;
        }
        self.put_answers(&reviewed, &brought, responses.as_deref().unwrap_or("{}"))?;
        Ok(None)
    }

    /// Keeps the answers that are good; says what is to be asked again, with which parameters.
    fn review(&self, round: &mut Round, brought: &[Answer]) -> Vec<Answer> {
        let mut again = Vec::new();
        for (key, result) in brought {
            let Some(open) = round.questions.iter_mut().find(|open| open.key == *key) else {
                continue;
            };
            let params = open.question.params().unwrap_or("{}");
            open.kept = match self.flow.policy.review(&mut open.case, params, result) {
                Review::Good(result) => Some(result.into_owned()),
                Review::Again(params) => {
                    again.push((key.clone(), params));
                    None
                }
                Review::Bad => Verdict::Cancel.result(),
            };
        }
        again
    }

    /// The client is asked again for what does not fit, and only for that.
    async fn ask_again(
        &self,
        mut round: Round,
        again: &[Answer],
        state: Option<&str>,
    ) -> Result<End, Error> {
        round.until = now() + self.patience();
        for open in &mut round.questions {
            if !again.iter().any(|(key, _)| *key == open.key) {
                open.slot = None;
            }
        }
        let kept = self.shared.asked.keep(&self.flow.principal, round, now());
        let late = kept
            .map_err(|_full| Error::Capacity("too many questions wait for this person".into()))?;
        self.lose_late(late).await;
        let result = rewrite::again(again, state);
        let id = self.flow.request.id().unwrap_or("null");
        let response = Message::parse(&message::result(id, &result))?;
        Ok(End::Response(200, response))
    }

    /// Asks the hook after the person about each answer, all at once. Some: the request ends.
    async fn after(&mut self, round: &mut Round) -> Result<Option<End>, Error> {
        let flow = &self.flow;
        let consulting = round.questions.iter_mut().map(|open| async move {
            let result = open.kept.clone()?;
            let verdict = flow.after(open, &result).await?;
            if let Some(changed) = verdict.result() {
                open.kept = Some(changed);
            }
            match &verdict {
                Verdict::Refuse(refusal) => Some((&*open, refusal.clone())),
                _ => None,
            }
        });
        let consulting = join_all(consulting);
        let Some(refused) = alive(&mut self.sink, self.keep_alive, consulting).await else {
            return Ok(Some(End::Gone));
        };
        let Some((open, refusal)) = refused.into_iter().flatten().next() else {
            return Ok(None);
        };
        self.record_refused(open, &refusal).await;
        let refused = open.key.clone();
        // With the request end the other questions of the round.
        for open in &mut round.questions {
            open.ended |= open.key == refused;
        }
        let (outcome, reason) = (Outcome::Cancelled, "request_over");
        self.shared
            .lose(&self.flow.principal, round, outcome, reason)
            .await;
        self.keep(round.clone().over()).await;
        self.refuse(&refusal).map(Some)
    }

    /// Keeps a round that was there, and so has room where it was.
    async fn keep(&self, round: Round) {
        let kept = self.shared.asked.keep(&self.flow.principal, round, now());
        self.lose_late(kept.unwrap_or_default()).await;
    }

    /// Puts the answers of a round into the request, where they are not those that came.
    fn put_answers(
        &mut self,
        round: &Round,
        brought: &[Answer],
        responses: &str,
    ) -> Result<(), Error> {
        let good = round
            .questions
            .iter()
            .filter_map(|open| Some((open.key.as_str(), open.kept.as_deref()?)));
        let decided = round
            .decided
            .iter()
            .map(|(key, result)| (&**key, &**result));
        let came = |(key, result): &(&str, &str)| {
            brought.iter().any(|it| (&*it.0, &*it.1) == (*key, *result))
        };
        let changes: Vec<_> = good.chain(decided).filter(|it| !came(it)).collect();
        if changes.is_empty() {
            return Ok(());
        }
        let unreadable = || Rejected::Answer("inputResponses can't be read".to_owned());
        let answers = rewrite::answered(responses, &changes).ok_or_else(unreadable)?;
        let params = self.sent.params().unwrap_or("{}");
        let params = rewrite::with_answers(params, &answers).ok_or_else(unreadable)?;
        self.sent = Message::parse(&self.sent.with_body(&self.id, &params))?;
        Ok(())
    }

    /// The answers that a retry brings are on record before what they lead to.
    async fn record_answer(&self, open: &Open) {
        let Some(result) = &open.kept else { return };
        let answer = Message::parse(&message::result("1", result));
        let action = answer.map(|answer| Action::of(open.question.method(), &answer));
        let mut record = self
            .flow
            .about(Record::question_answered, &open.key, &open.question)
            .outcome(Outcome::Ok)
            .waited(now().saturating_duration_since(open.asked));
        if let Some(action) = action.ok().and_then(action_of) {
            record = record.action(action);
        }
        self.shared.audit.write(with_case(record, &open.case)).await;
    }

    async fn record_refused(&self, open: &Open, refusal: &Refusal) {
        let verdict = Verdict::Refuse(refusal.clone());
        let record = self
            .flow
            .decided(&open.key, &open.question, &open.case, &verdict)
            .waited(now().saturating_duration_since(open.asked));
        self.shared.audit.write(record).await;
    }

    /// Policy has no say about an answer to what nobody here asked.
    fn note_unknown(&self, key: &str, result: &str) {
        let record = self
            .flow
            .record(Record::answer_ignored)
            .question(audit::Question::new(&quoted(key), question_of(result)))
            .reason("no_such_question");
        self.shared.audit.note(Some(&self.flow.principal), record);
    }
}

impl Round {
    /// Whether the client has this question.
    fn asks(&self, key: &str) -> bool {
        self.questions.iter().any(|open| open.key == key)
    }
}

/// The answers of a retry (JSON text). What is no object holds none, and is the server's to judge.
fn brought(responses: &str) -> Result<Vec<Answer>, Rejected> {
    let answers = entries(responses).unwrap_or_default();
    let keys: HashSet<_> = answers.iter().map(|(key, _)| key).collect();
    if keys.len() < answers.len() {
        return Err(Rejected::Answer("a question has two answers".to_owned()));
    }
    let answers = answers.iter();
    Ok(answers
        .map(|(key, result)| (key.to_string(), (*result).to_owned()))
        .collect())
}

/// What was asked, as far as an answer shows it: the question was in another request.
fn question_of(result: &str) -> &'static str {
    match members(result, ["action", "roots"]) {
        Ok([Some(_), _]) => "elicitation/create",
        Ok([_, Some(_)]) => "roots/list",
        _ => "sampling/createMessage",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_shows_what_was_asked() {
        assert_eq!(question_of(r#"{"action":"accept"}"#), "elicitation/create");
        assert_eq!(question_of(r#"{"roots":[]}"#), "roots/list");
        let message = r#"{"role":"assistant","content":{},"model":"m"}"#;
        assert_eq!(question_of(message), "sampling/createMessage");
    }

    #[test]
    fn answers_that_can_be_read_in_two_ways_are_refused() {
        assert!(brought(r#"{"a":1,"b":2,"\u0061":3}"#).is_err());
        assert_eq!(brought(r#"{"a":1,"A":2}"#).unwrap().len(), 2);
        assert!(brought("[]").unwrap().is_empty());
    }
}
