//! When an issuer's keys are fetched, and how long they count.
//!
//! # Invariants
//! Pure: `now` comes from outside. Keys that work are never dropped because a fetch failed, until
//! nobody has confirmed them for a day. Requests can bring a fetch forward, but only once per
//! cool-down, so that made-up key ids can't be turned into load on the issuer.

use std::time::Duration;

use tokio::time::Instant;

/// The plan of one issuer.
#[derive(Debug)]
pub(super) struct Schedule {
    next: Instant,
    /// End of the cool-down after a fetch that a request asked for.
    cool: Instant,
    last_good: Option<Instant>,
    failures: u32,
}

/// What asked for a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// The plan.
    Time,
    /// A request with a key id that is not known, or when there are no keys.
    Demand,
}

impl Schedule {
    /// Plans the first fetch for `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            next: now,
            cool: now,
            last_good: None,
            failures: 0,
        }
    }

    /// Notes a fetch that worked. `spread`, from 0 to 1, keeps many gateways from asking together.
    pub(super) fn fetched(
        &mut self,
        trigger: Trigger,
        max_age: Option<Duration>,
        spread: f64,
        now: Instant,
    ) {
        let age = max_age.unwrap_or(LONGEST).min(LONGEST);
        let sooner = age.mul_f64(SPREAD * spread.clamp(0.0, 1.0));
        self.next = now + age.saturating_sub(sooner).max(SHORTEST);
        // The first keys are no answer to a made-up key id, and may be replaced a moment later.
        if self.last_good.is_some() {
            self.cool_down(trigger, now);
        }
        self.last_good = Some(now);
        self.failures = 0;
    }

    /// Notes a fetch that did not work.
    pub(super) fn failed(&mut self, trigger: Trigger, now: Instant) {
        let wait = if self.last_good.is_some() {
            SHORTEST
        } else {
            // Without keys nobody gets in: the first tries follow quickly.
            FIRST_RETRY
                .saturating_mul(1 << self.failures.min(6))
                .min(SHORTEST)
        };
        self.next = now + wait;
        self.failures = self.failures.saturating_add(1);
        self.cool_down(trigger, now);
    }

    fn cool_down(&mut self, trigger: Trigger, now: Instant) {
        if trigger == Trigger::Demand {
            self.cool = now + COOL_DOWN;
        }
    }

    /// When the next fetch is due.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// When requests may ask again, if they may not now.
    pub(super) fn cooling(&self, now: Instant) -> Option<Instant> {
        (self.cool > now).then_some(self.cool)
    }

    /// Whether the last good keys are too old to go on with.
    pub(super) fn stale(&self, now: Instant) -> bool {
        self.last_good
            .is_some_and(|then| now.saturating_duration_since(then) >= STALE)
    }
}

/// Keys are fetched anew at least this often, even if `max-age` allows more.
const LONGEST: Duration = Duration::from_hours(1);
/// Keys are fetched by plan at most this often, even if `max-age` demands more.
const SHORTEST: Duration = Duration::from_mins(1);
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// Time between two fetches that requests ask for.
const COOL_DOWN: Duration = Duration::from_secs(30);
/// How long unconfirmed keys count.
const STALE: Duration = Duration::from_hours(24);
/// The part of the interval that is taken off at random.
const SPREAD: f64 = 0.1;
