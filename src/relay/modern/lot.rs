//! The parking lot: where the calls are whose clients are away, by the id that is sealed into the
//! state that the client holds.

use std::time::{Duration, Instant};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::mpsc::Sender;

use super::call::Return;
use super::kept::{Given, Kept};
use super::parks::{Full, Parking, Parks};
use super::seal::CallId;
use crate::auth::Principal;
use crate::protocol::client_modern::Rejected;

/// How long it is remembered how a call ended, so that who comes too late is told why.
const TOMBSTONE: Duration = Duration::from_mins(10);

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Its outcome was delivered.
    Consumed,
    /// It was cancelled, or nobody came back in time.
    Expired,
}

/// Where retries of a call go.
pub(super) type Retries = Sender<Box<Return>>;

#[derive(Debug)]
enum Place {
    Running(Retries),
    Over(Over, Instant),
}

/// The calls that clients can come back to.
#[derive(Debug)]
pub(crate) struct Lot {
    calls: DashMap<CallId, Place>,
    parks: Parks,
    kept: Mutex<Kept>,
}

impl Lot {
    /// A lot with as many places for each principal as they may have questions open.
    pub(crate) fn new(each: Option<usize>) -> Self {
        Self {
            calls: DashMap::new(),
            parks: Parks::new(each),
            kept: Mutex::default(),
        }
    }

    /// The client of a call goes away.
    ///
    /// # Errors
    /// When there is no place for one more.
    pub(super) fn park(&self, who: &Principal) -> Result<Parking, Full> {
        self.parks.park(who)
    }

    /// A client that came back is given the outcome of its call.
    pub(super) fn keep(&self, now: Instant, call: CallId, who: &Principal, given: Given) {
        self.kept.lock().keep(now, call, who, given);
    }

    /// What a client was given a moment ago for the request of this digest.
    pub(super) fn given(&self, now: Instant, call: CallId, request: [u8; 32]) -> Option<Given> {
        self.kept.lock().find(now, call, request)
    }

    /// A call begins that may be parked.
    pub(super) fn open(&self, id: CallId, retries: Retries) {
        self.calls.insert(id, Place::Running(retries));
    }

    /// A call has ended.
    pub(super) fn close(&self, id: CallId, over: Over, now: Instant) {
        self.calls.insert(id, Place::Over(over, now));
    }

    /// A call has ended that nobody can come back to.
    pub(super) fn forget(&self, id: CallId) {
        self.calls.remove(&id);
    }

    /// Where retries of a call go.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn find(&self, id: CallId) -> Result<Retries, Rejected> {
        match self.calls.get(&id).as_deref() {
            Some(Place::Running(retries)) => Ok(retries.clone()),
            Some(Place::Over(Over::Consumed, _)) => Err(consumed()),
            Some(Place::Over(Over::Expired, _)) | None => Err(expired()),
        }
    }

    /// Forgets how calls ended that ended long ago.
    pub(crate) fn sweep(&self, now: Instant) {
        self.kept.lock().sweep(now);
        self.calls.retain(|_, place| match place {
            Place::Running(_) => true,
            Place::Over(_, at) => now.saturating_duration_since(*at) < TOMBSTONE,
        });
    }
}

pub(super) fn consumed() -> Rejected {
    Rejected::State("state_consumed", "this round has been answered")
}

pub(super) fn expired() -> Rejected {
    Rejected::State("state_expired", "the interaction has expired")
}
