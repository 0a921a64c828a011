//! What right files mean.

use std::time::Duration;

use super::{config, parse};
use crate::config::{
    Config, LimitAnswer, OnSessionLost, Profile, Rate, ServerEra, ServerTimeouts, SessionScope,
    WhenFull,
};

#[test]
fn what_is_left_out_has_its_default() {
    let config = config("");
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.public_url.as_str(), "http://127.0.0.1:8080");
    assert_eq!(config.limits.per_principal.rates.requests, None);
    assert_eq!(config.limits.per_principal.rates.concurrent, None);
    assert_eq!(config.limits.per_principal.sessions, Some(50));
    assert_eq!(config.limits.per_principal.questions, Some(16));
    assert_eq!(config.limits.body, Some(4 * 1024 * 1024));
    assert_eq!(config.limits.message, Some(16 * 1024 * 1024));
    assert_eq!(config.limits.streams, Some(64));
    assert_eq!(config.limits.buffer, 64);
    assert_eq!(config.limits.connections, Some(10_000));
    assert_eq!(config.limits.answer, LimitAnswer::JsonRpc);
    assert_eq!(config.timeouts.connect, Duration::from_secs(5));
    assert_eq!(config.timeouts.call, Duration::from_mins(15));
    assert_eq!(config.timeouts.headers, None);
    assert_eq!(config.timeouts.idle, None);
    assert_eq!(config.timeouts.question, Duration::from_mins(5));
    assert_eq!(config.timeouts.stream, Duration::from_secs(10));
    assert_eq!(config.timeouts.resume, Duration::from_mins(5));
    assert_eq!(config.timeouts.shutdown, Duration::from_secs(20));
    assert_eq!(config.timeouts.keep_alive, Duration::from_secs(15));
    assert_eq!(config.sessions.idle, Duration::from_mins(30));
    assert_eq!(config.sessions.max, Some(10_000));
    assert!(config.allowed_hosts.is_empty());
    assert!(config.allowed_origins.is_empty());
    assert!(!config.legacy_sse);
    assert!(config.audit.is_none());
}

#[test]
fn the_oldest_transport_is_there_for_who_wants_it() {
    assert!(config("legacy_sse: true").legacy_sse);
    assert!(!config("legacy_sse: false").legacy_sse);
}

#[test]
fn a_server_says_how_it_is_spoken_with() {
    let text = "servers:\n  a: { url: http://a/mcp }\n  b: { url: http://b/mcp, era: legacy, session_scope: lane, profile: pinned, on_session_lost: tell, timeouts: { idle: 30s, call: 1h } }\n";
    let local = parse(text).unwrap();
    let (a, b) = (&local.servers["a"], &local.servers["b"]);
    assert_eq!((a.era, a.profile), (ServerEra::Auto, Profile::Exact));
    assert_eq!(local.session_scope(a), SessionScope::Principal);
    assert_eq!((b.era, b.profile), (ServerEra::Legacy, Profile::Pinned));
    assert_eq!(local.session_scope(b), SessionScope::Lane);
    assert_eq!(a.timeouts, ServerTimeouts::default());
    let expected = ServerTimeouts {
        headers: None,
        idle: Some(Duration::from_secs(30)),
        call: Some(Duration::from_hours(1)),
    };
    assert_eq!(b.timeouts, expected);
    let lost = [a, b].map(|server| server.on_session_lost);
    assert_eq!(lost, [OnSessionLost::Renew, OnSessionLost::Tell]);
    let open = parse(&format!("{text}auth: open\n")).unwrap();
    assert_eq!(open.session_scope(&open.servers["a"]), SessionScope::Call);
    assert_eq!(open.session_scope(&open.servers["b"]), SessionScope::Lane);
}

#[test]
fn off_switches_a_limit_off() {
    let config = config(
        "\
limits:
  per_principal: { requests: off, concurrent: off, sessions: off, questions: off }
  body: off
  message: off
  streams: off
  connections: off
sessions: { max: off }
audit: off",
    );
    assert_eq!(config.limits.per_principal.rates.requests, None);
    assert_eq!(config.limits.per_principal.sessions, None);
    assert_eq!(config.limits.per_principal.questions, None);
    assert_eq!(config.limits.body, None);
    assert_eq!(config.limits.message, None);
    assert_eq!(config.limits.streams, None);
    assert_eq!(config.limits.connections, None);
    assert_eq!(config.sessions.max, None);
    assert!(config.audit.is_none());
}

