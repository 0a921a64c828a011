//! What a client may do wrong when it comes back, or try. The parked call is as it was: the right
//! retry still finds it.

use super::{Parked, answers_to, asked, elicit, elicit_both, park, parked};
use crate::support::token::{ISSUER, Key, PUBLIC, claims_with};
use crate::support::{Ask, Modern, Server, Setup, accepted, json, modern, two_people};

/// The code that a retry which does not fit gets, and the reason.
async fn refused(retry: Ask, reason: &str) {
    let (status, code, why) = retry.refused().await;
    assert_eq!((status, code, why.as_str()), (200, -32602, reason));
}

/// The right retry of a parked call, to its end.
async fn goes_on(server: &Server, call: Parked) {
    let going = call
        .ask
        .retry("\"right\"", &call.round, &call.round.all(&accepted("Mira")))
        .start();
    assert_eq!(
        server.answer_to("7").await,
        json::result("7", &accepted("Mira"))
    );
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(answers_to(server, "7"), 1);
    assert_eq!(server.seen_method("tools/call").len(), 1);
}

/// F1: a state in the hands of another opens nothing, and the attempt is on record.
#[tokio::test]
async fn f1_the_state_of_another_person() {
    let (server, gateway, mira, joris) = two_people().await;
    let call = parked(&server, &mira).await;
    let stolen = joris.call("1", "ask", r#"{"n":2,"m":{"a":1.0}}"#).retry(
        "2",
        &call.round,
        &call.round.all(&accepted("evil")),
    );
    refused(stolen, "state_invalid").await;
    let line = gateway
        .audited("the attempt", |line| line["reason"] == "state_invalid")
        .await;
    assert_eq!(line["principal"]["subject"], "joris");
    goes_on(&server, call).await;
}

