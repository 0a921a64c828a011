//! A legacy client, which is asked in the midst of its calls, at a modern server, which asks by
//! answering "I need this first".

use serde_json::Value;

use crate::support::modern_server::complete;
use crate::support::{Client, EVERYTHING, Gateway, NOTHING, Server, Session, Setup, json};

const OFFERS: &str = r#"{"tools":{"listChanged":true},"logging":{},"completions":{},"resources":{"subscribe":true}}"#;

async fn server() -> Server {
    Server::with(|habits| {
        habits.modern = true;
        habits.capabilities = OFFERS;
    })
    .await
}

async fn triple() -> (Server, Gateway, Session) {
    triple_of(EVERYTHING).await
}

async fn triple_of(capabilities: &str) -> (Server, Gateway, Session) {
    let server = server().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha").open(capabilities).await;
    (server, gateway, session)
}

/// A result that asks these questions: `"key":{…}` each.
fn asks(questions: &str, state: &str) -> String {
    let state = if state.is_empty() {
        String::new()
    } else {
        format!(r#","requestState":{state}"#)
    };
    format!(r#"{{"resultType":"input_required","inputRequests":{{{questions}}}{state}}}"#)
}

fn form(key: &str) -> String {
    let params = json::form(key);
    format!(r#""{key}":{{"method":"elicitation/create","params":{params}}}"#)
}

const ACCEPT: &str = r#"{"action":"accept","content":{"nick":"Mira"}}"#;

/// Starts a call of a tool, and lets the server ask `questions` for it.
async fn asked(
    server: &Server,
    session: &Session,
    questions: &str,
    count: usize,
) -> (crate::support::Reply, Vec<String>) {
    let call = session.start(json::call("1", "ask", "{}"));
    let held = server.called("ask").await;
    held.result(&asks(questions, r#""s-1""#));
    let mut reply = call.await.unwrap();
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(reply.next().await);
    }
    (reply, open)
}

/// §5.1: the answer to `initialize` is made of what the server discovered.
#[tokio::test]
async fn initialize_is_answered_from_the_discovery() {
    let server = server().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha");
    for (offered, chosen) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let session = client.open_at(offered, EVERYTHING).await;
        let result = &json::parse(&session.initialized)["result"];
        assert_eq!(result["protocolVersion"], chosen);
        assert_eq!(result["serverInfo"]["name"], "scripted");
        assert_eq!(result["instructions"], "Ask.");
        assert_eq!(result["capabilities"]["resources"]["subscribe"], true);
        let completions = result["capabilities"].get("completions").is_some();
        assert_eq!(completions, offered != "2024-11-05");
    }
    assert!(server.seen_method("initialize").is_empty());
    assert!(server.seen_method("notifications/initialized").is_empty());
}

/// §5.2: the request says all about the session; of the client's bytes nothing is lost.
#[tokio::test]
async fn a_call_goes_out_whole_and_its_result_comes_back() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(
        r#"{"jsonrpc":"2.0","id":"c-1","method":"tools/call","params":{"name":"any", "arguments":{"n":1.10,"z":[1e2]},"task":{"ttl":1},"_meta":{"traceparent":"00-x"}},"x":true}"#
            .to_owned(),
    );
    let held = server.called("any").await;
    let meta = |name: &str| held.seen.raw(&["params", "_meta", name]);
    assert_eq!(meta("traceparent").as_deref(), Some(r#""00-x""#));
    assert_eq!(
        meta("io.modelcontextprotocol/clientCapabilities").as_deref(),
        Some(r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#)
    );
    assert_eq!(
        meta("io.modelcontextprotocol/clientInfo").as_deref(),
        Some(r#"{"name":"raw","version":"1"}"#)
    );
    assert_eq!(meta("io.modelcontextprotocol/logLevel"), None);
    assert_eq!(
        held.seen.raw(&["params", "arguments"]).as_deref(),
        Some(r#"{"n":1.10,"z":[1e2]}"#)
    );
    assert_eq!(held.seen.raw(&["params", "task"]), None);
    assert_eq!(held.seen.raw(&["x"]).as_deref(), Some("true"));
    held.result(r#"{"resultType":"complete","content":[],"y":1.0}"#);
    let mut reply = call.await.unwrap();
    assert_eq!(
        reply.next().await,
        json::result("\"c-1\"", r#"{"content":[],"y":1.0}"#)
    );
}

/// F22: all questions of a round at once, each answered in its own time; then one retry with all.
#[tokio::test]
async fn two_at_once_and_two_rounds() {
    let (server, _gateway, session) = triple().await;
    let questions = format!(r#"{},"r":{{"method":"roots/list"}}"#, form("b"));
    let (mut reply, open) = asked(&server, &session, &questions, 2).await;
    assert_eq!(
        json::method(&open[0]).as_deref(),
        Some("elicitation/create")
    );
    assert_eq!(json::method(&open[1]).as_deref(), Some("roots/list"));
    assert_ne!(json::id(&open[0]), json::id(&open[1]));
    let roots = r#"{"roots":[{"uri":"file:///srv/mira"}]}"#;
    assert_eq!(session.answer(&open[1], roots).await, 202);
    assert_eq!(session.answer(&open[0], ACCEPT).await, 202);
    let second = server.called("ask").await;
    assert_eq!(
        second.seen.raw(&["params", "inputResponses"]),
        Some(format!(r#"{{"b":{ACCEPT},"r":{roots}}}"#))
    );
    assert_eq!(
        second.seen.raw(&["params", "requestState"]).as_deref(),
        Some(r#""s-1""#)
    );
    second.result(&asks(&form("c"), ""));
    let question = reply.question("elicitation/create").await;
    session.answer(&question, r#"{"action":"decline"}"#).await;
    let third = server.called("ask").await;
    assert_eq!(
        third.seen.raw(&["params", "inputResponses"]).as_deref(),
        Some(r#"{"c":{"action":"decline"}}"#)
    );
    assert_eq!(third.seen.raw(&["params", "requestState"]), None);
    third.result(&complete("done"));
    assert_eq!(json::text_of(&reply.next().await), "done");
    reply.ends().await;
    let mut ids: Vec<_> = server
        .seen_method("tools/call")
        .iter()
        .map(|it| json::id(it.text()))
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "an id was used twice");
}

/// Every kind of question and every answer to it goes through as it is.
#[tokio::test]
async fn every_kind_and_every_answer() {
    let (server, _gateway, session) = triple().await;
    let sampling =
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9.0}"#;
    for (method, params, answer) in [
        ("elicitation/create", json::form("?"), ACCEPT),
        (
            "elicitation/create",
            json::form("?"),
            r#"{"action":"decline"}"#,
        ),
        (
            "elicitation/create",
            json::form("?"),
            r#"{"action":"cancel"}"#,
        ),
        (
            "sampling/createMessage",
            sampling.to_owned(),
            r#"{"role":"assistant","content":{"type":"text","text":"ho"},"model":"m"}"#,
        ),
        ("roots/list", "{}".to_owned(), r#"{"roots":[]}"#),
    ] {
        let question = format!(r#""k":{{"method":"{method}","params":{params}}}"#);
        let (mut reply, open) = asked(&server, &session, &question, 1).await;
        assert_eq!(json::raw(&open[0], &["params"]), Some(params));
        session.answer(&open[0], answer).await;
        let held = server.called("ask").await;
        assert_eq!(
            held.seen.raw(&["params", "inputResponses", "k"]).as_deref(),
            Some(answer)
        );
        held.result(&complete("done"));
        reply.next().await;
    }
}

/// §5.4: a URL gets the name that the client's version wants; consent is an answer.
#[tokio::test]
async fn a_url_gets_a_name() {
    let (server, _gateway, session) = triple().await;
    let url = r#""u":{"method":"elicitation/create","params":{"mode":"url","url":"https://pay.example.test/a?b=1","message":"Pay"}}"#;
    let mut names = Vec::new();
    for _ in 0..2 {
        let (mut reply, open) = asked(&server, &session, url, 1).await;
        let params = &json::parse(&open[0])["params"];
        assert_eq!(params["url"], "https://pay.example.test/a?b=1");
        names.push(params["elicitationId"].as_str().unwrap().to_owned());
        session.answer(&open[0], r#"{"action":"accept"}"#).await;
        server.called("ask").await.result(&complete("paid"));
        assert_eq!(json::text_of(&reply.next().await), "paid");
    }
    assert_ne!(names[0], names[1]);
}

/// A client of 2025-06-18 knows no modes and no titled choices.
#[tokio::test]
async fn an_older_client_gets_an_older_form() {
    let server = server().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha")
        .open_at("2025-06-18", r#"{"elicitation":{}}"#)
        .await;
    let question = r#""k":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"s":{"type":"string","oneOf":[{"const":"a","title":"A"}]}}}}}"#;
    let (_reply, open) = asked(&server, &session, question, 1).await;
    assert_eq!(
        json::raw(&open[0], &["params"]).as_deref(),
        Some(
            r#"{"message":"?","requestedSchema":{"type":"object","properties":{"s":{"type":"string","enum":["a"],"enumNames":["A"]}}}}"#
        )
    );
}

/// Prompts and resources ask too; nothing else may.
#[tokio::test]
async fn prompts_and_resources_ask() {
    let (server, _gateway, session) = triple().await;
    for (method, params) in [
        ("prompts/get", r#"{"name":"p"}"#),
        ("resources/read", r#"{"uri":"shop://a"}"#),
    ] {
        let call = session.start(json::request("1", method, params));
        server.asked(method).await.result(&asks(&form("k"), "7"));
        let mut reply = call.await.unwrap();
        let question = reply.question("elicitation/create").await;
        session.answer(&question, ACCEPT).await;
        let held = server.asked(method).await;
        assert_eq!(
            held.seen.raw(&["params", "requestState"]).as_deref(),
            Some("7")
        );
        held.result(r#"{"resultType":"complete","x":1.0}"#);
        assert_eq!(reply.next().await, json::result("1", r#"{"x":1.0}"#));
    }
    let call = session.start(json::request("2", "prompts/list", "{}"));
    server
        .asked("prompts/list")
        .await
        .result(&asks(&form("k"), ""));
    assert_eq!(call.await.unwrap().error().await, -32603);
}

/// A server that only wants its state back gets it, after a pause.
#[tokio::test]
async fn state_alone_goes_back_as_it_came() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "ask", "{}"));
    server
        .called("ask")
        .await
        .result(r#"{"resultType":"input_required","requestState":"a\u0062c"}"#);
    let held = server.called("ask").await;
    assert_eq!(
        held.seen.raw(&["params", "requestState"]).as_deref(),
        Some(r#""a\u0062c""#)
    );
    assert_eq!(held.seen.raw(&["params", "inputResponses"]), None);
    held.result(&complete("done"));
    assert_eq!(json::text_of(&call.await.unwrap().next().await), "done");
}

/// Progress has the client's token and rises over the rounds; log messages come along.
#[tokio::test]
async fn progress_rises_over_the_rounds() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::request(
        "1",
        "tools/call",
        r#"{"name":"ask","arguments":{},"_meta":{"progressToken":"mine"}}"#,
    ));
    let mut reply = None;
    let mut call = Some(call);
    let mut told: Vec<(f64, bool)> = Vec::new();
    for round in 0..2 {
        let held = server.called("ask").await;
        let token = held
            .seen
            .raw(&["params", "_meta", "progressToken"])
            .unwrap();
        let stream = held.stream();
        for value in [1, 3] {
            let params = format!(r#"{{"progressToken":{token},"progress":{value},"total":4}}"#);
            stream
                .send(&json::notice("notifications/progress", &params))
                .await;
        }
        stream
            .send(&json::notice(
                "notifications/message",
                r#"{"level":"info","data":"x"}"#,
            ))
            .await;
        let mut open = match reply.take() {
            Some(reply) => reply,
            None => call.take().unwrap().await.unwrap(),
        };
        for _ in 0..2 {
            let message = open.json().await;
            assert_eq!(message["params"]["progressToken"], "mine");
            let total = message["params"].get("total").is_some();
            told.push((message["params"]["progress"].as_f64().unwrap(), total));
        }
        assert_eq!(open.json().await["method"], "notifications/message");
        if round == 0 {
            stream.result(&asks(&form("k"), "")).await;
            let question = open.question("elicitation/create").await;
            session.answer(&question, ACCEPT).await;
        } else {
            stream.result(&complete("done")).await;
            assert_eq!(json::text_of(&open.next().await), "done");
        }
        reply = Some(open);
    }
    assert_eq!(told, [(1.0, true), (3.0, true), (4.0, false), (6.0, false)]);
}

async fn tool_error(reply: &mut crate::support::Reply) -> String {
    let message = reply.json().await;
    assert_eq!(message["result"]["isError"], true, "{message}");
    message["result"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// F18, F24: what the client never declared is not put to it; the server broke the rules.
#[tokio::test]
async fn f18_an_undeclared_question_fails_the_call() {
    let (server, _gateway, session) = triple_of(NOTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    server.called("ask").await.result(&asks(&form("k"), ""));
    tool_error(&mut call.await.unwrap()).await;
    session.works().await;
}

/// F24: a server that needs what the client lacks says so; the model can read it.
#[tokio::test]
async fn f24_a_missing_capability_is_named() {
    let (server, _gateway, session) = triple_of(NOTHING).await;
    let error = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32021,"message":"m","data":{{"requiredCapabilities":{{"elicitation":{{"url":{{}}}}}}}}}}}}"#
        )
    };
    let call = session.start(json::call("1", "ask", "{}"));
    let held = server.called("ask").await;
    let body = error(&held.id());
    held.respond(400, "application/json", &body);
    let text = tool_error(&mut call.await.unwrap()).await;
    assert!(text.contains("elicitation.url"), "{text}");
}

/// F21: eight rounds, and then the call fails.
#[tokio::test]
async fn f21_a_server_that_asks_for_ever_is_stopped() {
    let (server, _gateway, session) = triple().await;
    let (mut reply, mut open) = asked(&server, &session, &form("k"), 1).await;
    for _ in 1..8 {
        session.answer(&open.remove(0), ACCEPT).await;
        server.called("ask").await.result(&asks(&form("k"), ""));
        open.push(reply.question("elicitation/create").await);
    }
    session.answer(&open.remove(0), ACCEPT).await;
    server.called("ask").await.result(&asks(&form("k"), ""));
    tool_error(&mut reply).await;
    reply.ends().await;
}

/// F36: who takes no stream can't be asked, and the server is told so before.
#[tokio::test]
async fn f36_a_client_without_streams_is_not_asked() {
    let (server, _gateway, session) = triple().await;
    let mut plain = session.clone();
    plain.client = plain.client.with("accept", "application/json");
    let call = plain.start(json::call("1", "ask", "{}"));
    let held = server.called("ask").await;
    let told = held.seen.raw(&[
        "params",
        "_meta",
        "io.modelcontextprotocol/clientCapabilities",
    ]);
    assert_eq!(told.as_deref(), Some("{}"));
    held.result(&asks(&form("k"), ""));
    tool_error(&mut call.await.unwrap()).await;
}

/// F37: one answer is an error; the other question is withdrawn, the call fails.
#[tokio::test]
async fn f37_an_error_as_answer_ends_the_call() {
    let (server, gateway, session) = triple().await;
    let questions = format!("{},{}", form("a"), form("b"));
    let (mut reply, open) = asked(&server, &session, &questions, 2).await;
    let refusal = json::error(&json::id(&open[0]), -1, "no");
    assert_eq!(session.say(refusal).await, 202);
    let withdrawn = reply.json().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(
        withdrawn["params"]["requestId"],
        json::parse(&open[1])["id"]
    );
    tool_error(&mut reply).await;
    reply.ends().await;
    assert_eq!(session.answer(&open[1], ACCEPT).await, 202);
    gateway
        .audited("the late answer", |line| line["type"] == "answer.ignored")
        .await;
    assert_eq!(server.seen_method("tools/call").len(), 1);
}

/// F37: what is no tool has no result to say it in.
#[tokio::test]
async fn f37_a_prompt_fails_with_a_code() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::request("1", "prompts/get", r#"{"name":"p"}"#));
    server
        .asked("prompts/get")
        .await
        .result(&asks(&form("k"), ""));
    let mut reply = call.await.unwrap();
    let question = reply.question("elicitation/create").await;
    session
        .say(json::error(&json::id(&question), -1, "no"))
        .await;
    assert_eq!(reply.error().await, -31007);
}

/// F38: cancelled while the person is asked: the question is withdrawn, nothing goes to the server,
/// the stream ends without an answer.
#[tokio::test]
async fn f38_cancelling_ends_the_questions() {
    let (server, _gateway, session) = triple().await;
    let (mut reply, open) = asked(&server, &session, &form("k"), 1).await;
    session
        .notify("notifications/cancelled", r#"{"requestId":1}"#)
        .await;
    let withdrawn = reply.json().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(
        withdrawn["params"]["requestId"],
        json::parse(&open[0])["id"]
    );
    reply.ends().await;
    session.works().await;
    assert_eq!(server.seen_method("tools/call").len(), 2);
    assert!(server.seen_method("notifications/cancelled").is_empty());
}

/// Cancelled while the server works: its stream is closed, which is how it learns.
#[tokio::test]
async fn cancelling_closes_the_servers_stream() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    stream
        .send(&json::notice(
            "notifications/message",
            r#"{"level":"info","data":1}"#,
        ))
        .await;
    let mut reply = call.await.unwrap();
    reply.next().await;
    session
        .notify("notifications/cancelled", r#"{"requestId":1}"#)
        .await;
    stream.left().await;
    reply.ends().await;
    let call = session.start(json::call("2", "slow", "{}"));
    let mut held = server.called("slow").await;
    session
        .notify("notifications/cancelled", r#"{"requestId":2}"#)
        .await;
    held.abandoned().await;
    assert_eq!(call.await.unwrap().error().await, -32800);
}

/// F29: a client that goes away has not cancelled. Its question finds the next stream.
#[tokio::test]
async fn f29_disconnecting_is_not_cancelling() {
    let (server, _gateway, session) = triple().await;
    let (reply, open) = asked(&server, &session, &form("k"), 1).await;
    drop(reply);
    session.answer(&open[0], ACCEPT).await;
    let held = server.called("ask").await;
    assert!(held.seen.raw(&["params", "inputResponses"]).is_some());
    held.result(&asks(&form("l"), ""));
    let mut listening = session.listen().await;
    let question = listening.question("elicitation/create").await;
    session.answer(&question, ACCEPT).await;
    server.called("ask").await.result(&complete("done"));
    session.works().await;
}

/// F41: a kind of result that was not asked for.
#[tokio::test]
async fn f41_an_unknown_kind_of_result_fails_the_call() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "ask", "{}"));
    server
        .called("ask")
        .await
        .result(r#"{"resultType":"task","taskId":"t"}"#);
    tool_error(&mut call.await.unwrap()).await;
    let call = session.start(json::request("2", "prompts/list", "{}"));
    server
        .asked("prompts/list")
        .await
        .result(r#"{"resultType":"odd"}"#);
    assert_eq!(call.await.unwrap().error().await, -32603);
}

/// F42: what may have had an effect is not sent again; what changes nothing is, once.
#[tokio::test]
async fn f42_a_broken_stream_is_repeated_only_where_that_changes_nothing() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "ask", "{}"));
    server.called("ask").await.stream().abort().await;
    assert_eq!(call.await.unwrap().error().await, -32603);
    assert_eq!(server.seen_method("tools/call").len(), 1);
    let call = session.start(json::request(
        "2",
        "resources/read",
        r#"{"uri":"shop://a"}"#,
    ));
    server.asked("resources/read").await.stream().abort().await;
    server
        .asked("resources/read")
        .await
        .result(r#"{"contents":[]}"#);
    assert_eq!(
        call.await.unwrap().json().await["result"]["contents"],
        Value::Array(vec![])
    );
}

/// §5.2, F43: marked arguments go into headers; a list that is out of date is read again, once.
#[tokio::test]
async fn f43_marked_arguments_are_repeated_in_headers() {
    let server = server().await;
    server.change(|habits| {
        habits.tools = r#"[{"name":"ship","inputSchema":{"type":"object","properties":{"to":{"type":"string","x-mcp-header":"To"}}}},
            {"name":"bad","inputSchema":{"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}}}]"#;
    });
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let call = session.start(json::call("1", "ship", r#"{"to":"Zürich"}"#));
    let held = server.called("ship").await;
    assert_eq!(held.seen.header("mcp-param-to"), "=?base64?WsO8cmljaA==?=");
    held.result(&complete("gone"));
    call.await.unwrap();
    server.change(|habits| {
        habits.tools = r#"[{"name":"ship","inputSchema":{"type":"object","properties":{"to":{"type":"string","x-mcp-header":"Place"}}}}]"#;
    });
    let call = session.start(json::call("2", "ship", r#"{"to":"Bern"}"#));
    for (to, place) in [("Bern", ""), ("", "Bern")] {
        let held = server.called("ship").await;
        assert_eq!(held.seen.header("mcp-param-to"), to);
        assert_eq!(held.seen.header("mcp-param-place"), place);
        let error = json::error(&held.id(), -32020, "headers");
        held.respond(400, "application/json", &error);
    }
    assert_eq!(call.await.unwrap().error().await, -32603);
}

/// A tool whose marks are wrong is neither seen nor called.
#[tokio::test]
async fn a_tool_with_wrong_marks_is_not_there() {
    let server = server().await;
    server.change(|habits| {
        habits.tools = r#"[{"name":"good","inputSchema":{"type":"object"}},{"name":"bad","inputSchema":{"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}}}]"#;
    });
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let mut reply = session.post(json::request("1", "tools/list", "{}")).await;
    assert_eq!(
        reply.next().await,
        json::result(
            "1",
            r#"{"tools":[{"name":"good","inputSchema":{"type":"object"}}]}"#
        )
    );
    assert_eq!(session.call("2", "bad", "{}").await.error().await, -32602);
    assert!(server.seen_method("tools/call").is_empty());
}

/// Errors come back as a legacy client knows them, in an HTTP 200 that keeps its session.
#[tokio::test]
async fn errors_are_those_of_the_clients_era() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::request(
        "1",
        "resources/read",
        r#"{"uri":"shop://a"}"#,
    ));
    let held = server.asked("resources/read").await;
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32602,"message":"m","data":{{"uri":"shop://a"}}}}}}"#,
        held.id()
    );
    held.respond(200, "application/json", &error);
    assert_eq!(call.await.unwrap().error().await, -32002);
    let call = session.start(json::request("2", "vendor/x", "{}"));
    let held = server.asked("vendor/x").await;
    let error = json::error(&held.id(), -32601, "no");
    held.respond(404, "application/json", &error);
    let mut reply = call.await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.error().await), (200, -32601));
    session.works().await;
}

/// §5.6: ping and the log level stay here; the level goes with each request from then on.
#[tokio::test]
async fn ping_and_the_log_level_are_the_gateways() {
    let (server, _gateway, session) = triple().await;
    let mut pong = session.post(json::request("1", "ping", "{}")).await;
    assert_eq!(pong.next().await, json::result("1", "{}"));
    let set = |level: &str| {
        json::request(
            "2",
            "logging/setLevel",
            &format!(r#"{{"level":"{level}"}}"#),
        )
    };
    assert_eq!(session.post(set("loud")).await.error().await, -32602);
    let mut reply = session.post(set("warning")).await;
    assert_eq!(reply.next().await, json::result("2", "{}"));
    let call = session.start(json::call("3", "any", "{}"));
    let held = server.called("any").await;
    let level = held
        .seen
        .raw(&["params", "_meta", "io.modelcontextprotocol/logLevel"]);
    assert_eq!(level.as_deref(), Some(r#""warning""#));
    held.result(&complete("x"));
    call.await.unwrap();
    assert_eq!(
        session
            .notify("notifications/roots/list_changed", "{}")
            .await,
        202
    );
    for gone in [
        "ping",
        "logging/setLevel",
        "notifications/roots/list_changed",
    ] {
        assert!(server.seen_method(gone).is_empty(), "{gone}");
    }
}

/// A server without logging has no level to set.
#[tokio::test]
async fn what_a_server_does_not_offer_is_not_there() {
    let server = server().await;
    server.change(|habits| habits.capabilities = r#"{"tools":{}}"#);
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    for (method, params) in [
        ("logging/setLevel", r#"{"level":"info"}"#),
        ("resources/subscribe", r#"{"uri":"shop://a"}"#),
    ] {
        let mut reply = session.post(json::request("1", method, params)).await;
        assert_eq!((reply.status.as_u16(), reply.error().await), (200, -32601));
    }
}

/// §5.5: lists that change, through a subscription of the gateway's, on the client's own stream.
#[tokio::test]
async fn changes_of_lists_reach_the_standalone_stream() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let stream = server.get_stream("subscription").await;
    assert_eq!(
        stream.seen.raw(&["params", "notifications"]).as_deref(),
        Some(r#"{"toolsListChanged":true}"#)
    );
    let tagged = format!(
        r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}"#,
        stream.id
    );
    stream
        .send(&json::notice("notifications/tools/list_changed", &tagged))
        .await;
    assert_eq!(
        listening.next().await,
        json::notice("notifications/tools/list_changed", "{}")
    );
    // The server ends it: another is opened, and what may have been missed is said to have changed.
    stream.result(r#"{"resultType":"complete"}"#).await;
    let _again = server.get_stream("subscription").await;
    assert_eq!(
        listening.json().await["method"],
        "notifications/tools/list_changed"
    );
}

/// §5.5: a resource is subscribed when the server has agreed, and the old stream closed after that.
#[tokio::test]
async fn subscribing_opens_a_new_subscription_with_all() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let first = server.get_stream("subscription").await;
    let subscribe =
        |uri: &str| json::request("1", "resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#));
    let mut reply = session.post(subscribe("shop://a")).await;
    assert_eq!(reply.next().await, json::result("1", "{}"));
    first.left().await;
    let second = server.get_stream("subscription").await;
    assert_eq!(
        second.seen.raw(&["params", "notifications"]).as_deref(),
        Some(r#"{"toolsListChanged":true,"resourceSubscriptions":["shop://a"]}"#)
    );
    assert_eq!(
        session
            .post(subscribe("shop://declined"))
            .await
            .error()
            .await,
        -32602
    );
    let third = server.get_stream("subscription").await;
    // What merely begins with the same letters is another resource.
    for uri in ["shop://elsewhere", "shop://ab", "shop://a/b"] {
        let params = format!(
            r#"{{"uri":"{uri}","_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}"#,
            third.id
        );
        third
            .send(&json::notice("notifications/resources/updated", &params))
            .await;
    }
    assert_eq!(
        listening.next().await,
        json::notice("notifications/resources/updated", r#"{"uri":"shop://a/b"}"#)
    );
    let unsubscribe = json::request("2", "resources/unsubscribe", r#"{"uri":"shop://a"}"#);
    let mut reply = session.post(unsubscribe).await;
    assert_eq!(reply.next().await, json::result("2", "{}"));
}

/// §5.5: the stream breaks, and the server is not there for a while. It is tried again, and then all
/// that is listened for may have changed.
#[tokio::test]
async fn a_broken_subscription_is_opened_again() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let subscribe = json::request("1", "resources/subscribe", r#"{"uri":"shop://a"}"#);
    server.get_stream("subscription").await;
    session.post(subscribe).await.next().await;
    let stream = server.get_stream("subscription").await;
    server.change(|habits| habits.always = Some((503, "text/plain", "starting")));
    let broken = stream.id.clone();
    stream.abort().await;
    let listens = |seen: &crate::support::server::Seen| {
        seen.method().as_deref() == Some("subscriptions/listen")
    };
    server
        .sees("a try in vain", |seen| {
            listens(seen) && json::id(seen.text()).parse::<u64>().ok() > broken.parse().ok()
        })
        .await;
    server.change(|habits| habits.always = None);
    let again = server.get_stream("subscription").await;
    assert_eq!(
        again.seen.raw(&["params", "notifications"]).as_deref(),
        Some(r#"{"toolsListChanged":true,"resourceSubscriptions":["shop://a"]}"#)
    );
    for changed in [
        json::notice("notifications/tools/list_changed", "{}"),
        json::notice("notifications/resources/updated", r#"{"uri":"shop://a"}"#),
    ] {
        assert_eq!(listening.next().await, changed);
    }
}

/// DELETE ends all: calls at the server, questions, the subscription.
#[tokio::test]
async fn ending_the_session_ends_all() {
    let (server, gateway, session) = triple().await;
    let _listening = session.listen().await;
    let subscription = server.get_stream("subscription").await;
    let (mut asking, _open) = asked(&server, &session, &form("k"), 1).await;
    let slow = session.start(json::call("2", "slow", "{}"));
    let mut held = server.called("slow").await;
    assert_eq!(session.delete().await, 200);
    held.abandoned().await;
    subscription.left().await;
    assert_eq!(asking.error().await, -31003);
    assert_eq!(slow.await.unwrap().error().await, -31003);
    assert_eq!(session.call("3", "echo", "{}").await.status, 404);
    gateway
        .audited("the question", |line| {
            line["type"] == "question.answered" && line["outcome"] == "lost"
        })
        .await;
}

/// Every question and its answer are on record, by the server's own name for it.
#[tokio::test]
async fn questions_are_on_record() {
    let (server, gateway, session) = triple().await;
    let (mut reply, open) = asked(&server, &session, &form("size"), 1).await;
    session.answer(&open[0], ACCEPT).await;
    server.called("ask").await.result(&complete("done"));
    reply.next().await;
    for kind in ["question.asked", "question.answered"] {
        let line = gateway.audited(kind, |line| line["type"] == kind).await;
        assert_eq!(line["question"]["id"], r#""size""#);
        assert_eq!(line["question"]["fields"][0], "nick");
    }
    let line = gateway
        .audited("the call", |line| line["method"] == "tools/call")
        .await;
    assert_eq!(
        (&line["target"], &line["outcome"]),
        (&"ask".into(), &"ok".into())
    );
}

/// F7 of this direction: many clients, each asked by itself, and nobody gets another's question.
#[tokio::test]
async fn nothing_crosses_sessions() {
    let server = server().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha");
    let mut clients = Vec::new();
    for number in 0..12 {
        let session = client.open(EVERYTHING).await;
        let call = session.start(json::call("1", "ask", &format!(r#"{{"n":{number}}}"#)));
        clients.push((session, call));
    }
    for _ in 0..12 {
        let held = server.called("ask").await;
        let number = held.seen.raw(&["params", "arguments", "n"]).unwrap();
        held.result(&asks(&form(&number), &format!("\"s-{number}\"")));
    }
    let mut waiting = Vec::new();
    for (number, (session, call)) in clients.into_iter().enumerate().rev() {
        let mut reply = call.await.unwrap();
        let question = reply.question("elicitation/create").await;
        assert_eq!(
            json::parse(&question)["params"]["message"],
            number.to_string()
        );
        let said = format!(r#"{{"action":"accept","content":{{"nick":"{number}"}}}}"#);
        session.answer(&question, &said).await;
        waiting.push((number, session, reply));
    }
    for _ in 0..12 {
        let held = server.called("ask").await;
        let number = held.seen.raw(&["params", "arguments", "n"]).unwrap();
        let said = held
            .seen
            .raw(&["params", "inputResponses", &number, "content", "nick"]);
        assert_eq!(said, Some(format!("\"{number}\"")));
        let state = held.seen.raw(&["params", "requestState"]);
        assert_eq!(state, Some(format!("\"s-{number}\"")));
        held.result(&complete(&number));
    }
    for (number, _session, mut reply) in waiting {
        assert_eq!(json::text_of(&reply.next().await), number.to_string());
    }
}

/// F48: a tool that went away between list and call. The server says so, and that passes.
#[tokio::test]
async fn f48_an_unknown_tool_is_the_servers_to_refuse() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "gone", "{}"));
    let held = server.called("gone").await;
    let error = json::error(&held.id(), -32602, "Unknown tool: gone");
    held.respond(200, "application/json", &error);
    assert_eq!(
        call.await.unwrap().next().await,
        json::error("1", -32602, "Unknown tool: gone")
    );
}

/// F53: a state of 64 KiB goes back as it came.
#[tokio::test]
async fn f53_a_large_state_goes_back_whole() {
    let (server, _gateway, session) = triple().await;
    let state = format!("\"{}\"", "s".repeat(64 * 1024));
    let call = session.start(json::call("1", "ask", "{}"));
    server.called("ask").await.result(&asks(&form("k"), &state));
    let mut reply = call.await.unwrap();
    let question = reply.question("elicitation/create").await;
    session.answer(&question, ACCEPT).await;
    let held = server.called("ask").await;
    assert_eq!(held.seen.raw(&["params", "requestState"]), Some(state));
    held.result(&complete("done"));
    reply.next().await;
}

/// F59: an answer that does not fit its form never reaches the server. It is asked for again, twice, and
/// then the question is cancelled.
#[tokio::test]
async fn f59_an_answer_that_does_not_fit_is_asked_for_again() {
    let (server, _gateway, session) = triple().await;
    let (mut reply, open) = asked(&server, &session, &form("k"), 1).await;
    let odd = r#"{"action":"accept","content":{"nick":7.0,"more":[]},"x":1}"#;
    let mut question = open[0].clone();
    for _ in 0..2 {
        session.answer(&question, odd).await;
        question = reply.question("elicitation/create").await;
        let message = json::parse(&question)["params"]["message"].to_string();
        assert!(message.contains("Please answer again"), "{message}");
    }
    session.answer(&question, odd).await;
    let held = server.called("ask").await;
    let said = held.seen.raw(&["params", "inputResponses", "k"]);
    assert_eq!(said.as_deref(), Some(r#"{"action":"cancel"}"#));
    held.result(&complete("done"));
    reply.next().await;
}

/// Two people: what one's list of tools says is not used for the other.
#[tokio::test]
async fn a_list_of_tools_is_read_for_each_person() {
    let server = server().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("auth: open")
        .start()
        .await;
    let client = Client::new(&gateway, "alpha");
    for _ in 0..2 {
        let session = client.open(EVERYTHING).await;
        session.works().await;
        session.works().await;
    }
    assert_eq!(server.seen_method("tools/list").len(), 2);
}

/// At shutdown an open question ends the call, and the server's streams are closed.
#[tokio::test]
async fn shutdown_ends_what_is_open() {
    let server = server().await;
    let mut gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { shutdown: 1s }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let _listening = session.listen().await;
    let subscription = server.get_stream("subscription").await;
    let (mut reply, _open) = asked(&server, &session, &form("k"), 1).await;
    gateway.terminate().await;
    subscription.left().await;
    while reply.maybe_next().await.is_some() {}
    assert_eq!(gateway.exit().await.code(), Some(0));
}

/// F51: a client that reads nothing holds up its own call, and nobody else's.
#[tokio::test]
async fn f51_a_client_that_does_not_read_holds_up_nobody() {
    let (server, gateway, session) = triple().await;
    let call = session.start(json::call("1", "loud", "{}"));
    let stream = server.called("loud").await.stream();
    let message = json::notice(
        "notifications/message",
        &format!(r#"{{"level":"info","data":"{}"}}"#, "x".repeat(64 * 1024)),
    );
    stream.send(&message).await;
    let _unread = call.await.unwrap();
    for _ in 0..500 {
        if stream.try_send(&message).is_err() {
            break;
        }
    }
    session.works().await;
    Client::new(&gateway, "alpha")
        .open(EVERYTHING)
        .await
        .works()
        .await;
}
