//! Questions find their way: from the server that asks, to the client whose call caused it, and the
//! answer back to the server that waits.

use crate::support::{Client, EVERYTHING, Gateway, NOTHING, Server, Session, Setup, json, triple};

/// Every kind of question, with a fitting answer. Ping and unknown methods need no capability.
fn kinds() -> [(&'static str, String, &'static str); 6] {
    [
        (
            "elicitation/create",
            json::form("Which name?"),
            r#"{"action":"accept","content":{"nick":"Mira"}}"#,
        ),
        (
            "elicitation/create",
            r#"{"mode":"url","elicitationId":"e-1","url":"https://pay.example.test/1","message":"Pay"}"#
                .to_owned(),
            r#"{"action":"accept"}"#,
        ),
        (
            "sampling/createMessage",
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9}"#
                .to_owned(),
            r#"{"role":"assistant","content":{"type":"text","text":"ho"},"model":"m"}"#,
        ),
        ("roots/list", "{}".to_owned(), r#"{"roots":[{"uri":"file:///srv/mira"}]}"#),
        ("ping", "{}".to_owned(), "{}"),
        ("vendor/x", r#"{"deep":{"er":[1,2.50]}}"#.to_owned(), r#"{"any":"thing"}"#),
    ]
}

/// A1: each kind on the event stream of the call that caused it.
/// Reported in BerriAI/litellm#23761, higress-group/higress#3685, Kuadrant/mcp-gateway#349, btsouth/toolport#167.
#[tokio::test]
async fn every_kind_on_the_stream_of_the_call() {
    let (server, _gateway, session) = triple().await;
    for (number, (method, params, result)) in kinds().iter().enumerate() {
        let call = session.start(json::call(&number.to_string(), "ask", "{}"));
        let stream = server.called("ask").await.stream();
        let mut reply = call.await.unwrap();
        let sent = json::request(&format!("\"q-{number}\""), method, params);
        stream.send(&sent).await;
        let question = reply.question(method).await;
        json::same_but_id(&question, &sent);
        assert_eq!(session.answer(&question, result).await, 202);
        let answer = server.answer_to(&format!("\"q-{number}\"")).await;
        assert_eq!(answer, json::result(&format!("\"q-{number}\""), result));
        stream.result(&json::text_result("done")).await;
        assert_eq!(json::text_of(&reply.next().await), "done");
        reply.ends().await;
    }
}

/// Real servers ask on the standalone stream as well, with no hint at the call.
#[tokio::test]
async fn every_kind_on_the_get_stream() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let stream = server.last_get_stream().await;
    for (number, (method, params, result)) in kinds().iter().enumerate() {
        let sent = json::request(&number.to_string(), method, params);
        stream.send(&sent).await;
        let question = listening.question(method).await;
        json::same_but_id(&question, &sent);
        assert_eq!(session.answer(&question, result).await, 202);
        assert_eq!(
            server.answer_to(&number.to_string()).await,
            json::result(&number.to_string(), result)
        );
    }
}

