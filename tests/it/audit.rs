//! The audit log: who did what at which server, how it ended, in a chain that shows every later change,
//! across restarts, crashes and full disks.

use std::path::Path;

use crate::support::gateway::run;
use crate::support::{Client, EVERYTHING, Gateway, NOTHING, Server, Setup, json, pair, triple};

/// A call, from the first line to the last.
#[tokio::test]
async fn a_call_and_its_session() {
    let (_server, mut gateway, session) = triple().await;
    session.works().await;
    assert!(session.delete().await.is_success());
    gateway
        .audited("the end", |line| line["type"] == "session.closed")
        .await;
    gateway.terminate().await;
    assert!(gateway.exit().await.success());
    let lines = gateway.audit();
    let kinds: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"gateway.started"));
    assert_eq!(kinds.last(), Some(&"gateway.stopped"));
    let find = |kind: &str| lines.iter().find(|line| line["type"] == kind).unwrap();
    let call = find("call");
    assert_eq!(call["method"], "tools/call");
    assert_eq!(call["target"], "echo");
    assert_eq!(call["server"], "alpha");
    assert_eq!(call["outcome"], "ok");
    assert_eq!(call["principal"]["subject"], "local");
    assert!(call["duration_ms"].is_number());
    assert_eq!(call["session"], find("session.opened")["session"]);
    assert_eq!(call["session"], find("session.closed")["session"]);
    assert!(
        !lines
            .iter()
            .any(|line| line.to_string().contains(&session.id)),
        "ids are keys"
    );
}

/// Every way in which a call can end has its own outcome.
#[tokio::test]
async fn the_outcome_of_a_call() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { call: 2s }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let outcome = async |tool: &str| {
        gateway
            .audited(tool, |line| {
                line["type"] == "call" && line["target"] == tool
            })
            .await
    };

    let call = session.start(json::call("1", "fails", "{}"));
    let held = server.called("fails").await;
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32602,"message":"no"}}}}"#,
        held.id()
    );
    held.respond(200, "application/json", &error);
    call.await.unwrap().next().await;
    let line = outcome("fails").await;
    assert_eq!(
        (&line["outcome"], &line["code"]),
        (&"error".into(), &(-32602).into())
    );

    let call = session.start(json::call("2", "breaks", "{}"));
    server.called("breaks").await.stream().abort().await;
    call.await.unwrap().next().await;
    assert_eq!(outcome("breaks").await["outcome"], "lost");

    let call = session.start(json::call("3", "stopped", "{}"));
    let held = server.called("stopped").await;
    session
        .notify("notifications/cancelled", r#"{"requestId":3}"#)
        .await;
    server.notice("notifications/cancelled").await;
    held.try_respond(crate::support::server::response(202, "", String::new()));
    drop(call.await);
    assert_eq!(outcome("stopped").await["outcome"], "cancelled");

    let call = session.start(json::call("4", "sleeps", "{}"));
    let _held = server.called("sleeps").await;
    call.await.unwrap().next().await;
    assert_eq!(outcome("sleeps").await["outcome"], "timeout");
}

