//! What is kept of a client's streams for when it comes back to one.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::super::deliver::Item;
use super::tape::Tape;
use crate::protocol::event_id::Name;

/// Streams that are remembered when they are over or left.
const PAST: usize = 32;

/// How long a stream is remembered that was read to its end.
const READ: Duration = Duration::from_secs(30);

/// The events of the streams, and which streams there were.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) tape: Tape,
    /// Those that are over, and standalone ones that were left: the latest last.
    past: VecDeque<Past>,
}

/// A stream that carries nothing more, or not before somebody comes back.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) name: Name,
    /// Counts those who read it, one after the other.
    pub(super) reader: u32,
    /// The number of its next event.
    pub(super) next: u64,
    since: Instant,
    /// Whether its reader got it all.
    read: bool,
}

impl Kept {
    /// A stream is over, or left.
    pub(super) fn add(&mut self, name: Name, reader: u32, next: u64, now: Instant) {
        self.past.push_back(Past {
            name,
            reader,
            next,
            since: now,
            read: false,
        });
        if self.past.len() > PAST
            && let Some(oldest) = self.past.pop_front()
        {
            self.tape.forget(oldest.name);
        }
    }

    /// A stream of the past.
    pub(super) fn find(&mut self, name: Name) -> Option<&mut Past> {
        self.past.iter_mut().find(|it| it.name == name)
    }

    /// A stream of the past that goes on.
    pub(super) fn take(&mut self, name: Name) -> Option<Past> {
        let at = self.past.iter().position(|it| it.name == name)?;
        self.past.remove(at)
    }

    /// The reader of a stream of the past is gone. What it did not read can be read again if it is an
    /// outcome; the rest is returned, to be brought elsewhere.
    pub(super) fn sort(&mut self, name: Name, unread: Vec<(u64, Item)>) -> Vec<Item> {
        let mut back = Vec::new();
        for (number, item) in unread {
            if matches!(item, Item::Outcome(_)) {
                self.tape.keep(name, number, item);
            } else {
                self.tape.take(name, number);
                back.push(item);
            }
        }
        back
    }

    /// Forgets what nobody came back for within `patience`.
    pub(super) fn sweep(&mut self, now: Instant, patience: Duration) {
        let Self { past, tape } = self;
        past.retain(|it| {
            let patience = if it.read {
                READ.min(patience)
            } else {
                patience
            };
            let keep = now.saturating_duration_since(it.since) < patience;
            if !keep {
                tape.forget(it.name);
            }
            keep
        });
    }
}

impl Past {
    /// A reader is gone that left this much.
    pub(super) fn leave(&mut self, unread: usize) {
        self.read = unread == 0;
    }
}
