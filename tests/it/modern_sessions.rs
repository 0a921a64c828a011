//! The legacy sessions that the gateway holds for clients that hold none: whose they are, who shares
//! them, and when they end.

use hyper::Method;

use crate::support::{
    EVERYTHING, Gateway, Modern, NOTHING, Server, Setup, accepted, json, modern, two_people,
};

/// The sessions that the gateway ended, in order.
fn deleted(server: &Server) -> Vec<String> {
    let seen = server.seen();
    let deletes = seen.iter().filter(|seen| seen.http == Method::DELETE);
    deletes.map(|seen| seen.session().to_owned()).collect()
}

async fn sees_deleted(server: &Server, session: &str) {
    server
        .sees("DELETE", |seen| {
            seen.http == Method::DELETE && seen.session() == session
        })
        .await;
}

async fn open() -> (Server, Gateway, Modern) {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("auth: open")
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    (server, gateway, client)
}

/// One person's calls meet in one session; another person's never see it.
#[tokio::test]
async fn one_for_each_person() {
    let (server, _gateway, mira, joris) = two_people().await;
    for count in ["1", "2", "3"] {
        assert_eq!(mira.text("count", "{}").await, count);
    }
    assert_eq!(joris.text("count", "{}").await, "1");
    assert_eq!(mira.text("count", "{}").await, "4");
    assert_eq!(server.opened().len(), 2);
}

/// Where nobody logs in, on loopback, all are one person.
#[tokio::test]
async fn everybody_on_loopback_is_one_person() {
    let (server, gateway, client) = modern().await;
    assert_eq!(client.text("count", "{}").await, "1");
    assert_eq!(
        Modern::new(&gateway, "alpha").text("count", "{}").await,
        "2"
    );
    assert_eq!(server.opened().len(), 1);
}

/// A legacy session freezes what its client can be asked, so each set of capabilities has its own.
/// What is declared is never more than the client said, however it spelled it.
#[tokio::test]
async fn one_for_each_set_of_capabilities() {
    let (server, _gateway, client) = modern().await;
    let table = [
        (NOTHING, "{}"),
        (r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#),
        (
            r#"{"elicitation":{"url":{}}}"#,
            r#"{"elicitation":{"url":{}}}"#,
        ),
        (r#"{"sampling":{"vendor":1}}"#, r#"{"sampling":{}}"#),
        (r#"{"roots":{"listChanged":true}}"#, r#"{"roots":{}}"#),
        (
            EVERYTHING,
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#,
        ),
    ];
    for (number, (capabilities, declared)) in table.into_iter().enumerate() {
        let client = client.declaring(capabilities);
        assert_eq!(client.text("count", "{}").await, "1", "{capabilities}");
        let opened = server.seen_method("initialize");
        assert_eq!(opened.len(), number + 1, "{capabilities}");
        let seen = &opened[number];
        assert_eq!(
            seen.raw(&["params", "capabilities"]).as_deref(),
            Some(declared)
        );
        assert_eq!(
            json::parse(seen.text())["params"]["clientInfo"]["name"],
            "contraflow"
        );
        assert_eq!(
            seen.raw(&["params", "protocolVersion"]).as_deref(),
            Some("\"2025-11-25\"")
        );
    }
    for same in [
        r#"{"elicitation":{"form":{}}}"#,
        r#"{"elicitation":{},"experimental":{"x":{}}}"#,
    ] {
        assert_ne!(
            client.declaring(same).text("count", "{}").await,
            "1",
            "{same}"
        );
    }
    assert_eq!(server.opened().len(), 6);
    assert_eq!(server.seen_method("notifications/initialized").len(), 6);
}

/// Who comes while the session is being opened waits for it.
#[tokio::test]
async fn many_first_requests_at_once() {
    let (server, _gateway, client) = modern().await;
    let going: Vec<_> = (0..20)
        .map(|id| client.call(&id.to_string(), "echo", "{}").start())
        .collect();
    for going in going {
        assert_eq!(going.await.unwrap().status, 200);
    }
    assert_eq!(server.opened().len(), 1);
}

/// A session that could not be opened is tried again by the next request.
#[tokio::test]
async fn a_session_that_could_not_be_opened() {
    let (server, _gateway, client) = modern().await;
    server.change(|habits| habits.always = Some((500, "text/plain", "not yet")));
    let (_, code, _) = client.call("1", "echo", "{}").refused().await;
    assert_eq!(code, -32603);
    server.change(|habits| habits.always = None);
    client.works().await;
}

/// Servers without session ids (stateless) are served all the same.
#[tokio::test]
async fn a_server_without_session_ids() {
    let server = Server::with(|habits| habits.sessions = false).await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Modern::new(&gateway, "alpha");
    client.works().await;
    client.works().await;
    assert_eq!(server.seen_method("initialize").len(), 1);
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| !seen.headers.contains_key("mcp-session-id"))
    );
}

/// An older server chooses its own version, and is spoken to in it.
#[tokio::test]
async fn the_version_is_the_servers() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let server = Server::with(|habits| {
            habits.version = Some(version);
            habits.strict = true;
        })
        .await;
        let gateway = Setup::new().server("alpha", &server).start().await;
        Modern::new(&gateway, "alpha").works().await;
    }
}

