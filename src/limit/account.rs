//! What one server or principal has used up, and the maps of those of principals: one for what they ask, and
//! one for what each server asks them.
//!
//! # Invariants
//! - A count never exceeds its maximum, and each success is given back exactly once, by the drop of its guard.
//! - A map has at most [`ACCOUNTS_MAX`] entries. Principals that find it full share one account of it
//!   until the next sweep: strangers are slowed down together, those who are known are not.
//! - An account leaves its map only when nobody holds it and it says nothing that a new one would not.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use governor::clock::{Clock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::{Quota, RateLimiter};

use crate::auth::Principal;
use crate::config::Rate;

/// Principals that have an account of their own in one map at once; about 300 bytes each.
pub(super) const ACCOUNTS_MAX: usize = 100_000;

/// What one server or principal uses at the moment.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// When the bucket of the rate will be full again, in nanoseconds since the limiter was made
    /// (the "theoretical arrival time" of GCRA); 0 is long ago.
    full_at: AtomicU64,
    pub(super) running: Count,
    pub(super) sessions: Count,
    pub(super) questions: Count,
}

/// Accounts are told apart by where they are, so that one can be the key to its own bucket.
impl PartialEq for Account {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Account {}

impl std::hash::Hash for Account {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::hash(self, state);
    }
}

/// How many there are now.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicUsize);

impl Count {
    /// One more, unless there are `max` already.
    pub(super) fn take(&self, max: usize) -> bool {
        self.0
            .try_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                (now < max).then_some(now + 1)
            })
            .is_ok()
    }

    /// One less; only after a successful [`take`](Self::take).
    pub(super) fn give_back(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A rate, applied to any number of accounts.
pub(super) struct Bucket<C: Clock> {
    limiter: RateLimiter<Arc<Account>, InAccount, C, NoOpMiddleware<C::Instant>>,
    rate: Rate,
    period: u64,
    made: C::Instant,
}

impl<C: Clock> Bucket<C> {
    pub(super) fn new(rate: Rate, clock: C) -> Self {
        // GCRA multiplies period and burst in 64 bits of nanoseconds: 292 years are enough.
        let period = u64::try_from(rate.period.as_nanos())
            .unwrap_or(u64::MAX)
            .clamp(1, MAX_FILL);
        let burst = u32::try_from(MAX_FILL / period)
            .unwrap_or(u32::MAX)
            .min(rate.burst.get());
        let quota = Quota::with_period(Duration::from_nanos(period))
            .unwrap_or_else(|| Quota::per_second(rate.burst))
            .allow_burst(burst.try_into().unwrap_or(rate.burst));
        let limiter = RateLimiter::new(quota, InAccount, clock);
        let made = limiter.clock().now();
        Self {
            limiter,
            rate,
            period,
            made,
        }
    }

    /// The rate that it keeps.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes one request out of an account's bucket; the error is when one will be there.
    pub(super) fn take(&self, account: &Arc<Account>) -> Result<(), Duration> {
        self.limiter
            .check_key(account)
            .map_err(|until| until.wait_time_from(self.limiter.clock().now()))
    }

    /// Puts back what a [`take`](Self::take) took: the bucket is full one period earlier. Exact, unless the
    /// bucket has filled up between the two, which are nanoseconds apart; then it holds one too many once.
    pub(super) fn put_back(&self, account: &Account) {
        account.full_at.fetch_sub(self.period, Ordering::AcqRel);
    }

    /// Whether the account's bucket is as full as that of a new account.
    pub(super) fn is_full(&self, account: &Account) -> bool {
        // `made` is a little later than the limiter's own start, so this errs to "not yet".
        let since = self.limiter.clock().now().duration_since(self.made);
        account.full_at.load(Ordering::Acquire) <= since.as_u64()
    }
}

/// The longest time in which a bucket fills.
const MAX_FILL: u64 = u64::MAX / 2;

/// Where governor finds the state of a bucket: in the account that it is asked about.
struct InAccount;

impl StateStore for InAccount {
    type Key = Arc<Account>;

    fn measure_and_replace<T, F, E>(&self, account: &Self::Key, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut known = account.full_at.load(Ordering::Acquire);
        loop {
            let (outcome, next) = decide(NonZeroU64::new(known).map(|known| known.get().into()))?;
            match account.full_at.compare_exchange_weak(
                known,
                next.into(),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(outcome),
                Err(newer) => known = newer,
            }
        }
    }
}

/// The accounts of principals.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    map: DashMap<Principal, Arc<Account>>,
    /// Entries of the map; it would have to lock all its shards to tell.
    len: AtomicUsize,
    crowd: Arc<Account>,
}

impl Accounts {
    /// The account of a principal, or the one that all share who find the map full.
    pub(super) fn of(&self, principal: &Principal) -> Arc<Account> {
        self.own(principal)
            .unwrap_or_else(|| Arc::clone(&self.crowd))
    }

    /// The account that a principal has alone; none when the map is full.
    pub(super) fn own(&self, principal: &Principal) -> Option<Arc<Account>> {
        if let Some(known) = self.map.get(principal) {
            return Some(Arc::clone(&known));
        }
        match self.map.entry(principal.clone()) {
            Entry::Occupied(known) => Some(Arc::clone(known.get())),
            Entry::Vacant(_) if self.len.load(Ordering::Acquire) >= ACCOUNTS_MAX => None,
            Entry::Vacant(free) => {
                self.len.fetch_add(1, Ordering::AcqRel);
                Some(Arc::clone(&free.insert(Arc::default())))
            }
        }
    }

    /// Drops the accounts that nobody holds and that `is_new` finds to be like new ones.
    pub(super) fn sweep(&self, is_new: impl Fn(&Account) -> bool) {
        let before = self.len();
        self.map.retain(|_, account| {
            // The map's own is the only one: no guard, and no request that is being admitted, since it
            // takes its own under the lock that is held here.
            let stays = Arc::strong_count(account) > 1 || !is_new(account);
            if !stays {
                self.len.fetch_sub(1, Ordering::AcqRel);
            }
            stays
        });
        if self.len() < before / 2 {
            self.map.shrink_to_fit();
        }
    }

    /// How many principals have an account of their own.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// How many the map itself counts.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.map.len()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.map.capacity()
    }
}
