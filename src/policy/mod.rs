//! What happens to a question on its way from a server to a person, and to the answer on its way back.
//!
//! ```text
//! server ─► mode ─► secrets · url · schema ─► limits ─► rules ─► before hook ─► person
//!            │             │                    │         │           │            │ answer
//!            └─────────────┴────────────────────┴─────────┴───────────┤            ▼
//!                 each may answer: then the person is not asked       │      fits the form? ──no──► asked again
//! server ◄────────────────────────────────────────────────────────────┴── after hook ◄─┘
//! ```
//!
//! [`Policy`] is that way for one server; whoever walks it (the relay) asks the limits and the person.
//! What the steps said is in the [`Case`], for the record. The looks at forms, answers and addresses are
//! pure: [`form`], [`answer`], [`secrets`], [`urls`], [`remark`]; [`hook`] asks outside. What the gateway itself
//! asks before a tool runs is in [`approval`].
//!
//! # Invariants
//! - Decisions come from the parsed body, and what could be read in two ways is refused.
//! - What passes stays the bytes it was; an edit changes one named member.
//! - What a rule or a hook fills in is looked at like a person's answer, and never sent when it does not
//!   fit.
//! - No text of this room holds a value that somebody typed.

pub mod answer;
pub mod approval;
mod case;
pub mod form;
pub mod hook;
mod json;
mod known;
pub mod question;
pub mod remark;
mod rules;
pub mod secrets;
pub mod urls;
pub mod verdict;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use self::answer::{Fault, Mode as AnswerMode};
pub use self::case::Case;
use self::form::Form;
use self::hook::{Endpoint, Event, Hook, Opinion, Target};
use self::known::Forms;
use self::question::Content;
pub use self::question::{Kind, Person, Question};
use self::urls::HostPattern;
pub use self::verdict::{By, Refusal, Said, Step, Verdict};
use crate::config::questions::{
    self as config, HookAt, Mode, OnError, Questions, Reply, SchemaRule, Secrets, WhenClientCannot,
};
use crate::protocol::elicitation::Action;
use crate::telemetry::Causes;
use crate::upstream::client::HttpClient;
use crate::upstream::command::Command;

/// What happens to the questions of one server.
#[derive(Debug)]
pub struct Policy {
    server: Arc<str>,
    config: Questions,
    hosts: Vec<HostPattern>,
    before: Option<(Hook, OnError)>,
    after: Option<(Hook, OnError)>,
    forms: Forms,
}

/// What is thought of an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Review<'a> {
    /// It can be given to the server, so (JSON text).
    Good(Cow<'a, str>),
    /// It does not fit, and the person is asked again with these parameters (JSON text).
    Again(String),
    /// It does not fit, and was asked for often enough.
    Bad,
}

impl Policy {
    /// The policy of a server. What hooks start is tracked by `tasks`, what they fetch goes through
    /// `client`.
    pub fn new(server: &str, config: &Questions, client: &HttpClient, tasks: &TaskTracker) -> Self {
        let hook = |hook: &config::Hook| {
            let target = match &hook.at {
                HookAt::Command(program) => Target::Command(Arc::new(Command::configured(program))),
                HookAt::Url { url, headers } => {
                    let endpoint = Endpoint::new(client.clone(), url.clone(), headers.clone());
                    Target::Url(Box::new(endpoint))
                }
            };
            (Hook::new(target, hook.timeout, tasks), hook.on_error)
        };
        let hosts = config.urls.hosts.iter();
        Self {
            server: server.into(),
            // What the configuration took for a host is one here.
            hosts: hosts
                .filter_map(|host| HostPattern::read(host).ok())
                .collect(),
            before: config.before.as_ref().map(hook),
            after: config.after.as_ref().map(hook),
            config: config.clone(),
            forms: Forms::default(),
        }
    }

    /// What the operator said.
    pub fn config(&self) -> &Questions {
        &self.config
    }

    /// Whether the server sees that it may ask this. `can`: the client can be asked.
    pub fn declares(&self, kind: Kind, can: bool) -> bool {
        match self.mode(kind) {
            Mode::Refuse => false,
            Mode::Decline | Mode::Cancel => true,
            Mode::Ask => can || (kind.is_elicitation() && self.answers()),
        }
    }

