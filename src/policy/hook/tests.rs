//! The contract as a table: what a hook is told, and what its output means.

use serde_json::{Value, json};

use super::contract::{Event, Junk, Opinion, Question, Unreadable};
use super::input::Call;

const FORM: &str = r#"{"message": "Who?", "requestedSchema": {"type":"object","properties":{"name":{"type":"string","title":"Your name"},"guests":{"type":"integer","default":1.0},"vip":{"type":"boolean"},"table":{"type":"string","enum":["window","door"]},"room":{"oneOf":[{"const":"a","title":"A"}]},"extras":{"type":"array","items":{"type":"string","enum":["cake"]}}},"required":["name","table"]}}"#;
const VISIT: &str = r#"{"mode":"url","message":"Log in","url":"https://login.example/x?y=1","elicitationId":"e-1"}"#;
const LATER: &str = r#"{"mode":"voice","message":"Speak"}"#;

fn question(params: &str) -> Question<'_> {
    Question {
        server: "memory",
        tool: Some("create_entities"),
        principal: "mira@login.example",
        session: "5f0c",
        params,
    }
}

fn before(params: &str) -> Call<'_> {
    Call::read(question(params), Event::Before).unwrap()
}

fn after<'a>(params: &'a str, user_response: &'a str) -> Call<'a> {
    Call::read(question(params), Event::After { user_response }).unwrap()
}

fn told(call: &Call<'_>) -> Value {
    serde_json::from_slice(&call.input("/srv/hooks")).unwrap()
}

#[test]
fn a_form_is_told_in_every_way_that_scripts_read_it() {
    let call = before(FORM);
    let schema = serde_json::from_str::<Value>(FORM).unwrap()["requestedSchema"].clone();
    assert_eq!(
        told(&call),
        json!({
            "session_id": "5f0c",
            "transcript_path": "",
            "cwd": "/srv/hooks",
            "permission_mode": "default",
            "hook_event_name": "Elicitation",
            "mcp_server_name": "memory",
            "tool_name": "mcp__memory__create_entities",
            "message": "Who?",
            "mode": "form",
            "requested_schema": schema,
            "requestedSchema": schema,
            "elicitation_form": { "fields": [
                { "name": "name", "label": "Your name", "type": "text", "required": true },
                { "name": "guests", "label": "guests", "type": "number", "required": false },
                { "name": "vip", "label": "vip", "type": "boolean", "required": false },
                { "name": "table", "label": "table", "type": "select", "required": true },
                { "name": "room", "label": "room", "type": "select", "required": false },
                { "name": "extras", "label": "extras", "type": "multiselect", "required": false },
            ] },
            "principal": "mira@login.example",
            "session": "5f0c",
        })
    );
}

