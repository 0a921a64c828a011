//! The transport: events as they come, headers at once, streams that stay open, and a liberal
//! reading of what clients send.

use hyper::Method;

use crate::support::client::initialize;
use crate::support::{Client, EVERYTHING, NOTHING, Server, Setup, json, pair, triple};

/// C1, C3: the head of the answer is there before the first event, with all hints for proxies.
/// Reported in wso2/api-platform#2968, modelcontextprotocol/java-sdk#848, tachyonmcp/tachyon#52.
/// Reported in mark3labs/mcp-go#932, modelcontextprotocol/typescript-sdk#2228.
#[tokio::test]
async fn headers_come_at_once() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();
    let listening = session.listen().await;
    for reply in [&reply, &listening] {
        assert!(
            reply
                .header("content-type")
                .starts_with("text/event-stream")
        );
        assert_eq!(reply.header("x-accel-buffering"), "no");
        assert!(reply.header("cache-control").contains("no-cache"));
        assert_eq!(reply.header("content-encoding"), "");
    }
    stream.result("{}").await;
    reply.next().await;
    reply.ends().await;
}

/// C1: the server sends the next event only after the client has got the one before.
/// Reported in wso2/api-platform#2968.
#[tokio::test]
async fn every_event_is_forwarded_as_it_arrives() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();
    for number in 0..50 {
        let sent = json::notice("notifications/message", &format!(r#"{{"data":{number}}}"#));
        stream.send(&sent).await;
        assert_eq!(reply.next().await, sent);
    }
    stream.result("{}").await;
    assert_eq!(reply.json().await["id"], 1);
    reply.ends().await;
}

/// C8, C10: one message, in every way that the grammar of event streams allows.
/// Reported in envoyproxy/ai-gateway#1398, zhu1090093659/deepseek-pp#471, microsoft/vscode#309104.
#[tokio::test]
async fn every_spelling_of_an_event() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();
    let note = |n: usize| json::notice("notifications/message", &format!(r#"{{"data":"ü{n}"}}"#));
    let text = note(0);
    let half = text.find(',').unwrap() + 1;
    let (front, back) = text.split_at(half);
    let spellings: Vec<Vec<String>> = vec![
        vec![format!("data: {text}\n\n")],
        vec![format!("data:{text}\n\n")],
        vec![format!("data: {text}\r\n\r\n")],
        vec![format!("data: {text}\r\r")],
        vec![
            format!("data: {text}\r"),
            "\n\r".to_owned(),
            "\n".to_owned(),
        ],
        vec![format!("data: {text}\r\n"), "\r\n".to_owned()],
        vec![format!("data: {front}\ndata: {back}\n\n")],
        vec![format!("data: {front}\r\ndata: {back}\r\n\r\n")],
        vec![format!("event: message\ndata: {text}\n\n")],
        vec![format!(": comment\nfoo: bar\nretry: 9\ndata: {text}\n\n")],
        vec![format!("id: its-own\ndata:\n\ndata: {text}\n\n")],
        vec![format!(
            "event: vendor\ndata: {{\"not\":\"ours\"}}\n\ndata: {text}\n\n"
        )],
        format!("data: {text}\n\n")
            .chars()
            .map(String::from)
            .collect(),
    ];
    for (number, spelling) in spellings.iter().enumerate() {
        for chunk in spelling {
            stream.bytes(chunk).await;
        }
        assert_eq!(
            reply.json().await,
            json::parse(&text),
            "spelling {number}: {spelling:?}"
        );
        // The fence: it came exactly once.
        stream.send(&note(number + 1)).await;
        assert_eq!(
            reply.next().await,
            note(number + 1),
            "after spelling {number}"
        );
    }
    stream.result("{}").await;
    reply.next().await;
    assert!(
        !reply.raw().contains("its-own"),
        "event ids of the server stay inside"
    );
}

/// A byte order mark before the first event.
#[tokio::test]
async fn a_stream_that_starts_with_a_byte_order_mark() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    stream.bytes("\u{feff}data: ").await;
    stream.bytes(&json::result(&stream.id, "{}")).await;
    stream.bytes("\n\n").await;
    assert_eq!(call.await.unwrap().json().await["id"], 1);
}

/// C4: comments keep every open stream alive, also while a person thinks; they are no messages.
/// Reported in punkpeye/fastmcp#120, scrypster/muninndb#332, langfuse/langfuse#15100.
#[tokio::test]
async fn comments_keep_streams_alive() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { keep_alive: 200ms }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let mut listening = session.listen().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    for stream in [&mut reply, &mut listening] {
        let start = stream.event().await.unwrap();
        assert_eq!(start.data.as_deref(), Some(""));
        stream.read_comments(3).await;
    }
    stream
        .send(&json::request("1", "elicitation/create", &json::form("?")))
        .await;
    let question = reply.question("elicitation/create").await;
    reply.read_comments(3).await;
    session.answer(&question, r#"{"action":"decline"}"#).await;
    server.answer_to("1").await;
    stream.result("{}").await;
    assert_eq!(reply.json().await["id"], 1);
}

/// C6: every `Accept` that clients were seen to send.
/// Reported in modelcontextprotocol/python-sdk#1641 and #2349, honojs/middleware#1799.
#[tokio::test]
async fn accept_is_read_liberally() {
    let (server, gateway) = pair().await;
    for accept in [
        "application/json, text/event-stream",
        "text/event-stream,application/json",
        "*/*",
        "application/*, text/event-stream",
        "application/json",
        "text/event-stream",
        "",
        "application/json;q=0.9, text/event-stream",
        "Application/JSON, Text/Event-Stream; charset=utf-8",
    ] {
        let client = Client::new(&gateway, "alpha").with("accept", accept);
        let session = client.open(NOTHING).await;
        session.works().await;
    }
    for seen in server
        .seen()
        .iter()
        .filter(|seen| seen.http == Method::POST)
    {
        let accept = seen.header("accept").to_ascii_lowercase();
        assert!(accept.contains("application/json") && accept.contains("text/event-stream"));
        assert_eq!(seen.header("content-type"), "application/json");
    }
}

/// C6: a client that takes only one type gets it, whichever the server chose.
/// Reported in modelcontextprotocol/python-sdk#1641 and #2349, honojs/middleware#1799.
#[tokio::test]
async fn one_accepted_type_is_the_one_that_comes() {
    let (server, _gateway, session) = triple().await;
    let mut only_json = session.clone();
    only_json.client = session.client.with("accept", "application/json");
    let call = only_json.start(json::call("1", "slow", "{}"));
    server
        .called("slow")
        .await
        .stream()
        .result(&json::text_result("x"))
        .await;
    let mut reply = call.await.unwrap();
    assert!(!reply.is_stream());
    assert_eq!(json::text_of(&reply.next().await), "x");

    let mut only_stream = session.clone();
    only_stream.client = session.client.with("accept", "text/event-stream");
    let mut reply = only_stream.call("1", "echo", r#"{"x":1}"#).await;
    assert!(reply.is_stream());
    assert_eq!(json::text_of(&reply.next().await), "1");
    reply.ends().await;
}

/// C6: a tool asks, but this client can't read a stream: the server is told, and the call ends well.
/// Reported in modelcontextprotocol/python-sdk#1641 and #2349, honojs/middleware#1799.
#[tokio::test]
async fn a_question_for_a_client_that_takes_no_streams() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { stream: 200ms }")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha").with("accept", "application/json");
    let session = client.open(EVERYTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    stream
        .send(&json::request("9", "elicitation/create", &json::form("?")))
        .await;
    server.error_to("9").await;
    stream.result(&json::text_result("without")).await;
    let mut reply = call.await.unwrap();
    assert!(!reply.is_stream());
    assert_eq!(json::text_of(&reply.next().await), "without");
}

/// C7: parameters and case of the content type, both ways.
/// Reported in mark3labs/mcp-go#501, modelcontextprotocol/csharp-sdk#1527,
/// modelcontextprotocol/python-sdk#1382.
#[tokio::test]
async fn content_types_are_read_liberally() {
    let (server, gateway, session) = triple().await;
    for content_type in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json;charset=UTF-8",
    ] {
        let client = Client::new(&gateway, "alpha").with("content-type", content_type);
        client.open(NOTHING).await.works().await;
        let call = session.start(json::call("1", "slow", "{}"));
        let held = server.called("slow").await;
        let body = json::result(&held.id(), r#"{"type":1}"#);
        held.respond(200, content_type, &body);
        assert_eq!(call.await.unwrap().json().await["result"]["type"], 1);
    }
    for content_type in ["text/event-stream;charset=UTF-8", "Text/Event-Stream"] {
        let call = session.start(json::call("1", "slow", "{}"));
        server
            .called("slow")
            .await
            .stream_as(content_type)
            .result("{}")
            .await;
        assert_eq!(call.await.unwrap().json().await["id"], 1);
    }
}

/// C23: with and without the slash, never a redirect, also for what comes without a session.
/// Reported in BerriAI/litellm#34845, sigbit/mcp-auth-proxy#115.
#[tokio::test]
async fn a_trailing_slash_changes_nothing() {
    let (server, gateway) = pair().await;
    let client = Client::at(&format!("{}/mcp/alpha/", gateway.url));
    let session = client.open(EVERYTHING).await;
    session.works().await;
    let mut listening = session.listen().await;
    let up = server.last_get_stream().await;
    up.send(&json::notice("notifications/x", "{}")).await;
    listening.next().await;
    assert!(session.delete().await.is_success());
}

/// Unknown servers and paths are 404 with an error that a client can read; odd methods are 405.
#[tokio::test]
async fn unknown_paths_and_methods() {
    let (_server, gateway, session) = triple().await;
    let nowhere = Client::new(&gateway, "nowhere");
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let mut reply = nowhere
            .send(method, initialize("2025-11-25", NOTHING))
            .await;
        assert_eq!(reply.status, 404);
        let error = reply.json().await;
        assert_eq!(error["jsonrpc"], "2.0");
        assert!(error["error"]["code"].is_i64() && error["error"]["message"].is_string());
    }
    for method in [Method::PUT, Method::PATCH] {
        let reply = session.client.send(method, "{}").await;
        assert_eq!(reply.status, 405);
        for allowed in ["GET", "POST", "DELETE"] {
            assert!(reply.header("allow").contains(allowed));
        }
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(
            Client::at(&format!("{}{path}", gateway.url))
                .get()
                .await
                .status,
            200,
            "{path}"
        );
    }
    session.works().await;
}

