//! What is said about wrong files: every problem, where it is, and what to write instead.

use super::{SERVER, check, check_with_server, parse};
use crate::config::{Config, Position};

#[test]
fn every_problem_is_told_at_once_in_the_order_of_the_file() {
    check(
        "\
servers:
  booking:
    url: http://127.0.0.1:3001/mcp
    limits: { requests: 20/s, burts: 40, concurrent: 0 }
limits:
  body: 4 apples
  buffer: off
timeouts: { question: 10 }
sesions: { idle: 30m }
",
        &[
            "4:31: servers.booking.limits has no key `burts`; write `burst`, if that is meant",
            "4:54: servers.booking.limits.concurrent: `0` lets nothing through; write a whole number \
             from 1, or `off` for no limit",
            "6:9: limits.body: `4 apples` is not a size; write a size as `4MiB`, `64KiB`, `1MB` or a \
             number of bytes, or `off` for no limit",
            "7:11: limits.buffer: `off` can't be switched off: it must be bounded; write a whole \
             number from 1",
            "8:23: timeouts.question: `10` has no unit; write `10s`",
            "9:1: there is no key `sesions`; write `sessions`, if that is meant",
        ],
    );
}

#[test]
fn a_problem_has_its_place_and_both_texts() {
    let problems = parse(&format!("{SERVER}\nlimits: {{ body: 0 }}")).unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(
        problem.at,
        Some(Position {
            line: 2,
            column: 17
        })
    );
    assert_eq!(problem.what, "limits.body: `0` lets nothing through");
    assert_eq!(problem.instead, "write `off`");
}

#[test]
fn an_unknown_key_that_is_near_to_none_gets_the_list() {
    check_with_server(
        "sessions: { timeout: 5m }",
        &["1:13: sessions has no key `timeout`; the keys here are `idle`, `max`"],
    );
}

#[test]
fn a_key_given_twice_is_a_problem_at_every_level() {
    check_with_server(
        "limits: { body: 1MiB, body: 2MiB }\nallowed_hosts: []\nallowed_hosts: []",
        &[
            "1:23: limits.body is given twice, first in line 1; keep one of the two",
            "3:1: allowed_hosts is given twice, first in line 2; keep one of the two",
        ],
    );
    check(
        "servers:\n  a: { url: http://a/ }\n  a: { url: http://b/ }",
        &["3:3: servers.a is given twice, first in line 2; keep one of the two"],
    );
}

#[test]
fn a_file_that_is_no_yaml_tells_where_and_why() {
    check(
        "servers:\n\tbooking: {}",
        &[
            "2:2: not YAML: tabs disallowed within this context (block indentation); indent with \
           spaces: YAML allows no tabs there",
        ],
    );
    check(
        "servers: { a: { url: ${URL} } }",
        &[
            "1:23: not YAML: while parsing a flow mapping, did not find expected ',' or '}'; within \
           `{ }` and `[ ]` put quotes around it: `\"${NAME}\"`",
        ],
    );
    check(
        &format!("{SERVER}\n---\n{SERVER}"),
        &[
            "3:1: not YAML: only single YAML document expected but multiple found; keep one document \
           in the file",
        ],
    );
}

#[test]
fn an_empty_file_is_told_how_to_start() {
    let empty = "1:1: the file is empty where keys with values belong; start with `servers:`";
    check("", &[empty]);
    check(
        "- a",
        &["1:1: the file is a list where keys with values belong; start with `servers:`"],
    );
}

#[test]
fn a_file_that_can_not_be_read_is_a_problem_without_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.yaml");
    let problems = Config::load(&path, &|_| None, &|_| true).unwrap_err();
    let shown = problems.to_string();
    let start = format!("{}: the file can't be read: ", path.display());
    assert!(shown.starts_with(&start), "{shown}");
    assert!(
        shown.ends_with("; name an existing file with `--config`"),
        "{shown}"
    );
}

