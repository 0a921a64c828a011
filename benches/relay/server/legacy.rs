//! The server as one of 2025-11-25: sessions, and questions on the stream of the call.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{Method, Response, StatusCode};
use parking_lot::Mutex;
use tokio::sync::mpsc::{Sender, channel};

use super::body::Body;
use super::message::{Message, answered, form, heard, padded};
use super::{empty, events, json};

/// The open questions, and the numbers of questions and sessions.
#[derive(Debug, Default)]
pub(super) struct Desk {
    count: AtomicU64,
    open: Mutex<HashMap<String, Open>>,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct Open {
    stream: Sender<Bytes>,
    id: String,
    token: String,
}

impl Desk {
    pub(super) fn serve(&self, method: &Method, body: &[u8]) -> Response<Body> {
        match *method {
            Method::GET => return events(Body::Silent),
            Method::DELETE => return empty(StatusCode::OK),
            _ => {}
        }
        let Ok(message) = serde_json::from_slice::<Message>(body) else {
            return empty(StatusCode::BAD_REQUEST);
        };
        match (message.method.as_deref(), message.params.name.as_str()) {
            (None, _) => self.answer(&message),
            (Some("initialize"), _) => self.initialize(&message),
            (Some("tools/call"), "ask") => self.ask(&message),
            (Some("tools/call"), _) if message.params.arguments.events => {
                events(Body::stream(padded(&message, "", ("data: ", "\n\n"))))
            }
            (Some("tools/call"), _) => {
                let mut response = json(String::new());
                *response.body_mut() = Body::whole(padded(&message, "", ("", "")));
                response
            }
            (Some(_), _) => empty(StatusCode::ACCEPTED),
        }
    }

    fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    fn initialize(&self, message: &Message) -> Response<Body> {
        let id = message.id();
        let mut response = json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"bench","version":"1"}}}}}}"#
        ));
        let session = format!("session-{}", self.next());
        if let Ok(session) = HeaderValue::from_str(&session) {
            response.headers_mut().insert("mcp-session-id", session);
        }
        response
    }

    fn ask(&self, message: &Message) -> Response<Body> {
        let (stream, receiver) = channel(2);
        let token = message.params.arguments.token.clone();
        let question = self.next().to_string();
        let params = form(&token);
        let event = format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":{question},\"method\":\"elicitation/create\",\"params\":{params}}}\n\n"
        );
        // There is room for it.
        let _sent = stream.try_send(Bytes::from(event));
        let id = message.id().to_owned();
        self.open
            .lock()
            .insert(question, Open { stream, id, token });
        events(Body::Open(receiver))
    }

    fn answer(&self, message: &Message) -> Response<Body> {
        let open = self.open.lock().remove(message.id());
        let (Some(open), Some(answer)) = (open, &message.result) else {
            return empty(StatusCode::BAD_REQUEST);
        };
        let text = heard(&open.token, &answer.content.said);
        let event = format!("data: {}\n\n", answered(&open.id, "", &text));
        let _gone = open.stream.try_send(Bytes::from(event));
        empty(StatusCode::ACCEPTED)
    }
}
