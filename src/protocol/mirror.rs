//! What a modern request repeats in its headers, so that whoever routes it need not read the body
//! (2026-07-28 basic/transports/streamable-http; SEP-2243).
//!
//! The method and the name go into [`METHOD_HEADER`] and [`NAME_HEADER`]. A tool may mark arguments
//! of its own by `x-mcp-header` in its input schema; those go into `Mcp-Param-*`.
//!
//! # Invariants
//! - What is encoded decodes to the same text, and every encoded text is a valid header value.
//! - A tool whose marks break a rule has none: who lists it drops it from the list.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::object::{self, members};

/// The header that repeats the method.
pub const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
/// The header that repeats the name of the tool or prompt, the URI of the resource or the task's id.
pub const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");
/// How the headers of marked arguments begin; the rest is the mark. In lower case.
pub const PARAM_PREFIX: &str = "mcp-param-";

const MARK: &str = "x-mcp-header";
const BEGIN: &str = "=?base64?";
const END: &str = "?=";

/// A header value that claims to be base64 and is not, or not of UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is not what its base64 markers say")]
pub struct Undecodable;

/// A tool marks its arguments in a way that is not allowed (2026-07-28 server/tools).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`x-mcp-header` {0}")]
pub struct BadMark(&'static str);

/// The arguments of one tool that are repeated in headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(Vec<(Vec<String>, HeaderName)>);

/// A text as the value of a header.
///
/// ```
/// use contraflow::protocol::mirror::encode;
/// assert_eq!(encode("order"), "order");
/// assert_eq!(encode("bestätigen"), "=?base64?YmVzdMOkdGlnZW4=?=");
/// ```
pub fn encode(text: &str) -> Cow<'_, str> {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let trimmed = !text.starts_with(' ') && !text.ends_with(' ');
    let marked = text.starts_with(BEGIN) && text.ends_with(END);
    // An empty field gets lost on the way through some proxies, so it has a form of its own.
    if plain && trimmed && !marked && !text.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{BEGIN}{}{END}", BASE64_STANDARD.encode(text)))
}

/// The text that a header value stands for.
///
/// # Errors
/// When it has the markers of base64 and something else between them.
pub fn decode(value: &str) -> Result<Cow<'_, str>, Undecodable> {
    let inner = value
        .strip_prefix(BEGIN)
        .and_then(|rest| rest.strip_suffix(END));
    let Some(inner) = inner else {
        return Ok(Cow::Borrowed(value));
    };
    let bytes = BASE64_STANDARD.decode(inner).map_err(|_| Undecodable)?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| Undecodable)
}

/// The member of the parameters that [`NAME_HEADER`] repeats.
pub fn named_by(method: &str) -> Option<&'static str> {
    Some(match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    })
}

/// Puts the method and the name of a request into `headers`. `name` is the JSON text of the member
/// that [`named_by`] tells.
pub fn repeat(method: &str, name: Option<&str>, headers: &mut HeaderMap) {
    if let Some(value) = header_value(method) {
        headers.insert(METHOD_HEADER, value);
    }
    if let Some(value) = name
        .and_then(object::text)
        .and_then(|name| header_value(&name))
    {
        headers.insert(NAME_HEADER, value);
    }
}

fn header_value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&encode(text)).ok()
}

impl Marks {
    /// Reads the marks of a tool's input schema.
    ///
    /// # Errors
    /// When one of them breaks a rule: the tool must not be used.
    pub fn read(schema: &str) -> Result<Self, BadMark> {
        // Nearly all tools have none; those schemas are not parsed.
        if !schema.contains(MARK) && !schema.contains("\\u") {
            return Ok(Self::default());
        }
        let schema: Value = serde_json::from_str(schema)
            .map_err(|_| BadMark("is in a schema that can't be read"))?;
        let mut search = Search {
            marks: Vec::new(),
            names: HashSet::new(),
        };
        search.schema(&schema, Some(&mut Vec::new()))?;
        Ok(Self(search.marks))
    }

