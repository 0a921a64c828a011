//! Where the answer to one request goes: a JSON body or a stream, decided as late as possible, so
//! that an early failure still has an HTTP status.

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

    /// A part of a stream that several answers share.
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

    /// Whether the client has no head of an answer yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.head.is_some()
    }

    /// Makes the answer a stream, if the client takes one.
    pub(super) async fn open(&mut self, session: &LiveSession, leg: LegId) {
        if let Some(pipe) = &self.pipe {
            let waiting = session.state().streams.open_call(leg, pipe.clone());
            for event in waiting {
                let _gone = pipe.send(event).await;
            }
            return;
        }
        let Some(head) = self.head.take_if(|_| self.accept.events) else {
            return;
        };
        let (pipe, rest) = channel(PIPE);
        let first = session.state().streams.open_call(leg, pipe.clone());
        self.pipe = Some(pipe);
        // Whether anybody still reads it is found out by writing to it.
        let _gone = head.send(Ok(Answer::Events(EventPipe { first, rest })));
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
                    let _gone = pipe.send(Item::Outcome(response)).await;
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
        Self::Events(EventPipe {
            first: vec![Item::Outcome(message.clone())],
            rest,
        })
    }
}
