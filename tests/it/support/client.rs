//! A raw HTTP client that plays MCP clients: what it sends is spelled out, what it gets is kept.
//!
//! Event streams are read by `sse-stream`, a reader that is not the gateway's own; the bytes are
//! kept beside it, so that comments can be counted.
//!
//! # Invariants
//! - It adds nothing to a request but what `headers` and the session say.
//! - Waiting for a message has a deadline; a stream that ends too early is a failure, not an end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use serde_json::Value;
use sse_stream::{Sse, SseStream};

use super::{Gateway, json, within};

type Http = hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>;

/// Somebody who talks to one server through a gateway.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: Http,
    /// The whole URL of the endpoint.
    pub(crate) url: String,
    /// Sent with every request.
    pub(crate) headers: HeaderMap,
}

/// An MCP session that a client holds.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    /// `Mcp-Session-Id` as the gateway gave it; empty when it gave none.
    pub(crate) id: String,
    /// The negotiated version.
    pub(crate) version: String,
    /// The answer to `initialize`, as it came.
    pub(crate) initialized: String,
}

/// An answer whose head has come; its messages are read one by one.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Messages,
}

enum Messages {
    Whole(Option<Incoming>),
    Events(
        SseStream<http_body_util::StreamBody<Frames>>,
        Arc<Mutex<Vec<u8>>>,
    ),
}

/// The frames of a body, each one copied to where raw bytes are kept.
#[derive(Debug)]
struct Frames(Incoming, Arc<Mutex<Vec<u8>>>);

impl Stream for Frames {
    type Item = Result<hyper::body::Frame<Bytes>, hyper::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let frame = std::task::ready!(Pin::new(&mut self.0).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.1.lock().extend_from_slice(data);
        }
        Poll::Ready(frame)
    }
}

impl Client {
    /// A client of this server, by its path `/mcp/{server}`.
    pub(crate) fn new(gateway: &Gateway, server: &str) -> Self {
        Self::at(&format!("{}/mcp/{server}", gateway.url))
    }

    /// A client of whatever is at `url`.
    pub(crate) fn at(url: &str) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http =
            hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        let mut headers = HeaderMap::new();
        headers.insert(
            "accept",
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        Self {
            http,
            url: url.to_owned(),
            headers,
        }
    }

    /// The same client with a header set, or taken away when the value is empty.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        let name: HeaderName = name.parse().unwrap();
        if value.is_empty() {
            client.headers.remove(&name);
        } else {
            client.headers.insert(name, value.parse().unwrap());
        }
        client
    }

    /// The same client with this bearer token.
    pub(crate) fn bearer(&self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(&self, method: Method, body: impl Into<Bytes>) -> Reply {
        let mut request = Request::new(Full::new(body.into()));
        *request.uri_mut() = self.url.parse().unwrap();
        *request.headers_mut() = self.headers.clone();
        if method != Method::POST {
            request.headers_mut().remove("content-type");
        }
        *request.method_mut() = method;
        let what = format!("the head of {} {}", request.method(), request.uri());
        Reply::of(within(&what, self.http.request(request)).await.unwrap())
    }

    /// POSTs.
    pub(crate) async fn post(&self, body: impl Into<Bytes>) -> Reply {
        self.send(Method::POST, body).await
    }

    /// GETs.
    pub(crate) async fn get(&self) -> Reply {
        self.send(Method::GET, "").await
    }

    /// The whole handshake at 2025-11-25.
    pub(crate) async fn open(&self, capabilities: &str) -> Session {
        self.open_at("2025-11-25", capabilities).await
    }

    /// The whole handshake at another version.
    pub(crate) async fn open_at(&self, version: &str, capabilities: &str) -> Session {
        let mut reply = self.post(initialize(version, capabilities)).await;
        let initialized = reply.next().await;
        assert_eq!(reply.status, 200, "initialize: {initialized}");
        let id = reply.header("mcp-session-id").to_owned();
        let chosen = json::parse(&initialized)["result"]["protocolVersion"].clone();
        let version = chosen
            .as_str()
            .unwrap_or_else(|| panic!("{initialized}"))
            .to_owned();
        let session = Session {
            client: self.session(&id, &version),
            id,
            version,
            initialized,
        };
        let status = session.notify("notifications/initialized", "{}").await;
        assert_eq!(status, 202, "notifications/initialized");
        session
    }

    /// This client with the headers of a session.
    pub(crate) fn session(&self, id: &str, version: &str) -> Self {
        let version = if version >= "2025-06-18" { version } else { "" };
        self.with("mcp-session-id", id)
            .with("mcp-protocol-version", version)
    }
}

/// An `initialize` with id `"init"`.
pub(crate) fn initialize(version: &str, capabilities: &str) -> String {
    let params = format!(
        r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"raw","version":"1"}}}}"#
    );
    json::request("\"init\"", "initialize", &params)
}

impl Session {
    /// POSTs one message.
    pub(crate) async fn post(&self, body: impl Into<Bytes>) -> Reply {
        self.client.post(body).await
    }

    /// Calls a tool; `id` and `arguments` as JSON.
    pub(crate) async fn call(&self, id: &str, tool: &str, arguments: &str) -> Reply {
        self.post(json::call(id, tool, arguments)).await
    }

    /// Calls a tool and waits for the text of its result.
    pub(crate) async fn text(&self, tool: &str, arguments: &str) -> String {
        let mut reply = self.call("\"text\"", tool, arguments).await;
        json::text_of(&reply.next().await)
    }

    /// Starts a call without waiting even for the head of the answer.
    pub(crate) fn start(&self, body: String) -> tokio::task::JoinHandle<Reply> {
        let session = self.clone();
        tokio::spawn(async move { session.post(body).await })
    }

