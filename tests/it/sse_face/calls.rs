//! What goes to and fro: everything that the gateway has to say comes on the one stream.

use std::collections::BTreeMap;

use super::{Old, gateway, triple};
use crate::support::{Client, EVERYTHING, NOTHING, json};

/// The handshake is the client's, at every version that a client of this transport may have.
#[tokio::test]
async fn a_session_works_at_every_version() {
    let (server, gateway) = gateway("").await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = Client::new(&gateway, "alpha");
        let mut old = Old::open_at(&client, version, EVERYTHING).await;
        old.works().await;
        let seen = server.seen_method("initialize").pop().unwrap();
        let offered = seen.raw(&["params", "protocolVersion"]);
        assert_eq!(offered, Some(format!("\"{version}\"")));
        assert!(
            !old.stream.raw().contains("id:"),
            "there is nothing to resume"
        );
    }
    assert_eq!(server.seen_method("notifications/initialized").len(), 4);
}

/// Each call has its outcome, under the id that the client chose, whatever the order.
#[tokio::test]
async fn outcomes_come_on_the_stream_in_any_order() {
    let (server, _gateway, mut old) = triple().await;
    let ids = ["1", "\"1\"", "0", "9007199254740993", "\"\""];
    let mut calls = Vec::new();
    for id in ids {
        old.call(id, "slow").await;
        calls.push(server.called("slow").await);
    }
    for (number, call) in calls.into_iter().enumerate().rev() {
        call.result(&json::text_result(&number.to_string()));
    }
    let mut outcomes = BTreeMap::new();
    for _ in ids {
        let outcome = old.stream.next().await;
        outcomes.insert(json::id(&outcome), json::text_of(&outcome));
    }
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(outcomes[*id], number.to_string(), "{id}");
    }
}

