//! One field of a form: what kind of answer it takes, and what a person is shown of it.

use serde_json::{Map, Value};

use super::{Outside, flat};
use crate::protocol::object::{is_object, members};

/// One field of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name of the property.
    pub name: String,
    /// What a person is shown: the title, or else the name.
    pub label: String,
    /// What kind of answer it takes.
    pub kind: Kind,
    /// Whether the form can't be sent without it.
    pub required: bool,
    /// What can be chosen; empty unless the kind is a choice.
    pub choices: Vec<Choice>,
}

/// One of the values that a field can have: an entry of `enum`, with its title of `enumNames`
/// (2025-06-18), or one of `oneOf` and `anyOf` (since 2025-11-25).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is answered.
    pub value: String,
    /// What a person is shown: the title, or else the value.
    pub title: String,
}

/// The kinds of fields (schema `PrimitiveSchemaDefinition` of each version).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text (`StringSchema`).
    String,
    /// A number (`NumberSchema`).
    Number,
    /// A whole number (`NumberSchema`).
    Integer,
    /// Yes or no (`BooleanSchema`).
    Boolean,
    /// One of several (`EnumSchema`; `UntitledSingleSelectEnumSchema`, `TitledSingleSelectEnumSchema`
    /// and `LegacyTitledEnumSchema` since 2025-11-25).
    Enum,
    /// Some of several (`UntitledMultiSelectEnumSchema`, `TitledMultiSelectEnumSchema`; since
    /// 2025-11-25).
    MultiSelect,
    /// Something that the flat subset does not have.
    Other,
}

impl Kind {
    /// The kind in one word, as rules and hooks are told it.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Enum => "enum",
            Self::MultiSelect => "multi-select",
            Self::Other => "other",
        }
    }
}

/// Checks that what is read of a field can be read in one way only.
///
/// # Errors
/// When a member is spelled in another case; some clients would read it nevertheless.
pub(super) fn unambiguous(raw: &str) -> Result<(), serde_json::Error> {
    if !is_object(raw) {
        return Ok(());
    }
    members(
        raw,
        [
            "type",
            "title",
            "description",
            "format",
            "enum",
            "enumNames",
            "oneOf",
            "items",
        ],
    )
    .map(|_: [Option<&str>; 8]| ())
}

/// Reads the field with this name, and says where it leaves the flat subset.
pub(super) fn read(name: &str, described: &Value, required: bool) -> (Field, Option<Outside>) {
    let empty = Map::new();
    let schema = described.as_object().unwrap_or(&empty);
    let kind = kind(schema);
    let title = schema.get("title").and_then(Value::as_str);
    let field = Field {
        name: name.to_owned(),
        label: title
            .filter(|title| !title.trim().is_empty())
            .unwrap_or(name)
            .to_owned(),
        kind,
        required,
        choices: choices(kind, schema),
    };
    let outside = flat::field(&field, described);
    (field, outside)
}

fn kind(schema: &Map<String, Value>) -> Kind {
    let listed = |name| schema.get(name).is_some_and(Value::is_array);
    match schema.get("type").and_then(Value::as_str) {
        Some("string") if listed("enum") || listed("oneOf") => Kind::Enum,
        Some("string") => Kind::String,
        Some("number") => Kind::Number,
        Some("integer") => Kind::Integer,
        Some("boolean") => Kind::Boolean,
        Some("array") if offered(schema).is_some() => Kind::MultiSelect,
        _ => Kind::Other,
    }
}

/// The list from which a field with several answers takes them.
fn offered(schema: &Map<String, Value>) -> Option<&Vec<Value>> {
    let items = schema.get("items")?;
    let list = items.get("enum").or_else(|| items.get("anyOf"))?;
    list.as_array()
}

/// What can be chosen. What is no choice is left out; [`flat`] reports it.
fn choices(kind: Kind, schema: &Map<String, Value>) -> Vec<Choice> {
    let list = match kind {
        Kind::Enum => schema
            .get("enum")
            .or_else(|| schema.get("oneOf"))
            .and_then(Value::as_array),
        Kind::MultiSelect => offered(schema),
        _ => None,
    };
    let list = list.map(Vec::as_slice).unwrap_or_default();
    let names = schema
        .get("enumNames")
        .and_then(Value::as_array)
        // With fewer or more of them than values nobody can tell which belongs to which.
        .filter(|names| names.len() == list.len());
    let title_of = |place: usize| names.and_then(|names| names.get(place)?.as_str());
    list.iter()
        .enumerate()
        .filter_map(|(place, option)| {
            let value = option.as_str().or_else(|| option.get("const")?.as_str())?;
            let title = option.get("title").and_then(Value::as_str);
            Some(Choice {
                value: value.to_owned(),
                title: title
                    .or_else(|| title_of(place))
                    .unwrap_or(value)
                    .to_owned(),
            })
        })
        .collect()
}
