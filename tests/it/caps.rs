//! Caps: streams, buffers, connections, and clients that don't read. Who is at a cap is told; memory
//! stays bounded; nobody else notices.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Client, EVERYTHING, NOTHING, Server, Setup, json, pair, triple, within};

/// A session may have so many streams open; the one too many is refused, the others go on.
#[tokio::test]
async fn streams_of_one_session() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("limits: { streams: 2 }")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha");
    let session = client.open(NOTHING).await;
    let mut calls = Vec::new();
    for id in ["1", "2"] {
        let call = session.start(json::call(id, "slow", "{}"));
        let stream = server.called("slow").await.stream();
        calls.push((call.await.unwrap(), stream));
    }
    let mut third = session
        .client
        .with("accept", "text/event-stream")
        .get()
        .await;
    assert_ne!(third.status, 200);
    let error = third.json().await;
    assert_eq!(error["error"]["code"], -31006, "{error}");
    assert_eq!(error["error"]["data"]["source"], "gateway", "{error}");
    client.open(NOTHING).await.listen().await;
    for (reply, stream) in &mut calls {
        stream
            .send(&json::notice("notifications/message", "{}"))
            .await;
        assert!(reply.next().await.contains("notifications/message"));
    }
    let (mut reply, stream) = calls.remove(0);
    stream.result("{}").await;
    reply.next().await;
    reply.ends().await;
    session.listen().await;
}

/// Nobody listens: the newest notices are kept, the oldest go, and a question is never among them.
#[tokio::test]
async fn messages_that_wait_for_a_listener() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("limits: { buffer: 3 }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let up = server.last_get_stream().await;
    up.send(&json::request("1", "roots/list", "{}")).await;
    for number in 0..10 {
        let params = format!(r#"{{"data":{number}}}"#);
        up.send(&json::notice("notifications/message", &params))
            .await;
    }
    up.send(&json::request("2", "roots/list", "{}")).await;
    gateway
        .audited_times("both questions", 2, |line| line["type"] == "question.asked")
        .await;
    let mut listening = session.listen().await;
    up.send(&json::notice("notifications/fence", "{}")).await;
    let (mut questions, mut numbers) = (Vec::new(), Vec::new());
    loop {
        let message = listening.next().await;
        match json::method(&message).as_deref() {
            Some("roots/list") => questions.push(message),
            Some("notifications/message") => {
                numbers.push(json::parse(&message)["params"]["data"].as_u64().unwrap());
            }
            _ => break,
        }
    }
    assert!(numbers.len() <= 3, "{numbers:?}");
    let newest: Vec<u64> = (10 - numbers.len() as u64..10).collect();
    assert_eq!(numbers, newest);
    assert_eq!(questions.len(), 2);
    for question in &questions {
        session.answer(question, r#"{"roots":[]}"#).await;
    }
    server.answer_to("1").await;
    server.answer_to("2").await;
}

/// F51: a client does not read what it asked for. Its own other calls and everybody else go on.
#[tokio::test]
async fn a_client_that_does_not_read() {
    let (server, gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let unread = call.await.unwrap();
    let filler = "x".repeat(10_000);
    let notice = json::notice(
        "notifications/message",
        &format!(r#"{{"data":"{filler}"}}"#),
    );
    for _ in 0..3_000 {
        if stream.try_send(&notice).is_err() {
            // Everything on the way is full: now it is the server that has to wait.
            tokio::task::yield_now().await;
        }
    }
    session.works().await;
    let other = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    other.works().await;
    let mut listening = session.listen().await;
    let up = server.get_stream(&server.opened()[0]).await;
    up.send(&json::notice("notifications/fence", "{}")).await;
    assert!(listening.next().await.contains("fence"));
    drop(unread);
    session.works().await;
}

/// Connections: with all places taken nobody else is served; when one goes there is room again.
#[tokio::test]
async fn connections() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("limits: { connections: 2 }")
        .start()
        .await;
    let mut first = TcpStream::connect(gateway.address()).await.unwrap();
    let mut second = TcpStream::connect(gateway.address()).await.unwrap();
    for socket in [&mut first, &mut second] {
        assert!(healthy(socket).await);
    }
    // The system accepts more connections than the gateway does, so this one just stands there, or
    // is closed: either way it is not served while the two are.
    let mut third = TcpStream::connect(gateway.address()).await.unwrap();
    let waiting = tokio::spawn(async move { healthy(&mut third).await });
    for socket in [&mut first, &mut second] {
        assert!(healthy(socket).await);
    }
    assert!(!waiting.is_finished() || !waiting.await.unwrap());
    drop((first, second));
    let again = async {
        while !healthy(&mut TcpStream::connect(gateway.address()).await.unwrap()).await {}
    };
    within("room for a connection", again).await;
}

/// Asks on this connection whether the gateway is well; no answer is no.
async fn healthy(socket: &mut TcpStream) -> bool {
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    if socket.write_all(request.as_bytes()).await.is_err() {
        return false;
    }
    let mut answer = [0; 4096];
    matches!(socket.read(&mut answer).await, Ok(length) if answer[..length].starts_with(b"HTTP/1.1 200"))
}

/// Half a request, and then nothing: it occupies its connection and nothing else.
#[tokio::test]
async fn half_a_request() {
    let (_server, gateway) = pair().await;
    let mut half = Vec::new();
    for part in [
        "P",
        "POST /mcp/alpha HTTP/1.1\r\nhost: x",
        "POST /mcp/alpha HTTP/1.1\r\ncontent-length: 9\r\n\r\n{",
    ] {
        let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
        socket.write_all(part.as_bytes()).await.unwrap();
        half.push(socket);
    }
    Client::new(&gateway, "alpha")
        .open(NOTHING)
        .await
        .works()
        .await;
}