/// C21: a server without a GET stream is its own affair; the client's stream opens all the same.
/// Reported in agentgateway/agentgateway#1582, punkpeye/mcp-proxy#62, stacklok/toolhive#4514.
#[tokio::test]
async fn a_server_without_a_get_stream() {
    let server = Server::with(|habits| habits.get = false).await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let _listening = session.listen().await;
    server.sees("GET", |seen| seen.http == Method::GET).await;
    session.works().await;
}

/// The server's standalone stream breaks, or ends: the gateway opens it anew, and questions go on.
#[tokio::test]
async fn the_servers_get_stream_is_opened_anew() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    for (id, broken) in [("1", true), ("2", false)] {
        let up = server.last_get_stream().await;
        if broken {
            up.abort().await;
        } else {
            drop(up);
        }
        let up = server.last_get_stream().await;
        up.send(&json::request(id, "roots/list", "{}")).await;
        let question = listening.question("roots/list").await;
        session.answer(&question, r#"{"roots":[]}"#).await;
        server.answer_to(id).await;
        // The next round starts from the stream that this one used.
        drop(up);
    }
    session.works().await;
}

/// `Last-Event-ID` of another time: nothing is replayed, and the stream opens.
#[tokio::test]
async fn a_last_event_id_that_nobody_gave_out() {
    let (server, _gateway, session) = triple().await;
    let client = session
        .client
        .with("last-event-id", "77")
        .with("accept", "text/event-stream");
    let mut listening = client.get().await;
    assert_eq!(listening.status, 200);
    let up = server.last_get_stream().await;
    assert_eq!(up.seen.header("last-event-id"), "");
    up.send(&json::notice("notifications/x", "{}")).await;
    assert!(listening.next().await.contains("notifications/x"));
}

