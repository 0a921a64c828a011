//! What a connection and the requests on it know of each other: whether one is being answered, whether all
//! that was said is written, and the stream of events that an answer is.
//!
//! # Invariants
//! One task drives a connection and all that is on it, so nothing here is ever waited for; the atomics
//! and the lock are there because that task moves between threads.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderMap, Version};
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use super::reply;
use super::stream::EventBody;
use crate::auth::LastToken;

/// What is known of one connection.
#[derive(Default)]
pub(super) struct Seat {
    /// Requests that have begun.
    asked: AtomicUsize,
    /// One is being answered.
    busy: AtomicBool,
    /// Something written was not flushed yet.
    unflushed: AtomicBool,
    /// Something was read since the last answer was given.
    read: AtomicBool,
    events: Mutex<Option<Events>>,
    /// The access token that came last.
    pub(super) last: LastToken,
}

/// The events that are the answer being given.
pub(super) struct Events {
    pub(super) body: Pin<Box<EventBody>>,
    pub(super) framing: Framing,
    /// The head is written, for the body was asked for.
    begun: bool,
    /// Nothing of the request is on its way any more.
    whole: bool,
}

/// How the end of a body without a length is told (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Framing {
    /// By a last chunk, or else by the end of the connection.
    pub(super) chunked: bool,
    /// Whether the connection ends with it anyway.
    pub(super) last: bool,
}

impl Framing {
    /// How it is told to the sender of this request.
    pub(super) fn of(version: Version, headers: &HeaderMap) -> Self {
        let closes = |value: &http::HeaderValue| {
            let mut tokens = value.as_bytes().split(|byte| *byte == b',');
            tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(b"close"))
        };
        let chunked = version == Version::HTTP_11;
        Self {
            chunked,
            last: !chunked || headers.get_all(CONNECTION).iter().any(closes),
        }
    }
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It waits for a request, or for the rest of its head.
    Waiting,
    /// It has written all events that there are.
    Streaming,
    Other,
}

impl Seat {
    /// A request has begun.
    pub(super) fn begin(self: &Arc<Self>) -> Turn {
        self.asked.fetch_add(1, Relaxed);
        self.busy.store(true, Relaxed);
        Turn(Arc::clone(self))
    }

    /// How many requests have begun.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Relaxed)
    }

    pub(super) fn doing(&self) -> Doing {
        if self.unflushed.load(Relaxed) {
            return Doing::Other;
        }
        if !self.busy.load(Relaxed) {
            return Doing::Waiting;
        }
        let events = self.events.lock();
        match &*events {
            Some(events) if events.begun && events.whole => Doing::Streaming,
            _ => Doing::Other,
        }
    }

    /// Whether something was read that no request was made of yet, as far as is known.
    pub(super) fn has_read(&self) -> bool {
        self.read.load(Relaxed)
    }

    /// Takes the events out of the answer, for somebody else to write them.
    pub(super) fn take_events(&self) -> Option<Events> {
        self.events.lock().take()
    }

    pub(super) fn note_read(&self) {
        self.read.store(true, Relaxed);
    }

    pub(super) fn note_written(&self) {
        self.unflushed.store(true, Relaxed);
    }

    pub(super) fn note_flushed(&self) {
        self.unflushed.store(false, Relaxed);
    }
}

/// A request that is being answered; its end is that of the answer.
pub(super) struct Turn(Arc<Seat>);

impl Turn {
    pub(super) fn last_token(&self) -> &LastToken {
        &self.0.last
    }

    /// The body of the answer. `whole` tells whether nothing of the request is on its way any more.
    pub(super) fn answer(self, body: reply::Body, framing: Framing, whole: bool) -> Outgoing {
        let rest = match body {
            reply::Body::Empty => Rest::Nothing,
            reply::Body::Full(bytes) => Rest::Once(bytes),
            reply::Body::Events(body) => {
                *self.0.events.lock() = Some(Events {
                    body,
                    framing,
                    begun: false,
                    whole,
                });
                Rest::Events
            }
        };
        Outgoing { rest, turn: self }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let events = self.0.events.lock().take();
        self.0.busy.store(false, Relaxed);
        self.0.read.store(false, Relaxed);
        drop(events);
    }
}

/// The body of an answer on its way.
pub(super) struct Outgoing {
    rest: Rest,
    turn: Turn,
}

enum Rest {
    Nothing,
    Once(Bytes),
    Events,
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        match std::mem::replace(&mut this.rest, Rest::Nothing) {
            Rest::Nothing => Poll::Ready(None),
            Rest::Once(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Rest::Events => {
                this.rest = Rest::Events;
                let mut events = this.turn.0.events.lock();
                let Some(events) = events.as_mut() else {
                    return Poll::Ready(None);
                };
                events.begun = true;
                events.body.as_mut().poll_frame(cx)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.rest {
            Rest::Nothing => true,
            Rest::Once(bytes) => bytes.is_empty(),
            Rest::Events => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.rest {
            Rest::Nothing => SizeHint::with_exact(0),
            Rest::Once(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Rest::Events => SizeHint::default(),
        }
    }
}
