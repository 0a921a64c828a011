//! The words of the contract with hooks: what they are asked about, what they can say, and why one
//! side can't read the other. [`input`](super::input) writes the one, [`output`](super::output) reads
//! the other.
//!
//! # Invariants
//! - No error and no `Debug` repeats what a hook or a person wrote: it could be what was asked for.

use std::fmt;

use super::input::MAX_PART;

/// An elicitation, as the hooks around it are told of it.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The server that asks, by its name in the configuration.
    pub server: &'a str,
    /// The tool whose call caused the question, if a tool did.
    pub tool: Option<&'a str>,
    /// Whom it is for, as logs name them.
    pub principal: &'a str,
    /// What logs call the session. Never its id: who knows that can speak in it.
    pub session: &'a str,
    /// The raw `params` of `elicitation/create`.
    pub params: &'a str,
}

/// What a hook is asked about.
#[derive(Clone, Copy)]
pub enum Event<'a> {
    /// A question is about to be put to a person.
    Before,
    /// The person has answered.
    After {
        /// The raw `result` of the answer: `action` and, where there is one, `content`.
        user_response: &'a str,
    },
}

/// What a hook says.
#[derive(Clone, PartialEq, Eq)]
pub enum Opinion {
    /// Nothing: the question goes on to the person, or the person's answer to the server.
    Pass,
    /// The question is accepted, with this raw JSON object as the `content`. There is none where the
    /// question is no form.
    Accept(Option<String>),
    /// The question is declined.
    Decline,
    /// The question is cancelled.
    Cancel,
    /// It must not go on: the question is not put, the person's answer not given. The server learns
    /// that it was declined. With a reason for the record, short and in one line; it may be empty.
    Block(String),
}

/// Why a question is not shown to a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is more than a form can need.
    #[error("it is larger than {MAX_PART} bytes")]
    TooLarge,
    /// Its parameters are none.
    #[error("its parameters are no object, or name a member twice")]
    Params,
    /// Its form is none.
    #[error("its schema is no object, or names a member twice")]
    Schema,
    /// Its form asks twice for the same, or for what can't be named.
    #[error("its schema names a field twice, or in no way that can be read")]
    Fields,
    /// The person's answer is none.
    #[error("the person's answer is no object with an action, or names a member twice")]
    Response,
}

/// Why what a hook wrote is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Junk {
    /// No text at all.
    #[error("it is not UTF-8")]
    Bytes,
    /// Something before, after or instead of the JSON object.
    #[error("it is not one JSON object, or names a member twice (line {0}, column {1})")]
    NoObject(usize, usize),
    /// The part that is for this event is not what it has to be.
    #[error("`hookSpecificOutput` is no object, or names a member twice")]
    Specific,
    /// An answer to another event.
    #[error("`hookEventName` is not `{0}`")]
    Event(&'static str),
    /// An action that there is not.
    #[error("`action` is none of accept, decline and cancel")]
    Action,
    /// Values without a form around them.
    #[error("`content` is no object")]
    Content,
    /// A form that is accepted needs values.
    #[error("it accepts a form without `content`")]
    NoContent,
    /// Values, but nothing that is to become of them.
    #[error("there is `content` and no `action`")]
    NoAction,
    /// A decision that there is not.
    #[error("`decision` is not `block`")]
    Decision,
}

impl Event<'_> {
    /// The name of the event in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "Elicitation",
            Self::After { .. } => "ElicitationResult",
        }
    }
}

/// Names the question, and nothing that is asked in it.
impl fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("server", &self.server)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

/// Names the event; what the person answered is nobody's business.
impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Names the opinion; values are nobody's business.
impl fmt::Debug for Opinion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("Pass"),
            Self::Accept(_) => f.write_str("Accept(…)"),
            Self::Decline => f.write_str("Decline"),
            Self::Cancel => f.write_str("Cancel"),
            Self::Block(reason) => f.debug_tuple("Block").field(reason).finish(),
        }
    }
}
