//! The way of an answer back to the server: what does not fit never gets there.

use super::{Asking, CANCEL, DECLINE, ENTITY, RIGHT, WRONG};
use crate::support::json;

/// What does not fit is asked again, with the reason, under an id of its own; then it fits.
#[tokio::test]
async fn a_wrong_answer_is_asked_for_again() {
    let mut it = Asking::under("{}").await;
    it.elicit("7", ENTITY).await;
    let first = it.reply.question("elicitation/create").await;
    assert_eq!(it.session.answer(&first, WRONG).await, 202);
    let again = it.reply.question("elicitation/create").await;
    assert_ne!(json::id(&again), json::id(&first));
    let message = json::parse(&again)["params"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.starts_with("Which one?") && message.contains("must be at least 1"),
        "{message}"
    );
    assert_eq!(it.session.answer(&again, RIGHT).await, 202);
    it.answered("7", RIGHT).await;
    let asked = it
        .gateway
        .audited_times("asked", 2, |line| line["type"] == "question.asked");
    asked.await;
    let ends = it
        .gateway
        .audited("the end", |line| line["type"] == "question.answered")
        .await;
    let said: Vec<_> = ends["policy"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["said"].clone())
        .collect();
    assert_eq!(said.last().unwrap(), "accept");
    assert!(said.contains(&"again".into()), "{ends}");
    it.ends_quietly().await;
}

/// Twice is enough.
#[tokio::test]
async fn a_wrong_answer_to_the_last() {
    let mut it = Asking::under("{}").await;
    it.elicit("7", ENTITY).await;
    for _ in 0..3 {
        let question = it.reply.question("elicitation/create").await;
        it.session.answer(&question, WRONG).await;
    }
    it.answered("7", CANCEL).await;
    it.ends_quietly().await;
}

/// An answer to a question that was asked again, given under the first id, goes nowhere.
#[tokio::test]
async fn the_first_id_is_used_up() {
    let mut it = Asking::under("{}").await;
    it.elicit("7", ENTITY).await;
    let first = it.reply.question("elicitation/create").await;
    it.session.answer(&first, WRONG).await;
    let again = it.reply.question("elicitation/create").await;
    assert_eq!(it.session.answer(&first, RIGHT).await, 202);
    it.session.answer(&again, DECLINE).await;
    it.answered("7", DECLINE).await;
    it.ends_quietly().await;
}

/// Words of early clients, and content where none belongs.
#[tokio::test]
async fn answers_are_put_into_the_words_of_the_protocol() {
    for (said, taken) in [
        (r#"{"action":"reject"}"#, DECLINE),
        (r#"{"action":"cancel","content":{"name":"x"}}"#, CANCEL),
    ] {
        let mut it = Asking::under("{}").await;
        it.elicit("7", ENTITY).await;
        let question = it.reply.question("elicitation/create").await;
        it.session.answer(&question, said).await;
        it.answered("7", taken).await;
        it.ends_quietly().await;
    }
}

/// The server withdraws while the person corrects: nothing is answered any more.
#[tokio::test]
async fn withdrawn_while_asked_again() {
    let mut it = Asking::under("{}").await;
    it.elicit("7", ENTITY).await;
    let first = it.reply.question("elicitation/create").await;
    it.session.answer(&first, WRONG).await;
    let again = it.reply.question("elicitation/create").await;
    it.stream
        .send(&json::notice(
            "notifications/cancelled",
            r#"{"requestId":7}"#,
        ))
        .await;
    let withdrawn = it.reply.json().await;
    assert_eq!(
        withdrawn["params"]["requestId"].to_string(),
        json::id(&again)
    );
    it.session.answer(&again, RIGHT).await;
    assert!(it.server.answers().is_empty());
    it.ends_quietly().await;
}

/// Nobody answers: the server gets what the operator said.
#[tokio::test]
async fn a_person_who_takes_too_long() {
    for (policy, answer) in [
        ("{ timeout: 100ms }", CANCEL),
        ("{ timeout: 100ms, on_timeout: decline }", DECLINE),
    ] {
        let mut it = Asking::under(policy).await;
        it.elicit("7", ENTITY).await;
        it.reply.question("elicitation/create").await;
        it.answered("7", answer).await;
        let withdrawn = it.reply.next().await;
        assert!(withdrawn.contains("notifications/cancelled"));
        it.ends_quietly().await;
    }
    let mut it = Asking::under("{ timeout: 100ms, on_timeout: refuse }").await;
    it.elicit("7", ENTITY).await;
    it.reply.question("elicitation/create").await;
    assert_eq!(it.refused("7").await, (-31005, "policy_denied".to_owned()));
}
