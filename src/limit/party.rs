//! The two whose limits a request has to keep: the principal and the server.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::Clock;

use super::account::{Account, Bucket};
use super::{Admission, Guard, Kind, Limited, What, Who};
use crate::config::{RateLimits, ServerName};

/// What applies to one server, or to each principal.
pub(super) struct Rules<C: Clock> {
    pub(super) bucket: Option<Bucket<C>>,
    concurrent: Option<NonZeroU32>,
}

impl<C: Clock> Rules<C> {
    /// The limits that a configuration names.
    pub(super) fn new(limits: &RateLimits, clock: &C) -> Self
    where
        C: Clone,
    {
        Self {
            bucket: limits.requests.map(|rate| Bucket::new(rate, clock.clone())),
            concurrent: limits.concurrent,
        }
    }

    /// Whether there is a limit at all.
    pub(super) fn limit_something(&self) -> bool {
        self.bucket.is_some() || self.concurrent.is_some()
    }
}

/// A server that has limits, and what all its callers have used up.
pub(super) struct Side<C: Clock> {
    pub(super) name: ServerName,
    pub(super) rules: Rules<C>,
    pub(super) account: Arc<Account>,
}

impl<C: Clock> Side<C> {
    pub(super) fn party(&self) -> Party<'_, C> {
        Party {
            server: Some(&self.name),
            rules: &self.rules,
            account: &self.account,
        }
    }
}

/// One of the two.
pub(super) struct Party<'a, C: Clock> {
    /// `None`: the principal.
    pub(super) server: Option<&'a ServerName>,
    pub(super) rules: &'a Rules<C>,
    pub(super) account: &'a Arc<Account>,
}

impl<C: Clock> Party<'_, C> {
    fn limited(&self, what: What, retry_after: Duration) -> Limited {
        Limited {
            who: self.server.cloned().map_or(Who::Principal, Who::Server),
            what,
            retry_after,
        }
    }

    /// Takes one of the requests that may run at once.
    fn enter(&self) -> Result<Option<Guard>, Limited> {
        let Some(max) = self.rules.concurrent else {
            return Ok(None);
        };
        let most = usize::try_from(max.get()).unwrap_or(usize::MAX);
        Guard::take(self.account, Kind::Running, most)
            .map(Some)
            .ok_or_else(|| self.limited(What::Concurrency(max), RUNNING_WAIT))
    }
}

/// Takes a place and one request of both, or nothing.
pub(super) fn admit<C: Clock>(
    own: Option<Party<'_, C>>,
    theirs: Option<Party<'_, C>>,
) -> Result<Admission, Limited> {
    let enter = |party: &Option<Party<'_, C>>| party.as_ref().map_or(Ok(None), Party::enter);
    let running = [enter(&own)?, enter(&theirs)?];
    spend(own, theirs)?;
    Ok(Admission { running })
}

/// Takes one request out of both buckets, or out of none.
pub(super) fn spend<C: Clock>(
    own: Option<Party<'_, C>>,
    theirs: Option<Party<'_, C>>,
) -> Result<(), Limited> {
    let mut paid: Option<(&Arc<Account>, &Bucket<C>)> = None;
    for party in [own, theirs].into_iter().flatten() {
        let Some(bucket) = &party.rules.bucket else {
            continue;
        };
        if let Err(wait) = bucket.take(party.account) {
            if let Some((account, bucket)) = paid {
                bucket.put_back(account);
            }
            return Err(party.limited(What::Rate(bucket.rate()), wait));
        }
        paid = Some((party.account, bucket));
    }
    Ok(())
}

/// When to ask again for a place among running requests: nobody knows when one ends.
const RUNNING_WAIT: Duration = Duration::from_secs(1);
