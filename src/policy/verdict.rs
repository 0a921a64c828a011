//! What policy says, and how it came to that.

use std::fmt;

use crate::protocol::capability::Undeclared;

/// An answer that needs no person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted, with this content (JSON text) where it is a form.
    Accept(Option<String>),
    /// Declined.
    Decline,
    /// Cancelled.
    Cancel,
    /// The server gets an error.
    Refuse(Refusal),
}

/// An error for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The JSON-RPC code.
    pub code: i32,
    /// A word for `data.reason` and the record.
    pub reason: &'static str,
    /// What the server is told.
    pub text: String,
}

/// A step of the way that a question goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub by: By,
    /// What it said.
    pub said: Said,
    /// Why, where that is not plain: for whoever tries a policy out. Records have words of their own.
    pub why: Option<String>,
}

/// Who had a say, in the order in which they are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// What the operator said about all questions of its kind.
    Mode,
    /// The look for secrets.
    Secrets,
    /// The look at the address.
    Url,
    /// The look at the form.
    Schema,
    /// The limits.
    Limits,
    /// A rule, by its name or number.
    Rule(String),
    /// The hook before the person, by its program or host.
    Before(String),
    /// What is said where the client can't be asked.
    Client,
    /// The person.
    Person,
    /// The look at the answer.
    Answer,
    /// The hook after the person.
    After(String),
    /// The clock of the person.
    Timeout,
}

/// What a step said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing against it.
    Pass,
    /// It goes on with a warning.
    Flag,
    /// Accepted.
    Accept,
    /// Declined.
    Decline,
    /// Cancelled.
    Cancel,
    /// Refused.
    Refuse,
    /// The person is asked once more.
    Again,
    /// It had something to say, and that was not good.
    Failed,
}

impl Verdict {
    /// What a step says with it.
    pub fn said(&self) -> Said {
        match self {
            Self::Accept(_) => Said::Accept,
            Self::Decline => Said::Decline,
            Self::Cancel => Said::Cancel,
            Self::Refuse(_) => Said::Refuse,
        }
    }

    /// The result (JSON text) that says it; none where it is an error.
    pub fn result(&self) -> Option<String> {
        Some(match self {
            Self::Accept(Some(content)) => {
                format!(r#"{{"action":"accept","content":{content}}}"#)
            }
            Self::Accept(None) => r#"{"action":"accept"}"#.to_owned(),
            Self::Decline => r#"{"action":"decline"}"#.to_owned(),
            Self::Cancel => r#"{"action":"cancel"}"#.to_owned(),
            Self::Refuse(_) => return None,
        })
    }
}

impl Refusal {
    /// An error because the server was not told that it may ask this.
    pub fn undeclared(undeclared: Undeclared) -> Self {
        Self {
            code: undeclared.code,
            reason: "undeclared",
            text: undeclared.message.to_owned(),
        }
    }

    /// An error because of the policy.
    pub fn denied(text: impl Into<String>) -> Self {
        Self {
            code: -31005,
            reason: "policy_denied",
            text: text.into(),
        }
    }
}

impl Refusal {
    /// What the client of a modern server is told, whose questions have no error.
    pub fn told(&self) -> &'static str {
        match self.reason {
            "secrets" => {
                "the server asked for a secret by a form, which the gateway does not allow"
            }
            "url" => "the server sent the person to an address that the gateway does not allow",
            "schema" => "the server asked with a form that is not as the protocol wants it",
            "undeclared" => "the server asked something that the client can't be asked",
            "timeout" => "the person did not answer in time",
            "policy_denied" => "the gateway does not allow what the server asked",
            _ => "the server asked more than the gateway allows",
        }
    }
}

impl Step {
    /// What a step said, of which no more is to be said.
    pub fn new(by: By, said: Said) -> Self {
        Self {
            by,
            said,
            why: None,
        }
    }

    /// The same, and why.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into()).filter(|why| !why.is_empty());
        self
    }
}

impl By {
    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Secrets => "secrets",
            Self::Url => "url",
            Self::Schema => "schema",
            Self::Limits => "limits",
            Self::Rule(_) => "rule",
            Self::Before(_) => "before",
            Self::Client => "client",
            Self::Person => "person",
            Self::Answer => "answer",
            Self::After(_) => "after",
            Self::Timeout => "timeout",
        }
    }

    /// Its own name, where it has one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Rule(name) | Self::Before(name) | Self::After(name) => Some(name),
            _ => None,
        }
    }
}

impl Said {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Flag => "flag",
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
            Self::Refuse => "refuse",
            Self::Again => "again",
            Self::Failed => "failed",
        }
    }
}

/// As in `rule "entity defaults": accept`.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.by.word())?;
        if let Some(name) = self.by.name() {
            write!(f, " {name:?}")?;
        }
        write!(f, ": {}", self.said.word())
    }
}
