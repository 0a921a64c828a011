//! Puts a line of the gateway's to the message of a question: what was wrong with an answer when it
//! is asked again, or a warning.
//!
//! # Invariants
//! - Of the parameters only `message` changes; its text stays, and gets one line.
//! - The line is made of the form and of reasons, never of what was answered.
//! - It is one line of bounded length, whatever a server calls its fields.

use super::answer::Fault;
use super::form::Form;
use crate::protocol::object::{edit, members, quoted, text};

/// How often a question is asked again whose answer does not fit.
pub const MAX_AGAIN: u32 = 2;

/// How many faults are told at once.
const MAX_TOLD: usize = 5;

/// How many characters of a label are told.
const MAX_LABEL: usize = 60;

/// The parameters (JSON text) of a question that is asked again. They are always made of those of
/// the server, so that the lines of two attempts do not pile up. `None` when they have no message
/// that could be added to.
///
/// ```
/// use contraflow::policy::{form::Form, remark::again};
/// let form = Form::read(r#"{"type":"object","properties":{"n":{"type":"integer","title":"Seats","minimum":1}}}"#).unwrap();
/// let faults = form.check(r#"{"n":0}"#).unwrap_err();
/// let params = r#"{"mode":"form", "message":"How many?","requestedSchema":{}}"#;
/// assert_eq!(
///     again(params, &form, &faults).unwrap(),
///     r#"{"mode":"form", "message":"How many?\n\nPlease answer again. Seats must be at least 1.","requestedSchema":{}}"#
/// );
/// ```
pub fn again(params: &str, form: &Form, faults: &[Fault]) -> Option<String> {
    let told: Vec<String> = faults
        .iter()
        .take(MAX_TOLD)
        .map(|fault| {
            let field = fault.field.as_deref();
            let label = field.map(|name| form.field(name).map_or(name, |field| &field.label));
            let label =
                label.map_or_else(|| "The answer".to_owned(), |label| line(label, MAX_LABEL));
            format!("{label} {}", fault.reason)
        })
        .collect();
    let more = match faults.len().saturating_sub(MAX_TOLD) {
        0 => String::new(),
        more => format!(" And {more} more."),
    };
    let remark = format!("Please answer again. {}.{more}", told.join("; "));
    with_message(params, |message| format!("{message}\n\n{remark}"))
}

/// The parameters (JSON text) of a question with a warning above its message. `None` when they have
/// no message that could be added to.
pub fn warned(params: &str, warning: &str) -> Option<String> {
    with_message(params, |message| format!("{warning}\n\n{message}"))
}

/// The parameters (JSON text) of a question with the name of its server before the message. `None` when
/// they have no message that could be added to.
pub fn labelled(params: &str, server: &str) -> Option<String> {
    with_message(params, |message| format!("[{server}] {message}"))
}

fn with_message(params: &str, change: impl Fn(&str) -> String) -> Option<String> {
    let [message] = members(params, ["message"]).ok()?;
    let message = quoted(&change(&text(message?)?));
    let changed = edit(params, &[("message", Some(&message))]).ok()?;
    Some(changed.into_owned())
}

/// A text of a server's as a part of one line: no more than so many characters, and none that would
/// start a new line or turn the direction of the text.
pub(super) fn line(text: &str, most: usize) -> String {
    let plain = text.trim().chars().map(|letter| match letter {
        letter if letter.is_control() || letter.is_whitespace() => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => ' ',
        letter => letter,
    });
    let mut plain: Vec<char> = plain.take(most + 1).collect();
    if plain.len() > most {
        plain.truncate(most.saturating_sub(1));
        plain.push('…');
    }
    plain.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PARAMS: &str = r#"{ "requestedSchema" : {"type":"object","properties":{"a":{"type":"integer","title":"Seats"}}}, "message":"How \"many\"?" , "_meta":{"n":1.10} }"#;

    fn form(properties: &Value) -> Form {
        Form::read(&json!({ "type": "object", "properties": properties }).to_string()).unwrap()
    }

    fn fault(field: Option<&str>, reason: &str) -> Fault {
        Fault {
            field: field.map(str::to_owned),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn only_the_message_changes() {
        let form = form(&json!({ "a": { "type": "integer", "title": "Seats" } }));
        let faults = [
            fault(None, "has a field that nobody asked for"),
            fault(Some("a"), "is required"),
        ];
        assert_eq!(
            again(PARAMS, &form, &faults).unwrap(),
            PARAMS.replace(
                r#""How \"many\"?""#,
                r#""How \"many\"?\n\nPlease answer again. The answer has a field that nobody asked for; Seats is required.""#
            )
        );
        assert_eq!(
            warned(PARAMS, "Careful.").unwrap(),
            PARAMS.replace(r#""How "#, r#""Careful.\n\nHow "#)
        );
    }

    #[test]
    fn a_label_can_neither_start_a_line_nor_fill_the_page() {
        let label = format!("Seats\n\nSystem: \u{202e}{}", "x".repeat(500));
        let form = form(&json!({ "a": { "type": "integer", "title": label } }));
        let many = vec![fault(Some("a"), "is required"); 40];
        let changed = again(PARAMS, &form, &many).unwrap();
        let changed: Value = serde_json::from_str(&changed).unwrap();
        let message = changed["message"].as_str().unwrap();
        assert_eq!(message.lines().count(), 3, "{message}");
        assert!(
            message.ends_with(" And 35 more.") && message.len() < 600,
            "{message}"
        );
        assert!(!message.contains('\u{202e}'));
    }

    #[test]
    fn a_question_without_a_message_is_not_asked_again() {
        let form = form(&json!({}));
        for params in [
            "{}",
            r#"{"message":7}"#,
            r#"{"message":"a","Message":"b"}"#,
            "[]",
        ] {
            assert_eq!(again(params, &form, &[]), None, "{params}");
            assert_eq!(warned(params, "Careful."), None, "{params}");
        }
    }
}
