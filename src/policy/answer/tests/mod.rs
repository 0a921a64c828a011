//! What is an answer, and which answers fit which forms.

mod fields;
mod schemas;

use proptest::prelude::*;

use super::*;
use crate::policy::form::Form;
use crate::protocol::object::quoted;

/// A form with one field `f`.
fn one(field: &str) -> Form {
    Form::read(&format!(
        r#"{{"type":"object","properties":{{"f":{field}}}}}"#
    ))
    .unwrap()
}

/// What is wrong with a content; empty if nothing is.
fn wrong(form: &Form, content: &str) -> String {
    let faults = form.check(content).err().unwrap_or_default();
    let told: Vec<_> = faults.iter().map(ToString::to_string).collect();
    told.join("; ")
}

/// Checks values of a field of its own: which are right, and why the others are not.
fn check(field: &str, right: &[&str], wrongs: &[(&str, &str)]) {
    let form = one(field);
    for value in right {
        assert_eq!(
            wrong(&form, &format!(r#"{{"f":{value}}}"#)),
            "",
            "{value} for {field}"
        );
    }
    for (value, reason) in wrongs {
        let told = wrong(&form, &format!(r#"{{"f":{value}}}"#));
        assert_eq!(told, format!("f {reason}"), "{value} for {field}");
    }
}

/// The same for text.
fn check_text(field: &str, right: &[&str], reason: &str, wrongs: &[&str]) {
    let right: Vec<_> = right.iter().map(|text| quoted(text)).collect();
    let right: Vec<_> = right.iter().map(String::as_str).collect();
    let wrongs: Vec<_> = wrongs.iter().map(|text| quoted(text)).collect();
    let wrongs: Vec<_> = wrongs.iter().map(|text| (text.as_str(), reason)).collect();
    check(field, &right, &wrongs);
}

#[test]
fn an_answer_with_nothing_to_change_passes_byte_for_byte() {
    for answer in [
        r#"{ "content" : {"n": 1.10, "s":"\u00e9"}, "action":"accept" , "_meta":{"x":1e2} }"#,
        r#"{"action":"accept"}"#,
        r#"{"action":"decline","later":[1.0]}"#,
        r#"{"\u0061ction":"cancel"}"#,
    ] {
        let read = normalise(Mode::Form, answer).unwrap();
        assert_eq!(read.result, answer);
        assert!(matches!(read.result, Cow::Borrowed(_)), "{answer}");
    }
}

#[test]
fn content_is_only_with_an_accepted_form() {
    let table = [
        (Mode::Form, "accept", r#"{"n":1.0}"#, Some(r#"{"n":1.0}"#)),
        (Mode::Form, "accept", "null", None),
        (Mode::Form, "decline", r#"{"n":1}"#, None),
        (Mode::Form, "cancel", "null", None),
        (Mode::Form, "cancel", "[7]", None),
        (Mode::Url, "accept", r#"{"n":1}"#, None),
        (Mode::Url, "decline", "{}", None),
    ];
    for (mode, action, content, kept) in table {
        let answer = format!(r#"{{"action":"{action}", "content":{content},"x":1.0}}"#);
        let read = normalise(mode, &answer).unwrap();
        assert_eq!(read.content, kept, "{answer}");
        let expected = if kept.is_some() {
            answer.clone()
        } else {
            format!(r#"{{"action":"{action}","x":1.0}}"#)
        };
        assert_eq!(read.result, expected);
    }
}

#[test]
fn the_three_actions_stay_what_they_are_and_reject_is_the_old_name_of_decline() {
    for (said, action, told) in [
        ("accept", Action::Accept, "accept"),
        ("decline", Action::Decline, "decline"),
        ("cancel", Action::Cancel, "cancel"),
        ("reject", Action::Decline, "decline"),
    ] {
        let answer = format!(r#"{{"action":"{said}"}}"#);
        let read = normalise(Mode::Form, &answer).unwrap();
        assert_eq!(read.action, action);
        assert_eq!(read.result, format!(r#"{{"action":"{told}"}}"#));
    }
}

#[test]
fn what_is_no_answer_is_told_so() {
    let action = "the answer must have the action accept, decline or cancel";
    for (answer, told) in [
        (r#"{"action":"ACCEPT"}"#, action),
        (r#"{"action":"ok"}"#, action),
        (r#"{"action":true}"#, action),
        (r#"{"content":{}}"#, action),
        ("{}", action),
        (
            r#"{"action":"accept","content":[]}"#,
            "the answer must have an object as its content",
        ),
        (
            r#"{"action":"accept","content":"x"}"#,
            "the answer must have an object as its content",
        ),
        (
            r#"{"action":"accept","action":"decline"}"#,
            "the answer can't be read",
        ),
        (
            r#"{"action":"decline","Action":"accept"}"#,
            "the answer can't be read",
        ),
        (
            r#"{"action":"accept","content":{},"Content":{}}"#,
            "the answer can't be read",
        ),
        ("[]", "the answer can't be read"),
        ("null", "the answer can't be read"),
        ("", "the answer can't be read"),
    ] {
        assert_eq!(
            normalise(Mode::Form, answer).unwrap_err().to_string(),
            told,
            "{answer}"
        );
    }
}

#[test]
fn an_answer_has_a_largest_size() {
    let answer = |length: usize| format!(r#"{{"action":"decline","x":"{}"}}"#, "x".repeat(length));
    assert!(normalise(Mode::Form, &answer(MAX_ANSWER - 100)).is_ok());
    let fault = normalise(Mode::Form, &answer(MAX_ANSWER)).unwrap_err();
    assert_eq!(fault.to_string(), "the answer is too long");
    let form = one(r#"{"type":"string"}"#);
    let content = |length: usize| format!(r#"{{"f":"{}"}}"#, "x".repeat(length));
    assert_eq!(wrong(&form, &content(MAX_CONTENT - 100)), "");
    assert_eq!(
        wrong(&form, &content(MAX_CONTENT)),
        "the answer is too long"
    );
}

#[test]
fn what_is_required_must_be_there_and_what_nobody_asked_for_must_not() {
    let form = Form::read(
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["b","a"]}"#,
    )
    .unwrap();
    for (content, told) in [
        (r#"{"b":1,"a":""}"#, ""),
        ("{}", "a is required; b is required"),
        (r#"{"a":"x"}"#, "b is required"),
        (
            r#"{"a":"x","b":1,"c":2}"#,
            "the answer has a field that nobody asked for",
        ),
        (
            r#"{"a":7,"b":1,"A":2,"canary":3}"#,
            "the answer has 2 fields that nobody asked for; a must be text",
        ),
        (r#"{"a":"x","b":1,"b":1}"#, "b is answered twice"),
        (r#"{"a":"x","\u0061":"y","b":1}"#, "a is answered twice"),
        (r#"{"a":{"x":1,"x":2},"b":1}"#, "a can't be read"),
        (r#"{"a":"\ud800","b":1}"#, "a can't be read"),
        ("[]", "the answer can't be read"),
        ("null", "the answer can't be read"),
        ("", "the answer can't be read"),
    ] {
        assert_eq!(wrong(&form, content), told, "{content}");
    }
    let empty = Form::read(r#"{"type":"object","properties":{}}"#).unwrap();
    assert_eq!(wrong(&empty, "{}"), "");
    assert_eq!(
        wrong(&empty, r#"{"a":1}"#),
        "the answer has a field that nobody asked for"
    );
}

proptest! {
    /// Whatever is typed into whatever field: no fault repeats it.
    #[test]
    fn no_fault_repeats_what_was_typed(
        field in proptest::sample::select(vec![
            r#"{"type":"string","format":"email"}"#, r#"{"type":"string","maxLength":3}"#, r#"{"type":"integer"}"#,
            r#"{"type":"string","enum":["a","b"]}"#, r#"{"type":"boolean"}"#, r#"{"type":"array","items":{"enum":["a"]}}"#,
            r#"{"type":"string","pattern":"^a$"}"#, r#"{"type":"string","const":"a"}"#, r#"{"anyOf":[{"type":"null"},{"type":"integer"}]}"#,
            r#"{"type":"object","additionalProperties":false}"#, r#"{"not":{}}"#, r#"{"type":"object","propertyNames":{"maxLength":1}}"#,
        ]),
        content in proptest::sample::select(vec![
            r#"{"f":"canary"}"#, r#"{"f":["canary"]}"#, r#"{"f":{"canary":"canary"}}"#, r#"{"canary":"canary"}"#, r#"{"canary":"canary","canary":1}"#,
            r#"{"f":"canary","f":"canary"}"#, r#"{"f":canary}"#, "canary",
        ]),
    ) {
        let form = one(field);
        let faults = form.check(content).err().unwrap_or_default();
        prop_assert!(!format!("{faults:?}").contains("canary"), "{faults:?}");
    }

    #[test]
    fn no_content_is_too_strange_to_be_checked(content in "\\{?[\\PC]{0,40}\\}?") {
        drop(one(r#"{"type":"string"}"#).check(&content));
        drop(normalise(Mode::Form, &content));
    }
}
