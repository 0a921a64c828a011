//! Questions that can't reach a person are answered by the gateway, with an error, at once or after
//! a bounded time: a server is never left hanging, and the call that asked goes on.

use std::time::Duration;

use crate::support::{
    Client, EVERYTHING, Gateway, NOTHING, Reply, Server, Session, Setup, Stream, json, triple,
};

/// A11, A1: what the client did not declare is refused at once, by method or by mode, and the
/// client never hears of it.
/// Reported in BerriAI/litellm#23761, higress-group/higress#3685, Kuadrant/mcp-gateway#349, btsouth/toolport#167,
/// docker/mcp-gateway#79.
#[tokio::test]
async fn what_the_client_did_not_declare() {
    let url = r#"{"mode":"url","elicitationId":"e","url":"https://x.test/","message":"m"}"#;
    let form = json::form("Who?");
    let sampling = r#"{"messages":[],"maxTokens":1}"#;
    let table = [
        (NOTHING, "elicitation/create", form.as_str(), -32601),
        (NOTHING, "elicitation/create", url, -32601),
        (NOTHING, "sampling/createMessage", sampling, -32601),
        (NOTHING, "roots/list", "{}", -32601),
        (
            r#"{"roots":{}}"#,
            "sampling/createMessage",
            sampling,
            -32601,
        ),
        (r#"{"elicitation":{}}"#, "elicitation/create", url, -32602),
        (
            r#"{"elicitation":{"form":{}}}"#,
            "elicitation/create",
            url,
            -32602,
        ),
        (
            r#"{"elicitation":{"url":{}}}"#,
            "elicitation/create",
            form.as_str(),
            -32602,
        ),
    ];
    let server = Server::start().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    for (number, (capabilities, method, params, code)) in table.into_iter().enumerate() {
        let session = Client::new(&gateway, "alpha").open(capabilities).await;
        let (mut reply, stream) = asking(&server, &session).await;
        let id = format!("\"row-{number}\"");
        stream.send(&json::request(&id, method, params)).await;
        assert_eq!(
            server.error_to(&id).await,
            code,
            "{method} with {capabilities}"
        );
        stream.result(&json::text_result("without it")).await;
        assert_eq!(json::text_of(&reply.next().await), "without it");
        reply.ends().await;
    }
}

/// The same on the standalone stream.
#[tokio::test]
async fn what_the_client_did_not_declare_on_the_get_stream() {
    let server = Server::start().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let mut listening = session.listen().await;
    let stream = server.last_get_stream().await;
    stream.send(&json::request("1", "roots/list", "{}")).await;
    assert_eq!(server.error_to("1").await, -32601);
    stream
        .send(&json::notice("notifications/vendor", "{}"))
        .await;
    assert!(listening.next().await.contains("notifications/vendor"));
}

/// An escape in the name of a method is the same name: nobody gets around a capability with it.
#[tokio::test]
async fn methods_in_disguise() {
    let server = Server::start().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let (mut reply, stream) = asking(&server, &session).await;
    let spellings = [
        r#""method":"elicitation\/create""#,
        r#""method":"\u0065licitation/create""#,
        r#""m\u0065thod":"elicitation/create""#,
        r#""method":"sampling\u002fcreateMessage""#,
        r#""method" : "roots\/list""#,
    ];
    for (number, method) in spellings.iter().enumerate() {
        let id = format!("\"disguise-{number}\"");
        stream
            .send(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},{method},"params":{{}}}}"#
            ))
            .await;
        assert_eq!(server.error_to(&id).await, -32601, "{method}");
    }
    stream.result("{}").await;
    assert_eq!(reply.json().await["id"], 1);
}

/// Nobody listens: the server is told after `timeouts.stream`.
#[tokio::test]
async fn no_stream_to_carry_it() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { stream: 200ms }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let stream = server.last_get_stream().await;
    stream
        .send(&json::request(
            "\"lost\"",
            "elicitation/create",
            &json::form("?"),
        ))
        .await;
    server.error_to("\"lost\"").await;
    session.works().await;
}

/// B4 and the question: the client's stream broke before the server asked, and it has no other.
#[tokio::test]
async fn the_client_left_its_stream() {
    let server = Server::start().await;
    let timeouts = "timeouts: { question: 2s, stream: 200ms }";
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml(timeouts)
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let (reply, stream) = asking(&server, &session).await;
    drop(reply);
    stream
        .send(&json::request("0", "elicitation/create", &json::form("?")))
        .await;
    server.cancelled("0").await;
    session.works().await;
}

/// A question that hangs on a stream whose client goes away moves to a new stream of the session,
/// or is cancelled: it never just hangs.
#[tokio::test]
async fn the_client_leaves_while_asked() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { question: 1s, stream: 200ms }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let (mut reply, stream) = asking(&server, &session).await;
    stream
        .send(&json::request("0", "elicitation/create", &json::form("?")))
        .await;
    reply.question("elicitation/create").await;
    drop(reply);
    server.cancelled("0").await;
    session.works().await;
}

/// B14: DELETE while a question waits.
/// Reported in higress-group/wasm-go#46, platformatic/mcp#25, envoyproxy/envoy#43499, openclaw/openclaw#145831.
#[tokio::test]
async fn the_session_ends_while_asked() {
    let (server, _gateway, session) = triple().await;
    let (mut reply, stream) = asking(&server, &session).await;
    stream
        .send(&json::request(
            "\"q\"",
            "elicitation/create",
            &json::form("?"),
        ))
        .await;
    reply.question("elicitation/create").await;
    assert!(session.delete().await.is_success());
    server.error_to("\"q\"").await;
    while reply.maybe_next().await.is_some() {}
    server.sees("DELETE", |seen| seen.http == "DELETE").await;
    drop(stream);
}

