//! Forms of real life, one by one.

mod properties;
mod wording;

use super::wording::MAX_MESSAGE;
use super::*;
use crate::protocol::object::{members, quoted, text};

const SECRET: &str = include_str!("../../../../tests/forms/secret.txt");
const HARMLESS: &str = include_str!("../../../../tests/forms/harmless.txt");

fn found(message: &str, properties: &str) -> String {
    let schema = format!(r#"{{"type":"object","properties":{{{properties}}}}}"#);
    judged(message, &schema)
}

fn judged(message: &str, schema: &str) -> String {
    let form = Form::read(schema).unwrap_or_else(|error| panic!("{error}: {schema}"));
    match wanted(message, &form) {
        Some(wanted) => format!("{}: {}", wanted.field, wanted.what),
        None => "nothing".to_owned(),
    }
}

/// The forms of a file: where each comes from, its parameters, and what is said of it.
fn forms(file: &str) -> Vec<(&str, &str, &str)> {
    file.split("\n\n")
        .skip(1)
        .map(|form| {
            let mut lines = form.lines();
            let mut line = || lines.next().unwrap_or_default();
            (line(), line(), line())
        })
        .collect()
}

fn check(file: &str, least: usize, expected: impl Fn(&str) -> String) {
    let forms = forms(file);
    assert!(forms.len() >= least, "{} forms", forms.len());
    let mut wrong = Vec::new();
    for (origin, params, said) in forms {
        let [message, schema] = members(params, ["message", "requestedSchema"]).unwrap();
        let found = judged(&text(message.unwrap()).unwrap(), schema.unwrap());
        if found != expected(said) {
            wrong.push(format!(
                "{origin}\n{params}\n  {found}, not {}",
                expected(said)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn forms_that_ask_for_a_secret_are_recognised() {
    check(SECRET, 40, |said| {
        said.strip_prefix("> ").unwrap_or_default().to_owned()
    });
}

#[test]
fn forms_that_only_speak_of_secrets_are_let_through() {
    check(HARMLESS, 40, |_| "nothing".to_owned());
}

#[test]
fn only_what_can_be_typed_can_be_a_secret() {
    for field in [
        r#"{"type":"boolean"}"#,
        r#"{"type":"string","enum":["a"]}"#,
        r#"{"type":"string","oneOf":[{"const":"a","title":"A"}]}"#,
        r#"{"type":"array","items":{"type":"string","enum":["a"]}}"#,
        r#"{"type":"null"}"#,
        r#"{"const":"a"}"#,
        r#"{"type":"integer"}"#,
    ] {
        assert_eq!(
            found("", &format!(r#""password":{field}"#)),
            "nothing",
            "{field}"
        );
    }
    for field in [
        r#"{"type":"string"}"#,
        r#"{"type":["string","null"]}"#,
        r#"{"anyOf":[{"type":"string","minLength":8},{"type":"null"}]}"#,
        r#"{"allOf":[{"minLength":8}]}"#,
        r#"{"type":"array","items":{"type":"string"}}"#,
        r#"{"type":"text"}"#,
        r##"{"$ref":"#/properties/other"}"##,
        r"{}",
    ] {
        let properties = format!(r#""other":{{"type":"string"}},"password":{field}"#);
        assert_eq!(found("", &properties), "password: a password", "{field}");
    }
}

#[test]
fn numbers_can_be_pins_codes_and_cards() {
    for (name, expected) in [
        ("pin", "pin: a PIN"),
        ("otp", "otp: a one-time code"),
        ("verificationCode", "verificationCode: a one-time code"),
        ("card_number", "card_number: a card number"),
        ("cvv", "cvv: the security code of a card"),
        ("api_key", "nothing"),
        ("seed_phrase", "nothing"),
        ("pin_count", "nothing"),
    ] {
        for kind in ["integer", "number"] {
            assert_eq!(
                found("", &format!(r#""{name}":{{"type":"{kind}"}}"#)),
                expected
            );
        }
    }
}

#[test]
fn schemas_outside_of_the_subset_are_looked_through() {
    for (schema, expected) in [
        (
            r#"{"type":"object","properties":{"a":{"type":"object","properties":{"card":{"type":"object","properties":{"number":{"type":"string"}}}}}}}"#,
            "a: a card number",
        ),
        (
            r#"{"type":"object","allOf":[{"properties":{"password":{"type":"string"}}}]}"#,
            "password: a password",
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"otp":{"type":"string"}}}}}}"#,
            "a: a one-time code",
        ),
        (
            r#"{"type":"object","properties":{},"additionalProperties":{"type":"string","title":"Password"}}"#,
            "Password: a password",
        ),
        (
            r#"{"type":"object","properties":{"password":{"type":"object","properties":{"length":{"type":"string"}}}}}"#,
            "nothing",
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"string","default":"password","examples":["api key"]}}}"#,
            "nothing",
        ),
    ] {
        assert_eq!(judged("", schema), expected, "{schema}");
    }
}

/// Long, deep, and full of references: read to its end, and no further.
#[test]
fn no_form_is_too_large_to_be_looked_through() {
    for word in ["the token and the password of 密码 ", "密码", "a "] {
        let long = word.repeat(2 * MAX_MESSAGE / word.len());
        assert_eq!(
            found(&long, r#""email":{"type":"string"}"#),
            "nothing",
            "{word}"
        );
        let end = format!("{long}. Enter your password.");
        assert_eq!(
            found(&end, r#""value":{"type":"string"}"#),
            "value: a password"
        );
    }
    let holder = "x".repeat(100_000);
    let inner: Vec<_> = (0..4000)
        .map(|n| format!(r#""f{n}":{{"type":"string"}}"#))
        .collect();
    let many = format!(
        r#""{holder}":{{"type":"object","properties":{{{}}}}}"#,
        inner.join(",")
    );
    assert_eq!(found("", &many), "nothing");
    let below = |n: usize| format!(r##"{{"$ref":"#/$defs/d{n}"}}"##);
    let definitions: Vec<_> = (1..40)
        .map(|n| format!(r#""d{n}":{{"anyOf":[{},{}]}}"#, below(n - 1), below(n - 1)))
        .collect();
    let schema = format!(
        r#"{{"type":"object","properties":{{"password":{}}},"$defs":{{"d0":{{"type":"string"}},{}}}}}"#,
        below(39),
        definitions.join(",")
    );
    assert_eq!(judged("", &schema), "password: a password");
    let endless =
        r##"{"type":"object","properties":{"password":{"$ref":"#/properties/password"}}}"##;
    assert_eq!(judged("", endless), "password: a password");
}

#[test]
fn a_refusal_names_the_field_the_secret_and_the_way_out() {
    let wanted = Wanted {
        field: "db\npassword".to_owned(),
        what: Secret::Password,
    };
    assert_eq!(
        wanted.refusal(),
        "the field `db password` asks for a password; a form must not ask for secrets: send the person to a page of the server, in URL mode (`mode: url`)"
    );
    assert!(
        wanted
            .warning()
            .starts_with("Careful: the field `db password` asks for a password.")
    );
    assert_eq!(wanted.warning().lines().count(), 1);
}
