//! The people of the load: each has a token, a connection for calls and one for answers.
//!
//! # Invariants
//! - Every answer is checked whole: its length, the token of its own call, and its padding. One that is not as
//!   it must be is an error, and so is one that does not come in time.

mod legacy;
mod line;
mod modern;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Request, Uri};
use serde_json::Value;

pub(crate) use self::line::Reply;

use self::line::Line;
use crate::Fallible;
use crate::text::PAD;

/// How long an answer may take: generous, it only tells a lost one.
const LOST: Duration = Duration::from_secs(30);

/// The generation of the protocol that somebody speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2025-11-25, with sessions.
    Legacy,
    /// 2026-07-28, without.
    Modern,
}

/// What a person does, again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A call that is answered with so many bytes, as an event stream or as JSON.
    Call { size: usize, events: bool },
    /// A call in which the server asks something.
    Ask,
    /// A session, one call in it, and its end.
    Churn { size: usize },
}

/// Somebody who calls.
#[derive(Debug)]
pub(crate) struct Person {
    name: String,
    era: Era,
    path: Uri,
    headers: HeaderMap,
    line: Line,
    /// Answers go by another connection: that of the call is taken while the server waits for one.
    answers: Line,
    calls: u64,
}

impl Person {
    /// Somebody called `name`, with this token, who calls the server `server` at this address.
    pub(crate) fn new(
        (name, token): (String, &str),
        era: Era,
        address: SocketAddr,
        server: Era,
    ) -> Fallible<Self> {
        let path = match server {
            Era::Legacy => Uri::from_static("/mcp/legacy"),
            Era::Modern => Uri::from_static("/mcp/modern"),
        };
        let mut headers = HeaderMap::new();
        headers.insert(HOST, address.to_string().parse()?);
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse()?);
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        Ok(Self {
            name,
            era,
            path,
            headers,
            line: Line::to(address),
            answers: Line::to(address),
            calls: 0,
        })
    }

    /// What has to be done before the first step.
    pub(crate) async fn arrive(&mut self) -> Fallible<()> {
        match self.era {
            Era::Legacy => self.open().await,
            Era::Modern => Ok(()),
        }
    }

    /// Does one thing; an error when anything about the answer is not right.
    pub(crate) async fn step(&mut self, step: Step) -> Fallible<()> {
        let done = async {
            match (step, self.era) {
                (Step::Call { size, events }, _) => self.call(size, events).await,
                (Step::Ask, Era::Legacy) => self.ask().await,
                (Step::Ask, Era::Modern) => self.ask_modern().await,
                (Step::Churn { size }, _) => {
                    self.open().await?;
                    self.call(size, false).await?;
                    self.close().await
                }
            }
        };
        match tokio::time::timeout(LOST, done).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{}: {error}", self.name).into()),
            Err(_) => Err(format!("{}: no answer within {LOST:?}", self.name).into()),
        }
    }

    /// A call of `pad`, and a look at every byte of its answer.
    async fn call(&mut self, size: usize, events: bool) -> Fallible<()> {
        let token = self.token();
        let id = self.calls;
        let arguments = format!(r#"{{"token":"{token}","size":{size},"events":{events}}}"#);
        let mut reply = self.tool("pad", &arguments, "").await?;
        if reply.is_stream() != events {
            return Err("the answer is of the other kind".into());
        }
        let message = reply.message().await?;
        let first = match self.era {
            Era::Legacy => "",
            Era::Modern => r#""resultType":"complete","#,
        };
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{{first}"content":[{{"type":"text","text":"{token}"#
        );
        let rest = message.strip_prefix(head.as_bytes());
        let pad = rest.and_then(|rest| rest.strip_suffix(br#""}]}}"#));
        if pad.is_none_or(|pad| Some(pad) != PAD.get(..size - token.len())) {
            return Err(format!("not the answer to {token}: {}", start(&message)).into());
        }
        reply.end().await
    }

    /// What makes the next call unlike all others.
    fn token(&mut self) -> String {
        self.calls += 1;
        format!("{}-{}", self.name, self.calls)
    }

    /// Calls a tool; `more` are further members of the parameters, each with a comma before it.
    async fn tool(&mut self, name: &str, arguments: &str, more: &str) -> Fallible<Reply> {
        let meta = match self.era {
            Era::Legacy => "",
            Era::Modern => modern::ENVELOPE,
        };
        let id = self.calls;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}{more}{meta}}}}}"#
        );
        let mut request = self.request(Method::POST, body);
        if self.era == Era::Modern {
            modern::mirror(request.headers_mut(), name)?;
        }
        let reply = self.line.send(request).await?;
        reply.is(200)
    }

    fn request(&self, method: Method, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body.into()));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        request.headers_mut().clone_from(&self.headers);
        request
    }
}

/// The beginning of a message that is not as it should be.
fn start(message: &[u8]) -> String {
    let start = message.get(..300).unwrap_or(message);
    String::from_utf8_lossy(start).into_owned()
}

/// Sees to it that a result of `ask` is made of this person's own words.
fn heard(message: &[u8], token: &str, said: &str) -> Fallible<()> {
    let value: Value = serde_json::from_slice(message)?;
    let text = value.pointer("/result/content/0/text");
    if text.and_then(Value::as_str) == Some(&format!("{token}:{said}")) {
        return Ok(());
    }
    Err(format!("not the answer to {token}: {}", start(message)).into())
}
