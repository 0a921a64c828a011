//! The open streams of one client, and what waits until one is open.
//!
//! # Invariants
//! - A message goes to one stream, never to several (2025-11-25 basic/transports, "Sending Messages").
//! - What waits is bounded: the oldest notice makes room, a question waits on its own clock.

use std::collections::VecDeque;

use tokio::sync::mpsc::Sender;

use super::deliver::Item;
use super::session::Face;
use crate::protocol::session::{LegId, QuestionId};

/// Where messages are put for a client to read.
pub(crate) type Pipe = Sender<Item>;

/// Messages that a stream holds for a client that reads slowly; then the server's stream is read
/// slowly too.
pub(crate) const PIPE: usize = 16;

/// Bytes of notices that wait for a stream.
const ROOM_BYTES: usize = 1024 * 1024;

/// The streams of one session, by what opened them.
#[derive(Debug)]
pub(crate) struct Streams {
    calls: Vec<(LegId, Pipe)>,
    /// The calls whose clients are away, the latest last.
    away: Vec<LegId>,
    standalone: Vec<Pipe>,
    waiting: VecDeque<Item>,
    room: usize,
}

impl Streams {
    /// No streams; at most `room` notices wait for one.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            calls: Vec::new(),
            away: Vec::new(),
            standalone: Vec::new(),
            waiting: VecDeque::new(),
            room,
        }
    }

    /// The answer to a call has become a stream. What waited and is to be read there first is returned.
    pub(crate) fn open_call(&mut self, leg: LegId, pipe: Pipe) -> Vec<Item> {
        // A part of a stream that is open already says so once more when its server begins to stream.
        self.calls.retain(|(it, _)| *it != leg);
        self.calls.push((leg, pipe));
        self.waiting.drain(..).collect()
    }

    /// The client has opened a standalone stream. What waited is returned.
    pub(crate) fn open_standalone(&mut self, pipe: Pipe) -> Vec<Item> {
        self.standalone.push(pipe);
        self.waiting.drain(..).collect()
    }

    /// A call has ended, and its stream with it.
    pub(crate) fn close_call(&mut self, leg: LegId) {
        self.calls.retain(|(it, _)| *it != leg);
        self.set_away(leg, false);
    }

    /// The client of a call goes away with questions, or comes back.
    pub(crate) fn set_away(&mut self, leg: LegId, away: bool) {
        self.away.retain(|it| *it != leg);
        if away {
            self.away.push(leg);
        }
    }

    /// How many streams are open.
    pub(crate) fn count(&mut self) -> usize {
        self.forget_closed();
        self.calls.len() + self.standalone.len()
    }

    /// Whether a standalone stream is open.
    pub(crate) fn has_standalone(&mut self) -> bool {
        self.forget_closed();
        !self.standalone.is_empty()
    }

    /// Where a message goes: the stream of the call that caused it; else the newest standalone
    /// stream; else the newest stream of any call, which reaches the same client. For modern clients
    /// each stream is a call of its own: what one caused goes to no other, and what has no known cause
    /// goes to a call whose client is there, if there is one, else to the one that asked last.
    pub(crate) fn route(&mut self, cause: Option<LegId>, face: Face) -> Option<Pipe> {
        self.forget_closed();
        let own = self
            .calls
            .iter()
            .find(|(leg, _)| Some(*leg) == cause)
            .map(|(_, pipe)| pipe);
        if face == Face::Modern && cause.is_some() {
            return own.cloned();
        }
        if face == Face::Modern {
            let attended = self
                .calls
                .iter()
                .rev()
                .find(|(leg, _)| !self.away.contains(leg));
            let last = || {
                let last = self.away.last()?;
                self.calls.iter().find(|(leg, _)| leg == last)
            };
            return attended.or_else(last).map(|(_, pipe)| pipe.clone());
        }
        own.or_else(|| self.standalone.last())
            .or_else(|| self.calls.last().map(|(_, pipe)| pipe))
            .cloned()
    }

    /// Whether it is clear which call a message belongs to: it came on the stream of one, or there
    /// is one only.
    pub(crate) fn is_clear(&mut self, cause: Option<LegId>) -> bool {
        self.forget_closed();
        cause.is_some() || self.calls.len() == 1
    }

    /// Keeps a message until a stream opens, if it is worth it then.
    pub(crate) fn hold(&mut self, item: Item) {
        if matches!(item, Item::Progress(_) | Item::Outcome(_)) {
            return;
        }
        while item.asks().is_none() && self.is_full(item.message().len()) {
            let Some(oldest) = self.waiting.iter().position(|it| it.asks().is_none()) else {
                return;
            };
            self.waiting.remove(oldest);
        }
        self.waiting.push_back(item);
    }

    /// A question is over; whether it was still waiting for a stream.
    pub(crate) fn drop_question(&mut self, id: QuestionId) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|it| it.asks() != Some(id));
        self.waiting.len() < before
    }

    /// A stream is not read: nothing more is put into it.
    pub(crate) fn cut(&mut self, pipe: &Pipe) {
        self.calls.retain(|(_, it)| !it.same_channel(pipe));
        self.standalone.retain(|it| !it.same_channel(pipe));
    }

    /// Closes every stream, once what is in it has been read.
    pub(crate) fn close(&mut self) {
        self.calls.clear();
        self.away.clear();
        self.standalone.clear();
        self.waiting.clear();
    }

    /// Closes the standalone streams.
    pub(crate) fn close_standalone(&mut self) {
        self.standalone.clear();
    }

    /// Whether one more notice of this size would be too many.
    fn is_full(&self, size: usize) -> bool {
        let notices = || self.waiting.iter().filter(|it| it.asks().is_none());
        let bytes: usize = notices().map(|it| it.message().len()).sum();
        notices().count() >= self.room || bytes + size > ROOM_BYTES
    }

    fn forget_closed(&mut self) {
        self.calls.retain(|(_, pipe)| !pipe.is_closed());
        self.standalone.retain(|pipe| !pipe.is_closed());
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may read the clock")]
mod tests {
    use tokio::sync::mpsc::channel;

    use super::*;
    use crate::protocol::capability::ClientCapabilities;
    use crate::protocol::session::Session;

    fn legs() -> (LegId, LegId) {
        let (now, mut session) = (
            std::time::Instant::now(),
            Session::new(ClientCapabilities::default()),
        );
        (
            session.begin(now, "1", None).unwrap(),
            session.begin(now, "2", None).unwrap(),
        )
    }

    #[test]
    fn a_message_prefers_the_stream_of_its_cause() {
        let ((one, two), mut streams) = (legs(), Streams::new(4));
        let (a, _a) = channel(1);
        let (b, _b) = channel(1);
        let (s, standalone) = channel(1);
        assert!(streams.route(None, Face::Legacy).is_none());
        streams.open_call(one, a.clone());
        assert!(streams.route(None, Face::Legacy).unwrap().same_channel(&a));
        streams.open_call(two, b.clone());
        assert!(
            streams
                .route(Some(one), Face::Legacy)
                .unwrap()
                .same_channel(&a)
        );
        streams.open_standalone(s.clone());
        assert!(streams.route(None, Face::Legacy).unwrap().same_channel(&s));
        assert!(
            streams
                .route(Some(two), Face::Legacy)
                .unwrap()
                .same_channel(&b)
        );
        drop(standalone);
        streams.close_call(one);
        assert!(
            streams
                .route(Some(one), Face::Legacy)
                .unwrap()
                .same_channel(&b)
        );
    }

    #[test]
    fn the_oldest_notice_makes_room_and_a_question_does_not() {
        let ((one, _), mut streams) = (legs(), Streams::new(2));
        let mut session = Session::new(ClientCapabilities::default());
        let text: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let ping = crate::protocol::message::Message::parse(&bytes::Bytes::from(text)).unwrap();
        let question = session.ask(std::time::Instant::now(), None, &ping).unwrap();
        streams.hold(Item::Question(question, "question".into()));
        for notice in ["1", "2", "3"] {
            streams.hold(Item::Notice(notice.into()));
            streams.hold(Item::Progress("far".into()));
        }
        let (pipe, _reader) = channel(1);
        let waited = streams.open_call(one, pipe);
        let waited: Vec<_> = waited.iter().map(Item::message).collect();
        assert_eq!(waited, ["question", "2", "3"]);
        assert!(!streams.drop_question(question));
    }
}