#[test]
fn a_key_without_a_value_is_not_the_same_as_no_key() {
    check_with_server(
        "auth:\nlimits:\nallowed_hosts:\nlisten:",
        &[
            "1:5: auth: nobody is listed; list `issuers` or `api_keys`, or write `auth: open` to let \
             everybody in",
            "2:7: limits has no value where keys with values belong; write `{ per_principal: … }` \
             there, or remove the key",
            "3:14: allowed_hosts has no value where a list belongs; write `[ … ]` there, \
             also around one value",
            "4:7: listen has no value where one value belongs; write an address and a port, as \
             `127.0.0.1:8080`",
        ],
    );
}

#[test]
fn the_oldest_transport_is_switched_on_for_all_servers_or_none() {
    check_with_server(
        "legacy_sse: on",
        &["1:13: legacy_sse: `on` is neither yes nor no; write `true` or `false`"],
    );
    check(
        "servers: { a: { url: http://a/mcp, legacy_sse: true } }",
        &[
            "1:36: servers.a has no key `legacy_sse`; it is about clients, and belongs to the top of the \
             file; a server that speaks the old HTTP+SSE has `transport: sse`",
        ],
    );
}

#[test]
fn a_server_is_needed() {
    let example = "{ booking: { url: http://127.0.0.1:3001/mcp } }";
    check(
        "listen: 127.0.0.1:8080",
        &[&format!(
            "1:1: `servers` is missing; add `servers: {example}`"
        )],
    );
    check(
        "servers: {}",
        &[
            "1:10: servers: there is no server, so nothing to be a gateway to; add one, as `booking: \
           { url: http://127.0.0.1:3001/mcp }`",
        ],
    );
    check(
        "servers: { a: {} }",
        &["1:15: servers.a has no `url`; add `url: http://127.0.0.1:3001/mcp`"],
    );
}

#[test]
fn server_names_fit_in_a_path() {
    let usual = "write 1 to 64 of `A-Z a-z 0-9 - _ .`, starting with a letter or digit";
    for name in ["a b", "a/b", ".a", "-a", "ä", "", &"a".repeat(65)] {
        check(
            &format!("servers: {{ \"{name}\": {{ url: http://a/ }} }}"),
            &[&format!(
                "1:12: servers: `{name}` is not a name that can stand in a path; {usual}"
            )],
        );
    }
    for name in ["a", "Booking-2_x.y", "0", &"a".repeat(64)] {
        check(
            &format!("servers: {{ \"{name}\": {{ url: http://a/ }} }}"),
            &[],
        );
    }
}

#[test]
fn a_server_url_is_plain_http_or_https() {
    let usual = "write the address of its MCP endpoint, as `http://127.0.0.1:3001/mcp`";
    for (url, why) in [
        ("ftp://a/mcp", "has another scheme than http and https"),
        ("127.0.0.1:3001", "is not a URL"),
        (
            "http://a/mcp#top",
            "has a fragment (`#`), which is never sent",
        ),
        ("'http://a/ mcp'", "has white space in it"),
    ] {
        check(
            &format!("servers: {{ a: {{ url: {url} }} }}"),
            &[&format!("1:22: servers.a.url: the value {why}; {usual}")],
        );
    }
    check(
        "servers: { a: { url: http://me:pass@a/mcp } }",
        &[
            "1:22: servers.a.url: the value has credentials in it, which end up in logs; remove the \
           part before `@`; what a server wants to see belongs in its `headers`",
        ],
    );
}

#[test]
fn headers_that_the_gateway_owns_can_not_be_set() {
    for (name, why) in [
        ("Host", "the gateway sets it from `url`"),
        ("content-length", "it depends on each message"),
        ("Accept", "the protocol prescribes it"),
        ("content-type", "the protocol prescribes it"),
        (
            "accept-encoding",
            "the gateway passes messages on uncompressed",
        ),
        ("Mcp-Session-Id", "each session has its own"),
        ("Mcp-Name", "each request has its own"),
        ("Mcp-Param-Region", "each request has its own"),
        ("mcp-protocol-version", "client and server agree on it"),
        ("connection", "it belongs to one connection"),
        ("Transfer-Encoding", "it belongs to one connection"),
    ] {
        let lower = name.to_lowercase();
        check(
            &format!("servers: {{ a: {{ url: http://a/, headers: {{ {name}: x }} }} }}"),
            &[&format!(
                "1:44: servers.a.headers: `{lower}` can't be set: {why}; remove it"
            )],
        );
    }
}

