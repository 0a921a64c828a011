//! Messages as a server sends them: out of a JSON body, or one after another out of an event stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::protocol::message::{self, Body, Message};
use crate::upstream::reply::{Events, Reply, StreamError};
use crate::upstream::trouble::{Trouble, Troubles};

/// Something that a server sent.
#[derive(Debug)]
pub(super) enum Inbound {
    /// A message.
    Message(Message),
    /// A request with this id (JSON text) that can't be read for certain. It wants an answer.
    Unreadable(String),
}

/// What is in a piece of JSON. What is no message is told to the operator; if it wants no answer, it
/// is left out.
pub(super) fn read(data: &Bytes, troubles: &Troubles) -> Vec<Inbound> {
    match Body::parse(data) {
        Ok(Body::Single(message)) => vec![Inbound::Message(message)],
        Ok(Body::Batch(members)) => {
            let one = |member| one(member, troubles);
            members.iter().filter_map(one).collect()
        }
        Err(_) => one(data, troubles).into_iter().collect(),
    }
}

fn one(data: &Bytes, troubles: &Troubles) -> Option<Inbound> {
    if let Ok(message) = Message::parse(data) {
        return Some(Inbound::Message(message));
    }
    troubles.tell(&Trouble::Unreadable);
    message::id_of_unreadable(data).map(Inbound::Unreadable)
}

/// The messages of an event stream.
pub(super) struct Reading {
    events: Events,
    troubles: Arc<Troubles>,
    ready: VecDeque<Inbound>,
    /// The id of the last event that had one.
    pub(super) last: Option<Bytes>,
    /// How long the server wants to be left alone before the stream is opened again.
    pub(super) retry: Option<Duration>,
}

impl Reading {
    pub(super) fn new(reply: Reply) -> Self {
        Self {
            troubles: reply.troubles(),
            events: reply.events(),
            ready: VecDeque::new(),
            last: None,
            retry: None,
        }
    }

    /// The stream that goes on where this one broke.
    pub(super) fn again(&self, reply: Reply) -> Self {
        Self {
            last: self.last.clone(),
            retry: self.retry,
            ..Self::new(reply)
        }
    }

    /// Where the operator is told what the server does instead of answering.
    pub(super) fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    /// What was wanted of it has come: its end need not be waited for.
    pub(super) fn finish(&mut self) {
        self.events.finish();
    }

    /// The next one; `None` at the end of the stream. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Inbound>, StreamError> {
        loop {
            if let Some(inbound) = self.ready.pop_front() {
                return Ok(Some(inbound));
            }
            let Some(event) = self.events.next().await? else {
                return Ok(None);
            };
            if event.id.is_some() {
                self.last = event.id;
            }
            self.retry = event.retry.map(Duration::from_millis).or(self.retry);
            let named = event.name.as_deref().is_none_or(|name| name == b"message");
            // An event without data only carries its id (2025-11-25 transports, "polling").
            if named && !event.data.is_empty() {
                self.ready.extend(read(&event.data, &self.troubles));
            }
        }
    }
}
