//! What a form is, by example: those of the specification, of real servers, and what is none.

use proptest::prelude::*;

use super::*;

fn form(schema: &str) -> Form {
    Form::read(schema).unwrap_or_else(|error| panic!("{error}: {schema}"))
}

/// A form with one field `f`.
fn one(field: &str) -> Form {
    form(&format!(
        r#"{{"type":"object","properties":{{"f":{field}}}}}"#
    ))
}

fn left(form: &Form) -> String {
    form.outside()
        .map_or_else(|| "inside".to_owned(), ToString::to_string)
}

#[test]
fn each_kind_of_field_of_the_specification_is_read() {
    let table = [
        (r#"{"type":"string"}"#, Kind::String, ""),
        (
            r#"{"type":"string","title":"T","description":"d","minLength":3,"maxLength":50,"pattern":"^a","format":"email","default":"a@b.c"}"#,
            Kind::String,
            "",
        ),
        (
            r#"{"type":"number","minimum":0.5,"maximum":1e3,"default":1}"#,
            Kind::Number,
            "",
        ),
        (r#"{"type":"integer","minimum":-1}"#, Kind::Integer, ""),
        (r#"{"type":"boolean","default":false}"#, Kind::Boolean, ""),
        (
            r#"{"type":"string","enum":["a","b"],"default":"b"}"#,
            Kind::Enum,
            "a=a b=b",
        ),
        (
            r#"{"type":"string","enum":["a","b"],"enumNames":["Ann","Bob"]}"#,
            Kind::Enum,
            "a=Ann b=Bob",
        ),
        (
            r#"{"type":"string","oneOf":[{"const":"a","title":"Ann"},{"const":"b","title":"Bob"}]}"#,
            Kind::Enum,
            "a=Ann b=Bob",
        ),
        (
            r#"{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":2,"default":["a"]}"#,
            Kind::MultiSelect,
            "a=a b=b",
        ),
        (
            r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"Ann"}]},"uniqueItems":true}"#,
            Kind::MultiSelect,
            "a=Ann",
        ),
    ];
    for (schema, kind, choices) in table {
        let form = one(schema);
        let [field] = form.fields() else {
            panic!("{schema}")
        };
        assert_eq!(field.kind, kind, "{schema}");
        let read: Vec<_> = field
            .choices
            .iter()
            .map(|choice| format!("{}={}", choice.value, choice.title))
            .collect();
        assert_eq!(read.join(" "), choices, "{schema}");
        assert_eq!(left(&form), "inside", "{schema}");
    }
}

#[test]
fn fields_keep_the_order_of_the_text() {
    let form = form(
        r#"{"type":"object","required":["a","z"],"properties":{"z":{"type":"string","title":"Last name"},
            "\u006d":{"type":"boolean","title":" "},"a":{"type":"number"}}}"#,
    );
    let read: Vec<_> = form
        .fields()
        .iter()
        .map(|field| {
            (
                field.name.as_str(),
                field.label.as_str(),
                field.kind.name(),
                field.required,
            )
        })
        .collect();
    assert_eq!(
        read,
        [
            ("z", "Last name", "string", true),
            ("m", "m", "boolean", false),
            ("a", "a", "number", true)
        ]
    );
}

/// What libraries add of themselves says nothing about answers, and does not make a form another.
#[test]
fn what_only_describes_is_welcome() {
    for schema in [
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{},"additionalProperties":false}"#,
        r#"{"title":"Booking","description":"d","type":"object","properties":{"n":{"title":"N","type":"integer","format":"uint8","examples":[1],"x-order":1}},"required":["n"]}"#,
        r#"{"type":"object","properties":{"n":{"type":"string","readOnly":true,"deprecated":true,"$comment":"c"}},"$defs":{"Unused":{"type":"array"}}}"#,
        r#"{"type":"object","properties":{}}"#,
    ] {
        assert_eq!(left(&form(schema)), "inside", "{schema}");
    }
}

