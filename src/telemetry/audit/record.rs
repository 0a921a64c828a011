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

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};
use time::OffsetDateTime;

use super::text::{Text, capped, without_secrets};
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
#[derive(Clone, Debug, Serialize)]
#[must_use]
pub struct Record {
    #[serde(serialize_with = "rfc3339")]
    time: SystemTime,
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "identity")]
    principal: Option<Principal>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "name")]
    server: Option<ServerName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<Question>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    policy: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

/// What happened: the `type` of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Kind {
    #[serde(rename = "gateway.started")]
    GatewayStarted,
    #[serde(rename = "gateway.stopped")]
    GatewayStopped,
    #[serde(rename = "session.opened")]
    SessionOpened,
    #[serde(rename = "session.renewed")]
    SessionRenewed,
    #[serde(rename = "session.closed")]
    SessionClosed,
    #[serde(rename = "call")]
    Call,
    #[serde(rename = "question.asked")]
    QuestionAsked,
    #[serde(rename = "question.answered")]
    QuestionAnswered,
    #[serde(rename = "answer.ignored")]
    AnswerIgnored,
    #[serde(rename = "answer.lost")]
    AnswerLost,
    #[serde(rename = "refused")]
    Refused,
    #[serde(rename = "audit.gap")]
    Gap,
}

/// What the answer to a question was; never what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Form,
    Url,
}

/// The question that a record is about.
#[derive(Clone, Debug, Serialize)]
#[must_use]
pub struct Question {
    id: Text,
    method: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<Text>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Text>,
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
        Self {
            time: at,
            kind,
            principal: None,
            server: None,
            session: None,
            request: None,
            method: None,
            target: None,
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
        }
    }

    /// When it was.
    pub(super) fn time(&self) -> SystemTime {
        self.time
    }

    /// When, where that is only known at the end.
    pub fn at(mut self, time: SystemTime) -> Self {
        self.time = time;
        self
    }

    /// Who.
    pub fn principal(mut self, principal: &Principal) -> Self {
        self.principal = Some(principal.clone());
        self
    }

    /// Which server.
    pub fn server(mut self, server: &ServerName) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// Which session, by its tag: a few digits of the SHA-256 of its id, never the id.
    pub fn session(mut self, tag: &str) -> Self {
        self.session = Some(Text::new(tag));
        self
    }

    /// The correlation id that all records of one request share.
    pub fn request(mut self, id: &str) -> Self {
        self.request = Some(Text::new(id));
        self
    }

    /// The JSON-RPC method.
    pub fn method(mut self, method: &str) -> Self {
        self.method = Some(Text::new(method));
        self
    }

    /// The name of the tool or prompt.
    pub fn target(mut self, name: &str) -> Self {
        self.target = Some(Text::new(name));
        self
    }

    /// The URI of the resource; user info, query and fragment are cut off.
    pub fn resource(mut self, uri: &str) -> Self {
        self.target = Some(Text::new(&without_secrets(uri)));
        self
    }

    /// The question that this is about.
    pub fn question(mut self, question: Question) -> Self {
        self.question = Some(question);
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
        self.policy = kept
            .map(|(word, name, said)| Step {
                word,
                name: name.map(Text::new),
                said: Some(said),
            })
            .collect();
        if steps.next().is_some() {
            self.policy.push(Step {
                word: "…",
                name: None,
                said: None,
            });
        }
        self
    }

    /// Which step of the policy decided, by the word for it: `rule`, `person`, `timeout`.
    pub fn decided(mut self, by: &'static str) -> Self {
        self.decided_by = Some(by);
        self
    }

    /// What the answer was.
    pub fn action(mut self, action: Action) -> Self {
        self.action = Some(action);
        self
    }

    /// How it ended.
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = Some(outcome);
        self
    }

    /// Why, in one token of the gateway: `wrong_audience`, `idle`, `duplicate`.
    pub fn reason(mut self, token: &'static str) -> Self {
        self.reason = Some(token);
        self
    }

    /// The JSON-RPC error code.
    pub fn code(mut self, code: i64) -> Self {
        self.code = Some(code);
        self
    }

    /// The HTTP status that the client got.
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// How long it took, all in all; recorded in milliseconds.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration_ms = Some(milliseconds(duration));
        self
    }

    /// How long a person thought about it; recorded in milliseconds.
    pub fn waited(mut self, waited: Duration) -> Self {
        self.waited_ms = Some(milliseconds(waited));
        self
    }

    /// How many bytes it had.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// How many records a gap stands for.
    pub fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }
}

/// What one step of the policy said.
#[derive(Clone, Debug, Serialize)]
struct Step {
    #[serde(rename = "step")]
    word: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<&'static str>,
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// RFC 3339 in UTC with six digits of a second, so that records sort as text.
fn rfc3339<S: Serializer>(time: &SystemTime, out: S) -> Result<S::Ok, S::Error> {
    let nanoseconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    let utc = i128::try_from(nanoseconds)
        .ok()
        .and_then(|nanoseconds| OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok())
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    out.collect_str(&format_args!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        utc.year(),
        u8::from(utc.month()),
        utc.day(),
        utc.hour(),
        utc.minute(),
        utc.second(),
        utc.microsecond(),
    ))
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn identity<S: Serializer>(principal: &Option<Principal>, out: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Identity<'a> {
        issuer: std::borrow::Cow<'a, str>,
        subject: std::borrow::Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        client: Option<std::borrow::Cow<'a, str>>,
    }
    principal
        .as_ref()
        .map(|principal| Identity {
            issuer: capped(principal.issuer()),
            subject: capped(principal.subject()),
            client: principal.client().map(capped),
        })
        .serialize(out)
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn name<S: Serializer>(server: &Option<ServerName>, out: S) -> Result<S::Ok, S::Error> {
    server.as_ref().map(ServerName::as_str).serialize(out)
}
