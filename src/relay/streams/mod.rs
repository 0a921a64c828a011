//! The streams of one client: those that are open, what waits until one is, and what a client may come
//! back for.
//!
//! # Invariants
//! - A message goes to one stream, never to several (2025-11-25 basic/transports, "Sending Messages").
//! - The events of a stream are counted where they are put into it, under the lock, and so in the order
//!   in which its reader takes them: both know the number of each.
//! - Of a stream that ends or is left, as much is [`kept`] as its tape holds.

mod kept;
mod stream;
mod tape;
mod waiting;

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{Permit, Sender};

use self::kept::Kept;
pub(crate) use self::stream::Put;
use self::stream::{Stream, route};
use self::tape::Tape;
use self::waiting::Waiting;
use super::deliver::Item;
use super::session::Face;
use crate::protocol::event_id::{Kind, Name};
use crate::protocol::session::LegId;

/// Where messages are put for a client to read.
pub(crate) type Pipe = Sender<Item>;

/// Messages that a stream holds for a client that reads slowly; then the server's stream is read
/// slowly too.
pub(crate) const PIPE: usize = 16;

/// The streams of one session, by what opened them.
#[derive(Debug)]
pub(crate) struct Streams {
    /// Those that carry something, or will: the newest last.
    open: Vec<Stream>,
    /// The calls whose clients are away, the latest last.
    away: Vec<LegId>,
    /// What waits for a stream.
    pub(crate) waiting: Waiting,
    /// Where the client's events have ids, so that it can come back for them.
    kept: Option<Kept>,
    opened: u32,
    /// The session has ended: nothing but outcomes goes out.
    closed: bool,
}

/// A stream as its reader gets it.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Which it is.
    pub(crate) name: Name,
    /// Which of its readers this is.
    pub(crate) reader: u32,
    /// What it carried before, with the numbers.
    pub(crate) again: Vec<(u64, Item)>,
    /// The number of the first event after that.
    pub(crate) from: u64,
    /// What waited for a stream.
    pub(crate) first: Vec<Item>,
}

impl Streams {
    /// No streams; at most `room` notices wait for one. `resumable`: the client's events have ids.
    pub(crate) fn new(room: usize, resumable: bool) -> Self {
        Self {
            open: Vec::new(),
            away: Vec::new(),
            waiting: Waiting::new(room),
            kept: resumable.then(Kept::default),
            opened: 0,
            closed: false,
        }
    }

    /// A stream for the outcomes of this many calls. They [`join`](Self::join) it.
    pub(crate) fn open_calls(&mut self, owes: usize, pipe: Pipe) -> Opened {
        self.open_new(Kind::Call, owes, pipe)
    }

    /// The client has opened a standalone stream.
    pub(crate) fn open_standalone(&mut self, pipe: Pipe) -> Opened {
        self.open_new(Kind::Standalone, 0, pipe)
    }

    fn open_new(&mut self, kind: Kind, owes: usize, pipe: Pipe) -> Opened {
        self.opened += 1;
        let name = Name {
            kind,
            number: self.opened,
        };
        self.open.push(Stream {
            name,
            legs: Vec::new(),
            owes,
            pipe: Some(pipe),
            reader: 0,
            next: 1,
            left: None,
        });
        self.opened(name, Vec::new())
    }

    /// What the reader of an open stream gets.
    fn opened(&mut self, name: Name, again: Vec<(u64, Item)>) -> Opened {
        let first = self.waiting.take();
        let (mut from, mut reader) = (1, 0);
        if let Some(stream) = self.open.iter_mut().find(|it| it.name == name) {
            (from, reader) = (stream.next, stream.reader);
            for item in &first {
                stream.count(item, tape(&mut self.kept));
            }
        }
        Opened {
            name,
            reader,
            again,
            from,
            first,
        }
    }

    /// What a call sends goes to this stream from now on.
    pub(crate) fn join(&mut self, leg: LegId, name: Name) {
        if let Some(stream) = self.find(name) {
            stream.legs.push(leg);
        }
    }

    /// Whether this call has a stream.
    pub(crate) fn has_call(&self, leg: LegId) -> bool {
        self.open.iter().any(|it| it.legs.contains(&leg))
    }

