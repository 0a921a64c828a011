//! What changes in the texts of rounds: the questions that a client sees of a result, and the answers that a
//! server sees of a retry.
//!
//! # Invariants
//! - Only `inputRequests` and `inputResponses` change, and in them only what is named; values that stay keep
//!   every byte.

use std::borrow::Cow;

use crate::protocol::object::{all_members, edit, members, quoted, text};
use crate::protocol::server_modern::Retry;

/// What becomes of a question on its way to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown<'a> {
    /// It is shown as it is.
    Unchanged,
    /// It is shown with these parameters (JSON text).
    Changed(&'a str),
    /// It needs no person.
    Taken,
}

/// The result (JSON text) with what the client is to see of its questions. None: it can't be read.
pub(super) fn shown<'a>(result: &str, of: impl Fn(&str) -> Shown<'a>) -> Option<String> {
    let [requests] = members(result, ["inputRequests"]).ok()?;
    let mut entries = Vec::new();
    for (name, request) in all_members(requests?).ok()? {
        let request = match of(&text(&name)?) {
            Shown::Unchanged => Cow::Borrowed(request),
            Shown::Changed(params) => edit(request, &[("params", Some(params))]).ok()?,
            Shown::Taken => continue,
        };
        entries.push(format!("{name}:{request}"));
    }
    let requests = format!("{{{}}}", entries.join(","));
    let edited = edit(result, &[("inputRequests", Some(&requests))]).ok()?;
    Some(edited.into_owned())
}

/// The result (JSON text) that asks elicitations again: key and parameters (JSON text) of each.
pub(super) fn again(questions: &[(String, String)], state: Option<&str>) -> String {
    let entries: Vec<_> = questions
        .iter()
        .map(|(key, params)| {
            let key = quoted(key);
            format!(r#"{key}:{{"method":"elicitation/create","params":{params}}}"#)
        })
        .collect();
    let state = state.map_or_else(String::new, |state| format!(r#","requestState":{state}"#));
    format!(
        r#"{{"resultType":"input_required","inputRequests":{{{}}}{state}}}"#,
        entries.join(",")
    )
}

/// The answers (JSON text) with these in the place of those with the same key, or beside them. None: they
/// can't be read.
pub(super) fn answered(responses: &str, answers: &[(&str, &str)]) -> Option<String> {
    let mut entries = Vec::new();
    let mut missing = answers.to_vec();
    for (name, value) in all_members(responses).ok()? {
        let key = text(&name)?;
        let place = missing.iter().position(|(wanted, _)| *wanted == key);
        let value = place.map_or(value, |place| missing.swap_remove(place).1);
        entries.push(format!("{name}:{value}"));
    }
    entries.extend(
        answers
            .iter()
            .filter(|answer| missing.contains(answer))
            .map(|(key, value)| format!("{}:{value}", quoted(key))),
    );
    Some(format!("{{{}}}", entries.join(",")))
}

/// The parameters (JSON text) of a request with these answers.
pub(super) fn with_answers(params: &str, answers: &str) -> Option<String> {
    let edited = edit(params, &[("inputResponses", Some(answers))]).ok()?;
    Some(edited.into_owned())
}

/// The parameters (JSON text) of a request that goes on with a round by itself.
pub(super) fn going_on(params: &str, retry: &Retry) -> Option<String> {
    let changes = [
        ("inputResponses", retry.responses.as_deref()),
        ("requestState", retry.state.as_deref()),
    ];
    Some(edit(params, &changes).ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKS: &str = r#"{"x":1.0, "inputRequests": {"a":{"method":"m", "params":{"n":1.10}},"A":{"method":"m","y":[2]},"\u0062":{"method":"m"}},"requestState":"s\u0031"}"#;

    #[test]
    fn a_client_sees_of_the_questions_what_it_is_to_see() {
        let some = shown(ASKS, |key| match key {
            "a" => Shown::Unchanged,
            "b" => Shown::Changed(r#"{"z":0}"#),
            _ => Shown::Taken,
        });
        assert_eq!(
            some.as_deref(),
            Some(
                r#"{"x":1.0, "inputRequests": {"a":{"method":"m", "params":{"n":1.10}},"\u0062":{"method":"m","params":{"z":0}}},"requestState":"s\u0031"}"#
            )
        );
        assert_eq!(shown("{}", |_| Shown::Unchanged), None);
    }

    #[test]
    fn what_is_asked_again_has_the_state_of_the_round_if_it_has_one() {
        let questions = [("k\"1".to_owned(), r#"{"message":"?"}"#.to_owned())];
        let entry = r#""k\"1":{"method":"elicitation/create","params":{"message":"?"}}"#;
        assert_eq!(
            again(&questions, Some(r#""s\u0031""#)),
            format!(
                r#"{{"resultType":"input_required","inputRequests":{{{entry}}},"requestState":"s\u0031"}}"#
            )
        );
        assert_eq!(
            again(&questions, None),
            format!(r#"{{"resultType":"input_required","inputRequests":{{{entry}}}}}"#)
        );
    }

    #[test]
    fn a_server_sees_each_answer_once_and_others_as_they_were() {
        let responses = r#"{"a": {"n":1.10},"\u0062":{"old":1},"A":7}"#;
        let answers = [("c", "1"), ("b", r#"{"new":2}"#)];
        assert_eq!(
            answered(responses, &answers).as_deref(),
            Some(r#"{"a":{"n":1.10},"\u0062":{"new":2},"A":7,"c":1}"#)
        );
        assert_eq!(answered("[]", &answers), None);
    }

    #[test]
    fn a_round_that_needs_no_client_goes_on_with_its_own_answers_and_state() {
        let params =
            r#"{"name":"order","inputResponses":{"old":1},"requestState":"old","_meta":{"n":1.0}}"#;
        let with = |state: Option<&str>| {
            let retry = Retry {
                responses: Some(r#"{"k":2}"#.to_owned()),
                state: state.map(str::to_owned),
            };
            going_on(params, &retry).unwrap()
        };
        assert_eq!(
            with(Some(r#""s\u0031""#)),
            r#"{"name":"order","inputResponses":{"k":2},"requestState":"s\u0031","_meta":{"n":1.0}}"#
        );
        assert_eq!(
            with(None),
            r#"{"name":"order","inputResponses":{"k":2},"_meta":{"n":1.0}}"#
        );
    }
}
