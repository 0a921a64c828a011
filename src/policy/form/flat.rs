//! Whether a schema is the flat one that the specification allows, and where it is not.
//!
//! A schema is outside as soon as it says something of an answer that the specification gives a form
//! no words for: a client that follows the specification would neither show nor check it. What only
//! describes, known or not, is welcome.
//!
//! # Invariants
//! - The tables are those of the pages and of `PrimitiveSchemaDefinition`, the union of 2025-06-18,
//!   2025-11-25 and 2026-07-28. Beyond them there are two words that change nothing for a client that does not know
//!   them: `additionalProperties: false`, since nothing can be answered that has no field, and
//!   `uniqueItems`, since nothing can be ticked twice.

use serde_json::{Map, Value};

use super::{Field, Kind, Outside};

/// What a text must look like (schema `StringSchema`).
const FORMATS: &[&str] = &["email", "uri", "date", "date-time"];

/// The words of JSON Schema that say what an answer must be, in any of its drafts.
const CONSTRAINTS: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// A word that has a place in a form, and whether a value is one that it can have.
type Word = (&'static str, fn(&Value) -> bool);

const ROOT: &[Word] = &[
    ("$schema", Value::is_string),
    ("type", |value| value == "object"),
    ("properties", Value::is_object),
    ("required", texts),
    ("additionalProperties", |value| *value == Value::Bool(false)),
];

const SHOWN: &[Word] = &[
    ("type", Value::is_string),
    ("title", Value::is_string),
    ("description", Value::is_string),
];

const STRING: &[Word] = &[
    ("minLength", Value::is_u64),
    ("maxLength", Value::is_u64),
    ("format", |value| {
        value.as_str().is_some_and(|it| FORMATS.contains(&it))
    }),
    // On the page of 2025-11-25, and in no schema.
    ("pattern", Value::is_string),
    ("default", Value::is_string),
];

const NUMBER: &[Word] = &[
    ("minimum", Value::is_number),
    ("maximum", Value::is_number),
    // The name of a machine's type, as in `int32`, says nothing that a person must know.
    ("format", Value::is_string),
    ("default", Value::is_number),
];

const BOOLEAN: &[Word] = &[("default", Value::is_boolean)];

const ENUM: &[Word] = &[
    ("enum", texts),
    ("enumNames", texts),
    ("oneOf", titled),
    ("default", Value::is_string),
];

const MULTI_SELECT: &[Word] = &[
    ("items", Value::is_object),
    ("minItems", Value::is_u64),
    ("maxItems", Value::is_u64),
    ("uniqueItems", Value::is_boolean),
    ("default", texts),
];

const ITEMS: &[Word] = &[
    ("type", |value| value == "string"),
    ("enum", texts),
    ("anyOf", titled),
];

/// Where the schema leaves the subset before its fields are looked at.
pub(super) fn root(schema: &Value) -> Option<Outside> {
    let members = schema.as_object()?;
    for needed in ["type", "properties"] {
        if !members.contains_key(needed) {
            return Some(left("", format!("has no `{needed}`")));
        }
    }
    let strange = strange("", members, &[ROOT]);
    strange.or_else(|| {
        let required = members.get("required")?.as_array()?;
        let place = required.iter().position(|name| {
            let field = name
                .as_str()
                .and_then(|name| members.get("properties")?.get(name));
            field.is_none()
        })?;
        Some(left(
            &format!("/required/{place}"),
            "names a field that isn't there",
        ))
    })
}

/// Where the schema of one field leaves the subset.
pub(super) fn field(field: &Field, schema: &Value) -> Option<Outside> {
    let pointer = format!("/properties/{}", escaped(&field.name));
    let Some(members) = schema.as_object() else {
        return Some(left(&pointer, "is no object"));
    };
    let words = match field.kind {
        Kind::String => STRING,
        Kind::Number | Kind::Integer => NUMBER,
        Kind::Boolean => BOOLEAN,
        Kind::Enum => ENUM,
        Kind::MultiSelect => MULTI_SELECT,
        Kind::Other => return Some(other(&pointer, members)),
    };
    let strange = strange(&pointer, members, &[SHOWN, words]);
    strange.or_else(|| choices(&pointer, field, members))
}

/// Where something that is no field of a form shows that it is none.
fn other(pointer: &str, members: &Map<String, Value>) -> Outside {
    let listed = [SHOWN, STRING, NUMBER, BOOLEAN, ENUM, MULTI_SELECT];
    let kinds = ["string", "number", "integer", "boolean", "array"];
    match members.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            left(&format!("{pointer}/items"), "is no list of choices")
        }
        Some(Value::String(kind)) if !kinds.contains(&kind.as_str()) => left(
            &format!("{pointer}/type"),
            "is no kind of field that a form can have",
        ),
        Some(kind) if !kind.is_string() => left(&format!("{pointer}/type"), "is not one kind"),
        _ => strange(pointer, members, &listed).unwrap_or_else(|| left(pointer, "has no `type`")),
    }
}

/// Where the choices of a field are none, or titled in a way that can't be shown.
fn choices(pointer: &str, field: &Field, members: &Map<String, Value>) -> Option<Outside> {
    if let Some(Value::Object(items)) = members.get("items") {
        let pointer = format!("{pointer}/items");
        if let Some(outside) = strange(&pointer, items, &[SHOWN, ITEMS]) {
            return Some(outside);
        }
        if items.contains_key("enum") && items.contains_key("anyOf") {
            return Some(left(&pointer, "has two lists of choices"));
        }
    }
    if members.contains_key("enum") && members.contains_key("oneOf") {
        return Some(left(pointer, "has two lists of choices"));
    }
    if let Some(names) = members.get("enumNames").and_then(Value::as_array)
        && names.len() != field.choices.len()
    {
        let reason = format!(
            "has {} names for {} choices",
            names.len(),
            field.choices.len()
        );
        return Some(left(&format!("{pointer}/enumNames"), reason));
    }
    let chosen = matches!(field.kind, Kind::Enum | Kind::MultiSelect);
    (chosen && field.choices.is_empty()).then(|| left(pointer, "has no choices"))
}

/// The first member that constrains an answer in a way that these tables don't have.
fn strange(pointer: &str, members: &Map<String, Value>, tables: &[&[Word]]) -> Option<Outside> {
    members.iter().find_map(|(name, value)| {
        let word = tables
            .iter()
            .flat_map(|table| table.iter())
            .find(|(word, _)| word == name);
        match word {
            Some((_, suits)) if suits(value) => None,
            Some(_) => Some(left(
                &format!("{pointer}/{}", escaped(name)),
                "has a value that a form can't have",
            )),
            None if CONSTRAINTS.contains(&name.as_str()) => Some(left(
                pointer,
                format!("has `{name}`, which a form can't have"),
            )),
            None => None,
        }
    })
}

fn texts(value: &Value) -> bool {
    let list = value.as_array();
    list.is_some_and(|list| list.iter().all(Value::is_string))
}

/// `[{const, title}]`.
fn titled(value: &Value) -> bool {
    let text = |option: &Value, name: &str| option.get(name).is_some_and(Value::is_string);
    let list = value.as_array();
    list.is_some_and(|list| {
        list.iter()
            .all(|option| text(option, "const") && text(option, "title"))
    })
}

fn left(pointer: &str, reason: impl Into<String>) -> Outside {
    Outside {
        pointer: pointer.to_owned(),
        reason: reason.into(),
    }
}

/// A name as a part of a JSON pointer (RFC 6901 §3).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
