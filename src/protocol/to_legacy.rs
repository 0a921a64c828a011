//! What a modern server says, as a legacy client understands it, and what a legacy client said at
//! the beginning, as a modern server wants it with each request.
//!
//! Each function edits named members and leaves the rest as it is.

use std::borrow::Cow;

use serde_json::Value;

use super::client_modern::is_cacheable;
use super::message::Message;
use super::mirror::Marks;
use super::modern::{META_SERVER, META_SUBSCRIPTION};
use super::object::{edit, elements, entries, is_object, members, quoted, text};
use super::server_modern::Wanted;
use super::version::Version;

/// The extension that changes how calls end; it is not spoken across eras.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// More elements than this in one list are no list.
const MOST: usize = 100_000;

/// What becomes of a server's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<'a> {
    /// An error for the client (JSON text).
    Error(Cow<'a, str>),
    /// The result of a tool that failed, with this text.
    Tool(String),
}

/// What becomes of a server's question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is put to the client, with these parameters (JSON text).
    Client(Option<String>),
    /// The client's version has no way to ask it; this result (JSON text) is the answer.
    Nobody(String),
}

/// What a gateway has to know of a tool to call it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// The arguments that are repeated in headers; none when they are marked in a wrong way, and
    /// the tool must not be used.
    pub marks: Option<Marks>,
    /// Its structured output is no object, which clients before 2026-07-28 don't take.
    pub wrapped: bool,
}

/// One page of a list of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The tools by name.
    pub tools: Vec<(String, Tool)>,
    /// The cursor of the next page (JSON text).
    pub next: Option<String>,
}

