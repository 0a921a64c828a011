//! The stream of a server breaks, or the server closes it to be asked again later: the gateway goes on with
//! it, and the client notices nothing (2025-11-25 basic/transports, "Sending Messages to the Server",
//! item 6, and "Resumability and Redelivery").

use crate::support::{Reply, Server, Session, Stream, json, modern, triple};

const ANSWER: &str = r#"{"action":"accept","content":{"nick":"Mira"}}"#;

/// An id to come back with, and how soon.
const START: &str = "id: s1-0\nretry: 100\ndata:\n\n";

/// A call of `ask` whose stream has begun, and the client's reply.
async fn begun(server: &Server, session: &Session) -> (Stream, Reply) {
    // The one that is open already, so that the next is the one that goes on.
    drop(server.last_get_stream().await);
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    stream.bytes(START).await;
    (stream, call.await.unwrap())
}

/// The stream with which the gateway goes on after the event `last`, for the call `id`.
async fn taken_up(server: &Server, last: &str, id: String) -> Stream {
    loop {
        let mut stream = server.last_get_stream().await;
        if stream.seen.header("last-event-id") == last {
            stream.id = id;
            return stream;
        }
    }
}

async fn elicit(stream: &Stream, id: &str, event: &str) {
    let question = json::request(id, "elicitation/create", &json::form("Who?"));
    stream
        .bytes(&format!("id: {event}\ndata: {question}\n\n"))
        .await;
}

/// A server that closes the stream of a call to be polled, and asks afterwards.
/// Reported in microsoft/vscode#309104.
#[tokio::test]
async fn a_server_that_wants_to_be_polled_is_polled() {
    let (server, _gateway, session) = triple().await;
    let (stream, mut reply) = begun(&server, &session).await;
    let id = stream.id.clone();
    drop(stream);
    let stream = taken_up(&server, "s1-0", id.clone()).await;
    elicit(&stream, "7", "s1-1").await;
    let question = reply.question("elicitation/create").await;
    assert_eq!(session.answer(&question, ANSWER).await, 202);
    assert_eq!(server.answer_to("7").await, json::result("7", ANSWER));
    drop(stream);
    let stream = taken_up(&server, "s1-1", id).await;
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&reply.next().await), "done");
    reply.ends().await;
    assert_eq!(server.seen_method("tools/call").len(), 1);
}

/// A connection that breaks in the middle of an event.
#[tokio::test]
async fn a_broken_stream_is_taken_up_after_the_last_whole_event() {
    let (server, _gateway, session) = triple().await;
    let (stream, mut reply) = begun(&server, &session).await;
    let id = stream.id.clone();
    let notice = json::notice("notifications/message", r#"{"data":1}"#);
    stream
        .bytes(&format!(
            "id: s1-1\ndata: {notice}\n\nid: s1-2\ndata: {{\"jso"
        ))
        .await;
    assert_eq!(reply.next().await, notice);
    stream.abort().await;
    let stream = taken_up(&server, "s1-1", id).await;
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&reply.next().await), "done");
}

/// F54: the response comes on another stream, and F55: it comes again. The first one counts.
#[tokio::test]
async fn f54_a_response_counts_on_whatever_stream_it_comes() {
    let (server, _gateway, session) = triple().await;
    let standalone = server.last_get_stream().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    stream.bytes(START).await;
    let mut reply = call.await.unwrap();
    let response = |text| json::result(&stream.id, &json::text_result(text));
    standalone.send(&response("first")).await;
    standalone.send(&response("second")).await;
    assert_eq!(json::text_of(&reply.next().await), "first");
    reply.ends().await;
    session.works().await;
}

/// Without an id to go on from nobody knows what became of the call, and it is not sent again.
#[tokio::test]
async fn a_stream_that_can_not_be_taken_up_is_an_error() {
    let (server, _gateway, session) = triple().await;
    drop(server.last_get_stream().await);
    for (start, get) in [(": nothing\n\n", true), (START, false)] {
        server.change(|habits| habits.get = get);
        let call = session.start(json::call("1", "ask", "{}"));
        let stream = server.called("ask").await.stream();
        stream.bytes(start).await;
        let mut reply = call.await.unwrap();
        drop(stream);
        let error = reply.json().await;
        assert_eq!(
            error["error"]["data"]["reason"], "outcome_unknown",
            "{error}"
        );
    }
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// The server forgot the session while it was to be polled. Whether the call was carried out is unknown.
#[tokio::test]
async fn a_session_that_is_gone_at_the_next_poll_executes_nothing_twice() {
    let (server, _gateway, client) = modern().await;
    let going = client.call("1", "ask", "{}").start();
    let stream = server.called("ask").await.stream();
    stream.bytes(START).await;
    server.forget();
    drop(stream);
    let mut reply = going.await.unwrap();
    assert!([-31003, -32603].contains(&reply.error().await));
    assert_eq!(server.seen_method("tools/call").len(), 1);
}

/// The client is away with a question when the server's stream ends: the call goes on when it is back.
#[tokio::test]
async fn a_parked_call_is_polled_too() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    drop(server.last_get_stream().await);
    stream.bytes(START).await;
    elicit(&stream, "7", "s1-1").await;
    let round = going.await.unwrap().round().await;
    let id = stream.id.clone();
    drop(stream);
    let stream = taken_up(&server, "s1-1", id).await;
    let back = ask.retry("2", &round, &round.all(ANSWER)).start();
    assert_eq!(server.answer_to("7").await, json::result("7", ANSWER));
    stream.result(&json::text_result("done")).await;
    let mut reply = back.await.unwrap();
    assert_eq!(json::text_of(&reply.next().await), "done");
}
