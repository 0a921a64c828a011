//! The example files of the project.

use std::path::{Path, PathBuf};

use crate::config::{
    Access, Config, KeySource, LimitAnswer, WhenFull, access, file, questions, server,
};

pub(super) const FULL: &str = "gateway.yaml";
const MINIMAL: &str = "minimal.yaml";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("config")
        .join(name)
}

pub(super) fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

fn environment(name: &str) -> Option<String> {
    match name {
        "BOOKING_KEY" => Some("booking-key".to_owned()),
        "HOOK_KEY" => Some("hook-key".to_owned()),
        "CALENDAR_TOKEN" => Some("calendar-token".to_owned()),
        "CI_KEY_SHA256" => Some("0f".repeat(32)),
        _ => None,
    }
}

fn parse_full(text: &str) -> Config {
    Config::parse(FULL, text, &environment).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn the_minimal_file_needs_nothing_else() {
    let config = Config::load(&path(MINIMAL), &|_| None, &|_| true).unwrap();
    assert_eq!(
        config.servers["booking"].at.urls()[0].as_str(),
        "http://127.0.0.1:3001/mcp"
    );
    assert!(matches!(config.access, Access::Local));
    assert_eq!(config.public_url.as_str(), "http://127.0.0.1:8080");
}

#[test]
fn the_complete_file_means_what_it_shows() {
    let config = Config::load(&path(FULL), &environment, &|_| true).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.public_url.as_str(), "https://mcp.example.com");
    let booking = &config.servers["booking"];
    assert_eq!(
        config.public_url.endpoint(&booking.name),
        "https://mcp.example.com/mcp/booking"
    );
    assert_eq!(booking.headers["x-api-key"], "booking-key");
    let rate = booking.limits.requests.unwrap();
    assert_eq!((rate.period.as_millis(), rate.burst.get()), (50, 40));
    assert_eq!(booking.limits.concurrent, 100.try_into().ok());
    assert_eq!(
        config.servers["calendar"].headers["authorization"],
        "Bearer calendar-token"
    );
    let Access::Required(auth) = &config.access else {
        panic!("{:?}", config.access)
    };
    assert_eq!(auth.issuers[0].issuer, "https://login.example.com");
    assert!(matches!(&auth.issuers[0].keys, KeySource::Url(url) if url.path() == "/jwks"));
    assert_eq!(
        auth.issuers[0].audiences,
        ["https://mcp.example.com/mcp/booking"]
    );
    assert_eq!(
        (auth.api_keys[0].name.as_str(), auth.api_keys[0].sha256),
        ("ci", [0x0f; 32])
    );
    assert_eq!(
        config.limits.per_principal.rates.concurrent,
        32.try_into().ok()
    );
    assert_eq!(config.limits.answer, LimitAnswer::JsonRpc);
    assert_eq!(config.allowed_hosts, ["mcp.internal.example"]);
    let audit = config.audit.as_ref().unwrap();
    assert_eq!(
        (audit.file.to_str(), audit.when_full),
        (Some("audit.jsonl"), WhenFull::Block)
    );
}

/// What the README and the pages of `docs/` show, and what the containers are started with.
#[test]
fn the_documents_and_the_containers_have_files_that_load() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in [
        "README.md",
        "docs/questions.md",
        "docs/http-sse.md",
        "docs/servers.md",
    ] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        let blocks: Vec<&str> = text.split("```yaml\n").skip(1).collect();
        assert!(!blocks.is_empty(), "{name}");
        for block in blocks {
            let text = block.split("```").next().unwrap();
            let config = Config::parse(name, text, &environment)
                .unwrap_or_else(|problems| panic!("{problems}\n{text}"));
            assert_eq!(config.warnings(), [""; 0]);
            let public = url::Url::parse(config.public_url.as_str()).unwrap();
            assert!(
                !config
                    .allowed_hosts
                    .iter()
                    .any(|host| public.host_str() == Some(host)),
                "the public name is allowed anyway"
            );
        }
    }
    let path = root.join("deploy/gateway.yaml");
    let config = Config::load(&path, &|_| None, &|_| true).unwrap();
    assert!(matches!(config.access, Access::Open));
    assert_eq!(config.allowed_hosts, ["localhost"]);
    assert_eq!(config.warnings(), [""; 0]);
}

#[test]
fn the_complete_file_names_the_variables_that_it_needs() {
    let problems = Config::load(&path(FULL), &|_| None, &|_| true).unwrap_err();
    let missing: Vec<_> = problems
        .iter()
        .map(|problem| problem.what.as_str())
        .collect();
    assert_eq!(
        missing,
        [
            "`${BOOKING_KEY}`: the environment has no `BOOKING_KEY`",
            "`${HOOK_KEY}`: the environment has no `HOOK_KEY`",
            "`${CALENDAR_TOKEN}`: the environment has no `CALENDAR_TOKEN`",
            "`${CI_KEY_SHA256}`: the environment has no `CI_KEY_SHA256`",
        ]
    );
    let text = read(FULL);
    let comment = text
        .lines()
        .find(|line| line.contains("In this file:"))
        .unwrap();
    for name in ["BOOKING_KEY", "HOOK_KEY", "CALENDAR_TOKEN", "CI_KEY_SHA256"] {
        assert!(comment.contains(name), "{comment}");
    }
}

#[test]
fn the_complete_file_has_every_key() {
    let text = read(FULL);
    let keys = [
        file::TOP,
        file::LIMITS,
        file::PER_PRINCIPAL,
        file::TIMEOUTS,
        file::SESSIONS,
        file::AUDIT,
        server::KEYS,
        server::RATES,
        questions::KEYS,
        questions::LIMITS,
        questions::URLS,
        questions::RULE,
        questions::HOOK,
        access::KEYS,
        access::ISSUER,
        access::API_KEY,
    ];
    for key in keys.into_iter().flatten() {
        assert!(
            text.contains(&format!("{key}: ")) || text.contains(&format!("{key}:\n")),
            "{key}"
        );
    }
}

/// Taking away a line that says it shows the default must change nothing.
#[test]
fn the_complete_file_shows_the_true_defaults() {
    let text = read(FULL);
    let whole = format!("{:?}", parse_full(&text));
    let mut shown = 0;
    for (number, line) in text.lines().enumerate() {
        if !says_default(&text, number, line) {
            continue;
        }
        shown += 1;
        let without: Vec<_> = text
            .lines()
            .enumerate()
            .filter(|(index, _)| *index != number)
            .map(|(_, line)| line)
            .collect();
        let without = parse_full(&without.join("\n"));
        assert_eq!(format!("{without:?}"), whole, "{line}");
    }
    // listen, transport, era, profile and on_session_lost, what is said of questions, of processes, the caps,
    // answer, the timeouts, the sessions, allowed_origins and when_full.
    assert_eq!(
        shown,
        1 + 4 + 9 + 2 + 7 + 1 + 7 + 2 + 1 + 1,
        "lines that show a default"
    );
}

/// Whether a comment on the line, or in the paragraph above it, says that it shows the default.
fn says_default(text: &str, number: usize, line: &str) -> bool {
    if line.trim_start().starts_with('#') || !line.contains(':') {
        return false;
    }
    if let Some((_, comment)) = line.split_once(" # ") {
        return comment == "default" || comment.starts_with("default;");
    }
    let above: Vec<_> = text.lines().take(number).collect();
    let comments = above
        .iter()
        .rev()
        .take_while(|line| line.trim_start().starts_with('#'));
    comments
        .into_iter()
        .any(|comment| comment.contains("(default"))
}
