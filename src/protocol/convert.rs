//! What a legacy server answers, as a modern client reads it (2026-07-28 basic/index, server/*).

use std::borrow::Cow;

use super::client_modern::{Level, is_cacheable};
use super::modern::META_SERVER;
use super::object::{all_members, edit, elements, is_object, members, text};

/// How long a client may keep what a legacy server listed: such a server said nothing about it.
const TTL_MS: &str = "0";

/// The most tools that a list is looked through for.
const MOST_TOOLS: usize = 100_000;

/// A result with what the modern revision adds to every one. `info` describes the server (JSON text).
pub fn result(method: &str, result: &str, info: Option<&str>) -> String {
    if !is_object(result) {
        return result.to_owned();
    }
    let listed = if method == "tools/list" {
        tools(result)
    } else {
        None
    };
    let result = listed.as_deref().unwrap_or(result);
    let described = info.and_then(|info| with_info(result, info));
    let meta = match info {
        Some(_) => described.as_deref(),
        None => keep(result, "_meta"),
    };
    let cacheable = is_cacheable(method);
    let changes = [
        ("resultType", Some("\"complete\"")),
        ("ttlMs", cacheable.then_some(TTL_MS)),
        ("cacheScope", cacheable.then_some("\"private\"")),
        ("_meta", meta),
    ];
    edit(result, &changes).map_or_else(|_| result.to_owned(), Cow::into_owned)
}

/// A JSON-RPC error object, with codes that a modern client may read a meaning into.
pub fn error(error: &str) -> String {
    let [code] = members(error, ["code"]).unwrap_or_default();
    let changed = match code.and_then(|code| code.parse::<i64>().ok()) {
        // "Resource not found" has no code of its own any more.
        Some(-32002) => edit(error, &[("code", Some("-32602"))]).ok(),
        // Codes that the revision does not define must not look as if they meant something.
        Some(-32099..=-32000) => {
            let data = format!(r#"{{"upstreamError":{error}}}"#);
            edit(error, &[("code", Some("-32603")), ("data", Some(&data))]).ok()
        }
        _ => None,
    };
    changed.map_or_else(|| error.to_owned(), Cow::into_owned)
}

/// Whether a log notification of this level is for a request that asked for `wanted`.
pub fn is_loud_enough(level: Option<Level>, wanted: Option<Level>) -> bool {
    matches!((level, wanted), (Some(level), Some(wanted)) if level >= wanted)
}

/// What a member is already; none: it is not there, or ambiguous.
pub(super) fn keep<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let [value] = members(object, [name]).ok()?;
    value
}

fn with_info(result: &str, info: &str) -> Option<String> {
    let [meta] = members(result, ["_meta"]).ok()?;
    let meta = meta.filter(|meta| is_object(meta)).unwrap_or("{}");
    Some(edit(meta, &[(META_SERVER, Some(info))]).ok()?.into_owned())
}

/// A list of tools without what a legacy server can't have meant: tasks are not offered here, and an
/// `x-mcp-header` would make clients send headers that nobody checks.
fn tools(result: &str) -> Option<String> {
    let [tools] = members(result, ["tools"]).ok()?;
    let tools = elements(tools?, MOST_TOOLS).ok()?;
    let mut changed = false;
    let list: Vec<String> = tools
        .iter()
        .map(|tool| {
            let cleaned = clean_tool(tool);
            changed |= cleaned.is_some();
            cleaned.unwrap_or_else(|| (*tool).to_owned())
        })
        .collect();
    if !changed {
        return None;
    }
    let list = format!("[{}]", list.join(","));
    let edited = edit(result, &[("tools", Some(&list))]).ok()?;
    Some(edited.into_owned())
}

