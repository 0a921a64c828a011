//! Sessions: what must not end them, whose they are, and that none is left behind.

use std::time::Duration;

use hyper::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::token::{ISSUER, Key, PUBLIC, claims_with, now};
use crate::support::{
    Client, EVERYTHING, Gateway, Modern, NOTHING, Server, Session, Setup, json, pair, triple,
    within,
};

/// Two gateways with the same configuration do not know each other's sessions. Whoever comes to the wrong one is
/// told so in the way that makes a client begin anew, and nothing happens to the session, nor to its open question.
/// Reported in agentic-community/mcp-gateway-registry#960, agentgateway/agentgateway#754, TheLunarCompany/lunar#55,
/// mcp-hangar/mcp-hangar#877.
#[tokio::test]
async fn a_session_of_another_gateway_is_unknown_and_unharmed() {
    let (server, gateway, session) = triple().await;
    let other = Setup::new().server("alpha", &server).start().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    let ask = json::request("\"q\"", "elicitation/create", &json::form("Who?"));
    stream.send(&ask).await;
    let question = reply.question("elicitation/create").await;

    let lost = Client::new(&other, "alpha").session(&session.id, &session.version);
    let forged = json::result(&json::id(&question), r#"{"action":"decline"}"#);
    for (method, body) in [
        (Method::POST, json::call("2", "echo", "{}")),
        (Method::POST, forged),
        (Method::GET, String::new()),
        (Method::DELETE, String::new()),
    ] {
        let mut refused = lost.send(method.clone(), body).await;
        assert_eq!(refused.status, 404, "{method}");
        assert!(refused.json().await["error"]["code"].is_i64(), "{method}");
    }
    assert_eq!(server.answers(), [""; 0]);
    assert_eq!(server.live(), 1);

    let answer = r#"{"action":"accept","content":{"nick":"Mira"}}"#;
    assert_eq!(session.answer(&question, answer).await, 202);
    let answered = server.answer_to("\"q\"").await;
    assert_eq!(answered, json::result("\"q\"", answer));
    stream.result("{}").await;
    reply.next().await;
    // Who begins anew there is served; and a client without sessions is, wherever it comes.
    let anew = Client::new(&other, "alpha").open(EVERYTHING).await;
    anew.works().await;
    for gateway in [&gateway, &other, &gateway] {
        Modern::new(gateway, "alpha").works().await;
    }
    // Its call, which waits for an answer in one of them, is not known in the other.
    let away = Modern::new(&gateway, "alpha").call("3", "quiz", r#"{"token":"t"}"#);
    let round = away.send().await.round().await;
    let answers = round.all(r#"{"action":"accept","content":{"said":"t"}}"#);
    let elsewhere = Modern::new(&other, "alpha").call("3", "quiz", r#"{"token":"t"}"#);
    let (_, code, reason) = elsewhere.retry("4", &round, &answers).refused().await;
    assert_eq!((code, reason.as_str()), (-32602, "state_invalid"));
    let back = away.retry("5", &round, &answers).send().await.json().await;
    assert!(back["result"]["content"].is_array(), "{back}");
}

/// Connections are reset in the midst of everything; the session goes on, at both ends.
/// Reported in modelcontextprotocol/rust-sdk#384 and #559, modelcontextprotocol/java-sdk#952.
#[tokio::test]
async fn connections_that_are_reset_end_no_session() {
    let (server, gateway, session) = triple().await;
    let slow = json::call("7", "slow", "{}");
    // A stream that listens.
    let mut connection = request(&gateway, &session, "GET", "", 0).await;
    read_head(&mut connection).await;
    abort(connection);
    // A call whose answer has begun, and one whose answer has not.
    let mut connection = request(&gateway, &session, "POST", &slow, slow.len()).await;
    let stream = server.called("slow").await.stream();
    read_head(&mut connection).await;
    abort(connection);
    session.works().await;
    let waiting = json::call("8", "slow", "{}");
    let connection = request(&gateway, &session, "POST", &waiting, waiting.len()).await;
    let held = server.called("slow").await;
    abort(connection);
    session.works().await;
    // Half a request.
    abort(request(&gateway, &session, "POST", &slow, slow.len() / 2).await);
    session.works().await;
    drop((stream, held));
    assert_eq!(session.text("count", "{}").await, "1");
    assert_eq!(server.seen_method("initialize").len(), 1);
    assert_eq!(server.live(), 1);
}

/// A raw request of the session, of whose body so many bytes are sent.
async fn request(
    gateway: &Gateway,
    session: &Session,
    method: &str,
    body: &str,
    sent: usize,
) -> TcpStream {
    let mut connection = TcpStream::connect(gateway.address()).await.unwrap();
    let kind = if method == "POST" {
        "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
    } else {
        "accept: text/event-stream\r\n"
    };
    let head = format!(
        "{method} /mcp/alpha HTTP/1.1\r\nhost: {}\r\n{kind}mcp-session-id: {}\r\nmcp-protocol-version: {}\r\ncontent-length: {}\r\n\r\n",
        gateway.address(),
        session.id,
        session.version,
        body.len()
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection
        .write_all(&body.as_bytes()[..sent])
        .await
        .unwrap();
    connection
}

async fn read_head(connection: &mut TcpStream) {
    let mut first = [0; 12];
    let read = within("the head", connection.read_exact(&mut first)).await;
    assert_eq!(read.unwrap(), first.len());
    assert_eq!(&first, b"HTTP/1.1 200");
}

/// Closes a connection by a reset.
fn abort(connection: TcpStream) {
    connection.set_zero_linger().unwrap();
    drop(connection);
}

/// Hardly any client ends its session. What many of them leave behind is given back: here, and at the server.
/// Reported in mark3labs/mcp-go#723, UsefulSoftwareCo/executor#1684, modelcontextprotocol/python-sdk#1283,
/// openai/codex#41600.
#[tokio::test]
async fn sessions_that_nobody_ends_leave_nothing_behind() {
    const MANY: usize = 300;
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("sessions: { idle: 300ms }\nlimits: { per_principal: { sessions: off } }")
        .start()
        .await;
    Client::new(&gateway, "alpha").open(NOTHING).await;
    let before = gateway.descriptors();
    for _ in 0..MANY {
        let session = Client::new(&gateway, "alpha").open(NOTHING).await;
        session.works().await;
    }
    let ended = |line: &serde_json::Value| line["type"] == "session.closed";
    gateway.audited_times("the ends", MANY + 1, ended).await;
    within("nothing to be left", async {
        while server.live() > 0 || gateway.descriptors() > before + 8 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let deleted = server.seen().into_iter();
    let deleted = deleted.filter(|seen| seen.http == Method::DELETE).count();
    assert_eq!(deleted, MANY + 1, "each once");
}

/// A person was asked under one token and answers under the next: the question is theirs all the same.
/// Reported in stacklok/toolhive#5306 and #3867.
#[tokio::test]
async fn a_question_is_answered_with_a_refreshed_token() {
    let server = Server::start().await;
    let key = Key::new("k1");
    let setup = Setup::new().server("alpha", &server);
    let jwks = Key::write(&[&key], setup.folder());
    let issuer = format!(
        "{{ issuer: \"{ISSUER}\", jwks_file: \"{}\" }}",
        jwks.display()
    );
    let yaml = format!("public_url: {PUBLIC}\nauth: {{ issuers: [ {issuer} ] }}");
    let gateway = setup.yaml(&yaml).start().await;
    let client = Client::new(&gateway, "alpha");
    let change = serde_json::json!({ "jti": "next", "exp": now() + 900 });
    let next = key.sign(&key.header(), &claims_with("mira", &change));

    let session = client.bearer(&key.token("mira")).open(EVERYTHING).await;
    let call = session.start(json::call("1", "quiz", r#"{"token":"t"}"#));
    let mut reply = call.await.unwrap();
    let question = reply.question("elicitation/create").await;
    let refreshed = Session {
        client: session.client.bearer(&next),
        ..session
    };
    let answer = r#"{"action":"accept","content":{"said":"mine"}}"#;
    assert_eq!(refreshed.answer(&question, answer).await, 202);
    assert!(reply.next().await.contains("mine"));

    // The same for a client without sessions, whose state is sealed for its person.
    let modern = Modern::new(&gateway, "alpha");
    let quiz = |token: &str| modern.bearer(token).call("1", "quiz", r#"{"token":"t"}"#);
    let round = quiz(&key.token("mira")).send().await.round().await;
    let answers = round.all(r#"{"action":"accept","content":{"said":"mine"}}"#);
    let mut reply = quiz(&next).retry("2", &round, &answers).send().await;
    assert!(reply.next().await.contains("mine"));
}

/// Ending a session needs no body and no content type; whoever sends something is not refused for it.
/// Reported in higress-group/wasm-go#46, platformatic/mcp#25, envoyproxy/envoy#43499, openclaw/openclaw#145831.
#[tokio::test]
async fn delete_needs_no_body_and_takes_one() {
    let (server, gateway) = pair().await;
    let client = Client::new(&gateway, "alpha");
    let other = client.open(NOTHING).await;
    for body in ["", "{}", "null", "not json"] {
        let session = client.open(NOTHING).await;
        let ended = session.client.send(Method::DELETE, body).await;
        assert!(ended.status.is_success(), "{body:?}: {}", ended.status);
        assert_eq!(session.delete().await, 404, "{body:?}");
    }
    assert_eq!(client.send(Method::DELETE, "").await.status, 400);
    other.works().await;
    within("the server to be told", async {
        while server.live() > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}