    /// Whether nothing is repeated.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts what a call's `arguments` (JSON text) hold at the marked places into `headers`. What is
    /// absent, null or of another type is left out.
    pub fn repeat(&self, arguments: Option<&str>, headers: &mut HeaderMap) {
        let Some(arguments) = arguments else { return };
        for (path, name) in &self.0 {
            let value = path.iter().try_fold(arguments, |value, step| {
                let [found] = members(value, [step.as_str()]).ok()?;
                found
            });
            if let Some(mut value) = value.and_then(written).and_then(|text| header_value(&text)) {
                value.set_sensitive(true);
                headers.insert(name.clone(), value);
            }
        }
    }
}

/// A value as its header has it.
fn written(raw: &str) -> Option<Cow<'_, str>> {
    match raw {
        "true" | "false" => Some(Cow::Borrowed(raw)),
        _ if raw.starts_with('"') => object::text(raw),
        // Integers are compared as numbers, so that `42.0` may stay what it is.
        _ if raw.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
            Some(match raw.parse::<f64>() {
                Ok(number) if raw.parse::<i64>().is_err() && is_whole(number) => {
                    Cow::Owned(format!("{number:.0}"))
                }
                _ => Cow::Borrowed(raw),
            })
        }
        _ => None,
    }
}

fn is_whole(number: f64) -> bool {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    number.fract() == 0.0 && number.abs() <= SAFE
}

/// Looks for marks, and sees to it that each is where it may be.
struct Search {
    marks: Vec<(Vec<String>, HeaderName)>,
    names: HashSet<HeaderName>,
}

