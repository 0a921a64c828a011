//! The way of a question, step by step.

use serde_json::json;

use super::*;
use crate::config::Config;

/// The policy of a server that has these lines of flow YAML.
fn policy(yaml: &str) -> Policy {
    let text =
        format!("servers: {{ memory: {{ url: http://127.0.0.1:1/mcp, questions: {yaml} }} }}");
    let config =
        Config::parse("gateway.yaml", &text, &|_| None).unwrap_or_else(|it| panic!("{it}"));
    let client = HttpClient::new(Duration::from_secs(1)).unwrap();
    let server = config.servers.values().next().unwrap();
    Policy::new("memory", &server.questions, &client, &TaskTracker::new())
}

const ENTITY: &str = r#"{"mode":"form","message":"Which one?","requestedSchema":{"type":"object",
    "properties":{"entity_name":{"type":"string"},"count":{"type":"integer","minimum":1},"tags":{"type":"array",
    "items":{"type":"string","enum":["a","b"]}},"keep":{"type":"boolean"}},"required":["entity_name"]}}"#;
const LOGIN: &str = r#"{"message":"Sign in","requestedSchema":{"type":"object","properties":{"password":{"type":"string"}}}}"#;
const DEEP: &str =
    r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}"#;
const TWICE: &str = r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"number"}}}}"#;
const PAGE: &str =
    r#"{"mode":"url","elicitationId":"1","url":"https://login.example.com/x","message":"Go"}"#;

fn question<'q>(method: &'q str, params: &'q str) -> Question<'q> {
    Question {
        server: "memory",
        method,
        params,
        tool: Some("create_entities"),
        arguments: Some(r#"{"n":2}"#),
        person: Person {
            name: "mira",
            client: ("ci", "1"),
            ..Person::default()
        },
    }
}

/// What is said before the person is asked, with the steps on the way.
fn judged(policy: &Policy, method: &str, params: &str) -> (Option<Verdict>, Vec<String>) {
    let question = question(method, params);
    let (mut case, verdict) = policy.check(&question);
    let verdict = verdict.or_else(|| policy.rule(&question, &mut case));
    (
        verdict,
        case.steps.iter().map(ToString::to_string).collect(),
    )
}

fn elicited(yaml: &str, params: &str) -> (Option<Verdict>, Vec<String>) {
    judged(&policy(yaml), "elicitation/create", params)
}

fn reason(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Refuse(refusal)) => refusal.reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_operator_speaks_first() {
    for (yaml, expected) in [
        ("{ elicitation: decline }", Some(Verdict::Decline)),
        ("{ elicitation: { form: cancel } }", Some(Verdict::Cancel)),
        ("{ elicitation: { url: refuse } }", None),
        ("{}", None),
    ] {
        assert_eq!(elicited(yaml, ENTITY).0, expected, "{yaml}");
    }
    assert_eq!(
        reason(elicited("{ elicitation: refuse }", LOGIN).0),
        "policy_denied"
    );
    let refused = judged(
        &policy("{ sampling: refuse }"),
        "sampling/createMessage",
        "{}",
    );
    assert_eq!(refused.1, ["mode: refuse"]);
    assert_eq!(
        judged(&policy("{ elicitation: refuse }"), "vendor/x", "{}").0,
        None
    );
}

#[test]
fn forms_that_ask_for_secrets_are_refused_flagged_or_allowed() {
    let (refused, steps) = elicited("{}", LOGIN);
    assert_eq!(
        (reason(refused.clone()), steps),
        ("secrets", vec!["secrets: refuse".to_owned()])
    );
    let Some(Verdict::Refuse(refusal)) = refused else {
        panic!()
    };
    assert!(
        refusal.text.contains("url") && refusal.code == -32602,
        "{refusal:?}"
    );
    let flagging = policy("{ secrets: flag }");
    let (case, verdict) = flagging.check(&question("elicitation/create", LOGIN));
    assert_eq!((verdict, case.steps[0].said), (None, Said::Flag));
    assert!(case.shown().unwrap().contains("Careful"));
    assert_eq!(
        elicited("{ secrets: allow }", LOGIN),
        (None, vec!["schema: pass".to_owned()])
    );
}

#[test]
fn forms_outside_of_the_subset_pass_unless_the_operator_is_strict() {
    assert_eq!(elicited("{}", DEEP).1, ["secrets: pass", "schema: flag"]);
    assert_eq!(reason(elicited("{ schema: strict }", DEEP).0), "schema");
    // What can be read in two ways passes nowhere.
    assert_eq!(reason(elicited("{ secrets: allow }", TWICE).0), "schema");
}

#[test]
fn addresses_are_looked_at() {
    assert_eq!(elicited("{}", PAGE), (None, vec!["url: pass".to_owned()]));
    for yaml in [
        "{ urls: { hosts: [\"*.example.org\"] } }",
        "{ urls: { schemes: [ftp] } }",
    ] {
        assert_eq!(reason(elicited(yaml, PAGE).0), "url", "{yaml}");
    }
    let odd = PAGE.replace("login.example", "xn--lgin-5qa.example");
    assert_eq!(elicited("{}", &odd).1, ["url: flag"]);
    let plain = PAGE.replace("https:", "http:");
    assert_eq!(reason(elicited("{}", &plain).0), "url");
}

#[test]
fn the_first_rule_that_fits_answers() {
    let yaml = r#"{ rules: [
        { when: 'tool == "other"', refuse: true },
        { when: 'arguments.missing == 1', refuse: true },
        { name: defaults, when: '"entity_name" in fields', accept: { entity_name: auto, count: 3, tags: a, keep: true } },
        { when: 'true', decline: true } ] }"#;
    let (verdict, steps) = elicited(yaml, ENTITY);
    let Some(Verdict::Accept(Some(content))) = verdict else {
        panic!("{verdict:?}")
    };
    let content: serde_json::Value = serde_json::from_str(&content).unwrap();
    assert_eq!(
        content,
        json!({ "entity_name": "auto", "count": 3, "tags": ["a"], "keep": true })
    );
    assert_eq!(
        steps[2..],
        ["rule \"2\": failed", "rule \"defaults\": accept"]
    );
    assert_eq!(elicited(yaml, PAGE).0, Some(Verdict::Decline));
    let roots = judged(&policy(yaml), "roots/list", "{}");
    assert_eq!(reason(roots.0), "policy_denied");
}

