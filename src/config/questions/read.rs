//! `questions` and `approve` of a server, as people write them.

use std::time::Duration;

use serde_json::Value as Json;
use url::Url;

use super::super::condition::Condition;
use super::super::program::program;
use super::super::quantity::{self, or_off};
use super::super::read::{Fault, Reader, Table, join};
use super::super::server;
use super::super::yaml::{Node, Value};
use super::{
    Hook, HookAt, Mode, OnError, QuestionLimits, Questions, Reply, Rule, SchemaRule, Secrets, Then,
    Urls, WhenClientCannot,
};

/// The keys of `questions`, and of what stands in it.
pub(in crate::config) const KEYS: &[&str] = &[
    "elicitation",
    "sampling",
    "roots",
    "when_client_cannot",
    "timeout",
    "on_timeout",
    "limits",
    "secrets",
    "schema",
    "urls",
    "label",
    "rules",
    "hooks",
];
const OUTCOMES: [&str; 5] = ["accept", "decline", "cancel", "refuse", "pass"];
pub(in crate::config) const LIMITS: &[&str] = &["per_call", "pending", "rate"];
pub(in crate::config) const URLS: &[&str] = &["schemes", "hosts"];
pub(in crate::config) const RULE: &[&str] = &[
    "name", "when", "accept", "decline", "cancel", "refuse", "pass",
];
pub(in crate::config) const HOOK: &[&str] = &[
    "command", "url", "env", "cwd", "headers", "timeout", "on_error",
];

/// How long a hook may take of which the file does not say.
const BEFORE: Duration = Duration::from_secs(5);
const AFTER: Duration = Duration::from_secs(3);

/// `questions: { … }` of a server.
pub(in crate::config) fn questions(reader: &mut Reader, path: &str, node: &Node) -> Questions {
    let default = Questions::default();
    let Some(table) = reader.table(path, node, KEYS) else {
        return default;
    };
    let (form, url) = elicitation(reader, &table);
    let limits = table.get("limits");
    let limits = limits.map(|node| self::limits(reader, &table.path("limits"), node));
    let urls = table
        .get("urls")
        .map(|node| urls(reader, &table.path("urls"), node));
    let rules = table
        .get("rules")
        .map(|node| rules(reader, &table.path("rules"), node));
    let (before, after) = hooks(reader, &table);
    Questions {
        form,
        url,
        sampling: table.value_or(reader, "sampling", ask_or_refuse, default.sampling),
        roots: table.value_or(reader, "roots", ask_or_refuse, default.roots),
        when_client_cannot: table.value_or(
            reader,
            "when_client_cannot",
            when_client_cannot,
            default.when_client_cannot,
        ),
        timeout: table.value_or(
            reader,
            "timeout",
            |text: &str| quantity::duration(text).map(Some),
            None,
        ),
        on_timeout: table.value_or(reader, "on_timeout", reply, default.on_timeout),
        limits: limits.unwrap_or_default(),
        secrets: table.value_or(reader, "secrets", secrets, default.secrets),
        schema: table.value_or(reader, "schema", schema, default.schema),
        urls: urls.unwrap_or_default(),
        label: table.value_or(reader, "label", quantity::yes_or_no, default.label),
        rules: rules.unwrap_or_default(),
        before,
        after,
    }
}

/// `elicitation: { form: ask, url: ask }`, or one word for both.
fn elicitation(reader: &mut Reader, table: &Table<'_>) -> (Mode, Mode) {
    let (key, path) = ("elicitation", table.path("elicitation"));
    match table.get(key) {
        Some(node) if matches!(node.value, Value::Map(_)) => {
            let Some(modes) = reader.table(&path, node, &["form", "url"]) else {
                return (Mode::Ask, Mode::Ask);
            };
            (
                modes.value_or(reader, "form", mode, Mode::Ask),
                modes.value_or(reader, "url", mode, Mode::Ask),
            )
        }
        Some(node) => {
            let both = reader.value(&path, node, mode).unwrap_or(Mode::Ask);
            (both, both)
        }
        None => (Mode::Ask, Mode::Ask),
    }
}

fn limits(reader: &mut Reader, path: &str, node: &Node) -> QuestionLimits {
    let default = QuestionLimits::default();
    let Some(table) = reader.table(path, node, LIMITS) else {
        return default;
    };
    QuestionLimits {
        per_call: table.value_or(
            reader,
            "per_call",
            or_off(quantity::number),
            default.per_call,
        ),
        pending: table.value_or(reader, "pending", or_off(quantity::number), default.pending),
        rate: table.value_or(reader, "rate", or_off(quantity::rate), default.rate),
    }
}

