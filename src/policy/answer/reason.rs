//! Says what is wrong with an answer, so that a person can mend it.
//!
//! # Invariants
//! - A reason continues a sentence that begins with the field, as in "must be at least 1".
//! - It is made of what the form says, never of what was answered.
//! - It is one line of bounded length, whatever the form says.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Wrong};
use jsonschema::types::JsonType;

use crate::policy::form::{Field, Kind};
use crate::policy::remark::line;

/// How many characters of choices are told.
const MAX_LIST: usize = 240;

/// How many characters of one name are told.
const MAX_NAME: usize = 40;

/// Why a value of this field is wrong.
pub(super) fn of(error: &ValidationError<'_>, field: Option<&Field>) -> String {
    if let Some(field) = field.filter(|field| !field.choices.is_empty())
        && matches!(error.kind(), Wrong::Type { .. } | Wrong::Enum { .. })
    {
        return of_choice(field);
    }
    let depth = error.instance_path().into_iter().count();
    match error.kind() {
        Wrong::Required { .. } if depth > 0 => "is incomplete".to_owned(),
        Wrong::Required { .. } => "is required".to_owned(),
        Wrong::Type { kind } => of_type(kind).to_owned(),
        Wrong::Format { format } => of_format(format),
        Wrong::Enum { options } => format!("must be one of: {}", listed(options)),
        Wrong::Minimum { limit } => {
            format!("must be at least {}", line(&limit.to_string(), MAX_NAME))
        }
        Wrong::Maximum { limit } => {
            format!("must be at most {}", line(&limit.to_string(), MAX_NAME))
        }
        Wrong::ExclusiveMinimum { limit } => {
            format!("must be more than {}", line(&limit.to_string(), MAX_NAME))
        }
        Wrong::ExclusiveMaximum { limit } => {
            format!("must be less than {}", line(&limit.to_string(), MAX_NAME))
        }
        Wrong::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Wrong::MinLength { limit: 1 } => "must not be empty".to_owned(),
        Wrong::MinLength { limit } => format!("must have at least {limit} characters"),
        Wrong::MaxLength { limit } => format!("must have at most {}", counted(*limit, "character")),
        Wrong::MinItems { limit } => format!("needs at least {}", counted(*limit, "choice")),
        Wrong::MaxItems { limit } => format!("takes at most {}", counted(*limit, "choice")),
        Wrong::UniqueItems => "must not have the same choice twice".to_owned(),
        Wrong::Pattern { .. } => "is not in the form that is asked for".to_owned(),
        Wrong::AdditionalProperties { .. }
        | Wrong::UnevaluatedProperties { .. }
        | Wrong::FalseSchema => "has something that nobody asked for".to_owned(),
        _ => "is not what is asked for".to_owned(),
    }
}

/// Of a field with choices everything that is none of them is wrong for the same reason.
fn of_choice(field: &Field) -> String {
    let titles = field.choices.iter().map(|choice| choice.title.as_str());
    let titles = list(titles);
    match field.kind {
        Kind::MultiSelect => format!("may only have: {titles}"),
        _ => format!("must be one of: {titles}"),
    }
}

fn of_type(kind: &TypeKind) -> &'static str {
    match kind {
        TypeKind::Single(JsonType::String) => "must be text",
        TypeKind::Single(JsonType::Number) => "must be a number",
        TypeKind::Single(JsonType::Integer) => "must be a whole number",
        TypeKind::Single(JsonType::Boolean) => "must be true or false",
        TypeKind::Single(JsonType::Array) => "must be a list",
        TypeKind::Single(JsonType::Object) => "must be an object",
        TypeKind::Single(JsonType::Null) => "must be empty",
        TypeKind::Multiple(_) => "is not of a kind that is asked for",
    }
}

fn of_format(format: &str) -> String {
    match format {
        "email" => "is not an e-mail address".to_owned(),
        "uri" => "is not a URI, such as https://example.com/page".to_owned(),
        "date" => "is not a date, such as 2026-07-28".to_owned(),
        "date-time" => {
            "is not a time with a date and a time zone, such as 2026-07-28T09:30:00Z".to_owned()
        }
        other => format!("is not in the format {}", line(other, MAX_NAME)),
    }
}

/// The values of a list that is not one of texts alone.
fn listed(options: &serde_json::Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<String> = options
        .iter()
        .map(|option| {
            option
                .as_str()
                .map_or_else(|| option.to_string(), str::to_owned)
        })
        .collect();
    list(texts.iter().map(String::as_str))
}

/// Some of the texts, and a sign if there are more.
fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut all = String::new();
    for text in texts {
        let text = line(text, MAX_NAME);
        let comma = if all.is_empty() { "" } else { ", " };
        if all.chars().count() + text.chars().count() > MAX_LIST {
            all.push_str(comma);
            all.push('…');
            break;
        }
        all.push_str(comma);
        all.push_str(&text);
    }
    all
}

fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
