//! Looks at a few members of a JSON object, or changes a few, and leaves the rest alone.
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

/// The members of the JSON object `raw` in their order: each name, unescaped, and its raw value.
///
/// # Errors
/// When `raw` is no object.
pub fn entries(raw: &str) -> Result<Vec<(Cow<'_, str>, &str)>, serde_json::Error> {
    let pairs = pairs(raw)?;
    Ok(pairs
        .into_iter()
        .map(|(name, value)| (text(name).unwrap_or_default(), value))
        .collect())
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

/// The JSON object `raw` with some members changed: a value takes the place of the old one or is
/// put at the end, no value removes the member. Every other byte stays.
///
/// # Errors
/// When `raw` is no object, or is ambiguous in one of the names.
///
/// ```
/// use contraflow::protocol::object::edit;
/// let raw = r#"{"a": 1.0, "b":2 }"#;
/// let changed = edit(raw, &[("b", Some("3")), ("a", None), ("c", Some("[]"))]).unwrap();
/// assert_eq!(changed, r#"{ "b":3,"c":[] }"#);
/// ```
pub fn edit<'a>(
    raw: &'a str,
    changes: &[(&str, Option<&str>)],
) -> Result<Cow<'a, str>, serde_json::Error> {
    let pairs = pairs(raw)?;
    let at = |part: &str| part.as_ptr().addr() - raw.as_ptr().addr();
    let part = |from: usize, to: usize| raw.get(from..to).unwrap_or_default();
    let mut found = vec![false; changes.len()];
    let mut edited = String::with_capacity(raw.len());
    let (mut touched, mut any) = (false, false);
    let mut end = raw.find('{').map_or(0, |brace| brace + 1);
    edited.push_str(part(0, end));
    for (name, value) in pairs {
        let (from, to) = (at(name), at(value) + value.len());
        let named = text(name).unwrap_or_default();
        let change = chosen(&named, changes, &mut found)?
            .and_then(|place| changes.get(place))
            .map(|(_, value)| *value);
        let gap = part(end, from);
        end = to;
        if let Some(None) = change {
            touched = true;
            continue;
        }
        // What separates two members goes with the second; the first that is left has no comma.
        match gap.find(',') {
            Some(comma) if !any => edited.push_str(gap.get(comma + 1..).unwrap_or_default()),
            _ => edited.push_str(gap),
        }
        any = true;
        match change {
            Some(Some(new)) => {
                touched = true;
                edited.push_str(part(from, at(value)));
                edited.push_str(new);
            }
            _ => edited.push_str(part(from, to)),
        }
    }
    for ((name, value), _) in changes.iter().zip(&found).filter(|(_, found)| !**found) {
        let Some(value) = value else { continue };
        touched = true;
        if std::mem::replace(&mut any, true) {
            edited.push(',');
        }
        edited.push_str(&quoted(name));
        edited.push(':');
        edited.push_str(value);
    }
    if !touched {
        return Ok(Cow::Borrowed(raw));
    }
    edited.push_str(part(end, raw.len()));
    Ok(Cow::Owned(edited))
}

