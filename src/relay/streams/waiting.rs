//! What waits until a client opens a stream.
//!
//! # Invariants
//! - Bounded: the oldest notice makes room, a question waits on its own clock.
//! - What is worth nothing later does not wait.

use std::collections::VecDeque;

use super::super::deliver::Item;
use crate::protocol::session::QuestionId;

/// Bytes of notices that wait.
const BYTES: usize = 1024 * 1024;

/// Messages in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Waiting {
    items: VecDeque<Item>,
    /// How many notices may wait.
    room: usize,
}

impl Waiting {
    /// Nothing; at most `room` notices.
    pub(super) fn new(room: usize) -> Self {
        Self {
            items: VecDeque::new(),
            room,
        }
    }

    /// All of it, taken out.
    pub(super) fn take(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.items).into()
    }

    /// Keeps a message until a stream opens, if it is worth it then.
    pub(crate) fn hold(&mut self, item: Item) {
        if matches!(item, Item::Progress(_) | Item::Outcome(_)) {
            return;
        }
        while item.asks().is_none() && self.is_full(item.message().len()) {
            let Some(oldest) = self.items.iter().position(|it| it.asks().is_none()) else {
                return;
            };
            self.items.remove(oldest);
        }
        self.items.push_back(item);
    }

    /// A question is over; whether it was still waiting.
    pub(crate) fn drop_question(&mut self, id: QuestionId) -> bool {
        let before = self.items.len();
        self.items.retain(|it| it.asks() != Some(id));
        self.items.len() < before
    }

    /// Whether one more notice of this size would be too many.
    fn is_full(&self, size: usize) -> bool {
        let notices = || self.items.iter().filter(|it| it.asks().is_none());
        let bytes: usize = notices().map(|it| it.message().len()).sum();
        notices().count() >= self.room || bytes + size > BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::capability::ClientCapabilities;
    use crate::protocol::session::Session;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test may read the clock")]
    fn the_oldest_notice_makes_room_and_a_question_does_not() {
        let mut waiting = Waiting::new(2);
        let mut session = Session::new(ClientCapabilities::default());
        let text: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let ping = crate::protocol::message::Message::parse(&bytes::Bytes::from(text)).unwrap();
        let question = session.ask(std::time::Instant::now(), None, &ping).unwrap();
        waiting.hold(Item::Question(question, "question".into()));
        for notice in ["1", "2", "3"] {
            waiting.hold(Item::Notice(notice.into()));
            waiting.hold(Item::Progress("far".into()));
        }
        let waited = waiting.take();
        let waited: Vec<_> = waited.iter().map(Item::message).collect();
        assert_eq!(waited, ["question", "2", "3"]);
        assert!(!waiting.drop_question(question));
    }
}
