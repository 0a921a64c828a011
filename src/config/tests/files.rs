//! The files that a configuration names, and what it probably doesn't mean.

use std::path::Path;

use super::{SERVER, config};
use crate::auth::is_key_set;
use crate::config::Config;

/// What is said about a file with this text, in a folder with these others.
fn said(text: &str, others: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in others {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let path = folder.path().join("gateway.yaml");
    let here = folder.path().display().to_string();
    std::fs::write(&path, format!("{}\n{SERVER}", text.replace("HERE", &here))).unwrap();
    let environment = |name: &str| (name == "FOLDER").then(|| "/nowhere".to_owned());
    match Config::load(&path, &environment, &is_key_set) {
        Ok(_) => Vec::new(),
        Err(problems) => problems
            .to_string()
            .lines()
            .map(|line| line.replace(&format!("{here}/gateway.yaml:"), ""))
            .map(|line| line.replace(&here, "HERE"))
            .collect(),
    }
}

const KEYS: &str =
    r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

#[test]
fn a_key_set_is_there_and_has_a_usable_key() {
    let issuer = "auth: { issuers: [{ issuer: https://a, jwks_file: HERE/keys.json }] }";
    assert_eq!(said(issuer, &[("keys.json", KEYS)]), [""; 0]);
    let usual = "name a file with the key set (JWKS) that the issuer publishes";
    assert_eq!(
        said(issuer, &[]),
        [format!(
            "1:51: auth.issuers[0].jwks_file: `HERE/keys.json` can't be read: No such file or \
             directory (os error 2); {usual}"
        )]
    );
    for content in [
        "",
        "hello",
        "{}",
        r#"{"keys":[]}"#,
        r#"{"keys":[{"kty":"oct"}]}"#,
    ] {
        assert_eq!(
            said(issuer, &[("keys.json", content)]),
            [format!(
                "1:51: auth.issuers[0].jwks_file: `HERE/keys.json` is no key set with a key that \
                 can be used; {usual}"
            )],
            "{content}"
        );
    }
}

#[test]
fn the_folder_of_the_audit_log_is_there() {
    assert_eq!(said("audit: { file: HERE/audit.jsonl }", &[]), [""; 0]);
    assert_eq!(said("audit: { file: audit.jsonl }", &[]), [""; 0]);
    assert_eq!(
        said("audit: { file: HERE/logs/audit.jsonl }", &[]),
        ["1:16: audit.file: the folder HERE/logs doesn't exist; create it or change audit.file"]
    );
    assert_eq!(
        said("audit: { file: \"${FOLDER}/audit.jsonl\" }", &[]),
        ["1:16: audit.file: the folder ${FOLDER} doesn't exist; create it or change audit.file"]
    );
}

#[test]
fn problems_of_files_are_told_with_all_the_others() {
    assert_eq!(
        said(
            "audit: { file: /nowhere/audit.jsonl }\nlimits: { body: 0 }",
            &[]
        )
        .len(),
        2
    );
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    assert_eq!(config("").warnings(), [""; 0]);
    assert_eq!(
        config("public_url: https://mcp.example.com/mcp/").warnings(),
        [
            "public_url ends in /mcp, so clients connect to https://mcp.example.com/mcp/mcp/booking; \
          if that isn't meant, leave the /mcp out"
        ]
    );
    let text = "servers: { old: { url: http://127.0.0.1:3001/sse } }";
    let config = Config::parse("gateway.yaml", text, &|_| None).unwrap();
    assert_eq!(
        config.warnings(),
        [
            "servers.old.url ends in /sse: if that is the old HTTP+SSE transport, write `transport: sse` \
          beside it; the Streamable HTTP endpoint of the same server is often /mcp"
        ]
    );
    let minimal = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/minimal.yaml");
    let minimal = Config::load(&minimal, &|_| None, &is_key_set).unwrap();
    assert_eq!(minimal.warnings(), [""; 0]);
}
