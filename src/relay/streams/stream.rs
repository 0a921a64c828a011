//! One stream of a client, and which of them a message goes to.

use std::time::Instant;

use tokio::sync::mpsc::error::TrySendError;

use super::super::deliver::Item;
use super::super::session::Face;
use super::Pipe;
use super::tape::Tape;
use crate::protocol::event_id::{Kind, Name};
use crate::protocol::session::LegId;

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) name: Name,
    /// The calls whose messages it carries.
    pub(super) legs: Vec<LegId>,
    /// How many outcomes are to come; with the last one it is over.
    pub(super) owes: usize,
    /// None: nobody reads it.
    pub(super) pipe: Option<Pipe>,
    /// Counts those who read it, one after the other.
    pub(super) reader: u32,
    /// The number of its next event.
    pub(super) next: u64,
    /// Since when nobody reads it.
    pub(super) left: Option<Instant>,
}

/// What became of a message.
#[derive(Debug)]
pub(crate) enum Put {
    /// It is in a stream.
    Done,
    /// The stream has no room now.
    Full(Name, Pipe, Item),
    /// There is no stream for it.
    Nowhere(Item),
}

impl Stream {
    /// Whether somebody reads it.
    pub(super) fn is_read(&self) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| !pipe.is_closed())
    }

    pub(super) fn put(&mut self, item: Item, tape: Option<&mut Tape>) -> Put {
        let Some(pipe) = &self.pipe else {
            return Put::Nowhere(item);
        };
        match pipe.try_reserve() {
            Ok(room) => {
                let (name, number) = (self.name, self.next);
                self.next += 1;
                if let Some(tape) = tape {
                    tape.sent(name, number, &item);
                }
                room.send(item);
                Put::Done
            }
            Err(TrySendError::Full(())) => Put::Full(self.name, pipe.clone(), item),
            Err(TrySendError::Closed(())) => Put::Nowhere(item),
        }
    }

    /// Numbers what was put into it, and keeps it on the tape.
    pub(super) fn count(&mut self, item: &Item, tape: Option<&mut Tape>) {
        if let Some(tape) = tape {
            tape.sent(self.name, self.next, item);
        }
        self.next += 1;
    }
}

/// Where a message goes: the stream of the call that caused it; else the newest standalone
/// stream; else the newest stream of any call, which reaches the same client. For modern clients
/// each stream is a call of its own: what one caused goes to no other, and what has no known cause
/// goes to a call whose client is there, if there is one, else to the one that asked last.
pub(super) fn route<'s>(
    open: &'s mut [Stream],
    away: &[LegId],
    cause: Option<LegId>,
    face: Face,
) -> Option<&'s mut Stream> {
    let read = || open.iter().filter(|it| it.is_read());
    let calls = || read().filter(|it| !it.legs.is_empty());
    let of = |leg: LegId| calls().find(|it| it.legs.contains(&leg));
    let own = cause.and_then(of);
    let found = match (face, cause) {
        (Face::Modern, Some(_)) => own,
        (Face::Modern, None) => {
            let attended = |it: &&Stream| !it.legs.iter().any(|leg| away.contains(leg));
            let last = || away.last().and_then(|leg| of(*leg));
            calls().rfind(attended).or_else(last)
        }
        (Face::Legacy, _) => own
            .or_else(|| read().rfind(|it| it.name.kind == Kind::Standalone))
            .or_else(|| calls().next_back()),
    };
    let name = found?.name;
    open.iter_mut().find(|it| it.name == name)
}
