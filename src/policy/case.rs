//! A question on its way: what the steps said of it so far, and what they found out.

use std::sync::Arc;

use super::known::Known;
use super::{By, Kind, Said, Step, Verdict, verdict_of};
use crate::config::questions::OnError;

/// A question on its way, and what was found out about it.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// What kind of question it is.
    pub kind: Kind,
    /// What the steps said so far.
    pub steps: Vec<Step>,
    pub(super) form: Option<Arc<Known>>,
    /// The parameters that the person is shown (JSON text), where they are not those of the server.
    pub(super) shown: Option<String>,
    pub(super) again: u32,
}

impl Case {
    /// The parameters that the person is shown (JSON text), where they are not those of the server.
    pub fn shown(&self) -> Option<&str> {
        self.shown.as_deref()
    }

    /// A question of which one step had the only word.
    pub fn decided_by(by: By, said: Said) -> Self {
        let mut case = Self::default();
        case.note(by, said);
        case
    }

    /// Who had the last word, once somebody had.
    pub fn decided(&self) -> Option<&By> {
        let word = |step: &&Step| {
            matches!(
                step.said,
                Said::Accept | Said::Decline | Said::Cancel | Said::Refuse
            )
        };
        self.steps.iter().rfind(word).map(|step| &step.by)
    }

    /// Whether the person has accepted.
    pub(super) fn is_accepted(&self) -> bool {
        let person = |step: &&Step| step.by == By::Person;
        let last = self.steps.iter().rfind(person);
        last.is_some_and(|step| step.said == Said::Accept)
    }

    /// A step had nothing to decide.
    pub fn note(&mut self, by: By, said: Said) {
        self.steps.push(Step::new(by, said));
    }

    /// A hook could not do what it is for, and what becomes of that.
    pub(super) fn hook_failed(
        &mut self,
        by: By,
        why: String,
        on_error: OnError,
    ) -> Option<Verdict> {
        self.steps
            .push(Step::new(by.clone(), Said::Failed).because(why));
        let OnError::Reply(reply) = on_error else {
            return None;
        };
        let text = match by {
            By::After(_) => "the hook after the answer failed",
            _ => "the hook before the question failed",
        };
        let verdict = verdict_of(reply, text);
        let step = Step::new(by, verdict.said());
        self.steps.push(step.because("so `on_error` says"));
        Some(verdict)
    }

    /// A hook said that it must not go on, and why. The server learns that it was declined.
    pub(super) fn blocked(&mut self, by: By, reason: String) -> Verdict {
        self.steps
            .push(Step::new(by, Said::Decline).because(reason));
        Verdict::Decline
    }

    /// A step decided.
    pub fn settle(&mut self, by: By, verdict: Verdict) -> Verdict {
        let why = match &verdict {
            Verdict::Refuse(refusal) => refusal.text.as_str(),
            _ => "",
        };
        self.steps.push(Step::new(by, verdict.said()).because(why));
        verdict
    }
}
