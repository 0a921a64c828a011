//! Cancels that came before their calls. Each message of a client is a request on a connection of its own, so that
//! the later may overtake the earlier; a cancel is of a call that was sent before (2025-11-25
//! basic/utilities/cancellation), and that must not run when it comes.
//!
//! # Invariants
//! - What is remembered is bounded, in number and in time.
//! - A cancel of a call that is over is no cancel of the next one with its id.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How much later a call may come than its cancel.
const WINDOW: Duration = Duration::from_secs(2);

/// The most cancels that are remembered.
const CANCELS: usize = 16;

/// The most calls of which it is remembered that they are over.
const FINISHED: usize = 64;

/// What is remembered, by the ids of the client (JSON text).
#[derive(Debug, Default)]
pub(super) struct Early {
    cancels: VecDeque<(Box<str>, Instant)>,
    finished: VecDeque<Box<str>>,
}

impl Early {
    /// Somebody cancels what is not in flight.
    pub(super) fn cancel(&mut self, now: Instant, id: &str) {
        if self.finished.iter().any(|it| **it == *id) {
            return;
        }
        if self.cancels.len() >= CANCELS {
            self.cancels.pop_front();
        }
        self.cancels.push_back((id.into(), now));
    }

    /// A call comes: whether it was cancelled.
    pub(super) fn take(&mut self, now: Instant, id: &str) -> bool {
        self.cancels
            .retain(|(_, at)| now.saturating_duration_since(*at) < WINDOW);
        let found = self.cancels.iter().position(|(it, _)| **it == *id);
        found.is_some_and(|at| self.cancels.remove(at).is_some())
    }

    /// A call is over.
    pub(super) fn finish(&mut self, id: &str) {
        if self.finished.len() >= FINISHED {
            self.finished.pop_front();
        }
        self.finished.push_back(id.into());
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "any moment will do")]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_is_remembered_for_a_moment() {
        let (mut early, now) = (Early::default(), Instant::now());
        early.cancel(now, "1");
        assert!(!early.take(now + WINDOW, "1"));
        early.cancel(now, "1");
        assert!(early.take(now + WINDOW / 2, "1"));
        assert!(!early.take(now + WINDOW / 2, "1"));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut early, now) = (Early::default(), Instant::now());
        for id in 0..=CANCELS {
            early.cancel(now, &id.to_string());
        }
        assert!(!early.take(now, "0"));
        assert!(early.take(now, "1"));
        for id in 0..=FINISHED {
            early.finish(&id.to_string());
        }
        early.cancel(now, "1");
        assert!(!early.take(now, "1"), "it is over");
        early.cancel(now, "0");
        assert!(early.take(now, "0"), "forgotten by then");
    }
}
