//! Which questions find a modern client: those that it declared, of a call of its own that can ask.
//! The others are answered to the server at once, and no call suffers for it.

use super::{asked, elicit, parked, unlimited};
use crate::support::{EVERYTHING, Modern, NOTHING, Server, Setup, Stream, accepted, json, modern};

const SAMPLING: &str = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9,"temperature":1.0}"#;

/// Sampling and roots go the same way, with their own shapes.
#[tokio::test]
async fn sampling_and_roots() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    for (id, method, params, answer) in [
        (
            "1",
            "sampling/createMessage",
            SAMPLING,
            r#"{"role":"assistant","content":{"type":"text","text":"ho"},"model":"m","n":1.0}"#,
        ),
        (
            "2",
            "roots/list",
            "{}",
            r#"{"roots":[{"uri":"file:///srv/mira","n":1.0}]}"#,
        ),
        ("3", "roots/list", "{}", r#"{"roots":[]}"#),
    ] {
        let going = ask.start();
        let stream = server.called("ask").await.stream();
        stream.send(&json::request(id, method, params)).await;
        let round = going.await.unwrap().round().await;
        assert_eq!(round.part(round.only(), "method"), format!("\"{method}\""));
        if params != "{}" {
            assert_eq!(round.part(round.only(), "params"), params);
        }
        let going = ask.retry("2", &round, &round.all(answer)).start();
        assert_eq!(server.answer_to(id).await, json::result(id, answer));
        stream.result(&json::text_result("done")).await;
        assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    }
}

