//! The played client: as much of an MCP client as the demo needs, over real HTTP.
//!
//! # Invariants
//! - A question is answered while its call is still running, by a request of its own: that is how
//!   the answer travels in Streamable HTTP.
//! - Answers and events are bounded in size.

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};

use serde_json::{Value, json};

use crate::upstream::client::{ClientError, HttpClient, Incoming, read};

/// A client with a session.
pub(super) struct Client {
    http: HttpClient,
    url: Uri,
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    requests: u64,
}

/// What a server wants to know.
pub(super) struct Question {
    /// What the person is told.
    pub(super) message: String,
    /// The form, as JSON Schema.
    pub(super) form: Value,
}

/// What the person says.
pub(super) enum Answer {
    Accept(Value),
    Decline,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the played person always decides")
    )]
    Cancel,
}

/// Why a conversation broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum TalkError {
    /// No answer at all.
    #[error("{0} can't be reached")]
    Http(String, #[source] ClientError),
    /// An HTTP status that is no answer.
    #[error("{0} was refused: {1} {2}")]
    Refused(&'static str, StatusCode, String),
    /// A JSON-RPC error.
    #[error("{0} was answered with an error: {1}")]
    Failed(&'static str, Value),
    /// Something that is no message.
    #[error("an answer is not JSON")]
    Json(#[from] serde_json::Error),
    /// A request that can't be written.
    #[error("a request can't be written")]
    Request(#[from] http::Error),
    /// The stream ended before the answer came.
    #[error("the stream of {0} ended without an answer")]
    Ended(&'static str),
}

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The version that the client offers.
pub(super) const OFFER: &str = "2025-11-25";
const LARGEST: usize = 1024 * 1024;

impl Client {
    /// Opens a session and tells what the client can do; returns what the server says of itself.
    pub(super) async fn connect(
        http: HttpClient,
        url: Uri,
        capabilities: Value,
    ) -> Result<(Self, Value), TalkError> {
        let mut client = Self {
            http,
            url,
            session: None,
            version: None,
            requests: 0,
        };
        let hello = json!({
            "protocolVersion": OFFER,
            "capabilities": capabilities,
            "clientInfo": { "name": "contraflow-demo-client", "version": env!("CARGO_PKG_VERSION") },
        });
        let nobody = |_: &Question| Answer::Decline;
        let (welcome, session) = client.request("initialize", hello, nobody).await?;
        client.session = session;
        let version = welcome.get("protocolVersion").and_then(Value::as_str);
        client.version = version.and_then(|version| HeaderValue::from_str(version).ok());
        client
            .tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await?;
        Ok((client, welcome))
    }

    /// Calls a tool and returns the text of its result. `person` answers what the server asks
    /// meanwhile.
    pub(super) async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        person: impl Fn(&Question) -> Answer,
    ) -> Result<String, TalkError> {
        let params = json!({ "name": tool, "arguments": arguments });
        let (result, _) = self.request("tools/call", params, person).await?;
        let text = result.pointer("/content/0/text").and_then(Value::as_str);
        Ok(text.unwrap_or_default().to_owned())
    }

    /// Ends the session.
    pub(super) async fn end(self) -> Result<(), TalkError> {
        let response = self.send(Method::DELETE, Bytes::new()).await?;
        self.check("the end of the session", response)
            .await
            .map(drop)
    }

    async fn request(
        &mut self,
        method: &'static str,
        params: Value,
        person: impl Fn(&Question) -> Answer,
    ) -> Result<(Value, Option<HeaderValue>), TalkError> {
        self.requests += 1;
        let id = json!(self.requests);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let response = self.send(Method::POST, request.to_string().into()).await?;
        let response = self.check(method, response).await?;
        let session = response.headers().get(SESSION).cloned();
        let streamed = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let mut messages = Messages {
            body: response.into_body(),
            buffer: BytesMut::new(),
            streamed,
        };
        while let Some(message) = messages.next(&self.url).await? {
            if let Some(asked) = message.get("method").and_then(Value::as_str) {
                if let Some(id) = message.get("id") {
                    self.tell(&reply(id, asked, &message, &person)).await?;
                }
            } else if message.get("id") == Some(&id) {
                return match (message.get("result"), message.get("error")) {
                    (Some(result), _) => Ok((result.clone(), session)),
                    (None, error) => Err(TalkError::Failed(
                        method,
                        error.cloned().unwrap_or_default(),
                    )),
                };
            }
        }
        Err(TalkError::Ended(method))
    }

    /// Sends a message that has no answer of its own.
    async fn tell(&self, message: &Value) -> Result<(), TalkError> {
        let response = self.send(Method::POST, message.to_string().into()).await?;
        self.check("a message", response).await.map(drop)
    }

    async fn send(&self, method: Method, body: Bytes) -> Result<Response<Incoming>, TalkError> {
        let mut request = Request::builder()
            .method(method)
            .uri(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(Full::new(body))?;
        let known = [(SESSION, &self.session), (VERSION, &self.version)];
        for (name, value) in known
            .into_iter()
            .filter_map(|(name, v)| Some((name, v.clone()?)))
        {
            request.headers_mut().insert(name, value);
        }
        self.http
            .send(request)
            .await
            .map_err(|error| TalkError::Http(self.url.to_string(), error))
    }

    async fn check(
        &self,
        what: &'static str,
        response: Response<Incoming>,
    ) -> Result<Response<Incoming>, TalkError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = read(response.into_body(), LARGEST).await;
        let body = body.map_err(|error| TalkError::Http(self.url.to_string(), error))?;
        Err(TalkError::Refused(
            what,
            status,
            String::from_utf8_lossy(&body).into_owned(),
        ))
    }
}

/// What the client says to a request of the server.
fn reply(id: &Value, method: &str, message: &Value, person: impl Fn(&Question) -> Answer) -> Value {
    let params = |name: &str| message.get("params").and_then(|params| params.get(name));
    let result = match method {
        "ping" => json!({}),
        "elicitation/create" => {
            let text = params("message")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let form = params("requestedSchema").cloned().unwrap_or_default();
            match person(&Question {
                message: text,
                form,
            }) {
                Answer::Accept(content) => json!({ "action": "accept", "content": content }),
                Answer::Decline => json!({ "action": "decline" }),
                Answer::Cancel => json!({ "action": "cancel" }),
            }
        }
        _ => {
            let error = json!({ "code": -32601, "message": "this client has no such method" });
            return json!({ "jsonrpc": "2.0", "id": id, "error": error });
        }
    };
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The messages of a response: one JSON text, or the events of a stream as they arrive.
struct Messages {
    body: Incoming,
    buffer: BytesMut,
    streamed: bool,
}

impl Messages {
    async fn next(&mut self, url: &Uri) -> Result<Option<Value>, TalkError> {
        let broken = |error| TalkError::Http(url.to_string(), error);
        loop {
            if self.streamed
                && let Some(data) = take_event(&mut self.buffer)
            {
                if data.is_empty() {
                    continue;
                }
                return Ok(Some(serde_json::from_str(&data)?));
            }
            match self.body.frame().await {
                Some(frame) => {
                    let frame =
                        frame.map_err(|error| broken(ClientError::Broken(Box::new(error))))?;
                    let data = frame.into_data().unwrap_or_default();
                    if self.buffer.len() + data.len() > LARGEST {
                        return Err(broken(ClientError::TooLarge(LARGEST)));
                    }
                    self.buffer.extend_from_slice(&data);
                }
                None if self.streamed || self.buffer.is_empty() => return Ok(None),
                None => return Ok(Some(serde_json::from_slice(&self.buffer.split())?)),
            }
        }
    }
}

/// Takes the first whole event out of the buffer and returns its data, empty for a comment.
/// Enough for lines that end in LF or CRLF.
fn take_event(buffer: &mut BytesMut) -> Option<String> {
    let mut data = Vec::new();
    let mut read = 0;
    for line in buffer.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else {
            break;
        };
        read += line.len();
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.is_empty() {
            drop(buffer.split_to(read));
            return Some(data.join("\n"));
        }
        if let Some(value) = text.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            data.push(String::from_utf8_lossy(value).into_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_one_by_one_and_only_when_they_are_whole() {
        let mut buffer = BytesMut::from(": hello\r\n\r\nid: 1\ndata: a\ndata: b\n\ndata:c\n");
        assert_eq!(take_event(&mut buffer).as_deref(), Some(""));
        assert_eq!(take_event(&mut buffer).as_deref(), Some("a\nb"));
        assert_eq!(take_event(&mut buffer), None);
        buffer.extend_from_slice(b"\n");
        assert_eq!(take_event(&mut buffer).as_deref(), Some("c"));
        assert!(buffer.is_empty());
    }
}
