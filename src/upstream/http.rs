//! A server over Streamable HTTP: messages go up by POST, answers come back as JSON or as an event
//! stream; from legacy servers questions too.
//!
//! # Invariants
//! - A request to a server is built afresh. Nothing of what the client sent is in it but the message.
//! - The version and session headers are those of this hop.
//! - Nothing is sent twice, except to the place that a redirect on the same origin names, which says
//!   that the first one did nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;

use super::client::{self, ClientError, HttpClient};
use super::era::Eras;
use super::trouble::{Head, Troubles};
use crate::config::{Config, Server, ServerName};
use crate::protocol::media::media_type;
use crate::protocol::server_legacy::Answered;
use crate::protocol::sse::{Decoder, Event, TooLarge};
use crate::protocol::version::{LAST_EVENT_HEADER, SESSION_HEADER, VERSION_HEADER, Version};

/// A server and how to reach it.
#[derive(Debug)]
pub struct HttpServer {
    name: ServerName,
    url: Uri,
    headers: HeaderMap,
    client: HttpClient,
    message_limit: usize,
    eras: Eras,
    troubles: Arc<Troubles>,
}

/// The session at a server that a request belongs to.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// The id that the server gave it; none when the server keeps no sessions.
    pub session: Option<HeaderValue>,
    /// The negotiated version; none before there is one.
    pub version: Option<Version>,
}

/// The head of a server's answer, and the body to come.
#[derive(Debug)]
pub struct Reply {
    /// What it is.
    pub what: Answered,
    /// The HTTP status.
    pub status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    limit: usize,
    troubles: Arc<Troubles>,
}

/// The events of a stream, as they arrive.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    decoder: Decoder,
}

/// Why a stream can't be read on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The connection broke.
    #[error("the stream broke")]
    Broken(#[source] hyper::Error),
    /// An event is larger than it may be.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl HttpServer {
    /// The server as configured.
    ///
    /// # Errors
    /// When TLS can't be set up.
    pub fn new(server: &Server, config: &Config) -> Result<Self, rustls::Error> {
        Ok(Self {
            name: server.name.clone(),
            // The configuration took it for a URL with a host, which a URI is too.
            url: server.url.as_str().parse().unwrap_or_default(),
            headers: server.headers.clone(),
            client: HttpClient::new(config.timeouts.connect)?,
            message_limit: config.limits.message.unwrap_or(usize::MAX),
            eras: Eras::new(server.era),
            troubles: Arc::new(Troubles::of(server)),
        })
    }

    /// Its name.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Where the operator is told what it does instead of answering.
    pub fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When no answer came. [`ClientError::Connect`] means that nothing was sent.
    pub async fn post(&self, wire: &Wire, message: Bytes) -> Result<Reply, ClientError> {
        let own = [(ACCEPT, BOTH), (CONTENT_TYPE, JSON)];
        let response = self.send(Method::POST, wire, &own, message).await?;
        Ok(self.reply(response, wire))
    }

    /// Sends a request that stands for itself, with these headers beside the configured ones. To drop
    /// the future or the answer is to cancel the request (2026-07-28 streamable-http).
    ///
    /// # Errors
    /// When no answer came. [`ClientError::Connect`] means that nothing was sent.
    pub async fn ask(&self, headers: &HeaderMap, message: Bytes) -> Result<Reply, ClientError> {
        let wire = Wire::default();
        let mut own = vec![(ACCEPT, BOTH), (CONTENT_TYPE, JSON)];
        own.extend(
            headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        let response = self.send(Method::POST, &wire, &own, message).await?;
        Ok(self.reply(response, &wire))
    }

    /// What is known about its era.
    pub(super) fn eras(&self) -> &Eras {
        &self.eras
    }

    /// Opens the standalone stream, after the event `last` where one was seen.
    ///
    /// # Errors
    /// When no answer came.
    pub async fn listen(&self, wire: &Wire, last: Option<&Bytes>) -> Result<Reply, ClientError> {
        let mut own = vec![(ACCEPT, EVENTS)];
        let last = last.and_then(|last| HeaderValue::from_maybe_shared(last.clone()).ok());
        own.extend(last.map(|last| (LAST_EVENT_HEADER, last)));
        let response = self.send(Method::GET, wire, &own, Bytes::new()).await?;
        Ok(self.reply(response, wire))
    }

    /// Ends the session at the server. What it answers doesn't matter: it may not offer this.
    ///
    /// # Errors
    /// When no answer came.
    pub async fn end(&self, wire: &Wire) -> Result<StatusCode, ClientError> {
        Ok(self
            .send(Method::DELETE, wire, &[], Bytes::new())
            .await?
            .status())
    }

    /// Sends a request, and once more to the place that a redirect on the same origin names.
    async fn send(
        &self,
        method: Method,
        wire: &Wire,
        own: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let build = |url: &Uri| {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = url.clone();
            *request.headers_mut() = self.head(wire, own);
            request
        };
        let response = self.client.send(build(&self.url)).await?;
        match self.moved(&response) {
            None => Ok(response),
            Some(place) => self.client.send(build(&place)).await,
        }
    }

    fn head(&self, wire: &Wire, own: &[(HeaderName, HeaderValue)]) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.extend(own.iter().cloned());
        if let Some(session) = &wire.session {
            headers.insert(SESSION_HEADER, session.clone());
        }
        if let Some(version) = wire.version.as_ref().filter(|version| version.has_header())
            && let Ok(version) = HeaderValue::from_str(version.as_str())
        {
            headers.insert(VERSION_HEADER, version);
        }
        headers
    }

    /// Where a 307 or 308 on the same origin points. Elsewhere our credentials must not go.
    fn moved(&self, response: &Response<Incoming>) -> Option<Uri> {
        if !matches!(response.status().as_u16(), 307 | 308) {
            return None;
        }
        let here = url::Url::parse(&self.url.to_string()).ok()?;
        let there = here
            .join(response.headers().get(LOCATION)?.to_str().ok()?)
            .ok()?;
        (here.origin() == there.origin())
            .then(|| there.as_str().parse().ok())
            .flatten()
    }

    fn reply(&self, response: Response<Incoming>, wire: &Wire) -> Reply {
        let (head, body) = response.into_parts();
        Reply {
            what: Answered::read(head.status, &head.headers, wire.session.is_some()),
            status: head.status,
            headers: head.headers,
            body,
            limit: self.message_limit,
            troubles: Arc::clone(&self.troubles),
        }
    }
}

