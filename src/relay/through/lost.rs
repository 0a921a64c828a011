//! Rounds that end without their client: nobody came back in time, the server asks the same request anew, or
//! the gateway ends. Each of their questions has an end on record.

use super::super::pending::{describe, with_case};
use super::super::{Shared, now, today};
use super::Passage;
use super::table::Round;
use crate::auth::Principal;
use crate::policy::{By, Said};
use crate::protocol::elicitation::Summary;
use crate::protocol::object::quoted;
use crate::telemetry::audit::{Outcome, Record};

/// The word for a question that nobody came back with in time.
const NOBODY: &str = "nobody_came_back";

impl Shared {
    /// Forgets the rounds from which nobody came back in time, and puts that on record.
    pub(in crate::relay) async fn sweep_rounds(&self) {
        for (principal, round) in self.asked.sweep(now()) {
            self.lose(&principal, &round, Outcome::Timeout, NOBODY)
                .await;
        }
    }

    /// Forgets all rounds, since nobody can come back any more, and puts that on record.
    pub(in crate::relay) async fn end_rounds(&self, reason: &'static str) {
        for (principal, round) in self.asked.clear() {
            self.lose(&principal, &round, Outcome::Lost, reason).await;
        }
    }

    /// Puts on record how those questions of a round ended which have no end yet.
    pub(super) async fn lose(
        &self,
        principal: &Principal,
        round: &Round,
        outcome: Outcome,
        reason: &'static str,
    ) {
        for open in round.questions.iter().filter(|open| !open.ended) {
            let mut case = open.case.clone();
            if outcome == Outcome::Timeout {
                case.note(By::Timeout, Said::Cancel);
            }
            let summary = Summary::of(&open.question);
            let question = describe(&quoted(&open.key), open.question.method(), &summary);
            let record = Record::question_answered(today())
                .principal(principal)
                .server(&round.place.server)
                .question(question)
                .outcome(outcome)
                .reason(reason)
                .waited(now().saturating_duration_since(open.asked));
            self.audit.write(with_case(record, &case)).await;
        }
    }
}

impl Passage {
    /// The server asks, so what it asked at the same place is over: its client has called anew.
    pub(super) async fn replace(&self, state: Option<&str>) {
        let principal = &self.flow.principal;
        if let Some(old) = self.shared.asked.take(principal, &self.flow.place(state)) {
            let (outcome, reason) = (Outcome::Lost, "replaced");
            self.shared.lose(principal, &old, outcome, reason).await;
        }
    }

    /// Nobody came back from these in time.
    pub(super) async fn lose_late(&self, late: Vec<Round>) {
        for round in late {
            self.shared
                .lose(&self.flow.principal, &round, Outcome::Timeout, NOBODY)
                .await;
        }
    }
}
