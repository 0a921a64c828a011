//! JSON by its bytes: members as they were spelled, not as a parser would write them again.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// The value at `path` exactly as it is spelled in `text`.
pub(crate) fn raw(text: &str, path: &[&str]) -> Option<String> {
    let mut current = text.to_owned();
    for name in path {
        let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&current).ok()?;
        members.get(*name)?.get().clone_into(&mut current);
    }
    Some(current)
}

/// The members of an object in their order, each value as it is spelled.
pub(crate) fn members(text: &str) -> Vec<(String, String)> {
    let values: BTreeMap<String, &RawValue> =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    let mut members: Vec<_> = values.into_iter().collect();
    members.sort_by_key(|(_, value)| value.get().as_ptr());
    members
        .into_iter()
        .map(|(name, value)| (name, value.get().to_owned()))
        .collect()
}

/// The `id` as it is spelled.
pub(crate) fn id(text: &str) -> String {
    raw(text, &["id"]).unwrap_or_else(|| panic!("no id in {text}"))
}

/// `text` with the value of its `id` replaced by `new`, all other bytes untouched.
pub(crate) fn with_id(text: &str, new: &str) -> String {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap();
    let old = members["id"].get();
    let start = old.as_ptr().addr() - text.as_ptr().addr();
    format!("{}{new}{}", &text[..start], &text[start + old.len()..])
}

/// Sees to it that two messages are the same bytes but for the value of their `id`.
#[track_caller]
pub(crate) fn same_but_id(seen: &str, sent: &str) {
    assert_eq!(with_id(seen, "0"), with_id(sent, "0"));
}

/// The `method` of a request or notification.
pub(crate) fn method(text: &str) -> Option<String> {
    parse(text)["method"].as_str().map(str::to_owned)
}

/// The whole message.
pub(crate) fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// A request.
pub(crate) fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A `tools/call`.
pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> String {
    request(
        id,
        "tools/call",
        &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#),
    )
}

/// A notification.
pub(crate) fn notice(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// A result.
pub(crate) fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// An error.
pub(crate) fn error(id: &str, code: i64, message: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{}}}}}"#,
        Value::from(message)
    )
}

/// A tool's result with one text.
pub(crate) fn text_result(text: &str) -> String {
    format!(
        r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
        Value::from(text)
    )
}

/// A form with one string field `nick`.
pub(crate) fn form(message: &str) -> String {
    format!(
        r#"{{"message":{},"requestedSchema":{{"type":"object","properties":{{"nick":{{"type":"string"}}}},"required":["nick"]}}}}"#,
        Value::from(message)
    )
}

/// The text of a tool's result.
pub(crate) fn text_of(message: &str) -> String {
    let message = parse(message);
    message["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {message}"))
        .to_owned()
}
