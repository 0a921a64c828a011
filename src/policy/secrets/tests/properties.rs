//! What holds for all forms.

use proptest::prelude::*;

use super::super::text::Text;
use super::*;

/// A text made of words that matter here.
fn words() -> impl Strategy<Value = String> {
    let word = proptest::sample::select(vec![
        "password", "token", "pin", "api key", "code", "name", "of", "your", "enter", "policy",
        "never", "e.g.", "address", "swap", ".", "密码", "的", "x",
    ]);
    proptest::collection::vec(word, 0..5).prop_map(|words| words.join(" "))
}

fn field() -> impl Strategy<Value = String> {
    let kind = proptest::sample::select(vec![
        r#""type":"string""#,
        r#""type":"integer""#,
        r#""type":"boolean""#,
        r#""type":"string","enum":["a"]"#,
        r#""type":"string","format":"email""#,
    ]);
    (kind, words(), words()).prop_map(|(kind, title, description)| {
        format!(
            r#"{{{kind},"title":{},"description":{}}}"#,
            quoted(&title),
            quoted(&description)
        )
    })
}

/// Parts of words in ASCII, with what masks, joins and parts them.
fn ascii() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(vec![
        "pass",
        "word",
        "Word",
        "API",
        "Key",
        "otp",
        "p",
        "s",
        "W",
        "0",
        "4",
        "5",
        "$",
        "@",
        "2024",
        "t0k3n",
        "pa$$",
        "_",
        "-",
        " - ",
        " ",
        ". ",
        ".",
        ",",
        ", ",
        ": ",
        ":",
        "!",
        "\n",
        "e.g",
        "HTTPToken",
        "x",
        "'",
        "*",
        "\u{7f}",
    ]);
    let parts = proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat());
    prop_oneof![parts, "[ -~]{0,24}"]
}

proptest! {
    /// The short way through a text is no other way.
    #[test]
    fn what_is_ascii_has_the_words_that_it_has_beside_other_letters(text in ascii()) {
        let alone = Text::read(&text);
        let any = Text::read_any(&text);
        prop_assert_eq!(alone.words, any.words);
    }

    /// Nobody makes a form harmless by adding to it.
    #[test]
    fn what_is_asked_stays_asked_when_fields_are_added(
        message in words(),
        fields in proptest::collection::vec(field(), 1..4),
        more in proptest::collection::vec(field(), 1..4),
        first in any::<bool>(),
    ) {
        let numbered = |letter: &str, fields: &[String]| -> String {
            let fields: Vec<_> = fields.iter().enumerate().map(|(n, field)| format!(r#""{letter}{n}":{field}"#)).collect();
            fields.join(",")
        };
        let (few, more) = (numbered("f", &fields), numbered("m", &more));
        let all = if first { format!("{more},{few}") } else { format!("{few},{more}") };
        if found(&message, &few) != "nothing" {
            prop_assert_ne!(found(&message, &all), "nothing");
        }
    }

    #[test]
    fn no_text_is_too_strange_to_be_judged(message in "\\PC{0,60}", name in "\\PC{0,20}", title in ".{0,20}") {
        let schema = format!(r#"{{"type":"object","properties":{{{}:{{"type":"string","title":{}}}}}}}"#, quoted(&name), quoted(&title));
        let form = Form::read(&schema).unwrap();
        drop(wanted(&message, &form));
    }

    /// Whatever JSON comes as a schema.
    #[test]
    fn no_schema_is_too_strange_to_be_judged(schema in json()) {
        if let Ok(form) = Form::read(&schema) {
            drop(wanted("Enter your password", &form));
        }
    }
}

/// JSON made of the words of schemas.
fn json() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(vec![
        "null",
        "true",
        "1",
        "\"string\"",
        "\"password\"",
        "\"#\"",
        "\"#/properties/a\"",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(5, 40, 4, |inner| {
            let name = proptest::sample::select(vec![
                "type",
                "properties",
                "$ref",
                "$defs",
                "anyOf",
                "items",
                "title",
                "description",
                "format",
                "enum",
                "password",
                "a",
                "required",
            ]);
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4)
                    .prop_map(|values| format!("[{}]", values.join(","))),
                proptest::collection::btree_map(name, inner, 0..4).prop_map(|members| {
                    let members: Vec<_> = members
                        .iter()
                        .map(|(name, value)| format!("\"{name}\":{value}"))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        })
}