/// F1: a state of another server is as strange as that of another person.
#[tokio::test]
async fn f1_the_state_of_another_server() {
    let (alpha, beta) = (Server::start().await, Server::start().await);
    let gateway = Setup::new()
        .server("alpha", &alpha)
        .server("beta", &beta)
        .start()
        .await;
    let call = parked(&alpha, &Modern::new(&gateway, "alpha")).await;
    let crossed = Modern::new(&gateway, "beta")
        .call("1", "ask", r#"{"n":2,"m":{"a":1.0}}"#)
        .retry("2", &call.round, &call.round.all(&accepted("x")));
    refused(crossed, "state_invalid").await;
    assert_eq!(beta.seen_method("tools/call").len(), 0);
    goes_on(&alpha, call).await;
}

/// A state that was changed, made up, or cut short.
#[tokio::test]
async fn a_state_that_is_none() {
    let (server, _gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    let answers = call.round.all(&accepted("x"));
    let own = call.round.state.clone();
    let middle = own.len() / 2;
    let swapped = if &own[middle..=middle] == "A" {
        "B"
    } else {
        "A"
    };
    let changed = format!("{}{swapped}{}", &own[..middle], &own[middle + 1..]);
    let cut = format!("{}\"", &own[..own.len() - 3]);
    let long = format!("\"{}\"", "A".repeat(9000));
    for state in [
        changed.as_str(),
        &cut,
        &long,
        "\"\"",
        "\"cf1.\"",
        "\"x\"",
        "7",
        "{}",
        "[]",
    ] {
        let retry = call
            .ask
            .retry("2", &call.round, &answers)
            .param("requestState", state);
        refused(retry, "state_invalid").await;
    }
    goes_on(&server, call).await;
}

/// F34: a gateway that was started anew knows nothing of the calls before, and calls nobody twice.
#[tokio::test]
async fn f34_a_state_of_the_process_before() {
    let (server, mut gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    gateway.kill().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let late = Modern::new(&gateway, "alpha")
        .call("1", "ask", r#"{"n":2,"m":{"a":1.0}}"#)
        .retry("2", &call.round, &call.round.all(&accepted("x")));
    let (status, code, reason) = late.refused().await;
    assert_eq!((status, code), (200, -32602));
    assert!(
        ["state_invalid", "state_expired"].contains(&reason.as_str()),
        "{reason}"
    );
    assert_eq!(server.seen_method("tools/call").len(), 1);
}

/// F3: the second time, the round is consumed: while the call goes on, and after its outcome.
#[tokio::test]
async fn f3_the_same_retry_twice() {
    let (server, _gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("Mira")));
    let going = retry.start();
    server.answer_to("7").await;
    refused(retry.clone().id("3"), "state_consumed").await;
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    let (status, _, reason) = retry.id("4").refused().await;
    assert_eq!((status, reason.as_str()), (200, "state_consumed"));
    client.works().await;
    assert_eq!(answers_to(&server, "7"), 1);
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// F4: of many retries at the same moment one wins, and the server hears one answer.
#[tokio::test]
async fn f4_the_same_retry_at_once() {
    let (server, _gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("Mira")));
    let going: Vec<_> = (0..8)
        .map(|id| retry.clone().id(&id.to_string()).start())
        .collect();
    server.answer_to("7").await;
    call.stream.result(&json::text_result("done")).await;
    let mut outcomes = 0;
    for going in going {
        let message = going.await.unwrap().json().await;
        if message["result"].is_object() {
            outcomes += 1;
        } else {
            assert_eq!(
                message["error"]["data"]["reason"], "state_consumed",
                "{message}"
            );
        }
    }
    assert_eq!(outcomes, 1);
    client.works().await;
    assert_eq!(answers_to(&server, "7"), 1);
}

/// F5: a state of a round before is consumed, also when its key is asked again.
#[tokio::test]
async fn f5_an_older_round() {
    let (server, _gateway, client) = modern().await;
    let mut call = parked(&server, &client).await;
    let older = call
        .ask
        .retry("9", &call.round, &call.round.all(&accepted("old")));
    call.round = call
        .ask
        .retry("2", &call.round, "{}")
        .send()
        .await
        .round()
        .await;
    refused(older, "state_consumed").await;
    goes_on(&server, call).await;
}

/// F6: the retry must be the request that was asked about.
#[tokio::test]
async fn f6_changed_arguments_or_name() {
    let (server, _gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("evil")));
    for arguments in [
        r#"{"n":3,"m":{"a":1.0}}"#,
        r#"{"n":2,"m":{"a":1.5}}"#,
        r#"{"n":"2","m":{"a":1.0}}"#,
        r#"{"n":2,"m":{"a":1.0},"x":null}"#,
        r#"{"n":2}"#,
        "",
    ] {
        refused(
            retry.clone().param("arguments", arguments),
            "state_mismatch",
        )
        .await;
    }
    refused(retry.clone().param("name", "\"other\""), "state_mismatch").await;
    let prompt = retry.method("prompts/get");
    let (status, code, _) = prompt.refused().await;
    assert!(
        status == 200 && code == -32602 || status == 404,
        "{status} {code}"
    );
    goes_on(&server, call).await;
}

/// F6: the same arguments in another order, spelled in another way, with another envelope.
#[tokio::test]
async fn f6_the_same_arguments_in_another_spelling() {
    let (server, _gateway, client) = modern().await;
    let mut call = parked(&server, &client).await;
    call.ask = call
        .ask
        .param("arguments", r#"{ "m" : {"\u0061": 1}, "n": 2.0 }"#)
        .meta("traceparent", "\"00-c-d-01\"")
        .envelope("clientInfo", r#"{"name":"another process","version":"2"}"#);
    goes_on(&server, call).await;
}

/// F9: what can't be an answer is refused with its key, before anything reaches the server.
#[tokio::test]
async fn f9_answers_that_are_none() {
    let (server, _gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    let key = call.round.only();
    for answer in [
        r#"{"jsonrpc":"2.0","id":7,"result":{"action":"accept","content":{}}}"#,
        r#"{"result":{"action":"accept"}}"#,
        r#"{"action":"approve"}"#,
        r#"{"action":null}"#,
        r#"{"content":{"nick":"x"}}"#,
        "{}",
        "null",
        "\"accept\"",
        "7",
        "[]",
        r#"{"action":"accept","action":"decline"}"#,
    ] {
        let retry = call
            .ask
            .retry("2", &call.round, &format!(r#"{{"{key}":{answer}}}"#));
        let mut reply = retry.send().await;
        let message = reply.json().await;
        assert_eq!(message["error"]["code"], -32602, "{answer}: {message}");
        let text = message["error"]["message"].as_str().unwrap();
        assert!(text.contains(key), "{answer}: {text}");
    }
    for answers in ["7", "[]", "\"x\""] {
        let (_, code, _) = call.ask.retry("2", &call.round, answers).refused().await;
        assert_eq!(code, -32602, "{answers}");
    }
    goes_on(&server, call).await;
}

/// F9: of two answers one is good, one is not: neither is sent.
#[tokio::test]
async fn f9_one_bad_answer_spoils_the_round() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    elicit_both(&stream).await;
    let round = going.await.unwrap().round().await;
    let (one, two) = (round.key("1"), round.key("2"));
    let mixed = format!(
        r#"{{"{one}":{},"{two}":{{"action":"maybe"}}}}"#,
        accepted("early")
    );
    let (_, code, _) = ask.retry("2", &round, &mixed).refused().await;
    assert_eq!(code, -32602);
    let going = ask
        .retry("3", &round, &round.all(&accepted("right")))
        .start();
    assert_eq!(
        server.answer_to("1").await,
        json::result("1", &accepted("right"))
    );
    server.answer_to("2").await;
    stream.result("{}").await;
    assert_eq!(going.await.unwrap().status, 200);
    assert_eq!(server.answers().len(), 2);
}

/// F10: answers without a state would run the call a second time if they were taken for a new one.
#[tokio::test]
async fn f10_answers_without_a_state() {
    let (server, _gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    let answers = call.round.all(&accepted("x"));
    let retry = call
        .ask
        .retry("2", &call.round, &answers)
        .param("requestState", "");
    refused(retry, "state_missing").await;
    goes_on(&server, call).await;
}

/// F11: other methods are never asked about, so they have no state.
#[tokio::test]
async fn f11_a_state_where_none_can_be() {
    let (server, _gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    for method in [
        "tools/list",
        "completion/complete",
        "server/discover",
        "subscriptions/listen",
    ] {
        let ask = client.request("1", method, r#"{"notifications":{}}"#);
        let retry = ask.param("requestState", &call.round.state);
        let (_, code, _) = retry.refused().await;
        assert_eq!(code, -32602, "{method}");
        let ask = client.request("1", method, r#"{"notifications":{}}"#);
        let answers = call.round.all(&accepted("x"));
        let (_, code, _) = ask.param("inputResponses", &answers).refused().await;
        assert_eq!(code, -32602, "{method}");
    }
    assert!(server.seen_method("tools/list").is_empty());
    goes_on(&server, call).await;
}

/// F12: the client that comes back can be asked less. What it can't be asked is refused at the server,
/// and the call goes on.
#[tokio::test]
async fn f12_a_capability_is_lost() {
    let (server, gateway, client) = modern().await;
    let mut call = parked(&server, &client).await;
    let sampling = r#"{"messages":[],"maxTokens":9}"#;
    call.stream
        .send(&json::request("8", "sampling/createMessage", sampling))
        .await;
    asked(&gateway, 2).await;
    call.ask = call.ask.declaring(r#"{"elicitation":{}}"#);
    let going = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("Mira")))
        .start();
    assert_eq!(
        server.answer_to("7").await,
        json::result("7", &accepted("Mira"))
    );
    assert_eq!(server.error_to("8").await, -32601);
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// F32: a token that was renewed meanwhile is the same person.
#[tokio::test]
async fn f32_a_renewed_token() {
    let server = Server::start().await;
    let key = Key::new("k1");
    let setup = Setup::new().server("alpha", &server);
    let jwks = Key::write(&[&key], setup.folder());
    let gateway = setup
        .yaml(&format!(
            "public_url: {PUBLIC}\nauth: {{ issuers: [ {{ issuer: \"{ISSUER}\", jwks_file: \"{}\" }} ] }}",
            jwks.display()
        ))
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    let mira = client.bearer(&key.token("mira"));
    let call = parked(&server, &mira).await;
    let renewed = key.sign(
        &key.header(),
        &claims_with(
            "mira",
            &serde_json::json!({ "jti": "mira-2", "client_id": "phone" }),
        ),
    );
    let ask = client
        .bearer(&renewed)
        .call("1", "ask", r#"{"n":2,"m":{"a":1.0}}"#);
    goes_on(&server, Parked { ask, ..call }).await;
}

/// F52: the call holds its place all the time; the retry needs none of its own, or no call of a
/// server with one place could ever go on.
#[tokio::test]
async fn f52_a_retry_needs_no_place_of_its_own() {
    for limits in [
        "{ limits: { concurrent: 1 } }",
        "{ limits: { requests: 2/h, burst: 2 } }",
    ] {
        let server = Server::start().await;
        let gateway = Setup::new()
            .server_with("alpha", &server, limits)
            .start()
            .await;
        let call = parked(&server, &Modern::new(&gateway, "alpha")).await;
        goes_on(&server, call).await;
    }
}

/// F52: whoever comes back too often is told so, and the call is still there.
#[tokio::test]
async fn f52_a_limited_retry_leaves_the_call_parked() {
    let server = Server::start().await;
    let limits = "{ limits: { requests: 600/min, burst: 3 } }";
    let gateway = Setup::new()
        .server_with("alpha", &server, limits)
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    let mut call = parked(&server, &client).await;
    let key = call.round.only().to_owned();
    let limited = loop {
        // A bad answer: it is taken, counted, and changes nothing.
        let bad = call
            .ask
            .retry("2", &call.round, &format!(r#"{{"{key}":7}}"#));
        let (_, code, _) = bad.refused().await;
        if code != -32602 {
            break code;
        }
    };
    assert_eq!(limited, -31004);
    // In a moment there is room for one more.
    let round = loop {
        let mut reply = call.ask.retry("3", &call.round, "{}").send().await;
        let text = reply.next().await;
        if text.contains("input_required") {
            break crate::support::Round::of(&text);
        }
    };
    call.round = round;
    let going = loop {
        let mut going = call
            .ask
            .retry("4", &call.round, &call.round.all(&accepted("Mira")))
            .start();
        tokio::select! {
            reply = &mut going => assert!(reply.unwrap().next().await.contains("-31004")),
            _ = server.answer_to("7") => break going,
        }
    };
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// A client that was refused comes back under any id; ids are the exchange's and mean nothing else.
#[tokio::test]
async fn f57_the_same_id_again() {
    let (server, _gateway, client) = modern().await;
    let call = park(&server, client.call("1", "ask", r#"{"n":2,"m":{"a":1.0}}"#)).await;
    let other = client.call("1", "ask", "{}").start();
    let second = server.called("ask").await.stream();
    elicit(&second, "8", "Other?").await;
    let other = other.await.unwrap().round().await;
    assert_eq!(other.message(other.only()), "Other?");
    let going = call
        .ask
        .retry("1", &call.round, &call.round.all(&accepted("Mira")))
        .start();
    server.answer_to("7").await;
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    second.result("{}").await;
}
