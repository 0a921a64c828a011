//! Reading a tree of YAML while keeping every problem: mappings with known keys, lists, values.
//!
//! Each read gives what it could read; what is wrong goes to the list of problems. So one bad
//! value hides no other.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::named::{Named, Role};
use super::problem::{Position, Problem};
use super::spelling::nearest;
use super::yaml::{Key, Node, Text, Value};

/// Collects problems while a tree is read.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) problems: Vec<Problem>,
    /// The files that were named, to be looked at later.
    pub(super) files: Vec<Named>,
}

/// A mapping whose keys are all known.
pub(super) struct Table<'a> {
    path: String,
    at: Position,
    entries: BTreeMap<&'a str, (Position, &'a Node)>,
}

/// Why a text is not the value it should be.
///
/// Only `fix` may hold parts of the text; it is not shown when the text is a secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Follows the text in a sentence: "is not a size".
    pub(super) why: &'static str,
    /// The corrected text, where it can be told.
    pub(super) fix: Option<String>,
    /// What to write in general, as a command.
    pub(super) usual: &'static str,
}

/// Whether a text may be repeated in a problem.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Written,
    Never,
}

/// A function that makes a value of a text.
pub(super) trait Parse<T>: Fn(&str) -> Result<T, Fault> {}

impl<T, F: Fn(&str) -> Result<T, Fault>> Parse<T> for F {}

impl Fault {
    pub(super) fn new(why: &'static str, usual: &'static str) -> Self {
        Self {
            why,
            fix: None,
            usual,
        }
    }

    /// The same fault with the corrected text.
    pub(super) fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }

    /// What is wrong with the text, and what to do.
    fn describe(self, text: &Text, show: Show) -> (String, String) {
        let shown = match show {
            Show::Written if text.written.is_empty() => "the empty text".to_owned(),
            Show::Written => format!("`{}`", Excerpt(&text.written)),
            Show::Never => "the value".to_owned(),
        };
        let instead = match self.fix {
            Some(fix) if show == Show::Written && !text.from_environment => {
                format!("write `{fix}`")
            }
            _ => self.usual.to_owned(),
        };
        (format!("{shown} {}", self.why), instead)
    }
}

impl Reader {
    pub(super) fn problem(
        &mut self,
        at: Position,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) {
        self.problems.push(Problem {
            at: Some(at),
            what: what.into(),
            instead: instead.into(),
        });
    }

    /// A mapping with these keys only.
    pub(super) fn table<'a>(
        &mut self,
        path: &str,
        node: &'a Node,
        known: &[&str],
    ) -> Option<Table<'a>> {
        let mut entries = BTreeMap::new();
        for (key, value) in self.entries(path, node, &braces(known))? {
            if known.contains(&key.name.as_str()) {
                entries.insert(key.name.as_str(), (key.at, value));
            } else {
                self.unknown(path, key, known);
            }
        }
        Some(Table {
            path: path.to_owned(),
            at: node.at,
            entries,
        })
    }

    /// A mapping with keys that the user chooses, each at most once. `form` shows what to write.
    pub(super) fn entries<'a>(
        &mut self,
        path: &str,
        node: &'a Node,
        form: &str,
    ) -> Option<Vec<(&'a Key, &'a Node)>> {
        let Value::Map(map) = &node.value else {
            let instead = if path.is_empty() {
                "start with `servers:`".to_owned()
            } else {
                format!("write `{form}` there, or remove the key")
            };
            self.wrong_kind(path, node, "keys with values belong", instead);
            return None;
        };
        let mut first = BTreeMap::new();
        let mut entries = Vec::with_capacity(map.len());
        for (key, value) in map {
            if let Some(line) = first.insert(key.name.as_str(), key.at.line) {
                let path = join(path, &key.name);
                let what = format!("{path} is given twice, first in line {line}");
                self.problem(key.at, what, "keep one of the two");
            } else {
                entries.push((key, value));
            }
        }
        Some(entries)
    }

    /// The nodes of a list.
    pub(super) fn list<'a>(&mut self, path: &str, node: &'a Node) -> Vec<(String, &'a Node)> {
        let Value::List(list) = &node.value else {
            self.wrong_kind(
                path,
                node,
                "a list belongs",
                "write `[ … ]` there, also around one value",
            );
            return Vec::new();
        };
        list.iter()
            .enumerate()
            .map(|(index, node)| (format!("{path}[{index}]"), node))
            .collect()
    }

    /// A list of values; those that are wrong are left out.
    pub(super) fn values<T>(&mut self, path: &str, node: &Node, parse: impl Parse<T>) -> Vec<T> {
        let nodes = self.list(path, node);
        nodes
            .into_iter()
            .filter_map(|(path, node)| self.value(&path, node, &parse))
            .collect()
    }

    /// A value that problems may quote.
    pub(super) fn value<T>(&mut self, path: &str, node: &Node, parse: impl Parse<T>) -> Option<T> {
        self.parsed(path, node, Show::Written, parse)
    }

    /// A value that problems never quote.
    pub(super) fn secret<T>(&mut self, path: &str, node: &Node, parse: impl Parse<T>) -> Option<T> {
        self.parsed(path, node, Show::Never, parse)
    }

    /// A list of values that problems never quote; those that are wrong are left out.
    pub(super) fn secrets<T>(&mut self, path: &str, node: &Node, parse: impl Parse<T>) -> Vec<T> {
        let nodes = self.list(path, node);
        nodes
            .into_iter()
            .filter_map(|(path, node)| self.secret(&path, node, &parse))
            .collect()
    }

    /// A path, taken from the folder in which the gateway is started.
    pub(super) fn file(&mut self, key: &str, node: &Node, role: Role) -> Option<PathBuf> {
        let path = self.value(key, node, |text: &str| {
            if text.trim().is_empty() {
                return Err(Fault::new("is not a file", "write the path of a file"));
            }
            Ok(PathBuf::from(text))
        })?;
        if let Value::Text(text) = &node.value {
            self.files.push(Named {
                at: node.at,
                key: key.to_owned(),
                written: text.written.clone(),
                path: path.clone(),
                role,
            });
        }
        Some(path)
    }

    fn parsed<T>(
        &mut self,
        path: &str,
        node: &Node,
        show: Show,
        parse: impl Parse<T>,
    ) -> Option<T> {
        let Value::Text(text) = &node.value else {
            // The parser knows what to write: ask it about a text that is surely wrong.
            let instead = parse("")
                .err()
                .map_or("write one value", |fault| fault.usual);
            self.wrong_kind(path, node, "one value belongs", instead);
            return None;
        };
        match parse(text.meant.as_deref()?) {
            Ok(value) => Some(value),
            Err(fault) => {
                let (what, instead) = fault.describe(text, show);
                self.problem(node.at, format!("{path}: {what}"), instead);
                None
            }
        }
    }

    fn wrong_kind(&mut self, path: &str, node: &Node, wanted: &str, instead: impl Into<String>) {
        let found = match &node.value {
            Value::Empty if path.is_empty() => "is empty",
            Value::Empty => "has no value",
            Value::Text(_) => "is a text",
            Value::List(_) => "is a list",
            Value::Map(_) => "is a mapping",
        };
        let subject = if path.is_empty() { "the file" } else { path };
        self.problem(
            node.at,
            format!("{subject} {found} where {wanted}"),
            instead,
        );
    }

    fn unknown(&mut self, path: &str, key: &Key, known: &[&str]) {
        let what = match path {
            "" => format!("there is no key `{}`", key.name.escape_debug()),
            _ => format!("{path} has no key `{}`", key.name.escape_debug()),
        };
        let instead = match (foreign(path, &key.name), nearest(&key.name, known)) {
            (Some(instead), _) => instead.to_owned(),
            (None, Some(meant)) => format!("write `{meant}`, if that is meant"),
            (None, None) => format!("the keys here are {}", listed(known)),
        };
        self.problem(key.at, what, instead);
    }
}

