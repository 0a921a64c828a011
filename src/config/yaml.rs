//! A YAML file as a tree in which every key and value knows its place, with `${NAME}` filled in.
//!
//! Deserializing into structs would stop at the first thing that is wrong; from a tree the reader
//! can report them all.
//!
//! # Invariants
//! - Environment values only ever fill in a part of a scalar: they are never read as YAML.
//! - A scalar is kept as it is spelled. `off`, `0123` and sixty-four digits stay what they are,
//!   whatever YAML would make of them.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Location, Spanned, UserMessageFormatter};

use super::Environment;
use super::interpolate::{Filled, Gap, fill};
use super::problem::{Position, Problem};

/// A value and its place.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: Position,
    pub(super) value: Value,
}

/// What can be at a place.
#[derive(Debug)]
pub(super) enum Value {
    /// Nothing, as after `auth:` at the end of a line.
    Empty,
    Text(Text),
    List(Vec<Node>),
    /// Keys may occur twice: who reads the mapping reports that.
    Map(Vec<(Key, Node)>),
}

/// A key and its place.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) at: Position,
    pub(super) name: String,
}

/// A scalar, before and after `${NAME}` was filled in.
pub(super) struct Text {
    /// As in the file: safe to show.
    pub(super) written: String,
    /// As meant, which may hold secrets of the environment; `None` when the environment lacks
    /// something, which is a problem of its own.
    pub(super) meant: Option<String>,
    /// Whether something of the environment is in `meant`.
    pub(super) from_environment: bool,
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&self.written).finish()
    }
}

/// Reads a YAML document. Names that the environment lacks are added to `problems`.
///
/// # Errors
/// When the text is no YAML; only the first place where it isn't can be known.
pub(super) fn parse(
    source: &str,
    environment: Environment<'_>,
    problems: &mut Vec<Problem>,
) -> Result<Node, Problem> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<Raw>(source, options) {
        Ok(raw) => Ok(Filler {
            source,
            environment,
            problems,
        }
        .node(raw)),
        Err(error) => Err(broken(source, &error)),
    }
}

fn broken(source: &str, error: &serde_saphyr::Error) -> Problem {
    let at = error.location().and_then(position);
    let message = error
        .without_snippet()
        .render_with_formatter(&UserMessageFormatter);
    // The place is said by `at`.
    let message = message
        .split(" at line ")
        .next()
        .unwrap_or(&message)
        .trim_end_matches(',');
    let number = at.and_then(|at| usize::try_from(at.line).ok());
    let line = source.lines().nth(number.unwrap_or(1).saturating_sub(1));
    let line = line.unwrap_or_default().trim_start_matches(' ');
    let instead = if line.starts_with('\t') {
        "indent with spaces: YAML allows no tabs there"
    } else if line.contains("${") {
        "within `{ }` and `[ ]` put quotes around it: `\"${NAME}\"`"
    } else if line.contains("[:") {
        "put quotes around an IPv6 address: `\"[::1]:8080\"`"
    } else if message.contains("multiple") {
        "keep one document in the file"
    } else {
        "correct the indentation, the brackets or the quotes"
    };
    Problem {
        at,
        what: format!("not YAML: {message}"),
        instead: instead.to_owned(),
    }
}

fn position(location: Location) -> Option<Position> {
    let (line, column) = (location.line(), location.column());
    (line > 0).then_some(Position { line, column })
}

/// The tree as the YAML library gives it.
struct Raw(Spanned<RawValue>);

enum RawValue {
    Empty,
    /// A text that YAML also takes for a text.
    Text(String),
    /// A plain scalar that YAML takes for something else, as the library spells it.
    Typed(String),
    List(Vec<Raw>),
    Map(Vec<(Spanned<String>, Raw)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Empty)
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawValue, E> {
        Ok(RawValue::Typed(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawValue, E> {
        Ok(RawValue::Typed(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawValue, E> {
        Ok(RawValue::Typed(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawValue, E> {
        Ok(RawValue::Typed(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(RawValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RawValue, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(RawValue::Map(map))
    }
}

/// Turns the library's tree into ours, filling in the environment.
struct Filler<'a> {
    source: &'a str,
    environment: Environment<'a>,
    problems: &'a mut Vec<Problem>,
}

impl Filler<'_> {
    fn node(
        &mut self,
        Raw(Spanned {
            value,
            referenced,
            defined,
        }): Raw,
    ) -> Node {
        let at = position(referenced).or_else(|| position(defined));
        let at = at.unwrap_or(Position { line: 1, column: 1 });
        let value = match value {
            RawValue::Empty => Value::Empty,
            RawValue::Text(text) => Value::Text(self.fill(text, at, defined)),
            RawValue::Typed(text) => {
                let spelled = self.slice(defined).map_or(text, str::to_owned);
                Value::Text(Text {
                    meant: Some(spelled.clone()),
                    written: spelled,
                    from_environment: false,
                })
            }
            RawValue::List(list) => {
                Value::List(list.into_iter().map(|raw| self.node(raw)).collect())
            }
            RawValue::Map(map) => {
                Value::Map(map.into_iter().map(|entry| self.entry(entry)).collect())
            }
        };
        Node { at, value }
    }

    fn entry(&mut self, (key, raw): (Spanned<String>, Raw)) -> (Key, Node) {
        let node = self.node(raw);
        let at = position(key.referenced).unwrap_or(node.at);
        (
            Key {
                at,
                name: key.value,
            },
            node,
        )
    }

    /// What the file has at a place.
    fn slice(&self, location: Location) -> Option<&str> {
        let start = usize::try_from(location.span().byte_offset()?).ok()?;
        let length = usize::try_from(location.span().byte_len()?).ok()?;
        let slice = self.source.get(start..start.checked_add(length)?)?.trim();
        (!slice.is_empty()).then_some(slice)
    }

    fn fill(&mut self, written: String, at: Position, defined: Location) -> Text {
        let Filled {
            text,
            from_environment,
            gaps,
        } = fill(&written, self.environment);
        let complete = gaps.is_empty();
        for gap in gaps {
            let problem = match gap {
                Gap::Missing(name) => {
                    missing(name, self.place(at, defined, &format!("${{{name}}}")))
                }
                Gap::Malformed => malformed(self.place(at, defined, "${")),
            };
            self.problems.push(problem);
        }
        Text {
            meant: complete.then_some(text),
            written,
            from_environment,
        }
    }

    /// Where `needle` is within the scalar at `defined`.
    fn place(&self, at: Position, defined: Location, needle: &str) -> Position {
        let found = self
            .slice(defined)
            .and_then(|slice| slice.split_once(needle));
        let (Some((before, _)), Some(start)) = (found, position(defined)) else {
            return at;
        };
        let lines = before.matches('\n').count();
        let last = before.rsplit('\n').next().unwrap_or(before).chars().count();
        let column = if lines == 0 { start.column } else { 1 };
        Position {
            line: start.line + lines as u64,
            column: column + last as u64,
        }
    }
}

fn missing(name: &str, at: Position) -> Problem {
    Problem {
        at: Some(at),
        what: format!("`${{{name}}}`: the environment has no `{name}`"),
        instead: format!("set `{name}` before starting, or write the value here"),
    }
}

fn malformed(at: Position) -> Problem {
    Problem {
        at: Some(at),
        what: "`${` starts no name of the environment".to_owned(),
        instead: "write `${NAME}` (letters, digits and `_`), or `$${` for the two characters"
            .to_owned(),
    }
}
