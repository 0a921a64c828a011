//! Looks at a few members of a JSON object and leaves the rest alone.
//!
//! A gateway that decides on one reading of a message and forwards another can be fooled, so an
//! object that is looked at must be unambiguous: a member named twice, or one that differs from a
//! wanted name only in case (some servers read those as the same), is refused.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The raw values of `names` in the JSON object `raw`, in the order of `names`.
///
/// # Errors
/// When `raw` is no object, or is ambiguous in one of the names. The text names the member.
///
/// ```
/// use contraflow::protocol::object::members;
/// let [name, meta] = members(r#"{"name": "book", "x": 1.0}"#, ["name", "_meta"]).unwrap();
/// assert_eq!((name, meta), (Some(r#""book""#), None));
/// assert!(members(r#"{"name": "a", "Name": "b"}"#, ["name"]).is_err());
/// ```
pub fn members<'a, const N: usize>(
    raw: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a str>; N], serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    let found = deserializer.deserialize_map(Members { names })?;
    deserializer.end()?;
    Ok(found)
}

/// The raw elements of the JSON array `raw`, at most `most` of them.
///
/// # Errors
/// When `raw` is no array, or has more elements. No more than that are read.
pub fn elements(raw: &str, most: usize) -> Result<Vec<&str>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    let found = deserializer.deserialize_seq(Elements { most })?;
    deserializer.end()?;
    Ok(found)
}

/// All members of the JSON object `raw`: each name as JSON text, and its raw value, in their order.
///
/// # Errors
/// When `raw` is no object.
pub fn all_members(raw: &str) -> Result<Vec<(String, &str)>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    let found = deserializer.deserialize_map(AllMembers)?;
    deserializer.end()?;
    Ok(found)
}

/// The text of a JSON string, unescaped; `None` when `raw` is something else.
pub fn text(raw: &str) -> Option<Cow<'_, str>> {
    if let Some(plain) = raw
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        && memchr::memchr2(b'\\', b'"', plain.as_bytes()).is_none()
    {
        return Some(Cow::Borrowed(plain));
    }
    serde_json::from_str(raw).ok().map(Cow::Owned)
}

/// Whether `raw` is a JSON object.
pub fn is_object(raw: &str) -> bool {
    raw.starts_with('{')
}

struct Members<'n, const N: usize> {
    names: [&'n str; N],
}

impl<'de, const N: usize> Visitor<'de> for Members<'_, N> {
    type Value = [Option<&'de str>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(index) = map.next_key_seed(Name(&self.names))? {
            let Some(slot) = index.and_then(|index| found.get_mut(index)) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if slot.is_some() {
                let name = index
                    .and_then(|index| self.names.get(index))
                    .copied()
                    .unwrap_or_default();
                return Err(de::Error::custom(format_args!(
                    "member `{name}` occurs twice"
                )));
            }
            *slot = Some(map.next_value::<&RawValue>()?.get());
        }
        Ok(found)
    }
}

struct AllMembers;

impl<'de> Visitor<'de> for AllMembers {
    type Value = Vec<(String, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(name) = map.next_key::<&RawValue>()? {
            found.push((name.get().to_owned(), map.next_value::<&RawValue>()?.get()));
        }
        Ok(found)
    }
}

struct Elements {
    most: usize,
}

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(element) = array.next_element::<&RawValue>()? {
            if found.len() == self.most {
                return Err(de::Error::custom(format_args!(
                    "more than {} elements",
                    self.most
                )));
            }
            found.push(element.get());
        }
        Ok(found)
    }
}

/// Reads a member's name as an index into the wanted names.
struct Name<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: de::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
        if let Some(index) = self.0.iter().position(|name| *name == key) {
            return Ok(Some(index));
        }
        match self.0.iter().find(|name| is_variant(name, key)) {
            Some(name) => Err(E::custom(format_args!(
                "member `{name}` is spelled in another case"
            ))),
            None => Ok(None),
        }
    }
}

/// Whether some reader takes `key` for `name`: in another case, where two letters that are not ASCII
/// are the lower case of two that are.
fn is_variant(name: &str, key: &str) -> bool {
    let folded = key.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    });
    name.chars()
        .map(|letter| letter.to_ascii_lowercase())
        .eq(folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_raw_values_and_keeps_their_spelling() {
        let raw = r#"{"b": 1.10, "a":{"x":[1e2, "\u00e9"]}, "c":null}"#;
        let found = members(raw, ["a", "b", "c", "d"]).unwrap();
        assert_eq!(
            found,
            [
                Some(r#"{"x":[1e2, "\u00e9"]}"#),
                Some("1.10"),
                Some("null"),
                None
            ]
        );
    }

    #[test]
    fn refuses_what_could_be_read_in_two_ways() {
        for raw in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","Name":"b"}"#,
            r#"{"NAME":"b"}"#,
            r#"{"name":"a","\u006eame":"b"}"#,
            r#"{"\u004eame":"b"}"#,
            r#"{"name":"a","n\u0041me":"b"}"#,
        ] {
            assert!(members(raw, ["name"]).is_err(), "{raw}");
        }
        // Go reads a long s as an s, and the Kelvin sign as a k.
        assert!(members("{\"param\u{17f}\":1}", ["params"]).is_err());
        assert!(members("{\"to\u{212a}en\":1}", ["token"]).is_err());
        // Ambiguity elsewhere is not ours to judge.
        assert!(members(r#"{"x":1,"x":2,"X":3}"#, ["name"]).is_ok());
    }

    #[test]
    fn refuses_what_is_no_object() {
        for raw in ["[]", "1", "null", "\"x\"", "{", "{} {}", "{\"a\":}", ""] {
            assert!(members(raw, ["a"]).is_err(), "{raw}");
        }
    }

    #[test]
    fn unescapes_text() {
        assert_eq!(text(r#""plain""#).as_deref(), Some("plain"));
        assert_eq!(text(r#""a\"\u00e9""#).as_deref(), Some("a\"é"));
        assert_eq!(text("12"), None);
        assert_eq!(text(r#""a" "b""#), None);
    }
}