#[test]
fn schemas_and_messages_are_told_as_they_were_spelled() {
    let params = r#"{"message":"\u0041 ☕","requestedSchema":{"type":"object", "properties":{"x":{"type":"number","default":1.10,"maximum":12345678901234567890}}}}"#;
    let input = before(params).input("");
    let input = std::str::from_utf8(&input).unwrap();
    let schema = r#"{"type":"object", "properties":{"x":{"type":"number","default":1.10,"maximum":12345678901234567890}}}"#;
    assert!(input.contains(&format!(r#""requestedSchema":{schema},"#)));
    assert!(input.contains(r#""message":"\u0041 ☕","#));
}

#[test]
fn a_visit_is_told_with_its_url_and_without_a_form() {
    let told = told(&before(VISIT));
    assert_eq!(told["mode"], "url");
    assert_eq!(told["url"], "https://login.example/x?y=1");
    assert_eq!(told["elicitation_id"], "e-1");
    assert_eq!(told.get("elicitation_form"), None);
    assert_eq!(told.get("requested_schema"), None);
}

#[test]
fn a_question_that_no_tool_caused_names_none() {
    let question = Question {
        tool: None,
        ..question(FORM)
    };
    let call = Call::read(question, Event::Before).unwrap();
    assert_eq!(told(&call).get("tool_name"), None);
}

#[test]
fn the_answer_of_the_person_is_told_flat_and_whole() {
    let told = told(&after(
        FORM,
        r#"{"_meta":{},"action":"accept","content":{"name":"Ada","guests":2.0}}"#,
    ));
    assert_eq!(told["hook_event_name"], "ElicitationResult");
    assert_eq!(told["action"], "accept");
    assert_eq!(told["content"], json!({ "name": "Ada", "guests": 2.0 }));
    assert_eq!(
        told["user_response"],
        json!({
            "name": "Ada",
            "guests": 2.0,
            "action": "accept",
            "content": { "name": "Ada", "guests": 2.0 },
        })
    );
}

#[test]
fn a_refusal_of_the_person_is_told() {
    let told = told(&after(FORM, r#"{"action":"decline"}"#));
    assert_eq!(told["action"], "decline");
    assert_eq!(told.get("content"), None);
    assert_eq!(told["user_response"], json!({ "action": "decline" }));
}

/// Nobody can make a script believe another action by the name of a field: what the reference has
/// stands beside.
#[test]
fn a_field_with_a_name_of_the_contract_keeps_it() {
    let call = after(
        FORM,
        r#"{"action":"accept","content":{"action":"sell","content":"gold"}}"#,
    );
    let input = call.input("");
    let input = std::str::from_utf8(&input).unwrap();
    assert!(input.contains(r#""user_response":{"action":"sell","content":"gold"}"#));
    assert!(input.contains(r#""action":"accept","content":{"action":"sell","content":"gold"}"#));
}

#[test]
fn what_could_be_read_in_two_ways_is_not_told() {
    let table = [
        ("[]", Unreadable::Params),
        (r#"{"mode":"form","Mode":"url"}"#, Unreadable::Params),
        (r#"{"requestedSchema":7}"#, Unreadable::Schema),
        (
            r#"{"requestedSchema":{"properties":{},"properties":{}}}"#,
            Unreadable::Schema,
        ),
        (
            r#"{"requestedSchema":{"properties":{"a":{"type":"string"},"\u0061":{}}}}"#,
            Unreadable::Fields,
        ),
        (
            r#"{"requestedSchema":{"properties":{"\ud800":{}}}}"#,
            Unreadable::Fields,
        ),
        (
            r#"{"requestedSchema":{"properties":{"a":true}}}"#,
            Unreadable::Schema,
        ),
    ];
    for (params, expected) in table {
        let read = Call::read(question(params), Event::Before);
        assert_eq!(read.err(), Some(expected), "{params}");
    }
    for user_response in [
        "7",
        "{}",
        r#"{"action":7}"#,
        r#"{"action":"accept","action":"decline"}"#,
        r#"{"action":"accept","content":[]}"#,
        r#"{"action":"accept","content":{"a":1,"a":2}}"#,
    ] {
        let read = Call::read(question(FORM), Event::After { user_response });
        assert_eq!(read.err(), Some(Unreadable::Response), "{user_response}");
    }
}

#[test]
fn what_is_too_large_is_not_told() {
    let params = format!(r#"{{"message":"{}"}}"#, "x".repeat(1024 * 1024));
    let read = Call::read(question(&params), Event::Before);
    assert_eq!(read.err(), Some(Unreadable::TooLarge));
    let user_response = params;
    let event = Event::After {
        user_response: &user_response,
    };
    let read = Call::read(question(FORM), event);
    assert_eq!(read.err(), Some(Unreadable::TooLarge));
}

fn accept(content: &str) -> Opinion {
    Opinion::Accept(Some(content.to_owned()))
}

fn block(reason: &str) -> Opinion {
    Opinion::Block(reason.to_owned())
}

/// `@` stands for what names the event.
#[track_caller]
fn check(call: &Call<'_>, table: &[(&str, Result<Opinion, Junk>)]) {
    let expected = call.expected();
    let event = format!(r#""hookEventName":"{}""#, expected.event);
    for (output, opinion) in table {
        let output = output.replace('@', &event);
        let found = expected.opinion(output.as_bytes());
        assert!(found == *opinion, "{output}: {found:?}, not {opinion:?}");
    }
}

#[test]
fn before_a_form_a_hook_can_fill_it_in_refuse_it_or_say_nothing() {
    check(
        &before(FORM),
        &[
            ("", Ok(Opinion::Pass)),
            (" \n\t", Ok(Opinion::Pass)),
            ("{}", Ok(Opinion::Pass)),
            (
                r#"{"systemMessage":"hi","suppressOutput":true,"continue":true}"#,
                Ok(Opinion::Pass),
            ),
            (r#"{"hookSpecificOutput":null}"#, Ok(Opinion::Pass)),
            (r#"{"hookSpecificOutput":{@}}"#, Ok(Opinion::Pass)),
            (
                r#"{"hookSpecificOutput":{@,"action":"accept","content":{"n": 1.10,"s":"\u00e9"} }}"#,
                Ok(accept(r#"{"n": 1.10,"s":"\u00e9"}"#)),
            ),
            (
                "\n{\"hookSpecificOutput\":\n{@,\n\"action\":\"accept\",\n\"content\":\n{}}}\n",
                Ok(accept("{}")),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"decline"}}"#,
                Ok(Opinion::Decline),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"decline","content":7}}"#,
                Ok(Opinion::Decline),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"cancel","content":{}}}"#,
                Ok(Opinion::Cancel),
            ),
        ],
    );
}

#[test]
fn what_forbids_wins_over_what_stands_beside_it() {
    check(
        &before(FORM),
        &[
            (
                r#"{"decision":"block","reason":"closed\non Sundays"}"#,
                Ok(block("closed")),
            ),
            (r#"{"decision":"block"}"#, Ok(block(""))),
            (r#"{"continue":false,"stopReason":"no"}"#, Ok(block("no"))),
            (
                r#"{"continue":false,"hookSpecificOutput":{@,"action":"accept","content":{}}}"#,
                Ok(block("")),
            ),
            (
                r#"{"decision":"block","reason":"no","hookSpecificOutput":{@,"action":"accept","content":{}}}"#,
                Ok(block("no")),
            ),
        ],
    );
}

#[test]
fn what_is_no_answer_is_no_opinion_either() {
    check(
        &before(FORM),
        &[
            (r#"{"decision":"approve"}"#, Err(Junk::Decision)),
            (r#"{"decision":7}"#, Err(Junk::Decision)),
            (r#"{"hookSpecificOutput":"x"}"#, Err(Junk::Specific)),
            (
                r#"{"hookSpecificOutput":{@,"action":"decline","action":"accept"}}"#,
                Err(Junk::Specific),
            ),
            (
                r#"{"hookSpecificOutput":{"action":"decline"}}"#,
                Err(Junk::Event("Elicitation")),
            ),
            (
                r#"{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"decline"}}"#,
                Err(Junk::Event("Elicitation")),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"Accept","content":{}}}"#,
                Err(Junk::Action),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":["accept"],"content":{}}}"#,
                Err(Junk::Action),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"accept","content":"x"}}"#,
                Err(Junk::Content),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"accept"}}"#,
                Err(Junk::NoContent),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"accept","content":null}}"#,
                Err(Junk::NoContent),
            ),
            (
                r#"{"hookSpecificOutput":{@,"content":{}}}"#,
                Err(Junk::NoAction),
            ),
        ],
    );
    let bytes = before(FORM).expected().opinion(b"{\"a\":\"\xff\"}");
    assert_eq!(bytes, Err(Junk::Bytes));
}

#[test]
fn what_is_not_one_object_is_told_with_its_place() {
    for output in [
        "fine",
        "[]",
        "7",
        "\"x\"",
        "{",
        "{} {}",
        "{}\n{}",
        "Welcome!\n{}",
        "\u{feff}{}",
        r#"{"hookSpecificOutput":{},"hookSpecificOutput":{}}"#,
        r#"{"HookSpecificOutput":{}}"#,
    ] {
        let found = before(FORM).expected().opinion(output.as_bytes());
        assert!(
            matches!(found, Err(Junk::NoObject(..))),
            "{output}: {found:?}"
        );
    }
    let found = before(FORM).expected().opinion(b"{}\n\n  done");
    assert_eq!(
        found.unwrap_err().to_string(),
        "it is not one JSON object, or names a member twice (line 3, column 3)"
    );
}

#[test]
fn after_the_person_accepted_a_hook_can_agree_change_or_refuse() {
    check(
        &after(FORM, r#"{"action":"accept","content":{"name":"Ada"}}"#),
        &[
            ("", Ok(Opinion::Pass)),
            (
                r#"{"hookSpecificOutput":{@,"action":"accept"}}"#,
                Ok(Opinion::Pass),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"accept","content":{"name":"A"}}}"#,
                Ok(accept(r#"{"name":"A"}"#)),
            ),
            (
                r#"{"hookSpecificOutput":{@,"content":{"name":"A"}}}"#,
                Ok(accept(r#"{"name":"A"}"#)),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"decline"}}"#,
                Ok(Opinion::Decline),
            ),
            (
                r#"{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"decline"}}"#,
                Err(Junk::Event("ElicitationResult")),
            ),
        ],
    );
}

#[test]
fn values_without_an_action_do_not_turn_a_refusal_of_the_person_around() {
    check(
        &after(FORM, r#"{"action":"decline"}"#),
        &[
            (
                r#"{"hookSpecificOutput":{@,"content":{"name":"A"}}}"#,
                Ok(Opinion::Pass),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"accept"}}"#,
                Err(Junk::NoContent),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"accept","content":{"name":"A"}}}"#,
                Ok(accept(r#"{"name":"A"}"#)),
            ),
        ],
    );
}

#[test]
fn the_consent_to_a_visit_has_no_values() {
    let table = [
        (
            r#"{"hookSpecificOutput":{@,"action":"accept"}}"#,
            Ok(Opinion::Accept(None)),
        ),
        (
            r#"{"hookSpecificOutput":{@,"action":"accept","content":{"x":1}}}"#,
            Ok(Opinion::Accept(None)),
        ),
    ];
    check(&before(VISIT), &table);
    check(&after(VISIT, r#"{"action":"decline"}"#), &table);
}

#[test]
fn a_question_of_a_later_version_is_accepted_as_the_hook_says() {
    check(
        &before(LATER),
        &[
            (
                r#"{"hookSpecificOutput":{@,"action":"accept"}}"#,
                Ok(Opinion::Accept(None)),
            ),
            (
                r#"{"hookSpecificOutput":{@,"action":"accept","content":{"x":1}}}"#,
                Ok(accept(r#"{"x":1}"#)),
            ),
        ],
    );
}

#[test]
fn neither_errors_nor_debug_output_repeat_what_was_written() {
    let secret = "hunter2";
    let call = after(FORM, r#"{"action":"accept","content":{"name":"hunter2"}}"#);
    for output in [
        r#""hunter2""#,
        r#"{"hookSpecificOutput":"hunter2"}"#,
        r#"{"hookSpecificOutput":{@,"action":"hunter2"}}"#,
        r#"{"hookSpecificOutput":{"hookEventName":"hunter2"}}"#,
        r#"{"hookSpecificOutput":{@,"action":"accept","content":"hunter2"}}"#,
        r#"{"hookSpecificOutput":{@,"action":"accept","content":{"name":"hunter2"}}}"#,
    ] {
        let output = output.replace('@', r#""hookEventName":"ElicitationResult""#);
        let found = call.expected().opinion(output.as_bytes());
        let text = match &found {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let text = format!("{text} {found:?}");
        assert!(!text.contains(secret), "{text}");
    }
    let user_response = r#"{"action":"accept","content":{"name":"hunter2"}}"#;
    let event = Event::After { user_response };
    let shown = format!("{event:?} {:?}", question(r#"{"message":"hunter2"}"#));
    assert!(!shown.contains(secret), "{shown}");
}