impl Search {
    /// `path`: how to get here from the root by `properties` alone; none when there is no such way.
    fn schema(&mut self, schema: &Value, path: Option<&mut Vec<String>>) -> Result<(), BadMark> {
        let Some(schema) = schema.as_object() else {
            return Ok(());
        };
        if let Some(mark) = schema.get(MARK) {
            self.mark(mark, schema.get("type"), path.as_deref())?;
        }
        let mut path = path;
        for (keyword, value) in schema {
            match keyword.as_str() {
                "properties" => {
                    for (name, property) in value.as_object().into_iter().flatten() {
                        match path.as_deref_mut() {
                            None => self.schema(property, None)?,
                            Some(path) => {
                                path.push(name.clone());
                                self.schema(property, Some(path))?;
                                path.pop();
                            }
                        }
                    }
                }
                "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                    for inner in value.as_object().into_iter().flatten() {
                        self.schema(inner.1, None)?;
                    }
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" | "items" if value.is_array() => {
                    for inner in value.as_array().into_iter().flatten() {
                        self.schema(inner, None)?;
                    }
                }
                "items"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "additionalProperties"
                | "additionalItems"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contentSchema" => self.schema(value, None)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn mark(
        &mut self,
        mark: &Value,
        kind: Option<&Value>,
        path: Option<&Vec<String>>,
    ) -> Result<(), BadMark> {
        let path = path
            .filter(|path| !path.is_empty())
            .ok_or(BadMark("is not on a property of the arguments"))?;
        let name = mark
            .as_str()
            .filter(|name| !name.is_empty())
            .ok_or(BadMark("is no name"))?;
        let name = HeaderName::from_bytes(format!("{PARAM_PREFIX}{name}").as_bytes())
            .map_err(|_| BadMark("is no header name"))?;
        if !matches!(
            kind.and_then(Value::as_str),
            Some("integer" | "string" | "boolean")
        ) {
            return Err(BadMark("is not on an integer, a string or a boolean"));
        }
        if !self.names.insert(name.clone()) {
            return Err(BadMark("is given twice"));
        }
        self.marks.push((path.clone(), name));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_is_encoded_when_a_header_could_not_carry_it() {
        let table = [
            ("eu-1", "eu-1"),
            ("a b", "a b"),
            ("", "=?base64??="),
            (" a", "=?base64?IGE=?="),
            ("a ", "=?base64?YSA=?="),
            ("a\tb", "=?base64?YQli?="),
            ("a\nb", "=?base64?YQpi?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("ä", "=?base64?w6Q=?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
            ("=?base64?x", "=?base64?x"),
            ("=?BASE64?x?=", "=?BASE64?x?="),
        ];
        for (text, header) in table {
            assert_eq!(encode(text), header, "{text:?}");
            assert_eq!(decode(header).as_deref(), Ok(text), "{header:?}");
        }
    }

    #[test]
    fn what_is_not_canonical_base64_is_refused() {
        for value in [
            "=?base64?YQ?=",
            "=?base64?YR==?=",
            "=?base64?!?=",
            "=?base64?/w==?=",
        ] {
            assert_eq!(decode(value), Err(Undecodable), "{value}");
        }
    }

    fn marked(schema: &str) -> Result<Vec<String>, BadMark> {
        let marks = Marks::read(schema)?;
        Ok(marks.0.iter().map(|(_, name)| name.to_string()).collect())
    }

    #[test]
    fn marks_are_read_where_only_properties_lead() {
        let schema = r#"{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "x-mcp-header":{"type":"number","default":{"x-mcp-header":1}},
            "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;
        let mut names = marked(schema).unwrap();
        names.sort();
        assert_eq!(names, ["mcp-param-n", "mcp-param-region"]);
        assert_eq!(marked(r#"{"type":"object"}"#).unwrap(), [""; 0]);
    }

    #[test]
    fn a_mark_that_breaks_a_rule_condemns_the_tool() {
        let property = |inner: &str| format!(r#"{{"properties":{{"a":{inner}}}}}"#);
        for schema in [
            property(r#"{"type":"string","x-mcp-header":""}"#),
            property(r#"{"type":"string","x-mcp-header":7}"#),
            property(r#"{"type":"string","x-mcp-header":"a b"}"#),
            property(r#"{"type":"string","x-mcp-header":"ä"}"#),
            property(r#"{"type":"number","x-mcp-header":"a"}"#),
            property(r#"{"type":"object","x-mcp-header":"a"}"#),
            property(r#"{"x-mcp-header":"a"}"#),
            property(r#"{"type":"array","items":{"type":"string","x-mcp-header":"a"}}"#),
            property(r#"{"anyOf":[{"type":"string","x-mcp-header":"a"}]}"#),
            r#"{"$defs":{"a":{"type":"string","x-mcp-header":"a"}}}"#.to_owned(),
            r#"{"type":"string","x-mcp-header":"a"}"#.to_owned(),
            r#"{"if":{"properties":{"a":{"type":"string","x-mcp-header":"a"}}}}"#.to_owned(),
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"x"},"b":{"type":"string","x-mcp-header":"X"}}}"#.to_owned(),
        ] {
            assert!(marked(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn arguments_are_repeated_as_the_rules_write_them() {
        let schema = r#"{"properties":{
            "s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},
            "b":{"type":"boolean","x-mcp-header":"B"},
            "d":{"properties":{"e":{"type":"string","x-mcp-header":"E"}}}}}"#;
        let marks = Marks::read(schema).unwrap();
        let repeated = |arguments: Option<&str>| {
            let mut headers = HeaderMap::new();
            marks.repeat(arguments, &mut headers);
            ["s", "i", "b", "e"].map(|name| {
                let value = headers.get(format!("mcp-param-{name}"))?;
                Some(value.to_str().unwrap().to_owned())
            })
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            repeated(Some(r#"{"s":"a","i":42,"b":true,"d":{"e":"\u00e4"}}"#)),
            [some("a"), some("42"), some("true"), some("=?base64?w6Q=?=")]
        );
        assert_eq!(
            repeated(Some(r#"{"s":"","i":42.0,"b":null,"d":{}}"#)),
            [some("=?base64??="), some("42"), None, None]
        );
        assert_eq!(
            repeated(Some(r#"{"s":{},"i":-7,"d":3}"#)),
            [None, some("-7"), None, None]
        );
        assert_eq!(repeated(None), [None, None, None, None]);
    }

    #[test]
    fn the_name_comes_from_where_the_method_has_it() {
        let mut headers = HeaderMap::new();
        repeat("tools/call", Some(r#""bestätigen""#), &mut headers);
        assert_eq!(headers[METHOD_HEADER], "tools/call");
        assert_eq!(headers[NAME_HEADER], "=?base64?YmVzdMOkdGlnZW4=?=");
        assert_eq!(named_by("resources/read"), Some("uri"));
        assert_eq!(named_by("tools/list"), None);
    }

    proptest! {
        /// Whatever the text: the value is a header's, survives trimming, and decodes to the text.
        #[test]
        fn encoding_loses_nothing(text in any::<String>()) {
            let value = encode(&text);
            prop_assert!(HeaderValue::from_str(&value).is_ok());
            prop_assert_eq!(value.trim(), &*value);
            prop_assert_eq!(decode(&value).unwrap(), text.as_str());
        }
    }
}
