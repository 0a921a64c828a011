//! How many calls may be away at once: so many of each principal, and so many of all.
//!
//! # Invariants
//! - Who has as many away as they may loses the one that has been away longest, and nobody else loses
//!   any: one who never comes back pushes out their own calls.
//! - Who has fewer may have one more while there is a place at all; else they are told so.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::auth::Principal;

/// The most calls that are away at once.
const MOST: usize = 10_000;

/// There is no place for one more call that is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// The places.
#[derive(Clone, Debug)]
pub(super) struct Parks(Arc<Mutex<Taken>>);

/// A place, until this is dropped.
#[derive(Debug)]
pub(super) struct Parking {
    parks: Parks,
    who: Principal,
    /// Told when another call of the same principal needs the place.
    told: Arc<Notify>,
}

/// Which places are taken.
#[derive(Debug)]
struct Taken {
    each: Option<usize>,
    most: usize,
    all: usize,
    /// Those of each principal, the one that has been away longest first.
    of: HashMap<Principal, VecDeque<Arc<Notify>>>,
}

impl Parks {
    /// As many places for each principal as they may have questions open.
    pub(super) fn new(each: Option<usize>) -> Self {
        Self::with(each, MOST)
    }

    fn with(each: Option<usize>, most: usize) -> Self {
        Self(Arc::new(Mutex::new(Taken {
            each,
            most,
            all: 0,
            of: HashMap::new(),
        })))
    }

    /// A call of this principal goes away.
    ///
    /// # Errors
    /// When others have taken all places.
    pub(super) fn park(&self, who: &Principal) -> Result<Parking, Full> {
        let told = Arc::new(Notify::new());
        self.0.lock().take(who, Arc::clone(&told))?;
        Ok(Parking {
            parks: self.clone(),
            who: who.clone(),
            told,
        })
    }
}

impl Parking {
    /// Waits until the place is another's.
    pub(super) async fn lost(&self) {
        self.told.notified().await;
    }
}

impl Drop for Parking {
    fn drop(&mut self) {
        self.parks.0.lock().leave(&self.who, &self.told);
    }
}

impl Taken {
    fn take(&mut self, who: &Principal, told: Arc<Notify>) -> Result<(), Full> {
        let own = self.of.get_mut(who);
        let full = |own: &VecDeque<_>| self.each.is_some_and(|each| own.len() >= each.max(1));
        if let Some(own) = own
            && full(own)
        {
            if let Some(oldest) = own.pop_front() {
                oldest.notify_one();
            }
            own.push_back(told);
            return Ok(());
        }
        if self.all >= self.most {
            return Err(Full);
        }
        self.all += 1;
        self.of.entry(who.clone()).or_default().push_back(told);
        Ok(())
    }

    /// Does nothing when the place is another's already.
    fn leave(&mut self, who: &Principal, told: &Arc<Notify>) {
        let Some(own) = self.of.get_mut(who) else {
            return;
        };
        let before = own.len();
        own.retain(|it| !Arc::ptr_eq(it, told));
        self.all -= before - own.len();
        if own.is_empty() {
            self.of.remove(who);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn is_lost(parking: &Parking) -> bool {
        parking.lost().now_or_never().is_some()
    }

    #[test]
    fn f58_who_has_too_many_away_loses_their_own_oldest() {
        let (parks, mira, joris) = (
            Parks::with(Some(2), 4),
            Principal::api_key("mira"),
            Principal::api_key("joris"),
        );
        let other = parks.park(&joris).unwrap();
        let first = parks.park(&mira).unwrap();
        let second = parks.park(&mira).unwrap();
        let third = parks.park(&mira).unwrap();
        assert!(is_lost(&first));
        assert!(![&second, &third, &other].into_iter().any(is_lost));
        // What has lost its place has none to give back.
        drop(first);
        let fourth = parks.park(&mira).unwrap();
        assert!(is_lost(&second) && !is_lost(&third) && !is_lost(&fourth));
    }

    #[test]
    fn f58_when_all_places_are_taken_the_newcomer_is_told_and_nobody_loses_any() {
        let parks = Parks::with(Some(2), 3);
        let [mira, joris, third] = ["mira", "joris", "third"].map(Principal::api_key);
        let away = [&mira, &mira, &joris].map(|who| parks.park(who).unwrap());
        assert_eq!(parks.park(&third).err(), Some(Full));
        assert_eq!(parks.park(&joris).err(), Some(Full));
        assert!(!away.iter().any(is_lost));
        // Who is over their own number takes no place of all.
        let more = parks.park(&mira).unwrap();
        assert!(is_lost(&away[0]) && !is_lost(&more));
        let [first, second, other] = away;
        drop((first, second));
        assert!(parks.park(&third).is_ok());
        drop((other, more));
        assert_eq!(parks.0.lock().all, 0);
        assert!(parks.0.lock().of.is_empty());
    }

    #[test]
    fn without_a_number_for_each_only_the_whole_is_bounded() {
        let (parks, mira) = (Parks::with(None, 3), Principal::api_key("mira"));
        let away: Vec<_> = (0..3).map(|_| parks.park(&mira).unwrap()).collect();
        assert_eq!(parks.park(&mira).err(), Some(Full));
        assert!(!away.iter().any(is_lost));
    }
}
