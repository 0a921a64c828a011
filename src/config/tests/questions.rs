//! `questions` and `approve` of a server.

use std::time::Duration;

use serde_json::json;

use super::super::questions::{
    HookAt, Mode, OnError, QuestionLimits, Questions, Reply, SchemaRule, Secrets, Then,
    WhenClientCannot,
};
use super::{check, parse};

/// The policy of a server that has these lines of flow YAML.
#[track_caller]
fn policy(yaml: &str) -> Questions {
    let text = format!("servers: {{ m: {{ url: http://127.0.0.1:1/mcp, questions: {yaml} }} }}");
    let config = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
    config.servers.values().next().unwrap().questions.clone()
}

/// What is said about these lines, without the place.
#[track_caller]
fn said(yaml: &str) -> String {
    let text = format!("servers: {{ m: {{ url: http://127.0.0.1:1/mcp, questions: {yaml} }} }}");
    let problems = parse(&text).expect_err(yaml).to_string();
    let (_, said) = problems.split_once(": servers.m.").unwrap();
    said.trim_end().to_owned()
}

#[test]
fn without_a_word_servers_may_ask_within_bounds() {
    for policy in [policy("{}"), Questions::default()] {
        assert_eq!((policy.form, policy.url), (Mode::Ask, Mode::Ask));
        assert_eq!((policy.sampling, policy.roots), (Mode::Ask, Mode::Ask));
        assert_eq!(policy.when_client_cannot, WhenClientCannot::Undeclared);
        assert_eq!((policy.timeout, policy.on_timeout), (None, Reply::Cancel));
        assert_eq!(policy.limits, QuestionLimits::default());
        assert_eq!(policy.limits.per_call.unwrap().get(), 8);
        assert_eq!(policy.limits.pending.unwrap().get(), 64);
        let rate = policy.limits.rate.unwrap();
        assert_eq!(
            (rate.period, rate.burst.get()),
            (Duration::from_millis(100), 600)
        );
        assert_eq!(
            (policy.secrets, policy.schema),
            (Secrets::Refuse, SchemaRule::Lenient)
        );
        assert_eq!(policy.urls.schemes, ["https"]);
        assert!(policy.urls.hosts.is_empty() && policy.rules.is_empty() && !policy.label);
        assert!(policy.before.is_none() && policy.after.is_none());
    }
}

#[test]
fn everything_can_be_said() {
    let policy = policy(
        r#"{
        elicitation: { form: decline, url: refuse }, sampling: refuse, roots: ask, when_client_cannot: cancel,
        timeout: 90s, on_timeout: decline, limits: { per_call: 2, pending: off, rate: 5/min }, secrets: flag,
        schema: strict, urls: { schemes: [https, http], hosts: ["*.Example.com", login.example.org] }, label: true,
        rules: [
          { name: entity defaults, when: 'tool == "create_entities"', accept: { name: auto, tags: [a, b], n: 3 } },
          { when: 'client.name == "ci"', decline: true }, { when: 'headless', pass: true },
        ],
        hooks: {
          before: { command: [./hooks/auto-fill.sh, -v], env: { A: b }, cwd: /srv },
          after: { url: "https://policy.internal/elicitation", headers: { x-key: s3cret }, timeout: 1s, on_error: ask },
        } }"#,
    );
    assert_eq!((policy.form, policy.url), (Mode::Decline, Mode::Refuse));
    assert_eq!((policy.sampling, policy.roots), (Mode::Refuse, Mode::Ask));
    assert_eq!(policy.when_client_cannot, WhenClientCannot::Cancel);
    assert_eq!(policy.timeout, Some(Duration::from_secs(90)));
    assert_eq!(policy.on_timeout, Reply::Decline);
    assert_eq!(policy.limits.per_call.unwrap().get(), 2);
    assert_eq!(policy.limits.pending, None);
    assert_eq!(
        (policy.secrets, policy.schema),
        (Secrets::Flag, SchemaRule::Strict)
    );
    assert_eq!(policy.urls.hosts, ["*.example.com", "login.example.org"]);
    let [defaults, ci, headless] = policy.rules.as_slice() else {
        panic!("{:?}", policy.rules)
    };
    let content = json!({ "name": "auto", "tags": ["a", "b"], "n": "3" });
    assert_eq!(
        defaults.then,
        Then::Accept(content.as_object().unwrap().clone())
    );
    assert_eq!(defaults.name.as_deref(), Some("entity defaults"));
    assert_eq!((&ci.then, &headless.then), (&Then::Decline, &Then::Pass));
    let (before, after) = (policy.before.unwrap(), policy.after.unwrap());
    let HookAt::Command(program) = &before.at else {
        panic!("{before:?}")
    };
    assert_eq!(program.argv, ["./hooks/auto-fill.sh", "-v"]);
    assert_eq!(
        (program.env.len(), program.cwd.as_deref()),
        (1, Some("/srv".as_ref()))
    );
    assert_eq!(
        (before.timeout, before.on_error),
        (Duration::from_secs(5), OnError::Ask)
    );
    assert_eq!(
        (after.timeout, after.on_error),
        (Duration::from_secs(1), OnError::Ask)
    );
    assert!(!format!("{after:?}").contains("s3cret"));
}

