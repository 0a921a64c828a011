//! The same clients in front of a server of the modern era, which has no sessions and asks by rounds.

use super::{Old, before};
use crate::support::modern_server::complete;
use crate::support::{Client, EVERYTHING, Gateway, Server, json};

async fn triple() -> (Server, Gateway, Old) {
    let server = Server::with(|habits| {
        habits.modern = true;
        habits.capabilities = r#"{"tools":{"listChanged":true},"logging":{}}"#;
    })
    .await;
    let gateway = before(&server, "").await;
    let client = Client::new(&gateway, "alpha");
    let old = Old::open_at(&client, "2025-11-25", EVERYTHING).await;
    (server, gateway, old)
}

/// A call, a question in its midst, and its outcome.
#[tokio::test]
async fn a_round_becomes_a_question_on_the_stream() {
    let (server, _gateway, mut old) = triple().await;
    old.works().await;
    old.call("1", "ask").await;
    let question = format!(
        r#""who":{{"method":"elicitation/create","params":{}}}"#,
        json::form("Who?")
    );
    let asks = format!(
        r#"{{"resultType":"input_required","inputRequests":{{{question}}},"requestState":"s-1"}}"#
    );
    server.called("ask").await.result(&asks);
    let asked = old.stream.question("elicitation/create").await;
    let answer = r#"{"action":"accept","content":{"nick":"Mira"}}"#;
    old.answer(&asked, answer).await;
    let retry = server.called("ask").await;
    let answers = retry.seen.raw(&["params", "inputResponses", "who"]);
    assert_eq!(answers.as_deref(), Some(answer));
    retry.result(&complete("Mira"));
    assert_eq!(json::text_of(&old.stream.next().await), "Mira");
}

/// Progress and changes come on the stream; of a cancelled call nothing more does.
#[tokio::test]
async fn notices_come_on_the_stream_and_cancelling_ends_the_request() {
    let (server, _gateway, mut old) = triple().await;
    let changes = server.get_stream("subscription").await;
    let subscription = &changes.id;
    let params =
        format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{subscription}}}}}"#);
    changes
        .send(&json::notice("notifications/tools/list_changed", &params))
        .await;
    let told = old.stream.json().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");

    let params = r#"{"name":"slow","arguments":{},"_meta":{"progressToken":7}}"#;
    old.post(&json::request("1", "tools/call", params)).await;
    let call = server.called("slow").await.stream();
    let token = call
        .seen
        .raw(&["params", "_meta", "progressToken"])
        .unwrap();
    let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
    call.send(&json::notice("notifications/progress", &params))
        .await;
    let progress = old.stream.json().await;
    assert_eq!(progress["params"]["progressToken"], 7, "{progress}");
    old.post(&json::notice(
        "notifications/cancelled",
        r#"{"requestId":1}"#,
    ))
    .await;
    call.left().await;
    old.works().await;
}

/// The end of the stream ends what runs for it at the server.
#[tokio::test]
async fn the_end_of_the_stream_ends_the_requests() {
    let (server, gateway, old) = triple().await;
    let changes = server.get_stream("subscription").await;
    old.call("1", "slow").await;
    let call = server.called("slow").await.stream();
    drop(old.stream);
    call.left().await;
    changes.left().await;
    let closed = gateway
        .audited("the end", |line| line["type"] == "session.closed")
        .await;
    assert_eq!(closed["reason"], "stream_closed");
}