    /// Whether something but a person may answer.
    fn answers(&self) -> bool {
        !self.config.rules.is_empty()
            || self.before.is_some()
            || self.config.when_client_cannot != WhenClientCannot::Undeclared
    }

    /// How long a person may think about it; none: as long as the configuration says for all.
    pub fn patience(&self) -> Option<Duration> {
        self.config.timeout
    }

    fn mode(&self, kind: Kind) -> Mode {
        match kind {
            Kind::Form => self.config.form,
            Kind::Url => self.config.url,
            Kind::Sampling => self.config.sampling,
            Kind::Roots => self.config.roots,
            Kind::Other => Mode::Ask,
        }
    }

    /// Looks at a question: at its kind, for secrets, at its address and form.
    pub fn check(&self, question: &Question<'_>) -> (Case, Option<Verdict>) {
        let content = question.content();
        let kind = content.kind;
        let mut case = Case {
            kind,
            steps: Vec::new(),
            form: None,
            shown: None,
            again: 0,
        };
        let verdict = self.check_mode(kind, &mut case).or_else(|| match kind {
            Kind::Form => self.check_form(question, &content, &mut case),
            Kind::Url => self.check_url(question, &content, &mut case),
            _ => None,
        });
        if verdict.is_none() && self.config.label && kind.is_elicitation() {
            let params = case.shown.as_deref().unwrap_or(question.params);
            case.shown = remark::labelled(params, &self.server).or(case.shown);
        }
        (case, verdict)
    }

    fn check_mode(&self, kind: Kind, case: &mut Case) -> Option<Verdict> {
        let verdict = match self.mode(kind) {
            Mode::Ask => return None,
            Mode::Decline => Verdict::Decline,
            Mode::Cancel => Verdict::Cancel,
            Mode::Refuse => Verdict::Refuse(Refusal::denied(format!(
                "the operator does not allow questions of this kind ({})",
                kind.name()
            ))),
        };
        Some(case.settle(By::Mode, verdict))
    }

    fn check_form(
        &self,
        question: &Question<'_>,
        content: &Content<'_>,
        case: &mut Case,
    ) -> Option<Verdict> {
        let read = match self.forms.read(content.schema()) {
            Ok(read) => read,
            Err(none) => {
                let refusal = Refusal {
                    code: -32602,
                    reason: "schema",
                    text: format!("this is no form: {none}"),
                };
                return Some(case.settle(By::Schema, Verdict::Refuse(refusal)));
            }
        };
        if self.config.secrets != Secrets::Allow {
            match read.wording.wanted(&content.message()) {
                Some(wanted) if self.config.secrets == Secrets::Refuse => {
                    let refusal = Refusal {
                        code: -32602,
                        reason: "secrets",
                        text: wanted.refusal(),
                    };
                    return Some(case.settle(By::Secrets, Verdict::Refuse(refusal)));
                }
                Some(wanted) => {
                    case.shown = remark::warned(question.params, &wanted.warning());
                    let flag = Step::new(By::Secrets, Said::Flag);
                    case.steps.push(flag.because(wanted.to_string()));
                }
                None => case.note(By::Secrets, Said::Pass),
            }
        }
        match read.form.form.outside() {
            Some(outside) if self.config.schema == SchemaRule::Strict => {
                let refusal = Refusal {
                    code: -32602,
                    reason: "schema",
                    text: format!("the form is outside of what the protocol allows: {outside}"),
                };
                return Some(case.settle(By::Schema, Verdict::Refuse(refusal)));
            }
            Some(outside) => {
                let flag = Step::new(By::Schema, Said::Flag);
                case.steps.push(flag.because(outside.to_string()));
            }
            None => case.note(By::Schema, Said::Pass),
        }
        case.form = Some(read.form);
        None
    }

