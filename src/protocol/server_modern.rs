//! The wire of modern servers (2026-07-28): what goes into a request that says all about itself,
//! and what its result can be.
//!
//! # Invariants
//! - Of a request only the id, `_meta` and the members that a retry has are written; all other
//!   bytes are the client's.
//! - What a server wants to have back, `requestState`, is kept as the JSON text it was.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use super::message::{self, Malformed, Message};
use super::mirror::{self, Marks};
use super::modern::{META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL, META_VERSION, may_ask};
use super::object::{self, edit, entries, is_object, members};
use super::version::{V2026_07_28, VERSION_HEADER};

/// What a request says about its client.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// What it can be asked, as a JSON object.
    pub capabilities: &'a str,
    /// Who it is, as a JSON object.
    pub client: Option<&'a str>,
    /// The log messages it wants, as a JSON string.
    pub log_level: Option<&'a str>,
}

/// What a request brings back to the server that asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// The answers, as a JSON object.
    pub responses: Option<String>,
    /// The state, as the JSON text it came as.
    pub state: Option<String>,
}

/// What the result of a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The result.
    Complete,
    /// The server wants something first.
    InputRequired(Required),
    /// Something that was not asked for, or breaks the rules; what, in a few words.
    Invalid(&'static str),
}

/// What a server wants before it goes on (2026-07-28 patterns/mrtr).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Required {
    /// Its questions, in their order.
    pub questions: Vec<Wanted>,
    /// What it wants back, as JSON text.
    pub state: Option<String>,
}

/// One question among those of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The name under which the server wants the answer.
    pub key: String,
    /// What is asked, such as `elicitation/create`.
    pub method: String,
    /// The parameters, as JSON text.
    pub params: Option<String>,
}

/// The request `message` for a modern server, under the id `id` (JSON text). `token` takes the
/// place of its progress token. Members that only the gateway may send (answers, state) and the
/// `task` of 2025-11-25, which was not declared, are taken out first.
///
/// # Errors
/// When the parameters or their `_meta` are no objects, or ambiguous.
pub fn request(
    message: &Message,
    id: &str,
    envelope: &Envelope<'_>,
    token: Option<&str>,
    retry: &Retry,
) -> Result<Bytes, Malformed> {
    let refused =
        |error: serde_json::Error| Malformed::NotAMessage(format!("in `params`: {error}"));
    let params = message.params().unwrap_or("{}");
    let [meta] = members(params, ["_meta"]).map_err(refused)?;
    let version = format!("\"{V2026_07_28}\"");
    let meta = edit(
        meta.unwrap_or("{}"),
        &[
            ("progressToken", token),
            (META_VERSION, Some(&version)),
            (META_CAPABILITIES, Some(envelope.capabilities)),
            (META_CLIENT, envelope.client),
            (META_LOG_LEVEL, envelope.log_level),
        ],
    )
    .map_err(refused)?;
    let params = edit(
        params,
        &[
            ("task", None),
            ("inputResponses", retry.responses.as_deref()),
            ("requestState", retry.state.as_deref()),
            ("_meta", Some(&meta)),
        ],
    )
    .map_err(refused)?;
    Ok(message.with_body(id, &params))
}

/// A request of the gateway's own. `params` is JSON text of an object without `_meta`.
pub fn own_request(id: &str, method: &str, params: &str, envelope: &Envelope<'_>) -> Bytes {
    let bare = message::request(id, method, params);
    let built = Message::parse(&bare)
        .and_then(|message| request(&message, id, envelope, None, &Retry::default()));
    built.unwrap_or(bare)
}

/// The headers of a request: version, method, name and, for a call of a tool, its marked arguments.
pub fn headers(request: &Message, marks: &Marks) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(VERSION_HEADER, HeaderValue::from_static(V2026_07_28));
    let method = request.method();
    let name = mirror::named_by(method).and_then(|name| member(request, name));
    mirror::repeat(method, name, &mut headers);
    if method == "tools/call" && !marks.is_empty() {
        marks.repeat(member(request, "arguments"), &mut headers);
    }
    headers
}

fn member<'m>(request: &'m Message, name: &str) -> Option<&'m str> {
    let [value] = request.param([name]).ok()?;
    value
}

impl Outcome {
    /// Reads the result (JSON text) of a request with this method.
    pub fn read(method: &str, result: &str) -> Self {
        if !is_object(result) {
            return Self::Complete;
        }
        let Ok([kind]) = members(result, ["resultType"]) else {
            return Self::Invalid("an ambiguous result");
        };
        // None: an older server (2026-07-28 basic/index).
        match kind.map(|kind| object::text(kind).unwrap_or(Cow::Borrowed(""))) {
            None => Self::Complete,
            Some(kind) if kind == "complete" => Self::Complete,
            Some(kind) if kind == "input_required" => match Required::read(result) {
                _ if !may_ask(method) => Self::Invalid("a question where none may be asked"),
                Some(required) => Self::InputRequired(required),
                None => Self::Invalid("a question that can't be read"),
            },
            Some(_) => Self::Invalid("a kind of result that was not asked for"),
        }
    }
}