fn urls(reader: &mut Reader, path: &str, node: &Node) -> Urls {
    let default = Urls::default();
    let Some(table) = reader.table(path, node, URLS) else {
        return default;
    };
    let mut list = |key, parse: fn(&str) -> Result<String, Fault>| {
        let node = table.get(key)?;
        Some(reader.values(&table.path(key), node, parse))
    };
    Urls {
        schemes: list("schemes", scheme).unwrap_or(default.schemes),
        hosts: list("hosts", host).unwrap_or(default.hosts),
    }
}

fn rules(reader: &mut Reader, path: &str, node: &Node) -> Vec<Rule> {
    let nodes = reader.list(path, node);
    let rules = nodes
        .into_iter()
        .filter_map(|(path, node)| rule(reader, &path, node));
    rules.collect()
}

fn rule(reader: &mut Reader, path: &str, node: &Node) -> Option<Rule> {
    let table = reader.table(path, node, RULE)?;
    let named = |text: &str| match text.trim() {
        "" => Err(Fault::new(
            "is no name",
            "write a few words, or remove `name`",
        )),
        name => Ok(Some(name.to_owned())),
    };
    let name = table.value_or(reader, "name", named, None);
    let when = table
        .required(reader, "when", "'tool == \"create_entities\"'")
        .and_then(|node| reader.value(&table.path("when"), node, Condition::read));
    let said: Vec<_> = OUTCOMES
        .iter()
        .filter(|key| table.get(key).is_some())
        .collect();
    let [outcome] = said.as_slice() else {
        let what = match said.len() {
            0 => format!("{path}: the rule does nothing"),
            _ => format!("{path}: the rule does several things"),
        };
        let instead = "write one of `accept: { … }`, `decline: true`, `cancel: true`, `refuse: true` and `pass: true`";
        reader.problem(node.at, what, instead);
        return None;
    };
    let key = **outcome;
    let at = table.get(key)?;
    let then = if key == "accept" {
        Then::Accept(content(reader, &table.path(key), at)?)
    } else {
        reader.value(&table.path(key), at, only_true)?;
        match key {
            "decline" => Then::Decline,
            "cancel" => Then::Cancel,
            "refuse" => Then::Refuse,
            _ => Then::Pass,
        }
    };
    Some(Rule {
        name,
        when: when?,
        then,
    })
}

/// The fields of an answer: texts, and lists of texts.
fn content(reader: &mut Reader, path: &str, node: &Node) -> Option<serde_json::Map<String, Json>> {
    let entries = reader.entries(path, node, "{ field: value }")?;
    let mut content = serde_json::Map::new();
    let text = |text: &str| Ok(Json::String(text.to_owned()));
    for (key, node) in entries {
        let path = join(path, &key.name);
        let value = match &node.value {
            Value::List(_) => Some(Json::Array(reader.values(&path, node, text))),
            _ => reader.secret(&path, node, text),
        };
        content.insert(key.name.clone(), value?);
    }
    Some(content)
}

fn hooks(reader: &mut Reader, table: &Table<'_>) -> (Option<Hook>, Option<Hook>) {
    let path = table.path("hooks");
    let hooks = table.get("hooks");
    let Some(hooks) = hooks.and_then(|node| reader.table(&path, node, &["before", "after"])) else {
        return (None, None);
    };
    let mut one = |key, timeout, on_error| {
        let node = hooks.get(key)?;
        hook(reader, &hooks.path(key), node, (timeout, on_error))
    };
    (
        one("before", BEFORE, OnError::Ask),
        one("after", AFTER, OnError::Reply(Reply::Cancel)),
    )
}

fn hook(
    reader: &mut Reader,
    path: &str,
    node: &Node,
    default: (Duration, OnError),
) -> Option<Hook> {
    let table = reader.table(path, node, HOOK)?;
    let timeout = table.value_or(reader, "timeout", quantity::duration, default.0);
    let on_error = table.value_or(reader, "on_error", on_error, default.1);
    let at = match (table.get("command"), table.get("url")) {
        (Some(command), None) => {
            table.without(reader, "headers", "a command has no headers");
            HookAt::Command(program(reader, &table, command, "[./hooks/check.sh]")?)
        }
        (None, Some(url)) => url_of(reader, &table, url)?,
        (both, _) => {
            let what = match both {
                Some(_) => format!("{path}: a hook is a command or a URL, not both"),
                None => format!("{path}: the hook is nowhere"),
            };
            let instead =
                "write `command: [./hooks/check.sh]` or `url: https://policy.internal/elicitation`";
            reader.problem(node.at, what, instead);
            return None;
        }
    };
    Some(Hook {
        at,
        timeout,
        on_error,
    })
}

