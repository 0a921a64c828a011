//! A request to an endpoint by somebody who is known: reads what is posted and passes it to the
//! relay.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::body::RequestBody;
use super::mcp::Refused;
use super::reply::{self, Response};
use super::stream::EventBody;
use super::{Front, today};
use crate::auth::Identity;
use crate::config::ServerName;
use crate::error::Error;
use crate::protocol::client_legacy::{Accept, Posted, is_json, version_fits};
use crate::protocol::client_modern::{self, Request};
use crate::protocol::message::{self, Kind, Message};
use crate::protocol::version::{LAST_EVENT_HEADER, SESSION_HEADER};
use crate::relay::batch::{Batch, Member};
use crate::relay::{Answer, Ending, EventPipe, LiveSession, SessionId, says_headless};

/// A request, as far as it is understood.
pub(super) struct Visit<'f> {
    pub(super) front: &'f Front,
    pub(super) server: &'f ServerName,
    pub(super) headers: HeaderMap,
    pub(super) identity: Identity,
}

impl Visit<'_> {
    /// Takes what is posted.
    pub(super) async fn post(&self, body: &mut RequestBody) -> Result<Response, Refused> {
        if !is_json(&self.headers) {
            return Err(Error::MediaType.into());
        }
        let accept = Accept::read(&self.headers);
        if !accept.json && !accept.events {
            return Err(Error::NotAcceptable.into());
        }
        let bytes = body
            .read(&self.headers, self.front.0.config.limits.body)
            .await?;
        if message::is_array(&bytes) {
            return Ok(Box::pin(self.take_all(&bytes, accept)).await?);
        }
        let message = Message::parse(&bytes)?;
        let modern = client_modern::is_modern(&message)
            || (client_modern::names_modern(&self.headers) && message.method() != "initialize");
        let id = message.id().map(str::to_owned);
        let method = Some(message.method().to_owned()).filter(|it| !it.is_empty());
        let taken = if modern {
            Box::pin(self.take_modern(&message)).await
        } else {
            self.take(message, accept).await
        };
        taken.map_err(|error| Refused {
            error,
            id,
            method,
            strict: false,
        })
    }

    /// Opens the client's standalone stream, or again a stream that it lost.
    pub(super) fn listen(&self) -> Result<Response, Refused> {
        if !Accept::read(&self.headers).events {
            return Err(Error::NotAcceptable.into());
        }
        // Whoever asked for a stream can't read an error in a 200.
        let strict = |error| Refused {
            strict: true,
            ..Refused::from(error)
        };
        let last = self.headers.get(LAST_EVENT_HEADER);
        let last = last.and_then(|last| last.to_str().ok());
        let pipe = self.session()?.listen(last).map_err(strict)?;
        Ok(self.stream(pipe))
    }

    /// A stream that ends with the credential that opened it. What a call goes on with then is read by who
    /// comes back with a fresh one; a modern client that is cut off has cancelled (2026-07-28
    /// streamable-http).
    fn stream(&self, pipe: EventPipe) -> Response {
        let keep_alive = self.front.0.config.timeouts.keep_alive;
        reply::events(EventBody::new(pipe, keep_alive, self.left()))
    }

    /// For how much longer the credential counts, if it does not for ever.
    pub(super) fn left(&self) -> Option<Duration> {
        let left = |expires: SystemTime| expires.duration_since(today()).unwrap_or(Duration::ZERO);
        self.identity.expires.map(left)
    }

    /// Ends the session.
    pub(super) async fn end(&self) -> Result<Response, Refused> {
        let ending = self.session()?.end(Ending::Deleted);
        let ended = async move {
            ending.await;
            Ok(())
        };
        self.front.0.relay.carry(ended).await?;
        Ok(reply::empty(StatusCode::OK))
    }

    /// Takes one message. What is no call is boxed, here and elsewhere: each request moves the future of
    /// all that it may be.
    async fn take(&self, message: Message, accept: Accept) -> Result<Response, Error> {
        let relay = &self.front.0.relay;
        let posted = Posted::read(&message)?;
        if posted == Posted::Initialize {
            return Box::pin(self.open(message, accept)).await;
        }
        let session = self.session()?;
        let answer = match posted {
            Posted::Question => return Err(Error::ServerOnly(message.method().to_owned())),
            Posted::Request | Posted::Initialize => {
                let admission = session.admit()?;
                session.call(message, accept, admission).await?
            }
            Posted::Answer => {
                let answering = async move { session.answer(&message).await };
                relay.carry(answering).await?
            }
            Posted::Cancelled(_) | Posted::Initialized | Posted::Notification => {
                if !matches!(posted, Posted::Cancelled(_)) {
                    session.pass()?;
                }
                let telling = async move { session.notify(&message).await };
                relay.carry(telling).await?
            }
        };
        Ok(self.respond(answer, None))
    }

    /// Takes one message of a modern client.
    async fn take_modern(&self, message: &Message) -> Result<Response, Error> {
        match message.kind() {
            Kind::Request => {}
            // Cancelling is closing the stream; there is nothing that a notification could say.
            Kind::Notification => return Ok(reply::empty(StatusCode::ACCEPTED)),
            Kind::Result | Kind::Error => return Err(Error::ResponsePosted),
        }
        let request = Request::read(message, &self.headers)?;
        let relay = &self.front.0.relay;
        let principal = &self.identity.principal;
        let answer = relay
            .modern(self.server, principal, message, &request, &self.headers)
            .await?;
        Ok(self.respond(answer, None))
    }

    /// Opens a session. A session that the client already names is left alone: clients that lost
    /// theirs often name it still.
    async fn open(&self, message: Message, accept: Accept) -> Result<Response, Error> {
        let relay = self.front.0.relay.clone();
        let (server, principal) = (self.server.clone(), self.identity.principal.clone());
        let headless = says_headless(&self.headers);
        let opening = async move {
            let opened = relay.open(&server, &principal, &message, accept, headless);
            opened.await
        };
        let (answer, id) = self.front.0.relay.carry(opening).await?;
        Ok(self.respond(answer, id.as_ref()))
    }

    /// Takes the members of a batch, where the session's version has batches. All are read, and the
    /// limits asked, before anything is done.
    async fn take_all(&self, bytes: &Bytes, accept: Accept) -> Result<Response, Error> {
        // With anything modern in it, what session is named means nothing (2026-07-28 basic: no batches).
        if message::batch(bytes).is_ok_and(|all| all.iter().any(client_modern::is_modern)) {
            return Err(Error::Batch);
        }
        let session = self.session().map_err(|error| match error {
            Error::MissingSession => Error::Batch,
            other => other,
        })?;
        if !session.version().has_batches() {
            return Err(Error::Batch);
        }
        let Batch { requests, others } = Self::read_all(&session, bytes)?;
        let carried = async move {
            session.take_others(others).await?;
            if requests.is_empty() {
                Ok(Answer::Accepted)
            } else {
                session.call_all(requests, accept).await
            }
        };
        let answer = self.front.0.relay.carry(carried).await?;
        Ok(self.respond(answer, None))
    }

    /// Reads the members of a batch, and asks the limits about each.
    pub(super) fn read_all(session: &LiveSession, bytes: &Bytes) -> Result<Batch, Error> {
        let mut requests = Vec::new();
        let mut others = Vec::new();
        for message in message::batch(bytes)? {
            match Posted::read(&message)? {
                Posted::Initialize | Posted::Question => return Err(Error::Batch),
                Posted::Request => {
                    let admission = session.admit();
                    requests.push(Member {
                        request: message,
                        admission: admission.map_err(Error::from),
                    });
                }
                Posted::Initialized | Posted::Notification => {
                    session.pass()?;
                    others.push(message);
                }
                Posted::Answer | Posted::Cancelled(_) => others.push(message),
            }
        }
        Ok(Batch { requests, others })
    }

    /// The session that the request names, if it is the caller's and speaks the version named.
    fn session(&self) -> Result<Arc<LiveSession>, Error> {
        let mut named = self.headers.get_all(SESSION_HEADER).iter();
        let id = named.next().ok_or(Error::MissingSession)?;
        if named.next().is_some() {
            return Err(Error::UnknownSession);
        }
        let relay = &self.front.0.relay;
        let session = relay.session(self.server, &self.identity.principal, id.as_bytes())?;
        if version_fits(&self.headers, session.version()) {
            Ok(session)
        } else {
            Err(Error::Version(session.version().to_string()))
        }
    }

    fn respond(&self, answer: Answer, id: Option<&SessionId>) -> Response {
        let mut response = match answer {
            Answer::Accepted => reply::empty(StatusCode::ACCEPTED),
            Answer::Json(status, body) => {
                reply::json(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), body)
            }
            Answer::Events(pipe) => self.stream(pipe),
        };
        if let Some(Ok(mut id)) = id.map(|id| HeaderValue::from_bytes(id.as_bytes())) {
            id.set_sensitive(true);
            response.headers_mut().insert(SESSION_HEADER, id);
        }
        response
    }
}
