//! What a record says, and what it can't be made to say.

use std::time::{Duration, UNIX_EPOCH};

use super::letters::Calendar;
use super::record::*;
use super::text::{TEXT_MAX, capped};
use crate::auth::Principal;
use crate::config::ServerName;

/// A record as its line has it, without its place in the chain.
fn spelled(record: &Record) -> String {
    let mut out = vec![b'{'];
    record.spell(&mut Calendar::new(), &mut out);
    out.push(b'}');
    String::from_utf8(out).unwrap()
}

fn json(record: &Record) -> serde_json::Value {
    serde_json::from_str(&spelled(record)).unwrap()
}

#[test]
fn a_record_names_only_what_it_was_told() {
    let record = Record::gateway_started(UNIX_EPOCH);
    assert_eq!(
        spelled(&record),
        r#"{"time":"1970-01-01T00:00:00.000000Z","type":"gateway.started"}"#
    );
}

#[test]
fn a_question_in_full_has_names_and_numbers_but_no_values() {
    let at = UNIX_EPOCH + Duration::from_micros(1_796_036_645_000_123);
    let record = Record::question_answered(at)
        .principal(&Principal::token(
            "https://login.example.com",
            "alice",
            Some("vscode"),
        ))
        .server(&ServerName("booking".into()))
        .session("5f2a")
        .request("r1")
        .method("tools/call")
        .target("book_table")
        .question(Question::new("7", "elicitation/create").form(["people", "seating"]))
        .action(Action::Accept)
        .outcome(Outcome::Ok)
        .reason("client")
        .code(-32000)
        .status(200)
        .duration(Duration::from_micros(1900))
        .waited(Duration::from_secs(2))
        .bytes(9);
    assert_eq!(
        spelled(&record),
        concat!(
            r#"{"time":"2026-11-30T11:04:05.000123Z","type":"question.answered","#,
            r#""principal":{"issuer":"https://login.example.com","subject":"alice","client":"vscode"},"#,
            r#""server":"booking","session":"5f2a","request":"r1","method":"tools/call","#,
            r#""target":"book_table","question":{"id":"7","method":"elicitation/create","#,
            r#""mode":"form","fields":["people","seating"]},"action":"accept","outcome":"ok","#,
            r#""reason":"client","code":-32000,"status":200,"duration_ms":1,"waited_ms":2000,"bytes":9}"#,
        )
    );
}

#[test]
fn of_a_url_only_the_host_is_kept() {
    let asked = Question::new("1", "elicitation/create");
    let record = Record::question_asked(UNIX_EPOCH)
        .question(asked.url("https://me:secret@pay.example.com:8443/c/secret?t=secret#secret"));
    let question = &json(&record)["question"];
    assert_eq!(question["mode"], "url");
    assert_eq!(question["host"], "pay.example.com");
    assert!(!question.to_string().contains("secret"));

    let odd = Question::new("1", "elicitation/create").url("no url at all, secret");
    assert!(
        !json(&Record::question_asked(UNIX_EPOCH).question(odd))
            .to_string()
            .contains("secret")
    );
}

#[test]
fn of_a_resource_the_query_the_fragment_and_the_user_are_cut_off() {
    for (uri, kept) in [
        ("file:///etc/hosts", "file:///etc/hosts"),
        (
            "https://u:pw@h.example/a/b?key=1#x",
            "https://h.example/a/b",
        ),
        ("https://h.example/@a#t?x", "https://h.example/@a"),
        ("https://u@h.example", "https://h.example"),
        ("memo:today?pw=1", "memo:today"),
        ("", ""),
    ] {
        assert_eq!(
            json(&Record::call(UNIX_EPOCH).resource(uri))["target"],
            kept,
            "{uri}"
        );
    }
}

#[test]
fn long_texts_are_cut_on_a_character_and_marked() {
    let exact = "é".repeat(TEXT_MAX / 2);
    assert_eq!(capped(&exact), exact);
    let long = "é".repeat(TEXT_MAX);
    let cut = capped(&long);
    assert!(
        cut.len() <= TEXT_MAX && cut.len() > TEXT_MAX - 6,
        "{}",
        cut.len()
    );
    assert!(cut.ends_with("é…"));
}