/// The result of a request with this method. `wrapped` says that the output schema of the tool that
/// was called had to be wrapped.
pub fn result<'a>(method: &str, version: &Version, result: &'a str, wrapped: bool) -> Cow<'a, str> {
    if !is_object(result) {
        return Cow::Borrowed(result);
    }
    let mut changes: Vec<(&str, Option<&str>)> = vec![("resultType", None)];
    if is_cacheable(method) {
        changes.extend([("ttlMs", None), ("cacheScope", None)]);
    }
    let (tools, structured, content);
    if method == "tools/list" {
        tools = tool_list(version, result);
        changes.extend(tools.as_deref().map(|tools| ("tools", Some(tools))));
    }
    if method == "tools/call"
        && let Ok([Some(value), said]) = members(result, ["structuredContent", "content"])
    {
        if !version.has_elicitation() {
            changes.push(("structuredContent", None));
        } else if wrapped || !is_object(value) {
            structured = format!(r#"{{"result":{value}}}"#);
            changes.push(("structuredContent", Some(&structured)));
        }
        let silent =
            said.is_none_or(|said| elements(said, MOST).is_ok_and(|blocks| blocks.is_empty()));
        if silent {
            content = format!(r#"[{{"type":"text","text":{}}}]"#, quoted(value));
            changes.push(("content", Some(&content)));
        }
    }
    edit(result, &changes).unwrap_or(Cow::Borrowed(result))
}

/// The tools of a list that a legacy client may see; none: all, as they are.
fn tool_list(version: &Version, result: &str) -> Option<String> {
    let [tools] = members(result, ["tools"]).ok()?;
    let mut changed = false;
    let mut seen = Vec::new();
    for tool in elements(tools?, MOST).ok()? {
        let Ok([input, output]) = members(tool, ["inputSchema", "outputSchema"]) else {
            changed = true;
            continue;
        };
        if Marks::read(input.unwrap_or("{}")).is_err() {
            changed = true;
            continue;
        }
        let shown = match output {
            Some(_) if !version.has_elicitation() => edit(tool, &[("outputSchema", None)]),
            Some(schema) if !describes_object(schema) => {
                edit(tool, &[("outputSchema", Some(&wrap(schema)))])
            }
            _ => Ok(Cow::Borrowed(tool)),
        };
        let shown = shown.unwrap_or(Cow::Borrowed(tool));
        changed |= matches!(shown, Cow::Owned(_));
        seen.push(shown);
    }
    changed.then(|| format!("[{}]", seen.join(",")))
}

/// Reads one page of a list of tools; none when it is no list.
pub fn tools(result: &str) -> Option<Page> {
    let [tools, next] = members(result, ["tools", "nextCursor"]).ok()?;
    let known = elements(tools?, MOST)
        .ok()?
        .into_iter()
        .filter_map(|tool| {
            let [name, input, output] =
                members(tool, ["name", "inputSchema", "outputSchema"]).ok()?;
            let name = text(name?)?.into_owned();
            let marks = Marks::read(input.unwrap_or("{}")).ok();
            let wrapped = output.is_some_and(|schema| !describes_object(schema));
            Some((name, Tool { marks, wrapped }))
        })
        .collect();
    Some(Page {
        tools: known,
        next: next.filter(|it| *it != "null").map(str::to_owned),
    })
}

fn describes_object(schema: &str) -> bool {
    members(schema, ["type"]).is_ok_and(|[kind]| kind.and_then(text).as_deref() == Some("object"))
}

/// A schema of any value, as the schema of an object that has the value as its `result`.
fn wrap(schema: &str) -> String {
    let plain = |schema: &str| {
        format!(r#"{{"type":"object","properties":{{"result":{schema}}},"required":["result"]}}"#)
    };
    // Nothing in it points elsewhere, so it can stay as it is spelled.
    if !schema.contains("$ref") && !schema.contains("$defs") {
        return plain(schema);
    }
    let Ok(mut value) = serde_json::from_str::<Value>(schema) else {
        return plain(schema);
    };
    redirect(&mut value);
    let definitions = value.as_object_mut().and_then(|it| it.remove("$defs"));
    let mut whole = serde_json::json!({
        "type": "object", "properties": { "result": value }, "required": ["result"],
    });
    if let (Some(definitions), Some(whole)) = (definitions, whole.as_object_mut()) {
        whole.insert("$defs".to_owned(), definitions);
    }
    whole.to_string()
}

/// Lets references into the schema point to where its parts have gone.
fn redirect(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(redirect),
        Value::Object(object) => {
            for (name, value) in object {
                match value {
                    Value::String(to) if name == "$ref" && to.starts_with('#') => {
                        if !to.starts_with("#/$defs/") {
                            *to = to.replacen('#', "#/properties/result", 1);
                        }
                    }
                    other => redirect(other),
                }
            }
        }
        _ => {}
    }
}

/// The error (JSON text) that a server answered to `request`.
pub fn error<'a>(request: &Message, error: &'a str) -> Failure<'a> {
    let [code, data] = members(error, ["code", "data"]).unwrap_or_default();
    match code.unwrap_or_default() {
        // A missing resource had a code of its own before 2026-07-28.
        "-32602" if request.method() == "resources/read" && is_about(request, data) => {
            Failure::Error(edit(error, &[("code", Some("-32002"))]).unwrap_or(Cow::Borrowed(error)))
        }
        "-32021" => {
            let text = format!(
                "the server needs something of the client that it does not offer{}",
                required(data)
            );
            if request.method() == "tools/call" {
                return Failure::Tool(text);
            }
            Failure::Error(Cow::Owned(format!(
                r#"{{"code":-32603,"message":{}}}"#,
                quoted(&text)
            )))
        }
        // Headers and version are the gateway's doing, not the client's.
        "-32020" | "-32022" => Failure::Error(Cow::Owned(
            r#"{"code":-32603,"message":"the server did not accept the request of the gateway"}"#
                .to_owned(),
        )),
        _ => Failure::Error(Cow::Borrowed(error)),
    }
}