/// Nobody asked anything for a while: the session is ended at the server, and the next request opens
/// another. A parked call keeps its own.
#[tokio::test]
async fn an_idle_session_ends_and_a_parked_one_does_not() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("sessions: { idle: 1s }")
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    stream
        .send(&json::request(
            "7",
            "elicitation/create",
            &json::form("Who?"),
        ))
        .await;
    let round = going.await.unwrap().round().await;

    let idle = client.declaring(NOTHING);
    for number in 1..=2 {
        assert_eq!(idle.text("count", "{}").await, "1");
        let session = server.opened()[number].clone();
        sees_deleted(&server, &session).await;
    }
    let going = ask.retry("2", &round, &round.all(&accepted("x"))).start();
    server.answer_to("7").await;
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    let session = server.opened()[0].clone();
    sees_deleted(&server, &session).await;
}

/// Two clients of one person use the same id and the same progress token at the same time. Each gets
/// what is its own.
#[tokio::test]
async fn the_same_id_and_token_of_two_clients() {
    let (server, _gateway, client) = modern().await;
    let names = ["one", "two"];
    let mut calls = Vec::new();
    for name in names {
        let ask = client.call("1", name, "{}").token("\"t\"");
        let going = ask.start();
        let stream = server.called(name).await.stream();
        calls.push((name, going, stream));
    }
    let tokens: Vec<_> = calls
        .iter()
        .map(|(_, _, stream)| {
            stream
                .seen
                .raw(&["params", "_meta", "progressToken"])
                .unwrap()
        })
        .collect();
    assert_ne!(tokens[0], tokens[1]);
    assert_ne!(calls[0].2.id, calls[1].2.id);
    // Told crosswise, each on the stream of the other: the stream decides, not the order.
    for (number, (name, _, stream)) in calls.iter().enumerate().rev() {
        let params = format!(
            r#"{{"progressToken":{},"progress":{number},"message":"{name}"}}"#,
            tokens[number]
        );
        stream
            .send(&json::notice("notifications/progress", &params))
            .await;
    }
    for (name, going, stream) in calls {
        let mut reply = going.await.unwrap();
        let progress = reply.json().await;
        assert_eq!(progress["params"]["progressToken"], "t");
        assert_eq!(progress["params"]["message"], name);
        stream.result(&json::text_result(name)).await;
        let text = reply.next().await;
        assert_eq!(
            (json::id(&text).as_str(), json::text_of(&text).as_str()),
            ("1", name)
        );
        reply.ends().await;
    }
    assert_eq!(server.opened().len(), 1);
}

