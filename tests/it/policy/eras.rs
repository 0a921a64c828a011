//! The same policy where one side is modern.

use super::{DECLINE, ENTITY, RIGHT, WRONG, gateway};
use crate::support::modern_server::complete;
use crate::support::{Client, EVERYTHING, Gateway, Modern, NOTHING, Server, Setup, json};

/// A modern client's call is not parked for what a rule answers.
#[tokio::test]
async fn a_rule_spares_a_modern_client() {
    let (server, gateway) =
        gateway("{ rules: [ { when: 'client.name == \"raw\"', decline: true } ] }").await;
    let going = Modern::new(&gateway, "memory")
        .call("1", "ask", "{}")
        .start();
    let stream = server.called("ask").await.stream();
    stream
        .send(&json::request("7", "elicitation/create", ENTITY))
        .await;
    assert_eq!(server.answer_to("7").await, json::result("7", DECLINE));
    stream.result(&json::text_result("done")).await;
    let mut reply = going.await.unwrap();
    assert_eq!(json::text_of(&reply.next().await), "done");
}

/// A modern client is asked again in another round.
#[tokio::test]
async fn a_modern_client_is_asked_again() {
    let (server, gateway) = gateway("{}").await;
    let ask = Modern::new(&gateway, "memory").call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    stream
        .send(&json::request("7", "elicitation/create", ENTITY))
        .await;
    let round = going.await.unwrap().round().await;
    let again = ask.retry("2", &round, &round.all(WRONG)).start();
    let round = again.await.unwrap().round().await;
    assert!(round.text.contains("Please answer again"), "{}", round.text);
    let last = ask.retry("3", &round, &round.all(RIGHT)).start();
    assert_eq!(server.answer_to("7").await, json::result("7", RIGHT));
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&last.await.unwrap().next().await), "done");
}

/// A modern client that can't be asked, and an operator who answers for it: the server sees that it may.
#[tokio::test]
async fn the_operator_answers_for_a_modern_client() {
    let (server, gateway) = gateway("{ when_client_cannot: decline }").await;
    let client = Modern::new(&gateway, "memory").declaring(NOTHING);
    let going = client.call("1", "ask", "{}").start();
    let stream = server.called("ask").await.stream();
    let declared =
        server.seen_method("initialize")[0].raw(&["params", "capabilities", "elicitation"]);
    assert!(declared.is_some());
    stream
        .send(&json::request("7", "elicitation/create", ENTITY))
        .await;
    assert_eq!(server.answer_to("7").await, json::result("7", DECLINE));
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

async fn modern_server(policy: &str) -> (Server, Gateway) {
    let server = Server::with(|habits| {
        habits.modern = true;
        habits.capabilities = r#"{"tools":{}}"#;
    })
    .await;
    let more = format!("{{ questions: {policy} }}");
    let gateway = Setup::new()
        .server_with("memory", &server, &more)
        .start()
        .await;
    (server, gateway)
}

fn asks(params: &str) -> String {
    format!(
        r#"{{"resultType":"input_required","inputRequests":{{"k":{{"method":"elicitation/create","params":{params}}}}},"requestState":"s-1"}}"#
    )
}

/// A legacy client is spared what a rule answers; the modern server goes on with it.
#[tokio::test]
async fn a_rule_answers_a_modern_server() {
    let (server, gateway) =
        modern_server("{ rules: [ { when: 'tool == \"ask\"', accept: { name: auto } } ] }").await;
    let session = Client::new(&gateway, "memory").open(EVERYTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    server.called("ask").await.result(&asks(ENTITY));
    let held = server.called("ask").await;
    let said = held.seen.raw(&["params", "inputResponses", "k"]);
    assert_eq!(
        said.as_deref(),
        Some(r#"{"action":"accept","content":{"name":"auto"}}"#)
    );
    held.result(&complete("done"));
    assert_eq!(json::text_of(&call.await.unwrap().next().await), "done");
}

/// What a modern server may not ask fails its call: its questions have no errors for answers.
#[tokio::test]
async fn what_a_modern_server_may_not_ask() {
    let (server, gateway) = modern_server("{}").await;
    let session = Client::new(&gateway, "memory").open(EVERYTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    let secret = r#"{"message":"?","requestedSchema":{"type":"object","properties":{"password":{"type":"string"}}}}"#;
    server.called("ask").await.result(&asks(secret));
    let result = call.await.unwrap().json().await;
    assert_eq!(result["result"]["isError"], true);
    assert!(result.to_string().contains("secret"), "{result}");
}

/// A client that can't be asked, at a modern server.
#[tokio::test]
async fn the_operator_answers_a_modern_server() {
    let (server, gateway) = modern_server("{ when_client_cannot: decline }").await;
    let session = Client::new(&gateway, "memory").open(NOTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    let held = server.called("ask").await;
    let seen = held.seen.text().contains(r#""elicitation":"#);
    assert!(seen, "{}", held.seen.text());
    held.result(&asks(ENTITY));
    let held = server.called("ask").await;
    let said = held.seen.raw(&["params", "inputResponses", "k"]);
    assert_eq!(said.as_deref(), Some(DECLINE));
    held.result(&complete("done"));
    assert_eq!(json::text_of(&call.await.unwrap().next().await), "done");
}