fn is_about(request: &Message, data: Option<&str>) -> bool {
    let asked = request.param(["uri"]).ok().and_then(|[uri]| uri);
    let named = data
        .and_then(|data| members(data, ["uri"]).ok())
        .and_then(|[uri]| uri);
    let (Some(asked), Some(named)) = (asked, named) else {
        return false;
    };
    text(asked).is_some() && text(asked) == text(named)
}

fn required(data: Option<&str>) -> String {
    let required = data.and_then(|data| members(data, ["requiredCapabilities"]).ok());
    let names: Vec<String> = required
        .and_then(|[capabilities]| entries(capabilities?).ok())
        .unwrap_or_default()
        .into_iter()
        .flat_map(|(name, inner)| match entries(inner) {
            Ok(inner) if !inner.is_empty() => inner
                .iter()
                .map(|(mode, _)| format!("{name}.{mode}"))
                .collect(),
            _ => vec![name.into_owned()],
        })
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(": {}", names.join(", "))
    }
}

/// A question, as a client of this version can be asked it. `fresh` names it, where the version
/// wants a name that was not used before.
pub fn question(version: &Version, wanted: &Wanted, fresh: &str) -> Asked {
    let params = wanted.params.as_deref();
    let same = || Asked::Client(wanted.params.clone());
    if wanted.method != "elicitation/create" {
        return same();
    }
    let Some(Ok([mode, schema])) =
        params.map(|params| members(params, ["mode", "requestedSchema"]))
    else {
        return same();
    };
    let changed = if mode.and_then(text).as_deref() == Some("url") {
        let name = quoted(fresh);
        params.and_then(|params| edit(params, &[("elicitationId", Some(&name))]).ok())
    } else if version.has_modes() {
        None
    } else {
        let schema = match schema.map(older_form) {
            None => None,
            Some(Some(schema)) => Some(schema),
            // Nobody said no; there is no form on which to say anything.
            Some(None) => return Asked::Nobody(r#"{"action":"cancel"}"#.to_owned()),
        };
        let mut changes = vec![("mode", None)];
        changes.extend(schema.as_deref().map(|it| ("requestedSchema", Some(it))));
        params.and_then(|params| edit(params, &changes).ok())
    };
    changed.map_or_else(same, |params| Asked::Client(Some(params.into_owned())))
}

/// A form with the choices that 2025-06-18 has: one of several, its titles in `enumNames`. `None`
/// when it has a field that can't be shown so.
fn older_form(schema: &str) -> Option<Cow<'_, str>> {
    let Ok([Some(properties)]) = members(schema, ["properties"]) else {
        return Some(Cow::Borrowed(schema));
    };
    let Ok(fields) = entries(properties) else {
        return Some(Cow::Borrowed(schema));
    };
    let mut older = Vec::new();
    for (name, field) in fields {
        let Ok([kind, choices]) = members(field, ["type", "oneOf"]) else {
            continue;
        };
        if kind.and_then(text).as_deref() == Some("array") {
            return None;
        }
        if let Some((values, titles)) = choices.and_then(titled) {
            let parts = [
                ("oneOf", None),
                ("enum", Some(values.as_str())),
                ("enumNames", Some(titles.as_str())),
            ];
            older.push((name, edit(field, &parts).ok()?.into_owned()));
        }
    }
    let changes: Vec<_> = older
        .iter()
        .map(|(name, field)| (&**name, Some(field.as_str())))
        .collect();
    let properties = edit(properties, &changes).ok()?;
    match properties {
        Cow::Borrowed(_) => Some(Cow::Borrowed(schema)),
        Cow::Owned(properties) => edit(schema, &[("properties", Some(&properties))]).ok(),
    }
}

/// `[{const, title}]` as the two lists `enum` and `enumNames`.
fn titled(choices: &str) -> Option<(String, String)> {
    let (mut values, mut titles) = (Vec::new(), Vec::new());
    for choice in elements(choices, MOST).ok()? {
        let [value, title] = members(choice, ["const", "title"]).ok()?;
        values.push(value?);
        titles.push(title.or(value)?);
    }
    Some((
        format!("[{}]", values.join(",")),
        format!("[{}]", titles.join(",")),
    ))
}

