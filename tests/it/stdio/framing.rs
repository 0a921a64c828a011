//! One message a line, and what to do with what is none.

use super::{legacy, legacy_with, open, visitor};
use crate::support::{json, within};

#[tokio::test]
async fn calls_of_either_era_are_answered() {
    let gateway = legacy().await;
    open(&gateway).await.works().await;
    visitor(&gateway).works().await;
}

/// Clients may write JSON over several lines; a program reads one.
#[tokio::test]
async fn a_message_of_several_lines_arrives_as_one() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let body = "{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"method\":\"tools/call\",\n\n\"params\":{\"name\":\"whole\",\"arguments\":{\"x\":\n\"a\\nb\"\r}}}";
    let seen = json::text_of(&session.post(body).await.next().await);
    assert!(seen.contains(r#""arguments":{"x": "a\nb" }"#), "{seen}");
    session.works().await;
}

/// What a program sees is what its client wrote, but for the id.
#[tokio::test]
async fn what_is_not_understood_passes_unchanged() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let body = json::request(
        "1",
        "tools/call",
        r#"{"name":"whole","arguments":{"n":1.50,"u":"\u00e9"},"zzz":[ 1 ],"_meta":{"x/y":null}}"#,
    );
    let seen = json::text_of(&session.post(body.clone()).await.next().await);
    json::same_but_id(&seen, &body);
}

/// Reported in mark3labs/mcp-go#588 and #155, superfly/flyctl#4402, ThinkInAIXYZ/go-mcp#128.
#[tokio::test]
async fn a_line_may_come_in_pieces_with_a_carriage_return_or_as_a_batch() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    assert_eq!(session.text("split", "{}").await, "whole");
    assert_eq!(session.text("crlf", "{}").await, "crlf");
    let mut reply = session.call("1", "batch", "{}").await;
    let log = reply.json().await;
    assert_eq!(log["params"]["data"], "in a batch", "{log}");
    assert_eq!(json::text_of(&reply.next().await), "batch");
}

/// Reported in microsoft/azure-devops-mcp#147, editor-code-assistant/eca#298, hurttlocker/o8#1541.
#[tokio::test]
async fn junk_is_logged_and_left_out() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    assert_eq!(session.text("junk", "{}").await, "clean");
    gateway
        .says("the server wrote something that is no MCP message; programs must log to standard error")
        .await;
    session.works().await;
    assert!(!gateway.output().contains("Listening on port 3000"));
}

#[tokio::test]
async fn deep_json_is_passed_on() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let mut reply = session.call("1", "deep", "{}").await;
    let message = reply.next().await;
    assert!(message.starts_with(r#"{"jsonrpc":"2.0","id":1,"#));
    assert!(message.len() > 40_000 && message.ends_with("]]}}"));
    session.works().await;
}

/// A request that can't be read for certain gets an error, and nothing else happens.
#[tokio::test]
async fn requests_that_can_not_be_read_are_refused() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    assert_eq!(session.text("unreadable", "{}").await, "told");
    session.works().await;
}

#[tokio::test]
async fn answers_that_nobody_waits_for_are_nobodys() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    for (tool, id) in [("strangers", "1"), ("others", "\"s\"")] {
        let mut reply = session.call(id, tool, "{}").await;
        let message = reply.next().await;
        assert_eq!(json::id(&message), id);
        assert_eq!(json::text_of(&message), "mine");
        reply.ends().await;
    }
    session.works().await;
}

/// A program may wait for an answer before it answers `initialize`.
#[tokio::test]
async fn a_program_may_ping_before_it_answers_initialize() {
    let gateway = legacy_with(&["pings-first"], "").await;
    open(&gateway).await.works().await;
}

/// What it asks before that is kept until somebody can be asked.
#[tokio::test]
async fn what_a_program_says_before_it_answers_initialize_is_kept() {
    let gateway = legacy_with(&["asks-early"], "").await;
    let session = open(&gateway).await;
    let mut listening = session.listen().await;
    let (mut asked, mut told) = (false, false);
    while !(asked && told) {
        let message = listening.next().await;
        match json::method(&message).as_deref() {
            Some("roots/list") => {
                assert_eq!(session.answer(&message, r#"{"roots":[]}"#).await, 202);
                asked = true;
            }
            Some("notifications/message") => told = true,
            other => panic!("{other:?}"),
        }
    }
    session.works().await;
}

/// The last line may have no end.
#[tokio::test]
async fn the_last_line_needs_no_end() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    assert_eq!(session.text("no_last_newline", "{}").await, "no end");
    within(
        "the end",
        gateway.says("the server process has ended by itself"),
    )
    .await;
}
