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
    for access in ["auth: open", keys.as_str()] {
        let listen = "listen: 0.0.0.0:0";
        let yaml = format!("{listen}\n{access}");
        let output = Setup::new()
            .server("alpha", &server)
            .yaml(&yaml)
            .refused()
            .await;
        assert!(
            said_of(&output).contains("add `public_url: https://mcp.example.com`"),
            "{}",
            said_of(&output)
        );
    }
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
    let expected = format!(
        "contraflow: {address} is in use by another program: choose another address or port with `listen`"
    );
    assert!(said_of(&output).contains(&expected), "{}", said_of(&output));
}

/// Files that the configuration names are looked at by `check`, and `serve` doesn't start without them.
#[tokio::test]
async fn files_that_are_not_there() {
    let yaml = "servers:\n  a: { url: http://127.0.0.1:1/mcp }\nauth: { issuers: [ { issuer: https://a, jwks_file: /nowhere/keys.json } ] }\naudit: { file: /nowhere/audit.jsonl }\n";
    let (code, checked) = check(yaml).await;
    let served = Setup::new().no_audit().yaml(yaml).refused().await;
    assert_eq!((code, served.status.code()), (Some(1), Some(1)));
    for said in [checked, said_of(&served)] {
        assert!(
            said.contains("`/nowhere/keys.json` can't be read: No such file"),
            "{said}"
        );
        assert!(
            said.contains("the folder /nowhere doesn't exist; create it or change audit.file"),
            "{said}"
        );
    }
}

/// A cause is said once.
#[tokio::test]
async fn an_audit_log_that_can_not_be_opened() {
    let setup = Setup::new().no_audit();
    let folder = setup.folder().display().to_string();
    let output = setup
        .yaml(&format!(
            "servers:\n  a: {{ url: http://127.0.0.1:1/mcp }}\naudit: {{ file: \"{folder}\" }}"
        ))
        .refused()
        .await;
    let said = said_of(&output);
    assert!(
        said.contains(&format!("the audit log can't be used: {folder}: ")),
        "{said}"
    );
    assert_eq!(said.matches("os error").count(), 1, "{said}");
}

/// The first lines of the log say where clients find what, and what is probably not meant.
#[tokio::test]
async fn what_is_served_is_said() {
    let (alpha, beta) = (Server::start().await, Server::start().await);
    let gateway = Setup::new()
        .server("alpha", &alpha)
        .server("beta", &beta)
        .yaml("public_url: https://gw.example.test/mcp")
        .start()
        .await;
    for line in [
        "serving https://gw.example.test/mcp/mcp/alpha",
        "serving https://gw.example.test/mcp/mcp/beta",
        &format!("audit log {}", gateway.audit_file().display()),
        "public_url ends in /mcp, so clients connect to https://gw.example.test/mcp/mcp/alpha",
    ] {
        gateway.says(line).await;
    }
    let (code, said) = check("servers:\n  old: { url: \"http://127.0.0.1:1/sse\" }\n").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("warning: servers.old.url ends in /sse"),
        "{said}"
    );
}

/// A slip in the format of the log is told, not taken for the default.
#[tokio::test]
async fn the_format_of_the_log() {
    let server = Server::start().await;
    let setup = || Setup::new().server("alpha", &server);
    let output = setup().env("CONTRAFLOW_LOG_FORMAT", "jsno").refused().await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said_of(&output).contains("CONTRAFLOW_LOG_FORMAT is \"jsno\": write `text` or `json`"),
        "{}",
        said_of(&output)
    );
    let gateway = setup().env("CONTRAFLOW_LOG_FORMAT", "json").start().await;
    gateway.says("audit log").await;
    let output = gateway.output();
    let first: serde_json::Value = serde_json::from_str(output.lines().next().unwrap()).unwrap();
    assert!(first["level"].is_string(), "{first}");
}

/// Whoever asks for what is not there learns what they asked for.
#[tokio::test]
async fn what_is_not_there_is_named() {
    let (_server, gateway) = crate::support::pair().await;
    let mut unknown = Client::new(&gateway, "alphas").post("{}").await;
    assert_eq!(unknown.status, 404);
    assert_eq!(
        unknown.json().await["error"]["message"],
        "there is no server \"alphas\""
    );
    let mut nowhere = Client::at(&format!("{}/alpha?key=hidden", gateway.url))
        .post("{}")
        .await;
    assert_eq!(nowhere.status, 404);
    assert_eq!(
        nowhere.json().await["error"]["message"],
        "there is nothing at \"/alpha\"; MCP endpoints are at /mcp/<server>"
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