impl Required {
    /// Reads the result (JSON text) that says what is wanted; `None` when that can't be told.
    pub fn read(result: &str) -> Option<Self> {
        let [requests, state] = members(result, ["inputRequests", "requestState"]).ok()?;
        let mut questions: Vec<Wanted> = Vec::new();
        for (key, request) in entries(requests.unwrap_or("{}")).ok()? {
            let [method, params] = members(request, ["method", "params"]).ok()?;
            if questions.iter().any(|question| question.key == key) {
                return None;
            }
            questions.push(Wanted {
                key: key.into_owned(),
                method: object::text(method?)?.into_owned(),
                params: params.map(str::to_owned),
            });
        }
        let state = state.map(str::to_owned);
        (state.is_some() || !questions.is_empty()).then_some(Self { questions, state })
    }
}

/// The answers to questions, as the JSON object that a retry carries: key and result (JSON text).
pub fn responses<'a>(answers: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members: Vec<String> = answers
        .into_iter()
        .map(|(key, result)| format!("{}:{result}", object::quoted(key)))
        .collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVELOPE: Envelope<'_> = Envelope {
        capabilities: r#"{"elicitation":{"form":{}}}"#,
        client: Some(r#"{"name":"cli","version":"2"}"#),
        log_level: None,
    };

    fn parse(text: &str) -> Message {
        Message::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_request_says_all_about_itself_and_keeps_its_bytes() {
        let call = parse(
            r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"order", "arguments":{"n":2.00},"task":{"ttl":1},"_meta":{"traceparent":"00-a","progressToken":"mine"},"x":[1]}}"#,
        );
        let retry = Retry::default();
        let sent = request(&call, "41", &ENVELOPE, Some("41"), &retry).unwrap();
        assert_eq!(
            sent,
            r#"{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{"name":"order", "arguments":{"n":2.00},"_meta":{"traceparent":"00-a","progressToken":41,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"cli","version":"2"}},"x":[1]}}"#
        );
    }

    #[test]
    fn only_a_retry_carries_answers_and_state() {
        let call = parse(
            r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p","inputResponses":{"a":1},"requestState":"theirs"}}"#,
        );
        let sent = request(&call, "2", &ENVELOPE, None, &Retry::default()).unwrap();
        let sent = parse(std::str::from_utf8(&sent).unwrap());
        assert_eq!(
            sent.param(["inputResponses", "requestState"]).unwrap(),
            [None, None]
        );
        let retry = Retry {
            responses: Some(r#"{"k":{"action":"decline"}}"#.into()),
            state: Some(r#""x\u0079z""#.into()),
        };
        let sent = request(&call, "3", &ENVELOPE, None, &retry).unwrap();
        let sent = parse(std::str::from_utf8(&sent).unwrap());
        assert_eq!(
            sent.param(["inputResponses", "requestState"]).unwrap(),
            [Some(r#"{"k":{"action":"decline"}}"#), Some(r#""x\u0079z""#)]
        );
    }

    #[test]
    fn parameters_that_can_not_hold_an_envelope_are_refused() {
        for params in ["[]", "7", r#"{"_meta":[]}"#, r#"{"_meta":{},"_Meta":{}}"#] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
            let refused = request(&parse(&text), "1", &ENVELOPE, None, &Retry::default());
            assert!(refused.is_err(), "{params}");
        }
        let own = own_request("5", "server/discover", "{}", &ENVELOPE);
        let own = parse(std::str::from_utf8(&own).unwrap());
        assert!(own.params().unwrap().contains(META_VERSION));
    }

    #[test]
    fn the_headers_repeat_what_is_sent() {
        let call = parse(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"order","arguments":{"r":"eu"}}}"#,
        );
        let marks =
            Marks::read(r#"{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}"#);
        let headers = headers(&call, &marks.unwrap());
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        assert_eq!(headers["mcp-method"], "tools/call");
        assert_eq!(headers["mcp-name"], "order");
        assert_eq!(headers["mcp-param-region"], "eu");
    }

    #[test]
    fn a_result_is_what_its_type_says() {
        let asks = r#"{"resultType":"input_required","inputRequests":{"b":{"method":"roots/list"},"a":{"method":"elicitation/create","params":{"m":1.0}}},"requestState":"s\n"}"#;
        let Outcome::InputRequired(required) = Outcome::read("tools/call", asks) else {
            panic!("no question")
        };
        let keys: Vec<_> = required
            .questions
            .iter()
            .map(|it| it.key.as_str())
            .collect();
        assert_eq!(keys, ["b", "a"]);
        assert_eq!(
            required.questions[1].params.as_deref(),
            Some(r#"{"m":1.0}"#)
        );
        assert_eq!(required.state.as_deref(), Some(r#""s\n""#));
        for complete in ["{}", r#"{"resultType":"complete"}"#, "7"] {
            assert_eq!(Outcome::read("tools/call", complete), Outcome::Complete);
        }
        for (method, result) in [
            ("tools/list", asks),
            ("tools/call", r#"{"resultType":"task"}"#),
            ("tools/call", r#"{"resultType":7}"#),
            (
                "tools/call",
                r#"{"resultType":"complete","resulttype":"x"}"#,
            ),
            ("tools/call", r#"{"resultType":"input_required"}"#),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{}}"#,
            ),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":[]}"#,
            ),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"a":{}}}"#,
            ),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"a":{"method":"m"},"a":{"method":"m"}}}"#,
            ),
        ] {
            let read = Outcome::read(method, result);
            assert!(matches!(read, Outcome::Invalid(_)), "{method} {result}");
        }
    }

    #[test]
    fn answers_go_back_under_their_keys() {
        let answers = [("a\"b", r#"{"action":"cancel"}"#), ("c", "{}")];
        assert_eq!(responses(answers), r#"{"a\"b":{"action":"cancel"},"c":{}}"#);
    }
}
