//! The schema that an answer is checked against, compiled.
//!
//! # Invariants
//! - No schema can keep the gateway busy or overflow its stack: what its references unfold to is
//!   counted before anything is compiled, against the size of the answer.
//! - Patterns are matched in linear time. One that can't be is left to the server.
//! - Nothing is fetched: references lead into the schema itself or nowhere.
//! - What is compiled is kept with the form, unless it may be large.

use std::sync::OnceLock;

use jsonschema::{Draft, EmailOptions, PatternOptions, Validator};
use serde_json::{Map, Value, json};

use crate::policy::form::{Field, Form, Kind};

/// How much of an answer may meet how much of a schema: the product of both sizes.
const MAX_WORK: usize = 4_000_000;

/// How many parts of a schema may be met at all, references unfolded.
const MAX_PARTS: usize = 50_000;

/// How deep a schema may be, references unfolded.
const MAX_DEPTH: usize = 256;

/// How many patterns are compiled for one answer.
const MAX_PATTERNS: usize = 64;

/// The most that a compiled pattern may take, in bytes.
const MAX_PATTERN: usize = 1 << 20;

/// The words at the top of a schema that say which fields there are, besides `properties`.
const OPEN: &[&str] = &[
    "$ref",
    "allOf",
    "anyOf",
    "dependencies",
    "dependentSchemas",
    "if",
    "oneOf",
    "patternProperties",
    "unevaluatedProperties",
];

/// Whether the form has, or may have, a field with this name.
pub(super) fn knows(form: &Form, name: &str) -> bool {
    let schema = form.schema();
    let open = |schema: &Map<String, Value>| {
        OPEN.iter().any(|word| schema.contains_key(*word))
            || schema
                .get("additionalProperties")
                .is_some_and(|it| *it != Value::Bool(false))
    };
    let required = || {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|it| it == name))
    };
    form.field(name).is_some() || schema.as_object().is_some_and(open) || required()
}

/// What the answers to one form are checked with: compiled for the first of them, and kept if it is small.
#[derive(Debug, Default)]
pub struct Checks {
    kept: OnceLock<Compiled>,
    /// The most parts of a schema that is kept.
    most: usize,
}

#[derive(Debug)]
struct Compiled {
    validator: Option<Validator>,
    /// How large its schema is, where answers are measured against that.
    parts: Option<usize>,
}

impl Checks {
    /// Keeps what it compiles of schemas with so many parts, references unfolded.
    pub fn up_to(most: usize) -> Self {
        Self {
            kept: OnceLock::new(),
            most,
        }
    }

    /// Whether it was compiled, and is kept.
    #[cfg(test)]
    pub(in crate::policy) fn is_kept(&self) -> bool {
        self.kept.get().is_some()
    }

    /// Shows what checks answers to the form, if these values can be checked in bounded time, or at all.
    pub(super) fn validate(&self, form: &Form, values: &Value, show: impl FnOnce(&Validator)) {
        if let Some(kept) = self.kept.get() {
            return kept.show(values, show);
        }
        let Some(schema) = Schema::of(form) else {
            return;
        };
        if schema.parts.is_some_and(|parts| is_much(parts, values)) {
            return;
        }
        let keep = schema.is_small(self.most);
        let compiled = schema.compiled();
        if keep {
            self.kept.get_or_init(|| compiled).show(values, show);
        } else {
            compiled.show(values, show);
        }
    }
}

impl Compiled {
    fn show(&self, values: &Value, show: impl FnOnce(&Validator)) {
        if self.parts.is_some_and(|parts| is_much(parts, values)) {
            return;
        }
        if let Some(validator) = &self.validator {
            show(validator);
        }
    }
}

/// Whether it would take long to check these values against a schema with so many parts.
fn is_much(parts: usize, values: &Value) -> bool {
    parts.saturating_mul(size(values)) > MAX_WORK
}

/// A schema that can be compiled.
struct Schema {
    value: Value,
    extent: Extent,
    parts: Option<usize>,
}

impl Schema {
    /// That of a form; none where it can't be compiled in bounded time.
    fn of(form: &Form) -> Option<Self> {
        let is_flat = form.outside().is_none();
        let value = if is_flat {
            flat(form)
        } else {
            form.schema().clone()
        };
        let extent = Extent::of(&value)?;
        let parts = (!is_flat).then_some(extent.parts);
        Some(Self {
            value,
            extent,
            parts,
        })
    }

    /// Whether what it is compiled to is small. That of a pattern can be large, however short it is.
    fn is_small(&self, most: usize) -> bool {
        let Extent {
            parts,
            patterns,
            names,
        } = self.extent;
        parts <= most && patterns == 0 && names == 0
    }

    fn compiled(self) -> Compiled {
        let mut schema = self.value;
        if self.extent.patterns > MAX_PATTERNS {
            keep_patterns(&mut schema, &|_| false);
        }
        let validator = compile(&schema).or_else(|| {
            keep_patterns(&mut schema, &|pattern| {
                compile(&json!({ "pattern": pattern })).is_some()
            });
            compile(&schema)
        });
        Compiled {
            validator,
            parts: self.parts,
        }
    }
}

