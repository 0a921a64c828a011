//! Bounds what one caller can write into the log by being refused: that costs them nothing, and a
//! log that is full of it tells nothing, or takes nothing more.
//!
//! Beyond a burst, refusals are counted instead of written, and the count is a record of its own.
//! Callers who are not known share one pace.

use std::num::NonZeroU32;

use dashmap::DashMap;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::auth::Principal;

/// Refusals of one caller on record, per second and at once.
const RATE: NonZeroU32 = NonZeroU32::new(20).unwrap();
const BURST: NonZeroU32 = NonZeroU32::new(500).unwrap();

/// How often each caller was refused without a record.
#[derive(Debug)]
pub(super) struct Pace {
    pace: DefaultKeyedRateLimiter<String>,
    unwritten: DashMap<String, u64>,
}

/// What to put on record about a refusal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// The refusal, and that so many of the caller's before it have no record.
    Write(u64),
    /// Nothing; it is counted.
    Count,
}

impl Pace {
    pub(super) fn new() -> Self {
        let quota = Quota::per_second(RATE).allow_burst(BURST);
        Self {
            pace: RateLimiter::keyed(quota),
            unwritten: DashMap::new(),
        }
    }

    /// One more of this caller is refused.
    pub(super) fn refused(&self, who: Option<&Principal>) -> Note {
        let key = who.map(name).unwrap_or_default();
        if self.pace.check_key(&key).is_ok() {
            Note::Write(self.unwritten.remove(&key).map_or(0, |(_, count)| count))
        } else {
            *self.unwritten.entry(key).or_default() += 1;
            Note::Count
        }
    }

    /// Forgets callers of whom there is nothing to remember.
    pub(super) fn sweep(&self) {
        self.pace.retain_recent();
        self.pace.shrink_to_fit();
    }
}

/// Sessions of nobody in particular are as easily made as refused.
fn name(principal: &Principal) -> String {
    if principal.issuer() == Principal::anonymous().issuer() {
        String::new()
    } else {
        principal.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_a_burst_refusals_are_counted_for_each_caller() {
        let pace = Pace::new();
        let mira = Principal::token("https://a", "mira", None);
        let notes: Vec<_> = (0..10_000).map(|_| pace.refused(Some(&mira))).collect();
        let written = notes
            .iter()
            .filter(|note| matches!(note, Note::Write(_)))
            .count();
        assert!((500..5_000).contains(&written), "{written}");
        // Each one is either written or counted.
        let told = |note: &Note| {
            if let Note::Write(count) = note {
                *count
            } else {
                0
            }
        };
        let told: u64 = notes.iter().map(told).sum();
        let left = pace.unwritten.iter().map(|entry| *entry).sum::<u64>();
        assert_eq!(written as u64 + told + left, 10_000);
        assert_eq!(pace.refused(None), Note::Write(0));
    }
}
