//! The servers behind the gateway: their names, addresses, headers and limits.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::problem::Position;
use super::quantity::{self, or_off};
use super::read::{Fault, Reader, Table, join};
use super::yaml::Node;
use super::{
    OnSessionLost, Profile, RateLimits, Server, ServerEra, ServerName, ServerTimeouts,
    SessionScope, place, questions,
};

/// The keys of a server.
pub(super) const KEYS: &[&str] = &[
    "url",
    "transport",
    "headers",
    "command",
    "env",
    "cwd",
    "shared",
    "processes",
    "limits",
    "era",
    "session_scope",
    "profile",
    "on_session_lost",
    "timeouts",
    "questions",
    "approve",
];

/// The keys of its timeouts.
pub(super) const TIMES: &[&str] = &["headers", "idle", "call"];

/// The keys of its limits.
pub(super) const RATES: &[&str] = &["requests", "burst", "concurrent"];

const NAME: &str = "write 1 to 64 of `A-Z a-z 0-9 - _ .`, starting with a letter or digit";

/// `servers: { <name>: { url or command, headers, limits, era, session_scope, profile, on_session_lost,
/// timeouts, questions, approve } }`.
pub(super) fn servers(reader: &mut Reader, top: &Table<'_>) -> BTreeMap<ServerName, Arc<Server>> {
    let mut servers = BTreeMap::new();
    let Some(node) = top.required(
        reader,
        "servers",
        "{ booking: { url: http://127.0.0.1:3001/mcp } }",
    ) else {
        return servers;
    };
    let Some(entries) = reader.entries("servers", node, "{ booking: { url: … } }") else {
        return servers;
    };
    if entries.is_empty() {
        let instead = "add one, as `booking: { url: http://127.0.0.1:3001/mcp }`";
        reader.problem(
            node.at,
            "servers: there is no server, so nothing to be a gateway to",
            instead,
        );
    }
    for (key, node) in entries {
        let name = match name(&key.name) {
            Ok(name) => Some(name),
            Err(fault) => {
                let what = format!("servers: `{}` {}", key.name.escape_debug(), fault.why);
                reader.problem(key.at, what, fault.usual);
                None
            }
        };
        let server = server(reader, &join("servers", &key.name), node, name);
        if let Some(server) = server {
            servers.insert(server.name.clone(), Arc::new(server));
        }
    }
    servers
}

/// A name that can stand in a path.
pub(super) fn name(text: &str) -> Result<ServerName, Fault> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let named = text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(allowed);
    if named {
        Ok(ServerName(text.into()))
    } else {
        Err(Fault::new("is not a name that can stand in a path", NAME))
    }
}

fn server(
    reader: &mut Reader,
    path: &str,
    node: &Node,
    name: Option<ServerName>,
) -> Option<Server> {
    let table = reader.table(path, node, KEYS)?;
    let at = place::read(reader, &table);
    let headers = table
        .get("headers")
        .map(|node| headers(reader, &table.path("headers"), node));
    let limits = table.get("limits").and_then(|node| {
        let limits = reader.table(&table.path("limits"), node, RATES)?;
        Some(rates(reader, &limits))
    });
    let era = table.value_or(reader, "era", era, ServerEra::default());
    let session_scope = table.value_or(reader, "session_scope", scope, None);
    let profile = table.value_or(reader, "profile", profile, Profile::default());
    let on_session_lost = table.value_or(
        reader,
        "on_session_lost",
        on_session_lost,
        OnSessionLost::default(),
    );
    let timeouts = table.get("timeouts").and_then(|node| {
        let timeouts = reader.table(&table.path("timeouts"), node, TIMES)?;
        Some(times(reader, &timeouts))
    });
    let questions = table
        .get("questions")
        .map(|node| questions::questions(reader, &table.path("questions"), node));
    let approve = table
        .get("approve")
        .map(|node| questions::approve(reader, &table.path("approve"), node));
    Some(Server {
        name: name?,
        at: at?,
        headers: headers.unwrap_or_default(),
        limits: limits.unwrap_or_default(),
        era,
        session_scope,
        profile,
        on_session_lost,
        timeouts: timeouts.unwrap_or_default(),
        questions: questions.unwrap_or_default(),
        approve: approve.unwrap_or_default(),
    })
}

fn era(text: &str) -> Result<ServerEra, Fault> {
    match text {
        "auto" => Ok(ServerEra::Auto),
        "legacy" => Ok(ServerEra::Legacy),
        "modern" => Ok(ServerEra::Modern),
        _ => Err(Fault::new(
            "is not an era",
            "write `auto`, `legacy` or `modern`",
        )),
    }
}

fn scope(text: &str) -> Result<Option<SessionScope>, Fault> {
    match text {
        "principal" => Ok(Some(SessionScope::Principal)),
        "call" => Ok(Some(SessionScope::Call)),
        "lane" => Ok(Some(SessionScope::Lane)),
        _ => Err(Fault::new(
            "is not a scope of sessions",
            "write `principal`, `call` or `lane`",
        )),
    }
}