#[test]
fn one_word_is_for_both_kinds_of_elicitation() {
    let policy = policy("{ elicitation: cancel }");
    assert_eq!((policy.form, policy.url), (Mode::Cancel, Mode::Cancel));
}

#[test]
fn what_is_wrong_is_said_with_what_to_write_instead() {
    let table = [
        (
            "{ elicitation: no }",
            "questions.elicitation: `no` is not known; write `ask`, `decline`, `cancel` or `refuse`",
        ),
        (
            "{ elicitation: { forms: ask } }",
            "questions.elicitation has no key `forms`; write `form`, if that is meant",
        ),
        (
            "{ sampling: decline }",
            "questions.sampling: `decline` is an answer that only elicitations have; write `ask` or `refuse`",
        ),
        (
            "{ timeout: off }",
            "questions.timeout: `off` can't be switched off: every wait has an end; write a duration as `500ms`, `30s`, `5m` or `1h`",
        ),
        (
            "{ limits: { per_call: 0 } }",
            "questions.limits.per_call: `0` lets nothing through; write a whole number from 1, or `off` for no limit",
        ),
        (
            "{ urls: { schemes: [\"https://\"] } }",
            "questions.urls.schemes[0]: `https://` is not a scheme; write it in small letters and without `://`, as `https`",
        ),
        (
            "{ urls: { hosts: [\"*\"] } }",
            "questions.urls.hosts[0]: `*` is not a host; write `login.example.com`, or `*.example.com` for all names below",
        ),
        (
            "{ rules: [{ decline: true }] }",
            "questions.rules[0] has no `when`; add `when: 'tool == \"create_entities\"'`",
        ),
        (
            "{ rules: [{ when: 'true' }] }",
            "questions.rules[0]: the rule does nothing; write one of `accept: { … }`, `decline: true`, `cancel: true`, `refuse: true` and `pass: true`",
        ),
        (
            "{ rules: [{ when: 'true', decline: true, cancel: true }] }",
            "questions.rules[0]: the rule does several things; write one of `accept: { … }`, `decline: true`, `cancel: true`, `refuse: true` and `pass: true`",
        ),
        (
            "{ rules: [{ when: 'true', decline: false }] }",
            "questions.rules[0].decline: `false` is not `true`; write `true`, or remove the line",
        ),
        (
            "{ hooks: { before: { timeout: 1s } } }",
            "questions.hooks.before: the hook is nowhere; write `command: [./hooks/check.sh]` or `url: https://policy.internal/elicitation`",
        ),
        (
            "{ hooks: { before: { command: [] } } }",
            "questions.hooks.before.command: there is no program; write `[./hooks/check.sh]`: the program, then its arguments",
        ),
        (
            "{ hooks: { after: { command: [a], url: \"http://b/\" } } }",
            "questions.hooks.after: a hook is a command or a URL, not both; write `command: [./hooks/check.sh]` or `url: https://policy.internal/elicitation`",
        ),
        (
            "{ hooks: { after: { url: \"ftp://b/\" } } }",
            "questions.hooks.after.url: the value is not the address of a hook; write an http or https URL, as `https://policy.internal/elicitation`",
        ),
        (
            "{ label: yes }",
            "questions.label: `yes` is neither yes nor no; write `true` or `false`",
        ),
    ];
    for (yaml, expected) in table {
        assert_eq!(said(yaml), expected, "{yaml}");
    }
    let said = said("{ rules: [{ when: 'tools == 1', decline: true }] }");
    assert!(
        said.starts_with(
            "questions.rules[0].when: `tools == 1` names something that is not known; write"
        ),
        "{said}"
    );
}

#[test]
fn tools_are_approved_by_their_names() {
    let text = "servers: { m: { url: http://127.0.0.1:1/mcp, approve: [\"delete_*\", drop] } }";
    let config = parse(text).unwrap();
    assert_eq!(
        config.servers.values().next().unwrap().approve,
        ["delete_*", "drop"]
    );
    check(
        "servers: { m: { url: http://127.0.0.1:1/mcp, approve: [\"\"] } }",
        &[
            "1:56: servers.m.approve[0]: the empty text names no tool; write the name of a tool, with `*` for any text, as `delete_*`",
        ],
    );
}
