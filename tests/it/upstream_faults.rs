//! Servers that misbehave: the client gets a JSON-RPC error with its own id, never the server's page,
//! never its challenge, and never a second execution.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Client, EVERYTHING, NOTHING, Reply, Server, Setup, json, triple};

/// C7, D13, F14: whatever comes instead of an answer.
/// Reported in mark3labs/mcp-go#501, modelcontextprotocol/csharp-sdk#1527,
/// modelcontextprotocol/python-sdk#1382, first-tree-ai/opentag#652, NousResearch/hermes-agent#88821,
/// hostinger/api-mcp-server#68.
#[tokio::test]
async fn anything_but_an_answer() {
    let (server, _gateway, session) = triple().await;
    let table = [
        (200, "text/html", "<html>login</html>"),
        (200, "application/json", "not json"),
        (200, "application/json", ""),
        (200, "application/json", "[]"),
        (200, "application/json", "{}"),
        (200, "", ""),
        (202, "", ""),
        (204, "", ""),
        (400, "text/plain", "bad"),
        (401, "text/plain", "secret-realm"),
        (403, "text/html", "<html>forbidden</html>"),
        (405, "", ""),
        (429, "text/plain", "slow down"),
        (500, "text/html", "<html>stack trace</html>"),
        (502, "", ""),
        (503, "text/plain", "later"),
    ];
    for (status, content_type, body) in table {
        let case = format!("{status} {content_type} {body}");
        let call = session.start(json::call("\"mine\"", "fail", "{}"));
        server
            .called("fail")
            .await
            .respond(status, content_type, body);
        error_of_the_gateway(&mut call.await.unwrap(), &case, "\"mine\"", body).await;
        session.works().await;
    }
    assert_eq!(
        server.seen_method("tools/call").len(),
        2 * table.len(),
        "each call was sent once"
    );
    assert_eq!(server.seen_method("initialize").len(), 1);
}

/// D13: the server refuses the gateway itself. That is no reason for the client to log in.
#[tokio::test]
async fn the_servers_challenge_stays_inside() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "fail", "{}"));
    let mut response = crate::support::server::response(401, "text/plain", "no".to_owned());
    let challenge = r#"Bearer realm="inner", resource_metadata="http://inner/""#;
    response
        .headers_mut()
        .insert("www-authenticate", challenge.parse().unwrap());
    server.called("fail").await.respond_with(response);
    let mut reply = call.await.unwrap();
    assert_eq!(reply.header("www-authenticate"), "");
    error_of_the_gateway(&mut reply, "401", "1", "inner").await;
}

/// C23: redirects are not followed: neither the call nor the credentials go elsewhere.
/// Reported in BerriAI/litellm#34845, sigbit/mcp-auth-proxy#115.
#[tokio::test]
async fn redirects_are_not_followed_elsewhere() {
    let elsewhere = Server::start().await;
    let server = Server::start().await;
    let gateway = Setup::new()
        .server_with(
            "alpha",
            &server,
            "{ headers: { authorization: Bearer-inner } }",
        )
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    for status in [301, 302, 307, 308] {
        let call = session.start(json::call("1", "fail", "{}"));
        let mut response = crate::support::server::response(status, "", String::new());
        response
            .headers_mut()
            .insert("location", elsewhere.url().parse().unwrap());
        server.called("fail").await.respond_with(response);
        let mut reply = call.await.unwrap();
        assert_eq!(reply.header("location"), "");
        error_of_the_gateway(&mut reply, "redirect", "1", "nothing").await;
    }
    assert_eq!(elsewhere.seen().len(), 0);
    session.works().await;
}

