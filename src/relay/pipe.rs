//! The messages of one stream on their way to a client.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tokio::sync::mpsc::Receiver;

use super::deliver::Item;
use super::now;
use super::session::LiveSession;
use super::streams::Opened;
use crate::protocol::event_id::{self, Name};

/// A stream that a client reads. Dropping it is "the client is gone": what it did not read goes back
/// to its session, where it finds another stream or waits for one.
#[derive(Debug)]
pub struct EventPipe {
    /// What it carried before, for another reader.
    again: std::vec::IntoIter<(u64, Item)>,
    first: std::vec::IntoIter<Item>,
    rest: Receiver<Item>,
    /// The number of the next event, of those that were not there before.
    next: u64,
    /// The event that the stream has to begin with.
    start: Option<u64>,
    home: Option<Home>,
}

/// The session that a stream belongs to.
#[derive(Debug)]
struct Home {
    session: Weak<LiveSession>,
    name: Name,
    reader: u32,
    /// What marks the ids of its events; none where they have none.
    mark: Option<String>,
}

/// What a client reads next.
#[derive(Debug)]
pub struct Event {
    /// Its id, where the client may come back with it.
    pub id: Option<String>,
    /// What it says; nothing in one that only gives the id to come back with.
    pub item: Option<Item>,
}

impl EventPipe {
    /// A stream of this session.
    pub(super) fn new(opened: Opened, rest: Receiver<Item>, home: &Arc<LiveSession>) -> Self {
        let version = home.version();
        let resumed = opened.reader > 0;
        let start = (!resumed && home.is_resumable() && version.has_priming()).then_some(0);
        let mark = home.is_resumable().then(|| home.mark().to_owned());
        Self {
            again: opened.again.into_iter(),
            first: opened.first.into_iter(),
            rest,
            next: opened.from,
            start,
            home: Some(Home {
                session: Arc::downgrade(home),
                name: opened.name,
                reader: opened.reader,
                mark,
            }),
        }
    }

    /// A stream that gives nothing back.
    pub(crate) fn alone(first: Vec<Item>, rest: Receiver<Item>) -> Self {
        Self {
            again: Vec::new().into_iter(),
            first: first.into_iter(),
            rest,
            next: 0,
            start: None,
            home: None,
        }
    }

    /// The next event, when there is one; `None` at the end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if let Some(number) = self.start.take() {
            return Poll::Ready(Some(self.event(number, None)));
        }
        if let Some((number, item)) = self.again.next() {
            return Poll::Ready(Some(self.event(number, Some(item))));
        }
        let item = match self.first.next() {
            Some(item) => Poll::Ready(Some(item)),
            None => self.rest.poll_recv(cx),
        };
        item.map(|item| {
            let number = self.next;
            self.next += 1;
            item.map(|item| self.event(number, Some(item)))
        })
    }

    fn event(&self, number: u64, item: Option<Item>) -> Event {
        let id = self.home.as_ref().and_then(|home| {
            let mark = home.mark.as_deref()?;
            Some(event_id::write(mark, home.name, number))
        });
        Event { id, item }
    }

    /// The next message; `None` at the end.
    pub async fn next(&mut self) -> Option<Item> {
        loop {
            let event = std::future::poll_fn(|cx| self.poll_next(cx)).await?;
            if event.item.is_some() {
                return event.item;
            }
        }
    }

    /// Takes no more: the stream ends with what is in it.
    pub fn close(&mut self) {
        self.rest.close();
    }
}

impl Drop for EventPipe {
    fn drop(&mut self) {
        let Some(home) = self.home.take() else { return };
        let Some(session) = home.session.upgrade() else {
            return;
        };
        self.rest.close();
        let rest = std::iter::from_fn(|| self.rest.try_recv().ok());
        let unread = self.first.by_ref().chain(rest);
        let unread = (self.next..).zip(unread).collect();
        session.take_back((home.name, home.reader), unread, now());
    }
}
