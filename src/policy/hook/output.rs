//! What a hook's output means.
//!
//! # Invariants
//! - Values are taken as the bytes they are.
//! - What can be read in two ways, or doesn't fit the question, is [`Junk`] and no opinion.
//! - What forbids wins over whatever else is said beside it.

use std::borrow::Cow;

use super::contract::{Junk, Opinion};
use super::excerpt::excerpt;
use super::input::unless_null;
use crate::protocol::object::{is_object, members, text};

/// What an answer has to fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// The event that it must name.
    pub(super) event: &'static str,
    /// What the question wants.
    pub(super) mode: Mode,
    /// What the person said.
    pub(super) person: Person,
}

/// What a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Values for the fields of a form.
    Form,
    /// That the person visits a URL: nothing comes with their consent.
    Url,
    /// Something of a later version.
    Other,
}

/// What the person said, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Person {
    /// They were not asked yet.
    NotAsked,
    /// They gave their values or their consent.
    Accepted,
    /// They did not.
    Refused,
}

impl Expected {
    /// What the output says.
    pub(super) fn opinion(self, output: &[u8]) -> Result<Opinion, Junk> {
        let output = std::str::from_utf8(output).map_err(|_| Junk::Bytes)?;
        if output.trim_ascii().is_empty() {
            return Ok(Opinion::Pass);
        }
        let names = [
            "continue",
            "stopReason",
            "decision",
            "reason",
            "hookSpecificOutput",
        ];
        let found =
            members(output, names).map_err(|error| Junk::NoObject(error.line(), error.column()))?;
        let [go_on, stop_reason, decision, reason, specific] = found.map(unless_null);
        if go_on == Some("false") {
            return Ok(Opinion::Block(reason_of(stop_reason)));
        }
        match decision.map(text) {
            None => {}
            Some(decision) if decision.as_deref() == Some("block") => {
                return Ok(Opinion::Block(reason_of(reason)));
            }
            Some(_) => return Err(Junk::Decision),
        }
        specific.map_or(Ok(Opinion::Pass), |specific| self.specific(specific))
    }

    /// What the part says that is for this event alone.
    fn specific(self, raw: &str) -> Result<Opinion, Junk> {
        let found =
            members(raw, ["hookEventName", "action", "content"]).map_err(|_| Junk::Specific)?;
        let [event, action, content] = found.map(unless_null);
        if event.and_then(text).as_deref() != Some(self.event) {
            return Err(Junk::Event(self.event));
        }
        let action = match (action, content) {
            (Some(action), _) => text(action).ok_or(Junk::Action)?,
            (None, None) => return Ok(Opinion::Pass),
            // What becomes of the question is the person's word; the values are the hook's.
            (None, Some(_)) => match self.person {
                Person::Accepted => Cow::Borrowed("accept"),
                Person::Refused => return Ok(Opinion::Pass),
                Person::NotAsked => return Err(Junk::NoAction),
            },
        };
        match &*action {
            "accept" => self.accepted(content),
            "decline" => Ok(Opinion::Decline),
            "cancel" => Ok(Opinion::Cancel),
            _ => Err(Junk::Action),
        }
    }

    fn accepted(self, content: Option<&str>) -> Result<Opinion, Junk> {
        if content.is_some_and(|content| !is_object(content)) {
            return Err(Junk::Content);
        }
        let content = content.map(str::to_owned);
        match (self.mode, content) {
            // There is no place for values in the consent to a visit.
            (Mode::Url, _) => Ok(Opinion::Accept(None)),
            (Mode::Other, content) | (Mode::Form, content @ Some(_)) => {
                Ok(Opinion::Accept(content))
            }
            // It agrees with the person, whose values stay.
            (Mode::Form, None) if self.person == Person::Accepted => Ok(Opinion::Pass),
            (Mode::Form, None) => Err(Junk::NoContent),
        }
    }
}

fn reason_of(raw: Option<&str>) -> String {
    let reason = raw.and_then(text).unwrap_or_default();
    excerpt(reason.as_bytes())
}
