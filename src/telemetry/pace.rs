//! Keeps what anybody can cause as often as they like from filling the log.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// One line in a second.
const PACE: Duration = Duration::from_secs(1);

/// Lets one line through in a while, and counts those left out.
#[derive(Debug, Default)]
pub struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    left_out: u64,
}

impl Pace {
    /// Asks for one line more: how many were left out before it, or `None` when it is left out too.
    pub fn ask(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        let soon = |last| now.saturating_duration_since(last) < PACE;
        if state.last.is_some_and(soon) {
            state.left_out = state.left_out.saturating_add(1);
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.left_out))
    }

    /// The same at this moment. `Some(None)`: write the line, and nothing was left out before it.
    #[expect(
        clippy::disallowed_methods,
        reason = "log lines are paced by the clock on the wall"
    )]
    pub fn now(&self) -> Option<Option<u64>> {
        self.ask(Instant::now())
            .map(|left_out| (left_out > 0).then_some(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any moment will do")]
    fn one_line_in_a_second_and_the_next_one_tells_how_many_were_left_out() {
        let (pace, start) = (Pace::default(), Instant::now());
        let at = |millis| pace.ask(start + Duration::from_millis(millis));
        assert_eq!(at(0), Some(0));
        assert_eq!(at(1), None);
        assert_eq!(at(999), None);
        assert_eq!(at(1000), Some(2));
        assert_eq!(at(1001), None);
        assert_eq!(at(9000), Some(1));
    }
}
