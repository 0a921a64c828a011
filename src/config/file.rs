//! The file as written → [`Config`]: every key, in the order in which the example file has them.
//!
//! # Invariants
//! - All problems are found in one reading; a `Config` comes out only when there are none.
//! - A key that isn't read here doesn't exist: unknown keys are problems, never ignored.

use std::net::{Ipv4Addr, SocketAddr};

use super::named::{KeySetTest, Role};
use super::problem::{Problem, Problems};
use super::quantity::{self, or_off};
use super::read::{Fault, Reader, Table};
use super::yaml::{self, Value};
use super::{
    Access, AuditLog, Config, Environment, LimitAnswer, Limits, PrincipalLimits, PublicUrl,
    Sessions, Timeouts, WhenFull, access, address, server,
};

/// Where the gateway listens unless the file says otherwise.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Every key at the top of the file.
pub(super) const TOP: &[&str] = &[
    "listen",
    "public_url",
    "servers",
    "auth",
    "limits",
    "timeouts",
    "sessions",
    "allowed_hosts",
    "allowed_origins",
    "legacy_sse",
    "audit",
];

/// Reads and checks the text of a configuration file called `name`.
pub(super) fn parse(
    name: &str,
    text: &str,
    environment: Environment<'_>,
) -> Result<Config, Problems> {
    let (config, reader) = read(text, environment);
    judge(name, config, reader.problems)
}

/// The same, and looks at the files that it names.
pub(super) fn load(
    name: &str,
    text: &str,
    environment: Environment<'_>,
    is_key_set: KeySetTest<'_>,
) -> Result<Config, Problems> {
    let (config, reader) = read(text, environment);
    let of_files = reader.files.iter();
    let of_files = of_files.filter_map(|file| file.problem(is_key_set));
    let problems = reader.problems.into_iter().chain(of_files).collect();
    judge(name, config, problems)
}

fn judge(name: &str, config: Option<Config>, problems: Vec<Problem>) -> Result<Config, Problems> {
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        _ => Err(Problems::new(name, problems)),
    }
}

fn read(text: &str, environment: Environment<'_>) -> (Option<Config>, Reader) {
    let mut reader = Reader::default();
    let config = match yaml::parse(text, environment, &mut reader.problems) {
        Ok(root) => reader
            .table("", &root, TOP)
            .and_then(|top| config(&mut reader, &top)),
        Err(problem) => {
            reader.problems.push(problem);
            None
        }
    };
    (config, reader)
}

/// The problem of a file that can't be read at all.
pub(super) fn unreadable(name: &str, error: &std::io::Error) -> Problems {
    let instead = match error.kind() {
        std::io::ErrorKind::NotFound => "name an existing file with `--config`",
        std::io::ErrorKind::InvalidData => "save it as UTF-8",
        _ => "make it a file that this user may read",
    };
    let what = format!("the file can't be read: {error}");
    Problems::new(
        name,
        vec![Problem {
            at: None,
            what,
            instead: instead.to_owned(),
        }],
    )
}

fn config(reader: &mut Reader, top: &Table<'_>) -> Option<Config> {
    let listen = match top.get("listen") {
        Some(node) => reader.value("listen", node, address::listen),
        None => Some(LISTEN),
    };
    let public_url = match top.get("public_url") {
        Some(node) => reader.secret("public_url", node, address::public),
        None => listen.map(PublicUrl::of),
    };
    let servers = server::servers(reader, top);
    let access = access::access(reader, top, listen);
    let limits = section(reader, top, "limits", LIMITS, limits);
    let timeouts = section(reader, top, "timeouts", TIMEOUTS, timeouts);
    let sessions = section(reader, top, "sessions", SESSIONS, sessions);
    let mut allowed_hosts = top
        .get("allowed_hosts")
        .map(|node| reader.values("allowed_hosts", node, address::host))
        .unwrap_or_default();
    allowed_hosts.sort();
    allowed_hosts.dedup();
    let allowed_origins = top
        .get("allowed_origins")
        .map(|node| reader.values("allowed_origins", node, address::origin))
        .unwrap_or_default();
    let legacy_sse = top.value_or(reader, "legacy_sse", quantity::yes_or_no, false);
    let audit = audit(reader, top);
    address_for_clients(reader, top, listen, access.as_ref());
    Some(Config {
        listen: listen?,
        public_url: public_url?,
        servers,
        access: access?,
        limits,
        timeouts,
        sessions,
        allowed_hosts,
        allowed_origins,
        legacy_sse,
        audit,
    })
}

/// Whoever listens on every address of a machine has to say how clients name it: they can't connect
/// to `0.0.0.0`, tokens would be for it, and every `Host` header would be refused.
fn address_for_clients(
    reader: &mut Reader,
    top: &Table<'_>,
    listen: Option<SocketAddr>,
    access: Option<&Access>,
) {
    let everywhere = listen.is_some_and(|listen| listen.ip().to_canonical().is_unspecified());
    let Some(node) = top
        .get("listen")
        .filter(|_| everywhere && top.get("public_url").is_none())
    else {
        return;
    };
    let named = top
        .get("allowed_hosts")
        .is_some_and(|node| !matches!(&node.value, Value::List(list) if list.is_empty()));
    let instead = match access {
        Some(Access::Required(_)) => {
            "add `public_url: https://mcp.example.com`, with the address that clients use"
        }
        Some(Access::Open) if !named => {
            "add `public_url: https://mcp.example.com`, with the address that clients use, or list \
             their names for the gateway under `allowed_hosts`"
        }
        _ => return,
    };
    reader.problem(
        node.at,
        "listen: this is every address of the machine and none that clients could name",
        instead,
    );
}

