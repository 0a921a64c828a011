//! Whether a tool runs only when its person approves (`approve` of a server), and what they are shown.
//!
//! # Invariants
//! - What decides is the parsed body. A call whose tool or arguments could be read in two ways is refused.
//! - What is shown moves no cursor, hides nothing and has a largest size; [`Approval::digest`] is that of the
//!   whole, so that what was shown is what runs.

mod page;

use std::fmt::Write as _;

use self::page::{Page, shown, within};
use crate::protocol::message::{Malformed, Message};
use crate::protocol::object::{quoted, text};

/// Bytes of arguments that are shown.
const MAX_ARGUMENTS: usize = 3 * 1024;

/// Bytes of a name that are shown.
const MAX_NAME: usize = 256;

/// A call that its person has to approve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    message: String,
    digest: [u8; 32],
}

impl Approval {
    /// What this request at `server` needs, where tools of these names (`*` for any text) need an approval;
    /// none when it needs none.
    ///
    /// # Errors
    /// When what it calls can't be told for certain, or can't be shown.
    pub fn needed(
        patterns: &[String],
        server: &str,
        request: &Message,
    ) -> Result<Option<Self>, Malformed> {
        if patterns.is_empty() || request.method() != "tools/call" {
            return Ok(None);
        }
        let [name, arguments] = request.param(["name", "arguments"])?;
        // A server that takes something else for a name must not run what was never looked at.
        let Some(tool) = name.and_then(text) else {
            let why = "in `params`: the name of the tool is no text";
            return Err(Malformed::NotAMessage(why.to_owned()));
        };
        if !patterns.iter().any(|pattern| fits(pattern, &tool)) {
            return Ok(None);
        }
        let page = Page::of(&[server, &tool], arguments.unwrap_or("null"), MAX_ARGUMENTS);
        let page = page.map_err(|why| Malformed::NotAMessage(format!("in `arguments`: {why}")))?;
        Ok(Some(Self {
            message: message(server, &tool, arguments.is_some(), &page),
            digest: page.digest,
        }))
    }

    /// The parameters of the question (JSON text): a form without fields, so that to accept, to decline and to
    /// cancel is all there is.
    pub fn params(&self) -> String {
        format!(
            r#"{{"message":{},"requestedSchema":{{"type":"object","properties":{{}}}}}}"#,
            quoted(&self.message)
        )
    }

    /// Which call it is: its server, its tool and all of its arguments (SHA-256).
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

/// What the person reads.
fn message(server: &str, tool: &str, has_arguments: bool, page: &Page) -> String {
    let (name, server) = (within(&shown(tool), MAX_NAME), shown(server));
    let server = within(&server, MAX_NAME);
    let mut message = format!("Approval is needed: may the tool {name} of the server {server} run");
    if !has_arguments {
        message.push_str(", without arguments?");
    } else if page.is_cut() {
        let _infallible = write!(
            message,
            " with these arguments? They are too long to be shown in whole ({} bytes, SHA-256 {}).\n\n{}…",
            page.length,
            hex(&page.digest),
            page.text
        );
    } else {
        let _infallible = write!(message, " with these arguments?\n\n{}", page.text);
    }
    message
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut all, byte| {
        let _infallible = write!(all, "{byte:02x}");
        all
    })
}

/// Whether a name is one of those that a pattern stands for: `*` is any text, everything else is itself.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    // Each part at the first place where it is: what comes after has the most room then.
    for part in middle.split('*') {
        match name.split_once(part).filter(|_| !part.is_empty()) {
            Some((_, after)) => name = after,
            None if part.is_empty() => {}
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests;