#[test]
fn what_is_no_field_of_a_form_is_outside_of_the_subset() {
    let table = [
        // Optional fields of Python models, enumerations by reference, and nested models.
        (
            r#"{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null}"#,
            "/properties/f has `anyOf`, which a form can't have",
        ),
        (
            r##"{"$ref":"#/$defs/Size"}"##,
            "/properties/f has `$ref`, which a form can't have",
        ),
        (
            r#"{"type":"object","properties":{}}"#,
            "/properties/f/type is no kind of field that a form can have",
        ),
        (
            r#"{"type":"null"}"#,
            "/properties/f/type is no kind of field that a form can have",
        ),
        (
            r#"{"type":["string","null"]}"#,
            "/properties/f/type is not one kind",
        ),
        (r#"{"enum":["a"]}"#, "/properties/f has no `type`"),
        (r"{}", "/properties/f has no `type`"),
        ("true", "/properties/f is no object"),
        (
            r#"{"type":"array","items":{"type":"string"}}"#,
            "/properties/f/items is no list of choices",
        ),
        (
            r#"{"type":"array"}"#,
            "/properties/f/items is no list of choices",
        ),
    ];
    for (field, expected) in table {
        assert_eq!(left(&one(field)), expected, "{field}");
    }
}

#[test]
fn words_that_a_form_does_not_have_are_outside_of_the_subset() {
    let table = [
        (
            r#"{"type":"string","const":"a"}"#,
            "/properties/f has `const`, which a form can't have",
        ),
        (
            r#"{"type":"integer","multipleOf":2}"#,
            "/properties/f has `multipleOf`, which a form can't have",
        ),
        (
            r#"{"type":"integer","exclusiveMinimum":0}"#,
            "/properties/f has `exclusiveMinimum`, which a form can't have",
        ),
        (
            r#"{"type":"integer","enum":[1,2]}"#,
            "/properties/f has `enum`, which a form can't have",
        ),
        (
            r#"{"type":"string","anyOf":[{"const":"a","title":"A"}]}"#,
            "/properties/f has `anyOf`, which a form can't have",
        ),
        // Words that a form has, with values that it can't.
        (
            r#"{"type":"string","format":"password"}"#,
            "/properties/f/format has a value that a form can't have",
        ),
        (
            r#"{"type":"string","minLength":-1}"#,
            "/properties/f/minLength has a value that a form can't have",
        ),
        (
            r#"{"type":"string","default":null}"#,
            "/properties/f/default has a value that a form can't have",
        ),
        (
            r#"{"type":"boolean","default":"yes"}"#,
            "/properties/f/default has a value that a form can't have",
        ),
        (
            r#"{"type":"string","title":7}"#,
            "/properties/f/title has a value that a form can't have",
        ),
        (
            r#"{"type":"string","required":true}"#,
            "/properties/f has `required`, which a form can't have",
        ),
        // Choices.
        (
            r#"{"type":"string","enum":["a","b"],"enumNames":["A"]}"#,
            "/properties/f/enumNames has 1 names for 2 choices",
        ),
        (
            r#"{"type":"string","enum":["a",1]}"#,
            "/properties/f/enum has a value that a form can't have",
        ),
        (
            r#"{"type":"string","enum":[]}"#,
            "/properties/f has no choices",
        ),
        (
            r#"{"type":"string","oneOf":[{"const":"a"}]}"#,
            "/properties/f/oneOf has a value that a form can't have",
        ),
        (
            r#"{"type":"string","enum":["a"],"oneOf":[{"const":"a","title":"A"}]}"#,
            "/properties/f has two lists of choices",
        ),
        (
            r#"{"type":"array","items":{"enum":["a"],"anyOf":[{"const":"a","title":"A"}]}}"#,
            "/properties/f/items has two lists of choices",
        ),
        (
            r#"{"type":"array","items":{"type":"string","enum":["a"],"pattern":"a"}}"#,
            "/properties/f/items has `pattern`, which a form can't have",
        ),
        (
            r#"{"type":"array","items":{"type":"string","enum":["a"]},"contains":{}}"#,
            "/properties/f has `contains`, which a form can't have",
        ),
    ];
    for (field, expected) in table {
        assert_eq!(left(&one(field)), expected, "{field}");
    }
}

#[test]
fn the_schema_as_a_whole_can_be_outside_of_the_subset() {
    let table = [
        ("{}", "the schema has no `type`"),
        (r#"{"type":"object"}"#, "the schema has no `properties`"),
        (
            r#"{"type":"string","properties":{}}"#,
            "/type has a value that a form can't have",
        ),
        // What some languages write for an empty object.
        (
            r#"{"type":"object","properties":[]}"#,
            "/properties has a value that a form can't have",
        ),
        (
            r#"{"type":"object","properties":{},"additionalProperties":true}"#,
            "/additionalProperties has a value that a form can't have",
        ),
        (
            r#"{"type":"object","properties":{},"allOf":[]}"#,
            "the schema has `allOf`, which a form can't have",
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"]}"#,
            "/required/1 names a field that isn't there",
        ),
        (
            r#"{"type":"object","properties":{"a/b~":{}},"required":[]}"#,
            "/properties/a~1b~0 has no `type`",
        ),
    ];
    for (schema, expected) in table {
        assert_eq!(left(&form(schema)), expected, "{schema}");
    }
}

/// An older client is shown `enum` and `enumNames`, a newer one `oneOf`: both are the same form.
#[test]
fn the_older_and_the_newer_spelling_of_choices_are_the_same_field() {
    let older = one(r#"{"type":"string","enum":["a","b"],"enumNames":["Ann","Bob"]}"#);
    let newer = one(
        r#"{"type":"string","oneOf":[{"const":"a","title":"Ann"},{"const":"b","title":"Bob"}]}"#,
    );
    assert_eq!(older.fields(), newer.fields());
}

/// With fewer or more names than choices nobody can tell which name belongs to which choice.
#[test]
fn names_that_are_not_as_many_as_the_choices_name_none() {
    let form = one(r#"{"type":"string","enum":["a","b"],"enumNames":["Bob"]}"#);
    let titles: Vec<_> = form.fields()[0]
        .choices
        .iter()
        .map(|choice| &choice.title)
        .collect();
    assert_eq!(titles, ["a", "b"]);
}

#[test]
fn what_could_be_read_in_two_ways_is_no_form() {
    for schema in [
        "",
        "7",
        "[]",
        "null",
        r#"{"type":"object","type":"object"}"#,
        r#"{"properties":{"a":{}},"Properties":{"password":{}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"string"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","Title":"Password"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{},"b":{}}}}}"#,
        r#"{"type":"object","properties":{"a":{"minimum":1e999}}}"#,
    ] {
        let read = Form::read(schema);
        assert!(
            matches!(read, Err(NotAForm::Unreadable(_))),
            "{schema}: {read:?}"
        );
    }
    // Two fields whose names differ in case are two fields.
    let form =
        form(r#"{"type":"object","properties":{"a":{"type":"string"},"A":{"type":"string"}}}"#);
    assert_eq!(form.fields().len(), 2);
}

#[test]
fn a_form_has_bounds() {
    let fields = |count: usize| {
        let fields: Vec<_> = (0..count)
            .map(|n| format!(r#""f{n}":{{"type":"boolean"}}"#))
            .collect();
        Form::read(&format!(
            r#"{{"type":"object","properties":{{{}}}}}"#,
            fields.join(",")
        ))
    };
    assert_eq!(fields(MAX_FIELDS).unwrap().fields().len(), MAX_FIELDS);
    assert_eq!(
        fields(MAX_FIELDS + 1),
        Err(NotAForm::TooManyFields(MAX_FIELDS + 1))
    );
    let choices = |count: usize| {
        let choices: Vec<_> = (0..count).map(|n| format!("\"{n}\"")).collect();
        Form::read(&format!(
            r#"{{"type":"object","properties":{{"f":{{"type":"string","enum":[{}]}}}}}}"#,
            choices.join(",")
        ))
    };
    assert_eq!(left(&choices(MAX_CHOICES).unwrap()), "inside");
    assert_eq!(
        choices(MAX_CHOICES + 1),
        Err(NotAForm::TooManyChoices(MAX_CHOICES + 1))
    );
    let long = format!(
        r#"{{"type":"object","title":"{}"}}"#,
        "x".repeat(MAX_SCHEMA)
    );
    assert_eq!(Form::read(&long), Err(NotAForm::TooLarge(long.len())));
}

proptest! {
    #[test]
    fn no_text_is_too_strange_to_be_read(text in "\\PC{0,60}") {
        drop(Form::read(&text));
    }
}