/// A mapping whose every key has a default, and which has one itself.
fn section<T: Default>(
    reader: &mut Reader,
    table: &Table<'_>,
    key: &str,
    known: &[&str],
    read: fn(&mut Reader, &Table<'_>) -> T,
) -> T {
    let section = table
        .get(key)
        .and_then(|node| reader.table(&table.path(key), node, known));
    section
        .map(|section| read(reader, &section))
        .unwrap_or_default()
}

pub(super) const LIMITS: &[&str] = &[
    "per_principal",
    "body",
    "message",
    "streams",
    "buffer",
    "connections",
    "answer",
];

fn limits(reader: &mut Reader, table: &Table<'_>) -> Limits {
    let default = Limits::default();
    Limits {
        per_principal: section(reader, table, "per_principal", PER_PRINCIPAL, per_principal),
        body: table.value_or(reader, "body", or_off(quantity::size), default.body),
        message: table.value_or(reader, "message", or_off(quantity::size), default.message),
        streams: table.value_or(reader, "streams", or_off(quantity::count), default.streams),
        buffer: table.value_or(reader, "buffer", quantity::count, default.buffer),
        connections: table.value_or(
            reader,
            "connections",
            or_off(quantity::count),
            default.connections,
        ),
        answer: table.value_or(reader, "answer", answer, default.answer),
    }
}

pub(super) const PER_PRINCIPAL: &[&str] =
    &["requests", "burst", "concurrent", "sessions", "questions"];

fn per_principal(reader: &mut Reader, table: &Table<'_>) -> PrincipalLimits {
    let default = PrincipalLimits::default();
    PrincipalLimits {
        rates: server::rates(reader, table),
        sessions: table.value_or(
            reader,
            "sessions",
            or_off(quantity::count),
            default.sessions,
        ),
        questions: table.value_or(
            reader,
            "questions",
            or_off(quantity::count),
            default.questions,
        ),
    }
}

fn answer(text: &str) -> Result<LimitAnswer, Fault> {
    match text {
        "jsonrpc" => Ok(LimitAnswer::JsonRpc),
        "http" => Ok(LimitAnswer::Http),
        _ => Err(Fault::new(
            "is not a way to answer",
            "write `jsonrpc` or `http`",
        )),
    }
}

pub(super) const TIMEOUTS: &[&str] = &[
    "connect",
    "call",
    "headers",
    "idle",
    "question",
    "stream",
    "resume",
    "shutdown",
    "keep_alive",
];

fn timeouts(reader: &mut Reader, table: &Table<'_>) -> Timeouts {
    let default = Timeouts::default();
    Timeouts {
        connect: table.value_or(reader, "connect", quantity::duration, default.connect),
        call: table.value_or(reader, "call", quantity::duration, default.call),
        headers: table.value_or(
            reader,
            "headers",
            |text| quantity::duration(text).map(Some),
            None,
        ),
        idle: table.value_or(
            reader,
            "idle",
            |text| quantity::duration(text).map(Some),
            None,
        ),
        question: table.value_or(reader, "question", quantity::duration, default.question),
        stream: table.value_or(reader, "stream", quantity::duration, default.stream),
        resume: table.value_or(reader, "resume", quantity::duration, default.resume),
        shutdown: table.value_or(reader, "shutdown", quantity::duration, default.shutdown),
        keep_alive: table.value_or(reader, "keep_alive", quantity::duration, default.keep_alive),
    }
}

pub(super) const SESSIONS: &[&str] = &["idle", "max"];

fn sessions(reader: &mut Reader, table: &Table<'_>) -> Sessions {
    let default = Sessions::default();
    Sessions {
        idle: table.value_or(reader, "idle", quantity::duration, default.idle),
        max: table.value_or(reader, "max", or_off(quantity::count), default.max),
    }
}

pub(super) const AUDIT: &[&str] = &["file", "when_full"];

fn audit(reader: &mut Reader, top: &Table<'_>) -> Option<AuditLog> {
    let node = top.get("audit")?;
    if let Value::Text(_) = node.value {
        let usual = "write `audit: { file: audit.jsonl }`, or `audit: off`";
        return reader.value("audit", node, |text: &str| match text {
            "off" => Ok(None),
            _ => Err(Fault::new("is not an audit log", usual).fix(format!("{{ file: {text} }}"))),
        })?;
    }
    let table = reader.table("audit", node, AUDIT)?;
    let file = table
        .required(reader, "file", "audit.jsonl")
        .and_then(|node| reader.file("audit.file", node, Role::Audit));
    let when_full = table.value_or(reader, "when_full", when_full, WhenFull::default());
    Some(AuditLog {
        file: file?,
        when_full,
    })
}

fn when_full(text: &str) -> Result<WhenFull, Fault> {
    match text {
        "block" => Ok(WhenFull::Block),
        "refuse" => Ok(WhenFull::Refuse),
        "drop" => Ok(WhenFull::Drop),
        _ => Err(Fault::new(
            "is not known",
            "write `block`, `refuse` or `drop`",
        )),
    }
}
