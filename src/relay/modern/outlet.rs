//! The request of a modern client that is attached to a call: where notifications and the outcome go.

use bytes::Bytes;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;

use super::super::deliver::Item;
use super::super::streams::PIPE;
use super::super::{Answer, EventPipe};
use crate::error::Error;
use crate::protocol::client_modern::Level;

/// What a client gets, in the end.
pub(super) type Head = oneshot::Receiver<Result<Answer, Error>>;

/// One HTTP request of a client, not answered yet.
#[derive(Debug)]
pub(super) struct Outlet {
    /// Its JSON-RPC id, as JSON text.
    pub(super) id: String,
    /// Its progress token, as JSON text.
    pub(super) token: Option<String>,
    /// The log level that it wants.
    pub(super) level: Option<Level>,
    head: Option<oneshot::Sender<Result<Answer, Error>>>,
    pipe: Option<Sender<Item>>,
}

impl Outlet {
    /// For a request, and what its client gets.
    pub(super) fn new(id: &str, token: Option<&str>, level: Option<Level>) -> (Self, Head) {
        let (head, answer) = oneshot::channel();
        let outlet = Self {
            id: id.to_owned(),
            token: token.map(str::to_owned),
            level,
            head: Some(head),
            pipe: None,
        };
        (outlet, answer)
    }

    /// Whether nothing was sent yet, so that the answer can still be a plain body.
    pub(super) fn is_undecided(&self) -> bool {
        self.head.is_some()
    }

    /// Makes the answer a stream.
    pub(super) fn open(&mut self) {
        if let Some(head) = self.head.take() {
            let (pipe, rest) = channel(PIPE);
            self.pipe = Some(pipe);
            let _gone = head.send(Ok(Answer::Events(EventPipe::alone(Vec::new(), rest))));
        }
    }

    /// Sends a notification. A client that reads too slowly misses some: they are worth less than
    /// the call.
    pub(super) fn forward(&mut self, notice: Bytes) {
        self.open();
        if let Some(pipe) = &self.pipe {
            let _missed = pipe.try_send(Item::Notice(notice));
        }
    }

    /// Sends the outcome, with the HTTP status that goes with it where it can still have one.
    pub(super) async fn finish(mut self, status: u16, response: Bytes) {
        match (self.head.take(), self.pipe.take()) {
            (Some(head), _) => {
                let _gone = head.send(Ok(Answer::Json(status, response)));
            }
            (None, Some(pipe)) => {
                let sending = pipe.send(Item::Outcome(response));
                let _gone = tokio::time::timeout(LAST_WORD, sending).await;
            }
            (None, None) => {}
        }
    }

    /// Sends an error of the gateway's.
    pub(super) async fn fail(mut self, error: Error, server: &str) {
        let body = error.body(Some(&self.id), Some(server));
        match self.head.take() {
            Some(head) => {
                let _gone = head.send(Err(error));
            }
            None => self.finish(200, body).await,
        }
    }

    /// Waits until the client has closed the request.
    pub(super) async fn gone(&mut self) {
        match (&mut self.head, &self.pipe) {
            (Some(head), _) => head.closed().await,
            (None, Some(pipe)) => pipe.closed().await,
            (None, None) => std::future::pending().await,
        }
    }
}

/// How long the last word waits for a client that does not read.
const LAST_WORD: std::time::Duration = std::time::Duration::from_secs(10);