/// A question that a person answers, one that runs out, one that the client never hears of.
#[tokio::test]
async fn every_question_has_one_end() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { question: 500ms }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha")
        .open(r#"{"elicitation":{}}"#)
        .await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    stream
        .send(&json::request("1", "elicitation/create", &json::form("?")))
        .await;
    let question = reply.question("elicitation/create").await;
    session.answer(&question, r#"{"action":"decline"}"#).await;
    server.answer_to("1").await;
    stream
        .send(&json::request("2", "elicitation/create", &json::form("?")))
        .await;
    server.cancelled("2").await;
    stream.send(&json::request("3", "roots/list", "{}")).await;
    server.error_to("3").await;
    stream.result("{}").await;
    while reply.maybe_next().await.is_some() {}
    gateway
        .audited("the call", |line| line["type"] == "call")
        .await;

    let lines = gateway.audit();
    let of = |kind: &str| {
        lines
            .iter()
            .filter(|line| line["type"] == kind)
            .collect::<Vec<_>>()
    };
    let (asked, answered) = (of("question.asked"), of("question.answered"));
    assert_eq!(asked.len(), 2, "{lines:#?}");
    assert_eq!(answered.len(), 3, "{lines:#?}");
    assert_eq!(answered[0]["action"], "decline");
    assert!(answered[0]["waited_ms"].is_number());
    for (line, outcome) in answered.iter().zip(["ok", "timeout", "refused"]) {
        assert_eq!(line["outcome"], outcome, "{line}");
    }
    assert_eq!(asked[1]["question"]["id"], answered[1]["question"]["id"]);
}

/// Where a person is sent is on the record; what is in the address is not.
#[tokio::test]
async fn of_a_url_only_the_host() {
    let (server, gateway, session) = triple().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    let params = r#"{"mode":"url","elicitationId":"e","url":"https://pay.example.test/canary-path?x=canary-query","message":"canary-message"}"#;
    stream
        .send(&json::request("1", "elicitation/create", params))
        .await;
    let question = reply.question("elicitation/create").await;
    session.answer(&question, r#"{"action":"accept"}"#).await;
    let asked = gateway
        .audited("asked", |line| line["type"] == "question.asked")
        .await;
    assert_eq!(asked["question"]["mode"], "url");
    assert_eq!(asked["question"]["host"], "pay.example.test");
    assert!(!asked.to_string().contains("canary"), "{asked}");
    stream.result("{}").await;
    reply.next().await;
}

/// `audit verify` counts an untouched log, and finds the line of every kind of change.
#[tokio::test]
async fn every_change_is_found() {
    let (_server, mut gateway, session) = triple().await;
    for _ in 0..5 {
        session.works().await;
    }
    gateway.terminate().await;
    gateway.exit().await;
    let text = std::fs::read_to_string(gateway.audit_file()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let output = verify(&gateway.audit_file()).await;
    assert_eq!(output.0, Some(0), "{}", output.1);
    assert!(output.1.contains(&lines.len().to_string()), "{}", output.1);

    let folder = tempfile::tempdir().unwrap();
    let changed = folder.path().join("changed.jsonl");
    let mut swapped = lines.clone();
    swapped.swap(2, 3);
    let mut removed = lines.clone();
    removed.remove(2);
    let mut doubled = lines.clone();
    doubled.insert(3, lines[2]);
    let edited = lines[2].replace("alpha", "omega");
    assert_ne!(edited, lines[2]);
    let mut other = lines.clone();
    other[2] = &edited;
    let mut garbage = lines.clone();
    garbage.insert(2, "not a record");
    for (case, content) in [
        ("swapped", swapped),
        ("removed", removed),
        ("doubled", doubled),
        ("edited", other),
        ("garbage", garbage),
    ] {
        std::fs::write(&changed, content.join("\n") + "\n").unwrap();
        let (code, said) = verify(&changed).await;
        assert_eq!(code, Some(1), "{case}: {said}");
        assert!(
            said.contains('3') || said.contains('4'),
            "{case} names the line: {said}"
        );
    }
    std::fs::write(&changed, lines[1..].join("\n") + "\n").unwrap();
    assert_eq!(
        verify(&changed).await.0,
        Some(1),
        "the first line is missing"
    );
    let absent = folder.path().join("absent.jsonl");
    assert_ne!(verify(&absent).await.0, Some(0));
}

/// A log that was cut at its end is a shorter log. Whoever kept the newest hash sees that it is gone.
#[tokio::test]
async fn a_cut_end_is_found_with_the_newest_hash() {
    let (_server, mut gateway, session) = triple().await;
    session.works().await;
    gateway.terminate().await;
    gateway.exit().await;
    let file = gateway.audit_file();
    let (_, said) = verify(&file).await;
    let (_, newest) = said.trim_end().rsplit_once("newest hash ").unwrap();
    assert_eq!(gateway.audit().last().unwrap()["hash"], newest);
    let kept = async || {
        let arguments = [
            "audit",
            "verify",
            "--newest",
            newest,
            file.to_str().unwrap(),
        ];
        let output = run(&arguments).await;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), said)
    };
    assert_eq!(kept().await.0, Some(0));

    let text = std::fs::read_to_string(&file).unwrap();
    let (without, _) = text.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&file, format!("{without}\n")).unwrap();
    assert_eq!(verify(&file).await.0, Some(0), "the chain alone can't tell");
    let (code, said) = kept().await;
    assert_eq!(code, Some(1));
    assert!(said.contains("the end was cut"), "{said}");

    std::fs::write(&file, "").unwrap();
    let (code, said) = verify(&file).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("no records"), "{said}");
}

