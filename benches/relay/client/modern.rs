//! What only a modern client does: an envelope in every request, and calls that come back with answers.

use std::collections::HashMap;

use hyper::header::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Person, heard, start};
use crate::Fallible;

/// What a request says about itself.
pub(super) const ENVELOPE: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

/// An answer that says what is needed first.
#[derive(Debug, Deserialize)]
struct Message {
    result: Round,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Round {
    input_requests: HashMap<String, Question>,
    request_state: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
struct Question {
    params: Form,
}

#[derive(Debug, Deserialize)]
struct Form {
    message: String,
}

/// What the server wants to know, by its key, and what has to come along with the answer.
#[derive(Debug)]
pub(crate) struct Asked {
    key: String,
    state: Box<RawValue>,
    token: String,
}

impl Person {
    /// A call that is answered with a question, and again with the answer.
    pub(super) async fn ask_modern(&mut self) -> Fallible<()> {
        let Asked { key, state, token } = self.park().await?;
        self.calls += 1;
        let said = format!("said-{token}");
        let arguments = format!(r#"{{"token":"{token}"}}"#);
        let state = state.get();
        let more = format!(
            r#","inputResponses":{{"{key}":{{"action":"accept","content":{{"said":"{said}"}}}}}},"requestState":{state}"#
        );
        let mut reply = self.tool("ask", &arguments, &more).await?;
        heard(&reply.message().await?, &token, &said)?;
        reply.end().await
    }

    /// Calls, gets a question, and stays away with it.
    pub(crate) async fn park(&mut self) -> Fallible<Asked> {
        let token = self.token();
        let arguments = format!(r#"{{"token":"{token}"}}"#);
        let mut reply = self.tool("ask", &arguments, "").await?;
        let message = reply.message().await?;
        reply.end().await?;
        let round: Message = serde_json::from_slice(&message)
            .map_err(|error| format!("{error}: {}", start(&message)))?;
        let Round {
            input_requests,
            request_state: state,
        } = round.result;
        match input_requests.into_iter().next() {
            Some((key, question)) if question.params.message == token => {
                Ok(Asked { key, state, token })
            }
            _ => Err(format!("not the question of {token}: {}", start(&message)).into()),
        }
    }
}

/// The headers that repeat the body of a call of this tool.
pub(super) fn mirror(headers: &mut HeaderMap, tool: &str) -> Fallible<()> {
    let version = HeaderValue::from_static("2026-07-28");
    headers.insert("mcp-protocol-version", version);
    headers.insert("mcp-method", HeaderValue::from_static("tools/call"));
    headers.insert("mcp-name", tool.parse()?);
    Ok(())
}