    fn check_url(
        &self,
        question: &Question<'_>,
        content: &Content<'_>,
        case: &mut Case,
    ) -> Option<Verdict> {
        match urls::check(&content.url(), &self.config.urls.schemes, &self.hosts) {
            Ok(seen) if seen.punycode => {
                let warning = format!(
                    "Careful: the name {} has letters that can look like others.",
                    seen.host
                );
                case.shown = remark::warned(question.params, &warning);
                let flag = Step::new(By::Url, Said::Flag);
                case.steps.push(flag.because(warning));
            }
            Ok(_) => case.note(By::Url, Said::Pass),
            Err(refused) => {
                let refusal = Refusal {
                    code: -32602,
                    reason: "url",
                    text: refused.to_string(),
                };
                return Some(case.settle(By::Url, Verdict::Refuse(refusal)));
            }
        }
        None
    }

    /// Whether a call has caused more questions than it may: this is the `number`th, from 1 on.
    pub fn over_limit(&self, number: u32) -> Option<Refusal> {
        let most = self.config.limits.per_call?;
        (number > most.get()).then(|| Refusal {
            code: -31006,
            reason: "question_per_call",
            text: "the call has caused as many questions as it may".to_owned(),
        })
    }

    /// Asks the rules.
    pub fn rule(&self, question: &Question<'_>, case: &mut Case) -> Option<Verdict> {
        if case.kind == Kind::Other {
            return None;
        }
        let (steps, verdict) = rules::first(
            &self.config.rules,
            question,
            case.kind,
            case.form.as_deref(),
        );
        case.steps.extend(steps);
        verdict
    }

    /// Whether a hook has to be asked, which takes a while.
    pub fn has_before(&self, case: &Case) -> bool {
        self.before.is_some() && case.kind.is_elicitation()
    }

    /// Asks the hook before the person.
    pub async fn before(&self, question: &Question<'_>, case: &mut Case) -> Option<Verdict> {
        let (hook, on_error) = self
            .before
            .as_ref()
            .filter(|_| case.kind.is_elicitation())?;
        let by = By::Before(hook.name().to_owned());
        let opinion = hook.ask(&told(question), Event::Before).await;
        let verdict = match opinion {
            Ok(Opinion::Pass) => {
                case.note(by, Said::Pass);
                return None;
            }
            Ok(Opinion::Accept(content)) => match self.fitting(case, content, hook.name()) {
                Ok(verdict) => verdict,
                Err(why) => return case.hook_failed(by, why, *on_error),
            },
            Ok(Opinion::Decline) => Verdict::Decline,
            Ok(Opinion::Block(reason)) => return Some(case.blocked(by, reason)),
            Ok(Opinion::Cancel) => Verdict::Cancel,
            Err(error) => return case.hook_failed(by, Causes(&error).to_string(), *on_error),
        };
        Some(case.settle(by, verdict))
    }

    /// What a hook fills in, where it fits; else why it does not.
    fn fitting(&self, case: &Case, content: Option<String>, hook: &str) -> Result<Verdict, String> {
        let Some(form) = &case.form else {
            return Ok(Verdict::Accept(None));
        };
        let content = content.unwrap_or_else(|| "{}".to_owned());
        match form.check(&content) {
            Ok(()) => Ok(Verdict::Accept(Some(content))),
            Err(faults) => {
                let faults = joined(&faults);
                tracing::warn!(
                    server = &*self.server,
                    hook,
                    faults,
                    "a hook fills in what does not fit"
                );
                Err(format!("it fills in what does not fit: {faults}"))
            }
        }
    }

    /// What becomes of a question whose client can't be asked. `undeclared` is what the server is told
    /// where nobody may speak for the client.
    pub fn absent(&self, case: &mut Case, undeclared: Refusal) -> Verdict {
        let verdict = if case.kind.is_elicitation() && self.answers() {
            match self.config.when_client_cannot {
                WhenClientCannot::Cancel => Verdict::Cancel,
                _ => Verdict::Decline,
            }
        } else {
            Verdict::Refuse(undeclared)
        };
        case.settle(By::Client, verdict)
    }

    /// What the server gets when the person did not answer in time. Only an elicitation has a word for it.
    pub fn timed_out(&self, case: &mut Case) -> Verdict {
        let text = "the person did not answer in time";
        let verdict = if case.kind.is_elicitation() {
            verdict_of(self.config.on_timeout, text)
        } else {
            Verdict::Refuse(Refusal {
                code: -31007,
                reason: "timeout",
                text: text.to_owned(),
            })
        };
        case.settle(By::Timeout, verdict)
    }

