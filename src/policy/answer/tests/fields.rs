//! Which answers fit which kinds of fields.

use super::*;

#[test]
fn text_has_a_length_in_characters() {
    check(
        r#"{"type":"string","minLength":1,"maxLength":3}"#,
        &[
            "\"a\"",
            "\"äöü\"",
            r#""\ud83d\ude00\ud83d\ude00\ud83d\ude00""#,
            "\"   \"",
        ],
        &[
            ("\"\"", "must not be empty"),
            ("\"abcd\"", "must have at most 3 characters"),
            ("7", "must be text"),
            ("null", "must be text"),
            ("[\"a\"]", "must be text"),
        ],
    );
    check(
        r#"{"type":"string","minLength":3}"#,
        &["\"abc\""],
        &[("\"ab\"", "must have at least 3 characters")],
    );
    check(
        r#"{"type":"string","maxLength":1}"#,
        &["\"\""],
        &[("\"ab\"", "must have at most 1 character")],
    );
}

#[test]
fn text_can_have_a_form_of_its_own() {
    check_text(
        r#"{"type":"string","pattern":"^[A-Z]{2}-[0-9]+$"}"#,
        &["AB-1", "ZZ-000"],
        "is not in the form that is asked for",
        &["", "ab-1", "AB-", "xAB-1"],
    );
    // As in JSON Schema 2020-12 validation §6.3.3, a part of the text is enough.
    check_text(
        r#"{"type":"string","pattern":"[0-9]"}"#,
        &["a1b"],
        "is not in the form that is asked for",
        &["ab"],
    );
}

