//! How a parked call goes: questions go out in rounds, answers come back with a retry, the one
//! request at the server lives through all of it.

use super::{answers_to, asked, elicit, elicit_both, parked, unlimited};
use crate::support::{Round, accepted, json, modern};

/// One question: the whole way.
#[tokio::test]
async fn one_question() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("\"first\"", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    let form = r#"{"message":"Which size?","requestedSchema":{"type":"object","properties":{"z":{"type":"string","minLength":1.0},"a":{"type":"string"}}},"vendor":1e2}"#;
    stream
        .send(&json::request("7", "elicitation/create", form))
        .await;
    let mut reply = going.await.unwrap();
    assert!(!reply.is_stream(), "an answer of one message is a body");
    assert_eq!(reply.status, 200);
    let round = reply.round().await;
    assert_eq!(json::id(&round.text), "\"first\"");
    let key = round.only();
    assert_eq!(round.part(key, "method"), "\"elicitation/create\"");
    assert_eq!(round.part(key, "params"), form);
    let state = round.state.trim_matches('"');
    assert!(state.len() <= 600, "{state}");
    assert!(
        state
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b)),
        "{state}"
    );
    let info = json::raw(
        &round.text,
        &["result", "_meta", "io.modelcontextprotocol/serverInfo"],
    );
    assert_eq!(
        info.as_deref(),
        Some(r#"{"name":"scripted","version":"1"}"#)
    );

    let answer = r#"{"action":"accept","content":{"z":"M"},"n":1.10}"#;
    let going = ask.retry("\"second\"", &round, &round.all(answer)).start();
    assert_eq!(server.answer_to("7").await, json::result("7", answer));
    let answered = server
        .sees("the answer", |seen| seen.text().contains("accept"))
        .await;
    assert_eq!(answered.session(), stream.seen.session());
    stream.result(r#"{"content":[],"n":1.10}"#).await;
    let text = going.await.unwrap().next().await;
    assert_eq!(json::id(&text), "\"second\"");
    assert_eq!(json::raw(&text, &["result", "n"]).as_deref(), Some("1.10"));
    assert_eq!(json::parse(&text)["result"]["resultType"], "complete");
    assert_eq!(
        server.seen_method("tools/call").len(),
        1,
        "one call all the time"
    );
    assert_eq!(server.opened().len(), 1);
    assert_eq!(answers_to(&server, "7"), 1);
}

/// Prompts and resources ask in the same way.
#[tokio::test]
async fn prompts_and_resources_ask_too() {
    let server = crate::support::Server::with(|habits| {
        habits.capabilities = r#"{"prompts":{},"resources":{}}"#;
    })
    .await;
    let gateway = crate::support::Setup::new()
        .server("alpha", &server)
        .start()
        .await;
    let client = crate::support::Modern::new(&gateway, "alpha");
    for (method, params, question, own) in [
        (
            "prompts/get",
            r#"{"name":"greet","arguments":{"a":"b"}}"#,
            "1",
            r#"{"messages":[]}"#,
        ),
        (
            "resources/read",
            r#"{"uri":"shop://1"}"#,
            "2",
            r#"{"contents":[]}"#,
        ),
    ] {
        let ask = client.request("1", method, params);
        let going = ask.start();
        let stream = server.asked(method).await.stream();
        elicit(&stream, question, "Who?").await;
        let round = going.await.unwrap().round().await;
        let going = ask
            .retry("2", &round, &round.all(r#"{"action":"decline"}"#))
            .start();
        server.answer_to(question).await;
        stream.result(own).await;
        let message = going.await.unwrap().json().await;
        assert_eq!(message["result"]["resultType"], "complete", "{message}");
    }
}

/// Decline and cancel are answers; only an accepted form has content.
#[tokio::test]
async fn content_goes_with_accept_alone() {
    let (server, _gateway, client) = modern().await;
    for (id, action) in [("1", "decline"), ("2", "cancel")] {
        let ask = client.call("1", "ask", "{}");
        let going = ask.start();
        let stream = server.called("ask").await.stream();
        elicit(&stream, id, "Who?").await;
        let round = going.await.unwrap().round().await;
        let answer = format!(r#"{{"action":"{action}","content":{{"nick":"canary"}}}}"#);
        let going = ask.retry("2", &round, &round.all(&answer)).start();
        let sent = format!(r#"{{"action":"{action}"}}"#);
        assert_eq!(server.answer_to(id).await, json::result(id, &sent));
        stream.result("{}").await;
        assert_eq!(going.await.unwrap().status, 200);
    }
}

/// F22: what is asked at once is one round.
#[tokio::test]
async fn f22_two_questions_at_once() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    elicit_both(&stream).await;
    let round = going.await.unwrap().round().await;
    assert_eq!(round.keys.len(), 2, "{}", round.text);
    let answers = format!(
        r#"{{"{}":{},"{}":{}}}"#,
        round.key("2"),
        accepted("two"),
        round.key("1"),
        accepted("one")
    );
    let going = ask.retry("2", &round, &answers).start();
    assert_eq!(
        server.answer_to("1").await,
        json::result("1", &accepted("one"))
    );
    assert_eq!(
        server.answer_to("2").await,
        json::result("2", &accepted("two"))
    );
    stream.result(&json::text_result("both")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "both");
}

/// F23: what is asked while the person thinks comes right after the retry.
#[tokio::test]
async fn f23_a_question_during_the_thinking() {
    let (server, gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    elicit(&call.stream, "8", "And where?").await;
    asked(&gateway, 2).await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("Mira")));
    let second = retry.send().await.round().await;
    assert_eq!(
        server.answer_to("7").await,
        json::result("7", &accepted("Mira"))
    );
    assert_eq!(second.message(second.only()), "And where?");
    assert_ne!(
        second.only(),
        call.round.only(),
        "a key is one question's for ever"
    );
    let going = call
        .ask
        .retry("3", &second, &second.all(&accepted("here")))
        .start();
    server.answer_to("8").await;
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// A round after the other, each with a state and a key of its own; servers count from the same id
/// each time.
#[tokio::test]
async fn several_rounds() {
    let (server, _gateway, client) = modern().await;
    let mut call = parked(&server, &client).await;
    let mut keys = vec![call.round.only().to_owned()];
    for number in 2..=5 {
        let nick = format!("n{number}");
        let going = call
            .ask
            .retry(
                &number.to_string(),
                &call.round,
                &call.round.all(&accepted(&nick)),
            )
            .start();
        let own = format!("\"{nick}\"");
        server
            .sees(&nick, |seen| {
                seen.raw(&["result", "content", "nick"]) == Some(own.clone())
            })
            .await;
        elicit(&call.stream, "7", &nick).await;
        let next = going.await.unwrap().round().await;
        assert_eq!(next.message(next.only()), nick);
        assert!(
            !keys.contains(&next.only().to_owned()),
            "{keys:?} {}",
            next.text
        );
        assert_ne!(next.state, call.round.state);
        keys.push(next.only().to_owned());
        call.round = next;
    }
    let going = call
        .ask
        .retry("6", &call.round, &call.round.all(&accepted("last")))
        .start();
    server
        .sees("the last", |seen| seen.text().contains("\"last\""))
        .await;
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(server.answers().len(), 5);
}

/// F21: clients stop at ten rounds. After eight, the server is told that nobody answers, and goes on
/// without.
#[tokio::test]
async fn f21_more_rounds_than_a_client_takes() {
    let (server, _gateway, client) = unlimited().await;
    let ask = client.call("1", "ask", "{}");
    let mut going = ask.start();
    let stream = server.called("ask").await.stream();
    for number in 1..=8 {
        let id = number.to_string();
        elicit(&stream, &id, "again").await;
        let round = going.await.unwrap().round().await;
        going = ask.retry(&id, &round, &round.all(&accepted("x"))).start();
        server.answer_to(&id).await;
    }
    elicit(&stream, "9", "again").await;
    assert_eq!(
        server.answer_to("9").await,
        json::result("9", r#"{"action":"cancel"}"#)
    );
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// F15: the server did not wait. Its outcome is there when the client comes back.
#[tokio::test]
async fn f15_the_outcome_comes_while_the_client_is_away() {
    let (server, gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    call.stream.result(&json::text_result("without you")).await;
    gateway
        .audited("the call", |line| {
            line["type"] == "call" && line["method"] == "tools/call"
        })
        .await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("late")));
    assert_eq!(
        json::text_of(&retry.send().await.next().await),
        "without you"
    );
    client.works().await;
    assert!(
        !server.answers().iter().any(|it| it.contains("late")),
        "nobody waits for it"
    );
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// F17: the server lost patience. What it says then is what the client gets.
#[tokio::test]
async fn f17_the_server_gives_up_and_fails() {
    let (server, _gateway, client) = modern().await;
    for (body, reads) in [
        (
            r#""error":{"code":-32603,"message":"timed out"}"#,
            "timed out",
        ),
        (
            r#""result":{"isError":true,"content":[{"type":"text","text":"too late"}]}"#,
            "too late",
        ),
    ] {
        let call = parked(&server, &client).await;
        call.stream
            .send(&json::notice(
                "notifications/cancelled",
                r#"{"requestId":7}"#,
            ))
            .await;
        call.stream
            .send(&format!(
                r#"{{"jsonrpc":"2.0","id":{},{body}}}"#,
                call.stream.id
            ))
            .await;
        let retry = call
            .ask
            .retry("2", &call.round, &call.round.all(&accepted("late")));
        let text = retry.send().await.next().await;
        assert!(text.contains(reads), "{text}");
        assert_eq!(json::id(&text), "2");
    }
}

/// F16: a question that the server withdrew is not answered any more; the call goes on.
#[tokio::test]
async fn f16_a_withdrawn_question() {
    let (server, gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    elicit_both(&stream).await;
    let round = going.await.unwrap().round().await;
    stream
        .send(&json::notice(
            "notifications/cancelled",
            r#"{"requestId":1}"#,
        ))
        .await;
    gateway
        .audited("withdrawn", |line| line["reason"] == "withdrawn_by_server")
        .await;
    let going = ask.retry("2", &round, &round.all(&accepted("x"))).start();
    server.answer_to("2").await;
    // The fence: were the withdrawn one answered, it would come in the same breath.
    elicit(&stream, "3", "then").await;
    let next = going.await.unwrap().round().await;
    assert_eq!(next.message(next.only()), "then");
    let going = ask.retry("3", &next, &next.all(&accepted("y"))).start();
    server.answer_to("3").await;
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(answers_to(&server, "1"), 0);
}

/// F16: when nothing is left to ask, the retry waits for the outcome, and is not sent away again.
#[tokio::test]
async fn f16_everything_is_withdrawn() {
    let (server, gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    call.stream
        .send(&json::notice(
            "notifications/cancelled",
            r#"{"requestId":7}"#,
        ))
        .await;
    gateway
        .audited("withdrawn", |line| line["reason"] == "withdrawn_by_server")
        .await;
    let going = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("x")))
        .token("\"t\"")
        .start();
    let token = call.stream.seen.raw(&["params", "_meta", "progressToken"]);
    if let Some(token) = token {
        let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
        call.stream
            .send(&json::notice("notifications/progress", &params))
            .await;
    }
    call.stream.result(&json::text_result("done")).await;
    let mut reply = going.await.unwrap();
    let mut text = reply.next().await;
    if json::method(&text).is_some() {
        text = reply.next().await;
    }
    assert_eq!(json::text_of(&text), "done");
    assert_eq!(server.answers().len(), 0);
}

/// F7: what was answered goes to the server, what was not is asked again under the same key.
#[tokio::test]
async fn f7_missing_answers() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    elicit_both(&stream).await;
    let round = going.await.unwrap().round().await;
    let (one, two) = (round.key("1"), round.key("2"));
    let half = format!(r#"{{"{one}":{}}}"#, accepted("one"));
    let rest = ask.retry("2", &round, &half).send().await.round().await;
    assert_eq!(
        server.answer_to("1").await,
        json::result("1", &accepted("one"))
    );
    assert_eq!(rest.keys, [two]);
    // Nothing at all: the same again, under a state of its own.
    let again = ask.retry("3", &rest, "{}").send().await.round().await;
    assert_eq!(again.keys, rest.keys);
    let again = ask.retry("4", &again, "").send().await.round().await;
    assert_eq!(again.keys, rest.keys);
    let going = ask.retry("5", &again, &again.all(&accepted("two"))).start();
    assert_eq!(
        server.answer_to("2").await,
        json::result("2", &accepted("two"))
    );
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!((answers_to(&server, "1"), answers_to(&server, "2")), (1, 1));
}

/// F8: answers to what nobody asked are left alone.
#[tokio::test]
async fn f8_unknown_keys() {
    let (server, _gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    let answers = format!(
        r#"{{"nobody":{},"x":7,"{}":{}}}"#,
        accepted("canary"),
        call.round.only(),
        accepted("Mira")
    );
    let going = call.ask.retry("2", &call.round, &answers).start();
    assert_eq!(
        server.answer_to("7").await,
        json::result("7", &accepted("Mira"))
    );
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(server.answers().len(), 1);
}

/// A URL has no id of its own in this revision; the address itself passes byte for byte.
#[tokio::test]
async fn a_url_without_an_id() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    let params = r#"{"mode":"url","elicitationId":"e-1","url":"https://pay.example.test/1?a=%2F&b=\u0041","message":"Pay"}"#;
    stream
        .send(&json::request("7", "elicitation/create", params))
        .await;
    let round = going.await.unwrap().round().await;
    assert_eq!(
        round.part(round.only(), "params"),
        r#"{"mode":"url","url":"https://pay.example.test/1?a=%2F&b=\u0041","message":"Pay"}"#
    );
    let going = ask
        .retry("2", &round, &round.all(r#"{"action":"accept"}"#))
        .start();
    server.answer_to("7").await;
    // That the person is done is between the server and its own page.
    let done = json::notice(
        "notifications/elicitation/complete",
        r#"{"elicitationId":"e-1"}"#,
    );
    stream.send(&done).await;
    stream.result(&json::text_result("paid")).await;
    let mut reply = going.await.unwrap();
    assert_eq!(json::text_of(&reply.next().await), "paid");
}

/// A call that asks nothing is not parked, and one that was is as fast as its server: two people of one
/// session, one away, one not.
#[tokio::test]
async fn others_are_not_held_up() {
    let (server, _gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    for _ in 0..5 {
        client.works().await;
    }
    let going = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("x")))
        .start();
    server.answer_to("7").await;
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// Many calls of one person away at once, each with its own question under the same id of the server.
#[tokio::test]
async fn ten_calls_of_one_person() {
    let (server, _gateway, client) = modern().await;
    let mut calls = Vec::new();
    for number in 0..10 {
        let ask = client.call("1", "ask", &format!(r#"{{"n":{number}}}"#));
        let going = ask.start();
        let stream = server.called("ask").await.stream();
        elicit(&stream, &number.to_string(), &format!("m{number}")).await;
        let round = going.await.unwrap().round().await;
        calls.push((number, ask, stream, round));
    }
    for (number, ask, stream, round) in calls.into_iter().rev() {
        assert_eq!(round.message(round.only()), format!("m{number}"));
        let nick = format!("n{number}");
        let going = ask.retry("2", &round, &round.all(&accepted(&nick))).start();
        let id = number.to_string();
        assert_eq!(
            server.answer_to(&id).await,
            json::result(&id, &accepted(&nick))
        );
        stream.result(&json::text_result(&nick)).await;
        assert_eq!(json::text_of(&going.await.unwrap().next().await), nick);
    }
    assert_eq!(server.opened().len(), 1);
}

/// `input_required` is read as it is also by a client that got a stream before.
#[tokio::test]
async fn a_round_at_the_end_of_a_stream() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}").token("\"t\"");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    let token = stream
        .seen
        .raw(&["params", "_meta", "progressToken"])
        .unwrap();
    let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
    stream
        .send(&json::notice("notifications/progress", &params))
        .await;
    let mut reply = going.await.unwrap();
    assert!(reply.is_stream());
    assert_eq!(
        json::method(&reply.next().await).as_deref(),
        Some("notifications/progress")
    );
    elicit(&stream, "7", "Who?").await;
    let round = Round::of(&reply.next().await);
    reply.ends().await;
    let going = ask.retry("2", &round, &round.all(&accepted("x"))).start();
    server.answer_to("7").await;
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}