/// Questions of two people under the same id of the server: each to its own, each answer too.
#[tokio::test]
async fn the_same_question_id_of_two_people() {
    let (server, _gateway, mira, joris) = two_people().await;
    let mut calls = Vec::new();
    for (name, client) in [("mira", &mira), ("joris", &joris)] {
        let ask = client.call("1", "ask", "{}");
        let going = ask.start();
        let stream = server.called("ask").await.stream();
        stream
            .send(&json::request("1", "elicitation/create", &json::form(name)))
            .await;
        let round = going.await.unwrap().round().await;
        assert_eq!(round.message(round.only()), name);
        calls.push((name, ask, stream, round));
    }
    for (name, ask, stream, round) in calls.into_iter().rev() {
        let going = ask.retry("2", &round, &round.all(&accepted(name))).start();
        let own = format!("\"{name}\"");
        let seen = server
            .sees(name, |seen| {
                seen.raw(&["result", "content", "nick"]) == Some(own.clone())
            })
            .await;
        assert_eq!(seen.session(), stream.seen.session());
        stream.result(&json::text_result(name)).await;
        assert_eq!(json::text_of(&going.await.unwrap().next().await), name);
    }
}

/// Without authentication, calls have nobody in common: each has a session of its own, which ends with
/// it.
#[tokio::test]
async fn nobodys_calls_share_nothing() {
    let (server, _gateway, client) = open().await;
    for number in 0..3 {
        assert_eq!(client.text("count", "{}").await, "1");
        let session = server.opened()[number].clone();
        sees_deleted(&server, &session).await;
    }
    let going = client.request("1", "tools/list", "{}").start();
    server.asked("tools/list").await.result(r#"{"tools":[]}"#);
    assert_eq!(going.await.unwrap().status, 200);
    client.request("1", "server/discover", "{}").result().await;
    for session in server.opened() {
        sees_deleted(&server, &session).await;
    }
    assert_eq!(deleted(&server).len(), server.opened().len());
}

/// A refusal leaves no session behind at the server either.
#[tokio::test]
async fn nobodys_refused_requests_leave_no_session() {
    let (server, _gateway, client) = open().await;
    assert_eq!(
        client.request("1", "prompts/list", "{}").refused().await.1,
        -32601
    );
    assert_eq!(
        client
            .request("1", "prompts/get", r#"{"name":"x"}"#)
            .refused()
            .await
            .1,
        -32601
    );
    let opened = server.opened();
    for session in &opened {
        sees_deleted(&server, session).await;
    }
    assert_eq!(server.live(), 0);
}

/// A parked call of nobody keeps its session until the outcome; the state is all that ties the two.
#[tokio::test]
async fn nobodys_parked_call() {
    let (server, _gateway, client) = open().await;
    let ask = client.call("1", "ask", "{}");
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    stream
        .send(&json::request(
            "7",
            "elicitation/create",
            &json::form("Who?"),
        ))
        .await;
    let round = going.await.unwrap().round().await;
    client.works().await;
    let going = ask.retry("2", &round, &round.all(&accepted("x"))).start();
    server.answer_to("7").await;
    assert!(!deleted(&server).contains(&server.opened()[0]));
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    let session = server.opened()[0].clone();
    sees_deleted(&server, &session).await;
}

/// A server that forgot a session between its opening and the call: the call goes to another, and both
/// are gone in the end.
#[tokio::test]
async fn nobodys_listening_ends_with_its_stream() {
    let (server, _gateway, client) = open().await;
    let params = r#"{"notifications":{"toolsListChanged":true}}"#;
    let mut reply = client
        .request("1", "subscriptions/listen", params)
        .send()
        .await;
    assert!(reply.next().await.contains("acknowledged"));
    let session = server.opened()[0].clone();
    assert_eq!(server.live(), 1);
    drop(reply);
    sees_deleted(&server, &session).await;
}