#[test]
fn what_a_rule_fills_in_must_fit_and_is_else_the_next_ones_matter() {
    for fields in [
        "{ count: 3 }",
        "{ entity_name: x, count: 0 }",
        "{ entity_name: x, odd: y }",
        "{ entity_name: x, keep: maybe }",
    ] {
        let yaml = format!(
            "{{ rules: [{{ when: 'true', accept: {fields} }}, {{ when: 'true', cancel: true }}] }}"
        );
        let (verdict, steps) = elicited(&yaml, ENTITY);
        assert_eq!(verdict, Some(Verdict::Cancel), "{fields}");
        assert_eq!(steps[2], "rule \"1\": failed", "{fields}");
    }
    let pass = "{ rules: [{ when: 'true', pass: true }, { when: 'true', cancel: true }] }";
    assert_eq!(elicited(pass, ENTITY).0, None);
}

#[test]
fn an_answer_is_taken_asked_for_again_twice_and_then_cancelled() {
    let policy = policy("{ label: true }");
    let (mut case, _) = policy.check(&question("elicitation/create", ENTITY));
    assert!(case.shown().unwrap().contains("[memory] Which one?"));
    let wrong = r#"{"action":"accept","content":{"entity_name":"x","count":0}}"#;
    for _ in 0..2 {
        let Review::Again(params) = policy.review(&mut case, ENTITY, wrong) else {
            panic!("not asked again")
        };
        assert!(
            params.contains("[memory] Which one?") && params.contains("must be at least 1"),
            "{params}"
        );
    }
    assert_eq!(policy.review(&mut case, ENTITY, wrong), Review::Bad);
    let right = r#"{"action":"accept","content":{"entity_name":"x","count":1}}"#;
    assert_eq!(
        policy.review(&mut case, ENTITY, right),
        Review::Good(right.into())
    );
}