    /// Answers a question; gives the status.
    pub(crate) async fn answer(&self, question: &str, result: &str) -> StatusCode {
        self.say(json::result(&json::id(question), result)).await
    }

    /// POSTs a message that has no answer, and gives the status.
    pub(crate) async fn say(&self, body: impl Into<Bytes>) -> StatusCode {
        let mut reply = self.post(body).await;
        if reply.status == StatusCode::ACCEPTED {
            assert_eq!(reply.text().await, "", "202 has no body");
            assert!(
                !reply.headers.contains_key("content-type"),
                "202 has no content type"
            );
        }
        reply.status
    }

    /// POSTs a notification; gives the status.
    pub(crate) async fn notify(&self, method: &str, params: &str) -> StatusCode {
        self.say(json::notice(method, params)).await
    }

    /// Opens the standalone stream.
    pub(crate) async fn listen(&self) -> Reply {
        let reply = self.client.with("accept", "text/event-stream").get().await;
        assert_eq!(reply.status, 200, "GET");
        reply
    }

    /// Ends the session; gives the status.
    pub(crate) async fn delete(&self) -> StatusCode {
        self.client.send(Method::DELETE, "").await.status
    }

    /// Shows that the session still works, by a call that reaches the server.
    pub(crate) async fn works(&self) {
        assert_eq!(self.text("echo", r#"{"x":"alive"}"#).await, r#""alive""#);
    }
}

impl Reply {
    fn of(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let content_type = head
            .headers
            .get("content-type")
            .map_or("", |v| v.to_str().unwrap());
        let body = if content_type.starts_with("text/event-stream") {
            let raw = Arc::new(Mutex::new(Vec::new()));
            let frames = Frames(body, Arc::clone(&raw));
            Messages::Events(SseStream::new(http_body_util::StreamBody::new(frames)), raw)
        } else {
            Messages::Whole(Some(body))
        };
        Self {
            status: head.status,
            headers: head.headers,
            body,
        }
    }

    /// A header as text, empty when absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Whether the answer is an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.body, Messages::Events(..))
    }

    /// The next message: the next event that has data, or the whole JSON body.
    pub(crate) async fn next(&mut self) -> String {
        let next = self.maybe_next().await;
        next.unwrap_or_else(|| panic!("the answer ended ({}), a message was expected", self.status))
    }

    /// The next message, or `None` at the end of a stream.
    pub(crate) async fn maybe_next(&mut self) -> Option<String> {
        if let Messages::Whole(_) = self.body {
            return Some(self.text().await).filter(|text| !text.is_empty());
        }
        loop {
            let data = self.event().await?.data.unwrap_or_default();
            if !data.is_empty() {
                return Some(data);
            }
        }
    }

    /// The next event as it came, data or not. A broken stream is an end.
    pub(crate) async fn event(&mut self) -> Option<Sse> {
        let Messages::Events(events, _) = &mut self.body else {
            panic!("not an event stream")
        };
        within("an event", events.next()).await?.ok()
    }

    /// The next message, parsed.
    pub(crate) async fn json(&mut self) -> Value {
        json::parse(&self.next().await)
    }

    /// The next message, which must be an error: its code.
    pub(crate) async fn error(&mut self) -> i64 {
        let message = self.json().await;
        message["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("not an error: {message}"))
    }

    /// The next message, which must be a request: its text.
    pub(crate) async fn question(&mut self, method: &str) -> String {
        let message = self.next().await;
        assert_eq!(json::method(&message).as_deref(), Some(method), "{message}");
        message
    }

    /// Sees to it that nothing but the end comes.
    pub(crate) async fn ends(&mut self) {
        assert_eq!(
            self.maybe_next().await,
            None,
            "a message after the last one"
        );
    }

    /// The whole body of an answer that is no stream; empty once it was read.
    pub(crate) async fn text(&mut self) -> String {
        let Messages::Whole(body) = &mut self.body else {
            panic!("an event stream")
        };
        let Some(body) = body.take() else {
            return String::new();
        };
        let all = within("the body", body.collect()).await.unwrap().to_bytes();
        String::from_utf8(all.to_vec()).unwrap()
    }

    /// How many comment lines came so far on a stream.
    pub(crate) fn comments(&self) -> usize {
        let Messages::Events(_, raw) = &self.body else {
            return 0;
        };
        String::from_utf8_lossy(&raw.lock())
            .lines()
            .filter(|line| line.starts_with(':'))
            .count()
    }

    /// The bytes of a stream so far.
    pub(crate) fn raw(&self) -> String {
        let Messages::Events(_, raw) = &self.body else {
            panic!("not an event stream")
        };
        String::from_utf8_lossy(&raw.lock()).into_owned()
    }

    /// Reads on until `times` comments came. A message on the way is a failure.
    pub(crate) async fn read_comments(&mut self, times: usize) {
        let wanted = self.comments() + times;
        let Messages::Events(events, raw) = &mut self.body else {
            panic!("not an event stream")
        };
        let raw = Arc::clone(raw);
        let count = std::future::poll_fn(|context| {
            // The reader skips comments in silence: the kept bytes show them after each poll.
            let event = events.poll_next_unpin(context);
            assert!(event.is_pending(), "an event between comments: {event:?}");
            let text = String::from_utf8_lossy(&raw.lock()).into_owned();
            let count = text.lines().filter(|line| line.starts_with(':')).count();
            if count >= wanted {
                Poll::Ready(count)
            } else {
                Poll::Pending
            }
        });
        within("keep-alive comments", count).await;
    }
}
