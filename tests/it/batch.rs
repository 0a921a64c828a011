//! Batches: legal at 2025-03-26 and nowhere else.

use crate::support::{Client, EVERYTHING, json, pair, triple};

/// C19: an array is refused whole, whatever is in it; nothing of it reaches the server.
/// Reported in stacklok/toolhive#5931, NVIDIA/OpenShell#2082, modelcontextprotocol/python-sdk#934.
#[tokio::test]
async fn refused_at_newer_versions() {
    let (server, gateway) = pair().await;
    for version in ["2025-06-18", "2025-11-25"] {
        let session = Client::new(&gateway, "alpha")
            .open_at(version, EVERYTHING)
            .await;
        let before = server.posts();
        let one = json::call("1", "echo", "{}");
        let two = json::call("2", "who", "{}");
        let notice = json::notice("notifications/vendor", "{}");
        for body in [
            format!("[{one},{two}]"),
            format!("[{one}]"),
            format!("[{notice},{notice}]"),
            "[]".to_owned(),
            format!(" \r\n\t[{one}]"),
            "[[]]".to_owned(),
            "[1]".to_owned(),
        ] {
            let mut reply = session.post(body.clone()).await;
            assert_eq!(reply.status, 400, "{version} {body}");
            let error = reply.json().await;
            assert_eq!(error["error"]["code"], -32600, "{body}");
            assert_eq!(error["id"], serde_json::Value::Null, "{body}");
        }
        assert_eq!(server.posts(), before);
        session.works().await;
    }
}

/// Refusals are on the record.
#[tokio::test]
async fn a_refused_batch_is_audited() {
    let (_server, gateway, session) = triple().await;
    session
        .post(format!("[{}]", json::call("1", "echo", "{}")))
        .await;
    gateway
        .audited("the refusal", |line| line["type"] == "refused")
        .await;
}

/// At 2025-03-26 each member is a message of its own: every request is answered once, with its id.
#[tokio::test]
async fn served_at_2025_03_26() {
    let (server, gateway) = pair().await;
    let session = Client::new(&gateway, "alpha")
        .open_at("2025-03-26", EVERYTHING)
        .await;
    assert_eq!(session.version, "2025-03-26");
    let body = format!(
        "[{},{},{}]",
        json::call("1", "echo", r#"{"x":"one"}"#),
        json::notice("notifications/vendor", "{}"),
        json::call("\"1\"", "echo", r#"{"x":"two"}"#),
    );
    let mut reply = session.post(body).await;
    assert_eq!(reply.status, 200);
    let mut answers = Vec::new();
    while let Some(message) = reply.maybe_next().await {
        match json::parse(&message) {
            serde_json::Value::Array(members) => answers.extend(members),
            single => answers.push(single),
        }
    }
    let mut texts: Vec<_> = answers
        .iter()
        .map(|a| (a["id"].clone(), a["result"]["content"][0]["text"].clone()))
        .collect();
    texts.sort_by_key(|(id, _)| id.is_number());
    assert_eq!(
        texts,
        [
            (serde_json::json!("1"), serde_json::json!(r#""two""#)),
            (serde_json::json!(1), serde_json::json!(r#""one""#))
        ]
    );
    server.notice("notifications/vendor").await;
    session.works().await;
}

/// Nothing but notices and answers: 202, like one of them alone.
#[tokio::test]
async fn notices_and_answers_at_2025_03_26() {
    let (server, gateway) = pair().await;
    let session = Client::new(&gateway, "alpha")
        .open_at("2025-03-26", EVERYTHING)
        .await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    stream.send(&json::request("1", "ping", "{}")).await;
    stream.send(&json::request("2", "ping", "{}")).await;
    let first = json::id(&reply.question("ping").await);
    let second = json::id(&reply.question("ping").await);
    let body = format!(
        "[{},{},{}]",
        json::result(&second, r#"{"n":2}"#),
        json::notice("notifications/vendor", "{}"),
        json::result(&first, r#"{"n":1}"#)
    );
    assert_eq!(session.say(body).await, 202);
    assert_eq!(server.answer_to("1").await, json::result("1", r#"{"n":1}"#));
    assert_eq!(server.answer_to("2").await, json::result("2", r#"{"n":2}"#));
    server.notice("notifications/vendor").await;
    stream.result("{}").await;
    reply.next().await;
}

/// Also there: a batch with `initialize`, an empty one, and one with garbage inside are refused.
#[tokio::test]
async fn bad_batches_at_2025_03_26() {
    let (server, gateway) = pair().await;
    let session = Client::new(&gateway, "alpha")
        .open_at("2025-03-26", EVERYTHING)
        .await;
    let before = server.seen_method("initialize").len();
    let opening = crate::support::client::initialize("2025-03-26", "{}");
    for body in ["[]".to_owned(), format!("[{opening}]")] {
        let mut reply = session.post(body.clone()).await;
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.error().await, -32600, "{body}");
    }
    assert_eq!(server.seen_method("initialize").len(), before);
    session.works().await;
}