#[test]
fn a_form_with_very_many_fields_names_the_first_ones() {
    let names: Vec<String> = (0..1000).map(|n| format!("f{n}")).collect();
    let form = Question::new("1", "elicitation/create").form(names.iter().map(String::as_str));
    let fields = json(&Record::question_asked(UNIX_EPOCH).question(form))["question"]["fields"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(fields.len(), NAMES_MAX + 1);
    assert_eq!(fields[NAMES_MAX], "…");
}

#[test]
fn what_each_step_of_the_policy_said_stands_before_what_came_of_it() {
    let record = Record::question_answered(UNIX_EPOCH)
        .policy([
            ("secrets", None, "pass"),
            ("rule", Some("entity defaults"), "accept"),
        ])
        .decided("rule")
        .action(Action::Accept);
    assert_eq!(
        spelled(&record),
        concat!(
            r#"{"time":"1970-01-01T00:00:00.000000Z","type":"question.answered","#,
            r#""policy":[{"step":"secrets","said":"pass"},"#,
            r#"{"step":"rule","name":"entity defaults","said":"accept"}],"#,
            r#""decided_by":"rule","action":"accept"}"#,
        )
    );
}

#[test]
fn whatever_order_it_was_told_in_the_members_of_a_line_have_theirs() {
    let record = Record::question_answered(UNIX_EPOCH)
        .count(3)
        .waited(Duration::from_millis(2))
        .reason("limit")
        .outcome(Outcome::Refused)
        .decided("limits")
        .policy([("limits", None, "refuse")])
        .question(Question::new("7", "elicitation/create").url("https://pay.example.com/"))
        .method("tools/call")
        .request("r1")
        .session("5f2a")
        .session("5f2b")
        .principal(&Principal::api_key("ci"))
        .at(UNIX_EPOCH + Duration::from_secs(1));
    assert_eq!(
        spelled(&record),
        concat!(
            r#"{"time":"1970-01-01T00:00:01.000000Z","type":"question.answered","#,
            r#""principal":{"issuer":"key","subject":"ci"},"session":"5f2b","request":"r1","#,
            r#""method":"tools/call","question":{"id":"7","method":"elicitation/create","mode":"url","#,
            r#""host":"pay.example.com"},"policy":[{"step":"limits","said":"refuse"}],"#,
            r#""decided_by":"limits","outcome":"refused","reason":"limit","waited_ms":2,"count":3}"#,
        )
    );
}

#[test]
fn a_policy_without_a_step_is_left_out() {
    let record = Record::question_answered(UNIX_EPOCH).policy([]);
    assert!(json(&record).get("policy").is_none());
}

#[test]
fn of_very_many_steps_the_first_ones_are_named() {
    let policy = |count| {
        let steps = (0..count).map(|_| ("rule", Some("a"), "pass"));
        let record = Record::question_answered(UNIX_EPOCH).policy(steps);
        json(&record)["policy"].as_array().unwrap().clone()
    };
    let step = serde_json::json!({"step": "rule", "name": "a", "said": "pass"});
    assert_eq!(policy(STEPS_MAX), vec![step.clone(); STEPS_MAX]);
    let cut = policy(1000);
    assert_eq!(cut.len(), STEPS_MAX + 1);
    assert_eq!(cut[STEPS_MAX - 1], step);
    assert_eq!(cut[STEPS_MAX], serde_json::json!({"step": "…"}));
}

#[test]
fn long_names_of_rules_are_cut() {
    let long = "r".repeat(1000);
    let record = Record::question_answered(UNIX_EPOCH).policy([("rule", Some(&*long), "pass")]);
    let name = json(&record)["policy"][0]["name"].clone();
    assert_eq!(name, *capped(&long));
    assert_eq!(name.as_str().unwrap().len(), TEXT_MAX);
}

#[test]
fn a_time_that_no_calendar_has_is_written_as_the_epoch() {
    let odd = UNIX_EPOCH + Duration::from_secs(1 << 50);
    assert_eq!(
        json(&Record::call(odd))["time"],
        "1970-01-01T00:00:00.000000Z"
    );
}
