//! A modern client at a modern server: each request is passed on, and what comes back is passed back.

use hyper::Method;

use crate::support::modern_server::complete;
use crate::support::{Client, Gateway, Reply, Server, Setup, json};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"progressToken":"mine"}"#;

async fn pair() -> (Server, Gateway, Client) {
    let server = Server::with(|habits| {
        habits.modern = true;
        habits.capabilities = r#"{"tools":{"listChanged":true}}"#;
    })
    .await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha").with("mcp-protocol-version", "2026-07-28");
    (server, gateway, client)
}

/// A request with its headers; `members` are those of `params` beside `_meta`.
fn request(client: &Client, id: &str, method: &str, name: &str, members: &str) -> (Client, String) {
    let client = client.with("mcp-method", method).with("mcp-name", name);
    let comma = if members.is_empty() { "" } else { "," };
    (
        client,
        json::request(id, method, &format!("{{{members}{comma}{META}}}")),
    )
}

/// Starts a request without waiting for the head of its answer.
fn start(request: (Client, String)) -> tokio::task::JoinHandle<Reply> {
    tokio::spawn(async move { request.0.send(Method::POST, request.1).await })
}

/// A call of a tool without arguments.
fn call(client: &Client, id: &str, tool: &str) -> tokio::task::JoinHandle<Reply> {
    let members = format!(r#""name":"{tool}","arguments":{{}}"#);
    start(request(client, id, "tools/call", tool, &members))
}

/// Bytes of body and answer are the same but for the id; the headers are made anew, and what only the
/// server understands goes along.
#[tokio::test]
async fn a_request_passes_as_it_is() {
    let (server, _gateway, client) = pair().await;
    let client = client.with("mcp-param-region", "=?base64?w6Q=?=");
    let members = r#""name":"bestätigen", "arguments":{"n":1.10},"x":[1e2]"#;
    let (client, body) = request(
        &client,
        "\"c-1\"",
        "tools/call",
        "=?base64?YmVzdMOkdGlnZW4=?=",
        members,
    );
    let answer = start((client, body.clone()));
    let held = server.called("bestätigen").await;
    json::same_but_id(held.seen.text(), &body);
    assert_ne!(held.id(), "\"c-1\"");
    assert_eq!(held.seen.header("mcp-param-region"), "=?base64?w6Q=?=");
    held.result(r#"{"resultType":"complete","y":1.0}"#);
    let mut reply = answer.await.unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.next().await,
        json::result("\"c-1\"", r#"{"resultType":"complete","y":1.0}"#)
    );
}

/// Questions and their answers are ordinary traffic; the state is not touched; all is on record.
#[tokio::test]
async fn rounds_pass_and_are_on_record() {
    let (server, gateway, client) = pair().await;
    let asking = call(&client, "1", "ask");
    let params = json::form("Who?");
    let required = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"k":{{"method":"elicitation/create","params":{params}}}}},"requestState":"s\u0031"}}"#
    );
    server.called("ask").await.result(&required);
    assert_eq!(
        asking.await.unwrap().next().await,
        json::result("1", &required)
    );
    let members = r#""name":"ask","arguments":{},"inputResponses":{"k":{"action":"decline"}},"requestState":"s\u0031""#;
    let (client, body) = request(&client, "2", "tools/call", "ask", members);
    let retry = start((client, body.clone()));
    let held = server.called("ask").await;
    json::same_but_id(held.seen.text(), &body);
    held.result(&complete("done"));
    assert_eq!(json::text_of(&retry.await.unwrap().next().await), "done");
    let asked = gateway
        .audited("the question", |line| line["type"] == "question.asked")
        .await;
    assert_eq!(asked["question"]["id"], r#""k""#);
    assert_eq!(asked["question"]["fields"][0], "nick");
    let answered = gateway
        .audited("the answer", |line| line["type"] == "question.answered")
        .await;
    assert_eq!(answered["action"], "decline");
    let line = gateway
        .audited("the call", |line| line["type"] == "call")
        .await;
    assert_eq!(
        (&line["target"], &line["outcome"]),
        (&"ask".into(), &"ok".into())
    );
}

/// What comes on a stream comes on a stream.
#[tokio::test]
async fn notifications_pass_on_the_stream() {
    let (server, _gateway, client) = pair().await;
    let answer = call(&client, "1", "slow");
    let stream = server.called("slow").await.stream();
    let progress = json::notice(
        "notifications/progress",
        r#"{"progressToken":"mine","progress":1.50}"#,
    );
    stream.send(&progress).await;
    let mut reply = answer.await.unwrap();
    assert_eq!(reply.next().await, progress);
    let result = complete("done");
    stream.result(&result).await;
    assert_eq!(reply.next().await, json::result("1", &result));
    reply.ends().await;
}

/// A client that goes away cancels, whether its answer had begun or not.
#[tokio::test]
async fn going_away_cancels() {
    let (server, gateway, client) = pair().await;
    let answer = call(&client, "1", "slow");
    let stream = server.called("slow").await.stream();
    stream
        .send(&json::notice(
            "notifications/message",
            r#"{"level":"info","data":1}"#,
        ))
        .await;
    drop(answer.await.unwrap());
    stream.left().await;
    let answer = call(&client, "2", "slow");
    let mut held = server.called("slow").await;
    answer.abort();
    held.abandoned().await;
    gateway
        .audited("the cancelled call", |line| {
            line["type"] == "call" && line["outcome"] == "cancelled" && line["request"] == "2"
        })
        .await;
}

