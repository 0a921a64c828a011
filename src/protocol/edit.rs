//! Edits members of a JSON object and leaves every other byte alone.

use std::ops::Range;

use super::object::members;

/// What becomes of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit<'a> {
    /// It is taken out, if it is there.
    Remove,
    /// It gets this value (JSON text), in its place, or at the end when it is new.
    Set(&'a str),
}

/// The object `raw` after the edits; `None` when it is no object, or ambiguous in an edited name.
///
/// ```
/// use contraflow::protocol::edit::{Edit, edit};
/// let raw = r#"{"z": 1.10, "a":"x" , "m":null}"#;
/// let edited = edit(raw, [("a", Edit::Remove), ("m", Edit::Set("7")), ("new", Edit::Set("{}"))]);
/// assert_eq!(edited.as_deref(), Some(r#"{"z": 1.10, "m":7,"new":{}}"#));
/// ```
pub fn edit<const N: usize>(raw: &str, edits: [(&str, Edit<'_>); N]) -> Option<String> {
    let found = members(raw, edits.map(|(name, _)| name)).ok()?;
    let mut spans = Vec::new();
    let mut added = String::new();
    for ((name, edit), value) in edits.iter().zip(found) {
        let span = value.map(|value| {
            let start = value.as_ptr().addr() - raw.as_ptr().addr();
            start..start + value.len()
        });
        match (span, edit) {
            (Some(span), Edit::Set(new)) => spans.push((span, (*new).to_owned())),
            (Some(span), Edit::Remove) => spans.push((whole_member(raw, span)?, String::new())),
            (None, Edit::Set(new)) => {
                added.push_str(&serde_json::to_string(name).ok()?);
                added.push(':');
                added.push_str(new);
                added.push(',');
            }
            (None, Edit::Remove) => {}
        }
    }
    spans.sort_by_key(|(span, _)| span.start);
    Some(splice(raw, &spans, &added))
}

fn splice(raw: &str, spans: &[(Range<usize>, String)], added: &str) -> String {
    let mut edited = String::with_capacity(raw.len() + added.len());
    let mut at = 0;
    for (span, new) in spans {
        // Neighbours that go may share the comma between them.
        edited.push_str(raw.get(at..span.start.max(at)).unwrap_or_default());
        edited.push_str(new);
        at = span.end.max(at);
    }
    edited.push_str(raw.get(at..).unwrap_or_default());
    let close = edited.rfind('}').unwrap_or(edited.len());
    let tail = edited.split_off(close);
    let open = edited.find('{').map_or(0, |open| open + 1);
    let body = edited.split_off(open);
    // What was last may have left its comma.
    let body = body.trim_end().strip_suffix(',').unwrap_or(&body);
    let lead = if body.trim().is_empty() || added.is_empty() {
        ""
    } else {
        ","
    };
    format!(
        "{edited}{body}{lead}{}{tail}",
        added.strip_suffix(',').unwrap_or(added)
    )
}

/// From the name of a member to the comma after its value.
fn whole_member(raw: &str, value: Range<usize>) -> Option<Range<usize>> {
    let before = raw
        .get(..value.start)?
        .trim_end()
        .strip_suffix(':')?
        .trim_end();
    let name = before.strip_suffix('"')?;
    // The name's opening quote: the last one that no odd number of backslashes escapes.
    let start = name.rmatch_indices('"').map(|(at, _)| at).find(|at| {
        let slashes = name
            .get(..*at)
            .unwrap_or_default()
            .bytes()
            .rev()
            .take_while(|byte| *byte == b'\\');
        slashes.count() % 2 == 0
    })?;
    let after = raw.get(value.end..)?;
    let skipped = after.len() - after.trim_start().len();
    match after.trim_start().strip_prefix(',') {
        Some(rest) => {
            let gap = rest.len() - rest.trim_start().len();
            Some(start..value.end + skipped + 1 + gap)
        }
        None => Some(start..value.end),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_go_come_and_change_in_their_place() {
        let table = [
            (r#"{"a":1}"#, "a", Edit::Remove, r"{}"),
            (r#"{ "a" : 1 , "b":2}"#, "a", Edit::Remove, r#"{ "b":2}"#),
            (r#"{"b":2, "a":1}"#, "a", Edit::Remove, r#"{"b":2}"#),
            (
                r#"{"b":"}", "a":{"x":"}"} }"#,
                "a",
                Edit::Remove,
                r#"{"b":"}"}"#,
            ),
            (r#"{"\"a":0,"a":1}"#, "a", Edit::Remove, r#"{"\"a":0}"#),
            (
                r#"{"a\\":0,"a":1,"c":[]}"#,
                "a",
                Edit::Remove,
                r#"{"a\\":0,"c":[]}"#,
            ),
            (
                r#"{"a":1e2,"b":1.0}"#,
                "a",
                Edit::Set("7"),
                r#"{"a":7,"b":1.0}"#,
            ),
            (r"{}", "a", Edit::Set("7"), r#"{"a":7}"#),
            (r#"{"b":1}"#, "a", Edit::Set("7"), r#"{"b":1,"a":7}"#),
            (r#"{"b":1}"#, "a", Edit::Remove, r#"{"b":1}"#),
        ];
        for (raw, name, change, expected) in table {
            assert_eq!(
                edit(raw, [(name, change)]).as_deref(),
                Some(expected),
                "{raw}"
            );
        }
        assert_eq!(edit("[]", [("a", Edit::Remove)]), None);
        assert_eq!(edit(r#"{"a":1,"a":2}"#, [("a", Edit::Remove)]), None);
    }

    proptest! {
        /// However the members are ordered and spaced: what is edited is edited, what isn't is the same.
        #[test]
        fn other_members_survive(
            names in proptest::sample::subsequence(vec!["a", "b", "c", "d\\\"", "e,", "f}"], 0..6).prop_shuffle(),
            gap in prop_oneof![Just(""), Just(" "), Just("\n  ")],
            value in prop_oneof![Just("1.10"), Just("\"}, \\\"a\\\": {\""), Just("[1, {\"a\":2}]"), Just("{\"a\":{}}")],
        ) {
            let members: Vec<_> = names.iter().map(|name| format!("{gap}\"{name}\"{gap}:{gap}{value}{gap}")).collect();
            let raw = format!("{{{}}}", members.join(","));
            let edited = edit(&raw, [("a", Edit::Remove), ("b", Edit::Set("7")), ("c", Edit::Remove)]).unwrap();
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