#[test]
fn long_text_is_checked_too() {
    let form = one(r#"{"type":"string","maxLength":10}"#);
    let content = format!(r#"{{"f":"{}"}}"#, "x".repeat(MAX_CONTENT - 100));
    assert_eq!(wrong(&form, &content), "f must have at most 10 characters");
}

/// RFC 5321 §4.1.2, `Mailbox`.
#[test]
fn an_email_address_is_a_mailbox() {
    check_text(
        r#"{"type":"string","format":"email"}"#,
        &[
            "a@b.c",
            "a+b@example.com",
            "o'neil@example.co.uk",
            "\"a b\"@example.com",
            "a@localhost",
            "a@[127.0.0.1]",
        ],
        "is not an e-mail address",
        &[
            "",
            "a",
            "@b.c",
            "a@",
            "a@@b.c",
            "a b@c.d",
            ".a@b.c",
            "a..b@c.d",
            "a@-b.c",
            "a@b_c.d",
            "Mira <a@b.c>",
            "ä@b.c",
            "a@b.c, d@e.f",
        ],
    );
}

/// RFC 3986 §3: with a scheme, and nothing in it that is to be escaped.
#[test]
fn a_uri_is_absolute() {
    check_text(
        r#"{"type":"string","format":"uri"}"#,
        &[
            "https://example.com/a?b#c",
            "mailto:a@b.c",
            "urn:isbn:1",
            "http://[::1]:80/",
            "https://example.com/%C3%A4",
        ],
        "is not a URI, such as https://example.com/page",
        &[
            "",
            "example.com",
            "/a",
            "//a/b",
            "#a",
            "http://a b",
            "http://%zz/",
            "https://example.com/ä",
            "http://[::1",
        ],
    );
}

/// RFC 3339 §5.6, `full-date`.
#[test]
fn a_date_is_a_day_that_there_is() {
    check_text(
        r#"{"type":"string","format":"date"}"#,
        &["2026-07-28", "2024-02-29", "2000-02-29"],
        "is not a date, such as 2026-07-28",
        &[
            "",
            "2023-02-29",
            "1900-02-29",
            "2024-04-31",
            "2024-13-01",
            "2024-2-9",
            "28.07.2026",
            "2024-02-29Z",
            "2024-02-29T00:00:00Z",
            "٢٠٢٤-٠٢-٢٩",
        ],
    );
}

/// RFC 3339 §5.6, `date-time`; a leap second where there can be one (§5.7).
#[test]
fn a_time_has_a_date_and_a_zone() {
    check_text(
        r#"{"type":"string","format":"date-time"}"#,
        &[
            "2026-07-28T09:30:00Z",
            "2026-07-28t09:30:00z",
            "2026-07-28T09:30:00.123+02:00",
            "2026-07-28T09:30:00-00:00",
            "2016-12-31T23:59:60Z",
        ],
        "is not a time with a date and a time zone, such as 2026-07-28T09:30:00Z",
        &[
            "",
            "2026-07-28",
            "2026-07-28T09:30:00",
            "2026-07-28T09:30Z",
            "2026-07-28T24:00:00Z",
            "2026-02-30T09:30:00Z",
            "2016-12-31T23:58:60Z",
            "2026-07-28T09:30:00+24:00",
        ],
    );
}

/// JSON Schema 2020-12 core §4.2.3 and validation §6.1.1: an integer is a number without a fraction,
/// however it is spelled.
#[test]
fn a_whole_number_may_be_spelled_in_any_way() {
    check(
        r#"{"type":"integer"}"#,
        &[
            "3",
            "3.0",
            "1e2",
            "-0",
            "-0.0",
            "1E300",
            "18446744073709551616",
            "-9223372036854775809",
        ],
        &[
            ("3.5", "must be a whole number"),
            ("1e-1", "must be a whole number"),
            ("\"3\"", "must be a whole number"),
            ("true", "must be a whole number"),
            ("null", "must be a whole number"),
            ("1e400", "can't be read"),
        ],
    );
}

#[test]
fn a_number_has_bounds_which_are_exact() {
    check(
        r#"{"type":"number","minimum":0,"maximum":9007199254740992}"#,
        &[
            "0",
            "-0",
            "-0.0",
            "0.1",
            "9007199254740992",
            "9.007199254740992e15",
        ],
        &[
            ("-1e-9", "must be at least 0"),
            ("9007199254740993", "must be at most 9007199254740992"),
            ("\"1\"", "must be a number"),
        ],
    );
    check(
        r#"{"type":"number","minimum":0.5}"#,
        &["0.5", "5e-1"],
        &[("0.49", "must be at least 0.5")],
    );
}

#[test]
fn yes_and_no_are_true_and_false() {
    check(
        r#"{"type":"boolean"}"#,
        &["true", "false"],
        &[
            ("\"true\"", "must be true or false"),
            ("1", "must be true or false"),
            ("null", "must be true or false"),
        ],
    );
}

#[test]
fn a_choice_is_one_of_the_values_and_is_told_by_its_title() {
    check(
        r#"{"type":"string","enum":["s","m"]}"#,
        &["\"s\"", "\"m\""],
        &[
            ("\"S\"", "must be one of: s, m"),
            ("\"\"", "must be one of: s, m"),
            ("0", "must be one of: s, m"),
            ("[\"s\"]", "must be one of: s, m"),
        ],
    );
    for field in [
        r#"{"type":"string","enum":["s","m"],"enumNames":["Small","Medium"]}"#,
        r#"{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"m","title":"Medium"}]}"#,
        // As one of several schemas a value that is listed twice would fit none.
        r#"{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"m","title":"Medium"},{"const":"m","title":"Medium"}]}"#,
    ] {
        let form = one(field);
        assert_eq!(wrong(&form, r#"{"f":"m"}"#), "", "{field}");
        let told = wrong(&form, r#"{"f":"Medium"}"#);
        assert!(
            told.starts_with("f must be one of: Small, Medium"),
            "{told}"
        );
    }
    // A default that is no choice is no answer either.
    let form = one(r#"{"type":"string","enum":["s"],"default":"x"}"#);
    assert_eq!(wrong(&form, r#"{"f":"x"}"#), "f must be one of: s");
    assert_eq!(wrong(&form, "{}"), "");
}

#[test]
fn several_choices_are_a_list_of_the_values() {
    check(
        r#"{"type":"array","items":{"type":"string","enum":["a","b","c"]},"minItems":1,"maxItems":2}"#,
        // Only a schema that says `uniqueItems` minds a choice that comes twice.
        &["[\"a\"]", "[\"c\",\"a\"]", "[\"a\",\"a\"]"],
        &[
            ("[]", "needs at least 1 choice"),
            ("[\"a\",\"b\",\"c\"]", "takes at most 2 choices"),
            ("[\"d\"]", "may only have: a, b, c"),
            ("[1]", "may only have: a, b, c"),
            ("\"a\"", "may only have: a, b, c"),
            ("{}", "may only have: a, b, c"),
        ],
    );
    check(
        r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"Ann"}]},"uniqueItems":true}"#,
        &["[]", "[\"a\"]"],
        &[
            ("[\"a\",\"a\"]", "must not have the same choice twice"),
            ("[\"Ann\"]", "may only have: Ann"),
        ],
    );
}

#[test]
fn long_lists_of_choices_are_cut() {
    let choices: Vec<_> = (0..900)
        .map(|n| quoted(&format!("choice number {n}\nof many")))
        .collect();
    let form = one(&format!(
        r#"{{"type":"string","enum":[{}]}}"#,
        choices.join(",")
    ));
    let told = wrong(&form, r#"{"f":""}"#);
    assert!(
        told.len() < 400 && told.ends_with(", …") && !told.contains('\n'),
        "{told}"
    );
}
