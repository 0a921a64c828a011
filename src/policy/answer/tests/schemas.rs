//! Answers to schemas that are no flat forms.

use super::*;

/// Outside of the flat subset the schema has the last word, in its own dialect.
#[test]
fn a_schema_outside_of_the_subset_is_checked_as_it_is() {
    let optional = r#"{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}]}"#;
    check(
        optional,
        &["1", "null"],
        &[
            ("0", "is not what is asked for"),
            ("\"1\"", "is not what is asked for"),
        ],
    );
    check(
        r#"{"type":"object","properties":{"street":{"type":"string"}},"required":["street"]}"#,
        &[r#"{"street":"x"}"#],
        &[
            ("{}", "is incomplete"),
            (r#"{"street":1}"#, "must be text"),
            ("1", "must be an object"),
        ],
    );
    check(
        r#"{"type":"integer","exclusiveMinimum":0,"multipleOf":5}"#,
        &["5"],
        &[
            ("0", "must be more than 0"),
            ("7", "must be a multiple of 5"),
        ],
    );
    check(
        r#"{"type":"string","format":"uuid"}"#,
        &["\"67e55044-10b1-426f-9247-bb680e5fe0c8\""],
        &[("\"x\"", "is not in the format uuid")],
    );
    let by_reference = Form::read(
        r##"{"type":"object","properties":{"size":{"$ref":"#/$defs/Size"}},"$defs":{"Size":{"enum":["s","m"],"type":"string"}}}"##,
    )
    .unwrap();
    assert_eq!(wrong(&by_reference, r#"{"size":"m"}"#), "");
    assert_eq!(
        wrong(&by_reference, r#"{"size":"x"}"#),
        "size must be one of: s, m"
    );
    let older = Form::read(
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"type":"integer","minimum":0,"exclusiveMinimum":true}}}"#,
    )
    .unwrap();
    assert_eq!(wrong(&older, r#"{"n":0}"#), "n must be more than 0");
}

#[test]
fn a_schema_that_says_which_other_fields_there_are_is_believed() {
    for (words, content, told) in [
        (r#""additionalProperties":true"#, r#"{"x":1}"#, ""),
        (
            r#""additionalProperties":{"type":"string"}"#,
            r#"{"x":"y"}"#,
            "",
        ),
        (
            r#""additionalProperties":{"type":"string"}"#,
            r#"{"canary":1}"#,
            "the answer must be text",
        ),
        (
            r#""patternProperties":{"^x":{"type":"string"}},"additionalProperties":false"#,
            r#"{"x1":"y"}"#,
            "",
        ),
        (r#""required":["x"]"#, r#"{"x":1}"#, ""),
        (
            r#""allOf":[{"properties":{"x":{"type":"integer"}}}]"#,
            r#"{"x":1}"#,
            "",
        ),
        (
            r#""minProperties":1"#,
            r#"{"x":1}"#,
            "the answer has a field that nobody asked for",
        ),
    ] {
        let schema =
            format!(r#"{{"type":"object","properties":{{"f":{{"type":"string"}}}},{words}}}"#);
        let form = Form::read(&schema).unwrap();
        assert_eq!(wrong(&form, content), told, "{schema}");
    }
}

/// What can't be checked here is left to the server: it knows what it meant.
#[test]
fn what_cannot_be_checked_is_left_to_the_server() {
    // A pattern that can't be matched in linear time; the rest of the schema holds.
    check(
        r#"{"type":"string","pattern":"^(?!\\.)[a-z]+$","minLength":3}"#,
        &["\"abc\"", "\".bc\""],
        &[("\"ab\"", "must have at least 3 characters")],
    );
    for field in [
        // Nothing is fetched, neither from the network nor from the disk.
        r#"{"$ref":"http://127.0.0.1:9/schema.json"}"#,
        r#"{"$ref":"file:///etc/passwd"}"#,
        r##"{"$ref":"#/nowhere"}"##,
        // No schema at all.
        r#"{"type":"string","required":true}"#,
        r#"{"type":"text","minLength":"1"}"#,
    ] {
        let form = one(field);
        assert_eq!(wrong(&form, r#"{"f":1}"#), "", "{field}");
        assert_eq!(
            wrong(&form, r#"{"g":1}"#),
            "the answer has a field that nobody asked for",
            "{field}"
        );
        assert_eq!(
            wrong(&form, r#"{"f":1,"f":2}"#),
            "f is answered twice",
            "{field}"
        );
    }
    let unknown = one(r#"{"type":"integer","multipleOf":2}"#).check(r#"{"f":3}"#);
    let dialect = Form::read(
        r#"{"$schema":"https://example.com/own","type":"object","properties":{"f":{"type":"integer","multipleOf":2}}}"#,
    );
    assert_eq!(dialect.unwrap().check(r#"{"f":3}"#), unknown);
}

/// References that unfold to more than anybody could check, and patterns by the hundred.
#[test]
fn no_schema_keeps_the_gateway_busy() {
    let doubling: Vec<_> = (1..40)
        .map(|n| {
            let below = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, n - 1);
            format!(r#""d{n}":{{"allOf":[{below},{below}]}}"#)
        })
        .collect();
    let doubling = format!(
        r##"{{"type":"object","properties":{{"f":{{"$ref":"#/$defs/d39"}}}},"$defs":{{"d0":{{"type":"integer"}},{}}}}}"##,
        doubling.join(",")
    );
    let endless = r##"{"type":"object","properties":{"f":{"allOf":[{"$ref":"#/properties/f"}]}}}"##;
    let round = r##"{"type":"object","properties":{"f":{"$ref":"#"}}}"##;
    let patterns: Vec<_> = (0..5000)
        .map(|n| format!(r#"{{"pattern":"\\w{{{n}}}$"}}"#))
        .collect();
    let patterns = format!(
        r#"{{"type":"object","properties":{{"f":{{"allOf":[{}]}}}}}}"#,
        patterns.join(",")
    );
    let names: Vec<_> = (0..5000).map(|n| format!(r#""\\w{{{n}}}":{{}}"#)).collect();
    let names = format!(
        r#"{{"type":"object","properties":{{"f":{{"patternProperties":{{{}}}}}}}}}"#,
        names.join(",")
    );
    for schema in [doubling.as_str(), endless, round, &patterns, &names] {
        let form = Form::read(schema).unwrap();
        assert_eq!(wrong(&form, r#"{"f":"x"}"#), "");
        assert_eq!(
            wrong(&form, r#"{"g":"x"}"#),
            "the answer has a field that nobody asked for"
        );
    }
}

/// As deep as a schema may be there is stack for it.
#[test]
fn a_deep_schema_is_checked() {
    let chain: Vec<_> = (1..70)
        .map(|n| format!(r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{}"}}]}}"##, n - 1))
        .collect();
    let chain = format!(
        r##"{{"type":"object","properties":{{"f":{{"$ref":"#/$defs/d69"}}}},"$defs":{{"d0":{{"type":"integer"}},{}}}}}"##,
        chain.join(",")
    );
    let nested = format!(
        r#"{{"type":"object","properties":{{"f":{}{{"type":"integer"}}{}}}}}"#,
        r#"{"allOf":["#.repeat(60),
        "]}".repeat(60)
    );
    for schema in [chain, nested] {
        let form = Form::read(&schema).unwrap();
        assert_eq!(wrong(&form, r#"{"f":"x"}"#), "f must be a whole number");
    }
}