fn url_of(reader: &mut Reader, table: &Table<'_>, node: &Node) -> Option<HookAt> {
    let url = reader.secret(&table.path("url"), node, |text: &str| {
        let usual = "write an http or https URL, as `https://policy.internal/elicitation`";
        match Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
            _ => Err(Fault::new("is not the address of a hook", usual)),
        }
    });
    let headers = table.get("headers");
    let headers = headers.map(|node| server::headers(reader, &table.path("headers"), node));
    for key in ["env", "cwd"] {
        table.without(reader, key, "a URL is not started");
    }
    Some(HookAt::Url {
        url: url?,
        headers: headers.unwrap_or_default(),
    })
}

/// `approve: ["delete_*"]`: names of tools, `*` for any text.
pub(in crate::config) fn approve(reader: &mut Reader, path: &str, node: &Node) -> Vec<String> {
    reader.values(path, node, |text: &str| match text.trim() {
        "" => Err(Fault::new(
            "names no tool",
            "write the name of a tool, with `*` for any text, as `delete_*`",
        )),
        name => Ok(name.to_owned()),
    })
}

fn mode(text: &str) -> Result<Mode, Fault> {
    match text {
        "ask" => Ok(Mode::Ask),
        "decline" => Ok(Mode::Decline),
        "cancel" => Ok(Mode::Cancel),
        "refuse" => Ok(Mode::Refuse),
        _ => Err(Fault::new(
            "is not known",
            "write `ask`, `decline`, `cancel` or `refuse`",
        )),
    }
}

/// Sampling and roots have no word for "no".
fn ask_or_refuse(text: &str) -> Result<Mode, Fault> {
    match text {
        "ask" => Ok(Mode::Ask),
        "refuse" => Ok(Mode::Refuse),
        "decline" | "cancel" => Err(Fault::new(
            "is an answer that only elicitations have",
            "write `ask` or `refuse`",
        )),
        _ => Err(Fault::new("is not known", "write `ask` or `refuse`")),
    }
}

fn when_client_cannot(text: &str) -> Result<WhenClientCannot, Fault> {
    match text {
        "undeclared" => Ok(WhenClientCannot::Undeclared),
        "decline" => Ok(WhenClientCannot::Decline),
        "cancel" => Ok(WhenClientCannot::Cancel),
        _ => Err(Fault::new(
            "is not known",
            "write `undeclared`, `decline` or `cancel`",
        )),
    }
}

fn reply(text: &str) -> Result<Reply, Fault> {
    match text {
        "decline" => Ok(Reply::Decline),
        "cancel" => Ok(Reply::Cancel),
        "refuse" => Ok(Reply::Refuse),
        _ => Err(Fault::new(
            "is not known",
            "write `cancel`, `decline` or `refuse`",
        )),
    }
}

fn on_error(text: &str) -> Result<OnError, Fault> {
    match text {
        "ask" => Ok(OnError::Ask),
        text => reply(text).map(OnError::Reply).map_err(|_| {
            Fault::new(
                "is not known",
                "write `ask`, `cancel`, `decline` or `refuse`",
            )
        }),
    }
}

fn secrets(text: &str) -> Result<Secrets, Fault> {
    match text {
        "refuse" => Ok(Secrets::Refuse),
        "flag" => Ok(Secrets::Flag),
        "allow" => Ok(Secrets::Allow),
        _ => Err(Fault::new(
            "is not known",
            "write `refuse`, `flag` or `allow`",
        )),
    }
}

fn schema(text: &str) -> Result<SchemaRule, Fault> {
    match text {
        "strict" => Ok(SchemaRule::Strict),
        "lenient" => Ok(SchemaRule::Lenient),
        _ => Err(Fault::new("is not known", "write `strict` or `lenient`")),
    }
}

fn only_true(text: &str) -> Result<(), Fault> {
    match text {
        "true" => Ok(()),
        _ => Err(Fault::new(
            "is not `true`",
            "write `true`, or remove the line",
        )),
    }
}

fn scheme(text: &str) -> Result<String, Fault> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    if text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err(Fault::new(
            "is not a scheme",
            "write it in small letters and without `://`, as `https`",
        ))
    }
}

fn host(text: &str) -> Result<String, Fault> {
    let name = text.strip_prefix("*.").unwrap_or(text);
    match url::Host::parse(name) {
        Ok(host) if !name.contains('*') => Ok(if name.len() < text.len() {
            format!("*.{host}")
        } else {
            host.to_string()
        }),
        _ => Err(Fault::new(
            "is not a host",
            "write `login.example.com`, or `*.example.com` for all names below",
        )),
    }
}
