//! Answers that nobody waits for: 202 to whoever sent them, nothing to any server, a line in the
//! audit log, and no harm to the session or to the question that is really open.

use crate::support::token::{ISSUER, Key, PUBLIC};
use crate::support::{
    Client, EVERYTHING, Gateway, Reply, Server, Session, Setup, Stream, json, triple,
};

const ACCEPT: &str = r#"{"action":"accept","content":{"nick":"Mira"}}"#;
const FORGED: &str = r#"{"action":"accept","content":{"nick":"Mallory"}}"#;

/// A10: the same answer twice, and a different one after it.
/// Reported in agentgateway/agentgateway#2187, cloudflare/agents#714.
#[tokio::test]
async fn a_second_answer() {
    let (server, gateway, session) = triple().await;
    let (mut reply, stream) = asking(&server, &session).await;
    let question = reply.question("elicitation/create").await;
    assert_eq!(session.answer(&question, ACCEPT).await, 202);
    assert_eq!(session.answer(&question, ACCEPT).await, 202);
    assert_eq!(session.answer(&question, FORGED).await, 202);
    server.answer_to("\"q\"").await;
    ignored(&gateway, 2).await;
    session.works().await;
    assert_eq!(server.answers(), [json::result("\"q\"", ACCEPT)]);
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&reply.next().await), "done");
}

/// Two answers race on two connections: exactly one wins.
#[tokio::test]
async fn two_answers_at_the_same_time() {
    let (server, gateway, session) = triple().await;
    let (mut reply, stream) = asking(&server, &session).await;
    let id = json::id(&reply.question("elicitation/create").await);
    let both: Vec<_> = (0..8)
        .map(|_| session.start(json::result(&id, r#"{"action":"decline"}"#)))
        .collect();
    for answer in both {
        assert_eq!(answer.await.unwrap().status, 202);
    }
    server.answer_to("\"q\"").await;
    ignored(&gateway, 7).await;
    session.works().await;
    assert_eq!(server.answers().len(), 1);
    stream.result("{}").await;
    reply.next().await;
}

/// A10, A9: ids that were never asked, among them the server's own, of every JSON type.
/// Reported in agentgateway/agentgateway#2187, cloudflare/agents#714.
#[tokio::test]
async fn ids_that_were_never_asked() {
    let (server, gateway, session) = triple().await;
    let (mut reply, stream) = asking(&server, &session).await;
    let question = reply.question("elicitation/create").await;
    let ids = [
        "424242",
        "0",
        "-1",
        "\"\"",
        "\"q\"",
        "\"nobody\"",
        "1.0",
        "12345678901234567890",
    ];
    for id in ids {
        assert_eq!(session.say(json::result(id, FORGED)).await, 202, "{id}");
        let error =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"no"}}}}"#);
        assert_eq!(session.say(error).await, 202, "{id}");
    }
    ignored(&gateway, 2 * ids.len()).await;
    assert_eq!(session.answer(&question, ACCEPT).await, 202);
    server.answer_to("\"q\"").await;
    session.works().await;
    assert_eq!(server.answers(), [json::result("\"q\"", ACCEPT)]);
    stream.result("{}").await;
    reply.next().await;
}

/// The call ended, and then somebody presses the button. A server may still wait for that, as it may
/// without a gateway, so the answer goes there; once, like every other.
#[tokio::test]
async fn after_the_call_has_ended() {
    let (server, gateway, session) = triple().await;
    let (mut reply, stream) = asking(&server, &session).await;
    let question = reply.question("elicitation/create").await;
    stream.result(&json::text_result("not waiting")).await;
    assert_eq!(json::text_of(&reply.next().await), "not waiting");
    reply.ends().await;
    assert_eq!(session.answer(&question, ACCEPT).await, 202);
    assert_eq!(
        server.answer_to("\"q\"").await,
        json::result("\"q\"", ACCEPT)
    );
    assert_eq!(session.answer(&question, FORGED).await, 202);
    ignored(&gateway, 1).await;
    session.works().await;
    assert_eq!(server.answers().len(), 1);
}

