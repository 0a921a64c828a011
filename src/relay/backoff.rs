//! How soon something is tried again that a server ended or refused: each time later, until it has held
//! for a while.

use std::time::{Duration, Instant};

use crate::error::Error;

/// The pauses between tries.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// For how long it has to hold, so that the next loss is the first in a row. A server that opens a stream
/// and ends it at once must not be asked each second.
const HELD: Duration = LONGEST;

/// The tries to have one thing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    /// How many in a row did not hold.
    tries: u32,
    /// Since when it holds.
    since: Option<Instant>,
}

impl Backoff {
    /// It is there.
    pub(super) fn held(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// It is not there, or not any more: how many tries in a row were made before the next one.
    pub(super) fn lost(&mut self, now: Instant) -> u32 {
        let since = self.since.take();
        if since.is_some_and(|since| now.saturating_duration_since(since) >= HELD) {
            self.tries = 0;
        }
        let tries = self.tries;
        self.tries = tries.saturating_add(1);
        tries
    }
}

/// Tries of something that many want: who comes in the pause gets what the last one got.
#[derive(Debug, Default)]
pub(super) struct Tries {
    backoff: Backoff,
    pause: Option<(Instant, Error)>,
}

impl Tries {
    /// It is there.
    pub(super) fn succeeded(&mut self, now: Instant) {
        self.backoff.held(now);
        self.pause = None;
    }

    /// It could not be had.
    pub(super) fn failed(&mut self, now: Instant, error: Error) {
        let until = now + pause(self.backoff.lost(now));
        self.pause = Some((until, error));
    }

    /// Why it is not tried again yet, if it is too soon.
    pub(super) fn too_soon(&self, now: Instant) -> Option<Error> {
        let (until, error) = self.pause.as_ref()?;
        (now < *until).then(|| error.clone())
    }
}

/// The pause before the next try, when so many in a row were made.
pub(super) fn pause(tries: u32) -> Duration {
    let times = 2_u32.saturating_pow(tries);
    SHORTEST.saturating_mul(times).min(LONGEST)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "any moment will do")]
mod tests {
    use super::*;

    #[test]
    fn each_try_in_a_row_waits_longer_up_to_a_minute() {
        let pauses: Vec<_> = (0..8).map(|tries| pause(tries).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(u32::MAX), LONGEST);
    }

    #[test]
    fn only_what_held_for_a_while_is_lost_for_the_first_time_again() {
        let (mut backoff, mut now) = (Backoff::default(), Instant::now());
        assert_eq!([0, 1, 2], [(); 3].map(|()| backoff.lost(now)));
        backoff.held(now);
        now += HELD / 2;
        assert_eq!(backoff.lost(now), 3);
        backoff.held(now);
        now += HELD;
        assert_eq!(backoff.lost(now), 0);
        // A try that failed is none that held.
        now += HELD;
        assert_eq!(backoff.lost(now), 1);
    }

    #[test]
    fn who_comes_in_the_pause_gets_what_the_last_try_got() {
        let (mut tries, start) = (Tries::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(tries.too_soon(start).is_none());
        tries.failed(start, Error::Unreachable);
        assert!(matches!(tries.too_soon(start), Some(Error::Unreachable)));
        assert!(tries.too_soon(at(1)).is_none());
        tries.failed(at(1), Error::Broken);
        assert!(matches!(tries.too_soon(at(2)), Some(Error::Broken)));
        assert!(tries.too_soon(at(3)).is_none());
        tries.succeeded(at(3));
        assert!(tries.too_soon(at(3)).is_none());
    }
}