/// F14: the stream breaks in the middle of a call. The call is lost, not repeated.
/// Reported in first-tree-ai/opentag#652, NousResearch/hermes-agent#88821, hostinger/api-mcp-server#68.
#[tokio::test]
async fn a_stream_that_breaks() {
    let (server, _gateway, session) = triple().await;
    for broken in [true, false] {
        let call = session.start(json::call("\"mine\"", "fail", "{}"));
        let stream = server.called("fail").await.stream();
        let mut reply = call.await.unwrap();
        stream
            .send(&json::notice("notifications/message", r#"{"data":1}"#))
            .await;
        reply.next().await;
        if broken {
            stream.abort().await;
        } else {
            drop(stream);
        }
        error_of_the_gateway(&mut reply, "broken", "\"mine\"", "broken on purpose").await;
        reply.ends().await;
        session.works().await;
    }
    let fails = server
        .seen_method("tools/call")
        .iter()
        .filter(|s| s.tool().as_deref() == Some("fail"))
        .count();
    assert_eq!(fails, 2);
}

/// A question was open on the stream that broke: the call gets its error, and what the person says
/// after that harms nobody.
#[tokio::test]
async fn a_stream_that_breaks_with_a_question_open() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    stream
        .send(&json::request("1", "elicitation/create", &json::form("?")))
        .await;
    let question = reply.question("elicitation/create").await;
    stream.abort().await;
    let mut ended = false;
    while let Some(message) = reply.maybe_next().await {
        ended |= json::parse(&message)["error"]["code"].is_i64();
    }
    assert!(ended, "the call got its error");
    for _ in 0..2 {
        assert_eq!(
            session.answer(&question, r#"{"action":"accept"}"#).await,
            202
        );
    }
    session.works().await;
    assert!(server.answers().len() <= 1);
}

/// F14: the connection is gone before an answer: one execution, and an error.
/// Reported in first-tree-ai/opentag#652, NousResearch/hermes-agent#88821, hostinger/api-mcp-server#68.
#[tokio::test]
async fn a_connection_that_is_reset_after_the_request() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let executed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executed);
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let count = Arc::clone(&count);
            tokio::spawn(async move { half_a_server(&mut socket, &count).await });
        }
    });
    let gateway = Setup::new().server_at("alpha", &url, "{}").start().await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let mut reply = session.call("1", "append", "{}").await;
    error_of_the_gateway(&mut reply, "reset", "1", "nothing").await;
    assert_eq!(executed.load(Ordering::SeqCst), 1);
}

/// Answers the handshake by hand, counts `tools/call` and hangs up on it.
async fn half_a_server(socket: &mut tokio::net::TcpStream, executed: &AtomicUsize) {
    let mut request = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let Ok(length @ 1..) = socket.read(&mut chunk).await else {
            return;
        };
        request.extend_from_slice(&chunk[..length]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let lower = head.to_ascii_lowercase();
        let length = lower.split("content-length: ").nth(1).map_or(0, |rest| {
            rest.split("\r\n")
                .next()
                .unwrap()
                .trim()
                .parse::<usize>()
                .unwrap()
        });
        if body.len() < length {
            continue;
        }
        let answer = if body.contains("tools/call") {
            executed.fetch_add(1, Ordering::SeqCst);
            return;
        } else if body.contains("\"initialize\"") {
            let result = r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"h","version":"1"}}"#;
            let body = json::result(&json::id(body), result);
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
        } else if lower.starts_with("get") {
            "HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n".to_owned()
        } else {
            "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned()
        };
        if socket.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        request.clear();
    }
}

/// Nobody is there at all.
#[tokio::test]
async fn a_server_that_is_down() {
    // Nobody listens there, and as long as it is taken nobody else will.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/mcp", taken.local_addr().unwrap());
    let gateway = Setup::new().server_at("alpha", &url, "{}").start().await;
    let body = crate::support::client::initialize("2025-11-25", NOTHING);
    let mut reply = Client::new(&gateway, "alpha").post(body).await;
    let error = error_of_the_gateway(&mut reply, "down", "\"init\"", "nothing").await;
    assert_eq!(error["error"]["code"], -31001);
    assert_eq!(reply.header("mcp-session-id"), "");
}

/// The call takes longer than `timeouts.call`: -31002, and the server hears that nobody waits.
#[tokio::test]
async fn a_call_that_takes_too_long() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { call: 300ms }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let call = session.start(json::call("\"mine\"", "slow", "{}"));
    let held = server.called("slow").await;
    let mut reply = call.await.unwrap();
    let error = error_of_the_gateway(&mut reply, "slow", "\"mine\"", "nothing").await;
    assert_eq!(error["error"]["code"], -31002);
    let cancelled = server.notice("notifications/cancelled").await;
    assert_eq!(cancelled.raw(&["params", "requestId"]), Some(held.id()));
    session.works().await;
}

