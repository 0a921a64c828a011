//! What may be told about a question and its answer: names and choices, never values.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use super::message::{Kind, Message};
use super::object::{members, text};

/// How many field names of a form are told.
const MAX_FIELDS: usize = 64;

/// What a record may say about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Summary {
    /// No elicitation.
    Other,
    /// A form with fields of these names, in their order.
    Form(Vec<String>),
    /// A person is to be sent to this URL. Only its host may be told: the rest can hold secrets.
    Url(String),
}

/// What an answer was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The person agreed.
    Accept,
    /// The person said no.
    Decline,
    /// The person closed the form.
    Cancel,
    /// A result with another action, or none.
    Unknown,
    /// The result of a question that is no elicitation.
    Result,
    /// A JSON-RPC error.
    Error,
}

impl Summary {
    /// Summarises a question.
    pub fn of(question: &Message) -> Self {
        if question.method() != "elicitation/create" {
            return Self::Other;
        }
        let [mode, url, schema] = question
            .param(["mode", "url", "requestedSchema"])
            .unwrap_or_default();
        if mode.and_then(text).as_deref() == Some("url") {
            return Self::Url(url.and_then(text).unwrap_or_default().into_owned());
        }
        let properties = schema
            .and_then(|schema| members(schema, ["properties"]).ok())
            .and_then(|[properties]| properties)
            .unwrap_or("{}");
        Self::Form(
            serde_json::Deserializer::from_str(properties)
                .deserialize_map(Names)
                .unwrap_or_default(),
        )
    }
}

impl Action {
    /// Reads the answer to a question of this method.
    pub fn of(method: &str, answer: &Message) -> Self {
        if answer.kind() == Kind::Error {
            return Self::Error;
        }
        if method != "elicitation/create" {
            return Self::Result;
        }
        let action = answer
            .result()
            .and_then(|result| members(result, ["action"]).ok())
            .and_then(|[action]| action.and_then(text));
        match action.as_deref() {
            Some("accept") => Self::Accept,
            Some("decline") => Self::Decline,
            Some("cancel") => Self::Cancel,
            _ => Self::Unknown,
        }
    }
}

/// Collects the names of an object's members, and nothing else.
struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<IgnoredAny>()?;
            if names.len() < MAX_FIELDS {
                names.push(name);
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::parse(&text.to_owned().into_bytes().into()).unwrap()
    }

    #[test]
    fn a_form_tells_its_field_names_in_their_order() {
        let question = message(
            r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"secret text",
               "requestedSchema":{"type":"object","properties":{"size":{"type":"integer"},"area":{}}}}}"#,
        );
        assert_eq!(
            Summary::of(&question),
            Summary::Form(vec!["size".into(), "area".into()])
        );
    }

    #[test]
    fn a_url_and_other_questions_are_told_apart() {
        let url = message(
            r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","url":"https://x/y"}}"#,
        );
        assert_eq!(Summary::of(&url), Summary::Url("https://x/y".into()));
        let roots = message(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
        assert_eq!(Summary::of(&roots), Summary::Other);
    }

    #[test]
    fn an_answer_tells_its_action() {
        let elicitation = "elicitation/create";
        let table = [
            (
                elicitation,
                r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{}}}"#,
                Action::Accept,
            ),
            (
                elicitation,
                r#"{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}"#,
                Action::Decline,
            ),
            (
                elicitation,
                r#"{"jsonrpc":"2.0","id":1,"result":{"action":"cancel"}}"#,
                Action::Cancel,
            ),
            (
                elicitation,
                r#"{"jsonrpc":"2.0","id":1,"result":{"action":"ACCEPT"}}"#,
                Action::Unknown,
            ),
            (
                elicitation,
                r#"{"jsonrpc":"2.0","id":1,"result":7}"#,
                Action::Unknown,
            ),
            (
                elicitation,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#,
                Action::Error,
            ),
            (
                "roots/list",
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
                Action::Result,
            ),
        ];
        for (method, answer, action) in table {
            assert_eq!(Action::of(method, &message(answer)), action, "{answer}");
        }
    }
}
