//! The access token that came last on a connection: a client sends the same one with each of its
//! requests, and need not have it hashed and looked up each time.
//!
//! # Invariants
//! Only what was accepted is remembered, for as long as [`Checked`] counts and a minute at most. Time and
//! audience are checked on every request all the same. Values are compared in constant time.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use parking_lot::Mutex;

use super::bearer::Checked;

/// What one connection remembers.
#[derive(Default)]
pub struct LastToken(Mutex<Option<Known>>);

struct Known {
    /// The value of the `Authorization` header, of which a copy is kept: a part of what was read would
    /// keep all of that.
    value: Box<[u8]>,
    checked: Arc<Checked>,
}

impl LastToken {
    /// What is known about this value of `Authorization`, if it is the one that came last.
    pub(super) fn recall(&self, value: &[u8], now: SystemTime) -> Option<Arc<Checked>> {
        let last = self.0.lock();
        let Known {
            value: known,
            checked,
        } = last.as_ref()?;
        let same = verify_slices_are_equal(known, value).is_ok();
        let counts = same && checked.is_fresh(now) && checked.still_counts();
        counts.then(|| Arc::clone(checked))
    }

    /// Remembers this value instead of the one before.
    pub(super) fn remember(&self, value: &[u8], checked: &Arc<Checked>) {
        *self.0.lock() = Some(Known {
            value: value.into(),
            checked: Arc::clone(checked),
        });
    }

    /// Forgets it.
    pub fn forget(&self) {
        *self.0.lock() = None;
    }
}

impl fmt::Debug for LastToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LastToken")
    }
}
