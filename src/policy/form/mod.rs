//! The form of a question: its fields in the order in which a person sees them, and whether it is
//! the flat form that the specification allows.
//!
//! `requestedSchema` is "a restricted subset of JSON Schema. Only top-level properties are allowed,
//! without nesting" (2025-06-18, 2025-11-25 and 2026-07-28 client/elicitation, "Requested Schema", and
//! schema `ElicitRequestFormParams`). The three versions differ in what they added, and a client of an
//! older one is shown an older form, so one reading serves all: the subset of 2026-07-28 holds the
//! others.
//!
//! # Invariants
//! - A schema that could be read in two ways is no form.
//! - A schema outside the subset is read as far as it goes, and says where it left the subset.
//! - The order of the fields is that of the text.

mod field;
mod flat;

use std::fmt;

use serde_json::Value;

pub use self::field::{Choice, Field, Kind};
use super::json;
use crate::protocol::object::{entries, members};

/// The largest schema that is read, in bytes of JSON.
pub const MAX_SCHEMA: usize = 256 * 1024;

/// The most fields of a form.
pub const MAX_FIELDS: usize = 128;

/// The most choices of one field.
pub const MAX_CHOICES: usize = 1024;

/// What a `requestedSchema` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    fields: Vec<Field>,
    outside: Option<Outside>,
    schema: Value,
}

/// Where and why a schema leaves the flat subset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The place in the schema, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What is there, as in ``has `pattern`, which a form can't have``.
    pub reason: String,
}

/// Why a text is no form at all, whatever the subset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAForm {
    /// More bytes than [`MAX_SCHEMA`].
    #[error("the schema has {0} bytes, and {MAX_SCHEMA} are read")]
    TooLarge(usize),
    /// No JSON object, or one that could be read in two ways.
    #[error("the schema can't be read: {0}")]
    Unreadable(String),
    /// More fields than [`MAX_FIELDS`].
    #[error("the form has {0} fields, and {MAX_FIELDS} are allowed")]
    TooManyFields(usize),
    /// A field with more choices than [`MAX_CHOICES`].
    #[error("a field has {0} choices, and {MAX_CHOICES} are allowed")]
    TooManyChoices(usize),
}

impl Form {
    /// Reads a `requestedSchema` (JSON text).
    ///
    /// # Errors
    /// [`NotAForm`]. A schema that is merely outside the flat subset is a form, with
    /// [`outside`](Self::outside).
    ///
    /// ```
    /// use contraflow::policy::form::{Form, Kind};
    /// let form = Form::read(r#"{"type":"object","properties":{
    ///     "seats":{"type":"integer","title":"How many seats?","minimum":1},
    ///     "row":{"type":"string","enum":["front","back"]}},"required":["seats"]}"#).unwrap();
    /// let [seats, row] = form.fields() else { panic!() };
    /// assert_eq!((seats.label.as_str(), seats.kind, seats.required), ("How many seats?", Kind::Integer, true));
    /// assert_eq!((row.label.as_str(), row.kind, row.required), ("row", Kind::Enum, false));
    /// assert_eq!(form.outside(), None);
    /// ```
    pub fn read(requested_schema: &str) -> Result<Self, NotAForm> {
        if requested_schema.len() > MAX_SCHEMA {
            return Err(NotAForm::TooLarge(requested_schema.len()));
        }
        let unreadable = |error: serde_json::Error| NotAForm::Unreadable(error.to_string());
        let schema = json::value(requested_schema).map_err(unreadable)?;
        let [properties, ..] = members(
            requested_schema,
            ["properties", "required", "type", "additionalProperties"],
        )
        .map_err(unreadable)?;
        let named = match properties {
            Some(properties) if properties.starts_with('{') => {
                entries(properties).map_err(unreadable)?
            }
            _ => Vec::new(),
        };
        if named.len() > MAX_FIELDS {
            return Err(NotAForm::TooManyFields(named.len()));
        }
        let mut outside = flat::root(&schema);
        let mut fields = Vec::with_capacity(named.len());
        for (name, raw) in named {
            field::unambiguous(raw).map_err(unreadable)?;
            let described = schema
                .pointer("/properties")
                .and_then(|properties| properties.get(&*name))
                .unwrap_or(&Value::Null);
            let (field, left) = field::read(&name, described, is_required(&schema, &name));
            if field.choices.len() > MAX_CHOICES {
                return Err(NotAForm::TooManyChoices(field.choices.len()));
            }
            outside = outside.or(left);
            fields.push(field);
        }
        Ok(Self {
            fields,
            outside,
            schema,
        })
    }

    /// The fields, in the order of the text.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Where the schema leaves the flat subset, if it does: the first place.
    pub fn outside(&self) -> Option<&Outside> {
        self.outside.as_ref()
    }

    /// The whole schema.
    pub(super) fn schema(&self) -> &Value {
        &self.schema
    }
}

/// As in ``/properties/code has `pattern`, which a form can't have``.
impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.pointer.as_str() {
            "" => "the schema",
            pointer => pointer,
        };
        write!(f, "{place} {}", self.reason)
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|required| required == name))
}

#[cfg(test)]
mod tests;
