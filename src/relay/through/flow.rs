//! What a request is that a modern server asks questions in, and how policy walks them: on their way to the
//! client, and their answers on the way back.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use futures_util::future::join_all;

use super::super::caller::Caller;
use super::super::modern::seal::fingerprint;
use super::super::pending::{describe, limited, of_verdict};
use super::super::today;
use super::table::{Open, Place};
use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;
use crate::limit::{Limiter, QuestionSlot};
use crate::policy::{self, By, Case, Policy, Refusal, Said, Verdict};
use crate::protocol::capability::{ClientCapabilities, Need, Undeclared};
use crate::protocol::elicitation::Summary;
use crate::protocol::message::{self, Message};
use crate::protocol::mirror;
use crate::protocol::modern::META_CAPABILITIES;
use crate::protocol::object::{edit, members, quoted, text};
use crate::protocol::server_modern::Wanted;
use crate::telemetry::audit::Record;

/// A request, and whom its questions are for.
pub(super) struct Flow {
    /// As the client sent it.
    pub(super) request: Message,
    pub(super) principal: Principal,
    pub(super) policy: Arc<Policy>,
    /// How many questions it has caused, over all rounds.
    pub(super) asked: u32,
    server: ServerName,
    caller: Caller,
    /// What the server sees that it may ask.
    declared: ClientCapabilities,
    /// The person, as logs name them.
    named: String,
    /// The tool that the request calls.
    tool: Option<String>,
}

/// A question that went the way to its person.
pub(super) struct Walked {
    pub(super) key: String,
    pub(super) question: Message,
    pub(super) case: Case,
    /// What policy answers; none: the person is asked.
    pub(super) verdict: Option<Verdict>,
    /// Its place among the questions that wait for its person, if it is to wait.
    pub(super) slot: Option<Arc<QuestionSlot>>,
    /// What the client would have to declare (JSON text), where it can't be asked.
    pub(super) lacks: Option<&'static str>,
}

impl Flow {
    pub(super) fn new(
        (server, principal): (&ServerName, &Principal),
        policy: &Arc<Policy>,
        caller: Caller,
        request: Message,
    ) -> Self {
        let name = request.param(["name"]).ok().and_then(|[name]| name);
        let tool = name
            .filter(|_| request.method() == "tools/call")
            .and_then(text)
            .map(Cow::into_owned);
        Self {
            tool,
            request,
            principal: principal.clone(),
            policy: Arc::clone(policy),
            asked: 0,
            server: server.clone(),
            declared: caller.declared(caller.can(), policy),
            caller,
            named: principal.to_string(),
        }
    }

    /// The request with what the server may ask in the place of what the client can be asked.
    pub(super) fn for_server(&self) -> Result<Message, Error> {
        match self.with_declared() {
            Some(params) => Ok(Message::parse(
                &self
                    .request
                    .with_body(self.request.id().unwrap_or("null"), &params),
            )?),
            None => Ok(self.request.clone()),
        }
    }

    /// The parameters with that; none where it is the same.
    fn with_declared(&self) -> Option<String> {
        let params = self.request.params()?;
        let [meta] = members(params, ["_meta"]).ok()?;
        let [capabilities] = members(meta?, [META_CAPABILITIES]).ok()?;
        let seen = self.declared.in_place_of(capabilities, true)?;
        let meta = edit(meta?, &[(META_CAPABILITIES, Some(&seen))]).ok()?;
        Some(edit(params, &[("_meta", Some(&meta))]).ok()?.into_owned())
    }

    /// Where a round with this `requestState` (JSON text) is remembered.
    pub(super) fn place(&self, state: Option<&str>) -> Place {
        let method = self.request.method();
        let member = mirror::named_by(method).unwrap_or("name");
        let [target, arguments] = self
            .request
            .param([member, "arguments"])
            .unwrap_or_default();
        let target = target.and_then(text).unwrap_or_default();
        let request = fingerprint(method, &target, arguments);
        let state = match state {
            // However it is spelled.
            Some(state) => fingerprint(method, &target, Some(state)),
            None => request,
        };
        Place {
            server: self.server.clone(),
            state,
            request,
        }
    }

    /// Walks the questions of a round to their person, all at once. None: one of them is no question.
    pub(super) async fn walk(
        &mut self,
        questions: &[Wanted],
        limiter: &Limiter,
    ) -> Option<Vec<Walked>> {
        let first = self.asked;
        let number = |at: usize| first.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
        self.asked = number(questions.len());
        let this = &*self;
        let walking = questions.iter().enumerate().map(|(at, wanted)| {
            let question = readable(&wanted.method, wanted.params.as_deref());
            let limits = (number(at + 1), limiter);
            async move { Some(this.walk_one(&wanted.key, question?, limits).await) }
        });
        join_all(walking).await.into_iter().collect()
    }

