//! What becomes of a modern server's words on the way to a legacy client, and the other way round.

use serde_json::Value;

use crate::protocol::message::{self, Message};
use crate::protocol::server_modern::Wanted;
use crate::protocol::to_legacy::{
    Asked, Failure, client_capabilities, error, initialize, question, result, tools, untagged,
    without_questions,
};
use crate::protocol::version::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, Version};

fn at(version: &str) -> Version {
    Version::new(version)
}

fn request(method: &str, params: &str) -> Message {
    Message::parse(&message::request("1", method, params)).unwrap()
}

#[test]
fn a_result_loses_what_only_modern_clients_read() {
    let raw = r#"{"resultType":"complete","resources":[1.0],"ttlMs":5,"cacheScope":"public","_meta":{"x":1},"y":2}"#;
    assert_eq!(
        result("resources/list", &at(V2025_11_25), raw, false),
        r#"{"resources":[1.0],"_meta":{"x":1},"y":2}"#
    );
    let other = r#"{"content":[],"ttlMs":5}"#;
    assert_eq!(result("tools/call", &at(V2025_11_25), other, false), other);
}

#[test]
fn structured_output_is_an_object_and_is_said_in_words_too() {
    let table = [
        (
            V2025_11_25,
            false,
            r#"{"content":[],"structuredContent":[1.0]}"#,
            r#"{"content":[{"type":"text","text":"[1.0]"}],"structuredContent":{"result":[1.0]}}"#,
        ),
        (
            V2025_06_18,
            true,
            r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"a":1}}"#,
            r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"result":{"a":1}}}"#,
        ),
        (
            V2025_06_18,
            false,
            r#"{"content":[1],"structuredContent":{"a":1}}"#,
            r#"{"content":[1],"structuredContent":{"a":1}}"#,
        ),
        (
            V2025_03_26,
            false,
            r#"{"structuredContent":"s"}"#,
            r#"{"content":[{"type":"text","text":"\"s\""}]}"#,
        ),
    ];
    for (version, wrapped, raw, expected) in table {
        assert_eq!(result("tools/call", &at(version), raw, wrapped), expected);
    }
}

#[test]
fn a_tool_list_has_what_a_legacy_client_can_use() {
    let raw = r#"{"tools":[{"name":"a","inputSchema":{"x":1.0}},{"name":"bad","inputSchema":{"properties":{"p":{"type":"number","x-mcp-header":"P"}}}},{"name":"b","inputSchema":{},"outputSchema":{"type":"array","items":{}}}],"ttlMs":1}"#;
    assert_eq!(
        result("tools/list", &at(V2025_11_25), raw, false),
        r#"{"tools":[{"name":"a","inputSchema":{"x":1.0}},{"name":"b","inputSchema":{},"outputSchema":{"type":"object","properties":{"result":{"type":"array","items":{}}},"required":["result"]}}]}"#
    );
    assert_eq!(
        result("tools/list", &at(V2025_03_26), raw, false),
        r#"{"tools":[{"name":"a","inputSchema":{"x":1.0}},{"name":"b","inputSchema":{}}]}"#
    );
    let page = tools(raw).unwrap();
    let facts: Vec<_> = page
        .tools
        .iter()
        .map(|(name, tool)| (name.as_str(), tool.marks.is_some(), tool.wrapped))
        .collect();
    assert_eq!(
        facts,
        [("a", true, false), ("bad", false, false), ("b", true, true)]
    );
    assert_eq!(page.next, None);
}

