//! One issuer's signing keys, kept fresh in the background.
//!
//! A single task fetches; requests read what is there. A request that meets an unknown key id asks
//! the task for a fetch and waits for its end: all that ask meanwhile wait for the same one.
//!
//! # Invariants
//! A fetch belongs to the task and not to the request that asked for it: hanging up can't cancel it
//! and leave the cool-down behind. A request waits for two fetches at most, each with its time
//! limit. A failed fetch never removes keys that are younger than a day. Issuers share nothing but
//! the HTTP client.

use std::error::Error;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::jwks::KeySet;
use super::jwt::Token;
use super::refusal::Refusal;
use super::schedule::{Schedule, Trigger};
use super::source::{Hurry, Source};

/// The keys of one issuer, as requests see them.
#[derive(Debug)]
pub(super) struct Keys {
    state: watch::Sender<State>,
    wanted: Notify,
}

#[derive(Clone, Debug)]
struct State {
    keys: Option<Arc<KeySet>>,
    phase: Phase,
    /// Fetches that have ended, well or not.
    fetches: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A fetch is running or about to start.
    Fetching,
    /// Requests may ask for a fetch.
    Idle,
    /// Requests have asked lately.
    Cooling,
}

impl Keys {
    /// No keys yet; [`keep_fresh`](Self::keep_fresh) gets them.
    pub(super) fn new() -> Self {
        let state = State {
            keys: None,
            phase: Phase::Fetching,
            fetches: 0,
        };
        Self {
            state: watch::Sender::new(state),
            wanted: Notify::new(),
        }
    }

    /// Tells the current set from earlier ones; `None` without keys.
    pub(super) fn fingerprint(&self) -> Option<[u8; 32]> {
        self.state
            .borrow()
            .keys
            .as_ref()
            .map(|keys| keys.fingerprint())
    }

    /// Checks the token's signature, with newer keys if those at hand don't know the key. Returns
    /// the fingerprint of the set that knew it.
    pub(super) async fn verify(&self, token: &Token<'_>) -> Result<[u8; 32], Refusal> {
        let mut watch = self.state.subscribe();
        // The first fetch may have started before the issuer published the key; the second can't
        // have.
        for round in 0..=FETCHES_TO_WAIT_FOR {
            let state = watch.borrow_and_update().clone();
            let refusal = match &state.keys {
                None => Refusal::KeysUnavailable,
                Some(keys) => match keys.verify(token) {
                    Ok(()) => return Ok(keys.fingerprint()),
                    Err(refusal) => refusal,
                },
            };
            let curable = matches!(
                refusal,
                Refusal::UnknownSigningKey | Refusal::KeysUnavailable
            );
            if !curable
                || round == FETCHES_TO_WAIT_FOR
                || !self.fetch_ended(&mut watch, &state).await
            {
                return Err(refusal);
            }
        }
        Err(Refusal::UnknownSigningKey)
    }

    /// Asks for a fetch and waits for its end. False when none may be asked for, or it takes too
    /// long.
    async fn fetch_ended(&self, watch: &mut watch::Receiver<State>, seen: &State) -> bool {
        match seen.phase {
            Phase::Cooling => return false,
            Phase::Idle => self.wanted.notify_one(),
            Phase::Fetching => {}
        }
        let ended = watch.wait_for(|state| state.fetches != seen.fetches);
        tokio::time::timeout(PATIENCE, ended)
            .await
            .is_ok_and(|ended| ended.is_ok())
    }

    /// Fetches now, and then whenever the plan or a request says so, until `stop`.
    #[expect(
        clippy::disallowed_methods,
        reason = "the task that drives the schedule"
    )]
    pub(super) async fn keep_fresh(
        &self,
        issuer: &str,
        mut source: Source,
        stop: CancellationToken,
    ) {
        let mut schedule = Schedule::new(Instant::now());
        let mut trigger = Trigger::Time;
        loop {
            self.state
                .send_modify(|state| state.phase = Phase::Fetching);
            let fetch = self.fetch(issuer, &mut source, trigger, &mut schedule);
            if stop.run_until_cancelled(fetch).await.is_none() {
                return;
            }
            match stop.run_until_cancelled(self.next_trigger(&schedule)).await {
                Some(next) => trigger = next,
                None => return,
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the task that drives the schedule"
    )]
    async fn fetch(
        &self,
        issuer: &str,
        source: &mut Source,
        trigger: Trigger,
        schedule: &mut Schedule,
    ) {
        let hurry = if trigger == Trigger::Demand {
            Hurry::Yes
        } else {
            Hurry::No
        };
        let fetched = tokio::time::timeout(FETCH_WITHIN, source.fetch(hurry)).await;
        let now = Instant::now();
        let mut found = None;
        match fetched {
            Ok(Ok(fetched)) => {
                schedule.fetched(trigger, fetched.max_age, random_fraction(), now);
                found = Some(fetched.keys);
            }
            Ok(Err(error)) => {
                schedule.failed(trigger, now);
                let error: &(dyn Error + 'static) = &error;
                tracing::warn!(issuer, error, "signing keys could not be fetched");
            }
            Err(_) => {
                schedule.failed(trigger, now);
                tracing::warn!(issuer, limit = ?FETCH_WITHIN, "signing keys did not come in time");
            }
        }
        let (stale, cooling) = (schedule.stale(now), schedule.cooling(now).is_some());
        if stale {
            tracing::error!(issuer, "the signing keys are too old and no longer used");
        }
        self.state.send_modify(|state| {
            state.fetches += 1;
            state.phase = if cooling { Phase::Cooling } else { Phase::Idle };
            match found {
                Some(keys) => state.keys = Some(same_or_new(issuer, state.keys.as_ref(), keys)),
                None if stale => state.keys = None,
                None => {}
            }
        });
    }

    /// Waits until the next fetch is due or asked for.
    #[expect(
        clippy::disallowed_methods,
        reason = "the task that drives the schedule"
    )]
    async fn next_trigger(&self, schedule: &Schedule) -> Trigger {
        let due = tokio::time::sleep_until(schedule.next());
        tokio::pin!(due);
        if let Some(end) = schedule.cooling(Instant::now()) {
            tokio::select! {
                () = &mut due => return Trigger::Time,
                () = tokio::time::sleep_until(end) => {}
            }
            // A request may have asked just before the last fetch ended: that fetch was its answer.
            if self.wanted.notified().now_or_never().is_some() {
                tracing::trace!("an earlier wish for signing keys is already fulfilled");
            }
            self.state.send_modify(|state| state.phase = Phase::Idle);
        }
        tokio::select! {
            () = &mut due => Trigger::Time,
            () = self.wanted.notified() => Trigger::Demand,
        }
    }
}

/// The set at hand if it is the one fetched, so that what was checked with it stays checked.
fn same_or_new(issuer: &str, at_hand: Option<&Arc<KeySet>>, found: KeySet) -> Arc<KeySet> {
    match at_hand {
        Some(keys) if keys.fingerprint() == found.fingerprint() => Arc::clone(keys),
        _ => {
            let (keys, skipped) = (found.len(), found.skipped());
            tracing::info!(issuer, keys, skipped, "signing keys fetched");
            Arc::new(found)
        }
    }
}

/// A random number from 0 to 1, for spreading load and nothing else.
fn random_fraction() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

/// Time for a fetch, discovery included.
const FETCH_WITHIN: Duration = Duration::from_secs(10);
/// Time that a request waits for a fetch: longer than any takes.
const PATIENCE: Duration = Duration::from_secs(12);
const FETCHES_TO_WAIT_FOR: u32 = 2;
