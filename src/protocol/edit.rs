//! Edits members of a JSON object and leaves every other byte alone.

use super::object;

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
/// assert_eq!(edited.as_deref(), Some(r#"{"z": 1.10 , "m":7,"new":{}}"#));
/// ```
pub fn edit<const N: usize>(raw: &str, edits: [(&str, Edit<'_>); N]) -> Option<String> {
    let changes = edits.map(|(name, edit)| match edit {
        Edit::Remove => (name, None),
        Edit::Set(value) => (name, Some(value)),
    });
    let edited = object::edit(raw, &changes).ok()?;
    Some(edited.into_owned())
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
                r#"{"b":"}" }"#,
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
