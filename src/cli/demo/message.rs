//! The messages that the demo server reads and writes (JSON-RPC 2.0).
//!
//! # Invariants
//! - A request's id goes back exactly as it was written, whatever kind of number or text it is.

use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::booking::Fault;
use super::server::Refusal;
use super::session::Answer;

const MAX_BATCH: usize = 16;

/// A message as it comes in. Ids stay as they were written, so that they go back the same.
#[derive(Deserialize)]
pub(super) struct Message {
    jsonrpc: String,
    pub(super) id: Option<Box<RawValue>>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
    pub(super) result: Option<Value>,
    pub(super) error: Option<Value>,
}

/// Reads the body of a POST: its messages, and whether they came as a batch.
pub(super) fn parse(body: &[u8]) -> Result<(Vec<Message>, bool), Refusal> {
    let syntax = Refusal(StatusCode::BAD_REQUEST, -32700, "the body is not JSON");
    let raw: &RawValue = serde_json::from_slice(body).map_err(|_| syntax)?;
    let batch = raw.get().starts_with('[');
    let messages = if batch {
        serde_json::from_str(raw.get())
    } else {
        serde_json::from_str(raw.get()).map(|message| vec![message])
    };
    let messages = messages.ok().filter(|all: &Vec<Message>| {
        (1..=MAX_BATCH).contains(&all.len()) && all.iter().all(|message| message.jsonrpc == "2.0")
    });
    let refusal = Refusal::invalid("this is no message");
    Ok((messages.ok_or(refusal)?, batch))
}

/// The response to a request, under the id as it was written.
pub(super) fn answer(id: &RawValue, outcome: Result<Value, Fault>) -> String {
    match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(Fault(code, message)) => {
            let error = json!({ "code": code, "message": message });
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
        }
    }
}

/// What a client replied to a question.
pub(super) fn read_answer(result: Option<Value>, error: Option<Value>) -> Answer {
    let Some(result) = result else {
        let error = error.unwrap_or_default();
        let why = error
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or("no reason was given");
        return Answer::None(format!("the question was refused ({why})"));
    };
    match result.get("action").and_then(Value::as_str) {
        Some("accept") => Answer::Accept(
            result
                .get("content")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
        ),
        Some("decline") => Answer::Decline,
        Some("cancel") => Answer::Cancel,
        _ => Answer::None("the answer makes no sense".to_owned()),
    }
}

/// The same in words.
pub(super) fn heard(answer: &Answer) -> String {
    match answer {
        Answer::Accept(filled) => format!("the answer arrives: {}", pairs(filled)),
        Answer::Decline => "the answer arrives: no".to_owned(),
        Answer::Cancel => "the answer arrives: the question was closed".to_owned(),
        Answer::None(why) => format!("no answer: {why}"),
    }
}

/// `party_size 4, seating terrace`
pub(super) fn pairs(filled: &Map<String, Value>) -> String {
    let pair = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name} {text}"),
        other => format!("{name} {other}"),
    };
    filled.iter().map(pair).collect::<Vec<_>>().join(", ")
}

/// An empty `elicitation` means forms: that was all there was in 2025-06-18.
pub(super) fn takes_forms(capability: Option<&Value>) -> bool {
    let Some(modes) = capability.and_then(Value::as_object) else {
        return false;
    };
    modes.is_empty() || modes.contains_key("form")
}