/// A6: two standalone streams of one session: each message comes on exactly one of them.
/// Reported in zoedsoupe/anubis-mcp#228, supercorp-ai/supergateway#18.
#[tokio::test]
async fn two_get_streams_get_each_message_once() {
    let (server, gateway, session) = triple().await;
    let up = server.last_get_stream().await;
    let mut first = session.listen().await;
    let second = session
        .client
        .with("accept", "text/event-stream")
        .get()
        .await;
    let bystander = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let mut bystander_stream = bystander.listen().await;
    let bystander_up = server.last_get_stream().await;
    for number in 0..5 {
        up.send(&json::notice(
            "notifications/message",
            &format!(r#"{{"data":{number}}}"#),
        ))
        .await;
    }
    // A second stream may be refused, take over, or share: what may not happen is a copy.
    let mut seen = Vec::new();
    if second.status == 409 {
        for _ in 0..5 {
            seen.push(first.json().await["params"]["data"].as_u64().unwrap());
        }
    } else {
        let mut second = second;
        while seen.len() < 5 {
            tokio::select! {
                Some(message) = first.maybe_next() => seen.push(json::parse(&message)["params"]["data"].as_u64().unwrap()),
                Some(message) = second.maybe_next() => seen.push(json::parse(&message)["params"]["data"].as_u64().unwrap()),
            }
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    bystander_up
        .send(&json::notice("notifications/own", "{}"))
        .await;
    assert!(bystander_stream.next().await.contains("notifications/own"));
}

/// C20: whatever a server answers to `notifications/initialized`, clients see 202 and nothing else.
/// Reported in helidon-io/helidon-mcp#175, modelcontextprotocol/rust-sdk#497, oramasearch/oramacore#335.
#[tokio::test]
async fn the_status_of_notifications() {
    for (status, body) in [
        (200, ""),
        (200, r#"{"jsonrpc":"2.0","id":null}"#),
        (204, ""),
        (202, ""),
    ] {
        let server = Server::with(|habits| habits.accepted = (status, body)).await;
        let gateway = Setup::new().server("alpha", &server).start().await;
        let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
        for method in ["notifications/roots/list_changed", "notifications/vendor"] {
            assert_eq!(session.notify(method, "{}").await, 202);
            server.notice(method).await;
        }
        session.works().await;
    }
}

/// C17: nobody asks the server for an encoding that the gateway would have to undo.
/// Reported in envoyproxy/ai-gateway#1938, speakeasy-api/gram#3729.
#[tokio::test]
async fn no_compression_is_asked_for() {
    let (server, gateway) = pair().await;
    for encoding in ["gzip, br, zstd", "br", "identity", "*"] {
        let client = Client::new(&gateway, "alpha").with("accept-encoding", encoding);
        let session = client.open(NOTHING).await;
        let reply = session.call("1", "echo", "{}").await;
        assert_eq!(reply.header("content-encoding"), "");
    }
    for seen in server.seen() {
        assert!(
            matches!(seen.header("accept-encoding"), "" | "identity"),
            "{:?}",
            seen.headers
        );
    }
}

/// A handshake that the server answers as an event stream is a handshake.
#[tokio::test]
async fn initialize_answered_as_a_stream() {
    let server = Server::with(|habits| habits.initialize_as_stream = true).await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    Client::new(&gateway, "alpha")
        .open(EVERYTHING)
        .await
        .works()
        .await;
}

/// The server's own headers stay inside, its session id first of all.
#[tokio::test]
async fn headers_of_the_server_stay_inside() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let held = server.called("slow").await;
    let mut response =
        crate::support::server::response(200, "application/json", json::result(&held.id(), "{}"));
    for (name, value) in [
        ("set-cookie", "inner=1"),
        ("server", "inner"),
        ("mcp-session-id", "inner"),
        ("x-inner", "1"),
        ("access-control-allow-origin", "*"),
    ] {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    held.respond_with(response);
    let reply = call.await.unwrap();
    for name in [
        "set-cookie",
        "server",
        "x-inner",
        "access-control-allow-origin",
    ] {
        assert_eq!(reply.header(name), "", "{name}");
    }
    assert_ne!(reply.header("mcp-session-id"), "inner");
}
