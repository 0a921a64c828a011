//! How many questions of one server may wait for one principal, and how fast they may come.
//!
//! # Invariants
//! - Each server has accounts of its own: one whose questions go to very many principals fills its own
//!   map ([`Accounts`]), and slows down no principal of another server.
//! - The bucket is asked last, so who is refused has taken nothing: the place is given back by its guard.

use std::num::NonZeroU32;

use governor::clock::Clock;

use super::account::{Accounts, Bucket};
use super::limited::QuestionLimited;
use super::{Guard, Kind};
use crate::auth::Principal;
use crate::config::questions::QuestionLimits;

/// What applies to the questions of one server to each principal.
pub(super) struct QuestionRules<C: Clock> {
    pending: Option<NonZeroU32>,
    bucket: Option<Bucket<C>>,
    accounts: Accounts,
}

impl<C: Clock + Clone> QuestionRules<C> {
    /// The limits that a server has; `None` where it has none.
    pub(super) fn new(limits: &QuestionLimits, clock: &C) -> Option<Self> {
        if limits.pending.is_none() && limits.rate.is_none() {
            return None;
        }
        Some(Self {
            pending: limits.pending,
            bucket: limits.rate.map(|rate| Bucket::new(rate, clock.clone())),
            accounts: Accounts::default(),
        })
    }

    /// Takes a place among the questions that wait, where they are counted, and one out of the bucket.
    pub(super) fn take(&self, principal: &Principal) -> Result<Option<Guard>, QuestionLimited> {
        let account = self.accounts.of(principal);
        let place = match self.pending {
            None => None,
            Some(max) => {
                let most = usize::try_from(max.get()).unwrap_or(usize::MAX);
                let place = Guard::take(&account, Kind::Question, most);
                Some(place.ok_or(QuestionLimited::Pending)?)
            }
        };
        if let Some(bucket) = &self.bucket {
            // The text names no time: servers are no clients that come back by a clock.
            bucket
                .take(&account)
                .map_err(|_wait| QuestionLimited::Rate)?;
        }
        Ok(place)
    }

    /// Forgets the principals of whom there is nothing to remember.
    pub(super) fn sweep(&self) {
        let bucket = self.bucket.as_ref();
        self.accounts
            .sweep(|account| bucket.is_none_or(|bucket| bucket.is_full(account)));
    }

    /// How many principals are remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.accounts.len()
    }
}