/// What the server says about the request goes to its client, with its status.
#[tokio::test]
async fn errors_of_the_era_pass_with_their_status() {
    let (server, _gateway, client) = pair().await;
    for (status, code) in [(400, -32021), (400, -32020), (404, -32601), (200, -32602)] {
        let answer = call(&client, "1", "any");
        let held = server.called("any").await;
        let error = json::error(&held.id(), code, "m");
        held.respond(status, "application/json", &error);
        let mut reply = answer.await.unwrap();
        assert_eq!(reply.status, status);
        assert_eq!(reply.next().await, json::error("1", code, "m"));
    }
}

/// F44 and the rest of a server's troubles are the gateway's to explain.
#[tokio::test]
async fn f44_trouble_with_the_server_is_the_gateways() {
    let (server, _gateway, client) = pair().await;
    for (status, code, expected) in [(400, -32022, -31001), (401, 0, -31005), (429, 0, -31004)] {
        let answer = call(&client, "1", "any");
        let held = server.called("any").await;
        let error = json::error(&held.id(), code, "secret words");
        held.respond(status, "application/json", &error);
        let message = answer.await.unwrap().json().await;
        assert_eq!(message["error"]["code"], expected, "{message}");
        assert_eq!(message["error"]["data"]["source"], "gateway");
        assert!(!message.to_string().contains("secret"), "{message}");
    }
}

/// F42: nothing is sent again. The client decides.
#[tokio::test]
async fn f42_a_broken_stream_is_told_and_not_repeated() {
    let (server, _gateway, client) = pair().await;
    let members = r#""uri":"shop://a""#;
    let answer = start(request(&client, "1", "resources/read", "shop://a", members));
    let stream = server.asked("resources/read").await.stream();
    stream
        .send(&json::notice(
            "notifications/message",
            r#"{"level":"info","data":1}"#,
        ))
        .await;
    let mut reply = answer.await.unwrap();
    reply.next().await;
    stream.abort().await;
    assert_eq!(reply.error().await, -32603);
    reply.ends().await;
    assert_eq!(server.seen_method("resources/read").len(), 1);
}

/// A subscription is known to each side by its own id.
#[tokio::test]
async fn a_subscription_keeps_the_clients_id() {
    let (server, _gateway, client) = pair().await;
    let members = r#""notifications":{"toolsListChanged":true}"#;
    let (client, body) = request(&client, "\"sub\"", "subscriptions/listen", "", members);
    let mut reply = client.post(body).await;
    let stream = server.get_stream("subscription").await;
    assert_ne!(stream.id, "\"sub\"");
    let tag = |message: &str, part: &str| {
        json::raw(
            message,
            &[part, "_meta", "io.modelcontextprotocol/subscriptionId"],
        )
    };
    let acknowledged = reply.next().await;
    assert_eq!(
        json::method(&acknowledged).as_deref(),
        Some("notifications/subscriptions/acknowledged")
    );
    assert_eq!(tag(&acknowledged, "params").as_deref(), Some("\"sub\""));
    let params = format!(
        r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}"#,
        stream.id
    );
    stream
        .send(&json::notice("notifications/tools/list_changed", &params))
        .await;
    assert_eq!(
        tag(&reply.next().await, "params").as_deref(),
        Some("\"sub\"")
    );
    let result = format!(
        r#"{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}"#,
        stream.id
    );
    stream.result(&result).await;
    let last = reply.next().await;
    assert_eq!(json::id(&last), "\"sub\"");
    assert_eq!(tag(&last, "result").as_deref(), Some("\"sub\""));
    reply.ends().await;
}

/// F57: two requests of one id are two requests.
#[tokio::test]
async fn f57_ids_belong_to_their_own_exchange() {
    let (server, _gateway, client) = pair().await;
    let (one, two) = (call(&client, "1", "first"), call(&client, "1", "second"));
    let (first, second) = (server.called("first").await, server.called("second").await);
    assert_ne!(first.id(), second.id());
    second.result(&complete("second"));
    first.result(&complete("first"));
    assert_eq!(json::text_of(&one.await.unwrap().next().await), "first");
    assert_eq!(json::text_of(&two.await.unwrap().next().await), "second");
}

/// At shutdown a subscription ends in the way that subscriptions end, and a call that works on ends as
/// it should.
#[tokio::test]
async fn shutdown_ends_what_is_open() {
    let (server, mut gateway, client) = pair().await;
    let members = r#""notifications":{"toolsListChanged":true}"#;
    let (listener, body) = request(&client, "7", "subscriptions/listen", "", members);
    let mut listening = listener.post(body).await;
    listening.next().await;
    let stream = server.get_stream("subscription").await;
    let working = call(&client, "8", "slow");
    let held = server.called("slow").await;
    gateway.terminate().await;
    let last = listening.json().await;
    assert_eq!(
        (&last["id"], &last["result"]["resultType"]),
        (&7.into(), &"complete".into())
    );
    listening.ends().await;
    stream.left().await;
    held.result(&complete("done"));
    assert_eq!(json::text_of(&working.await.unwrap().next().await), "done");
    assert_eq!(gateway.exit().await.code(), Some(0));
}

/// What does not end in its time is cut short, and its client told.
#[tokio::test]
async fn shutdown_does_not_wait_for_ever() {
    let server = Server::with(|habits| habits.modern = true).await;
    let mut gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { shutdown: 1s }")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha").with("mcp-protocol-version", "2026-07-28");
    let endless = call(&client, "8", "slow");
    let mut held = server.called("slow").await;
    gateway.terminate().await;
    held.abandoned().await;
    assert!(endless.await.unwrap().error().await < 0);
    assert_eq!(gateway.exit().await.code(), Some(0));
}
