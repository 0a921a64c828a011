//! HTTP+SSE, the transport of 2024-11-05, for clients that know no other: `GET /mcp/{server}/sse` opens the
//! stream that is their session, and `POST /mcp/{server}/messages` takes what they have to say.
//!
//! Whatever concerns a request that could be read comes on the stream, as its response; the HTTP status says
//! what concerns the POST. Official SDKs give the connection up for a status of 400 and more.
//!
//! # Invariants
//! - Each POST is authenticated as the stream was, and must come from who opened that.
//! - The address that a client is told is made from the configured public URL, never from a request.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use url::form_urlencoded;

use super::body::RequestBody;
use super::mcp::Refused;
use super::reply::{self, Response};
use super::stream::EventBody;
use super::visit::Visit;
use crate::config::LimitAnswer;
use crate::error::Error;
use crate::protocol::client_legacy::{Accept, Posted, is_json, version_fits};
use crate::protocol::client_modern;
use crate::protocol::message::{self, Message};
use crate::protocol::sse;
use crate::protocol::version::SESSION_HEADER;
use crate::relay::batch::{Batch, Member};
use crate::relay::{Line, says_headless};

/// The parameter of the address to post to.
const PARAMETER: &str = "sessionId";

/// Puts the name of the session to where later versions have it, out of the address.
pub(super) fn name_session(headers: &mut HeaderMap, uri: &Uri) {
    headers.remove(SESSION_HEADER);
    let query = uri.query().unwrap_or_default();
    let named = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == PARAMETER);
    if let Some(Ok(mut id)) = named.map(|(_, id)| HeaderValue::from_str(&id)) {
        id.set_sensitive(true);
        headers.insert(SESSION_HEADER, id);
    }
}

impl Visit<'_> {
    /// Opens a stream, which becomes a session with the `initialize` that is posted to it.
    pub(super) fn open_line(&self) -> Result<Response, Refused> {
        if !Accept::read(&self.headers).events {
            return Err(Error::NotAcceptable.into());
        }
        let config = &self.front.0.config;
        let relay = &self.front.0.relay;
        // Whoever asked for a stream can't read an error in a 200.
        let strict = |error| Refused {
            strict: true,
            ..Refused::from(error)
        };
        let (line, pipe) = relay
            .open_line(self.server, &self.identity.principal, self.left())
            .map_err(strict)?;
        let address = format!(
            "{}/mcp/{}/messages?{PARAMETER}={}",
            config.public_url.path(),
            self.server,
            String::from_utf8_lossy(line.id().as_bytes())
        );
        // Its end is the line's: what is posted with a fresh credential prolongs it.
        let body = EventBody::new(pipe, config.timeouts.keep_alive, None);
        Ok(reply::events(body.after(sse::endpoint(&address))))
    }

    /// Takes what is posted to a line.
    pub(super) async fn post_to_line(&self, body: &mut RequestBody) -> Result<Response, Refused> {
        let Some(id) = self.headers.get(SESSION_HEADER) else {
            let open = "the sessionId is missing; post to the address that the stream began with";
            return Err(Error::Misposted(open).into());
        };
        let (relay, principal) = (&self.front.0.relay, &self.identity.principal);
        let line = relay.line(self.server, principal, id.as_bytes(), self.left())?;
        if !is_json(&self.headers) {
            return Err(Error::MediaType.into());
        }
        let bytes = body
            .read(&self.headers, self.front.0.config.limits.body)
            .await?;
        if message::is_array(&bytes) {
            self.take_all_on(&line, &bytes).await?;
            return Ok(reply::empty(StatusCode::ACCEPTED));
        }
        let message = Message::parse(&bytes)?;
        match self.take_on(&line, message.clone()).await {
            Ok(()) => {}
            Err(error) if self.is_told_on_the_line(&error, &message) => {
                relay.refuse_on(&line, &error, &message).await;
            }
            Err(error) => {
                return Err(Refused {
                    error,
                    id: message.id().map(str::to_owned),
                    method: Some(message.method().to_owned()).filter(|it| !it.is_empty()),
                    strict: false,
                });
            }
        }
        Ok(reply::empty(StatusCode::ACCEPTED))
    }

    /// Whether an error is the response to a request, rather than a status of HTTP.
    fn is_told_on_the_line(&self, error: &Error, message: &Message) -> bool {
        let status = match self.front.0.config.limits.answer {
            LimitAnswer::JsonRpc => error.status(),
            LimitAnswer::Http => error.strict_status(),
        };
        status == 200 && message.kind() == message::Kind::Request
    }

    /// Takes one message.
    async fn take_on(&self, line: &Arc<Line>, message: Message) -> Result<(), Error> {
        let relay = &self.front.0.relay;
        let posted = Posted::read(&message)?;
        if posted == Posted::Initialize {
            return relay.begin(line, message, says_headless(&self.headers));
        }
        if client_modern::is_modern(&message) {
            return Err(Error::Misposted(
                "an HTTP+SSE session takes no messages of a version without sessions",
            ));
        }
        let session = relay.session_of(line)?;
        if !version_fits(&self.headers, session.version()) {
            return Err(Error::Version(session.version().to_string()));
        }
        match posted {
            Posted::Question => Err(Error::ServerOnly(message.method().to_owned())),
            Posted::Request | Posted::Initialize => {
                let admission = session.admit()?;
                session.call_on(line, message, admission).await
            }
            Posted::Answer => {
                let answering = async move { session.answer(&message).await };
                relay.carry(answering).await.map(drop)
            }
            Posted::Cancelled(_) | Posted::Initialized | Posted::Notification => {
                if !matches!(posted, Posted::Cancelled(_)) {
                    session.pass()?;
                }
                let telling = async move { session.notify(&message).await };
                relay.carry(telling).await.map(drop)
            }
        }
    }

    /// Takes the members of a batch, where the session's version has batches: each as if it had come by
    /// itself.
    async fn take_all_on(&self, line: &Line, bytes: &Bytes) -> Result<(), Error> {
        let relay = &self.front.0.relay;
        let session = relay.session_of(line)?;
        if !session.version().has_batches_on_a_line()
            || message::batch(bytes)?.iter().any(client_modern::is_modern)
        {
            return Err(Error::Batch);
        }
        let Batch { requests, others } = Self::read_all(&session, bytes)?;
        let told = Arc::clone(&session);
        let telling = async move { told.take_others(others).await };
        relay.carry(telling).await?;
        for Member { request, admission } in requests {
            let begun = match admission {
                Ok(admission) => session.call_on(line, request.clone(), admission).await,
                Err(error) => Err(error),
            };
            if let Err(error) = begun {
                relay.refuse_on(line, &error, &request).await;
            }
        }
        Ok(())
    }
}
