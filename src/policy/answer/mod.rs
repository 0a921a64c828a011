//! Reads an answer to an elicitation: what it says, and content only where content belongs.
//!
//! Schema `ElicitResult` (2025-06-18, 2025-11-25, 2026-07-28): "The submitted form data, only present
//! when action is "accept" and mode was "form"". Clients of the time before `decline` said `reject`.
//!
//! # Invariants
//! - An answer in which nothing is to be changed passes byte for byte.
//! - `accept`, `decline` and `cancel` are never made of one another.
//! - What could be read in two ways is no answer.

mod check;
mod reason;
mod schema;

use std::borrow::Cow;
use std::fmt;

pub use self::check::MAX_CONTENT;
pub use self::schema::Checks;
use crate::protocol::elicitation::Action;
use crate::protocol::object::{edit, is_object, members, text};

/// The largest answer that is read, in bytes of JSON: its content, and what else a client says of it.
pub const MAX_ANSWER: usize = 2 * MAX_CONTENT;

/// How a question was put, which decides whether its answer can have content (2025-11-25
/// client/elicitation, "Response Actions").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A form was shown.
    Form,
    /// A person was sent to a URL; to accept is to agree to that, and says nothing more.
    Url,
}

/// An answer as a server takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Normalised<'a> {
    /// What it says: [`Action::Accept`], [`Action::Decline`] or [`Action::Cancel`], no other.
    pub action: Action,
    /// The result for the server (JSON text), borrowed if it is what the client sent.
    pub result: Cow<'a, str>,
    /// The content of a form that was accepted (JSON text), if there is any.
    pub content: Option<&'a str>,
}

/// One thing that is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the field; none where the answer as a whole is meant.
    pub field: Option<String>,
    /// What is wrong, as the end of a sentence that begins with the field: "must be at least 1".
    /// It never repeats what was answered.
    pub reason: String,
}

/// Reads the result (JSON text) that a client answered.
///
/// # Errors
/// When it is no answer to an elicitation.
///
/// ```
/// use contraflow::policy::answer::{Mode, normalise};
/// use contraflow::protocol::elicitation::Action;
/// let answer = normalise(Mode::Form, r#"{"action":"reject", "content":{}}"#).unwrap();
/// assert_eq!(answer.action, Action::Decline);
/// assert_eq!(answer.result, r#"{"action":"decline"}"#);
/// assert!(normalise(Mode::Form, r#"{"action":"yes"}"#).is_err());
/// ```
pub fn normalise(mode: Mode, answer: &str) -> Result<Normalised<'_>, Fault> {
    if answer.len() > MAX_ANSWER {
        return Err(Fault::whole("is too long"));
    }
    let unreadable = |_| Fault::whole("can't be read");
    let [said, content] = members(answer, ["action", "content"]).map_err(unreadable)?;
    let (action, renamed) = match said.and_then(text).as_deref() {
        Some("accept") => (Action::Accept, None),
        Some("decline") => (Action::Decline, None),
        Some("cancel") => (Action::Cancel, None),
        Some("reject") => (Action::Decline, Some("\"decline\"")),
        _ => {
            return Err(Fault::whole(
                "must have the action accept, decline or cancel",
            ));
        }
    };
    // Some clients write `null` for a content that isn't there.
    let content = content.filter(|content| *content != "null");
    let content = content.filter(|_| action == Action::Accept && mode == Mode::Form);
    if content.is_some_and(|content| !is_object(content)) {
        return Err(Fault::whole("must have an object as its content"));
    }
    let mut changes = Vec::with_capacity(2);
    if renamed.is_some() {
        changes.push(("action", renamed));
    }
    if content.is_none() {
        changes.push(("content", None));
    }
    let result = edit(answer, &changes).map_err(unreadable)?;
    Ok(Normalised {
        action,
        result,
        content,
    })
}

impl Fault {
    /// A fault of the answer as a whole.
    fn whole(reason: &str) -> Self {
        Self {
            field: None,
            reason: reason.to_owned(),
        }
    }
}

/// As in `seats must be at least 1`; `the answer can't be read`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field.as_deref().unwrap_or("the answer");
        write!(f, "{field} {}", self.reason)
    }
}

#[cfg(test)]
mod tests;