/// The person does not answer: for the server they cancelled, and the client is told to take its dialog
/// away. An answer after that is late: 202, and it goes nowhere.
#[tokio::test]
async fn the_person_does_not_answer() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { question: 300ms }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let (mut reply, stream) = asking(&server, &session).await;
    stream
        .send(&json::request("7", "elicitation/create", &json::form("?")))
        .await;
    let question = reply.question("elicitation/create").await;
    server.cancelled("7").await;
    let withdrawn = reply.next().await;
    assert_eq!(
        json::method(&withdrawn).as_deref(),
        Some("notifications/cancelled")
    );
    assert_eq!(
        json::raw(&withdrawn, &["params", "requestId"]),
        Some(json::id(&question))
    );
    assert_eq!(
        session.answer(&question, r#"{"action":"accept"}"#).await,
        202
    );
    session.works().await;
    assert_eq!(
        server.answers().len(),
        1,
        "one question, one answer: {:?}",
        server.answers()
    );
    ignored(&gateway).await;
    stream.result(&json::text_result("went on")).await;
    assert_eq!(json::text_of(&reply.next().await), "went on");
}

/// F1, F2: the person's time is not the call's time.
/// Reported in modelcontextprotocol/python-sdk#1428, modelcontextprotocol/typescript-sdk#903,
/// UsefulSoftwareCo/executor#1953, anomalyco/opencode#35275.
#[tokio::test]
async fn thinking_does_not_use_up_the_call() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { call: 3s }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let (mut reply, stream) = asking(&server, &session).await;
    stream
        .send(&json::request("1", "elicitation/create", &json::form("?")))
        .await;
    let question = reply.question("elicitation/create").await;
    // The person thinks for longer than the call may take: this is the scenario, not a wait for luck.
    tokio::time::sleep(Duration::from_millis(3500)).await;
    assert_eq!(
        session.answer(&question, r#"{"action":"decline"}"#).await,
        202
    );
    server.answer_to("1").await;
    stream.result(&json::text_result("in time")).await;
    assert_eq!(json::text_of(&reply.next().await), "in time");
}

/// One person can't be buried in questions; the ones that are open stay open.
#[tokio::test]
async fn more_questions_than_allowed() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("limits: { per_principal: { questions: 2 } }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let (mut reply, stream) = asking(&server, &session).await;
    let mut open = Vec::new();
    for id in ["1", "2"] {
        stream
            .send(&json::request(id, "elicitation/create", &json::form("?")))
            .await;
        open.push(reply.question("elicitation/create").await);
    }
    stream
        .send(&json::request("3", "elicitation/create", &json::form("?")))
        .await;
    server.error_to("3").await;
    for (question, id) in open.iter().zip(["1", "2"]) {
        session.answer(question, r#"{"action":"decline"}"#).await;
        assert!(server.answer_to(id).await.contains("decline"));
    }
    stream
        .send(&json::request("4", "elicitation/create", &json::form("?")))
        .await;
    let again = reply.question("elicitation/create").await;
    session.answer(&again, r#"{"action":"decline"}"#).await;
    assert!(server.answer_to("4").await.contains("decline"));
    stream.result("{}").await;
    reply.next().await;
}

/// What one server may ask a person is limited by the server: how many of its questions wait, and how fast
/// they come. It is told which limit it was, and so is the record; another server may ask them all the same.
#[tokio::test]
async fn more_questions_than_the_server_may_ask() {
    for (limits, code, reason) in [
        ("{ pending: 1 }", -31006, "question_pending"),
        ("{ rate: 1/h }", -31004, "question_rate"),
    ] {
        let (server, other) = (Server::start().await, Server::start().await);
        let gateway = Setup::new()
            .server_with(
                "alpha",
                &server,
                &format!("{{ questions: {{ limits: {limits} }} }}"),
            )
            .server("beta", &other)
            .start()
            .await;
        let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
        let (mut reply, stream) = asking(&server, &session).await;
        for id in ["1", "2"] {
            stream
                .send(&json::request(id, "elicitation/create", &json::form("?")))
                .await;
        }
        let first = reply.question("elicitation/create").await;
        let refused = json::parse(&server.answer_to("2").await)["error"].clone();
        assert_eq!(refused["code"], code, "{refused}");
        assert_eq!(refused["data"]["reason"], reason, "{refused}");
        gateway
            .audited("the refusal", |line| {
                line["type"] == "question.answered"
                    && line["outcome"] == "refused"
                    && line["reason"] == reason
                    && line["code"] == code
            })
            .await;

        let elsewhere = Client::new(&gateway, "beta").open(EVERYTHING).await;
        let (mut call, asks) = asking(&other, &elsewhere).await;
        asks.send(&json::request("1", "elicitation/create", &json::form("?")))
            .await;
        call.question("elicitation/create").await;

        session.answer(&first, r#"{"action":"decline"}"#).await;
        assert!(server.answer_to("1").await.contains("decline"));
    }
}

async fn asking(server: &Server, session: &Session) -> (Reply, Stream) {
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    (call.await.unwrap(), stream)
}

async fn ignored(gateway: &Gateway) {
    gateway
        .audited("the ignored answer", |line| {
            line["type"] == "answer.ignored"
        })
        .await;
}
