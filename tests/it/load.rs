//! Many at once: two hundred sessions, fifty questions each, every one with a token of its own. Each
//! answer must come back to the one who asked; none may be lost.

use crate::support::{Client, Server, Setup, json};

const SESSIONS: usize = 200;
const QUESTIONS: usize = 50;

/// Zero misrouted, zero lost.
/// Reported in IBM/mcp-context-forge#1985.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_question_to_its_own_caller() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server_with(
            "alpha",
            &server,
            "{ questions: { limits: { pending: off, rate: off } } }",
        )
        .yaml("limits: { per_principal: { sessions: off, questions: off } }")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha");
    let tasks: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move { converse(&client, number).await })
        })
        .collect();
    let mut answered = 0;
    for task in tasks {
        answered += task.await.unwrap();
    }
    assert_eq!(answered, SESSIONS * QUESTIONS);
    assert_eq!(server.answers().len(), SESSIONS * QUESTIONS);
    assert_eq!(server.opened().len(), SESSIONS);
}

/// One session and its questions, one after another; says how many came back right.
async fn converse(client: &Client, number: usize) -> usize {
    let session = client.open(r#"{"elicitation":{}}"#).await;
    for round in 0..QUESTIONS {
        let token = format!("\"token-{number}-{round}\"");
        let mut reply = session
            .call("1", "quiz", &format!(r#"{{"token":{token}}}"#))
            .await;
        let question = reply.question("elicitation/create").await;
        assert_eq!(
            json::raw(&question, &["params", "message"]).as_deref(),
            Some(token.as_str())
        );
        let said = format!(r#"{{"action":"accept","content":{{"said":{token}}}}}"#);
        assert_eq!(session.answer(&question, &said).await, 202);
        assert_eq!(json::text_of(&reply.next().await), token);
    }
    QUESTIONS
}
