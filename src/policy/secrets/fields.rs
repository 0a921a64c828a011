//! The places of a form into which something can be typed, wherever its schema has them.
//!
//! A flat form has one in each field. A schema outside of the flat subset can have them deeper, in
//! nested objects, lists and definitions; each is looked at by its own names, and by that of what
//! holds it.

use serde_json::{Map, Value};

use crate::policy::form::Form;

/// A place into which something can be typed.
#[derive(Clone, Debug)]
pub(super) struct Place<'f> {
    /// The field of the form that it belongs to, or the definition.
    pub(super) field: &'f str,
    /// Its name, after that of what holds it.
    pub(super) name: String,
    pub(super) title: &'f str,
    pub(super) description: &'f str,
    pub(super) format: &'f str,
    pub(super) takes: Takes,
}

/// What can be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Takes {
    /// Nothing: it can only be chosen.
    Nothing,
    /// A number.
    Number,
    /// Text.
    Text,
}

/// The words of a schema whose members have names of their own.
const NAMED: &[&str] = &[
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// The words of a schema whose values are no schemas.
const VALUES: &[&str] = &["const", "default", "enum", "examples", "required"];

/// How many alternatives and references of one place are looked through.
const MAX_PARTS: usize = 256;

/// How many bytes of a name are read again with every name inside of it.
const MAX_OUTER: usize = 128;

/// All places of a form, those of its fields in their order first.
pub(super) fn places(form: &Form) -> Vec<Place<'_>> {
    let root = form.schema();
    let mut walk = Walk {
        root,
        places: Vec::new(),
    };
    for field in form.fields() {
        let schema = root
            .pointer("/properties")
            .and_then(|properties| properties.get(&field.name));
        if let Some(schema) = schema {
            walk.schema(&field.name, "", &field.name, schema);
        }
    }
    if let Some(members) = root.as_object() {
        let others = members.iter().filter(|(word, _)| *word != "properties");
        for (word, value) in others {
            walk.member("", "", "", word, value);
        }
    }
    walk.places
}

struct Walk<'f> {
    root: &'f Value,
    places: Vec<Place<'f>>,
}

impl<'f> Walk<'f> {
    /// Looks at a schema that describes something with this name, held by something with `outer`.
    fn schema(&mut self, field: &'f str, outer: &'f str, name: &'f str, schema: &'f Value) {
        let Some(members) = schema.as_object() else {
            return;
        };
        let text = |word| {
            members
                .get(word)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        self.places.push(Place {
            field,
            name: format!("{} {name}", beginning(outer)),
            title: text("title"),
            description: text("description"),
            format: text("format"),
            takes: self.takes(members, &mut { MAX_PARTS }),
        });
        for (word, value) in members {
            self.member(field, outer, name, word, value);
        }
    }

    fn member(
        &mut self,
        field: &'f str,
        outer: &'f str,
        name: &'f str,
        word: &'f str,
        value: &'f Value,
    ) {
        if VALUES.contains(&word) {
            return;
        }
        match value {
            Value::Object(members) if NAMED.contains(&word) => {
                for (inner, schema) in members {
                    let field = if field.is_empty() { inner } else { field };
                    self.schema(field, name, inner, schema);
                }
            }
            Value::Object(_) => self.schema(field, outer, name, value),
            Value::Array(schemas) => {
                for schema in schemas {
                    self.schema(field, outer, name, schema);
                }
            }
            _ => {}
        }
    }

    fn takes(&self, members: &Map<String, Value>, left: &mut usize) -> Takes {
        if members.contains_key("enum") || members.contains_key("const") {
            return Takes::Nothing;
        }
        let Some(fewer) = left.checked_sub(1) else {
            return Takes::Text;
        };
        *left = fewer;
        let offered = ["anyOf", "oneOf", "allOf"]
            .into_iter()
            .filter_map(|word| members.get(word)?.as_array())
            .flatten()
            .filter_map(Value::as_object)
            .map(|schema| self.takes(schema, left))
            .max();
        let kinds = match members.get("type") {
            Some(Value::Array(kinds)) => kinds.as_slice(),
            Some(kind) => std::slice::from_ref(kind),
            None => &[],
        };
        let of_type = kinds
            .iter()
            .map(|kind| self.takes_type(kind, members, left))
            .max();
        match (of_type, offered) {
            (Some(of_type), Some(offered)) => of_type.min(offered),
            (Some(takes), None) | (None, Some(takes)) => takes,
            (None, None) => match self.target(members) {
                Some(target) => self.takes(target, left),
                // With no word on it, anything can be typed.
                None => Takes::Text,
            },
        }
    }

    fn takes_type(&self, kind: &Value, members: &Map<String, Value>, left: &mut usize) -> Takes {
        match kind.as_str() {
            Some("integer" | "number") => Takes::Number,
            Some("array") => match members.get("items") {
                Some(Value::Object(items)) => self.takes(items, left),
                _ => Takes::Text,
            },
            Some("boolean" | "null" | "object") | None => Takes::Nothing,
            // Some clients show a kind that they don't know as text.
            Some(_) => Takes::Text,
        }
    }

    /// What a reference leads to.
    fn target(&self, members: &Map<String, Value>) -> Option<&'f Map<String, Value>> {
        let to = members.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(to)?.as_object()
    }
}

/// As much of the name of what holds many places as may be read with each of them.
fn beginning(name: &str) -> &str {
    name.get(..name.floor_char_boundary(MAX_OUTER))
        .unwrap_or(name)
}

impl Place<'_> {
    /// Whether an answer must be in a format that no secret has.
    pub(super) fn is_formatted(&self) -> bool {
        matches!(
            self.format,
            "email"
                | "idn-email"
                | "uri"
                | "date"
                | "date-time"
                | "time"
                | "duration"
                | "uuid"
                | "ipv4"
                | "ipv6"
                | "hostname"
        )
    }
}
