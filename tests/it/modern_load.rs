//! Many people away at once: each with a call of their own at the server, two rounds of questions each,
//! coming back in any order. Each answer must reach the call that asked, none may be lost, and nothing of
//! it may be left when all have gone.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::Barrier;

use crate::support::token::{ISSUER, Key, PUBLIC};
use crate::support::{Gateway, Modern, Round, Server, Setup, json, within};

const PEOPLE: usize = 500;
const ROUNDS: usize = 2;
/// Questions of a round.
const QUESTIONS: usize = 3;
const WAVES: usize = 3;

/// How much more memory may be in use after the last wave than after the first. The allocator keeps what it
/// had, but does not need more for as many people again; 32 KiB left of each of them would.
const GROWTH: usize = 32 << 20;

/// Zero misrouted, zero lost, nothing left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_parked_calls_of_as_many_people() {
    let server = Server::start().await;
    let key = Key::new("k1");
    let setup = Setup::new().server("alpha", &server);
    let jwks = Key::write(&[&key], setup.folder());
    let yaml = format!(
        "public_url: {PUBLIC}\nauth: {{ issuers: [ {{ issuer: \"{ISSUER}\", jwks_file: \"{}\" }} ] }}\nsessions: {{ idle: 10s }}",
        jwks.display()
    );
    let gateway = setup.yaml(&yaml).start().await;
    let people: Vec<_> = (0..PEOPLE)
        .map(|number| key.token(&format!("person-{number}")))
        .collect();
    let before = gateway.descriptors();
    let mut memory = Vec::new();
    for wave in 1..=WAVES {
        assert_eq!(converse(&gateway, &people).await, PEOPLE);
        let all = wave * PEOPLE;
        assert_eq!(server.answers().len(), all * ROUNDS * QUESTIONS);
        assert_eq!(server.seen_method("tools/call").len(), all);
        let gone = async {
            while server.live() > 0 || gateway.descriptors() > before {
                // The system tells nobody that a socket was closed.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within("all sessions and sockets to be gone", gone).await;
        all_ended(&gateway, server.opened().len(), all).await;
        memory.push(gateway.memory());
    }
    let (first, last) = (memory[0], memory[WAVES - 1]);
    assert!(last < first + GROWTH, "memory after each wave: {memory:?}");
}

/// So many sessions were opened in all, and have ended; so have so many calls, and the questions of each. On
/// a machine that is busy a session may be found idle before its call has begun; then that has another one.
async fn all_ended(gateway: &Gateway, sessions: usize, calls: usize) {
    assert!(sessions >= calls, "{sessions} sessions for {calls} calls");
    let closed = |line: &serde_json::Value| line["type"] == "session.closed";
    gateway
        .audited_times("the sessions' end", sessions, closed)
        .await;
    let audit = gateway.audit();
    let questions = calls * ROUNDS * QUESTIONS;
    for (kind, times) in [
        ("session.opened", sessions),
        ("session.closed", sessions),
        ("question.asked", questions),
        ("question.answered", questions),
    ] {
        let lines = audit.iter().filter(|line| line["type"] == kind);
        assert_eq!(lines.count(), times, "{kind}");
    }
    let called = audit.iter().filter(|line| line["method"] == "tools/call");
    assert_eq!(called.count(), calls);
}

/// Everybody calls, and comes back until there is an outcome; gives how many outcomes are made of the
/// person's own answers.
async fn converse(gateway: &Gateway, people: &[String]) -> usize {
    let client = Modern::new(gateway, "alpha").declaring(r#"{"elicitation":{}}"#);
    // All are away before the first comes back.
    let away = Arc::new(Barrier::new(people.len()));
    let tasks: Vec<_> = people
        .iter()
        .enumerate()
        .map(|(number, token)| {
            let (client, away) = (client.bearer(token), Arc::clone(&away));
            tokio::spawn(async move { answer(&client, number, &away).await })
        })
        .collect();
    // The first that fails ends it: the others would wait for it.
    let right = try_join_all(tasks).await.unwrap();
    right.into_iter().filter(|right| *right).count()
}

/// One person's call; says whether its outcome is made of this person's own answers.
async fn answer(client: &Modern, number: usize, away: &Barrier) -> bool {
    let token = format!("token-{number}");
    let arguments = format!(r#"{{"token":"{token}","rounds":{ROUNDS},"at_once":{QUESTIONS}}}"#);
    // All use the same ids.
    let ask = client.call("1", "quiz", &arguments);
    let mut text = ask.send().await.next().await;
    let mut first = true;
    while json::parse(&text)["result"]["resultType"] == "input_required" {
        let round = Round::of(&text);
        if std::mem::take(&mut first) {
            away.wait().await;
        }
        let answers = round.each(|key| {
            let message = round.message(key);
            assert!(message.ends_with(&format!(":{token}")), "{message}");
            format!(r#"{{"action":"accept","content":{{"said":"{message}"}}}}"#)
        });
        text = ask.retry("2", &round, &answers).send().await.next().await;
    }
    let said = (0..ROUNDS * QUESTIONS).map(|number| format!("\"{number}:{token}\""));
    json::text_of(&text) == said.collect::<Vec<_>>().join(",")
}