    fn find(&mut self, name: Name) -> Option<&mut Stream> {
        self.open.iter_mut().find(|it| it.name == name)
    }

    /// A client comes back to a stream that it lost, after this event. Whoever still reads it does so no
    /// more. None: the stream is not known any more.
    pub(crate) fn resume(&mut self, name: Name, event: u64, pipe: Pipe) -> Option<Opened> {
        let kept = self.kept.as_mut()?;
        let again = kept.tape.after(name, event);
        if let Some(stream) = self.open.iter_mut().find(|it| it.name == name) {
            stream.pipe = Some(pipe);
            stream.reader += 1;
            stream.left = None;
            return Some(self.opened(name, again));
        }
        if name.kind == Kind::Call {
            // Its outcome, if it was not read, is what there is. The stream ends with it.
            let past = kept.find(name)?;
            past.reader += 1;
            return Some(Opened {
                name,
                reader: past.reader,
                again,
                from: past.next,
                first: Vec::new(),
            });
        }
        let Some(past) = kept.take(name) else {
            return Some(self.open_standalone(pipe));
        };
        self.open.push(Stream {
            name,
            legs: Vec::new(),
            owes: 0,
            pipe: Some(pipe),
            reader: past.reader + 1,
            next: past.next,
            left: None,
        });
        Some(self.opened(name, again))
    }

    /// A reader is gone. What it did not read and what is worth bringing elsewhere is returned.
    pub(crate) fn leave(
        &mut self,
        (name, reader): (Name, u32),
        unread: Vec<(u64, Item)>,
        now: Instant,
    ) -> Vec<Item> {
        // Another one may have taken over: then that has it all.
        if let Some(stream) = self.find(name) {
            if stream.reader != reader {
                return Vec::new();
            }
            stream.pipe = None;
            stream.left = Some(now);
        } else if let Some(past) = self.kept.as_mut().and_then(|kept| kept.find(name)) {
            if past.reader != reader {
                return Vec::new();
            }
            past.leave(unread.len());
        } else {
            return unread.into_iter().map(|(_, item)| item).collect();
        }
        if name.kind == Kind::Standalone {
            self.end(name, now);
        }
        match &mut self.kept {
            Some(kept) => kept.sort(name, unread),
            None => unread.into_iter().map(|(_, item)| item).collect(),
        }
    }

    /// A call is over, but for its outcome, which is owed to the stream that is returned: nothing else of it
    /// goes there.
    pub(crate) fn end_call(&mut self, leg: LegId) -> Option<Name> {
        self.set_away(leg, false);
        let stream = self.open.iter_mut().find(|it| it.legs.contains(&leg))?;
        stream.legs.retain(|it| *it != leg);
        Some(stream.name)
    }

    /// An outcome was delivered that this stream owed, or is not wanted.
    pub(crate) fn settle(&mut self, name: Name, now: Instant) {
        let Some(stream) = self.find(name) else {
            return;
        };
        stream.owes = stream.owes.saturating_sub(1);
        if stream.owes == 0 {
            self.end(name, now);
        }
    }

    /// A stream carries nothing more. It ends for its reader when what is in it has been read.
    fn end(&mut self, name: Name, now: Instant) {
        let Some(at) = self.open.iter().position(|it| it.name == name) else {
            return;
        };
        let Stream {
            name, reader, next, ..
        } = self.open.remove(at);
        if let Some(kept) = &mut self.kept {
            kept.add(name, reader, next, now);
        }
    }

    /// Forgets what nobody came back for within `patience`; the calls are returned whose clients left
    /// as long ago.
    pub(crate) fn sweep(&mut self, now: Instant, patience: Duration) -> Vec<LegId> {
        if let Some(kept) = &mut self.kept {
            kept.sweep(now, patience);
        }
        let long_ago = |left: Instant| now.saturating_duration_since(left) >= patience;
        let abandoned = self.open.iter().filter(|it| it.left.is_some_and(long_ago));
        abandoned.flat_map(|it| it.legs.iter().copied()).collect()
    }