    /// Looks at the result (JSON text) that a client answered. `params` are the question's, as the server
    /// put it.
    pub fn review<'a>(&self, case: &mut Case, params: &str, result: &'a str) -> Review<'a> {
        let mode = match case.kind {
            Kind::Form => AnswerMode::Form,
            Kind::Url => AnswerMode::Url,
            _ => return Review::Good(result.into()),
        };
        let faults = match answer::normalise(mode, result) {
            Err(fault) => vec![fault],
            Ok(answer) if answer.action != Action::Accept => {
                case.note(By::Person, said_of(answer.action));
                return Review::Good(answer.result);
            }
            Ok(answer) => {
                let content = answer.content.unwrap_or("{}");
                match case
                    .form
                    .as_ref()
                    .map_or(Ok(()), |form| form.check(content))
                {
                    Ok(()) => {
                        case.note(By::Person, Said::Accept);
                        return Review::Good(answer.result);
                    }
                    Err(faults) => faults,
                }
            }
        };
        let shown = case.shown.as_deref().unwrap_or(params);
        let none = Form::read("{}").ok();
        let form = case.form.as_ref().map(|known| &known.form);
        let form = form.or(none.as_ref());
        match form.and_then(|form| remark::again(shown, form, &faults)) {
            Some(again) if case.again < remark::MAX_AGAIN => {
                case.again += 1;
                let step = Step::new(By::Answer, Said::Again);
                case.steps.push(step.because(joined(&faults)));
                Review::Again(again)
            }
            _ => {
                let step = Step::new(By::Answer, Said::Cancel);
                case.steps.push(step.because(joined(&faults)));
                Review::Bad
            }
        }
    }

    /// Whether a hook has to be asked about the answer, which takes a while.
    pub fn has_after(&self, case: &Case) -> bool {
        self.after.is_some() && case.kind.is_elicitation()
    }

    /// Asks the hook after the person about this result (JSON text). None: it goes to the server as it is.
    pub async fn after(
        &self,
        question: &Question<'_>,
        case: &mut Case,
        result: &str,
    ) -> Option<Verdict> {
        let (hook, on_error) = self.after.as_ref().filter(|_| case.kind.is_elicitation())?;
        let by = By::After(hook.name().to_owned());
        let event = Event::After {
            user_response: result,
        };
        let opinion = hook.ask(&told(question), event).await;
        let verdict = match opinion {
            Ok(Opinion::Pass) => {
                case.note(by, Said::Pass);
                return None;
            }
            // What a person refused is not agreed to by a program.
            Ok(Opinion::Accept(_)) if !case.is_accepted() => {
                let why = "it accepts what the person did not";
                return case.hook_failed(by, why.to_owned(), *on_error);
            }
            Ok(Opinion::Accept(content)) => match self.fitting(case, content, hook.name()) {
                Ok(verdict) => verdict,
                Err(why) => return case.hook_failed(by, why, *on_error),
            },
            Ok(Opinion::Decline) => Verdict::Decline,
            Ok(Opinion::Block(reason)) => return Some(case.blocked(by, reason)),
            Ok(Opinion::Cancel) => Verdict::Cancel,
            Err(error) => return case.hook_failed(by, Causes(&error).to_string(), *on_error),
        };
        Some(case.settle(by, verdict))
    }
}

/// What hooks are told of a question.
fn told<'q>(question: &Question<'q>) -> hook::Question<'q> {
    hook::Question {
        server: question.server,
        tool: question.tool,
        principal: question.person.name,
        session: question.person.session,
        params: question.params,
    }
}

fn verdict_of(reply: Reply, text: &str) -> Verdict {
    match reply {
        Reply::Decline => Verdict::Decline,
        Reply::Cancel => Verdict::Cancel,
        Reply::Refuse => Verdict::Refuse(Refusal::denied(text)),
    }
}

fn joined(faults: &[Fault]) -> String {
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    faults.join("; ")
}

fn said_of(action: Action) -> Said {
    match action {
        Action::Decline => Said::Decline,
        Action::Cancel => Said::Cancel,
        _ => Said::Accept,
    }
}
