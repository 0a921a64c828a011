//! What the streams of one session have carried of late, so that a client whose connection broke can read
//! it again.
//!
//! # Invariants
//! - Bounded: the oldest notice makes room first, then the oldest of all.
//! - Progress is not kept: it is worth nothing later.

use std::collections::VecDeque;

use super::super::deliver::Item;
use crate::protocol::event_id::Name;

/// Events that are kept.
const EVENTS: usize = 256;

/// Bytes that are kept. A single larger event is kept only where nobody was there to read it.
const BYTES: usize = 1024 * 1024;

/// The latest events of all streams, in their order.
#[derive(Debug, Default)]
pub(super) struct Tape {
    events: VecDeque<(Name, u64, Item)>,
    bytes: usize,
}

impl Tape {
    /// Keeps an event that was sent.
    pub(super) fn sent(&mut self, stream: Name, number: u64, item: &Item) {
        if item.message().len() <= BYTES {
            self.keep(stream, number, item.clone());
        }
    }

    /// Keeps an event, whatever its size.
    pub(super) fn keep(&mut self, stream: Name, number: u64, item: Item) {
        if matches!(item, Item::Progress(_)) || self.find(stream, number).is_some() {
            return;
        }
        let size = item.message().len();
        while !self.events.is_empty() && (self.events.len() >= EVENTS || self.bytes + size > BYTES)
        {
            let notice = |(_, _, item): &(Name, u64, Item)| {
                matches!(item, Item::Notice(_) | Item::Withdrawn(..))
            };
            self.remove(self.events.iter().position(notice).unwrap_or_default());
        }
        self.bytes += size;
        self.events.push_back((stream, number, item));
    }

    /// Takes an event out: it goes elsewhere.
    pub(super) fn take(&mut self, stream: Name, number: u64) {
        if let Some(at) = self.find(stream, number) {
            self.remove(at);
        }
    }

    /// What this stream carried after this event.
    pub(super) fn after(&self, stream: Name, number: u64) -> Vec<(u64, Item)> {
        let later = |(name, at, item): &(Name, u64, Item)| {
            (*name == stream && *at > number).then(|| (*at, item.clone()))
        };
        self.events.iter().filter_map(later).collect()
    }

    /// Forgets what this stream carried.
    pub(super) fn forget(&mut self, stream: Name) {
        self.events.retain(|(name, _, _)| *name != stream);
        self.bytes = self.events.iter().map(|it| it.2.message().len()).sum();
        if self.events.is_empty() {
            self.events = VecDeque::new();
        }
    }

    fn find(&self, stream: Name, number: u64) -> Option<usize> {
        let same = |(name, at, _): &(Name, u64, Item)| *name == stream && *at == number;
        self.events.iter().rposition(same)
    }

    fn remove(&mut self, at: usize) {
        if let Some((_, _, item)) = self.events.remove(at) {
            self.bytes -= item.message().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::protocol::event_id::Kind;

    fn stream(number: u32) -> Name {
        Name {
            kind: Kind::Call,
            number,
        }
    }

    fn numbers(tape: &Tape, of: u32, after: u64) -> Vec<u64> {
        tape.after(stream(of), after)
            .iter()
            .map(|it| it.0)
            .collect()
    }

    #[test]
    fn a_stream_gets_back_its_own_events_only() {
        let mut tape = Tape::default();
        for number in 1..=3 {
            tape.sent(stream(1), number, &Item::Notice("a".into()));
            tape.sent(stream(2), number, &Item::Notice("b".into()));
        }
        tape.sent(stream(1), 4, &Item::Progress("far".into()));
        tape.take(stream(1), 2);
        assert_eq!(numbers(&tape, 1, 0), [1, 3]);
        assert_eq!(numbers(&tape, 2, 1), [2, 3]);
        assert_eq!(numbers(&tape, 3, 0), [0; 0]);
        tape.forget(stream(1));
        assert_eq!(numbers(&tape, 1, 0), [0; 0]);
        assert_eq!(numbers(&tape, 2, 0), [1, 2, 3]);
    }

    #[test]
    fn notices_make_room_for_what_somebody_waits_for() {
        let mut tape = Tape::default();
        tape.sent(stream(1), 1, &Item::Outcome("the answer".into()));
        for number in 1..=1000 {
            tape.sent(stream(2), number, &Item::Notice("n".into()));
        }
        assert_eq!(numbers(&tape, 1, 0), [1]);
        assert_eq!(numbers(&tape, 2, 0).len(), EVENTS - 1);
        assert_eq!(numbers(&tape, 2, 0).last(), Some(&1000));
    }

    #[test]
    fn what_is_large_is_kept_only_for_who_has_not_read_it() {
        let mut tape = Tape::default();
        let large = Item::Outcome(Bytes::from(vec![b'x'; BYTES + 1]));
        tape.sent(stream(1), 1, &Item::Outcome("small".into()));
        tape.sent(stream(2), 1, &large);
        assert_eq!(numbers(&tape, 2, 0), [0; 0]);
        tape.keep(stream(2), 1, large);
        assert_eq!(numbers(&tape, 2, 0), [1]);
        assert_eq!(numbers(&tape, 1, 0), [0; 0]);
        tape.sent(stream(3), 1, &Item::Outcome("small".into()));
        assert_eq!(numbers(&tape, 2, 0), [0; 0]);
        assert_eq!(tape.bytes, 5);
    }
}