    /// Whether a client may come back to the stream of a call that it left.
    pub(crate) fn is_awaited(&self) -> bool {
        self.kept.is_some()
            && self
                .open
                .iter()
                .any(|it| !it.legs.is_empty() && !it.is_read())
    }

    /// The client of a call goes away with questions, or comes back.
    pub(crate) fn set_away(&mut self, leg: LegId, away: bool) {
        self.away.retain(|it| *it != leg);
        if away {
            self.away.push(leg);
        }
    }

    /// How many streams are open.
    pub(crate) fn count(&self) -> usize {
        self.open.iter().filter(|it| it.is_read()).count()
    }

    /// Whether a standalone stream is open.
    pub(crate) fn has_standalone(&self) -> bool {
        let mut open = self.open.iter();
        open.any(|it| it.name.kind == Kind::Standalone && it.is_read())
    }

    /// Whether there is a stream for a message of this cause.
    pub(crate) fn has_route(&mut self, cause: Option<LegId>, face: Face) -> bool {
        !self.closed && route(&mut self.open, &self.away, cause, face).is_some()
    }

    /// Puts a message where its client reads it.
    pub(crate) fn put(&mut self, cause: Option<LegId>, face: Face, item: Item) -> Put {
        let mut item = item;
        while !self.closed {
            let Some(stream) = route(&mut self.open, &self.away, cause, face) else {
                return Put::Nowhere(item);
            };
            match stream.put(item, tape(&mut self.kept)) {
                // It was closed in this moment, and is not found again.
                Put::Nowhere(back) => item = back,
                put => return put,
            }
        }
        Put::Nowhere(item)
    }

    /// Puts the outcome of a call into its stream. Where nobody reads that, it is kept for who comes back.
    pub(crate) fn put_outcome(&mut self, name: Name, item: Item) -> Put {
        let Some(stream) = self.open.iter_mut().find(|it| it.name == name) else {
            return Put::Nowhere(item);
        };
        match stream.put(item, tape(&mut self.kept)) {
            Put::Nowhere(item) => {
                if let Some(kept) = &mut self.kept {
                    kept.tape.keep(name, stream.next, item);
                    stream.next += 1;
                }
                Put::Done
            }
            put => put,
        }
    }

    /// Puts a message into a stream that has room for it. It comes back where the stream has another
    /// reader by now, or is over.
    pub(crate) fn put_into(
        &mut self,
        name: Name,
        pipe: &Pipe,
        item: Item,
        room: Permit<'_, Item>,
    ) -> Option<Item> {
        let same = |it: &&mut Stream| {
            it.name == name && it.pipe.as_ref().is_some_and(|it| it.same_channel(pipe))
        };
        let Some(stream) = self.open.iter_mut().find(same) else {
            return Some(item);
        };
        stream.count(&item, tape(&mut self.kept));
        room.send(item);
        None
    }

    /// Whether it is clear which call a message belongs to: it came on the stream of one, or there
    /// is one only.
    pub(crate) fn is_clear(&self, cause: Option<LegId>) -> bool {
        let calls = self
            .open
            .iter()
            .filter(|it| it.is_read())
            .map(|it| it.legs.len());
        cause.is_some() || calls.sum::<usize>() == 1
    }

    /// A stream is not read: nothing more is put into it.
    pub(crate) fn cut(&mut self, name: Name, pipe: &Pipe, now: Instant) {
        let same = |it: &&mut Stream| {
            it.name == name && it.pipe.as_ref().is_some_and(|it| it.same_channel(pipe))
        };
        if let Some(stream) = self.open.iter_mut().find(same) {
            stream.pipe = None;
            stream.left = Some(now);
        }
    }

    /// Closes every stream, once what is in it has been read, and the outcome of what it carries.
    pub(crate) fn close(&mut self) {
        self.close_standalone();
        self.closed = true;
        self.kept = None;
        self.away.clear();
        drop(self.waiting.take());
    }

    /// Closes the standalone streams.
    pub(crate) fn close_standalone(&mut self) {
        self.open.retain(|it| it.name.kind != Kind::Standalone);
    }
}

fn tape(kept: &mut Option<Kept>) -> Option<&mut Tape> {
    kept.as_mut().map(|kept| &mut kept.tape)
}

#[cfg(test)]
mod tests;
