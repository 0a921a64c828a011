//! What a dry run tells: a line for each step, what the person is shown, and what the server gets.
//!
//! # Invariants
//! - The steps stand in the order in which they are asked, by the words that the audit log has for them;
//!   those that are not reached are there too.
//! - What files and hooks say is shown without characters that move a cursor or hide text.
//! - JSON is shown as it is sent, behind all else.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::json;

use super::{End, Gone};
use crate::config::questions::{Hook, Mode, OnError, Secrets};
use crate::policy::form::{Field, Kind as FieldKind};
use crate::policy::{By, Case, Kind, Policy, Question, Refusal, Said, Step, Verdict};
use crate::protocol::object::quoted;

/// A question that has gone its way, to be told.
pub(super) struct Report<'a> {
    pub(super) policy: &'a Policy,
    pub(super) question: &'a Question<'a>,
    pub(super) gone: &'a Gone,
    /// How long the person may think.
    pub(super) patience: Duration,
}

/// A step, what it said, and why.
type Line = (&'static str, &'static str, String);

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", plain(&self.title()))?;
        let mut decided = false;
        for step in self.steps() {
            for (step, said, why) in self.lines(step, decided) {
                let line = format!("  {step:<8}  {said:<8}  {}", plain(&why));
                writeln!(f, "{}", line.trim_end())?;
            }
            decided |= self.decided_at(step);
        }
        writeln!(f)?;
        self.end(f)
    }
}

