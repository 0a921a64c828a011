//! A program asks in the middle of a call: nothing on its pipes says in which. The question reaches the person
//! whose call it was, and the answer that program.

use super::{Process, legacy, legacy_with, open, visitor};
use crate::support::{Client, EVERYTHING, accepted, json};

const MO: &str = r#"{"action":"accept","content":{"nick":"Mo"}}"#;

#[tokio::test]
async fn a_legacy_client_is_asked_on_the_stream_of_the_call() {
    let gateway = legacy().await;
    let (session, other) = (open(&gateway).await, open(&gateway).await);
    let mut aside = other.call("1", "ask", r#"{"x":"aside"}"#).await;
    let mut reply = session.call("1", "ask", r#"{"x":"who are you"}"#).await;
    let question = reply.question("elicitation/create").await;
    assert!(question.contains("who are you"), "{question}");
    let other_question = aside.question("elicitation/create").await;
    assert!(other_question.contains("aside"), "{other_question}");
    assert_eq!(
        other
            .answer(&other_question, r#"{"action":"decline"}"#)
            .await,
        202
    );
    assert_eq!(session.answer(&question, MO).await, 202);
    assert_eq!(json::text_of(&reply.next().await), "Mo");
    assert_eq!(json::text_of(&aside.next().await), "decline");
}

#[tokio::test]
async fn two_questions_at_once_are_answered_in_any_order() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let mut reply = session.call("1", "ask_two", "{}").await;
    let one = reply.question("elicitation/create").await;
    let two = reply.question("elicitation/create").await;
    assert_eq!(session.answer(&two, r#"{"action":"decline"}"#).await, 202);
    assert_eq!(session.answer(&one, MO).await, 202);
    assert_eq!(json::text_of(&reply.next().await), "decline Mo");
}

#[tokio::test]
async fn a_question_may_have_the_id_of_the_call() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    for id in ["1", "2"] {
        let mut reply = session.call(id, "ask_same_id", "{}").await;
        let question = reply.question("elicitation/create").await;
        assert_eq!(session.answer(&question, MO).await, 202);
        assert_eq!(json::text_of(&reply.next().await), "Mo");
    }
}

#[tokio::test]
async fn a_modern_client_is_asked_by_a_result_and_the_program_waits() {
    let gateway = legacy().await;
    let client = visitor(&gateway);
    let process = Process::read(&client.text("pid", "{}").await);
    let ask = client.call("1", "ask", r#"{"x":"who"}"#);
    let round = ask.send().await.round().await;
    assert_eq!(round.message(round.only()), "who");
    assert!(process.runs());
    let again = ask.retry("2", &round, &round.all(&accepted("Mo")));
    assert_eq!(json::text_of(&again.send().await.next().await), "Mo");
    assert_eq!(Process::read(&client.text("pid", "{}").await), process);
}

#[tokio::test]
async fn two_questions_of_one_call_are_one_round_or_two_for_a_modern_client() {
    let gateway = legacy().await;
    let client = visitor(&gateway);
    let ask = client.call("1", "ask_two", "{}");
    let mut reply = ask.send().await.round().await;
    let mut answered = Vec::new();
    let text = loop {
        answered.extend(reply.keys.clone());
        let again = ask.retry("2", &reply, &reply.all(r#"{"action":"decline"}"#));
        let message = again.send().await.next().await;
        if !message.contains("input_required") {
            break json::text_of(&message);
        }
        reply = crate::support::Round::of(&message);
    };
    assert_eq!((answered.len(), text.as_str()), (2, "decline decline"));
}

/// Which of several calls a question is of is guessed; of the only one it surely is.
#[tokio::test]
async fn a_rule_sees_the_tool_of_the_call_that_asks() {
    let rules = r#"questions: { rules: [
        { when: 'tool == "ask" && message == "seat"', accept: { nick: "rule" } },
        { when: 'tool != "ask"', refuse: true } ] }"#;
    let gateway = legacy_with(&[], &rules.replace('\n', " ")).await;
    let session = open(&gateway).await;
    assert_eq!(session.text("ask", r#"{"x":"seat"}"#).await, "rule");
    let client = visitor(&gateway);
    assert_eq!(client.text("ask", r#"{"x":"seat"}"#).await, "rule");
}

/// `per_call` counts what one call asks.
#[tokio::test]
async fn the_questions_of_one_call_are_counted() {
    let gateway = legacy_with(&[], "questions: { limits: { per_call: 3 } }").await;
    let session = open(&gateway).await;
    let mut reply = session.call("1", "ask_without_end", "{}").await;
    for _ in 0..3 {
        reply.question("elicitation/create").await;
    }
    gateway
        .audited_times("the refusals", 9, |line| {
            line["outcome"] == "refused" && line["code"] == -31006
        })
        .await;
    // Another call has its own count.
    let mut other = session.call("2", "ask", r#"{"x":"once"}"#).await;
    let question = other.question("elicitation/create").await;
    assert_eq!(session.answer(&question, MO).await, 202);
    assert_eq!(json::text_of(&other.next().await), "Mo");
}

#[tokio::test]
async fn progress_and_logs_come_on_the_stream_of_their_call_and_before_its_answer() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    for round in 0..20 {
        let call = json::request(
            "1",
            "tools/call",
            r#"{"name":"progress","arguments":{},"_meta":{"progressToken":"mine"}}"#,
        );
        let mut reply = session.post(call).await;
        for number in 1..=3 {
            let message = reply.json().await;
            assert_eq!(
                message["params"]["progressToken"], "mine",
                "{round}: {message}"
            );
            assert_eq!(message["params"]["progress"], number, "{round}");
        }
        assert_eq!(json::text_of(&reply.next().await), "done");
        let mut reply = session.call("2", "log", "{}").await;
        let log = reply.json().await;
        assert_eq!(log["params"]["data"], "one", "{round}: {log}");
        assert_eq!(reply.json().await["method"], "notifications/custom");
        assert_eq!(json::text_of(&reply.next().await), "done");
    }
}

#[tokio::test]
async fn progress_reaches_a_modern_client_under_its_token() {
    let gateway = legacy().await;
    let client = visitor(&gateway);
    for _ in 0..10 {
        let mut reply = client
            .call("1", "progress", "{}")
            .token("\"mine\"")
            .send()
            .await;
        for number in 1..=3 {
            let message = reply.json().await;
            assert_eq!(message["params"]["progressToken"], "mine", "{message}");
            assert_eq!(message["params"]["progress"], number);
        }
        assert_eq!(json::text_of(&reply.next().await), "done");
    }
}

/// Two calls of one session run; the progress of each is its own.
#[tokio::test]
async fn progress_of_two_calls_does_not_mix() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let call = |id: &str, token: &str| {
        json::request(
            id,
            "tools/call",
            &format!(
                r#"{{"name":"progress_and_hang","arguments":{{"x":"of {id}"}},"_meta":{{"progressToken":{token}}}}}"#
            ),
        )
    };
    let mut one = session.post(call("1", "7")).await;
    let mut two = session.post(call("2", "\"t\"")).await;
    let (first, second) = (one.json().await, two.json().await);
    assert_eq!(first["params"]["message"], "of 1", "{first}");
    assert_eq!(second["params"]["message"], "of 2", "{second}");
}

/// Without authentication, too, each session is a stranger to the others.
#[tokio::test]
async fn a_client_that_can_not_be_asked_is_not_asked() {
    let gateway = legacy().await;
    let session = Client::new(&gateway, "alpha").open("{}").await;
    let text = session.text("ask", r#"{"x":"who"}"#).await;
    assert!(text.starts_with("error"), "{text}");
    let able = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let mut reply = able.call("1", "ask", r#"{"x":"who"}"#).await;
    reply.question("elicitation/create").await;
}