/// A question in the midst of a call, its answer, and what the call tells on the way.
#[tokio::test]
async fn questions_and_notices_of_a_call_come_on_the_stream() {
    let (server, gateway, mut old) = triple().await;
    let params = r#"{"name":"ask","arguments":{},"_meta":{"progressToken":"p-1"}}"#;
    old.post(&json::request("\"c-1\"", "tools/call", params))
        .await;
    let call = server.called("ask").await.stream();
    let log = json::notice("notifications/message", r#"{"level":"info","data":"now"}"#);
    call.send(&log).await;
    assert_eq!(old.stream.next().await, log);
    let progress = json::notice(
        "notifications/progress",
        r#"{"progressToken":"p-1","progress":1}"#,
    );
    call.send(&progress).await;
    assert_eq!(old.stream.next().await, progress);
    for (id, method, params, answer) in [
        (
            "\"e-77\"",
            "elicitation/create",
            json::form("Who?"),
            r#"{"action":"accept","content":{"nick":"Mira"}}"#,
        ),
        (
            "78",
            "sampling/createMessage",
            r#"{"messages":[],"maxTokens":5}"#.to_owned(),
            r#"{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}"#,
        ),
        ("79", "roots/list", "{}".to_owned(), r#"{"roots":[]}"#),
        ("80", "ping", "{}".to_owned(), "{}"),
    ] {
        let question = json::request(id, method, &params);
        call.send(&question).await;
        let asked = old.stream.question(method).await;
        json::same_but_id(&asked, &question);
        old.answer(&asked, answer).await;
        assert_eq!(server.answer_to(id).await, json::result(id, answer));
    }
    call.result(&json::text_result("Mira")).await;
    let outcome = old.stream.next().await;
    assert_eq!(
        (
            json::id(&outcome).as_str(),
            json::text_of(&outcome).as_str()
        ),
        ("\"c-1\"", "Mira")
    );
    let line = gateway
        .audited("the answer", |line| line["type"] == "question.answered")
        .await;
    assert_eq!(line["action"], "accept", "{line}");
}

/// What the server says outside of calls comes there too, and is there from the beginning.
#[tokio::test]
async fn what_the_server_says_by_itself_comes_on_the_stream() {
    let (server, _gateway, mut old) = triple().await;
    let up = server.last_get_stream().await;
    let changed = json::notice("notifications/tools/list_changed", "{}");
    up.send(&changed).await;
    assert_eq!(old.stream.next().await, changed);
    old.call("1", "slow").await;
    let call = server.called("slow").await.stream();
    up.send(&json::request("5", "elicitation/create", &json::form("?")))
        .await;
    let question = old.stream.question("elicitation/create").await;
    old.answer(&question, r#"{"action":"decline"}"#).await;
    assert_eq!(
        server.answer_to("5").await,
        json::result("5", r#"{"action":"decline"}"#)
    );
    call.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&old.stream.next().await), "done");
}

/// Two streams are two sessions, of one person or of two: what one of them causes the other never sees.
#[tokio::test]
async fn two_streams_are_two_sessions() {
    let (server, gateway) = gateway("").await;
    let client = Client::new(&gateway, "alpha");
    let mut both = [Old::open(&client).await, Old::open(&client).await];
    assert_eq!(server.live(), 2);
    let mut calls = Vec::new();
    for (old, text) in both.iter().zip(["first", "second"]) {
        old.call("1", "ask").await;
        let call = server.called("ask").await.stream();
        let question = json::request("1", "elicitation/create", &json::form(text));
        call.send(&question).await;
        calls.push(call);
    }
    // Each session numbers from the start: the second one's answer may name the first one's question.
    for (old, text) in both.iter_mut().zip(["first", "second"]).rev() {
        let question = old.stream.question("elicitation/create").await;
        assert!(question.contains(text), "{question}");
        let said = format!(r#"{{"action":"accept","content":{{"nick":"{text}"}}}}"#);
        old.answer(&question, &said).await;
        let answer = server
            .sees(text, |seen| {
                seen.http == "POST" && seen.text().contains(&said)
            })
            .await;
        let at = usize::from(text == "second");
        assert_eq!(answer.session(), server.opened()[at]);
    }
    for (old, call) in both.iter_mut().zip(calls) {
        call.result(&json::text_result("done")).await;
        assert_eq!(json::text_of(&old.stream.next().await), "done");
        old.works().await;
    }
}

/// Cancelling reaches the server, under its own id for the call, and has no answer.
#[tokio::test]
async fn a_cancelled_call_has_no_outcome() {
    let (server, gateway, mut old) = triple().await;
    old.call("\"c-1\"", "slow").await;
    let call = server.called("slow").await.stream();
    for id in ["101", "\"zzz\"", "\"c-1\""] {
        let params = format!(r#"{{"requestId":{id},"reason":"enough"}}"#);
        old.post(&json::notice("notifications/cancelled", &params))
            .await;
    }
    let notice = server.notice("notifications/cancelled").await;
    assert_eq!(notice.raw(&["params", "requestId"]), Some(call.id.clone()));
    assert_eq!(server.seen_method("notifications/cancelled").len(), 1);
    drop(call);
    let call = gateway
        .audited("the call", |line| line["method"] == "tools/call")
        .await;
    assert_eq!(call["outcome"], "cancelled");
    old.works().await;
}

/// A batch is taken where JSON-RPC is as it was; each member has an answer of its own.
#[tokio::test]
async fn batches_are_taken_where_the_version_has_them() {
    let (server, gateway) = gateway("").await;
    let client = Client::new(&gateway, "alpha");
    let batch = format!(
        "[{},{},{}]",
        json::call("1", "echo", r#"{"x":1}"#),
        json::notice("notifications/vendor", "{}"),
        json::call("2", "echo", r#"{"x":2}"#)
    );
    for version in ["2024-11-05", "2025-03-26"] {
        let mut old = Old::open_at(&client, version, NOTHING).await;
        old.post(&batch).await;
        let mut outcomes = BTreeMap::new();
        for _ in 0..2 {
            let outcome = old.stream.next().await;
            outcomes.insert(json::id(&outcome), json::text_of(&outcome));
        }
        let expected = ["1", "2"].map(|id| (id.to_owned(), id.to_owned()));
        assert_eq!(outcomes, BTreeMap::from(expected), "{version}");
    }
    let before = server.posts();
    for version in ["2025-06-18", "2025-11-25"] {
        let mut old = Old::open_at(&client, version, NOTHING).await;
        assert_eq!(old.refused(&batch).await, 400, "{version}");
        old.works().await;
    }
    assert_eq!(server.seen_method("notifications/vendor").len(), 2);
    assert_eq!(server.posts(), before + 6);
}

/// What concerns a request is its response, and a status only where the operator wants limits to be one.
#[tokio::test]
async fn a_limit_is_told_as_the_operator_wants_it() {
    let limits = "per_principal: { requests: 1/h, burst: 3 }";
    for (answer, status) in [("jsonrpc", 202), ("http", 429)] {
        let (server, gateway) = gateway(&format!("limits: {{ {limits}, answer: {answer} }}")).await;
        let mut old = Old::open(&Client::new(&gateway, "alpha")).await;
        old.works().await;
        let mut reply = old.client.post(json::call("2", "echo", "{}")).await;
        assert_eq!(reply.status, status);
        let error = match answer {
            "http" => reply.json().await,
            _ => old.stream.json().await,
        };
        assert_eq!(error["id"], 2, "{error}");
        assert_eq!(error["error"]["code"], -31004);
        assert_eq!(reply.headers.contains_key("retry-after"), answer == "http");
        let line = gateway
            .audited("the refusal", |line| line["type"] == "refused")
            .await;
        assert_eq!(
            (&line["reason"], &line["method"]),
            (&"rate_limited".into(), &"tools/call".into())
        );
        assert_eq!(server.seen_method("tools/call").len(), 1);
    }
}

/// A request that only servers may send is answered with an error on the stream.
#[tokio::test]
async fn a_question_put_the_wrong_way_round_is_refused() {
    let (server, _gateway, mut old) = triple().await;
    let before = server.posts();
    old.post(&json::request("4", "sampling/createMessage", "{}"))
        .await;
    assert_eq!(old.stream.error().await, -32601);
    assert_eq!(server.posts(), before);
}

/// What the operator said about questions holds here as anywhere, and so does what a client says of itself.
#[tokio::test]
async fn policy_answers_where_the_person_is_not_to_be_asked() {
    let (server, gateway) = gateway("").await;
    let client = Client::new(&gateway, "alpha").with("x-contraflow-headless", "1");
    let mut old = Old::open(&client).await;
    let declared = server.seen_method("initialize").pop().unwrap();
    let declared = declared.raw(&["params", "capabilities"]).unwrap();
    assert!(!declared.contains("elicitation"), "{declared}");
    old.call("1", "ask").await;
    let call = server.called("ask").await.stream();
    call.send(&json::request("7", "elicitation/create", &json::form("?")))
        .await;
    server.answer_to("7").await;
    call.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&old.stream.next().await), "done");
}

/// Comments keep the stream alive from its first moment on, while a person thinks and while nobody does.
#[tokio::test]
async fn comments_keep_the_stream_alive() {
    let (server, gateway) = gateway("timeouts: { keep_alive: 200ms }").await;
    let client = Client::new(&gateway, "alpha");
    let mut fresh = Old::connect(&client).await;
    fresh.stream.read_comments(3).await;
    let mut old = Old::open(&client).await;
    old.call("1", "slow").await;
    let call = server.called("slow").await.stream();
    old.stream.read_comments(3).await;
    call.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&old.stream.next().await), "done");
}