/// A model's answer may have several parts. A server of an older version gets one, or is told that
/// there is no way to say it; the call goes on.
#[tokio::test]
async fn what_a_model_said_to_an_older_server() {
    let text = r#"{"type":"text","text":"a","x":1.0}"#;
    let image = r#"{"type":"image","data":"eA==","mimeType":"image/png"}"#;
    let (one, texts, mixed) = (
        format!("[{text}]"),
        format!(r#"[{text},{{"type":"text","text":"b"}}]"#),
        format!("[{text},{image}]"),
    );
    let both = r#"{"type":"text","text":"a\nb"}"#;
    let table = [
        ("2025-06-18", text, Some(text)),
        ("2025-06-18", &one, Some(text)),
        ("2025-06-18", &texts, Some(both)),
        ("2025-06-18", &mixed, None),
        ("2025-11-25", &mixed, Some(&mixed)),
    ];
    for (version, content, expected) in table {
        let said =
            |content: &str| format!(r#"{{"role":"assistant","content":{content},"model":"m"}}"#);
        let server = Server::with(|habits| habits.version = Some(version)).await;
        let gateway = Setup::new().server("alpha", &server).start().await;
        let ask = Modern::new(&gateway, "alpha").call("1", "ask", "{}");
        let going = ask.start();
        let stream = server.called("ask").await.stream();
        stream
            .send(&json::request("7", "sampling/createMessage", SAMPLING))
            .await;
        let round = going.await.unwrap().round().await;
        let going = ask.retry("2", &round, &round.all(&said(content))).start();
        match expected {
            Some(expected) => {
                assert_eq!(
                    server.answer_to("7").await,
                    json::result("7", &said(expected))
                );
            }
            None => assert_eq!(server.error_to("7").await, -31007),
        }
        let line = gateway
            .audited("the answer", |line| line["type"] == "question.answered")
            .await;
        let outcome = if expected.is_some() { "ok" } else { "refused" };
        assert_eq!(line["outcome"], outcome, "{version} {content}");
        stream.result(&json::text_result("done")).await;
        assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    }
}

/// A question without parameters has none.
#[tokio::test]
async fn a_question_without_parameters() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    stream
        .send(r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#)
        .await;
    let round = going.await.unwrap().round().await;
    assert!(
        round.text.contains(r#""method":"roots/list""#),
        "{}",
        round.text
    );
    let going = ask
        .retry("2", &round, &round.all(r#"{"roots":[]}"#))
        .start();
    server.answer_to("\"r\"").await;
    stream.result("{}").await;
    assert_eq!(going.await.unwrap().status, 200);
}

/// F9: wrong shapes of the other kinds.
#[tokio::test]
async fn f9_wrong_shapes_of_sampling_and_roots() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let table: [(&str, &str, &[&str], &str); 2] = [
        (
            "sampling/createMessage",
            SAMPLING,
            &[
                r#"{"action":"decline"}"#,
                r#"{"role":"assistant","model":"m"}"#,
                r#"{"content":{"type":"text","text":"x"},"model":"m"}"#,
                r#"{"role":"assistant","content":{"type":"text","text":"x"}}"#,
                r#"{"error":{"code":-1,"message":"no"}}"#,
                "[]",
            ],
            r#"{"role":"assistant","content":{"type":"text","text":"ho"},"model":"m"}"#,
        ),
        (
            "roots/list",
            "{}",
            &[
                "{}",
                r#"{"roots":{}}"#,
                r#"{"roots":null}"#,
                r#"{"action":"accept"}"#,
                "[]",
            ],
            r#"{"roots":[]}"#,
        ),
    ];
    for (method, params, wrong, right) in table {
        let going = ask.start();
        let stream = server.called("ask").await.stream();
        stream
            .send(&json::request(&format!("\"{method}\""), method, params))
            .await;
        let round = going.await.unwrap().round().await;
        for answer in wrong {
            let (_, code, _) = ask.retry("2", &round, &round.all(answer)).refused().await;
            assert_eq!(code, -32602, "{answer}");
        }
        let going = ask.retry("3", &round, &round.all(right)).start();
        server.answer_to(&format!("\"{method}\"")).await;
        stream.result("{}").await;
        assert_eq!(going.await.unwrap().status, 200);
    }
    assert_eq!(server.answers().len(), 2);
}

/// F18: what the client did not declare is refused to the server, with the code that tells a missing
/// method from a missing mode; the call goes on.
#[tokio::test]
async fn f18_an_undeclared_kind() {
    let (server, _gateway, client) = modern().await;
    let url = r#"{"mode":"url","elicitationId":"e","url":"https://a.example.test","message":"m"}"#;
    let form = json::form("?");
    let table = [
        (NOTHING, "elicitation/create", form.as_str(), -32601),
        (NOTHING, "sampling/createMessage", SAMPLING, -32601),
        (NOTHING, "roots/list", "{}", -32601),
        (r#"{"elicitation":{}}"#, "elicitation/create", url, -32602),
        (
            r#"{"elicitation":{"url":{}}}"#,
            "elicitation/create",
            &form,
            -32602,
        ),
        (
            r#"{"elicitation":{}}"#,
            "sampling/createMessage",
            SAMPLING,
            -32601,
        ),
        (EVERYTHING, "vendor/unheard", "{}", -32601),
    ];
    for (number, (capabilities, method, params, code)) in table.into_iter().enumerate() {
        let going = client
            .declaring(capabilities)
            .call("1", "ask", "{}")
            .start();
        let stream = server.called("ask").await.stream();
        let id = number.to_string();
        stream.send(&json::request(&id, method, params)).await;
        assert_eq!(server.error_to(&id).await, code, "{capabilities} {method}");
        stream.result(&json::text_result("without")).await;
        assert_eq!(json::text_of(&going.await.unwrap().next().await), "without");
    }
}

/// A ping wants a pong and nobody's attention.
#[tokio::test]
async fn a_ping_is_answered_at_once() {
    let (server, _gateway, client) = modern().await;
    let going = client.call("1", "ask", "{}").start();
    let stream = server.called("ask").await.stream();
    stream.send(&json::request("\"p\"", "ping", "{}")).await;
    assert_eq!(server.answer_to("\"p\"").await, json::result("\"p\"", "{}"));
    let listening = server.last_get_stream().await;
    listening.send(&json::request("\"g\"", "ping", "{}")).await;
    assert_eq!(server.answer_to("\"g\"").await, json::result("\"g\"", "{}"));
    stream.result("{}").await;
    assert_eq!(going.await.unwrap().status, 200);
    listening.send(&json::request("\"h\"", "ping", "{}")).await;
    assert_eq!(server.answer_to("\"h\"").await, json::result("\"h\"", "{}"));
}

/// F19: nobody's call is in flight, so nobody can be asked.
#[tokio::test]
async fn f19_a_question_without_a_call() {
    let (server, _gateway, client) = modern().await;
    client.works().await;
    let listening = server.last_get_stream().await;
    elicit(&listening, "7", "anybody?").await;
    assert_eq!(server.error_to("7").await, -32602);
    client.works().await;
}

/// F20: a list is in flight, which can't be answered with a question.
#[tokio::test]
async fn f20_a_question_while_only_a_list_runs() {
    let (server, _gateway, client) = modern().await;
    let going = client.request("1", "tools/list", "{}").start();
    let held = server.asked("tools/list").await;
    let listening = server.last_get_stream().await;
    elicit(&listening, "7", "on the side").await;
    assert_eq!(server.error_to("7").await, -32602);
    let stream = held.stream();
    elicit(&stream, "8", "in its midst").await;
    assert_eq!(server.error_to("8").await, -32602);
    stream.result(r#"{"tools":[]}"#).await;
    let message = going.await.unwrap().json().await;
    assert_eq!(message["result"]["resultType"], "complete", "{message}");
}

/// A question in the midst of a list is the list's, and not asked in a call that happens to run.
#[tokio::test]
async fn f20_a_question_of_a_list_is_no_question_of_a_call() {
    let (server, _gateway, client) = modern().await;
    let going = client.call("1", "ask", "{}").start();
    let call = server.called("ask").await.stream();
    let list = client.request("1", "tools/list", "{}").start();
    let stream = server.asked("tools/list").await.stream();
    elicit(&stream, "8", "in its midst").await;
    assert_eq!(server.error_to("8").await, -32602);
    stream.result(r#"{"tools":[]}"#).await;
    list.await.unwrap();
    call.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// Many servers ask on their standalone stream: one call in flight is the one that is meant.
#[tokio::test]
async fn a_question_on_the_get_stream_belongs_to_the_call() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    let listening = server.last_get_stream().await;
    elicit(&listening, "7", "Who?").await;
    let round = going.await.unwrap().round().await;
    let going = ask
        .retry("2", &round, &round.all(&accepted("Mira")))
        .start();
    assert_eq!(
        server.answer_to("7").await,
        json::result("7", &accepted("Mira"))
    );
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// The same when the server has not said a word to the call itself yet: it will answer in JSON.
#[tokio::test]
async fn a_question_on_the_get_stream_before_the_head_of_the_answer() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let held = server.called("ask").await;
    let listening = server.last_get_stream().await;
    elicit(&listening, "7", "Who?").await;
    let round = going.await.unwrap().round().await;
    let going = ask
        .retry("2", &round, &round.all(&accepted("Mira")))
        .start();
    server.answer_to("7").await;
    held.result(&json::text_result("done"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// Of several calls, one whose client is there is meant, not one whose client is away.
#[tokio::test]
async fn a_question_on_the_get_stream_goes_to_a_call_that_runs() {
    let (server, gateway, client) = modern().await;
    let running = client.call("1", "first", "{}");
    let going = running.start();
    let first = server.called("first").await.stream();
    // Younger, and parked.
    let call = parked(&server, &client).await;
    let listening = server.last_get_stream().await;
    elicit(&listening, "8", "of the first").await;
    asked(&gateway, 2).await;
    let round = going.await.unwrap().round().await;
    assert_eq!(round.message(round.only()), "of the first");
    for (ask, round, id, stream) in [
        (running, round, "8", first),
        (call.ask, call.round, "7", call.stream),
    ] {
        let going = ask.retry("2", &round, &round.all(&accepted("x"))).start();
        server.answer_to(id).await;
        stream.result(&json::text_result("done")).await;
        assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    }
}

/// When all are away, the one that asked last is meant; its client gets it when it comes back.
#[tokio::test]
async fn a_question_on_the_get_stream_while_all_are_away() {
    let (server, gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    let listening = server.last_get_stream().await;
    elicit(&listening, "8", "And where?").await;
    asked(&gateway, 2).await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("x")));
    let round = retry.send().await.round().await;
    assert_eq!(round.message(round.only()), "And where?");
    ends(call.stream).await;
}

/// More questions than one person may have open: the server is told, the call goes on.
#[tokio::test]
async fn too_many_questions_of_one_person() {
    let (server, _gateway, client) = unlimited().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    let mut questions = String::new();
    for id in 1..=17 {
        let question = json::request(&id.to_string(), "elicitation/create", &json::form("?"));
        questions += "data: ";
        questions += &question;
        questions += "\n\n";
    }
    stream.bytes(&questions).await;
    assert_eq!(server.error_to("17").await, -31006);
    let mut going = going;
    let mut answered = 0;
    let mut id = 1;
    while answered < 16 {
        let round = going.await.unwrap().round().await;
        answered += round.keys.len();
        id += 1;
        going = ask
            .retry(&id.to_string(), &round, &round.all(&accepted("x")))
            .start();
        for question in 1..=answered {
            server.answer_to(&question.to_string()).await;
        }
    }
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(server.answers().len(), 17);
}

async fn ends(stream: Stream) {
    stream.result("{}").await;
}
