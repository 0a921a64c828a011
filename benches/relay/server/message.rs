//! As much of a message as the server needs, and the texts of its answers.

use std::collections::HashMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::text::PAD;

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<Box<RawValue>>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Params,
    pub(super) result: Option<Answer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Params {
    pub(super) name: String,
    pub(super) arguments: Arguments,
    pub(super) input_responses: HashMap<String, Answer>,
    pub(super) request_state: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Arguments {
    /// Comes back in the answer.
    pub(super) token: String,
    /// Bytes of the answer's text.
    pub(super) size: usize,
    /// Whether the answer is an event stream.
    pub(super) events: bool,
}

/// What a person answered.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) content: Content,
}

#[derive(Debug, Deserialize)]
pub(super) struct Content {
    pub(super) said: String,
}

impl Message {
    /// Its id as spelled.
    pub(super) fn id(&self) -> &str {
        self.id.as_ref().map_or("null", |id| id.get())
    }
}

/// An answer with a text of `size` bytes that begins with the token. `first` is what stands first in the
/// result, `before` and `after` what stands around the message.
pub(super) fn padded(
    message: &Message,
    first: &str,
    (before, after): (&str, &'static str),
) -> [Bytes; 3] {
    let Arguments { token, size, .. } = &message.params.arguments;
    let id = message.id();
    let head = format!(
        r#"{before}{{"jsonrpc":"2.0","id":{id},"result":{{{first}"content":[{{"type":"text","text":"{token}"#
    );
    let pad = PAD.slice(..size.saturating_sub(token.len()).min(PAD.len()));
    let tail = format!("\"}}]}}}}{after}");
    [Bytes::from(head), pad, Bytes::from(tail)]
}

/// An answer with this text.
pub(super) fn answered(id: &str, first: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{{first}"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

/// The form that asks for a word.
pub(super) fn form(token: &str) -> String {
    format!(
        r#"{{"message":"{token}","requestedSchema":{{"type":"object","properties":{{"said":{{"type":"string"}}}},"required":["said"]}}}}"#
    )
}

/// The answer to a call of `ask`.
pub(super) fn heard(token: &str, said: &str) -> String {
    format!("{token}:{said}")
}
