//! Forms of real life, one by one, and what holds for all forms.

use proptest::prelude::*;

use super::*;
use crate::protocol::object::{members, quoted, text};

const SECRET: &str = include_str!("../../../tests/forms/secret.txt");
const HARMLESS: &str = include_str!("../../../tests/forms/harmless.txt");

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
fn identifiers_are_read_in_every_spelling() {
    for name in [
        "api_key",
        "apiKey",
        "ApiKey",
        "APIKey",
        "API_KEY",
        "api-key",
        "api.key",
        "apikey",
        "APIKEY",
        "myApiKey",
        "openai_api_key",
        "apiKey2",
        "x-api-key",
        "api key",
    ] {
        let expected = format!("{name}: an API key");
        assert_eq!(
            found("", &format!(r#""{name}":{{"type":"string"}}"#)),
            expected
        );
    }
    for name in [
        "dbPassword",
        "DBPASSWORD",
        "db_password",
        "password1",
        "userpassword",
        "passwordConfirm",
        "password_new",
        "PassWord",
        "passwords",
    ] {
        let expected = format!("{name}: a password");
        assert_eq!(
            found("", &format!(r#""{name}":{{"type":"string"}}"#)),
            expected
        );
    }
    for name in [
        "passwordless",
        "password_policy",
        "passwordHint",
        "apiKeyName",
        "api_key_id",
        "keyApi",
        "token_count",
        "tokenizer",
        "pinned",
        "spin",
        "keypad",
        "secretary",
        "compass",
        "passenger",
        "bypass",
        "encode",
        "mypinboard",
        "secretsManagerRegion",
        "forgotPassword",
        "keyboard",
    ] {
        assert_eq!(
            found("", &format!(r#""{name}":{{"type":"string"}}"#)),
            "nothing",
            "{name}"
        );
    }
}

#[test]
fn a_word_cannot_be_hidden() {
    for title in [
        "p a s s w o r d",
        "P-A-S-S-W-O-R-D",
        "p.a.s.s.w.o.r.d",
        "pass\u{ad}word",
        "pass\u{200d}word",
        "p\u{301}assword",
        "pa\u{fe0f}ssword",
        "\u{202e}password",
        "𝗽𝗮𝘀𝘀𝘄𝗼𝗿𝗱",
        "ⓟⓐⓢⓢⓦⓞⓡⓓ",
        "ｐａｓｓｗｏｒｄ",
        "раѕѕwоrd",
        "раѕѕԝоrԁ",
        "ρassword",
        "p@ssw0rd",
        "pa$$word",
        "PASSW0RD",
        "pässwörd",
        "pass_word",
    ] {
        let field = format!(r#""x":{{"type":"string","title":{}}}"#, quoted(title));
        assert_eq!(found("", &field), "x: a password", "{title}");
    }
    // What only looks a little like it is not it.
    for title in [
        "A B C D",
        "1st place",
        "Route 5a",
        "C4 p5",
        "Сорт",
        "Рост",
        "p a s t e",
    ] {
        let field = format!(r#""x":{{"type":"string","title":{}}}"#, quoted(title));
        assert_eq!(found("", &field), "nothing", "{title}");
    }
}

/// The message counts for a field that says nothing of itself, and for no other.
#[test]
fn a_message_asks_by_a_field_without_a_name_of_its_own() {
    let field = |name: &str| format!(r#""{name}":{{"type":"string"}}"#);
    for message in [
        "Enter your password",
        "Please enter your GitHub password to continue.",
        "Your password?",
        "Password:",
        "What is your password?",
        "What's the admin password?",
        "I need your user name and password.",
        "Reply with your password.",
        "Hello!\nType the root password, please.",
        "Bitte Passwort eingeben",
        "Quel est votre mot de passe ?",
        "请输入密码",
        "Пароль?",
    ] {
        assert_eq!(
            found(message, &field("value")),
            "value: a password",
            "{message}"
        );
        assert_eq!(found(message, &field("email")), "nothing", "{message}");
        let formatted = r#""value":{"type":"string","format":"date"}"#;
        assert_eq!(found(message, formatted), "nothing", "{message}");
    }
    for message in [
        "Never share your password with anyone.",
        "Do not enter your password here.",
        "Your password was changed.",
        "Why do you need a password?",
        "What is a password?",
        "Forgot your password?",
        "Wrong password. Try again.",
        "Enter the name of the password vault.",
        "We never ask for your password",
        "Your password has expired",
        "A password protects the file.",
        "How do I enter my password?",
        "Enter a hint for your password",
        "Which rule, e.g. enter your password, failed?",
    ] {
        assert_eq!(found(message, &field("value")), "nothing", "{message}");
    }
}

#[test]
fn the_title_and_description_of_the_form_are_part_of_its_message() {
    let schema = r#"{"type":"object","title":"Enter your password","properties":{"value":{"type":"string"}}}"#;
    assert_eq!(judged("Hello", schema), "value: a password");
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
            ": a password",
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
    let message = "the token and the password of 密码 ".repeat(20_000);
    assert_eq!(found(&message, r#""email":{"type":"string"}"#), "nothing");
    let unbroken = "密码".repeat(50_000);
    assert_eq!(found(&unbroken, r#""email":{"type":"string"}"#), "nothing");
    let letters = "a ".repeat(50_000);
    assert_eq!(found(&letters, r#""email":{"type":"string"}"#), "nothing");
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
        "the field `db password` asks for a password; secrets are not asked for by form: send the person to a page of the server with mode `url`"
    );
    assert!(
        wanted
            .warning()
            .starts_with("Careful: the field `db password` asks for a password.")
    );
    assert_eq!(wanted.warning().lines().count(), 1);
}

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

proptest! {
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
