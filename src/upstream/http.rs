//! Streamable HTTP: messages go up by POST, answers come back as JSON or as an event stream; from
//! legacy servers questions too.
//!
//! # Invariants
//! - A request to a server is built afresh. Nothing of what the client sent is in it but the message.
//! - The version and session headers are those of this hop.
//! - Nothing is sent twice, except to the place that a redirect on the same origin names, which says
//!   that the first one did nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use parking_lot::Mutex;
use url::Url;

use super::breaker::Breaker;
use super::client::{ClientError, HttpClient, Incoming, Listening, Origin};
use super::reply::Source;
use super::server::Wire;
use crate::protocol::version::{LAST_EVENT_HEADER, SESSION_HEADER, VERSION_HEADER};

/// A place that speaks Streamable HTTP.
#[derive(Debug)]
pub(super) struct Endpoint {
    url: Uri,
    headers: HeaderMap,
    origin: Arc<Origin>,
    /// It has said that it offers no standalone stream.
    streamless: AtomicBool,
    breaker: Mutex<Breaker>,
}

const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl Endpoint {
    /// The one at this URL, which gets these headers with every request.
    pub(super) fn new(url: &Url, headers: HeaderMap, client: &HttpClient) -> Self {
        // The configuration took it for a URL with a host, which a URI is too.
        let url = url.as_str().parse().unwrap_or_default();
        Self {
            origin: client.origin(&url),
            streamless: AtomicBool::new(false),
            url,
            headers,
            breaker: Mutex::default(),
        }
    }

    /// Whether it is left alone, since it could not be reached.
    pub(super) fn rests(&self) -> bool {
        self.breaker.lock().rests(now())
    }

    /// Sends a message.
    pub(super) async fn post(
        &self,
        wire: &Wire,
        message: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let head = wire.head.get_or_init(|| {
            let mut head = self.head(wire);
            head.insert(ACCEPT, BOTH);
            head.insert(CONTENT_TYPE, JSON);
            head
        });
        self.send(Method::POST, || head.clone(), message).await
    }

    /// Sends a request that stands for itself, with these headers beside the configured ones.
    pub(super) async fn ask(
        &self,
        headers: &HeaderMap,
        message: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let head = || {
            let mut head = self.headers.clone();
            head.insert(ACCEPT, BOTH);
            head.insert(CONTENT_TYPE, JSON);
            for (name, value) in headers {
                head.append(name, value.clone());
            }
            head
        };
        self.send(Method::POST, head, message).await
    }

    /// Opens the standalone stream, after the event `last` where one was seen.
    pub(super) async fn listen(
        &self,
        wire: &Wire,
        last: Option<&Bytes>,
    ) -> Result<Response<Source>, ClientError> {
        let head = || {
            let mut head = self.head(wire);
            head.insert(ACCEPT, EVENTS);
            let last = last.and_then(|last| HeaderValue::from_maybe_shared(last.clone()).ok());
            head.extend(last.map(|last| (LAST_EVENT_HEADER, last)));
            head
        };
        // Who refuses once refuses the next one too, and then the connection can be used for something else.
        if self.streamless.load(Ordering::Relaxed) {
            let response = self.send(Method::GET, head, Bytes::new()).await?;
            let offers = response.status().is_success();
            self.streamless.store(!offers, Ordering::Relaxed);
            return Ok(response.map(Source::Http));
        }
        let mut response = self.reach_stream(&self.url, head()).await?;
        if let Some(place) = self.moved(&response) {
            response = self.reach_stream(&place, head()).await?;
        }
        let refused = response.status() == StatusCode::METHOD_NOT_ALLOWED;
        self.streamless.store(refused, Ordering::Relaxed);
        Ok(response.map(Source::Stream))
    }

    /// Ends a session.
    pub(super) async fn end(&self, wire: &Wire) -> Result<StatusCode, ClientError> {
        let head = || self.head(wire);
        let response = self.send(Method::DELETE, head, Bytes::new()).await?;
        Ok(response.status())
    }

    /// Sends a request, and once more to the place that a redirect on the same origin names.
    async fn send(
        &self,
        method: Method,
        head: impl Fn() -> HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let build = |url: &Uri| {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = url.clone();
            *request.headers_mut() = head();
            Box::new(request)
        };
        let response = self.reach(build(&self.url)).await?;
        match self.moved(&response) {
            None => Ok(response),
            Some(place) => Box::pin(self.reach(build(&place))).await,
        }
    }

    /// Sends one request, unless the place rests.
    async fn reach(
        &self,
        request: Box<Request<Full<Bytes>>>,
    ) -> Result<Response<Incoming>, ClientError> {
        self.ask_breaker()?;
        let answer = self.origin.send(request, || self.is_reached()).await;
        self.heard(&answer);
        answer
    }

    /// Asks for a stream, unless the place rests.
    async fn reach_stream(
        &self,
        url: &Uri,
        head: HeaderMap,
    ) -> Result<Response<Listening>, ClientError> {
        self.ask_breaker()?;
        let answer = self.origin.listen(url, head, || self.is_reached()).await;
        self.heard(&answer);
        answer
    }

    /// Whether it may be tried.
    fn ask_breaker(&self) -> Result<(), ClientError> {
        let asked = self.breaker.lock().ask(now());
        asked.map_err(ClientError::Resting)
    }

    /// There is a connection. Told not only with the answer: a server may take its time for that, and others need
    /// not wait to see it.
    fn is_reached(&self) {
        self.breaker.lock().good();
    }

    fn heard<B>(&self, answer: &Result<Response<B>, ClientError>) {
        if matches!(answer, Err(ClientError::Connect(_))) {
            self.breaker.lock().bad(now());
        }
    }

    /// What each request of a session says.
    fn head(&self, wire: &Wire) -> HeaderMap {
        let mut head = self.headers.clone();
        if let Some(session) = &wire.session {
            head.insert(SESSION_HEADER, session.clone());
        }
        if let Some(version) = wire.version.as_ref().filter(|version| version.has_header())
            && let Ok(version) = HeaderValue::from_str(version.as_str())
        {
            head.insert(VERSION_HEADER, version);
        }
        head
    }

    /// Where a 307 or 308 on the same origin points. Elsewhere our credentials must not go.
    fn moved<B>(&self, response: &Response<B>) -> Option<Uri> {
        if !matches!(response.status().as_u16(), 307 | 308) {
            return None;
        }
        let here = Url::parse(&self.url.to_string()).ok()?;
        let there = here
            .join(response.headers().get(LOCATION)?.to_str().ok()?)
            .ok()?;
        (here.origin() == there.origin())
            .then(|| there.as_str().parse().ok())
            .flatten()
    }
}

#[expect(clippy::disallowed_methods, reason = "who rests is told by the clock")]
fn now() -> Instant {
    Instant::now()
}