#[test]
fn headers_are_valid_and_given_once() {
    check(
        "servers:\n  a:\n    url: http://a/\n    headers: { 'x y': a, X-A: b, x-a: c, x-b: \"d\\n\" }",
        &[
            "4:16: servers.a.headers: `x y` is not a header name; write letters, digits and `-` \
             only, as in `x-api-key`",
            "4:34: servers.a.headers: `x-a` is given twice, as upper and lower case are the same; \
             keep one of the two",
            "4:47: servers.a.headers.x-b: the value holds characters that a header can't carry; \
             write visible ASCII letters; a secret from a file must not end in a line break",
        ],
    );
}

#[test]
fn a_burst_needs_a_rate() {
    let burst = "limits.per_principal.burst: a burst without a rate limits nothing; write `requests: \
                 20/s` beside it, or remove `burst`";
    check_with_server(
        "limits: { per_principal: { burst: 5 } }",
        &[&format!("1:28: {burst}")],
    );
    check_with_server(
        "limits: { per_principal: { requests: off, burst: 5 } }",
        &[&format!("1:43: {burst}")],
    );
    check_with_server(
        "limits: { per_principal: { requests: 5/s, burst: off } }",
        &[
            "1:50: limits.per_principal.burst: `off` can't be switched off: what comes at once is \
           bounded; remove `burst` for as many as the rate names, or write `requests: off`",
        ],
    );
}

#[test]
fn a_wait_can_not_be_switched_off() {
    for key in [
        "connect",
        "call",
        "question",
        "stream",
        "resume",
        "shutdown",
        "keep_alive",
    ] {
        let column = key.len() + 15;
        check_with_server(
            &format!("timeouts: {{ {key}: off }}"),
            &[&format!(
                "1:{column}: timeouts.{key}: `off` can't be switched off: every wait has an end; \
                 write a duration as `500ms`, `30s`, `5m` or `1h`"
            )],
        );
    }
}

#[test]
fn names_of_hosts_and_origins_are_whole_and_as_browsers_send_them() {
    check_with_server(
        "\
allowed_hosts:
  - https://mcp.example.com/x
  - '*.example.com'
  - '::1'
  - a/b
allowed_origins:
  - https://app.example.com/
  - HTTPS://App.example.com
  - https://app.example.com:443
  - app.example.com
  - 'null'
  - '*'",
        &[
            "2:5: allowed_hosts[0]: `https://mcp.example.com/x` is a URL, not a host name; write \
             `mcp.example.com`",
            "3:5: allowed_hosts[1]: `*.example.com` is a pattern: hosts are compared whole; write a \
             host name, as `mcp.example.com`",
            "4:5: allowed_hosts[2]: `::1` is an IPv6 address without brackets; write `[::1]`",
            "5:5: allowed_hosts[3]: `a/b` is not a host name; write a host name, as `mcp.example.com`",
            "7:5: allowed_origins[0]: `https://app.example.com/` is not how browsers send an origin; \
             write `https://app.example.com`",
            "8:5: allowed_origins[1]: `HTTPS://App.example.com` is not how browsers send an origin; \
             write `https://app.example.com`",
            "9:5: allowed_origins[2]: `https://app.example.com:443` is not how browsers send an \
             origin; write `https://app.example.com`",
            "10:5: allowed_origins[3]: `app.example.com` is not an origin; write an origin as \
             browsers send it, as `https://app.example.com`",
            "11:5: allowed_origins[4]: `null` is the origin of every sandboxed page and local file, \
             so it tells nobody apart; write an origin as browsers send it, as \
             `https://app.example.com`",
            "12:5: allowed_origins[5]: `*` would let every web page use the gateway with its \
             visitor's credentials; write an origin as browsers send it, as \
             `https://app.example.com`",
        ],
    );
}

