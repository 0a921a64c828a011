//! The first command that anybody runs: it shows the main job, and needs nothing.

use crate::support::gateway::run;

/// The conversation is played to its end: question, answer, result, audit.
#[tokio::test]
async fn the_main_job_in_one_command() {
    let output = run(&["demo", "--once", "--port", "0"]).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut rest = said.as_str();
    for word in [
        "question",
        "answer",
        "result",
        "question.asked",
        "question.answered",
        "call",
    ] {
        let position = rest
            .find(word)
            .unwrap_or_else(|| panic!("no {word} in its place: {said}"));
        rest = &rest[position..];
    }
}

/// A port in use is said in words.
#[tokio::test]
async fn a_port_in_use() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = run(&["demo", "--once", "--port", &port]).await;
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&port) && said.contains("--port"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}
