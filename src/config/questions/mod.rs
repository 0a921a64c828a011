//! What a server may ask of people, and what becomes of it.

mod read;

use std::num::NonZeroU32;
use std::time::Duration;

use http::HeaderMap;
use url::Url;

#[cfg(test)]
pub(super) use self::read::{HOOK, KEYS, LIMITS, RULE, URLS};
pub(super) use self::read::{approve, questions};
pub use super::condition::Condition;
use super::{Program, Rate};

/// The policy for the questions of one server.
#[derive(Clone, Debug)]
pub struct Questions {
    /// Elicitation by a form.
    pub form: Mode,
    /// Elicitation by a URL.
    pub url: Mode,
    /// Sampling.
    pub sampling: Mode,
    /// Roots.
    pub roots: Mode,
    /// What a server sees and gets where the client can't be asked.
    pub when_client_cannot: WhenClientCannot,
    /// How long a person may think; `None`: as long as [`Timeouts::question`](super::Timeouts::question).
    pub timeout: Option<Duration>,
    /// What the server gets when the person did not answer in time.
    pub on_timeout: Reply,
    /// How many questions there may be.
    pub limits: QuestionLimits,
    /// Forms that ask for secrets.
    pub secrets: Secrets,
    /// Forms that are not as the protocol wants them.
    pub schema: SchemaRule,
    /// The addresses to which people may be sent.
    pub urls: Urls,
    /// Whether the message names the server.
    pub label: bool,
    /// What answers by itself; the first that fits.
    pub rules: Vec<Rule>,
    /// What is asked before the person is.
    pub before: Option<Hook>,
    /// What is asked after the person answered.
    pub after: Option<Hook>,
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            form: Mode::Ask,
            url: Mode::Ask,
            sampling: Mode::Ask,
            roots: Mode::Ask,
            when_client_cannot: WhenClientCannot::Undeclared,
            timeout: None,
            on_timeout: Reply::Cancel,
            limits: QuestionLimits::default(),
            secrets: Secrets::Refuse,
            schema: SchemaRule::Lenient,
            urls: Urls::default(),
            label: false,
            rules: Vec::new(),
            before: None,
            after: None,
        }
    }
}

/// What happens to a kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It goes the way of questions, to the person in the end.
    Ask,
    /// It is declined. Only elicitations can be.
    Decline,
    /// It is cancelled. Only elicitations can be.
    Cancel,
    /// The server gets an error, and never sees the capability.
    Refuse,
}

/// An answer that needs no person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `decline`.
    Decline,
    /// `cancel`.
    Cancel,
    /// A JSON-RPC error.
    Refuse,
}

/// What a server sees and gets where the client can't be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenClientCannot {
    /// What the client declared: servers take their own way without questions.
    Undeclared,
    /// The capability, and `decline`.
    Decline,
    /// The capability, and `cancel`.
    Cancel,
}

/// How many questions there may be. `None` is unlimited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionLimits {
    /// In one call (default 8).
    pub per_call: Option<NonZeroU32>,
    /// That wait at once, of one server for one principal (default 64).
    pub pending: Option<NonZeroU32>,
    /// Of one server to one principal (default 600/min).
    pub rate: Option<Rate>,
}

impl Default for QuestionLimits {
    fn default() -> Self {
        Self {
            per_call: NonZeroU32::new(8),
            pending: NonZeroU32::new(64),
            rate: NonZeroU32::new(600).map(|burst| Rate {
                period: Duration::from_millis(100),
                burst,
            }),
        }
    }
}

/// What happens to forms that ask for a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// The server gets an error that names URL mode.
    Refuse,
    /// The message warns, and the record says so.
    Flag,
    /// Nothing.
    Allow,
}

/// What happens to forms outside of the flat subset of JSON Schema that the protocol has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaRule {
    /// The server gets an error.
    Strict,
    /// They are passed on.
    Lenient,
}

/// The addresses to which people may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Urls {
    /// Their schemes (default https). `http` is good for loopback hosts alone.
    pub schemes: Vec<String>,
    /// Their hosts, `*.example.com` for all below; empty: any.
    pub hosts: Vec<String>,
}

impl Default for Urls {
    fn default() -> Self {
        Self {
            schemes: vec!["https".to_owned()],
            hosts: Vec::new(),
        }
    }
}

/// Something that answers a question by itself.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What the record calls it; `None`: its number.
    pub name: Option<String>,
    /// When it fits.
    pub when: Condition,
    /// What it does.
    pub then: Then,
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// Accepts with these fields. A scalar is a text, and becomes what its field is.
    Accept(serde_json::Map<String, serde_json::Value>),
    /// Declines.
    Decline,
    /// Cancels.
    Cancel,
    /// Gives the server an error.
    Refuse,
    /// Leaves the question to what comes after the rules.
    Pass,
}

/// Something outside that is asked for its opinion.
#[derive(Clone, Debug)]
pub struct Hook {
    /// Where.
    pub at: HookAt,
    /// How long it may take.
    pub timeout: Duration,
    /// What happens when it fails.
    pub on_error: OnError,
}

/// Where a hook is.
#[derive(Clone)]
pub enum HookAt {
    /// A program.
    Command(Program),
    /// An address.
    Url {
        /// Where to POST.
        url: Url,
        /// Headers of each request; values are never shown.
        headers: HeaderMap,
    },
}

/// The values of variables may be secrets.
impl std::fmt::Debug for HookAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command(program) => program.fmt(f),
            Self::Url { url, .. } => f.debug_tuple("Url").field(&url.host_str()).finish(),
        }
    }
}

/// What happens when a hook fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// As if it had no opinion: the person is asked, or the answer goes on.
    Ask,
    /// The question ends with this.
    Reply(Reply),
}