/// F9: progress does not make a call immortal.
/// Reported in metatool-ai/metamcp#129, BerriAI/litellm#19809, sparfenyuk/mcp-proxy#189.
#[tokio::test]
async fn a_stream_that_takes_too_long() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { call: 500ms }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();
    let chatter = tokio::spawn(async move {
        let message = json::notice("notifications/message", r#"{"data":1}"#);
        while !stream.is_left() {
            // The pace of a server that keeps talking; nothing is measured by it.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            if stream.try_send(&message).is_err() {
                break;
            }
        }
    });
    let error = loop {
        let message = reply.json().await;
        if message["method"] != "notifications/message" {
            break message;
        }
    };
    assert_eq!(error["error"]["code"], -31002, "{error}");
    chatter.await.unwrap();
    session.works().await;
}

/// F13: answers without an end, as JSON and as one event: an error, and the connection is left.
/// Reported in agentrust-io/cmcp#177, forecast-bio/crosslink#319, thunderbird/thunderbolt#524.
#[tokio::test]
async fn answers_that_are_too_large() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("limits: { message: 64KiB }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    for content_type in ["application/json", "text/event-stream"] {
        let call = session.start(json::call("1", "fail", "{}"));
        let stream = server.called("fail").await.stream_as(content_type);
        stream.bytes("data: {\"endless\":\"").await;
        let flood = "a".repeat(16 * 1024);
        while stream.try_bytes(&flood).await {}
        let mut reply = call.await.unwrap();
        error_of_the_gateway(&mut reply, content_type, "1", "endless").await;
        session.works().await;
    }
}

/// Answers with an id that was never asked, or twice: the first fitting one counts.
#[tokio::test]
async fn answers_to_other_requests() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();
    stream
        .send(&json::result("\"nobody\"", r#"{"wrong":1}"#))
        .await;
    stream.send("not json at all").await;
    stream
        .send(&json::notice("notifications/message", r#"{"data":1}"#))
        .await;
    assert!(reply.next().await.contains("notifications/message"));
    let id = stream.id.clone();
    stream.send(&json::result(&id, r#"{"first":1}"#)).await;
    assert_eq!(reply.json().await["result"]["first"], 1);
    reply.ends().await;
    session.works().await;
}

/// An error object in an HTTP error is the server's answer, if it answers this request.
#[tokio::test]
async fn a_json_rpc_error_with_an_error_status() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("\"mine\"", "fail", "{}"));
    let held = server.called("fail").await;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32602,"message":"no such tool"}}}}"#,
        held.id()
    );
    held.respond(400, "application/json", &body);
    let mut reply = call.await.unwrap();
    let answer = reply.json().await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["id"], "mine");
    session.works().await;
}

/// Reads an error that the gateway made, with the id of the request and nothing of the server's page.
async fn error_of_the_gateway(
    reply: &mut Reply,
    case: &str,
    id: &str,
    page: &str,
) -> serde_json::Value {
    // Statuses that make clients log in, start anew, or give up the whole session.
    assert!(
        ![401, 403, 404, 429].contains(&reply.status.as_u16()),
        "{case}: {}",
        reply.status
    );
    let text = reply.next().await;
    let error = json::parse(&text);
    assert_eq!(json::id(&text), id, "{case}");
    assert!(error["error"]["code"].is_i64(), "{case}: {text}");
    assert_eq!(
        error["error"]["data"]["source"], "gateway",
        "{case}: {text}"
    );
    assert_eq!(
        error["error"]["data"]["upstream"], "alpha",
        "{case}: {text}"
    );
    assert!(
        error["error"]["data"]["reason"].is_string(),
        "{case}: {text}"
    );
    assert!(page.len() < 4 || !text.contains(page), "{case}: {text}");
    error
}