/// What a legacy client declared in its `initialize`, as a request to a modern server says it.
pub fn client_capabilities(version: &Version, declared: Option<&str>) -> String {
    let declared = declared.filter(|it| is_object(it)).unwrap_or("{}");
    let [elicitation, roots, extensions] =
        members(declared, ["elicitation", "roots", "extensions"]).unwrap_or_default();
    let modes = elicitation.filter(|it| is_object(it)).map(|it| {
        if version.has_modes() && entries(it).is_ok_and(|modes| !modes.is_empty()) {
            it
        } else {
            r#"{"form":{}}"#
        }
    });
    let extensions = extensions.and_then(|it| edit(it, &[(TASKS, None)]).ok());
    let changes = [
        ("elicitation", modes.filter(|_| version.has_elicitation())),
        ("roots", roots.filter(|it| is_object(it)).map(|_| "{}")),
        ("extensions", extensions.as_deref()),
        ("tasks", None),
    ];
    edit(declared, &changes).map_or_else(|_| "{}".to_owned(), Cow::into_owned)
}

/// The same for a request whose client can't be asked anything while it waits.
pub fn without_questions(capabilities: &str) -> String {
    let changes = [("elicitation", None), ("sampling", None), ("roots", None)];
    edit(capabilities, &changes).map_or_else(|_| "{}".to_owned(), Cow::into_owned)
}

/// The result of `initialize` for a client of this version, made of what the server discovered
/// (JSON text). `name` stands for a server that doesn't say who it is.
pub fn initialize(version: &Version, discovered: &str, name: &str) -> String {
    let [capabilities, instructions, meta] =
        members(discovered, ["capabilities", "instructions", "_meta"]).unwrap_or_default();
    let server = meta
        .and_then(|meta| members(meta, [META_SERVER]).ok())
        .and_then(|[server]| server.filter(|it| is_object(it)))
        .map_or_else(
            || format!(r#"{{"name":{},"version":"unknown"}}"#, quoted(name)),
            str::to_owned,
        );
    let capabilities = capabilities.filter(|it| is_object(it)).unwrap_or("{}");
    let instructions = instructions
        .filter(|it| text(it).is_some())
        .map(|it| format!(r#","instructions":{it}"#))
        .unwrap_or_default();
    format!(
        r#"{{"protocolVersion":"{version}","capabilities":{},"serverInfo":{server}{instructions}}}"#,
        server_capabilities(version, capabilities)
    )
}

fn server_capabilities<'a>(version: &Version, declared: &'a str) -> Cow<'a, str> {
    let [extensions] = members(declared, ["extensions"]).unwrap_or_default();
    let extensions = extensions.and_then(|it| edit(it, &[(TASKS, None)]).ok());
    let mut changes = vec![("tasks", None)];
    if let Some(extensions) = &extensions {
        changes.push(("extensions", Some(&**extensions)));
    }
    if !version.has_completions() {
        changes.push(("completions", None));
    }
    edit(declared, &changes).unwrap_or(Cow::Borrowed("{}"))
}

/// A notification of a subscription, as it is without one.
pub fn untagged(params: &str) -> Cow<'_, str> {
    let tag = META_SUBSCRIPTION;
    let Ok([Some(meta)]) = members(params, ["_meta"]) else {
        return Cow::Borrowed(params);
    };
    let Ok(meta) = edit(meta, &[(tag, None)]) else {
        return Cow::Borrowed(params);
    };
    let meta = Some(&*meta).filter(|meta| entries(meta).is_ok_and(|it| !it.is_empty()));
    edit(params, &[("_meta", meta)]).unwrap_or(Cow::Borrowed(params))
}