#[test]
fn addresses_that_are_nearly_right_are_corrected() {
    for (listen, corrected) in [
        ("8080", "127.0.0.1:8080"),
        ("':8080'", "127.0.0.1:8080"),
        ("localhost:8080", "127.0.0.1:8080"),
        ("'*:8080'", "0.0.0.0:8080"),
        ("127.0.0.1", "127.0.0.1:8080"),
        ("'::1'", "[::1]:8080"),
    ] {
        let written = listen.trim_matches('\'');
        check_with_server(
            &format!("listen: {listen}"),
            &[&format!(
                "1:9: listen: `{written}` is not an address with a port; write `{corrected}`"
            )],
        );
    }
}

#[test]
fn keys_of_other_programs_are_told_from_slips() {
    check(
        "mcpServers: { a: { url: http://a/ } }",
        &[
            "1:1: there is no key `mcpServers`; write `servers`",
            "1:1: `servers` is missing; add `servers: { booking: { url: http://127.0.0.1:3001/mcp } }`",
        ],
    );
    check(
        "servers: { a: { command: npx, args: [x], type: stdio } }",
        &[
            "1:26: servers.a.command is a text where a list belongs; write `[ … ]` there, also around one value",
            "1:31: servers.a has no key `args`; write the program and its arguments as `command: [npx, -y, …]`",
            "1:42: servers.a has no key `type`; remove it; only the old HTTP+SSE has to be named, as `transport: sse`",
        ],
    );
}

#[test]
fn a_port_has_an_end() {
    for listen in ["127.0.0.1:65536", "99999"] {
        check_with_server(
            &format!("listen: {listen}"),
            &[&format!(
                "1:9: listen: `{listen}` has a port above 65535; write an address and a port, as \
                 `127.0.0.1:8080`"
            )],
        );
    }
}

#[test]
fn choices_are_listed() {
    check_with_server(
        "limits: { answer: json }\naudit: { file: a.jsonl, when_full: wait }",
        &[
            "1:19: limits.answer: `json` is not a way to answer; write `jsonrpc` or `http`",
            "2:36: audit.when_full: `wait` is not known; write `block`, `refuse` or `drop`",
        ],
    );
    check_with_server(
        "audit: audit.jsonl",
        &["1:8: audit: `audit.jsonl` is not an audit log; write `{ file: audit.jsonl }`"],
    );
}

#[test]
fn a_missing_variable_is_named_where_it_stands() {
    check(
        "servers:\n  a:\n    url: \"http://${HOST}:${PORT}/mcp\"\n    headers: { x-key: 'k ${KEY}' }",
        &[
            "3:18: `${HOST}`: the environment has no `HOST`; set `HOST` before starting, or write \
             the value here",
            "3:26: `${PORT}`: the environment has no `PORT`; set `PORT` before starting, or write \
             the value here",
            "4:26: `${KEY}`: the environment has no `KEY`; set `KEY` before starting, or write the \
             value here",
        ],
    );
    check_with_server(
        "audit: { file: \"${DIR:-/tmp}/a\" }",
        &[
            "1:17: `${` starts no name of the environment; write `${NAME}` (letters, digits and `_`), \
           or `$${` for the two characters",
        ],
    );
}

proptest::proptest! {
    /// Whatever a file holds, the answer is a configuration or a list of problems.
    #[test]
    fn no_file_is_too_strange(pieces in proptest::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();
        if let Err(problems) = parse(&text) {
            proptest::prop_assert!(problems.iter().count() > 0);
            proptest::prop_assert_eq!(problems.to_string().lines().count(), problems.iter().count());
        }
    }
}

fn piece() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let known = prop::sample::select(vec![
        "servers",
        "auth",
        "limits",
        "url",
        "headers",
        "issuers",
        "api_keys",
        "listen",
        "sha256",
        ": ",
        ":\n",
        "\n",
        "\n  ",
        "\n    ",
        "- ",
        "{ ",
        " }",
        "[",
        "]",
        ", ",
        "\"",
        "'",
        "${",
        "}",
        "$${X}",
        "&a ",
        "*a",
        "<<: *a",
        "!!int ",
        "|\n  ",
        "off",
        "0",
        "20/s",
        "4MiB",
        "18446744073709551616h",
        "http://a",
        "https://[::1",
        "~",
        "\u{feff}",
        "\r\n",
        "\t",
        "# ",
        "---\n",
        "ü",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}
