//! Many people away at once: each with a call of their own at the server, two rounds each, coming back
//! in any order. Each answer must reach the call that asked, none may be lost.

use std::sync::Arc;

use tokio::sync::Barrier;

use crate::support::token::{ISSUER, Key, PUBLIC};
use crate::support::{Modern, Server, Setup, json};

const PEOPLE: usize = 500;
const ROUNDS: usize = 2;

/// Zero misrouted, zero lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_parked_calls_of_as_many_people() {
    let server = Server::start().await;
    let key = Key::new("k1");
    let setup = Setup::new().server("alpha", &server);
    let jwks = Key::write(&[&key], setup.folder());
    let yaml = format!(
        "public_url: {PUBLIC}\nauth: {{ issuers: [ {{ issuer: \"{ISSUER}\", jwks_file: \"{}\" }} ] }}",
        jwks.display()
    );
    let gateway = setup.yaml(&yaml).start().await;
    let client = Modern::new(&gateway, "alpha").declaring(r#"{"elicitation":{}}"#);
    // All are away before the first comes back, in each round.
    let away = Arc::new(Barrier::new(PEOPLE));
    let tasks: Vec<_> = (0..PEOPLE)
        .map(|number| {
            let client = client.bearer(&key.token(&format!("person-{number}")));
            let away = Arc::clone(&away);
            tokio::spawn(async move { converse(&client, number, &away).await })
        })
        .collect();
    let mut right = 0;
    for task in tasks {
        right += usize::from(task.await.unwrap());
    }
    assert_eq!(right, PEOPLE);
    assert_eq!(server.answers().len(), PEOPLE * ROUNDS);
    assert_eq!(server.opened().len(), PEOPLE);
    assert_eq!(server.seen_method("tools/call").len(), PEOPLE);
}

/// One person's call; says whether its outcome is made of this person's own answers.
async fn converse(client: &Modern, number: usize, away: &Barrier) -> bool {
    let token = format!("token-{number}");
    let arguments = format!(r#"{{"token":"{token}","rounds":{ROUNDS}}}"#);
    // All use the same ids.
    let ask = client.call("1", "quiz", &arguments);
    let mut text = ask.send().await.next().await;
    let mut said = Vec::new();
    for number in 1..=ROUNDS {
        let round = crate::support::Round::of(&text);
        assert_eq!(round.message(round.only()), token);
        away.wait().await;
        let word = format!("{token}-{number}");
        let answer = format!(r#"{{"action":"accept","content":{{"said":"{word}"}}}}"#);
        said.push(format!("\"{word}\""));
        text = ask
            .retry("2", &round, &round.all(&answer))
            .send()
            .await
            .next()
            .await;
    }
    json::text_of(&text) == said.join(",")
}
