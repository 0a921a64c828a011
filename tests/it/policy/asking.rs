//! The way of a question to the person, and who answers before it gets there.

use serde_json::Value;

use super::{Asking, CANCEL, DECLINE, ENTITY, RIGHT, gateway};
use crate::support::{Client, EVERYTHING, json};

/// A rule fills in; the person is spared, and the record says who decided.
#[tokio::test]
async fn a_rule_answers() {
    let policy = r#"{ rules: [ { name: defaults, when: 'tool == "create" && "name" in fields && arguments.n == 2', accept: { name: auto, size: 7 } } ] }"#;
    let it = Asking::under(policy).await;
    it.elicit("7", ENTITY).await;
    let answer = json::parse(&it.server.answer_to("7").await);
    let content = serde_json::json!({ "name": "auto", "size": 7 });
    assert_eq!(answer["result"]["content"], content);
    assert_eq!(answer["result"]["action"], "accept");
    let record = it
        .gateway
        .audited("the answer", |line| line["type"] == "question.answered");
    let record = record.await;
    assert_eq!(record["action"], "accept");
    assert_eq!(record["decided_by"], "rule");
    let steps = record["policy"].as_array().unwrap();
    let last = serde_json::json!({ "step": "rule", "name": "defaults", "said": "accept" });
    assert_eq!(steps.last(), Some(&last));
    assert!(
        !record.to_string().contains("auto"),
        "no value is on record"
    );
    it.ends_quietly().await;
}

/// Rules are asked in their order, and know the client.
#[tokio::test]
async fn the_first_rule_that_fits() {
    let policy = r#"{ rules: [ { when: 'client.name == "raw" && mode == "form"', decline: true }, { when: 'true', cancel: true } ] }"#;
    let it = Asking::under(policy).await;
    it.elicit("7", ENTITY).await;
    it.answered("7", DECLINE).await;
    it.elicit(
        "8",
        r#"{"mode":"url","elicitationId":"e","url":"https://a.example/","message":"Go"}"#,
    )
    .await;
    it.answered("8", CANCEL).await;
    it.ends_quietly().await;
}

/// What the operator says of all questions of a kind. What is refused the server never sees that it could.
#[tokio::test]
async fn a_kind_of_question() {
    let it =
        Asking::under("{ elicitation: { form: decline, url: cancel }, sampling: refuse }").await;
    it.elicit("7", ENTITY).await;
    it.answered("7", DECLINE).await;
    let declared = it.server.seen_method("initialize")[0].raw(&["params", "capabilities"]);
    let declared = json::parse(&declared.unwrap());
    assert!(
        declared.get("sampling").is_none() && declared.get("roots").is_some(),
        "{declared}"
    );
    it.stream
        .send(&json::request(
            "8",
            "sampling/createMessage",
            r#"{"messages":[],"maxTokens":1}"#,
        ))
        .await;
    assert_eq!(it.refused("8").await, (-32601, "undeclared".to_owned()));
    it.ends_quietly().await;
}

/// Passwords are not asked for by form, and the server learns what to do instead.
#[tokio::test]
async fn a_form_that_asks_for_a_secret() {
    let login = r#"{"message":"Please sign in","requestedSchema":{"type":"object","properties":{"password":{"type":"string"}}}}"#;
    let it = Asking::under("{}").await;
    it.elicit("7", login).await;
    let answer = it.server.answer_to("7").await;
    assert_eq!(it.refused("7").await, (-32602, "secrets".to_owned()));
    assert!(answer.contains("url"), "{answer}");
    it.ends_quietly().await;
    let mut it = Asking::under("{ secrets: flag }").await;
    it.elicit("7", login).await;
    let question = json::parse(&it.reply.question("elicitation/create").await);
    let message = question["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("Careful") && message.contains("Please sign in"),
        "{message}"
    );
}

