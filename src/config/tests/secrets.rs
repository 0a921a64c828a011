//! What came from the environment is in no problem and in no `Debug` output.

use super::examples::{FULL, read};
use crate::config::Config;

const CANARY: &str = "canary-7f3a";

#[test]
fn a_secret_is_in_no_debug_output() {
    let text = r#"
servers:
  a:
    url: "https://a.example.com/${SECRET}?key=${SECRET}"
    headers: { x-key: "${SECRET}", authorization: "Bearer ${SECRET}" }
auth:
  issuers:
    - { issuer: https://a.example.com, jwks_url: "https://a.example.com/jwks?key=${SECRET}" }
"#;
    let config = Config::parse("gateway.yaml", text, &|_| Some(CANARY.to_owned())).unwrap();
    assert!(config.servers["a"].at.urls()[0].as_str().contains(CANARY));
    let shown = format!("{config:?} {config:#?}");
    assert!(!shown.contains(CANARY), "{shown}");
}

/// Puts secrets of several shapes into each value of the complete example.
#[test]
fn a_secret_at_any_place_is_in_no_problem() {
    let text = read(FULL);
    let mut refused = 0;
    for secret in [
        CANARY,
        "canary",
        "canary 1",
        "http://canary",
        "https://u:canary@x",
        "canary/s",
        "987654",
    ] {
        let environment = |name: &str| match name {
            "SECRET" => Some(secret.to_owned()),
            "CI_KEY_SHA256" => Some("ab".repeat(32)),
            _ => Some("x".to_owned()),
        };
        for (number, line) in text.lines().enumerate() {
            let Some((key, value)) = line.split_once(": ") else {
                continue;
            };
            if line.trim_start().starts_with('#') || value.starts_with(['{', '[']) {
                continue;
            }
            let changed = format!("{key}: \"${{SECRET}}\"");
            let text: Vec<_> = text
                .lines()
                .enumerate()
                .map(|(index, line)| {
                    if index == number {
                        changed.as_str()
                    } else {
                        line
                    }
                })
                .collect();
            let Err(problems) = Config::parse("gateway.yaml", &text.join("\n"), &environment)
            else {
                continue;
            };
            refused += 1;
            let shown = format!("{problems} {problems:?}");
            assert!(
                !shown.contains(secret) && !shown.contains("canary"),
                "{changed}: {shown}"
            );
        }
    }
    assert!(refused > 100, "only {refused} places were tried");
}

#[test]
fn headers_and_digests_are_not_quoted_even_when_the_file_has_them() {
    let text = "\
servers: { a: { url: 'ftp://canary', headers: { x: \"canary\\n\" } } }
auth: { api_keys: [{ name: a, sha256: canary }] }";
    let problems = Config::parse("gateway.yaml", text, &|_| None).unwrap_err();
    assert_eq!(problems.iter().count(), 3);
    assert!(!problems.to_string().contains("canary"), "{problems}");
}