    async fn walk_one(
        &self,
        key: &str,
        question: Message,
        (number, limiter): (u32, &Limiter),
    ) -> Walked {
        let mut walked = Walked {
            key: key.to_owned(),
            question,
            case: Case::default(),
            verdict: None,
            slot: None,
            lacks: None,
        };
        if let Err(undeclared) = self.check_declared(&walked.question) {
            let verdict = Verdict::Refuse(Refusal::undeclared(undeclared));
            walked.verdict = Some(walked.case.settle(By::Client, verdict));
            walked.lacks = Some(undeclared.required);
            return walked;
        }
        let view = self.view(&walked.question);
        let (mut case, verdict) = self.policy.check(&view);
        let mut verdict = verdict;
        if verdict.is_none() {
            match self.within_limits(number, limiter) {
                Ok(slot) => {
                    case.note(By::Limits, Said::Pass);
                    walked.slot = Some(Arc::new(slot));
                }
                Err(refusal) => {
                    verdict = Some(case.settle(By::Limits, Verdict::Refuse(refusal)));
                }
            }
        }
        let mut verdict = verdict.or_else(|| self.policy.rule(&view, &mut case));
        if verdict.is_none() {
            verdict = self.policy.before(&view, &mut case).await;
        }
        if verdict.is_none()
            && let Err(undeclared) = self.caller.can_be_asked(&walked.question)
        {
            let absent = self
                .policy
                .absent(&mut case, Refusal::undeclared(undeclared));
            let refused = matches!(absent, Verdict::Refuse(_));
            walked.lacks = refused.then_some(undeclared.required);
            verdict = Some(absent);
        }
        if verdict.is_some() {
            walked.slot = None;
        }
        walked.case = case;
        walked.verdict = verdict;
        walked
    }

    /// Some servers ask whatever was declared (2026-07-28 patterns/mrtr: they must not). Of what the client
    /// declared and the operator does not allow, policy speaks.
    fn check_declared(&self, question: &Message) -> Result<(), Undeclared> {
        let declared = self.declared.allow(question);
        declared.or_else(|undeclared| match self.caller.can_be_asked(question) {
            Ok(()) => Ok(()),
            Err(_) => Err(undeclared),
        })
    }

    /// A place for one more question, within the limits of its request, its server and its person.
    fn within_limits(&self, number: u32, limiter: &Limiter) -> Result<QuestionSlot, Refusal> {
        match self.policy.over_limit(number) {
            Some(refusal) => Err(refusal),
            None => limiter
                .question(&self.server, &self.principal)
                .map_err(limited),
        }
    }

    /// Asks the hook after the person, where there is one.
    pub(super) async fn after(&self, open: &mut Open, result: &str) -> Option<Verdict> {
        let Open { question, case, .. } = open;
        self.policy.after(&self.view(question), case, result).await
    }

    /// A question as policy sees it.
    fn view<'a>(&'a self, question: &'a Message) -> policy::Question<'a> {
        let [arguments] = self.request.param(["arguments"]).unwrap_or_default();
        let principal = (&self.principal, self.named.as_str());
        policy::Question {
            server: self.server.as_str(),
            method: question.method(),
            params: question.params().unwrap_or("{}"),
            tool: self.tool.as_deref(),
            arguments,
            // There is no session.
            person: self.caller.person(Need::of(question), principal, ""),
        }
    }

    /// A record about one of its questions.
    pub(super) fn about(
        &self,
        kind: fn(SystemTime) -> Record,
        key: &str,
        question: &Message,
    ) -> Record {
        let summary = Summary::of(question);
        self.record(kind)
            .question(describe(&quoted(key), question.method(), &summary))
    }

    /// A record that policy answered a question.
    pub(super) fn decided(
        &self,
        key: &str,
        question: &Message,
        case: &Case,
        verdict: &Verdict,
    ) -> Record {
        let record = self.about(Record::question_answered, key, question);
        of_verdict(record, verdict, case)
    }

    pub(super) fn record(&self, kind: fn(SystemTime) -> Record) -> Record {
        kind(today())
            .principal(&self.principal)
            .server(&self.server)
    }
}

impl Walked {
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.verdict, Some(Verdict::Refuse(_)))
    }

    /// The question as the client has it.
    pub(super) fn open(&self, now: Instant) -> Open {
        // Of others than elicitations nothing is looked at when the answer comes.
        let bare = || readable(self.question.method(), None);
        let bare = (!self.case.kind.is_elicitation()).then(bare).flatten();
        Open {
            key: self.key.clone(),
            question: bare.unwrap_or_else(|| self.question.clone()),
            case: self.case.clone(),
            asked: now,
            kept: None,
            slot: self.slot.clone(),
            ended: false,
        }
    }
}

/// A question as a message of its own; none where it can't be one.
fn readable(method: &str, params: Option<&str>) -> Option<Message> {
    Message::parse(&message::request("1", method, params.unwrap_or("{}"))).ok()
}