impl Report<'_> {
    fn title(&self) -> String {
        let question = self.question;
        let by = match question.kind() {
            Kind::Url => "by a URL",
            _ => "by a form",
        };
        let call = question.tool.map(|tool| format!(", in a call of {tool}"));
        let headless = if question.person.headless {
            "; nobody sits there (headless)"
        } else {
            ""
        };
        format!(
            "{} asks {} {by}{}{headless}",
            question.server,
            question.person.name,
            call.unwrap_or_default()
        )
    }

    /// The words for the steps, in their order.
    fn steps(&self) -> Vec<&'static str> {
        let looks: &[_] = match self.question.kind() {
            Kind::Url => &["url"],
            _ => &["secrets", "schema"],
        };
        let rest = [
            "limits", "rule", "before", "client", "person", "answer", "after",
        ];
        ["mode"].iter().chain(looks).chain(&rest).copied().collect()
    }

    /// Whether the question ended with this step, without its person.
    fn decided_at(&self, step: &str) -> bool {
        let last = self.gone.case.steps.last();
        !self.is_put() && last.is_some_and(|last| last.by.word() == step)
    }

    /// Whether the question has come to its person.
    fn is_put(&self) -> bool {
        let person = |step: &Step| matches!(step.by, By::Person | By::Answer);
        matches!(self.gone.end, End::Asked) || self.gone.case.steps.iter().any(person)
    }

    fn lines(&self, step: &'static str, decided: bool) -> Vec<Line> {
        if decided {
            // The line of the client is there only where it has something to say.
            let shown = step != "client";
            let line = (step, "-", "not reached".to_owned());
            return Some(line).filter(|_| shown).into_iter().collect();
        }
        if step == "rule" {
            return self.rules();
        }
        let steps = self.gone.case.steps.iter();
        let said: Vec<Line> = steps
            .filter(|said| said.by.word() == step)
            .map(|said| (step, said.said.word(), self.why(said)))
            .collect();
        if said.is_empty() {
            self.silent(step).into_iter().collect()
        } else {
            said
        }
    }

    /// The line of a step that left no trace.
    fn silent(&self, step: &'static str) -> Option<Line> {
        let config = self.policy.config();
        let after = self.policy.has_after(&self.gone.case);
        let (said, why) = match step {
            "mode" => ("pass", self.asking()),
            "secrets" if config.secrets == Secrets::Allow => (
                "-",
                "not looked for: questions.secrets is `allow`".to_owned(),
            ),
            "limits" => ("-", self.limits()),
            "person" => ("-", format!("is asked, and has {:?}", self.patience)),
            "answer" => match self.gone.end {
                End::Asked => ("-", "there is none yet".to_owned()),
                _ => ("pass", self.good()),
            },
            "after" if after => ("-", "asked when there is an answer that fits".to_owned()),
            "before" | "after" => ("-", "there is no such hook".to_owned()),
            _ => return None,
        };
        Some((step, said, why))
    }

    /// What is good about an answer.
    fn good(&self) -> String {
        let accepted = |step: &Step| (&step.by, step.said) == (&By::Person, Said::Accept);
        let form = self.question.kind() == Kind::Form;
        let fits = form && self.gone.case.steps.iter().any(accepted);
        let fits = if fits {
            "it fits the form"
        } else {
            "there are no values to look at"
        };
        let put = if self.gone.normalised {
            ", and is put as the protocol has it"
        } else {
            ""
        };
        format!("{fits}{put}")
    }

    /// A line for each rule that was looked at, up to the one that decides.
    fn rules(&self) -> Vec<Line> {
        let rules = &self.policy.config().rules;
        if rules.is_empty() {
            return vec![("rule", "-", "there are none".to_owned())];
        }
        let fits = self.policy.fitting_rules(self.question, &self.gone.case);
        let steps = self.gone.case.steps.iter();
        let mut steps = steps.filter(|step| matches!(step.by, By::Rule(_)));
        let mut lines = Vec::new();
        for (number, (rule, fits)) in (1..).zip(rules.iter().zip(fits)) {
            let name = match &rule.name {
                Some(name) => format!("{number} \"{name}\""),
                None => number.to_string(),
            };
            // Each of the others has left a step.
            let step = Some(fits).filter(|fits| *fits != Ok(false));
            let Some(step) = step.and_then(|_| steps.next()) else {
                let why = format!("{name}: its condition does not hold");
                lines.push(("rule", "-", why));
                continue;
            };
            let why = match (&step.why, step.said) {
                (Some(why), _) => why,
                (None, Said::Pass) => "its condition holds: what follows decides",
                (None, _) => "its condition holds",
            };
            lines.push(("rule", step.said.word(), format!("{name}: {why}")));
            if step.said != Said::Failed {
                let others = rules.len().saturating_sub(number);
                let why = format!("{others} more not looked at: the first that fits decides");
                lines.extend((others > 0).then_some(("rule", "-", why)));
                break;
            }
        }
        lines
    }

    /// What is to be said of what a step said.
    fn why(&self, step: &Step) -> String {
        let why = step.why.clone().unwrap_or_default();
        match (&step.by, step.said) {
            (By::Mode, Said::Refuse) => self.undeclared().unwrap_or(why),
            (By::Mode, _) => self.mode_as_written(),
            (By::Secrets, Said::Pass) => "no field asks for a secret".to_owned(),
            (By::Secrets, Said::Flag) => format!("{why}; the message warns of it"),
            (By::Schema, Said::Pass) => "the form is as the protocol has it".to_owned(),
            (By::Schema, Said::Flag) => {
                format!("{why}; passed on, since questions.schema is `lenient`")
            }
            (By::Url, Said::Pass) => "people may be sent there".to_owned(),
            (By::Client, _) if why.is_empty() => {
                "the client can't be asked, and nothing has answered for it".to_owned()
            }
            (By::Person, _) => "as the answer says".to_owned(),
            (By::Before(hook) | By::After(hook), said) => {
                let why = match said {
                    Said::Pass => "it has no opinion",
                    Said::Accept => "it fills in its own values",
                    _ => &why,
                };
                let on_error = self.on_error(step);
                format!("{hook}: {why}{on_error}")
                    .trim_end_matches(": ")
                    .to_owned()
            }
            _ => why,
        }
    }

    /// What becomes of a failure that ends nothing.
    fn on_error(&self, step: &Step) -> &'static str {
        let config = self.policy.config();
        let hook = match step.by {
            By::Before(_) => &config.before,
            _ => &config.after,
        };
        let asks = |hook: &Hook| hook.on_error == OnError::Ask;
        if step.said == Said::Failed && hook.as_ref().is_some_and(asks) {
            "; it counts as no opinion, as `on_error: ask` says"
        } else {
            ""
        }
    }

    /// The setting for this kind of question, as in ``questions.elicitation.form is `ask` ``.
    fn mode_as_written(&self) -> String {
        let config = self.policy.config();
        let (key, mode) = match self.question.kind() {
            Kind::Url => ("url", config.url),
            _ => ("form", config.form),
        };
        let mode = match mode {
            Mode::Ask => "ask",
            Mode::Decline => "decline",
            Mode::Cancel => "cancel",
            Mode::Refuse => "refuse",
        };
        format!("questions.elicitation.{key} is `{mode}`")
    }

    fn asking(&self) -> String {
        let mode = self.mode_as_written();
        if self.question.person.headless {
            format!("{mode}; the server sees that it may ask, since the gateway can answer")
        } else {
            format!("{mode}; the server sees that it may ask")
        }
    }

    /// Why the server does not see that it may ask, if it does not.
    fn undeclared(&self) -> Option<String> {
        let kind = self.question.kind();
        let why = if !self.policy.declares(kind, true) {
            self.mode_as_written()
        } else if self.policy.declares(kind, !self.question.person.headless) {
            return None;
        } else {
            "nobody can answer".to_owned()
        };
        let then = "the server does not see that it may ask, and gets an error if it does";
        Some(format!("{why}: {then}"))
    }

    fn limits(&self) -> String {
        let limits = &self.policy.config().limits;
        let number = |most: Option<NonZeroU32>| match most {
            Some(most) => format!("at most {most}"),
            None => "any number".to_owned(),
        };
        let rate = match limits.rate {
            Some(rate) => format!(
                "{} at once and then one every {:?}",
                rate.burst, rate.period
            ),
            None => "no rate".to_owned(),
        };
        format!(
            "not counted in a dry run: {} in one call, {} waiting, {rate}",
            number(limits.per_call),
            number(limits.pending)
        )
    }

    /// What the person is shown, and what the server gets.
    fn end(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.gone.case.shown().unwrap_or(self.question.params);
        match &self.gone.end {
            End::Asked => {
                self.shown(f, "The person is asked, and shown:", shown)?;
                let mut case = Case::default();
                case.kind = self.question.kind();
                let (error, gets) = match self.policy.timed_out(&mut case) {
                    Verdict::Refuse(refusal) => (" an error", error(&refusal)),
                    verdict => ("", verdict.result().unwrap_or_default()),
                };
                let patience = self.patience;
                writeln!(
                    f,
                    "Without an answer within {patience:?} the server gets{error}:\n{gets}"
                )
            }
            End::Again(again) => self.shown(
                f,
                "The person is asked again, twice at most, and shown:",
                again,
            ),
            ended => {
                if self.is_put() {
                    self.shown(f, "The person is shown:", shown)?;
                }
                match ended {
                    End::Error(refusal) => {
                        writeln!(f, "The server gets an error:\n{}", error(refusal))
                    }
                    End::Result(result) => writeln!(f, "The server gets:\n{result}"),
                    End::Asked | End::Again(_) => Ok(()),
                }
            }
        }
    }

    /// What the person is shown of these parameters (JSON text).
    fn shown(&self, f: &mut fmt::Formatter<'_>, title: &str, params: &str) -> fmt::Result {
        writeln!(f, "{title}\n")?;
        let shown = Question {
            params,
            ..*self.question
        };
        let message = shown.message();
        for line in message.trim_matches('\n').lines() {
            writeln!(f, "  {}", plain(line))?;
        }
        if shown.kind() == Kind::Url {
            writeln!(f, "  - link: {}", plain(&shown.url()))?;
        } else if let Ok(form) = shown.form() {
            for field in form.fields() {
                writeln!(f, "  - {}", plain(&of_field(field)))?;
            }
        }
        writeln!(f)
    }
}

