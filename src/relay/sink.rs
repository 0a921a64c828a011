//! Where the answer to one request goes: a JSON body or a stream, decided as late as possible, so
//! that an early failure still has an HTTP status.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::channel;
use tokio::sync::oneshot;

use super::deliver::Item;
use super::session::LiveSession;
use super::streams::{PIPE, Pipe};
use super::{Answer, EventPipe};
use crate::error::Error;
use crate::protocol::client_legacy::Accept;
use crate::protocol::session::LegId;

/// How long the last word waits for a client that does not read.
const LAST_WORD: Duration = Duration::from_secs(10);

/// The answer's way to the client.
#[derive(Debug)]
pub(super) struct Sink {
    accept: Accept,
    head: Option<oneshot::Sender<Result<Answer, Error>>>,
    pipe: Option<Pipe>,
}

impl Sink {
    /// For a client that takes `accept`, and what the client gets.
    pub(super) fn new(accept: Accept) -> (Self, oneshot::Receiver<Result<Answer, Error>>) {
        let (head, answer) = oneshot::channel();
        (
            Self {
                accept,
                head: Some(head),
                pipe: None,
            },
            answer,
        )
    }

    /// A part of a stream that is open already.
    pub(super) fn shared(accept: Accept, pipe: Pipe) -> Self {
        Self {
            accept,
            head: None,
            pipe: Some(pipe),
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
        let unread = match (&self.pipe, self.head.take_if(|_| self.accept.events)) {
            (Some(pipe), _) if pipe.is_closed() => return,
            (Some(pipe), _) => {
                let waiting = session.state().streams.open_call(leg, pipe.clone());
                waiting
                    .into_iter()
                    .filter_map(|item| pipe.try_send(item).err())
                    .map(tokio::sync::mpsc::error::TrySendError::into_inner)
                    .collect()
            }
            (None, Some(head)) if !head.is_closed() => {
                let (pipe, rest) = channel(PIPE);
                let first = session.state().streams.open_call(leg, pipe.clone());
                self.pipe = Some(pipe);
                // When nobody takes the stream, dropping it gives back what was in it.
                let _gone = head.send(Ok(Answer::Events(EventPipe::new(first, rest, session))));
                Vec::new()
            }
            (None, _) => return,
        };
        session.take_back(unread);
    }

    /// Makes the answer a stream that belongs to no session; gives what is written to, unless nobody
    /// is there to read.
    pub(super) fn open_alone(&mut self) -> Option<Pipe> {
        if let Some(head) = self.head.take_if(|_| self.accept.events) {
            let (pipe, rest) = channel(PIPE);
            head.send(Ok(Answer::Events(EventPipe::alone(Vec::new(), rest))))
                .ok()?;
            self.pipe = Some(pipe);
        }
        self.pipe.clone()
    }

    /// What is written to, where the answer has become a stream.
    pub(super) fn pipe(&self) -> Option<Pipe> {
        self.pipe.clone()
    }

    /// The outcome: a response, with the HTTP status that goes with it.
    pub(super) async fn finish(mut self, status: u16, response: Bytes) {
        match self.head.take() {
            Some(head) if self.accept.json => {
                let _gone = head.send(Ok(Answer::Json(status, response)));
            }
            Some(head) => {
                let _gone = head.send(Ok(Answer::one_event(&response)));
            }
            None => {
                if let Some(pipe) = &self.pipe {
                    let sending = pipe.send(Item::Outcome(response));
                    let _gone = tokio::time::timeout(LAST_WORD, sending).await;
                }
            }
        }
    }

    /// The outcome is an error of the gateway's. `body` is what it says where a stream is open.
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
