//! Which calls are asked about, and what the person reads.

use proptest::prelude::*;

use super::*;

const DELETE: &str = "delete_*";

fn call(params: &str) -> Message {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    Message::parse(&text.into_bytes().into()).unwrap()
}

fn needed(params: &str) -> Result<Option<Approval>, Malformed> {
    Approval::needed(&[DELETE.to_owned()], "alpha", &call(params))
}

fn of(arguments: &str) -> Approval {
    let params = format!(r#"{{"name":"delete_x","arguments":{arguments}}}"#);
    needed(&params).unwrap().unwrap()
}

#[test]
fn a_star_stands_for_any_text_and_the_rest_for_itself() {
    for (pattern, name) in [
        ("drop", "drop"),
        ("delete_*", "delete_user"),
        ("delete_*", "delete_"),
        ("*", ""),
        ("*", "anything"),
        ("*_all", "delete_all"),
        ("a*b*c", "aXbYbZc"),
        ("a**c", "abc"),
        ("*b*", "abc"),
        ("*ab", "aab"),
    ] {
        assert!(fits(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in [
        ("drop", "dropped"),
        ("drop", "Drop"),
        ("delete_*", "Delete_user"),
        ("delete_*", "undelete_user"),
        ("*_all", "delete_all_"),
        ("a*a", "a"),
        ("a*b*c", "acb"),
        ("a*bc*c", "abc"),
        ("?", "x"),
        ("[ab]", "a"),
    ] {
        assert!(!fits(pattern, name), "{pattern} {name}");
    }
}

#[test]
fn only_calls_of_the_tools_that_are_named_need_an_approval() {
    assert!(needed(r#"{"name":"delete_x"}"#).unwrap().is_some());
    // However it is spelled.
    assert!(needed(r#"{"name":"\u0064elete_x"}"#).unwrap().is_some());
    assert_eq!(needed(r#"{"name":"read"}"#), Ok(None));
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"delete_x"}}"#;
    let prompt = Message::parse(&text.into()).unwrap();
    assert_eq!(
        Approval::needed(&[DELETE.to_owned()], "alpha", &prompt),
        Ok(None)
    );
    assert_eq!(Approval::needed(&[], "alpha", &call("{}")), Ok(None));
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    for params in [
        "{}",
        "[]",
        r#"{"name":["delete_x"]}"#,
        r#"{"NAME":"delete_x"}"#,
        r#"{"name":"read","Name":"delete_x"}"#,
        r#"{"name":"delete_x","arguments":{},"Arguments":{"a":1}}"#,
        r#"{"name":"delete_x","arguments":{"a":1,"a":2}}"#,
        r#"{"name":"delete_x","arguments":{"a":1,"\u0061":2}}"#,
        r#"{"name":"delete_x","arguments":{"deep":[{"a":1,"b":{},"a":1}]}}"#,
    ] {
        assert!(needed(params).is_err(), "{params}");
    }
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let params = format!(r#"{{"name":"delete_x","arguments":{deep}}}"#);
    assert!(needed(&params).is_err());
}

#[test]
fn the_person_reads_tool_server_and_arguments() {
    let approval = of(r#"{"id":1.10,"list":[1,{"a":null}],"none":{},"no":[],"text":"a\nb"}"#);
    assert_eq!(
        approval.message,
        r#"Approval is needed: may the tool "delete_x" of the server "alpha" run with these arguments?

{
  "id": 1.10,
  "list": [
    1,
    {
      "a": null
    }
  ],
  "none": {},
  "no": [],
  "text": "a\nb"
}"#
    );
    let bare = needed(r#"{"name":"delete_x"}"#).unwrap().unwrap();
    assert!(bare.message.ends_with("run, without arguments?"));
    let params = approval.params();
    let params: serde_json::Value = serde_json::from_str(&params).unwrap();
    assert_eq!(params["message"], approval.message);
    assert_eq!(
        params["requestedSchema"],
        serde_json::json!({ "type": "object", "properties": {} })
    );
}

#[test]
fn what_can_not_be_seen_is_spelled_out() {
    let approval = of("{\"a\u{202e}\":\"b\u{7f}\u{200b}\u{e0041}\\u0007\"}");
    assert!(
        approval
            .message
            .ends_with("{\n  \"a\\u202e\": \"b\\u007f\\u200b\\udb40\\udc41\\u0007\"\n}"),
        "{}",
        approval.message
    );
    // And can't be taken for a text that only looks like that.
    assert!(of(r#"{"a":"\\u202e"}"#).message.contains(r"\\u202e"));
}

#[test]
fn what_is_too_long_is_cut_and_named_by_its_digest() {
    let long = |end: &str| of(&format!(r#"{{"a":"{}{end}"}}"#, "é".repeat(9000)));
    let (one, two) = (long("1"), long("2"));
    assert!(one.message.len() < 4096, "{}", one.message.len());
    assert!(one.message.contains("18009 bytes"), "{}", one.message);
    assert!(one.message.contains(&hex(&one.digest)));
    assert!(one.message.ends_with("é…"));
    assert_ne!(one.message, two.message);
}

#[test]
fn the_digest_is_that_of_what_would_run() {
    let digest = |arguments| of(arguments).digest;
    let one = digest(r#"{"a":1,"b":["x"]}"#);
    assert_eq!(one, digest("{ \"a\" : 1,\n\"b\":[\"\\u0078\"] }"));
    for other in [
        r#"{"a":2,"b":["x"]}"#,
        r#"{"a":1.0,"b":["x"]}"#,
        r#"{"a":1,"b":["x",""]}"#,
        r#"{"a":1,"b":"x"}"#,
        r#"{"a":12345678901234567890123,"b":["x"]}"#,
    ] {
        assert_ne!(one, digest(other), "{other}");
    }
    let tool = |name: &str| {
        let params = format!(r#"{{"name":"{name}","arguments":{{}}}}"#);
        needed(&params).unwrap().unwrap().digest
    };
    assert_ne!(tool("delete_x"), tool("delete_y"));
    let bare = needed(r#"{"name":"delete_x"}"#).unwrap().unwrap();
    assert_ne!(bare.digest, tool("delete_x"));
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        any::<String>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    /// Whatever the tool is called and the arguments are: short, and every letter can be seen.
    #[test]
    fn a_message_never_plays_tricks(name in any::<String>(), arguments in any_json()) {
        let name = serde_json::Value::from(format!("delete_{name}"));
        let approval = needed(&format!(r#"{{"name":{name},"arguments":{arguments}}}"#)).unwrap().unwrap();
        prop_assert!(approval.message.len() <= 4096);
        let odd = approval.message.chars().find(|letter| *letter != '\n' && !page::is_plain(*letter));
        prop_assert_eq!(odd, None);
        // What is not cut is the same JSON.
        let shown = approval.message.split_once("?\n\n").map(|(_, shown)| shown);
        if let Some(shown) = shown.filter(|_| !approval.message.ends_with('…')) {
            let read: serde_json::Value = serde_json::from_str(shown).unwrap();
            prop_assert_eq!(read, arguments);
        }
    }
}
