//! Ids are JSON values, not numbers: what came is what goes back, byte for byte, both ways.

use crate::support::{Client, EVERYTHING, json, pair, triple};

/// C27: every spelling that was ever turned into something else.
/// Reported in modelcontextprotocol/python-sdk#961, WordPress/mcp-adapter#143,
/// DeusData/codebase-memory-mcp#253.
const IDS: [&str; 12] = [
    "\"x\"",
    "\"\"",
    "0",
    "-5",
    "12345678901234567890",
    "1.0",
    "\"1\"",
    "1",
    "9007199254740993",
    r#""\u00e9\/""#,
    "\"init-1\"",
    "1e3",
];

/// Ids of servers.
/// Reported in envoyproxy/ai-gateway#2715.
#[tokio::test]
async fn ids_of_questions() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    // All open at once: "1", 1 and 1.0 are three questions.
    let mut open = Vec::new();
    for id in IDS {
        stream.send(&json::request(id, "ping", "{}")).await;
        open.push(reply.question("ping").await);
    }
    for (question, id) in open.iter().zip(IDS) {
        let mark = serde_json::Value::from(id);
        assert_eq!(
            session
                .answer(question, &format!(r#"{{"mark":{mark}}}"#))
                .await,
            202
        );
        let answer = server.answer_to(id).await;
        assert_eq!(answer, json::result(id, &format!(r#"{{"mark":{mark}}}"#)));
    }
    stream.result("{}").await;
    assert_eq!(reply.json().await["id"], 1);
}

/// Ids of clients, with a JSON answer, an error, and an event stream.
#[tokio::test]
async fn ids_of_calls() {
    let (server, _gateway, session) = triple().await;
    for id in IDS {
        let mut reply = session.call(id, "echo", r#"{"x":1}"#).await;
        assert_eq!(json::id(&reply.next().await), id);

        let call = session.start(json::call(id, "fail", "{}"));
        let held = server.called("fail").await;
        let inner = held.id();
        let error =
            format!(r#"{{"jsonrpc":"2.0","id":{inner},"error":{{"code":-32602,"message":"no"}}}}"#);
        held.respond(200, "application/json", &error);
        let answer = call.await.unwrap().next().await;
        assert_eq!(
            answer,
            error.replace(&format!(r#""id":{inner}"#), &format!(r#""id":{id}"#))
        );

        let call = session.start(json::call(id, "slow", "{}"));
        let stream = server.called("slow").await.stream();
        let mut reply = call.await.unwrap();
        stream.result("{}").await;
        assert_eq!(json::id(&reply.next().await), id);
        reply.ends().await;
    }
}

/// C27: `1` and `"1"` are two calls. Answered in the other order, each gets its own.
/// Reported in modelcontextprotocol/python-sdk#961, WordPress/mcp-adapter#143,
/// DeusData/codebase-memory-mcp#253.
#[tokio::test]
async fn a_number_and_a_string_in_flight_at_once() {
    let (server, _gateway, session) = triple().await;
    let number = session.start(json::call("1", "number", "{}"));
    let string = session.start(json::call("\"1\"", "string", "{}"));
    let held_number = server.called("number").await;
    let held_string = server.called("string").await;
    assert_ne!(
        held_number.id(),
        held_string.id(),
        "inner ids of one session are unique"
    );
    held_string.result(&json::text_result("string"));
    held_number.result(&json::text_result("number"));
    let number = number.await.unwrap().next().await;
    assert_eq!(
        (json::id(&number).as_str(), json::text_of(&number).as_str()),
        ("1", "number")
    );
    let string = string.await.unwrap().next().await;
    assert_eq!(
        (json::id(&string).as_str(), json::text_of(&string).as_str()),
        ("\"1\"", "string")
    );
}

/// A13: fifty sessions all say `id: 2`, the server answers in reverse.
/// Reported in indexnetwork/index#940, domdomegg/computer-use-mcp#64, GHSA-345p-7cg4-v4c7.
#[tokio::test]
async fn fifty_sessions_with_the_same_id() {
    let (server, gateway) = pair().await;
    let client = Client::new(&gateway, "alpha");
    let mut calls = Vec::new();
    for number in 0..50 {
        let session = client.open(EVERYTHING).await;
        let body = json::call("2", "mark", &format!(r#"{{"n":{number}}}"#));
        calls.push(session.start(body));
    }
    let mut held = Vec::new();
    for _ in 0..50 {
        held.push(server.called("mark").await);
    }
    for held in held.into_iter().rev() {
        let number = held.seen.raw(&["params", "arguments", "n"]).unwrap();
        held.result(&json::text_result(&number));
    }
    for (number, call) in calls.into_iter().enumerate() {
        let answer = call.await.unwrap().next().await;
        assert_eq!(json::text_of(&answer), number.to_string());
        assert_eq!(json::id(&answer), "2");
    }
}

/// F57: the same id again while the first one runs. The running call is unharmed.
#[tokio::test]
async fn an_id_that_is_in_use() {
    let (server, _gateway, session) = triple().await;
    let first = session.start(json::call("7", "slow", "{}"));
    let held = server.called("slow").await;
    let mut second = session.call("7", "echo", "{}").await;
    assert_eq!(second.status, 400);
    assert_eq!(second.error().await, -32600);
    held.result(&json::text_result("first"));
    assert_eq!(json::text_of(&first.await.unwrap().next().await), "first");
    session.works().await;
}
