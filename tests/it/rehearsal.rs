//! The support against itself: the raw client talks to the scripted server with no gateway between.
//!
//! What fails here would make every other failure worthless.

use crate::support::{Client, EVERYTHING, Server, json};

/// A question on the stream of a call, its answer, and the result that follows from it.
#[tokio::test]
async fn a_question_and_its_answer() {
    let server = Server::start().await;
    let session = Client::at(&server.url()).open(EVERYTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    stream
        .send(&json::request(
            "\"e-77\"",
            "elicitation/create",
            &json::form("Who?"),
        ))
        .await;
    let question = reply.question("elicitation/create").await;
    let status = session
        .answer(
            &question,
            r#"{"action":"accept","content":{"nick":"Mira"}}"#,
        )
        .await;
    assert_eq!(status, 202);
    let answer = server.answer_to("\"e-77\"").await;
    assert_eq!(json::parse(&answer)["result"]["content"]["nick"], "Mira");
    stream.result(&json::text_result("hello Mira")).await;
    assert_eq!(json::text_of(&reply.next().await), "hello Mira");
    reply.ends().await;
}

/// The small tools, the standalone stream, comments, and the end of a session.
#[tokio::test]
async fn tools_streams_and_the_end() {
    let server = Server::start().await;
    let session = Client::at(&server.url()).open(EVERYTHING).await;
    session.works().await;
    assert_eq!(session.text("count", "{}").await, "1");
    assert_eq!(session.text("count", "{}").await, "2");
    let mut listening = session.listen().await;
    let stream = server.last_get_stream().await;
    stream.bytes(": one\n\n").await;
    stream.bytes(":two\n\n").await;
    listening.read_comments(2).await;
    stream
        .bytes("data: {\"a\":1}\r\n\r\ndata:\n\ndata: {\"b\":\ndata: 2}\r\r")
        .await;
    assert_eq!(listening.next().await, r#"{"a":1}"#);
    assert_eq!(listening.next().await, "{\"b\":\n2}");
    let mut quiz = session.call("7", "quiz", r#"{"token":"abc"}"#).await;
    let question = quiz.question("elicitation/create").await;
    session
        .answer(&question, r#"{"action":"accept","content":{"said":"abc"}}"#)
        .await;
    assert_eq!(json::text_of(&quiz.next().await), r#""abc""#);
    assert_eq!(session.delete().await, 200);
    assert_eq!(session.call("2", "echo", "{}").await.status, 404);
    drop(listening);
    stream.left().await;
}