#[test]
fn a_wrapped_schema_still_finds_its_parts() {
    let schema = r##"{"$defs":{"n":{"type":"integer"}},"anyOf":[{"$ref":"#/$defs/n"},{"$ref":"#"},{"$ref":"#/anyOf/0"},{"$ref":"https://x/y"}]}"##;
    let list = format!(r#"{{"tools":[{{"name":"t","outputSchema":{schema}}}]}}"#);
    let list = result("tools/list", &at(V2025_11_25), &list, false);
    let list: Value = serde_json::from_str(&list).unwrap();
    let wrapped = &list["tools"][0]["outputSchema"];
    assert_eq!(wrapped["$defs"]["n"]["type"], "integer");
    let inner = &wrapped["properties"]["result"];
    assert_eq!(inner.get("$defs"), None);
    let refs: Vec<_> = (0..4).map(|n| inner["anyOf"][n]["$ref"].clone()).collect();
    assert_eq!(
        refs,
        [
            "#/$defs/n",
            "#/properties/result",
            "#/properties/result/anyOf/0",
            "https://x/y"
        ]
    );
}

#[test]
fn errors_get_the_codes_of_the_era() {
    let read = request("resources/read", r#"{"uri":"a://b"}"#);
    let call = request("tools/call", r#"{"name":"t"}"#);
    let missing = r#"{"code":-32602,"message":"m","data":{"uri":"a:\/\/b"}}"#;
    let expected = r#"{"code":-32002,"message":"m","data":{"uri":"a:\/\/b"}}"#;
    assert_eq!(error(&read, missing), Failure::Error(expected.into()));
    assert_eq!(error(&call, missing), Failure::Error(missing.into()));
    let other = r#"{"code":-32602,"message":"m","data":{"uri":"a://c"}}"#;
    assert_eq!(error(&read, other), Failure::Error(other.into()));
    let needs = r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"elicitation":{"url":{}},"roots":{}}}}"#;
    let Failure::Tool(text) = error(&call, needs) else {
        panic!("no tool failure")
    };
    assert!(text.ends_with(": elicitation.url, roots"), "{text}");
    for ours in [needs, r#"{"code":-32020}"#, r#"{"code":-32022}"#] {
        let Failure::Error(error) = error(&read, ours) else {
            panic!("no error")
        };
        assert!(error.starts_with(r#"{"code":-32603"#), "{error}");
    }
}

fn asked(version: &str, params: &str) -> Asked {
    let wanted = Wanted {
        key: "k".into(),
        method: "elicitation/create".into(),
        params: Some(params.into()),
    };
    question(&at(version), &wanted, "e-1")
}

#[test]
fn an_elicitation_is_put_as_the_clients_version_has_it() {
    let client = |params: &str| Asked::Client(Some(params.into()));
    let form = r#"{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"s":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b"}],"default":"a"},"t":{"type":"string"}}}}"#;
    assert_eq!(asked(V2025_11_25, form), client(form));
    assert_eq!(
        asked(V2025_06_18, form),
        client(
            r#"{"message":"?","requestedSchema":{"type":"object","properties":{"s":{"type":"string","default":"a","enum":["a","b"],"enumNames":["A","b"]},"t":{"type":"string"}}}}"#
        )
    );
    let several = r#"{"message":"?","requestedSchema":{"properties":{"s":{"type":"array","items":{"enum":["a"]}}}}}"#;
    assert_eq!(asked(V2025_11_25, several), client(several));
    assert_eq!(
        asked(V2025_06_18, several),
        Asked::Nobody(r#"{"action":"cancel"}"#.into())
    );
    assert_eq!(
        asked(V2025_11_25, r#"{"mode":"url","url":"https://x"}"#),
        client(r#"{"mode":"url","url":"https://x","elicitationId":"e-1"}"#)
    );
}

#[test]
fn capabilities_are_put_as_the_other_era_has_them() {
    let table = [
        (V2025_11_25, "{}", "{}"),
        (
            V2025_11_25,
            r#"{"elicitation":{}}"#,
            r#"{"elicitation":{"form":{}}}"#,
        ),
        (
            V2025_11_25,
            r#"{"elicitation":{"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true},"tasks":{},"experimental":{"x":1.0}}"#,
            r#"{"elicitation":{"url":{}},"sampling":{"tools":{}},"roots":{},"experimental":{"x":1.0}}"#,
        ),
        (
            V2025_06_18,
            r#"{"elicitation":{"url":{}}}"#,
            r#"{"elicitation":{"form":{}}}"#,
        ),
        (
            V2025_03_26,
            r#"{"elicitation":{},"sampling":{}}"#,
            r#"{"sampling":{}}"#,
        ),
        (
            V2025_11_25,
            r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{}}}"#,
            r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#,
        ),
        (V2025_11_25, r#"{"roots":null,"elicitation":7}"#, "{}"),
    ];
    for (version, declared, expected) in table {
        let found = client_capabilities(&at(version), Some(declared));
        assert_eq!(found, expected, "{version} {declared}");
    }
    assert_eq!(
        without_questions(r#"{"elicitation":{},"sampling":{},"roots":{},"x":1}"#),
        r#"{"x":1}"#
    );
}

#[test]
fn initialize_is_answered_by_what_was_discovered() {
    let discovered = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"completions":{},"tasks":{},"x":1.0},"instructions":"use\nit","ttlMs":1,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"shop","version":"9"}}}"#;
    assert_eq!(
        initialize(&at(V2025_11_25), discovered, "alpha"),
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"completions":{},"x":1.0},"serverInfo":{"name":"shop","version":"9"},"instructions":"use\nit"}"#
    );
    assert_eq!(
        initialize(
            &at(V2024_11_05),
            r#"{"capabilities":{"completions":{}}}"#,
            "alpha"
        ),
        r#"{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"alpha","version":"unknown"}}"#
    );
}

#[test]
fn a_notification_forgets_its_subscription() {
    assert_eq!(
        untagged(r#"{"uri":"a","_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#),
        r#"{"uri":"a"}"#
    );
    assert_eq!(
        untagged(r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":7,"x":1}}"#),
        r#"{"_meta":{"x":1}}"#
    );
    assert_eq!(untagged("{}"), "{}");
}
