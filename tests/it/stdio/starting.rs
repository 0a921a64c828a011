//! What a program finds around it, and programs that can't be started.

use super::{legacy_with, open, setup};
use crate::support::client::initialize;
use crate::support::{Client, EVERYTHING, Setup};

#[tokio::test]
async fn the_environment_is_what_is_written_down() {
    let gateway = setup(&[], "env: { GREETING: hello, KEY: \"${SECRET}\" }")
        .env("SECRET", "s3cret")
        .env("AWS_SECRET_ACCESS_KEY", "not-for-programs")
        .env("LANG", "C.UTF-8")
        .start()
        .await;
    let session = open(&gateway).await;
    let text = session.text("env", "{}").await;
    let mut names: Vec<_> = text
        .split_whitespace()
        .filter_map(|variable| variable.split_once('='))
        .collect();
    names.sort_unstable();
    names.retain(|(name, _)| !["PATH", "HOME", "TMPDIR"].contains(name));
    let expected = [
        ("GREETING", "hello"),
        ("KEY", "s3cret"),
        ("LANG", "C.UTF-8"),
    ];
    assert_eq!(names, expected, "{text}");
    assert!(!gateway.output().contains("s3cret"));
}

#[tokio::test]
async fn a_program_starts_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let gateway = legacy_with(&[], &format!("cwd: \"{}\"", path.display())).await;
    let text = open(&gateway).await.text("pwd", "{}").await;
    assert_eq!(text, path.to_str().unwrap());
}

/// Each client hears that the server is not reachable, and the log says why.
async fn can_not_be_started(setup: Setup, why: &str) {
    let gateway = setup.start().await;
    let client = Client::new(&gateway, "alpha");
    let mut reply = client.post(initialize("2025-11-25", EVERYTHING)).await;
    assert_eq!(reply.status, 200);
    let error = reply.json().await["error"].clone();
    assert_eq!(error["code"], -31001, "{error}");
    assert_eq!(error["message"], r#"the server "alpha" is not reachable"#);
    gateway
        .says("the server is unreachable: the program can't be started")
        .await;
    gateway.says(why).await;
    let (_, code, _) = super::visitor(&gateway)
        .call("1", "pid", "{}")
        .refused()
        .await;
    assert_eq!(code, -31001);
}

/// Reported in supercorp-ai/supergateway#139, anthropics/claude-code#35287.
#[tokio::test]
async fn a_program_that_is_not_there() {
    for era in ["legacy", "modern", "auto"] {
        let setup = Setup::new().program(
            "alpha",
            &["there-is-no-such-program"],
            &format!("era: {era}"),
        );
        can_not_be_started(setup, "there is no such program on PATH").await;
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there() {
    can_not_be_started(
        setup(&[], "cwd: /there/is/no/such/folder"),
        "the folder that it is to run in does not exist",
    )
    .await;
}

#[tokio::test]
async fn a_program_that_may_not_be_run() {
    let setup = Setup::new();
    let file = setup.folder().join("plain.txt");
    std::fs::write(&file, "no program\n").unwrap();
    let words = [file.to_str().unwrap().to_owned()];
    let setup = setup.program("alpha", &[&words[0]], "era: legacy");
    can_not_be_started(setup, "it is not executable").await;
}

/// Reported in supercorp-ai/supergateway#139, anthropics/claude-code#35287.
#[tokio::test]
async fn a_program_that_ends_before_it_is_asked_anything() {
    let gateway = legacy_with(&["quits"], "").await;
    let client = Client::new(&gateway, "alpha");
    let code = client
        .post(initialize("2025-11-25", EVERYTHING))
        .await
        .error()
        .await;
    assert_eq!(code, -32603);
    gateway.says("no database").await;
}
