//! What is remembered of the forms of a server, and what is not.

use proptest::prelude::*;

use super::*;

/// A schema with one field of this name.
fn schema(name: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"{name}":{{"type":"integer","minimum":1}}}}}}"#)
}

fn met(forms: &Forms, schema: &str) -> Read {
    forms.read(schema).unwrap()
}

fn is_kept(forms: &Forms, schema: &str) -> bool {
    forms.kept.read().by_text.contains_key(schema)
}

#[test]
fn the_same_text_is_read_once_and_compiled_once() {
    let forms = Forms::default();
    let first = met(&forms, &schema("a"));
    assert!(first.form.check(r#"{"a":0}"#).is_err());
    let second = met(&forms, &schema("a"));
    assert!(Arc::ptr_eq(&first.form, &second.form));
    assert!(Arc::ptr_eq(&first.wording, &second.wording));
    assert!(second.form.checks.is_kept());
    assert!(second.form.check(r#"{"a":0}"#).is_err());
    assert!(second.form.check(r#"{"a":1}"#).is_ok());
}

#[test]
fn a_schema_that_differs_in_one_byte_is_another_form() {
    let forms = Forms::default();
    let least = |least: u32| schema("a").replace(":1}", &format!(":{least}}}"));
    for _ in 0..2 {
        let (one, two) = (met(&forms, &least(1)), met(&forms, &least(2)));
        assert!(one.form.check(r#"{"a":1}"#).is_ok());
        assert!(two.form.check(r#"{"a":1}"#).is_err());
    }
    let harmless = met(&forms, r#"{"properties":{"pasword_":{"type":"string"}}}"#);
    let secret = met(&forms, r#"{"properties":{"password":{"type":"string"}}}"#);
    assert_eq!(harmless.wording.wanted("Hello"), None);
    assert!(secret.wording.wanted("Hello").is_some());
    assert_eq!(forms.kept.read().by_text.len(), 4);
}

/// Else a server could tell by its own what others ask.
#[test]
fn servers_share_nothing() {
    let (one, two) = (Forms::default(), Forms::default());
    let form = met(&one, &schema("a"));
    assert!(!is_kept(&two, &schema("a")));
    assert!(!Arc::ptr_eq(&form.form, &met(&two, &schema("a")).form));
}

#[test]
fn the_message_is_judged_each_time() {
    let forms = Forms::default();
    let code = r#"{"type":"object","properties":{"code":{"type":"string"}}}"#;
    for _ in 0..2 {
        let wording = met(&forms, code).wording;
        assert_eq!(wording.wanted("Which country?"), None);
        assert!(wording.wanted("Enter the verification code").is_some());
    }
}

#[test]
fn endless_different_forms_fill_no_more_than_their_room() {
    let forms = Forms::default();
    let wide = |n: usize| {
        let fields: Vec<_> = (0..n % 40)
            .map(|field| format!(r#""f{n}_{field}":{{"type":"string"}}"#))
            .collect();
        format!(r#"{{"properties":{{{}}}}}"#, fields.join(","))
    };
    for n in 0..1000 {
        met(
            &forms,
            &if n % 2 == 0 {
                schema(&n.to_string())
            } else {
                wide(n)
            },
        );
        let kept = forms.kept.read();
        assert!(kept.by_text.len() <= MAX_FORMS && kept.weight <= MAX_WEIGHT);
        assert_eq!(kept.by_text.len(), kept.queue.len());
        let weight: usize = kept.by_text.values().map(|entry| entry.weight).sum();
        assert_eq!(kept.weight, weight);
    }
    assert!(!is_kept(&forms, &schema("0")));
}

#[test]
fn what_is_met_once_does_not_push_out_what_is_met_again() {
    let forms = Forms::default();
    met(&forms, &schema("again"));
    for n in 0..10 * MAX_FORMS {
        met(&forms, &schema("again"));
        met(&forms, &schema(&n.to_string()));
    }
    assert!(is_kept(&forms, &schema("again")));
}

#[test]
fn what_is_large_is_read_and_not_kept() {
    let forms = Forms::default();
    met(&forms, &schema("small"));
    let choices: Vec<_> = (0..1000).map(|n| format!("\"{n}\"")).collect();
    let large = [
        format!(
            r#"{{"properties":{{"a":{{"type":"string","enum":[{}]}}}}}}"#,
            choices.join(",")
        ),
        schema(&"x".repeat(100_000)),
    ];
    for schema in large {
        met(&forms, &schema);
        assert!(!is_kept(&forms, &schema));
    }
    assert!(is_kept(&forms, &schema("small")));
}

/// However short they are, these can be compiled to much.
#[test]
fn patterns_and_references_that_unfold_are_compiled_for_each_answer() {
    let forms = Forms::default();
    let pattern =
        r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^(a{1,50}){1,50}$"}}}"#;
    let unfolding = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/a"},"b":{"$ref":"#/$defs/a"},"c":{"$ref":"#/$defs/a"},
        "d":{"$ref":"#/$defs/a"},"e":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string","maxLength":3,"minLength":1,"not":{"const":"x",
        "allOf":[{"type":"string"},{"minLength":1},{"maxLength":1}]}}}}"##;
    for schema in [pattern, unfolding] {
        for _ in 0..2 {
            let form = met(&forms, schema).form;
            assert!(form.check(r#"{"a":"aa"}"#).is_ok(), "{schema}");
            assert!(form.check(r#"{"a":""}"#).is_err(), "{schema}");
            assert!(!form.checks.is_kept(), "{schema}");
        }
    }
}

#[test]
fn what_is_no_form_stays_none() {
    let forms = Forms::default();
    for _ in 0..2 {
        assert!(forms.read(r#"{"a":1,"a":2}"#).is_err());
    }
    assert_eq!(forms.kept.read().by_text.len(), 0);
}

fn field() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        r#"{"type":"string"}"#,
        r#"{"type":"string","title":"Your PIN","maxLength":3}"#,
        r#"{"type":"string","pattern":"^a$"}"#,
        r#"{"type":"string","format":"email","description":"Enter the code"}"#,
        r#"{"type":"integer","minimum":1}"#,
        r#"{"type":"boolean"}"#,
        r#"{"type":"string","enum":["a","b"]}"#,
        r#"{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1}"#,
        r#"{"anyOf":[{"type":"null"},{"type":"string","title":"API key"}]}"#,
        r##"{"$ref":"#/properties/code"}"##,
        r#"{"type":"object","properties":{"token":{"type":"string"}}}"#,
    ])
}

proptest! {
    /// Whatever was asked before: what is said of a form is what would be said of it alone.
    #[test]
    fn what_is_remembered_is_what_would_be_found_anew(
        asked in proptest::collection::vec((field(), field(), any::<bool>()), 1..6),
        contents in proptest::collection::vec(proptest::sample::select(vec![
            r#"{"code":"a"}"#, r#"{"code":"abcd","name":1}"#, r#"{"name":["a"]}"#, r#"{"code":0,"name":true}"#, "{}", r#"{"x":1}"#,
        ]), 1..4),
        message in proptest::sample::select(vec!["", "Enter your password", "Enter the code for the coupon", "Paste the key", "PIN"]),
    ) {
        let forms = Forms::default();
        for (code, name, required) in asked.iter().chain(&asked) {
            let required = if *required { r#","required":["code"]"# } else { "" };
            let schema = format!(r#"{{"type":"object","properties":{{"code":{code},"name":{name}}}{required}}}"#);
            let remembered = met(&forms, &schema);
            let fresh = Form::read(&schema).unwrap();
            prop_assert_eq!(&remembered.form.form, &fresh);
            prop_assert_eq!(remembered.wording.wanted(message), super::super::secrets::wanted(message, &fresh));
            for content in &contents {
                prop_assert_eq!(remembered.form.check(content), fresh.check(content));
            }
        }
    }
}
