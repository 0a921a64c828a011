//! The messages of one stream on their way to a client.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tokio::sync::mpsc::Receiver;

use super::deliver::Item;
use super::session::LiveSession;

/// A stream that a client reads. Dropping it is "the client is gone": what it did not read goes back
/// to its session, where it finds another stream or waits for one.
#[derive(Debug)]
pub struct EventPipe {
    first: std::vec::IntoIter<Item>,
    rest: Receiver<Item>,
    home: Weak<LiveSession>,
}

impl EventPipe {
    /// A stream of this session: what was there before it, and what is to come.
    pub(super) fn new(first: Vec<Item>, rest: Receiver<Item>, home: &Arc<LiveSession>) -> Self {
        Self {
            first: first.into_iter(),
            rest,
            home: Arc::downgrade(home),
        }
    }

    /// A stream that gives nothing back.
    pub(crate) fn alone(first: Vec<Item>, rest: Receiver<Item>) -> Self {
        Self {
            first: first.into_iter(),
            rest,
            home: Weak::new(),
        }
    }

    /// The next message, when there is one; `None` at the end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        match self.first.next() {
            Some(item) => Poll::Ready(Some(item)),
            None => self.rest.poll_recv(cx),
        }
    }

    /// The next message; `None` at the end.
    pub async fn next(&mut self) -> Option<Item> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Takes no more: the stream ends with what is in it.
    pub fn close(&mut self) {
        self.rest.close();
    }
}

impl Drop for EventPipe {
    fn drop(&mut self) {
        let Some(home) = self.home.upgrade() else {
            return;
        };
        self.rest.close();
        let unread = self
            .first
            .by_ref()
            .chain(std::iter::from_fn(|| self.rest.try_recv().ok()));
        home.take_back(unread.collect());
    }
}
