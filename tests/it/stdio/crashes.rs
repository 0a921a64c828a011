//! Programs that end when nobody wants them to.

use super::{Process, Starts, legacy, legacy_with, open, visitor};
use crate::support::{Client, EVERYTHING, accepted, json};

/// Reported in ferro-labs/ai-gateway#353 and #361, MoonshotAI/kimi-code#2109, GCWing/OpenBitFun#888.
#[tokio::test]
async fn a_call_in_flight_gets_an_error_that_names_the_server() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let mut hanging = session.call("0", "hang_and_tell", "{}").await;
    hanging.next().await;
    let mut reply = session.call("1", "exit", "{}").await;
    for reply in [&mut reply, &mut hanging] {
        let error = reply.json().await["error"].clone();
        assert_eq!(error["code"], -31003, "{error}");
        assert_eq!(error["data"]["upstream"], "alpha", "{error}");
        assert_eq!(error["data"]["reason"], "session_lost", "{error}");
        let text = error["message"].as_str().unwrap();
        assert!(text.contains(r#"the server "alpha""#), "{text}");
    }
    gateway.says("the server process has ended by itself").await;
    gateway.says("exit status: 3").await;
    // Its last words are in the log: they say why.
    gateway.says("out of order").await;
}

#[tokio::test]
async fn a_modern_client_gets_the_error_too_and_the_next_call_a_new_process() {
    let gateway = legacy().await;
    let client = visitor(&gateway);
    let first = Process::read(&client.text("pid", "{}").await);
    let (status, code, reason) = client.call("1", "exit", "{}").refused().await;
    assert_eq!(
        (status, code, reason.as_str()),
        (200, -31003, "session_lost")
    );
    first.is_gone().await;
    let second = Process::read(&client.text("pid", "{}").await);
    assert_ne!(first, second);
}

/// Reported in ferro-labs/ai-gateway#353 and #361, MoonshotAI/kimi-code#2109, GCWing/OpenBitFun#888.
#[tokio::test]
async fn a_question_of_a_program_that_has_ended_is_withdrawn() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&go)
            .status()
            .unwrap()
            .success()
    );
    let gateway = legacy_with(&[], &format!("env: {{ GO: \"{}\" }}", go.display())).await;
    let session = open(&gateway).await;
    let mut reply = session.call("1", "ask_and_exit", "{}").await;
    let question = reply.question("elicitation/create").await;
    tokio::fs::write(&go, "now\n").await.unwrap();
    let mut withdrawn = false;
    let mut is_notice = |message: &str| {
        let method = json::method(message);
        let cancelled = method.as_deref() == Some("notifications/cancelled");
        withdrawn |= cancelled && message.contains(&json::id(&question));
        method.is_some()
    };
    let failure = loop {
        let message = reply.next().await;
        if !is_notice(&message) {
            break json::parse(&message);
        }
    };
    assert_eq!(failure["error"]["code"], -31003, "{failure}");
    // The session goes on with another process, which knows nothing of the question; its person is told, on
    // whichever stream there is.
    let mut next = session.call("2", "echo", r#"{"x":1}"#).await;
    let answer = loop {
        let message = next.next().await;
        if !is_notice(&message) {
            break message;
        }
    };
    assert_eq!(json::text_of(&answer), "1");
    assert!(withdrawn);
    let ended = gateway
        .audited("the end of the question", |line| {
            line["type"] == "question.answered"
        })
        .await;
    assert_ne!(ended["outcome"], "ok", "{ended}");
    // An answer that comes too late hurts nobody.
    session.answer(&question, r#"{"action":"decline"}"#).await;
    session.works().await;
}

#[tokio::test]
async fn a_parked_call_of_a_program_that_has_ended_fails_when_its_client_comes_back() {
    let gateway = legacy().await;
    let client = visitor(&gateway);
    let process = Process::read(&client.text("pid", "{}").await);
    let ask = client.call("1", "ask", r#"{"x":"who"}"#);
    let round = ask.send().await.round().await;
    process.signal("KILL");
    process.is_gone().await;
    let again = ask.retry("2", &round, &round.all(&accepted("Mo")));
    let message = again.send().await.json().await;
    let asks_again = message["result"]["resultType"] == "input_required";
    assert!(message["error"].is_object() || asks_again, "{message}");
    client.works().await;
}

#[tokio::test]
async fn what_was_written_just_before_the_end_arrives() {
    let gateway = legacy().await;
    for _ in 0..10 {
        let session = open(&gateway).await;
        let mut reply = session.call("1", "result_and_exit", "{}").await;
        let log = reply.json().await;
        assert_eq!(log["params"]["data"], "last words", "{log}");
        assert_eq!(json::text_of(&reply.next().await), "done");
    }
    let client = visitor(&gateway);
    for _ in 0..5 {
        let process = Process::read(&client.text("pid", "{}").await);
        assert_eq!(client.text("result_and_exit", "{}").await, "done");
        process.is_gone().await;
    }
}

#[tokio::test]
async fn a_program_that_shuts_its_output_is_ended() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let process = Process::of(&session).await;
    assert_eq!(
        session.call("1", "shut_output", "{}").await.error().await,
        -31003
    );
    process.is_gone().await;
}

/// A child of it holds its pipes; that is not it.
#[tokio::test]
async fn a_program_whose_pipes_are_held_by_others_has_ended_all_the_same() {
    let gateway = legacy().await;
    let session = open(&gateway).await;
    let process = Process::of(&session).await;
    let heir = Process::read(&session.text("legacy_of_pipes", "{}").await);
    process.is_gone().await;
    let next = open(&gateway).await;
    next.works().await;
    heir.signal("KILL");
}

/// Reported in supercorp-ai/supergateway#139, anthropics/claude-code#35287.
#[tokio::test]
async fn a_program_that_ends_before_it_answers_initialize_says_so() {
    let gateway = legacy_with(&["ends-early"], "").await;
    let client = Client::new(&gateway, "alpha");
    let mut reply = client
        .post(crate::support::client::initialize("2025-11-25", EVERYTHING))
        .await;
    let error = reply.json().await["error"].clone();
    assert_eq!(error["code"], -32603, "{error}");
    let text = error["message"].as_str().unwrap();
    assert_eq!(
        text,
        r#"the server "alpha" ended before it answered initialize"#
    );
    gateway.says("can't begin").await;
    gateway.says("exit status: 2").await;
}

/// Started again and again it would only burden the machine; and when it is well again, all may use it.
#[tokio::test]
async fn a_program_that_ends_at_once_is_left_alone_for_a_while_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (starts, healthy) = (Starts::within(folder.path()), folder.path().join("healthy"));
    let env = format!(
        "env: {{ STARTS: \"{}\", HEALTHY: \"{}\" }}",
        starts.path().display(),
        healthy.display()
    );
    let gateway = legacy_with(&["sick"], &env).await;
    let client = Client::new(&gateway, "alpha");
    let initialize = || client.post(crate::support::client::initialize("2025-11-25", EVERYTHING));
    let mut codes = Vec::new();
    for _ in 0..12 {
        codes.push(initialize().await.error().await);
    }
    assert_eq!(codes[0], -32603, "it was started, and ended");
    assert_eq!(
        *codes.last().unwrap(),
        -31001,
        "it is left alone: {codes:?}"
    );
    assert!(starts.all().len() < 12, "{:?}", starts.all().len());
    // Its log takes one such line in a second.
    crate::support::within("the operator to be told", async {
        while !gateway
            .output()
            .contains("it could not be reached several times")
        {
            initialize().await.error().await;
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await;
    std::fs::write(&healthy, "").unwrap();
    let session = crate::support::within("it to come back", async {
        loop {
            let mut reply = initialize().await;
            if reply.status == 200 && !reply.next().await.contains("error") {
                let id = reply.header("mcp-session-id").to_owned();
                return client.session(&id, "2025-11-25");
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    // It lives, so the next ones need not wait.
    for _ in 0..5 {
        open(&gateway).await.works().await;
    }
    assert_eq!(session.post(json::call("1", "pid", "{}")).await.status, 200);
}