/// The server does not take the answer (it is restarting, it is full). It is not sent twice, and the
/// client can do nothing about it.
#[tokio::test]
async fn an_answer_that_the_server_refuses() {
    let (server, _gateway, session) = triple().await;
    let (mut reply, stream) = asking(&server, &session).await;
    let question = reply.question("elicitation/create").await;
    server.change(|habits| habits.accepted = (500, "no"));
    assert_eq!(session.answer(&question, ACCEPT).await, 202);
    server.change(|habits| habits.accepted = (202, ""));
    assert_eq!(session.answer(&question, ACCEPT).await, 202);
    session.works().await;
    assert_eq!(server.answers(), [json::result("\"q\"", ACCEPT)]);
    stream.result("{}").await;
    reply.next().await;
}

/// A2, R4: another session of the same person knows the id of a question. It is not its question.
/// Reported in IBM/mcp-context-forge#1985.
#[tokio::test]
async fn from_another_session() {
    let (server, gateway, session) = triple().await;
    let other = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let (mut reply, stream) = asking(&server, &session).await;
    let question = reply.question("elicitation/create").await;
    assert_eq!(other.answer(&question, FORGED).await, 202);
    ignored(&gateway, 1).await;
    other.works().await;
    assert_eq!(server.answers(), [""; 0]);
    assert_eq!(session.answer(&question, ACCEPT).await, 202);
    assert_eq!(
        server.answer_to("\"q\"").await,
        json::result("\"q\"", ACCEPT)
    );
    assert_eq!(server.answers().len(), 1);
    stream.result("{}").await;
    reply.next().await;
}

/// B13: somebody else with a good token knows session and question. For them neither exists.
/// Reported in agentic-community/mcp-gateway-registry#1357, Repliers-io/mcp-server#14, GHSA-f6c5-f2ph-7x7p.
#[tokio::test]
async fn from_another_principal() {
    let server = Server::start().await;
    let key = Key::new("k1");
    let setup = Setup::new().server("alpha", &server);
    let jwks = Key::write(&[&key], setup.folder());
    let gateway = setup
        .yaml(&format!(
            "public_url: {PUBLIC}\nauth: {{ issuers: [ {{ issuer: \"{ISSUER}\", jwks_file: \"{}\" }} ] }}",
            jwks.display()
        ))
        .start()
        .await;
    let client = Client::new(&gateway, "alpha");
    let mira = client.bearer(&key.token("mira")).open(EVERYTHING).await;
    let joris = client.bearer(&key.token("joris")).open(EVERYTHING).await;
    let (mut reply, stream) = asking(&server, &mira).await;
    let question = reply.question("elicitation/create").await;
    // With their own session: an answer to nothing. With mira's: there is no such session.
    assert_eq!(joris.answer(&question, FORGED).await, 202);
    let stolen = mira.client.bearer(&key.token("joris"));
    let forged = json::result(&json::id(&question), FORGED);
    assert_eq!(stolen.post(forged).await.status, 404);
    ignored(&gateway, 1).await;
    assert_eq!(mira.answer(&question, ACCEPT).await, 202);
    assert_eq!(
        server.answer_to("\"q\"").await,
        json::result("\"q\"", ACCEPT)
    );
    mira.works().await;
    joris.works().await;
    assert_eq!(server.answers().len(), 1);
    stream.result("{}").await;
    reply.next().await;
}

/// What a client sees as the id of a question is never used again in its session.
#[tokio::test]
async fn ids_of_questions_are_never_used_again() {
    let (server, _gateway, session) = triple().await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..10 {
        let (mut reply, stream) = asking(&server, &session).await;
        let question = reply.question("elicitation/create").await;
        assert!(seen.insert(json::id(&question)), "{question}");
        session.answer(&question, r#"{"action":"decline"}"#).await;
        stream.result("{}").await;
        reply.next().await;
    }
}

async fn asking(server: &Server, session: &Session) -> (Reply, Stream) {
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    stream
        .send(&json::request(
            "\"q\"",
            "elicitation/create",
            &json::form("Who?"),
        ))
        .await;
    (call.await.unwrap(), stream)
}

async fn ignored(gateway: &Gateway, times: usize) {
    gateway
        .audited_times("ignored answers", times, |line| {
            line["type"] == "answer.ignored"
        })
        .await;
}