#[test]
fn what_is_written_is_meant() {
    let config = config(
        "\
limits:
  per_principal: { requests: 600/min, burst: 20, concurrent: 32, sessions: 5, questions: 1 }
  body: 64KiB
  message: 1MB
  streams: 2
  buffer: 3
  connections: 4
  answer: http
timeouts: { connect: 500ms, call: 1h, headers: 7s, idle: 8s, question: 5m, stream: 1s, resume: 90s, shutdown: 2s, keep_alive: 3s }
sessions: { idle: 7m, max: 8 }
audit: { file: logs/audit.jsonl, when_full: refuse }",
    );
    let per_principal = config.limits.per_principal;
    let rate = Rate {
        period: Duration::from_millis(100),
        burst: 20.try_into().unwrap(),
    };
    assert_eq!(per_principal.rates.requests, Some(rate));
    assert_eq!(per_principal.rates.concurrent, 32.try_into().ok());
    assert_eq!(
        (per_principal.sessions, per_principal.questions),
        (Some(5), Some(1))
    );
    assert_eq!(
        (config.limits.body, config.limits.message),
        (Some(65_536), Some(1_000_000))
    );
    assert_eq!((config.limits.streams, config.limits.buffer), (Some(2), 3));
    assert_eq!(config.limits.connections, Some(4));
    assert_eq!(config.limits.answer, LimitAnswer::Http);
    assert_eq!(config.timeouts.connect, Duration::from_millis(500));
    assert_eq!(config.timeouts.call, Duration::from_hours(1));
    assert_eq!(config.timeouts.headers, Some(Duration::from_secs(7)));
    assert_eq!(config.timeouts.idle, Some(Duration::from_secs(8)));
    assert_eq!(config.timeouts.question, Duration::from_mins(5));
    assert_eq!(config.timeouts.stream, Duration::from_secs(1));
    assert_eq!(config.timeouts.resume, Duration::from_secs(90));
    assert_eq!(config.timeouts.shutdown, Duration::from_secs(2));
    assert_eq!(config.timeouts.keep_alive, Duration::from_secs(3));
    assert_eq!(
        (config.sessions.idle, config.sessions.max),
        (Duration::from_mins(7), Some(8))
    );
    let audit = config.audit.unwrap();
    assert_eq!(audit.file.as_os_str(), "logs/audit.jsonl");
    assert_eq!(audit.when_full, WhenFull::Refuse);
}

#[test]
fn the_burst_is_what_the_rate_names_unless_written() {
    let rate = config("limits: { per_principal: { requests: 10/s } }");
    assert_eq!(
        rate.limits
            .per_principal
            .rates
            .requests
            .unwrap()
            .burst
            .get(),
        10
    );
}

#[test]
fn a_server_has_its_own_headers_and_limits() {
    let text = "servers: { a: { url: 'https://A.example.com:443/mcp?x=1', \
                headers: { X-Key: \"Bearer ${KEY}\", x-number: 0x1F }, limits: { concurrent: 3 } } }";
    let environment = |name: &str| (name == "KEY").then(|| "abc".to_owned());
    let config = Config::parse("gateway.yaml", text, &environment).unwrap();
    let server = &config.servers["a"];
    assert_eq!(server.name.as_str(), "a");
    assert_eq!(
        server.at.urls()[0].as_str(),
        "https://a.example.com/mcp?x=1"
    );
    assert_eq!(server.headers["x-key"], "Bearer abc");
    assert_eq!(server.headers["x-number"], "0x1F");
    assert!(server.headers.values().all(http::HeaderValue::is_sensitive));
    assert_eq!(
        server.limits.concurrent.map(std::num::NonZeroU32::get),
        Some(3)
    );
    assert_eq!(server.limits.requests, None);
}