fn clean_tool(tool: &str) -> Option<String> {
    let [execution, schema] = members(tool, ["execution", "inputSchema"]).ok()?;
    let schema = schema
        .filter(|schema| schema.contains("x-mcp-header"))
        .map(without_headers);
    if execution.is_none() && schema.is_none() {
        return None;
    }
    let schema = schema.as_deref().or_else(|| keep(tool, "inputSchema"));
    let changes = [("execution", None), ("inputSchema", schema)];
    Some(edit(tool, &changes).ok()?.into_owned())
}

/// A schema that mirrors into no header, in all the schemas inside it. Names of properties and values
/// such as `default` are not looked at: what is called so there means something else.
fn without_headers(schema: &str) -> String {
    const SCHEMA: [&str; 8] = [
        "items",
        "additionalProperties",
        "propertyNames",
        "contains",
        "not",
        "if",
        "then",
        "else",
    ];
    const NAMED: [&str; 5] = [
        "properties",
        "patternProperties",
        "$defs",
        "definitions",
        "dependentSchemas",
    ];
    const LISTED: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
    if !schema.contains("x-mcp-header") {
        return schema.to_owned();
    }
    let cleaned = edit(schema, &[("x-mcp-header", None)]).unwrap_or(Cow::Borrowed(schema));
    let Ok(all) = all_members(&cleaned) else {
        return cleaned.into_owned();
    };
    let mut edited = cleaned.clone().into_owned();
    for (name, value) in all {
        let Some(name) = text(&name) else { continue };
        let value = if SCHEMA.contains(&&*name) && is_object(value) {
            without_headers(value)
        } else if NAMED.contains(&&*name) {
            let Ok(named) = all_members(value) else {
                continue;
            };
            let named: Vec<_> = named
                .iter()
                .map(|(name, schema)| format!("{name}:{}", without_headers(schema)))
                .collect();
            format!("{{{}}}", named.join(","))
        } else if LISTED.contains(&&*name) {
            let Ok(listed) = elements(value, MOST_TOOLS) else {
                continue;
            };
            let listed: Vec<_> = listed
                .iter()
                .map(|schema| without_headers(schema))
                .collect();
            format!("[{}]", listed.join(","))
        } else {
            continue;
        };
        let changed = edit(&edited, &[(&name, Some(&value))]).map(Cow::into_owned);
        edited = changed.unwrap_or(edited);
    }
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_gets_what_is_new_and_keeps_the_rest() {
        assert_eq!(
            result(
                "tools/call",
                r#"{"content":[],"n":1.10}"#,
                Some(r#"{"name":"s"}"#)
            ),
            r#"{"content":[],"n":1.10,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#
        );
        assert_eq!(
            result("prompts/list", r#"{"prompts":[],"_meta":{"x":1}}"#, None),
            r#"{"prompts":[],"_meta":{"x":1},"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#
        );
    }

    #[test]
    fn a_list_of_tools_offers_no_tasks_and_no_headers() {
        let list = r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"z":{"type":"string","x-mcp-header":"Z"},"a":{"type":"object","properties":{"b":{"x-mcp-header":"B","n":1.0}}}}}},{"execution":{"taskSupport":"required"},"name":"b"}]}"#;
        assert_eq!(
            tools(list).unwrap(),
            r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"object","properties":{"b":{"n":1.0}}}}}},{"name":"b"}]}"#
        );
        assert_eq!(tools(r#"{"tools":[{"name":"a","inputSchema":{}}]}"#), None);
    }

    #[test]
    fn codes_without_a_meaning_get_none() {
        assert_eq!(
            error(r#"{"code":-32002,"message":"m","data":{"uri":"u"}}"#),
            r#"{"code":-32602,"message":"m","data":{"uri":"u"}}"#
        );
        assert_eq!(
            error(r#"{"code":-32001,"message":"m"}"#),
            r#"{"code":-32603,"message":"m","data":{"upstreamError":{"code":-32001,"message":"m"}}}"#
        );
        for same in [
            r#"{"code":-32602,"message":"m"}"#,
            r#"{"code":7,"message":"m"}"#,
            r#"{"code":-32603}"#,
        ] {
            assert_eq!(error(same), same);
        }
    }
}
