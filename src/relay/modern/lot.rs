//! The parking lot: where the calls are whose clients are away, by the id that is sealed into the
//! state that the client holds.

use std::time::{Duration, Instant};

use dashmap::DashMap;
use tokio::sync::mpsc::Sender;

use super::call::Return;
use super::seal::CallId;
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
pub(super) type Retries = Sender<Return>;

#[derive(Debug)]
enum Place {
    Running(Retries),
    Over(Over, Instant),
}

/// The calls by id.
#[derive(Debug, Default)]
pub(crate) struct Lot(DashMap<CallId, Place>);

impl Lot {
    /// A call begins that may be parked.
    pub(super) fn open(&self, id: CallId, retries: Retries) {
        self.0.insert(id, Place::Running(retries));
    }

    /// A call has ended.
    pub(super) fn close(&self, id: CallId, over: Over, now: Instant) {
        self.0.insert(id, Place::Over(over, now));
    }

    /// A call has ended that nobody can come back to.
    pub(super) fn forget(&self, id: CallId) {
        self.0.remove(&id);
    }

    /// Where retries of a call go.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn find(&self, id: CallId) -> Result<Retries, Rejected> {
        match self.0.get(&id).as_deref() {
            Some(Place::Running(retries)) => Ok(retries.clone()),
            Some(Place::Over(Over::Consumed, _)) => Err(consumed()),
            Some(Place::Over(Over::Expired, _)) | None => Err(expired()),
        }
    }

    /// Forgets how calls ended that ended long ago.
    pub(crate) fn sweep(&self, now: Instant) {
        self.0.retain(|_, place| match place {
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