/// A field in words, as in `seats (How many?): a whole number, required`.
fn of_field(field: &Field) -> String {
    let label = Some(&field.label).filter(|label| **label != field.name);
    let label = label.map(|label| format!(" ({label})")).unwrap_or_default();
    let titles = field.choices.iter().map(|choice| choice.title.as_str());
    let mut titles: Vec<_> = titles.take(MOST_CHOICES + 1).collect();
    if titles.len() > MOST_CHOICES {
        titles.truncate(MOST_CHOICES);
        titles.push("…");
    }
    let kind = match field.kind {
        FieldKind::String => "text".to_owned(),
        FieldKind::Number => "a number".to_owned(),
        FieldKind::Integer => "a whole number".to_owned(),
        FieldKind::Boolean => "yes or no".to_owned(),
        FieldKind::Enum => format!("one of {}", titles.join(", ")),
        FieldKind::MultiSelect => format!("some of {}", titles.join(", ")),
        FieldKind::Other => "something that a form can't have".to_owned(),
    };
    let required = if field.required { ", required" } else { "" };
    format!("{}{label}: {kind}{required}", field.name)
}

/// The error object (JSON text) that a server gets.
fn error(refusal: &Refusal) -> String {
    let data = json!({ "source": "gateway", "reason": refusal.reason });
    let (code, text) = (refusal.code, quoted(&refusal.text));
    format!(r#"{{"code":{code},"message":{text},"data":{data}}}"#)
}

/// A text on one line, without what would play tricks with a terminal.
fn plain(text: &str) -> String {
    let tricks = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.replace(tricks, "\u{fffd}")
}

/// How many choices of one field are told.
const MOST_CHOICES: usize = 12;
