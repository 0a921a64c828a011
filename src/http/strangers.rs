//! Bounds what callers who are not known can write into the audit log: anybody who reaches the
//! gateway can be refused as often as they like.
//!
//! Beyond a burst, refusals are counted instead of written, and the count is a record of its own.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// Refusals of strangers on record, per second and at once.
const RATE: NonZeroU32 = NonZeroU32::new(20).unwrap();
const BURST: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// How often strangers were refused without a record.
#[derive(Debug)]
pub(super) struct Strangers {
    pace: DefaultDirectRateLimiter,
    uncounted: AtomicU64,
}

/// What to put on record about a refusal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// The refusal, and that so many before it have no record.
    Write(u64),
    /// Nothing; it is counted.
    Count,
}

impl Strangers {
    pub(super) fn new() -> Self {
        let pace = RateLimiter::direct(Quota::per_second(RATE).allow_burst(BURST));
        Self {
            pace,
            uncounted: AtomicU64::new(0),
        }
    }

    /// One more is refused.
    pub(super) fn refused(&self) -> Note {
        if self.pace.check().is_ok() {
            Note::Write(self.uncounted.swap(0, Ordering::Relaxed))
        } else {
            self.uncounted.fetch_add(1, Ordering::Relaxed);
            Note::Count
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_a_burst_refusals_are_counted() {
        let strangers = Strangers::new();
        let notes: Vec<_> = (0..10_000).map(|_| strangers.refused()).collect();
        let written = notes
            .iter()
            .filter(|note| matches!(note, Note::Write(_)))
            .count();
        assert!((200..2_000).contains(&written), "{written}");
        // Each one is either written or counted.
        let told: u64 = notes
            .iter()
            .map(|note| {
                if let Note::Write(count) = note {
                    *count
                } else {
                    0
                }
            })
            .sum();
        let left = strangers.uncounted.load(Ordering::Relaxed);
        assert_eq!(written as u64 + told + left, 10_000);
    }
}