fn profile(text: &str) -> Result<Profile, Fault> {
    match text {
        "exact" => Ok(Profile::Exact),
        "pinned" => Ok(Profile::Pinned),
        _ => Err(Fault::new("is not a profile", "write `exact` or `pinned`")),
    }
}

fn times(reader: &mut Reader, table: &Table<'_>) -> ServerTimeouts {
    let duration = |text: &str| quantity::duration(text).map(Some);
    ServerTimeouts {
        headers: table.value_or(reader, "headers", duration, None),
        idle: table.value_or(reader, "idle", duration, None),
        call: table.value_or(reader, "call", duration, None),
    }
}

fn on_session_lost(text: &str) -> Result<OnSessionLost, Fault> {
    match text {
        "renew" => Ok(OnSessionLost::Renew),
        "tell" => Ok(OnSessionLost::Tell),
        _ => Err(Fault::new(
            "is not a way to go on",
            "write `renew` or `tell`",
        )),
    }
}

/// `requests`, `burst` and `concurrent`, which a server and a principal both have.
pub(super) fn rates(reader: &mut Reader, table: &Table<'_>) -> RateLimits {
    // `Some(None)`: surely no rate; `None`: something that is wrong.
    let requests = match table.get("requests") {
        Some(node) => reader.value(&table.path("requests"), node, or_off(quantity::rate)),
        None => Some(None),
    };
    let burst: Option<NonZeroU32> = table.value_or(
        reader,
        "burst",
        |text: &str| match text {
            "off" => Err(Fault::new(
                "can't be switched off: what comes at once is bounded",
                "remove `burst` for as many as the rate names, or write `requests: off`",
            )),
            _ => quantity::number(text).map(Some),
        },
        None,
    );
    if table.get("burst").is_some() && requests == Some(None) {
        let what = format!(
            "{}: a burst without a rate limits nothing",
            table.path("burst")
        );
        reader.problem(
            table.key("burst"),
            what,
            "write `requests: 20/s` beside it, or remove `burst`",
        );
    }
    let requests = requests.flatten().map(|rate| super::Rate {
        burst: burst.unwrap_or(rate.burst),
        ..rate
    });
    let concurrent = table.value_or(reader, "concurrent", or_off(quantity::number), None);
    RateLimits {
        requests,
        concurrent,
    }
}

/// Headers that are sent with each request.
pub(super) fn headers(reader: &mut Reader, path: &str, node: &Node) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (key, node) in reader
        .entries(path, node, "{ x-api-key: \"${BOOKING_KEY}\" }")
        .unwrap_or_default()
    {
        let name = header_name(reader, path, &key.name, key.at);
        let value = reader.secret(&join(path, &key.name), node, header_value);
        let (Some(name), Some(value)) = (name, value) else {
            continue;
        };
        if headers.insert(&name, value).is_some() {
            let what =
                format!("{path}: `{name}` is given twice, as upper and lower case are the same");
            reader.problem(key.at, what, "keep one of the two");
        }
    }
    headers
}

fn header_name(reader: &mut Reader, path: &str, written: &str, at: Position) -> Option<HeaderName> {
    let Ok(name) = HeaderName::from_bytes(written.as_bytes()) else {
        let what = format!("{path}: `{}` is not a header name", written.escape_debug());
        reader.problem(
            at,
            what,
            "write letters, digits and `-` only, as in `x-api-key`",
        );
        return None;
    };
    let why = match name.as_str() {
        "host" => "the gateway sets it from `url`",
        "content-length" => "it depends on each message",
        "accept" | "content-type" => "the protocol prescribes it",
        "accept-encoding" => "the gateway passes messages on uncompressed",
        "mcp-session-id" | "last-event-id" => "each session has its own",
        "mcp-protocol-version" => "client and server agree on it",
        "mcp-method" | "mcp-name" => "each request has its own",
        name if name.starts_with("mcp-param-") => "each request has its own",
        "connection"
        | "keep-alive"
        | "proxy-authenticate"
        | "proxy-authorization"
        | "proxy-connection"
        | "te"
        | "trailer"
        | "transfer-encoding"
        | "upgrade" => "it belongs to one connection",
        _ => return Some(name),
    };
    let what = format!("{path}: `{name}` can't be set: {why}");
    reader.problem(at, what, "remove it");
    None
}

fn header_value(text: &str) -> Result<HeaderValue, Fault> {
    let usual = "write visible ASCII letters; a secret from a file must not end in a line break";
    let Ok(mut value) = HeaderValue::from_str(text) else {
        return Err(Fault::new(
            "holds characters that a header can't carry",
            usual,
        ));
    };
    value.set_sensitive(true);
    Ok(value)
}