impl<'a> Table<'a> {
    /// The full name of one of its keys.
    pub(super) fn path(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// The value of a key, if the file has it.
    pub(super) fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.get(key).map(|(_, node)| *node)
    }

    /// Where a key is.
    pub(super) fn key(&self, key: &str) -> Position {
        self.entries.get(key).map_or(self.at, |(at, _)| *at)
    }

    /// Sees to it that a key is not there, and says why it must not be.
    pub(super) fn without(&self, reader: &mut Reader, key: &str, why: &str) {
        if self.get(key).is_some() {
            let what = format!("{}: {why}", self.path(key));
            reader.problem(self.key(key), what, "remove it");
        }
    }

    /// The value of a key, or a default when the file leaves it out.
    pub(super) fn value_or<T>(
        &self,
        reader: &mut Reader,
        key: &str,
        parse: impl Parse<T>,
        default: T,
    ) -> T {
        match self.get(key) {
            Some(node) => reader
                .value(&self.path(key), node, parse)
                .unwrap_or(default),
            None => default,
        }
    }

    /// The node of a key that must be there; `example` is what its line could be.
    pub(super) fn required(
        &self,
        reader: &mut Reader,
        key: &str,
        example: &str,
    ) -> Option<&'a Node> {
        let node = self.get(key);
        if node.is_none() {
            let what = match self.path.as_str() {
                "" => format!("`{key}` is missing"),
                path => format!("{path} has no `{key}`"),
            };
            reader.problem(self.at, what, format!("add `{key}: {example}`"));
        }
        node
    }
}

/// What to do about a key that the configurations of MCP clients have.
fn foreign(path: &str, key: &str) -> Option<&'static str> {
    match (path, key) {
        ("", "mcpServers" | "mcp_servers") => Some("write `servers`"),
        // There `command` is a text, and this is beside it.
        (_, "args") if path.starts_with("servers.") => {
            Some("write the program and its arguments as `command: [npx, -y, …]`")
        }
        (_, "type") if path.starts_with("servers.") => {
            Some("remove it; only the old HTTP+SSE has to be named, as `transport: sse`")
        }
        (_, "legacy_sse") if path.starts_with("servers.") => Some(
            "it is about clients, and belongs to the top of the file; a server that speaks the old \
             HTTP+SSE has `transport: sse`",
        ),
        _ => None,
    }
}

/// The beginning of a text, on one line.
struct Excerpt<'a>(&'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 60;
        for char in self.0.chars().take(LONGEST).flat_map(char::escape_debug) {
            write!(f, "{char}")?;
        }
        if self.0.chars().nth(LONGEST).is_some() {
            f.write_str("…")?;
        }
        Ok(())
    }
}

/// `limits` and `body` make `limits.body`; a key with other characters is quoted.
pub(super) fn join(path: &str, key: &str) -> String {
    let plain = key
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    match (path, plain) {
        ("", true) => key.to_owned(),
        ("", false) => format!("{key:?}"),
        (_, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}.{key:?}"),
    }
}

fn braces(known: &[&str]) -> String {
    match known {
        [] => "{}".to_owned(),
        [first, ..] => format!("{{ {first}: … }}"),
    }
}

fn listed(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
