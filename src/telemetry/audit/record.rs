//! What one line of the audit log says: who did what, where, how it ended.
//!
//! # Invariants
//! - There is no place for a value: neither arguments nor answers, only names, kinds and numbers.
//!   Reasons are words of the gateway (`&'static str`), never text from the wire.
//! - What the policy said is words of the gateway too; beside them stand only names that the operator
//!   gave, of rules and hooks.
//! - Every text from outside is cut to [`TEXT_MAX`](super::text::TEXT_MAX) bytes, and lists to
//!   [`NAMES_MAX`] names and [`STEPS_MAX`] steps, so a record has a largest size
//!   ([`super::chain::LINE_MAX`]).
//! - A URL is kept as its host only, a resource URI without user info, query and fragment: that
//!   is where secrets travel.
//! - A record is as large as a pointer: calls carry it from their beginning to their end, and queues move it.

use std::time::{Duration, SystemTime};

use super::text::{Text, Texts, without_secrets};
use crate::auth::Principal;
use crate::config::ServerName;

/// Field names of a form that are recorded; one more name, `…`, stands for the others.
pub const NAMES_MAX: usize = 32;

/// Steps of the policy that are recorded; one more, `…`, stands for the others.
pub const STEPS_MAX: usize = 32;

/// One line of the audit log, before it has its place in the chain.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use contraflow::auth::Principal;
/// use contraflow::telemetry::audit::{Outcome, Record};
///
/// let _record = Record::call(SystemTime::UNIX_EPOCH)
///     .principal(&Principal::api_key("ci"))
///     .method("tools/call")
///     .target("book_table")
///     .outcome(Outcome::Ok)
///     .duration(Duration::from_millis(12));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Record(pub(super) Box<Content>);

/// What a record says, in the order in which its line says it.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) time: SystemTime,
    pub(super) kind: Kind,
    pub(super) principal: Option<Principal>,
    pub(super) server: Option<ServerName>,
    /// The texts that nearly all records have: session, request, method, target.
    pub(super) texts: Texts<4>,
    pub(super) question: Option<Box<Question>>,
    pub(super) policy: Vec<Step>,
    pub(super) decided_by: Option<&'static str>,
    pub(super) action: Option<Action>,
    pub(super) outcome: Option<Outcome>,
    pub(super) reason: Option<&'static str>,
    pub(super) code: Option<i64>,
    pub(super) status: Option<u16>,
    pub(super) duration_ms: Option<u64>,
    pub(super) waited_ms: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) count: Option<u64>,
}

/// Where the texts stand among the four.
pub(super) const SESSION: usize = 0;
pub(super) const REQUEST: usize = 1;
pub(super) const METHOD: usize = 2;
pub(super) const TARGET: usize = 3;

/// What happened: the `type` of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    GatewayStarted,
    GatewayStopped,
    SessionOpened,
    SessionRenewed,
    SessionClosed,
    Call,
    QuestionAsked,
    QuestionAnswered,
    AnswerIgnored,
    AnswerLost,
    Refused,
    Gap,
}

/// What the answer to a question was; never what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The person agreed (elicitation).
    Accept,
    /// The person said no (elicitation).
    Decline,
    /// The person closed the form (elicitation).
    Cancel,
    /// A result, of a question that is no elicitation.
    Result,
    /// A JSON-RPC error.
    Error,
}

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a result.
    Ok,
    /// With an error of the other side.
    Error,
    /// The gateway said no.
    Refused,
    /// Nobody answered in time.
    Timeout,
    /// One side cancelled it.
    Cancelled,
    /// The one who should have answered is gone.
    Lost,
}

/// How an elicitation asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Form,
    Url,
}

/// The question that a record is about.
#[derive(Clone, Debug)]
#[must_use]
pub struct Question {
    pub(super) id: Text,
    pub(super) method: Text,
    pub(super) mode: Option<Mode>,
    pub(super) host: Option<Text>,
    pub(super) fields: Vec<Text>,
}

impl Question {
    /// A question by the id that its server gave it (the JSON text of the id) and its method.
    pub fn new(id: &str, method: &str) -> Self {
        Self {
            id: Text::new(id),
            method: Text::new(method),
            mode: None,
            host: None,
            fields: vec![],
        }
    }

    /// It asks in form mode for the fields with these names.
    pub fn form<'a>(mut self, fields: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names = fields.into_iter();
        self.mode = Some(Mode::Form);
        self.fields = names.by_ref().take(NAMES_MAX).map(Text::new).collect();
        if names.next().is_some() {
            self.fields.push(Text::new("…"));
        }
        self
    }

    /// It asks in URL mode to open this address, of which only the host is kept.
    pub fn url(mut self, url: &str) -> Self {
        self.mode = Some(Mode::Url);
        self.host = url::Url::parse(url)
            .ok()
            .and_then(|url| url.host_str().map(Text::new));
        self
    }
}

impl Record {
    /// The gateway serves.
    pub fn gateway_started(at: SystemTime) -> Self {
        Self::new(at, Kind::GatewayStarted)
    }

    /// The gateway has stopped serving.
    pub fn gateway_stopped(at: SystemTime) -> Self {
        Self::new(at, Kind::GatewayStopped)
    }

    /// A session exists.
    pub fn session_opened(at: SystemTime) -> Self {
        Self::new(at, Kind::SessionOpened)
    }

    /// A session whose server had lost it goes on with another one there.
    pub fn session_renewed(at: SystemTime) -> Self {
        Self::new(at, Kind::SessionRenewed)
    }

