//! Leaves alone for a while what can't be reached, so that its callers hear so at once and it can
//! recover; then one of them tries.
//!
//! # Invariants
//! - As long as it rests nobody is let through; when a rest is over, one is, and the others with the
//!   next success.
//! - One success forgets all failures.

use std::time::{Duration, Instant};

/// How often in a row something may fail before it rests.
const FAILURES: u32 = 3;

/// The rests: the first one, and the longest. Each is twice the one before.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// What is known about one place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    /// How many in a row have failed.
    failures: u32,
    /// Until when it rests, or the one who tries is waited for.
    until: Option<Instant>,
}

impl Breaker {
    /// Whether somebody may go through; otherwise how long that is not yet so.
    ///
    /// # Errors
    /// The rest that is left.
    pub(super) fn ask(&mut self, now: Instant) -> Result<(), Duration> {
        let Some(until) = self.until else {
            return Ok(());
        };
        let left = until.saturating_duration_since(now);
        if !left.is_zero() {
            return Err(left);
        }
        // This one tries. If it never says how that went, the next one does after the same time.
        self.until = Some(now + self.rest());
        Ok(())
    }

    /// Whether it rests, for one who would not go through.
    pub(super) fn rests(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until > now)
    }

    /// It could be reached.
    pub(super) fn good(&mut self) {
        *self = Self::default();
    }

    /// It could not be reached.
    pub(super) fn bad(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            self.until = Some(now + self.rest());
        }
    }

    fn rest(&self) -> Duration {
        let doublings = self.failures.saturating_sub(FAILURES).min(10);
        (FIRST * 2_u32.pow(doublings)).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[expect(clippy::disallowed_methods, reason = "any moment will do")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn what_fails_now_and_then_is_not_left_alone() {
        let (mut breaker, now) = (Breaker::default(), start());
        for _ in 0..10 {
            breaker.bad(now);
            breaker.bad(now);
            assert_eq!(breaker.ask(now), Ok(()));
            breaker.good();
        }
    }

    #[test]
    fn what_fails_three_times_in_a_row_rests_longer_each_time() {
        let (mut breaker, mut now) = (Breaker::default(), start());
        breaker.bad(now);
        breaker.bad(now);
        let rests = std::array::from_fn(|_| {
            breaker.bad(now);
            let left = breaker.ask(now).unwrap_err();
            assert!(breaker.rests(now));
            now += left;
            assert_eq!(breaker.ask(now), Ok(()), "somebody tries");
            left.as_secs()
        });
        assert_eq!(rests, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn one_tries_and_the_others_wait_for_it() {
        let (mut breaker, now) = (Breaker::default(), start());
        (0..3).for_each(|_| breaker.bad(now));
        let later = now + SECOND;
        assert_eq!(breaker.ask(later), Ok(()));
        assert_eq!(breaker.ask(later), Err(SECOND));
        assert_eq!(
            breaker.ask(later + SECOND),
            Ok(()),
            "the first one never came back"
        );
        breaker.good();
        assert_eq!(breaker.ask(later), Ok(()));
        assert!(!breaker.rests(later));
    }
}