/// A7: the client reads nothing but the answer of its running call. A question from the server's
/// standalone stream takes the only road there is.
/// Reported in mark3labs/mcp-go#932, modelcontextprotocol/typescript-sdk#2228.
#[tokio::test]
async fn a_get_stream_question_takes_the_running_call_when_no_get_is_open() {
    let (server, _gateway, session) = triple().await;
    let listening = server.last_get_stream().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    listening
        .send(&json::request(
            "5",
            "elicitation/create",
            &json::form("Who?"),
        ))
        .await;
    let question = reply.question("elicitation/create").await;
    session.answer(&question, r#"{"action":"decline"}"#).await;
    server.answer_to("5").await;
    stream.result("{}").await;
    assert_eq!(reply.json().await["id"], 1);
    reply.ends().await;
}

/// A question that comes before the client has opened its stream waits for it.
#[tokio::test]
async fn a_question_waits_for_the_stream_to_open() {
    let (server, gateway, session) = triple().await;
    let stream = server.last_get_stream().await;
    stream.send(&json::request("5", "roots/list", "{}")).await;
    gateway
        .audited("the question", |line| line["type"] == "question.asked")
        .await;
    let mut listening = session.listen().await;
    let question = listening.question("roots/list").await;
    session.answer(&question, r#"{"roots":[]}"#).await;
    server.answer_to("5").await;
}

/// Three questions of one call are open together, and answered in another order.
#[tokio::test]
async fn several_at_once() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    let mut open = Vec::new();
    for id in ["1", "2", "3"] {
        stream
            .send(&json::request(id, "elicitation/create", &json::form(id)))
            .await;
        open.push(reply.question("elicitation/create").await);
    }
    for (question, nick) in [(&open[1], "two"), (&open[2], "three"), (&open[0], "one")] {
        let content = format!(r#"{{"action":"accept","content":{{"nick":"{nick}"}}}}"#);
        assert_eq!(session.answer(question, &content).await, 202);
    }
    for (id, nick) in [("1", "one"), ("2", "two"), ("3", "three")] {
        let answer = json::parse(&server.answer_to(id).await);
        assert_eq!(answer["result"]["content"]["nick"], nick);
    }
    stream.result("{}").await;
    assert_eq!(reply.json().await["id"], 1);
}

/// A4: the second question on a reused session once hung for ever. Twenty, one after another, with
/// the same id each time, as servers do that count per call.
/// Reported in PrefectHQ/fastmcp#3169 and #3172.
#[tokio::test]
async fn twenty_one_after_another() {
    let (server, _gateway, session) = triple().await;
    for round in 1..=20 {
        let call = session.start(json::call("1", "ask", "{}"));
        let stream = server.called("ask").await.stream();
        let mut reply = call.await.unwrap();
        stream
            .send(&json::request(
                "0",
                "elicitation/create",
                &json::form("again"),
            ))
            .await;
        let question = reply.question("elicitation/create").await;
        session
            .answer(
                &question,
                &format!(r#"{{"action":"accept","content":{{"nick":"r{round}"}}}}"#),
            )
            .await;
        let own = format!("\"r{round}\"");
        server
            .sees(&own, |seen| {
                seen.raw(&["result", "content", "nick"]) == Some(own.clone())
            })
            .await;
        stream.result(&json::text_result(&round.to_string())).await;
        assert_eq!(json::text_of(&reply.next().await), round.to_string());
        reply.ends().await;
    }
    assert_eq!(server.answers().len(), 20);
    assert_eq!(server.opened().len(), 1);
}

/// A2: two people, the same server, the same question id, the answers in the other order.
/// Reported in IBM/mcp-context-forge#1985.
#[tokio::test]
async fn two_clients_with_the_same_question_id() {
    let (server, gateway, mira) = triple().await;
    let joris = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let (mut to_mira, mira_stream) = asking(&server, &mira).await;
    let (mut to_joris, joris_stream) = asking(&server, &joris).await;
    mira_stream
        .send(&json::request(
            "1",
            "elicitation/create",
            &json::form("for-mira"),
        ))
        .await;
    joris_stream
        .send(&json::request(
            "1",
            "elicitation/create",
            &json::form("for-joris"),
        ))
        .await;
    let mira_asked = to_mira.question("elicitation/create").await;
    let joris_asked = to_joris.question("elicitation/create").await;
    assert!(mira_asked.contains("for-mira"), "{mira_asked}");
    assert!(joris_asked.contains("for-joris"), "{joris_asked}");
    joris
        .answer(
            &joris_asked,
            r#"{"action":"accept","content":{"nick":"joris"}}"#,
        )
        .await;
    mira.answer(
        &mira_asked,
        r#"{"action":"accept","content":{"nick":"mira"}}"#,
    )
    .await;
    for (stream, nick) in [(&mira_stream, "mira"), (&joris_stream, "joris")] {
        let session = stream.seen.session().to_owned();
        let own = format!("\"{nick}\"");
        let seen = server
            .sees(nick, |seen| {
                seen.raw(&["result", "content", "nick"]) == Some(own.clone())
            })
            .await;
        assert_eq!(seen.session(), session, "the answer of {nick}");
    }
    mira_stream.result("{}").await;
    joris_stream.result("{}").await;
    assert_eq!(to_mira.json().await["id"], 1);
    assert_eq!(to_joris.json().await["id"], 1);
    to_mira.ends().await;
    to_joris.ends().await;
}

/// A question rides on the stream of its own call: not on a sibling's, not on the open GET.
#[tokio::test]
async fn the_call_that_caused_it_and_no_other() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let listening_up = server.last_get_stream().await;
    let first = session.start(json::call("1", "first", "{}"));
    let second = session.start(json::call("2", "second", "{}"));
    let first_up = server.called("first").await.stream();
    let second_up = server.called("second").await.stream();
    let (mut first, mut second) = (first.await.unwrap(), second.await.unwrap());
    // Each of the two calls asks, so that neither "the oldest" nor "the newest" would do.
    for (up, reply, id) in [(&first_up, &mut first, "1"), (&second_up, &mut second, "2")] {
        up.send(&json::request(id, "ping", "{}")).await;
        let question = reply.question("ping").await;
        session.answer(&question, "{}").await;
        server.answer_to(id).await;
    }
    // The fences: the next thing on every road is this, so nothing else was there.
    listening_up
        .send(&json::notice("notifications/tools/list_changed", "{}"))
        .await;
    assert!(listening.next().await.contains("list_changed"));
    second_up.result("{}").await;
    assert_eq!(second.json().await["id"], 2);
    first_up.result("{}").await;
    assert_eq!(first.json().await["id"], 1);
}

/// A9: two servers ping with the same id; each gets its own pong, once.
/// Reported in envoyproxy/ai-gateway#2715.
#[tokio::test]
async fn two_servers_with_the_same_question_id() {
    let (alpha, beta) = (Server::start().await, Server::start().await);
    let gateway = Setup::new()
        .server("alpha", &alpha)
        .server("beta", &beta)
        .start()
        .await;
    for (server, name) in [(&alpha, "alpha"), (&beta, "beta")] {
        let session = Client::new(&gateway, name).open(NOTHING).await;
        let mut listening = session.listen().await;
        let stream = server.last_get_stream().await;
        stream.send(&json::request("1", "ping", "{}")).await;
        stream.send(&json::request("0", "vendor/hello", "{}")).await;
        for _ in 0..2 {
            let question = listening.next().await;
            session
                .answer(&question, &format!(r#"{{"from":"{name}"}}"#))
                .await;
        }
        server.answer_to("1").await;
        server.answer_to("0").await;
    }
    for (server, name) in [(&alpha, "alpha"), (&beta, "beta")] {
        assert_eq!(server.answers().len(), 2);
        assert!(server.answers().iter().all(|answer| answer.contains(name)));
    }
}

/// Decline, cancel and an error are answers like any other.
#[tokio::test]
async fn refusals_of_the_person_and_errors_of_the_client() {
    let (server, _gateway, session) = triple().await;
    let (mut reply, stream) = asking(&server, &session).await;
    let answers = [
        r#""result":{"action":"decline"}"#,
        r#""result":{"action":"cancel"}"#,
        r#""error":{"code":-1,"message":"the person said no","data":{"why":null}}"#,
    ];
    for (number, answer) in answers.iter().enumerate() {
        stream
            .send(&json::request(
                &number.to_string(),
                "elicitation/create",
                &json::form("?"),
            ))
            .await;
        let id = json::id(&reply.question("elicitation/create").await);
        let status = session
            .say(format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#))
            .await;
        assert_eq!(status, 202);
        assert_eq!(
            server.answer_to(&number.to_string()).await,
            format!(r#"{{"jsonrpc":"2.0","id":{number},{answer}}}"#)
        );
    }
    stream.result("{}").await;
    assert_eq!(reply.json().await["id"], 1);
}

/// Servers choose what to ask by what the client declared, so it goes up as it was written.
#[tokio::test]
async fn capabilities_go_up_as_declared() {
    for capabilities in [
        NOTHING,
        EVERYTHING,
        r#"{"elicitation":{}}"#,
        r#"{"vendor":{"z":1.0,"a":[]},"sampling":{"tools":{}},"experimental":{"x":{}}}"#,
    ] {
        let (server, gateway) = crate::support::pair().await;
        Client::new(&gateway, "alpha").open(capabilities).await;
        let seen = server.seen_method("initialize").remove(0);
        assert_eq!(
            seen.raw(&["params", "capabilities"]).as_deref(),
            Some(capabilities)
        );
        assert_eq!(
            seen.raw(&["params", "clientInfo"]).as_deref(),
            Some(r#"{"name":"raw","version":"1"}"#)
        );
    }
}

/// A call of `ask` in this session, streaming on both sides.
async fn asking(
    server: &Server,
    session: &Session,
) -> (crate::support::Reply, crate::support::Stream) {
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    (call.await.unwrap(), stream)
}

/// The audit log tells of the question and of the answer, by name and never by value.
#[tokio::test]
async fn the_audit_log_tells_what_was_asked_and_how_it_was_answered() {
    let (server, gateway, session) = triple().await;
    let (mut reply, stream) = asking(&server, &session).await;
    stream
        .send(&json::request(
            "1",
            "elicitation/create",
            &json::form("Who?"),
        ))
        .await;
    let question = reply.question("elicitation/create").await;
    session
        .answer(
            &question,
            r#"{"action":"accept","content":{"nick":"Mira"}}"#,
        )
        .await;
    let asked = audited(&gateway, "question.asked").await;
    assert_eq!(asked["question"]["method"], "elicitation/create");
    assert_eq!(asked["question"]["fields"], serde_json::json!(["nick"]));
    assert_eq!(asked["server"], "alpha");
    let answered = audited(&gateway, "question.answered").await;
    assert_eq!(answered["action"], "accept");
    assert_eq!(answered["question"]["id"], asked["question"]["id"]);
    assert!(!answered.to_string().contains("Mira"), "{answered}");
    stream.result("{}").await;
    reply.next().await;
}

async fn audited(gateway: &Gateway, kind: &str) -> serde_json::Value {
    gateway.audited(kind, |line| line["type"] == kind).await
}