/// People are sent only where the operator lets them go.
#[tokio::test]
async fn an_address_that_is_not_allowed() {
    let policy = r#"{ urls: { schemes: [https], hosts: ["*.example.com"] } }"#;
    let mut it = Asking::under(policy).await;
    for (id, url) in [
        ("1", "https://evilexample.com/"),
        ("2", "http://login.example.com/"),
        ("3", "https://mira:pw@login.example.com/"),
        ("4", "javascript:alert(1)"),
    ] {
        let params =
            format!(r#"{{"mode":"url","elicitationId":"e","url":"{url}","message":"Go"}}"#);
        it.elicit(id, &params).await;
        assert_eq!(it.refused(id).await, (-32602, "url".to_owned()), "{url}");
    }
    let good = r#"{"mode":"url","elicitationId":"e","url":"https://login.Example.com/?a=%7e","message":"Go"}"#;
    it.elicit("5", good).await;
    let question = it.reply.question("elicitation/create").await;
    assert_eq!(json::raw(&question, &["params"]).as_deref(), Some(good));
    it.session.answer(&question, r#"{"action":"accept"}"#).await;
    it.answered("5", r#"{"action":"accept"}"#).await;
}

/// Who asks is in the message where the operator wants that.
#[tokio::test]
async fn a_message_names_its_server() {
    let mut it = Asking::under("{ label: true }").await;
    it.elicit("7", ENTITY).await;
    let question = it.reply.question("elicitation/create").await;
    let message = json::raw(&question, &["params", "message"]);
    assert_eq!(message.as_deref(), Some(r#""[memory] Which one?""#));
    let schema = json::raw(&question, &["params", "requestedSchema"]);
    assert_eq!(schema, json::raw(ENTITY, &["requestedSchema"]));
}

/// Without a word of the operator a question passes byte for byte, and so does its answer.
#[tokio::test]
async fn what_policy_has_nothing_against_stays_as_it_was() {
    let mut it = Asking::under("{}").await;
    let odd = r#"{"message":"?","x":1.50,"requestedSchema":{"type":"object","properties":{"n":{"type":"number"}}},"_meta":{"y":1e2}}"#;
    it.elicit("7", odd).await;
    let question = it.reply.question("elicitation/create").await;
    assert_eq!(json::raw(&question, &["params"]).as_deref(), Some(odd));
    let answer = r#"{"content":{"n":1.50},"z":[1.0],"action":"accept"}"#;
    it.session.answer(&question, answer).await;
    it.answered("7", answer).await;
}

/// A server that asks too much in one call is told so, and its person is left in peace.
#[tokio::test]
async fn more_questions_than_a_call_may_cause() {
    let mut it = Asking::under("{ limits: { per_call: 2 } }").await;
    for id in ["1", "2"] {
        it.elicit(id, ENTITY).await;
        let question = it.reply.question("elicitation/create").await;
        it.session.answer(&question, RIGHT).await;
        it.answered(id, RIGHT).await;
    }
    it.elicit("3", ENTITY).await;
    assert_eq!(
        it.refused("3").await,
        (-31006, "question_per_call".to_owned())
    );
    it.ends_quietly().await;
}

/// A thousand questions at once: the client sees as many as may wait, every one has its answer.
#[tokio::test]
async fn a_flood_of_questions() {
    let mut it = Asking::under("{ limits: { per_call: off, rate: off, pending: 5 } }").await;
    for id in 1..=1000 {
        it.elicit(&id.to_string(), ENTITY).await;
    }
    it.server.answer_to("1000").await;
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(it.reply.question("elicitation/create").await);
    }
    assert_eq!(it.server.answers().len(), 995);
    for question in &open {
        it.session.answer(question, RIGHT).await;
    }
    for id in 1..=5 {
        it.answered(&id.to_string(), RIGHT).await;
    }
    it.ends_quietly().await;
}

/// A rate that is used up.
#[tokio::test]
async fn more_questions_than_the_rate_allows() {
    let it = Asking::under(
        "{ limits: { per_call: off, rate: 2/h }, rules: [ { when: 'true', decline: true } ] }",
    )
    .await;
    for id in ["1", "2"] {
        it.elicit(id, ENTITY).await;
        it.answered(id, DECLINE).await;
    }
    it.elicit("3", ENTITY).await;
    assert_eq!(it.refused("3").await, (-31004, "question_rate".to_owned()));
    // Somebody else's questions are counted apart: here all are one principal, so a server apart.
    let (server, gateway) = gateway("{ limits: { rate: 2/h } }").await;
    let session = Client::new(&gateway, "memory").open(EVERYTHING).await;
    let mut it = Asking::by(server, gateway, session).await;
    it.elicit("1", ENTITY).await;
    it.reply.question("elicitation/create").await;
}

/// What a rule said is on record before the server goes on with it, however fast that is.
#[tokio::test]
async fn an_answer_is_on_record_before_what_it_leads_to() {
    const CALLS: usize = 20;
    let rules = "{ rules: [ { when: 'true', decline: true } ] }";
    let (server, gateway) = gateway(rules).await;
    let session = Client::new(&gateway, "memory").open(EVERYTHING).await;
    for id in 0..CALLS {
        let call = session.start(json::call(&id.to_string(), "create", "{}"));
        let stream = server.called("create").await.stream();
        let question = format!("q{id}");
        let asked = json::request(&format!("\"{question}\""), "elicitation/create", ENTITY);
        stream.send(&asked).await;
        server.answer_to(&format!("\"{question}\"")).await;
        stream.result(&json::text_result("done")).await;
        call.await.unwrap().next().await;
    }
    let both = |line: &Value| line["type"] == "question.answered" || line["type"] == "call";
    let lines = gateway.audited_times("all of it", 2 * CALLS, both).await;
    for pair in lines.chunks(2) {
        let types = [&pair[0]["type"], &pair[1]["type"]];
        assert_eq!(types, ["question.answered", "call"], "{pair:?}");
    }
}
