//! Starting, and refusing to start: every problem at once, with its place and what to write instead.

use std::process::Output;

use crate::support::gateway::run;
use crate::support::token::sha256;
use crate::support::{Client, NOTHING, Server, Setup};

/// `check` lists all problems with file, line and column.
#[tokio::test]
async fn check_lists_every_problem() {
    let text = "listen: 127.0.0.1:0\nserverz: {}\nservers:\n  booking:\n    url: not-a-url\n    limits: { requests: fast, burts: 40 }\n  \"bad name\": { url: http://127.0.0.1:1/mcp }\ntimeouts: { call: -5s }\n";
    let (code, said) = check(text).await;
    assert_eq!(code, Some(1), "{said}");
    for (line, word) in [
        (2, "serverz"),
        (5, "url"),
        (6, "requests"),
        (6, "burts"),
        (7, "bad name"),
        (8, "call"),
    ] {
        let place = format!("gateway.yaml:{line}:");
        assert!(
            said.lines().any(|said| said.contains(&place)) && said.contains(word),
            "line {line}, {word}: {said}"
        );
    }
}

/// A good file is good, and says so.
#[tokio::test]
async fn check_of_a_good_file() {
    let (code, said) = check("servers:\n  booking: { url: http://127.0.0.1:3001/mcp }\n").await;
    assert_eq!(code, Some(0), "{said}");
}

/// Not YAML at all, not there at all.
#[tokio::test]
async fn check_of_a_broken_file() {
    let (code, said) = check("servers: [\n").await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("gateway.yaml:"), "{said}");
    let output = run(&["check", "--config", "/nowhere/gateway.yaml"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said_of(&output).contains("/nowhere/gateway.yaml"));
}

/// A missing variable is an error that names it, and never its value when it is there.
#[tokio::test]
async fn a_missing_variable() {
    let yaml = "servers:\n  a: { url: http://127.0.0.1:1/mcp, headers: { x-key: \"${CONTRAFLOW_TEST_ABSENT}\" } }\n";
    let (code, said) = check(yaml).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("CONTRAFLOW_TEST_ABSENT"), "{said}");
    assert!(said.contains("gateway.yaml:2:"), "{said}");
    let output = Setup::new().yaml(yaml).refused().await;
    assert!(!output.status.success());
    assert!(said_of(&output).contains("CONTRAFLOW_TEST_ABSENT"));
}

/// Both example configurations are good.
#[tokio::test]
async fn the_examples_are_good() {
    for name in ["minimal.yaml", "gateway.yaml"] {
        let path = format!("{}/config/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_contraflow"));
        command.args(["check", "--config", &path]);
        for part in text.split("${").skip(1) {
            // Long enough, and hexadecimal, to stand for any of them.
            command.env(part.split('}').next().unwrap(), "0".repeat(64));
        }
        let output = crate::support::within("check", command.output())
            .await
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{name}: {}",
            said_of(&output)
        );
    }
}

/// Without `auth` only loopback; `auth: open` is the explicit way out.
#[tokio::test]
async fn the_world_needs_auth() {
    let server = Server::start().await;
    for listen in ["listen: 0.0.0.0:0", "listen: \"[::]:0\""] {
        let output = Setup::new()
            .server("alpha", &server)
            .yaml(listen)
            .refused()
            .await;
        assert!(!output.status.success(), "{listen}");
        assert!(said_of(&output).contains("auth"), "{}", said_of(&output));
    }
    let keys = format!(
        "auth: {{ api_keys: [ {{ name: ci, sha256: \"{}\" }} ] }}",
        sha256("k")
    );
    for (listen, access) in [("0.0.0.0:0", "auth: open"), ("0.0.0.0:0", keys.as_str())] {
        let yaml = format!("listen: {listen}\npublic_url: http://127.0.0.1\n{access}");
        let gateway = Setup::new()
            .server("alpha", &server)
            .yaml(&yaml)
            .start()
            .await;
        assert!(gateway.url.contains("0.0.0.0"), "{}", gateway.url);
    }
}

/// Without `auth` on loopback it serves, and says what that means.
#[tokio::test]
async fn no_auth_is_said_aloud() {
    let (_server, gateway) = crate::support::pair().await;
    gateway.says("auth").await;
    Client::new(&gateway, "alpha")
        .open(NOTHING)
        .await
        .works()
        .await;
}

/// A port in use is a clear error, not a hang.
#[tokio::test]
async fn a_port_in_use() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let server = Server::start().await;
    let output = Setup::new()
        .server("alpha", &server)
        .yaml(&format!("listen: {address}"))
        .refused()
        .await;
    assert!(!output.status.success());
    assert!(
        said_of(&output).contains(&address.to_string()),
        "{}",
        said_of(&output)
    );
}

/// `off` switches a cap off.
#[tokio::test]
async fn caps_can_be_switched_off() {
    let server = Server::start().await;
    let yaml = "limits: { body: off, message: off, streams: off, connections: off, per_principal: { sessions: off, questions: off } }\nsessions: { max: off }";
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml(yaml)
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let large = crate::support::json::call(
        "1",
        "echo",
        &format!(r#"{{"x":"{}"}}"#, "a".repeat(5 << 20)),
    );
    assert_eq!(session.post(large).await.status, 200);
}

async fn check(text: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.yaml");
    std::fs::write(&path, text).unwrap();
    let output = run(&["check".as_ref(), "--config".as_ref(), path.as_os_str()]).await;
    (output.status.code(), said_of(&output))
}

fn said_of(output: &Output) -> String {
    (String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr)).into_owned()
}