impl Reply {
    /// What may be told of its head.
    pub fn head(&self) -> Head {
        let media = self.headers.get(CONTENT_TYPE);
        Head {
            what: self.what,
            status: self.status,
            media: media
                .map(|media| media_type(media.as_bytes()))
                .unwrap_or_default(),
        }
    }

    /// Where the operator is told what the server does instead of answering.
    pub fn troubles(&self) -> Arc<Troubles> {
        Arc::clone(&self.troubles)
    }

    /// The session that the server gave; only one of visible ASCII (2025-03-26 basic/transports).
    pub fn session(&self) -> Option<HeaderValue> {
        let id = self.headers.get(SESSION_HEADER)?;
        let visible = id
            .as_bytes()
            .iter()
            .all(|byte| (0x21..=0x7e).contains(byte));
        (visible && !id.is_empty()).then(|| {
            let mut id = id.clone();
            id.set_sensitive(true);
            id
        })
    }

    /// When the server wants to be asked again, where it says so in seconds.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self
            .headers
            .get(RETRY_AFTER)?
            .to_str()
            .ok()?
            .trim()
            .parse()
            .ok()?;
        Some(Duration::from_secs(seconds).min(Duration::from_hours(24)))
    }

    /// The body as a whole.
    ///
    /// # Errors
    /// When it breaks off or is too large.
    pub async fn whole(self) -> Result<Bytes, ClientError> {
        client::read(self.body, self.limit).await
    }

    /// The body as a stream of events.
    pub fn events(self) -> Events {
        Events {
            body: self.body,
            decoder: Decoder::new(self.limit),
        }
    }
}

impl Events {
    /// The next event; `None` at the end of the stream. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the stream breaks or an event is too large.
    pub async fn next(&mut self) -> Result<Option<Event>, StreamError> {
        loop {
            if let Some(event) = self.decoder.next_event()? {
                return Ok(Some(event));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame.map_err(StreamError::Broken)?.into_data() {
                        self.decoder.push(&data);
                    }
                }
            }
        }
    }
}
