//! A modern client (2026-07-28): every request stands alone, with an envelope in `_meta` and headers
//! that mirror it.
//!
//! # Invariants
//! - What an honest client would send is computed; each part can be replaced by something dishonest.
//! - Nothing is remembered between requests but what the test hands on: a [`Round`] and its state.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::client::Client;
use super::{EVERYTHING, Gateway, Reply, json};

/// The revision.
pub(crate) const MODERN: &str = "2026-07-28";

/// Somebody who talks to one server in the modern way.
#[derive(Clone, Debug)]
pub(crate) struct Modern {
    pub(crate) client: Client,
    capabilities: String,
}

/// A request that is being put together.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    client: Client,
    id: String,
    method: String,
    /// Members of `params`, as JSON text.
    params: Vec<(String, String)>,
    /// Members of `_meta`, as JSON text.
    meta: Vec<(String, String)>,
    /// Headers that are not as computed; an empty value takes one away.
    headers: Vec<(String, String)>,
}

/// What a server wants to know before it goes on.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// The whole message.
    pub(crate) text: String,
    /// `requestState`, as JSON text.
    pub(crate) state: String,
    /// The keys, in their order.
    pub(crate) keys: Vec<String>,
}

impl Modern {
    /// A client that can be asked everything.
    pub(crate) fn new(gateway: &Gateway, server: &str) -> Self {
        Self {
            client: Client::new(gateway, server),
            capabilities: EVERYTHING.to_owned(),
        }
    }

    /// The same client with other capabilities.
    pub(crate) fn declaring(&self, capabilities: &str) -> Self {
        Self {
            client: self.client.clone(),
            capabilities: capabilities.to_owned(),
        }
    }

    /// The same client with this bearer token.
    pub(crate) fn bearer(&self, token: &str) -> Self {
        Self {
            client: self.client.bearer(token),
            capabilities: self.capabilities.clone(),
        }
    }

    /// A request; `params` is the JSON of an object without `_meta`.
    pub(crate) fn request(&self, id: &str, method: &str, params: &str) -> Ask {
        let meta = |name: &str, value: String| (format!("io.modelcontextprotocol/{name}"), value);
        Ask {
            client: self.client.clone(),
            id: id.to_owned(),
            method: method.to_owned(),
            params: json::members(params),
            meta: vec![
                meta("protocolVersion", format!("\"{MODERN}\"")),
                meta("clientInfo", r#"{"name":"raw","version":"1"}"#.to_owned()),
                meta("clientCapabilities", self.capabilities.clone()),
            ],
            headers: Vec::new(),
        }
    }

    /// A call of a tool.
    pub(crate) fn call(&self, id: &str, tool: &str, arguments: &str) -> Ask {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        self.request(id, "tools/call", &params)
    }

    /// Calls a tool and waits for the text of its result.
    pub(crate) async fn text(&self, tool: &str, arguments: &str) -> String {
        let mut reply = self.call("\"text\"", tool, arguments).send().await;
        json::text_of(&reply.next().await)
    }

    /// Shows that calls reach the server.
    pub(crate) async fn works(&self) {
        assert_eq!(self.text("echo", r#"{"x":"alive"}"#).await, r#""alive""#);
    }
}

impl Ask {
    /// Another id.
    pub(crate) fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// Another method.
    pub(crate) fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self
    }

    /// A member of `params` set to this JSON, or taken away when it is empty.
    pub(crate) fn param(mut self, name: &str, value: &str) -> Self {
        set(&mut self.params, name, value);
        self
    }

    /// A member of `_meta` set to this JSON, or taken away when it is empty.
    pub(crate) fn meta(mut self, name: &str, value: &str) -> Self {
        set(&mut self.meta, name, value);
        self
    }

    /// One of the revision's own members of `_meta`, by the end of its name.
    pub(crate) fn envelope(self, name: &str, value: &str) -> Self {
        self.meta(&format!("io.modelcontextprotocol/{name}"), value)
    }

    /// Without any `_meta`.
    pub(crate) fn bare(mut self) -> Self {
        self.meta.clear();
        self
    }

    /// Other capabilities for this request.
    pub(crate) fn declaring(self, capabilities: &str) -> Self {
        self.envelope("clientCapabilities", capabilities)
    }

    /// Asks for progress under this token (JSON).
    pub(crate) fn token(self, token: &str) -> Self {
        self.meta("progressToken", token)
    }

    /// Asks for log notifications from this level on.
    pub(crate) fn level(self, level: &str) -> Self {
        self.envelope("logLevel", &format!("\"{level}\""))
    }

    /// A header that is not as computed; an empty value takes it away.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same request under a new id, with answers (JSON) to the questions of a round.
    pub(crate) fn retry(&self, id: &str, round: &Round, answers: &str) -> Self {
        self.clone()
            .id(id)
            .param("inputResponses", answers)
            .param("requestState", &round.state)
    }

    /// The body.
    pub(crate) fn body(&self) -> String {
        let mut params = self.params.clone();
        if !self.meta.is_empty() {
            params.push(("_meta".to_owned(), object(&self.meta)));
        }
        if params.is_empty() {
            let (id, method) = (&self.id, &self.method);
            return format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        }
        json::request(&self.id, &self.method, &object(&params))
    }

    /// The client with the headers of this request.
    pub(crate) fn client(&self) -> Client {
        let mut client = self
            .client
            .with("mcp-protocol-version", MODERN)
            .with("mcp-method", &self.method);
        if let Some(target) = self.target() {
            client = client.with("mcp-name", &encoded(&target));
        }
        self.headers
            .iter()
            .fold(client, |client, (name, value)| client.with(name, value))
    }

    fn target(&self) -> Option<String> {
        let member = match self.method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            _ => return None,
        };
        let (_, value) = self.params.iter().find(|(name, _)| name == member)?;
        serde_json::from_str(value).ok()
    }

    /// Sends it and waits for the head of the answer.
    pub(crate) async fn send(&self) -> Reply {
        self.client().post(self.body()).await
    }

    /// Sends it without waiting even for the head of the answer.
    pub(crate) fn start(&self) -> tokio::task::JoinHandle<Reply> {
        let ask = self.clone();
        tokio::spawn(async move { ask.send().await })
    }

    /// Sends it and waits for the answer, which must be a result.
    pub(crate) async fn result(&self) -> Value {
        let mut reply = self.send().await;
        let message = reply.json().await;
        assert_eq!(reply.status, 200, "{message}");
        assert!(message["result"].is_object(), "{message}");
        message["result"].clone()
    }

    /// Sends it; the answer must be an error: status, code and `data.reason`.
    pub(crate) async fn refused(&self) -> (u16, i64, String) {
        let mut reply = self.send().await;
        let message = reply.json().await;
        assert_eq!(message["id"].to_string(), self.id, "{message}");
        let error = &message["error"];
        let code = error["code"].as_i64();
        let reason = error["data"]["reason"].as_str().unwrap_or_default();
        (
            reply.status.as_u16(),
            code.unwrap_or_else(|| panic!("not an error: {message}")),
            reason.to_owned(),
        )
    }
}

impl Round {
    /// Reads an `input_required`.
    pub(crate) fn of(text: &str) -> Self {
        let message = json::parse(text);
        assert_eq!(message["result"]["resultType"], "input_required", "{text}");
        let requests = json::raw(text, &["result", "inputRequests"]).unwrap();
        let keys = json::members(&requests);
        Self {
            state: json::raw(text, &["result", "requestState"]).unwrap(),
            keys: keys.into_iter().map(|(key, _)| key).collect(),
            text: text.to_owned(),
        }
    }