#[test]
fn early_words_are_understood_and_content_belongs_to_accept() {
    let policy = policy("{}");
    let (mut case, _) = policy.check(&question("elicitation/create", ENTITY));
    let table = [
        (r#"{"action":"reject"}"#, r#"{"action":"decline"}"#),
        (
            r#"{"action":"cancel","content":{"entity_name":"x"}}"#,
            r#"{"action":"cancel"}"#,
        ),
        (
            r#"{"action":"decline","_meta":{"x":1.0}}"#,
            r#"{"action":"decline","_meta":{"x":1.0}}"#,
        ),
    ];
    for (said, taken) in table {
        assert_eq!(
            policy.review(&mut case, ENTITY, said),
            Review::Good(taken.into()),
            "{said}"
        );
    }
    assert!(matches!(
        policy.review(&mut case, ENTITY, r#"{"action":"maybe"}"#),
        Review::Again(_)
    ));
}

#[test]
fn servers_see_what_somebody_can_answer() {
    let table = [
        ("{}", true, [true, true, true, true]),
        ("{}", false, [false; 4]),
        (
            "{ when_client_cannot: decline }",
            false,
            [true, true, false, false],
        ),
        (
            "{ rules: [{ when: 'true', pass: true }] }",
            false,
            [true, true, false, false],
        ),
        (
            "{ hooks: { before: { command: [a] } } }",
            false,
            [true, true, false, false],
        ),
        (
            "{ elicitation: { form: refuse, url: cancel }, roots: refuse }",
            true,
            [false, true, true, false],
        ),
        (
            "{ elicitation: { form: decline, url: refuse } }",
            false,
            [true, false, false, false],
        ),
    ];
    for (yaml, can, expected) in table {
        let policy = policy(yaml);
        let kinds = [Kind::Form, Kind::Url, Kind::Sampling, Kind::Roots];
        assert_eq!(
            kinds.map(|kind| policy.declares(kind, can)),
            expected,
            "{yaml} {can}"
        );
    }
}

#[test]
fn where_nobody_can_be_asked_nothing_hangs() {
    let undeclared = || Refusal {
        code: -32601,
        reason: "undeclared",
        text: "no".to_owned(),
    };
    for (yaml, expected) in [
        ("{}", Verdict::Refuse(undeclared())),
        ("{ when_client_cannot: cancel }", Verdict::Cancel),
        ("{ when_client_cannot: decline }", Verdict::Decline),
        (
            "{ rules: [{ when: 'false', cancel: true }] }",
            Verdict::Decline,
        ),
    ] {
        let policy = policy(yaml);
        let (mut case, _) = policy.check(&question("elicitation/create", ENTITY));
        assert_eq!(policy.absent(&mut case, undeclared()), expected, "{yaml}");
        let (mut case, _) = policy.check(&question("roots/list", "{}"));
        assert_eq!(
            policy.absent(&mut case, undeclared()),
            Verdict::Refuse(undeclared())
        );
    }
    let policy = policy("{ on_timeout: decline }");
    let (mut case, _) = policy.check(&question("elicitation/create", ENTITY));
    assert_eq!(policy.timed_out(&mut case), Verdict::Decline);
    let (mut case, _) = policy.check(&question("roots/list", "{}"));
    assert_eq!(reason(Some(policy.timed_out(&mut case))), "timeout");
}

/// The policy of a server with one hook, a script of the shell that writes `output`.
fn hooked(at: &str, output: &str, on_error: &str) -> Policy {
    policy(&format!(
        "{{ hooks: {{ {at}: {{ command: [sh, -c, 'cat >/dev/null; {output}'], on_error: {on_error} }} }} }}"
    ))
}

fn accepts(event: &str, content: &str) -> String {
    let specific = json!({ "hookEventName": event, "action": "accept",
        "content": serde_json::from_str::<serde_json::Value>(content).unwrap() });
    let output = json!({ "hookSpecificOutput": specific }).to_string();
    format!("printf %s {}", output.replace('"', "\\\""))
}

#[tokio::test]
async fn a_hook_that_fills_in_what_does_not_fit_has_failed() {
    let misfit = r#"{"count":0}"#;
    for (on_error, expected) in [
        ("ask", None),
        ("cancel", Some(Verdict::Cancel)),
        ("decline", Some(Verdict::Decline)),
    ] {
        let question = question("elicitation/create", ENTITY);
        let policy = hooked("before", &accepts("Elicitation", misfit), on_error);
        let (mut case, _) = policy.check(&question);
        assert_eq!(policy.before(&question, &mut case).await, expected);
        assert_eq!(case.steps[2].said, Said::Failed, "{on_error}");

        let policy = hooked("after", &accepts("ElicitationResult", misfit), on_error);
        let (mut case, _) = policy.check(&question);
        let answer = r#"{"action":"accept","content":{"entity_name":"x"}}"#;
        policy.review(&mut case, ENTITY, answer);
        assert_eq!(policy.after(&question, &mut case, answer).await, expected);
    }
}

#[tokio::test]
async fn steps_say_why() {
    let question = question("elicitation/create", ENTITY);
    let why = |case: &Case| {
        let step = case.steps.last().unwrap();
        (step.said, step.why.clone().unwrap_or_default())
    };
    let blocking = hooked("before", "echo not today >&2; exit 2", "ask");
    let (mut case, _) = blocking.check(&question);
    assert_eq!(
        blocking.before(&question, &mut case).await,
        Some(Verdict::Decline)
    );
    assert_eq!(why(&case), (Said::Decline, "not today".to_owned()));

    let failing = hooked("before", "echo no disk >&2; exit 7", "ask");
    let (mut case, _) = failing.check(&question);
    assert_eq!(failing.before(&question, &mut case).await, None);
    assert_eq!(
        why(&case),
        (
            Said::Failed,
            "it failed (exit status: 7): no disk".to_owned()
        )
    );

    let (mut case, _) = failing.check(&question);
    failing.review(&mut case, ENTITY, r#"{"action":"accept","content":{}}"#);
    assert_eq!(
        why(&case),
        (Said::Again, "entity_name is required".to_owned())
    );
}

#[test]
fn the_conditions_of_all_rules_can_be_asked_for() {
    let policy = policy(
        r#"{ rules: [{ when: 'tool == "other"', refuse: true }, { when: 'arguments.missing == 1', refuse: true },
            { when: 'arguments.n == 2', pass: true }] }"#,
    );
    let question = question("elicitation/create", ENTITY);
    let (case, _) = policy.check(&question);
    let fits = policy.fitting_rules(&question, &case);
    assert!(
        matches!(fits.as_slice(), [Ok(false), Err(_), Ok(true)]),
        "{fits:?}"
    );
}
