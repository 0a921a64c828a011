//! What only a legacy client does: sessions, their streams, and answers as messages of their own.

use bytes::Bytes;
use hyper::Method;
use hyper::header::{ACCEPT, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Person, Reply, heard, start};
use crate::Fallible;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A question, as far as it has to be read.
#[derive(Debug, Deserialize)]
struct Question {
    id: Box<RawValue>,
    method: String,
    params: Form,
}

#[derive(Debug, Deserialize)]
struct Form {
    message: String,
}

impl Person {
    /// Opens a session: both messages of the handshake.
    pub(crate) async fn open(&mut self) -> Fallible<()> {
        self.headers.remove("mcp-session-id");
        self.headers.remove("mcp-protocol-version");
        let request = self.request(Method::POST, INITIALIZE);
        let mut reply = self.line.send(request).await?.is(200)?;
        let session = reply.header("mcp-session-id").cloned();
        let session = session.ok_or("no session id")?;
        reply.message().await?;
        reply.end().await?;
        self.headers.insert("mcp-session-id", session);
        let version = HeaderValue::from_static("2025-11-25");
        self.headers.insert("mcp-protocol-version", version);
        let request = self.request(Method::POST, INITIALIZED);
        self.line.send(request).await?.is(202)?.end().await
    }

    /// Opens the standalone stream of the session, on the connection of the calls.
    pub(crate) async fn listen(&mut self) -> Fallible<Reply> {
        let mut request = self.request(Method::GET, Bytes::new());
        let events = HeaderValue::from_static("text/event-stream");
        request.headers_mut().insert(ACCEPT, events);
        self.line.send(request).await?.is(200)
    }

    /// Ends the session.
    pub(super) async fn close(&mut self) -> Fallible<()> {
        let request = self.request(Method::DELETE, Bytes::new());
        self.line.send(request).await?.is(200)?.end().await
    }

    /// A call in which the server asks: the question is answered, and the result must be made of the answer.
    pub(super) async fn ask(&mut self) -> Fallible<()> {
        let (mut reply, token, question) = self.be_asked().await?;
        let said = format!("said-{token}");
        let id = question.get();
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"said":"{said}"}}}}}}"#
        );
        let request = self.request(Method::POST, answer);
        self.answers.send(request).await?.is(202)?.end().await?;
        heard(&reply.message().await?, &token, &said)?;
        reply.end().await
    }

    /// Calls until the question is there: the stream on which it came, the token of the call, and the
    /// question's id.
    pub(crate) async fn be_asked(&mut self) -> Fallible<(Reply, String, Box<RawValue>)> {
        let token = self.token();
        let arguments = format!(r#"{{"token":"{token}"}}"#);
        let mut reply = self.tool("ask", &arguments, "").await?;
        let message = reply.message().await?;
        let question: Question = serde_json::from_slice(&message)
            .map_err(|error| format!("{error}: {}", start(&message)))?;
        if question.method != "elicitation/create" || question.params.message != token {
            return Err(format!("not the question of {token}: {}", start(&message)).into());
        }
        Ok((reply, token, question.id))
    }
}