fn compile(schema: &Value) -> Option<Validator> {
    let draft = match Draft::Draft202012.detect(schema) {
        // A dialect that only its author knows is read as what the specification has by default
        // (2026-07-28 basic/index, "JSON Schema Usage").
        Draft::Unknown => Draft::Draft202012,
        known => known,
    };
    jsonschema::options()
        .with_draft(draft)
        .should_validate_formats(true)
        // RFC 5321 §4.1.2 has no display name in a `Mailbox`.
        .with_email_options(EmailOptions::default().without_display_text())
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN))
        .build(schema)
        .ok()
}

/// The schema of a flat form, in which choices are a plain list: as `oneOf` a value that is listed
/// twice would never be valid.
fn flat(form: &Form) -> Value {
    let described = form.schema().get("properties");
    let properties: Map<String, Value> = form
        .fields()
        .iter()
        .map(|field| {
            let schema = described.and_then(|described| described.get(&field.name));
            (field.name.clone(), checked(field, schema))
        })
        .collect();
    let required: Vec<&str> = form
        .fields()
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name.as_str())
        .collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// What the schema of a field says of an answer.
fn checked(field: &Field, schema: Option<&Value>) -> Value {
    let words: &[&str] = match field.kind {
        Kind::String => &["type", "minLength", "maxLength", "pattern", "format"],
        Kind::Number | Kind::Integer => &["type", "minimum", "maximum"],
        Kind::MultiSelect => &["type", "minItems", "maxItems", "uniqueItems"],
        Kind::Boolean | Kind::Enum | Kind::Other => &["type"],
    };
    let mut kept: Map<String, Value> = words
        .iter()
        .filter_map(|word| Some(((*word).to_owned(), schema?.get(*word)?.clone())))
        .collect();
    let mut values: Vec<&str> = field
        .choices
        .iter()
        .map(|choice| choice.value.as_str())
        .collect();
    values.sort_unstable();
    values.dedup();
    match field.kind {
        Kind::Enum => {
            kept.insert("enum".to_owned(), json!(values));
        }
        Kind::MultiSelect => {
            kept.insert("items".to_owned(), json!({ "enum": values }));
        }
        _ => {}
    }
    kept.into()
}

/// How large a schema is when its references are unfolded.
#[derive(Default)]
struct Extent {
    parts: usize,
    /// The patterns of text.
    patterns: usize,
    /// The patterns of names, which can't be left out: they say which fields there are.
    names: usize,
}

impl Extent {
    /// That of a schema; none if it can't be told, is too large, or has no end.
    fn of(schema: &Value) -> Option<Self> {
        let mut extent = Self::default();
        extent.unfold(schema, schema, 0)?;
        Some(extent)
    }

    fn unfold(&mut self, part: &Value, root: &Value, depth: usize) -> Option<()> {
        self.parts += 1;
        if depth > MAX_DEPTH || self.parts > MAX_PARTS {
            return None;
        }
        match part {
            Value::Array(parts) => {
                for part in parts {
                    self.unfold(part, root, depth + 1)?;
                }
            }
            Value::Object(members) => {
                for (name, part) in members {
                    self.member(name, part, root, depth)?;
                }
            }
            _ => {}
        }
        Some(())
    }

    fn member(&mut self, name: &str, part: &Value, root: &Value, depth: usize) -> Option<()> {
        match (name, part) {
            ("$ref", Value::String(to)) => {
                return self.unfold(root.pointer(to.strip_prefix('#')?)?, root, depth + 1);
            }
            // With these, a reference can lead elsewhere than its text says.
            ("$id" | "id", Value::String(_)) if depth > 0 => return None,
            (
                "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$dynamicRef" | "$recursiveRef",
                Value::String(_) | Value::Bool(_),
            ) => return None,
            ("pattern", Value::String(_)) => self.patterns += 1,
            ("patternProperties", Value::Object(patterns)) => {
                self.names += patterns.len();
                if self.names > MAX_PATTERNS {
                    return None;
                }
            }
            _ => {}
        }
        self.unfold(part, root, depth + 1)
    }
}

/// How much there is in a value; long text counts more, since it is searched for patterns.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        Value::String(text) => 1 + text.len() / 16,
        _ => 1,
    }
}

/// Takes out the patterns that are not to be kept: of text, so that no field of that name is.
fn keep_patterns(schema: &mut Value, keep: &impl Fn(&str) -> bool) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(|part| keep_patterns(part, keep)),
        Value::Object(members) => {
            let pattern = members.get("pattern").and_then(Value::as_str);
            if pattern.is_some_and(|pattern| !keep(pattern)) {
                members.remove("pattern");
            }
            members
                .values_mut()
                .for_each(|part| keep_patterns(part, keep));
        }
        _ => {}
    }
}
