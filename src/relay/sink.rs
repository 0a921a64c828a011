//! Where the answer to one request goes: a JSON body or a stream, decided as late as possible, so
//! that an early failure still has an HTTP status.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::channel;
use tokio::sync::oneshot;

use super::deliver::{Item, LAST_WORD};
use super::session::LiveSession;
use super::streams::{PIPE, Pipe};
use super::{Answer, EventPipe};
use crate::error::Error;
use crate::protocol::client_legacy::Accept;
use crate::protocol::event_id::Name;
use crate::protocol::session::LegId;

/// The answer's way to the client.
#[derive(Debug)]
pub(super) struct Sink {
    accept: Accept,
    head: Option<oneshot::Sender<Result<Answer, Error>>>,
    place: Option<Place>,
}

/// What messages go to that belong to the answer.
#[derive(Debug)]
enum Place {
    /// A stream of the session that is open already, for several answers.
    Part(Name),
    /// A reader of ours.
    Own(Pipe),
}

impl Sink {
    /// For a client that takes `accept`, and what the client gets.
    pub(super) fn new(accept: Accept) -> (Self, oneshot::Receiver<Result<Answer, Error>>) {
        let (head, answer) = oneshot::channel();
        (
            Self {
                accept,
                head: Some(head),
                place: None,
            },
            answer,
        )
    }

    /// A part of a stream that is open already.
    pub(super) fn part_of(accept: Accept, stream: Name) -> Self {
        Self {
            accept,
            head: None,
            place: Some(Place::Part(stream)),
        }
    }

    /// For a reader of ours.
    pub(super) fn shared(accept: Accept, pipe: Pipe) -> Self {
        Self {
            accept,
            head: None,
            place: Some(Place::Own(pipe)),
        }
    }

    /// Whether the answer could still become a stream.
    pub(super) fn is_undecided(&self) -> bool {
        self.accept.events && self.head.is_some()
    }

    /// Whether the client can be asked something while it waits for the answer.
    pub(super) fn can_ask(&self) -> bool {
        self.accept.events
    }

    /// Whether the client has no head of an answer yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.head.is_some()
    }

    /// Makes the answer a stream, if the client takes one and is still there. What waited for a
    /// stream is the first thing in it.
    pub(super) fn open(&mut self, session: &Arc<LiveSession>, leg: LegId) {
        if let Some(head) = self.head.take_if(|_| self.accept.events) {
            if head.is_closed() {
                return;
            }
            let (pipe, rest) = channel(PIPE);
            let opened = {
                let streams = &mut session.state().streams;
                let opened = streams.open_calls(1, pipe);
                streams.join(leg, opened.name);
                opened
            };
            // When nobody takes the stream, dropping it gives back what was in it.
            let _gone = head.send(Ok(Answer::Events(EventPipe::new(opened, rest, session))));
            return;
        }
        let streams = &mut session.state().streams;
        match &self.place {
            Some(_) if streams.has_call(leg) => {}
            Some(Place::Part(stream)) => streams.join(leg, *stream),
            Some(Place::Own(pipe)) => {
                let opened = streams.open_calls(1, pipe.clone());
                streams.join(leg, opened.name);
                for item in opened.first {
                    // Full at once: it waits for the next one.
                    if let Err(full) = pipe.try_send(item) {
                        streams.waiting.hold(full.into_inner());
                    }
                }
            }
            None => {}
        }
    }

    /// Makes the answer a stream that belongs to no session; gives what is written to, unless nobody
    /// is there to read.
    pub(super) fn open_alone(&mut self) -> Option<Pipe> {
        if let Some(head) = self.head.take_if(|_| self.accept.events) {
            let (pipe, rest) = channel(PIPE);
            head.send(Ok(Answer::Events(EventPipe::alone(Vec::new(), rest))))
                .ok()?;
            self.place = Some(Place::Own(pipe));
        }
        self.pipe()
    }

    /// What is written to, where the answer has become a stream of its own.
    pub(super) fn pipe(&self) -> Option<Pipe> {
        match &self.place {
            Some(Place::Own(pipe)) => Some(pipe.clone()),
            _ => None,
        }
    }

    /// The outcome, where no stream of the session owes it: a response, with the HTTP status that goes
    /// with it.
    pub(super) async fn finish(self, status: u16, response: Bytes) {
        match (self.head, &self.place) {
            (Some(head), _) if self.accept.json => {
                let _gone = head.send(Ok(Answer::Json(status, response)));
            }
            (Some(head), _) => {
                let _gone = head.send(Ok(Answer::one_event(&response)));
            }
            (None, Some(Place::Own(pipe))) => {
                let sending = pipe.send(Item::Outcome(response));
                let _gone = tokio::time::timeout(LAST_WORD, sending).await;
            }
            (None, _) => {}
        }
    }

    /// The outcome, where no stream of the session owes it, is an error of the gateway's. `body` is what it
    /// says where a stream is open.
    pub(super) async fn fail(mut self, error: Error, body: Bytes) {
        match self.head.take() {
            Some(head) => {
                let _gone = head.send(Err(error));
            }
            None => self.finish(200, body).await,
        }
    }
}

impl Answer {
    /// A stream of one event.
    pub(super) fn one_event(message: &Bytes) -> Self {
        let (_, rest) = channel(1);
        Self::Events(EventPipe::alone(vec![Item::Outcome(message.clone())], rest))
    }
}
