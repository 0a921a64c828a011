//! Progress and logs of a modern client's call: on the request that is attached, under its own token,
//! from its own level on, and kept while it is away.

use crate::support::{Ask, Modern, Round, Server, Stream, accepted, json, modern};

/// Sends this call of `ask`, and gives the server's side of it.
async fn begun(
    server: &Server,
    ask: &Ask,
) -> (tokio::task::JoinHandle<crate::support::Reply>, Stream) {
    let going = ask.start();
    (going, server.called("ask").await.stream())
}

async fn progress(stream: &Stream, progress: &str) {
    let token = stream.seen.raw(&["params", "_meta", "progressToken"]);
    let token = token.expect("the server was asked for progress");
    let params = format!(r#"{{"progressToken":{token},"progress":{progress},"message":"so far"}}"#);
    stream
        .send(&json::notice("notifications/progress", &params))
        .await;
}

async fn log(stream: &Stream, level: &str, data: &str) {
    let params = format!(r#"{{"level":"{level}","logger":"l","data":{data}}}"#);
    stream
        .send(&json::notice("notifications/message", &params))
        .await;
}

async fn asks(stream: &Stream, id: &str) {
    stream
        .send(&json::request(
            id,
            "elicitation/create",
            &json::form("Who?"),
        ))
        .await;
}

/// A client that wants logs, and its server told so.
async fn wanting(server: &Server, client: &Modern, level: &str) -> Ask {
    let ask = client.call("1", "ask", "{}").level(level);
    let warm = client.call("1", "echo", "{}").level(level).start();
    server.asked("logging/setLevel").await.result("{}");
    warm.await.unwrap();
    ask
}

/// Under the client's own token, as it is spelled, and in order; the rest of the notification as it was.
#[tokio::test]
async fn progress_under_the_clients_own_token() {
    let (server, _gateway, client) = modern().await;
    for token in ["\"t\"", "7", "\"\\u0041\"", "0"] {
        let (going, stream) = begun(&server, &client.call("1", "ask", "{}").token(token)).await;
        for value in ["1", "2.50", "3e0"] {
            progress(&stream, value).await;
        }
        let mut reply = going.await.unwrap();
        assert!(reply.is_stream());
        for value in ["1", "2.50", "3e0"] {
            let text = reply.next().await;
            assert_eq!(
                json::raw(&text, &["params", "progressToken"]).as_deref(),
                Some(token)
            );
            assert_eq!(
                json::raw(&text, &["params", "progress"]).as_deref(),
                Some(value)
            );
            assert_eq!(
                json::raw(&text, &["params", "message"]).as_deref(),
                Some("\"so far\"")
            );
        }
        stream.result(&json::text_result("done")).await;
        assert_eq!(json::text_of(&reply.next().await), "done");
        reply.ends().await;
    }
}

/// Who asks for no progress gets none: the answer is a plain body.
#[tokio::test]
async fn no_token_no_progress() {
    let (server, _gateway, client) = modern().await;
    let (going, stream) = begun(&server, &client.call("1", "ask", "{}")).await;
    if let Some(token) = stream.seen.raw(&["params", "_meta", "progressToken"]) {
        let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
        stream
            .send(&json::notice("notifications/progress", &params))
            .await;
    }
    stream
        .send(&json::notice(
            "notifications/progress",
            r#"{"progressToken":"made up","progress":1}"#,
        ))
        .await;
    stream.result(&json::text_result("done")).await;
    let mut reply = going.await.unwrap();
    assert!(!reply.is_stream());
    assert_eq!(json::text_of(&reply.next().await), "done");
}

/// Logs only for who asked, and from the level on that they asked for.
#[tokio::test]
async fn logs_from_the_level_on() {
    let (server, _gateway, client) = modern().await;
    let ask = wanting(&server, &client, "warning").await;
    let (going, stream) = begun(&server, &ask).await;
    let (silent, other) = begun(&server, &client.call("1", "ask", "{}")).await;
    for stream in [&stream, &other] {
        for level in [
            "debug",
            "info",
            "notice",
            "warning",
            "error",
            "emergency",
            "loud",
        ] {
            log(stream, level, &format!(r#"{{"l":"{level}","n":1.0}}"#)).await;
        }
    }
    let mut reply = going.await.unwrap();
    for level in ["warning", "error", "emergency"] {
        let text = reply.next().await;
        assert_eq!(json::parse(&text)["params"]["level"], level);
        assert_eq!(
            json::raw(&text, &["params", "data", "n"]).as_deref(),
            Some("1.0")
        );
    }
    stream.result("{}").await;
    assert!(reply.json().await["result"].is_object());
    reply.ends().await;
    other.result("{}").await;
    assert!(!silent.await.unwrap().is_stream());
}

/// The server is told the most verbose level that somebody wants, once.
#[tokio::test]
async fn the_server_is_told_the_level() {
    let (server, _gateway, client) = modern().await;
    for (level, told) in [
        ("error", Some("error")),
        ("critical", None),
        ("error", None),
        ("debug", Some("debug")),
        ("info", None),
    ] {
        let going = client.call("1", "echo", "{}").level(level).start();
        if let Some(told) = told {
            let held = server.asked("logging/setLevel").await;
            assert_eq!(
                held.seen.raw(&["params", "level"]),
                Some(format!("\"{told}\""))
            );
            held.result("{}");
        }
        assert_eq!(going.await.unwrap().status, 200, "{level}");
    }
    assert_eq!(server.seen_method("logging/setLevel").len(), 2);
}

/// A server that does not log is not told a level.
#[tokio::test]
async fn a_server_that_does_not_log() {
    let server = Server::with(|habits| habits.capabilities = r#"{"tools":{}}"#).await;
    let gateway = crate::support::Setup::new()
        .server("alpha", &server)
        .start()
        .await;
    Modern::new(&gateway, "alpha")
        .call("1", "echo", "{}")
        .level("debug")
        .result()
        .await;
    assert!(server.seen_method("logging/setLevel").is_empty());
}

/// While the client is away, the newest progress and the logs are kept. They come first when it is back,
/// under the token that it brings, for the level that it brings.
#[tokio::test]
async fn kept_while_the_client_is_away() {
    let (server, gateway, client) = modern().await;
    let ask = wanting(&server, &client, "info").await.token("\"before\"");
    let (going, stream) = begun(&server, &ask).await;
    asks(&stream, "7").await;
    let round = going.await.unwrap().round().await;
    for value in ["1", "2", "3"] {
        progress(&stream, value).await;
    }
    log(&stream, "info", "1").await;
    log(&stream, "error", "2").await;
    // The fence: when this has come, so has what was before it.
    asks(&stream, "8").await;
    gateway
        .audited_times("question.asked", 2, |line| line["type"] == "question.asked")
        .await;
    let retry = ask
        .retry("2", &round, &round.all(&accepted("x")))
        .token("\"after\"")
        .level("error");
    let mut reply = retry.send().await;
    let mut seen = Vec::new();
    let last = loop {
        let text = reply.next().await;
        let message = json::parse(&text);
        if message.get("method").is_none() {
            break text;
        }
        seen.push(message);
    };
    let values: Vec<_> = seen
        .iter()
        .filter(|it| it["method"] == "notifications/progress")
        .map(|it| {
            assert_eq!(it["params"]["progressToken"], "after");
            it["params"]["progress"].as_i64().unwrap()
        })
        .collect();
    assert_eq!(values.last(), Some(&3));
    assert!(values.is_sorted(), "{values:?}");
    let logs: Vec<_> = seen
        .iter()
        .filter(|it| it["method"] == "notifications/message")
        .collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    assert_eq!(logs[0]["params"]["data"], 2);
    let next = Round::of(&last);
    reply.ends().await;
    let going = ask.retry("3", &next, &next.all(&accepted("y"))).start();
    server.answer_to("8").await;
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// Flushed before an outcome that is there already.
#[tokio::test]
async fn kept_until_the_outcome_is_fetched() {
    let (server, gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}").token("\"t\"");
    let (going, stream) = begun(&server, &ask).await;
    asks(&stream, "7").await;
    let round = going.await.unwrap().round().await;
    progress(&stream, "9").await;
    stream.result(&json::text_result("done")).await;
    gateway
        .audited("the call", |line| line["method"] == "tools/call")
        .await;
    let mut reply = ask
        .retry("2", &round, &round.all(&accepted("x")))
        .send()
        .await;
    assert_eq!(reply.json().await["params"]["progress"], 9);
    assert_eq!(json::text_of(&reply.next().await), "done");
    reply.ends().await;
}

/// The request that comes back may want progress though the first did not.
#[tokio::test]
async fn a_retry_that_wants_progress_where_the_first_request_did_not() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let (going, stream) = begun(&server, &ask).await;
    asks(&stream, "7").await;
    let round = going.await.unwrap().round().await;
    let going = ask
        .retry("2", &round, &round.all(&accepted("x")))
        .token("\"late\"")
        .start();
    server.answer_to("7").await;
    progress(&stream, "1").await;
    let mut reply = going.await.unwrap();
    assert_eq!(reply.json().await["params"]["progressToken"], "late");
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&reply.next().await), "done");
}

/// A log on the standalone stream is of a call if there is one only; of two it could be either's.
#[tokio::test]
async fn logs_on_the_get_stream() {
    let (server, _gateway, client) = modern().await;
    let ask = wanting(&server, &client, "debug").await;
    let listening = server.last_get_stream().await;
    let (going, stream) = begun(&server, &ask).await;
    log(&listening, "info", "\"alone\"").await;
    let mut reply = going.await.unwrap();
    assert_eq!(reply.json().await["params"]["data"], "alone");
    let (second, other) = begun(&server, &ask).await;
    log(&listening, "info", "\"whose\"").await;
    // The fence: the pong shows that what came before on this stream was dealt with.
    listening.send(&json::request("\"p\"", "ping", "{}")).await;
    server.answer_to("\"p\"").await;
    stream.result("{}").await;
    assert!(reply.json().await["result"].is_object());
    other.result("{}").await;
    let mut second = second.await.unwrap();
    assert!(second.json().await["result"].is_object());
}

/// A client that reads nothing misses notifications, and holds up nobody.
#[tokio::test]
async fn f51_a_client_that_does_not_read() {
    let (server, _gateway, client) = modern().await;
    let (going, stream) = begun(&server, &client.call("1", "ask", "{}").token("\"t\"")).await;
    for value in 0..2000 {
        let token = stream
            .seen
            .raw(&["params", "_meta", "progressToken"])
            .unwrap();
        let fill = "x".repeat(4096);
        let params =
            format!(r#"{{"progressToken":{token},"progress":{value},"message":"{fill}"}}"#);
        stream
            .send(&json::notice("notifications/progress", &params))
            .await;
    }
    client.works().await;
    let mut reply = going.await.unwrap();
    stream.result(&json::text_result("done")).await;
    let mut last = -1;
    loop {
        let message = reply.json().await;
        if message.get("method").is_none() {
            assert_eq!(message["result"]["content"][0]["text"], "done");
            break;
        }
        let value = message["params"]["progress"].as_i64().unwrap();
        assert!(value > last, "progress only rises");
        last = value;
    }
}

/// F56: what comes after the outcome is nobody's.
#[tokio::test]
async fn f56_progress_after_the_outcome() {
    let (server, _gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}").token("\"t\"");
    let (going, stream) = begun(&server, &ask).await;
    let token = stream
        .seen
        .raw(&["params", "_meta", "progressToken"])
        .unwrap();
    let late = json::notice(
        "notifications/progress",
        &format!(r#"{{"progressToken":{token},"progress":2}}"#),
    );
    progress(&stream, "1").await;
    let both = format!(
        "data: {}\n\ndata: {late}\n\n",
        json::result(&stream.id, "{}")
    );
    stream.bytes(&both).await;
    let mut reply = going.await.unwrap();
    assert_eq!(reply.json().await["params"]["progress"], 1);
    assert!(reply.json().await["result"].is_object());
    reply.ends().await;
    let listening = server.last_get_stream().await;
    listening.send(&late).await;
    client.works().await;
}