/// The chain goes on after a restart, and after a crash.
#[tokio::test]
async fn the_chain_goes_on() {
    let server = Server::start().await;
    let mut gateway = Setup::new().server("alpha", &server).start().await;
    for crash in [false, true, false] {
        let session = Client::new(&gateway, "alpha").open(NOTHING).await;
        session.works().await;
        let calls = gateway
            .audit()
            .iter()
            .filter(|line| line["type"] == "call")
            .count();
        gateway
            .audited_times("the call", calls.max(1), |line| line["type"] == "call")
            .await;
        if crash {
            gateway.kill().await;
        } else {
            gateway.terminate().await;
            assert!(gateway.exit().await.success());
        }
        gateway = Setup::new()
            .after(&gateway)
            .server("alpha", &server)
            .start()
            .await;
        gateway
            .audited("a start", |line| line["type"] == "gateway.started")
            .await;
    }
    let (code, said) = verify(&gateway.audit_file()).await;
    assert_eq!(code, Some(0), "{said}");
    gateway
        .audited_times("four starts", 4, |line| line["type"] == "gateway.started")
        .await;
}

/// A crash in the middle of a line: the log goes on behind it, and says so.
#[tokio::test]
async fn half_a_line_at_the_end() {
    let (server, mut gateway) = pair().await;
    gateway
        .audited("a start", |line| line["type"] == "gateway.started")
        .await;
    gateway.kill().await;
    let mut text = std::fs::read_to_string(gateway.audit_file()).unwrap();
    text.push_str(r#"{"type":"call","se"#);
    std::fs::write(gateway.audit_file(), text).unwrap();
    let gateway = Setup::new()
        .after(&gateway)
        .server("alpha", &server)
        .start()
        .await;
    Client::new(&gateway, "alpha")
        .open(NOTHING)
        .await
        .works()
        .await;
}

/// The disk is full and records matter most: calls are refused, nothing crashes, nobody hangs.
#[tokio::test]
async fn a_full_disk_that_refuses() {
    let (_server, gateway) = full("refuse").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let mut refused = false;
    for _ in 0..200 {
        let mut reply = session.call("1", "echo", r#"{"x":1}"#).await;
        let answer = reply.json().await;
        if answer["error"].is_object() {
            assert_eq!(answer["error"]["data"]["source"], "gateway", "{answer}");
            refused = true;
            break;
        }
    }
    assert!(
        refused,
        "the disk never filled: {} lines",
        gateway.audit().len()
    );
}

/// The disk is full and service matters most: calls go on.
#[tokio::test]
async fn a_full_disk_that_drops() {
    let (server, gateway) = full("drop").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    for _ in 0..200 {
        session.works().await;
    }
    assert_eq!(server.seen_method("tools/call").len(), 200);
    let size = std::fs::metadata(gateway.audit_file()).unwrap().len();
    assert!(size <= 16 * 1024, "the disk never filled");
}

async fn full(when_full: &str) -> (Server, Gateway) {
    let server = Server::start().await;
    let setup = Setup::new().server("alpha", &server).no_audit().disk(16);
    let file = setup.folder().join("audit.jsonl");
    let yaml = format!(
        "audit: {{ file: \"{}\", when_full: {when_full} }}",
        file.display()
    );
    (server, setup.yaml(&yaml).start().await)
}

async fn verify(file: &Path) -> (Option<i32>, String) {
    let output = run(&["audit".as_ref(), "verify".as_ref(), file.as_os_str()]).await;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code(), said.into_owned())
}