    /// A part of the question with this key, as spelled.
    pub(crate) fn part(&self, key: &str, member: &str) -> String {
        json::raw(&self.text, &["result", "inputRequests", key, member])
            .unwrap_or_else(|| panic!("no {member} of {key} in {}", self.text))
    }

    /// The message of the elicitation with this key.
    pub(crate) fn message(&self, key: &str) -> String {
        json::parse(&self.part(key, "params"))["message"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The key of the elicitation with this message.
    pub(crate) fn key(&self, message: &str) -> String {
        let found = self.keys.iter().find(|key| self.message(key) == message);
        found
            .unwrap_or_else(|| panic!("nobody asks {message} in {}", self.text))
            .clone()
    }

    /// Its only key.
    pub(crate) fn only(&self) -> &str {
        assert_eq!(self.keys.len(), 1, "{}", self.text);
        &self.keys[0]
    }

    /// Answers (JSON): each question gets this one.
    pub(crate) fn all(&self, answer: &str) -> String {
        self.each(|_| answer.to_owned())
    }

    /// Answers (JSON): each question gets its own, by its key.
    pub(crate) fn each(&self, answer: impl Fn(&str) -> String) -> String {
        let answers: Vec<_> = self
            .keys
            .iter()
            .map(|key| (key.clone(), answer(key)))
            .collect();
        object(&answers)
    }
}

impl Reply {
    /// The next message, which must be an `input_required`.
    pub(crate) async fn round(&mut self) -> Round {
        Round::of(&self.next().await)
    }
}

/// A form that was filled in.
pub(crate) fn accepted(nick: &str) -> String {
    format!(r#"{{"action":"accept","content":{{"nick":"{nick}"}}}}"#)
}

/// As a mirrored header carries it.
pub(crate) fn encoded(value: &str) -> String {
    let plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && value.trim() == value
        && !value.is_empty()
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if plain {
        return value.to_owned();
    }
    format!("=?base64?{}?=", BASE64.encode(value))
}

fn set(members: &mut Vec<(String, String)>, name: &str, value: &str) {
    members.retain(|(it, _)| it != name);
    if !value.is_empty() {
        members.push((name.to_owned(), value.to_owned()));
    }
}

fn object(members: &[(String, String)]) -> String {
    let members: Vec<_> = members
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", members.join(","))
}