    /// A session is over; `reason` says why.
    pub fn session_closed(at: SystemTime) -> Self {
        Self::new(at, Kind::SessionClosed)
    }

    /// A client's request has ended: one record for each.
    pub fn call(at: SystemTime) -> Self {
        Self::new(at, Kind::Call)
    }

    /// A server's question was given to its client.
    pub fn question_asked(at: SystemTime) -> Self {
        Self::new(at, Kind::QuestionAsked)
    }

    /// A server has its answer, whoever gave it: the client, a refusal, the clock, teardown.
    pub fn question_answered(at: SystemTime) -> Self {
        Self::new(at, Kind::QuestionAnswered)
    }

    /// An answer of a client did not reach the server that waits for it.
    pub fn answer_lost(at: SystemTime) -> Self {
        Self::new(at, Kind::AnswerLost)
    }

    /// An answer changed nothing: late, given before, to an unknown question, or not this caller's.
    pub fn answer_ignored(at: SystemTime) -> Self {
        Self::new(at, Kind::AnswerIgnored)
    }

    /// Something was refused before it became a call: login, limit, form of the message, session.
    pub fn refused(at: SystemTime) -> Self {
        Self::new(at, Kind::Refused)
    }

    /// Records are missing here.
    pub(super) fn gap(at: SystemTime, reason: &'static str) -> Self {
        Self::new(at, Kind::Gap).reason(reason)
    }

    fn new(at: SystemTime, kind: Kind) -> Self {
        Self(Box::new(Content {
            time: at,
            kind,
            principal: None,
            server: None,
            texts: Texts::default(),
            question: None,
            policy: vec![],
            decided_by: None,
            action: None,
            outcome: None,
            reason: None,
            code: None,
            status: None,
            duration_ms: None,
            waited_ms: None,
            bytes: None,
            count: None,
        }))
    }

    /// When it was.
    pub(super) fn time(&self) -> SystemTime {
        self.0.time
    }

    /// When, where that is only known at the end.
    pub fn at(mut self, time: SystemTime) -> Self {
        self.0.time = time;
        self
    }

    /// Who.
    pub fn principal(mut self, principal: &Principal) -> Self {
        self.0.principal = Some(principal.clone());
        self
    }

    /// Which server.
    pub fn server(mut self, server: &ServerName) -> Self {
        self.0.server = Some(server.clone());
        self
    }

    /// Which session, by its tag: a few digits of the SHA-256 of its id, never the id.
    pub fn session(mut self, tag: &str) -> Self {
        self.0.texts.set(SESSION, tag);
        self
    }

    /// The correlation id that all records of one request share.
    pub fn request(mut self, id: &str) -> Self {
        self.0.texts.set(REQUEST, id);
        self
    }

    /// The JSON-RPC method.
    pub fn method(mut self, method: &str) -> Self {
        self.0.texts.set(METHOD, method);
        self
    }

    /// The name of the tool or prompt.
    pub fn target(mut self, name: &str) -> Self {
        self.0.texts.set(TARGET, name);
        self
    }

    /// The URI of the resource; user info, query and fragment are cut off.
    pub fn resource(mut self, uri: &str) -> Self {
        self.0.texts.set(TARGET, &without_secrets(uri));
        self
    }

    /// The question that this is about.
    pub fn question(mut self, question: Question) -> Self {
        self.0.question = Some(Box::new(question));
        self
    }

    /// What each step of the policy said, in the order in which they were asked: a word for the step, the
    /// name of the rule or hook where it is one, a word for what it said.
    pub fn policy<'a>(
        mut self,
        steps: impl IntoIterator<Item = (&'static str, Option<&'a str>, &'static str)>,
    ) -> Self {
        let mut steps = steps.into_iter();
        let kept = steps.by_ref().take(STEPS_MAX);
        self.0.policy = kept
            .map(|(word, name, said)| Step {
                word,
                name: name.map(Text::new),
                said: Some(said),
            })
            .collect();
        if steps.next().is_some() {
            self.0.policy.push(Step {
                word: "…",
                name: None,
                said: None,
            });
        }
        self
    }

    /// Which step of the policy decided, by the word for it: `rule`, `person`, `timeout`.
    pub fn decided(mut self, by: &'static str) -> Self {
        self.0.decided_by = Some(by);
        self
    }

    /// What the answer was.
    pub fn action(mut self, action: Action) -> Self {
        self.0.action = Some(action);
        self
    }

    /// How it ended.
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.0.outcome = Some(outcome);
        self
    }

    /// Why, in one token of the gateway: `wrong_audience`, `idle`, `duplicate`.
    pub fn reason(mut self, token: &'static str) -> Self {
        self.0.reason = Some(token);
        self
    }

    /// The JSON-RPC error code.
    pub fn code(mut self, code: i64) -> Self {
        self.0.code = Some(code);
        self
    }

    /// The HTTP status that the client got.
    pub fn status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// How long it took, all in all; recorded in milliseconds.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.0.duration_ms = Some(milliseconds(duration));
        self
    }

    /// How long a person thought about it; recorded in milliseconds.
    pub fn waited(mut self, waited: Duration) -> Self {
        self.0.waited_ms = Some(milliseconds(waited));
        self
    }

    /// How many bytes it had.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.0.bytes = Some(bytes);
        self
    }

    /// How many records a gap stands for.
    pub fn count(mut self, count: u64) -> Self {
        self.0.count = Some(count);
        self
    }
}

/// What one step of the policy said.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) word: &'static str,
    pub(super) name: Option<Text>,
    pub(super) said: Option<&'static str>,
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
