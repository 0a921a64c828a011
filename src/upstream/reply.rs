//! A server's answer as it arrives: its head, and then a body or the events of a stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt as _;
use tokio::sync::mpsc::Receiver;

use super::client::{self, ClientError, Incoming, Listening};
use super::link::{Answers, Posted};
use super::trouble::{Head, Troubles};
use crate::protocol::server_legacy::Answered;
use crate::protocol::sse::{Decoder, Event, TooLarge};
use crate::protocol::version::SESSION_HEADER;

/// The head of a server's answer, and the body to come.
#[derive(Debug)]
pub struct Reply {
    /// What it is.
    pub what: Answered,
    /// The HTTP status.
    pub status: StatusCode,
    headers: HeaderMap,
    body: Source,
    limit: usize,
    troubles: Arc<Troubles>,
}

/// The events of a stream, as they arrive.
#[derive(Debug)]
pub struct Events {
    body: Source,
    decoder: Decoder,
    limit: usize,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Where an answer comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// An HTTP answer.
    Http(Incoming),
    /// An HTTP answer that may take long.
    Stream(Listening),
    /// A link: what comes for one request.
    Request(Answers),
    /// A link: what belongs to no request.
    Rest(Receiver<Bytes>),
    /// Nothing comes.
    Nothing,
}

/// Why a stream can't be read on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The connection broke.
    #[error("the stream broke")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An event is larger than it may be.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

impl Reply {
    /// An HTTP answer to a request that named a session or did not; no message in it may be larger than
    /// `limit` bytes.
    pub(super) fn new(
        response: Response<Source>,
        in_session: bool,
        limit: usize,
        troubles: Arc<Troubles>,
    ) -> Self {
        let (head, body) = response.into_parts();
        Self {
            what: Answered::read(head.status, &head.headers, in_session),
            status: head.status,
            headers: head.headers,
            body,
            limit,
            troubles,
        }
    }

    /// What a link answers.
    pub(super) fn of_link(posted: Posted, limit: usize, troubles: Arc<Troubles>) -> Self {
        let (what, status, body) = match posted {
            Posted::Refused(response) => {
                return Self::new(response.map(Source::Http), true, limit, troubles);
            }
            Posted::Request(answers) => {
                (Answered::Events, StatusCode::OK, Source::Request(answers))
            }
            Posted::Sent => (Answered::Accepted, StatusCode::ACCEPTED, Source::Nothing),
            Posted::Ended => (
                Answered::SessionGone,
                StatusCode::NOT_FOUND,
                Source::Nothing,
            ),
        };
        Self {
            limit,
            ..Self::made(what, status, body, troubles)
        }
    }

    /// What belongs to no request on a link; none, when somebody else reads it.
    pub(super) fn of_rest(rest: Option<Receiver<Bytes>>, troubles: Arc<Troubles>) -> Self {
        let (what, status, body) = match rest {
            Some(rest) => (Answered::Events, StatusCode::OK, Source::Rest(rest)),
            None => (
                Answered::NotOffered,
                StatusCode::METHOD_NOT_ALLOWED,
                Source::Nothing,
            ),
        };
        Self::made(what, status, body, troubles)
    }

    fn made(what: Answered, status: StatusCode, body: Source, troubles: Arc<Troubles>) -> Self {
        Self {
            what,
            status,
            headers: HeaderMap::new(),
            body,
            limit: usize::MAX,
            troubles,
        }
    }

    /// What may be told of its head.
    pub fn head(&self) -> Head {
        Head {
            what: self.what,
            status: self.status,
            media: self.headers.get(CONTENT_TYPE).cloned(),
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
        match self.body {
            Source::Http(body) => client::read(body, self.limit).await,
            Source::Stream(body) => client::read(body, self.limit).await,
            Source::Request(mut answers) => Ok(answers.next().await.unwrap_or_default()),
            Source::Rest(_) | Source::Nothing => Ok(Bytes::new()),
        }
    }

    /// The body as a stream of events.
    pub fn events(self) -> Events {
        Events {
            body: self.body,
            decoder: Decoder::new(self.limit),
            limit: self.limit,
        }
    }
}

impl Events {
    /// What was wanted of them has come: the rest need not be waited for.
    pub fn finish(&mut self) {
        if let Source::Http(body) = &mut self.body {
            body.finish();
        }
    }

    /// The next event; `None` at the end of the stream. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the stream breaks or an event is too large.
    pub async fn next(&mut self) -> Result<Option<Event>, StreamError> {
        loop {
            if let Some(event) = self.decoder.next_event()? {
                return Ok(Some(event));
            }
            let frame = match &mut self.body {
                Source::Http(body) => body.frame().await.map(|it| it.map_err(BoxError::from)),
                Source::Stream(body) => body.frame().await.map(|it| it.map_err(BoxError::from)),
                Source::Request(answers) => {
                    let next = answers.next().await;
                    if next.as_ref().is_some_and(Bytes::is_empty) {
                        return Err(TooLarge(self.limit).into());
                    }
                    return Ok(next.map(event));
                }
                Source::Rest(rest) => return Ok(rest.recv().await.map(event)),
                Source::Nothing => return Ok(None),
            };
            match frame {
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

fn event(data: Bytes) -> Event {
    Event {
        data,
        ..Event::default()
    }
}