#[test]
fn public_urls_have_one_form() {
    for (written, canonical) in [
        ("https://mcp.example.com", "https://mcp.example.com"),
        ("HTTPS://MCP.Example.com:443/", "https://mcp.example.com"),
        (
            "http://example.com:80/gateway//",
            "http://example.com/gateway",
        ),
        (
            "http://example.com:8080/Gateway",
            "http://example.com:8080/Gateway",
        ),
    ] {
        let config = config(&format!("public_url: {written}"));
        assert_eq!(config.public_url.as_str(), canonical);
    }
    for (listen, default) in [
        ("127.0.0.1:80", "http://127.0.0.1"),
        ("'[::1]:3000'", "http://[::1]:3000"),
        ("127.0.0.1:0", "http://127.0.0.1:0"),
    ] {
        assert_eq!(
            config(&format!("listen: {listen}")).public_url.as_str(),
            default
        );
    }
}

#[test]
fn a_port_chosen_by_the_system_reaches_the_default_public_url() {
    let bound = "127.0.0.1:4711".parse().unwrap();
    let config_of_default = config("listen: 127.0.0.1:0").bound_to(bound);
    assert_eq!(config_of_default.listen, bound);
    assert_eq!(
        config_of_default.public_url.as_str(),
        "http://127.0.0.1:4711"
    );
    let written = config("listen: 127.0.0.1:0\npublic_url: https://a.example").bound_to(bound);
    assert_eq!(written.public_url.as_str(), "https://a.example");
}

#[test]
fn hosts_are_kept_in_lower_case_without_their_port() {
    let config =
        config("allowed_hosts: [MCP.example.com:443, 'mcp.example.com', '[::1]:80', 10.0.0.1]");
    assert_eq!(
        config.allowed_hosts,
        ["10.0.0.1", "[::1]", "mcp.example.com"]
    );
}

#[test]
fn origins_of_web_pages_and_of_editors_are_kept() {
    let text = "allowed_origins: [https://app.example.com, 'http://localhost:6274', 'vscode-webview://ab1']";
    assert_eq!(
        config(text).allowed_origins,
        [
            "https://app.example.com",
            "http://localhost:6274",
            "vscode-webview://ab1"
        ]
    );
}

#[test]
fn anchors_and_merges_are_understood() {
    let config = parse(
        "\
servers:
  a: { url: http://a/, limits: &limits { requests: 5/s, concurrent: 2 } }
  b: { url: http://b/, limits: { <<: *limits, concurrent: 7 } }",
    )
    .unwrap();
    assert_eq!(
        config.servers["a"].limits.requests,
        config.servers["b"].limits.requests
    );
    assert_eq!(config.servers["b"].limits.concurrent, 7.try_into().ok());
}

#[test]
fn files_of_windows_editors_are_read() {
    let text = "\u{feff}servers:\r\n  a:\r\n    url: http://a/mcp\r\nlimits: { buffer: 12 }\r\n";
    assert_eq!(parse(text).unwrap().limits.buffer, 12);
}

#[test]
fn short_forms_on_one_line_are_read() {
    let text = r#"
listen: 127.0.0.1:8080
public_url: https://mcp.example.com        # what clients see; default http://<listen>
servers:
  booking:
    url: http://127.0.0.1:3001/mcp
    headers: { x-api-key: "${BOOKING_KEY}" }   # sent to the server, never shown
    limits: { requests: 20/s, burst: 40, concurrent: 100 }
auth:
  issuers:
    - issuer: https://login.example.com
      jwks_url: https://login.example.com/jwks
      audiences: [https://mcp.example.com/mcp/booking]
  api_keys:
    - { name: ci, sha256: "abababababababababababababababababababababababababababababababab", servers: [booking] }
limits:
  per_principal: { requests: 10/s, burst: 20, concurrent: 32, sessions: 50, questions: 16 }
  body: 4MiB
  answer: jsonrpc
sessions: { idle: 30m, max: 10000 }
allowed_hosts: [mcp.example.com]
allowed_origins: []
audit: { file: audit.jsonl, when_full: block }
"#;
    let config = Config::parse("gateway.yaml", text, &|_| Some("key".to_owned())).unwrap();
    assert_eq!(config.servers["booking"].headers["x-api-key"], "key");
    assert_eq!(
        config
            .limits
            .per_principal
            .rates
            .requests
            .unwrap()
            .burst
            .get(),
        20
    );
    assert_eq!(config.sessions.max, Some(10_000));
}