/// A text as a JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// All members of the JSON object `raw`: each name as JSON text, and its raw value, in their order.
///
/// # Errors
/// When `raw` is no object.
pub fn all_members(raw: &str) -> Result<Vec<(String, &str)>, serde_json::Error> {
    let pairs = pairs(raw)?;
    Ok(pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect())
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

/// Which of the changes is for the member with this name.
fn chosen(
    name: &str,
    changes: &[(&str, Option<&str>)],
    found: &mut [bool],
) -> Result<Option<usize>, serde_json::Error> {
    for (place, ((wanted, _), found)) in changes.iter().zip(found).enumerate() {
        if name == *wanted {
            if std::mem::replace(found, true) {
                return Err(de::Error::custom(format_args!(
                    "member `{wanted}` occurs twice"
                )));
            }
            return Ok(Some(place));
        }
        if is_variant(wanted, name) {
            return Err(de::Error::custom(format_args!(
                "member `{wanted}` is spelled in another case"
            )));
        }
    }
    Ok(None)
}

/// The raw names (strings with their quotes) and raw values of an object.
fn pairs(raw: &str) -> Result<Vec<(&str, &str)>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    let found = deserializer.deserialize_map(Pairs)?;
    deserializer.end()?;
    Ok(found)
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Vec<(&'de str, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            found.push((name.get(), value.get()));
        }
        Ok(found)
    }
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
    use proptest::prelude::*;

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

    type Changes = &'static [(&'static str, Option<&'static str>)];

    #[test]
    fn an_edit_changes_what_is_named_and_nothing_else() {
        let raw = r#" { "a" : 1.10 , "\u0062":[1e2], "c":null } "#;
        let table: [(Changes, &str); 8] = [
            (&[], raw),
            (&[("x", None)], raw),
            (
                &[("a", Some("2"))],
                r#" { "a" : 2 , "\u0062":[1e2], "c":null } "#,
            ),
            (
                &[("b", Some("{}"))],
                r#" { "a" : 1.10 , "\u0062":{}, "c":null } "#,
            ),
            (&[("a", None)], r#" { "\u0062":[1e2], "c":null } "#),
            (&[("c", None)], r#" { "a" : 1.10 , "\u0062":[1e2] } "#),
            (
                &[("d", Some("4"))],
                r#" { "a" : 1.10 , "\u0062":[1e2], "c":null,"d":4 } "#,
            ),
            (
                &[("a", None), ("b", None), ("c", None), ("d", Some("4"))],
                r#" {"d":4 } "#,
            ),
        ];
        for (changes, expected) in table {
            assert_eq!(edit(raw, changes).unwrap(), expected, "{changes:?}");
        }
        assert_eq!(edit("{}", &[("a", Some("1"))]).unwrap(), r#"{"a":1}"#);
        assert_eq!(edit("{ }", &[("a", Some("1"))]).unwrap(), r#"{"a":1 }"#);
        for raw in ["[]", "", r#"{"a":1,"a":2}"#, r#"{"A":1}"#] {
            assert!(edit(raw, &[("a", None)]).is_err(), "{raw}");
        }
    }

    #[test]
    fn members_go_come_and_change_in_their_place() {
        let table = [
            (r#"{"a":1}"#, None, r"{}"),
            (r#"{ "a" : 1 , "b":2}"#, None, r#"{ "b":2}"#),
            (r#"{"b":2, "a":1}"#, None, r#"{"b":2}"#),
            (r#"{"b":"}", "a":{"x":"}"} }"#, None, r#"{"b":"}" }"#),
            (r#"{"\"a":0,"a":1}"#, None, r#"{"\"a":0}"#),
            (r#"{"a\\":0,"a":1,"c":[]}"#, None, r#"{"a\\":0,"c":[]}"#),
            (r#"{"a":1e2,"b":1.0}"#, Some("7"), r#"{"a":7,"b":1.0}"#),
            (r"{}", Some("7"), r#"{"a":7}"#),
            (r#"{"b":1}"#, Some("7"), r#"{"b":1,"a":7}"#),
            (r#"{"b":1}"#, None, r#"{"b":1}"#),
        ];
        for (raw, change, expected) in table {
            assert_eq!(edit(raw, &[("a", change)]).unwrap(), expected, "{raw}");
        }
    }

    /// What `members` refuses, `edit` refuses: no reader may find a member that was to be removed.
    #[test]
    fn an_edit_refuses_letters_that_fold_to_those_of_a_name() {
        for (raw, name) in [
            ("{\"ta\u{17f}k\":1}", "task"),
            ("{\"tas\u{212a}\":1}", "task"),
        ] {
            assert!(members(raw, [name]).is_err(), "{raw}");
            assert!(edit(raw, &[(name, None)]).is_err(), "{raw}");
        }
    }

    #[test]
    fn entries_and_elements_keep_order_and_spelling() {
        let found = entries(r#"{"b":1.0, "\u0061" : "x","b":2}"#).unwrap();
        let expected = [("b", "1.0"), ("a", "\"x\""), ("b", "2")];
        assert!(
            found
                .iter()
                .map(|(name, value)| (name.as_ref(), *value))
                .eq(expected)
        );
        assert_eq!(
            elements(r#"[ {"a":1.0} , 2]"#, 2).unwrap(),
            [r#"{"a":1.0}"#, "2"]
        );
        assert!(entries("[]").is_err() && elements("{}", 2).is_err());
    }

    proptest! {
        /// Against an editor that parses everything: the same meaning; and the raw values of what
        /// was not named are the same bytes in the same order.
        #[test]
        fn an_edit_means_what_it_says(
            names in proptest::sample::subsequence(vec!["a", "b", "c", "d", "e"], 0..=5),
            values in proptest::collection::vec(prop_oneof!["1\\.[0-9]0", "\"[a-z,:{}]{0,4}\"", Just("{\"x\": [1, 2]}".to_owned())], 5),
            gaps in proptest::collection::vec("[ \n\t]{0,2}", 20),
            changes in proptest::collection::btree_map("[a-g]", proptest::option::of("[1-9]"), 0..5),
        ) {
            let mut gap = gaps.iter().cycle().cloned();
            let mut space = move || gap.next().unwrap_or_default();
            let members: Vec<String> = names.iter().zip(&values)
                .map(|(name, value)| format!("{}\"{name}\"{}:{}{value}{}", space(), space(), space(), space())).collect();
            let raw = format!("{{{}{}}}", members.join(","), space());
            let changes: Vec<(&str, Option<&str>)> = changes.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
            let edited = edit(&raw, &changes).unwrap();
            let mut expected: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&raw).unwrap();
            for (name, value) in &changes {
                match value {
                    Some(value) => { expected.insert((*name).to_owned(), serde_json::from_str(value).unwrap()); }
                    None => { expected.remove(*name); }
                }
            }
            let found: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&edited).unwrap();
            prop_assert_eq!(found, expected);
            let untouched = |text: &str| -> Vec<(String, String)> {
                entries(text).unwrap().into_iter()
                    .filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name))
                    .map(|(name, value)| (name.into_owned(), value.to_owned())).collect()
            };
            prop_assert_eq!(untouched(&edited), untouched(&raw));
        }

        /// However the members are named, ordered and spaced, and whatever braces and quotes are in them.
        #[test]
        fn other_members_survive(
            names in proptest::sample::subsequence(vec!["a", "b", "c", "d\\\"", "e,", "f}"], 0..6).prop_shuffle(),
            gap in prop_oneof![Just(""), Just(" "), Just("\n  ")],
            value in prop_oneof![Just("1.10"), Just("\"}, \\\"a\\\": {\""), Just("[1, {\"a\":2}]"), Just("{\"a\":{}}")],
        ) {
            let members: Vec<_> = names.iter().map(|name| format!("{gap}\"{name}\"{gap}:{gap}{value}{gap}")).collect();
            let raw = format!("{{{}}}", members.join(","));
            let edited = edit(&raw, &[("a", None), ("b", Some("7")), ("c", None)]).unwrap();
            let mut expected: serde_json::Value = serde_json::from_str(&raw).unwrap();
            let object = expected.as_object_mut().unwrap();
            object.remove("a");
            object.remove("c");
            object.insert("b".into(), 7.into());
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&edited).unwrap(), expected, "{}", edited);
            if names.contains(&"e,") {
                let kept = format!("\"e,\"{gap}:{gap}{value}");
                prop_assert!(edited.contains(&kept), "{}", edited);
            }
        }
    }
}
