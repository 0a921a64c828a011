//! What a scripted server and its test hand to each other: a request as it arrived, a request that
//! waits for a reply, an event stream to write on.

use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{mpsc, oneshot};

use super::json;

/// Where the body of a response is written, chunk by chunk; an error breaks the connection.
pub(super) type Chunks = mpsc::Sender<Result<Bytes, std::io::Error>>;

/// An HTTP request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) http: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A request that waits for the test's reply.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) seen: Seen,
    pub(super) reply: oneshot::Sender<Response>,
}

/// An event stream that the test writes.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The id of the request that it answers, as spelled; empty for GET.
    pub(crate) id: String,
    /// The request that opened it.
    pub(crate) seen: Seen,
    pub(super) chunks: Chunks,
}

impl Seen {
    /// The body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// A member of the body, as spelled.
    pub(crate) fn raw(&self, path: &[&str]) -> Option<String> {
        json::raw(self.text(), path)
    }

    /// The JSON-RPC method, if the body is a request or notification.
    pub(crate) fn method(&self) -> Option<String> {
        serde_json::from_str(&self.raw(&["method"])?).ok()
    }

    /// The tool that is called.
    pub(crate) fn tool(&self) -> Option<String> {
        serde_json::from_str(&self.raw(&["params", "name"])?).ok()
    }

    /// Whether a gateway asks what it is talking to: such a request belongs to no session.
    pub(crate) fn is_probe(&self) -> bool {
        self.method().as_deref() == Some("server/discover")
    }

    /// A header as text, empty when absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The session that it belongs to, empty when none is named.
    pub(crate) fn session(&self) -> &str {
        self.header("mcp-session-id")
    }

    pub(super) fn is_answer(&self) -> bool {
        self.http == Method::POST
            && self.raw(&["method"]).is_none()
            && (self.raw(&["result"]).is_some() || self.raw(&["error"]).is_some())
    }
}

impl Held {
    /// The id of the request, as spelled.
    pub(crate) fn id(&self) -> String {
        json::id(self.seen.text())
    }

    /// Replies with this status, content type and body.
    pub(crate) fn respond(self, status: u16, content_type: &str, body: &str) {
        self.respond_with(response(status, content_type, body.to_owned()));
    }

    /// Replies with any response.
    pub(crate) fn respond_with(self, response: Response) {
        self.reply
            .send(response)
            .expect("the gateway still waits for this reply");
    }

    /// Replies if somebody still waits; says whether.
    pub(crate) fn try_respond(self, response: Response) -> bool {
        self.reply.send(response).is_ok()
    }

    /// Replies with a JSON result.
    pub(crate) fn result(self, result: &str) {
        let body = json::result(&self.id(), result);
        self.respond(200, "application/json", &body);
    }

    /// Replies with an event stream.
    pub(crate) fn stream(self) -> Stream {
        self.stream_as("text/event-stream")
    }

    /// Replies with an event stream of this content type.
    pub(crate) fn stream_as(self, content_type: &str) -> Stream {
        let (chunks, response) = streaming(content_type);
        let (id, seen) = (self.id(), self.seen.clone());
        self.respond_with(response);
        Stream { id, seen, chunks }
    }

    /// Waits until whoever asked has gone away, without a reply.
    pub(crate) async fn abandoned(&mut self) {
        super::within("the gateway to drop the request", self.reply.closed()).await;
    }
}

impl Stream {
    /// Writes one message as one event.
    pub(crate) async fn send(&self, message: &str) {
        self.bytes(&format!("data: {message}\n\n")).await;
    }

    /// Writes these bytes as one chunk.
    pub(crate) async fn bytes(&self, bytes: &str) {
        let chunk = Bytes::copy_from_slice(bytes.as_bytes());
        self.chunks
            .send(Ok(chunk))
            .await
            .expect("the gateway still reads this stream");
    }

    /// Writes one message as one event, unless nobody reads.
    pub(crate) fn try_send(&self, message: &str) -> Result<(), ()> {
        let chunk = Bytes::from(format!("data: {message}\n\n"));
        self.chunks.try_send(Ok(chunk)).map_err(drop)
    }

    /// Writes these bytes as one chunk; says whether somebody still reads.
    pub(crate) async fn try_bytes(&self, bytes: &str) -> bool {
        let chunk = Bytes::copy_from_slice(bytes.as_bytes());
        self.chunks.send(Ok(chunk)).await.is_ok()
    }

    /// Writes the result of the request and ends the stream.
    pub(crate) async fn result(self, result: &str) {
        self.send(&json::result(&self.id, result)).await;
    }

    /// Breaks the connection in the middle of the stream.
    pub(crate) async fn abort(self) {
        drop(
            self.chunks
                .send(Err(std::io::Error::other("broken on purpose")))
                .await,
        );
    }

    /// Waits until the gateway has left the stream.
    pub(crate) async fn left(&self) {
        super::within("the gateway to leave the stream", self.chunks.closed()).await;
    }

    /// Whether the gateway has left the stream.
    pub(crate) fn is_left(&self) -> bool {
        self.chunks.is_closed()
    }
}

/// A whole response; an empty content type is left out.
pub(crate) fn response(status: u16, content_type: &str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    if !content_type.is_empty() {
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type.parse().unwrap());
    }
    response
}

/// A response whose body is what is sent to the other end.
pub(super) fn streaming(content_type: &str) -> (Chunks, Response) {
    let (chunks, receiver) = mpsc::channel(1024);
    let body = stream::unfold(receiver, async |mut receiver| {
        let chunk = receiver.recv().await?;
        Some((chunk, receiver))
    });
    let mut response = Response::new(Body::from_stream(body));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type.parse().unwrap());
    (chunks, response)
}
