//! The states that were given for approvals and did not come back yet: so that each counts once.
//!
//! # Invariants
//! - Who has as many as one may have loses their own oldest one, and nobody else loses any.
//! - A state that is not here does not count: forgotten is the same as used.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::super::modern::seal::CallId;
use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;
use crate::limit::QuestionSlot;
use crate::protocol::message::Message;

/// The most states of one principal.
const EACH: usize = 256;

/// The most states of all.
const MOST: usize = 10_000;

/// How long a state that counts no longer is remembered, so that who comes a little late is told why. After
/// that it says so itself, in whole seconds.
const GRACE: Duration = Duration::from_secs(2);

/// The states.
#[derive(Debug, Default)]
pub(in crate::relay) struct Ledger(Mutex<Given>);

/// A state that was given.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) id: CallId,
    /// When it was given.
    pub(super) since: Instant,
    /// When it counts no longer.
    pub(super) until: Instant,
    pub(super) server: ServerName,
    /// The question that went with it, and its place among those of its person; none for a call that was
    /// approved before.
    pub(super) question: Option<(Message, QuestionSlot)>,
}

#[derive(Debug, Default)]
struct Given {
    all: usize,
    /// Those of each principal, the oldest first.
    of: HashMap<Principal, VecDeque<Ticket>>,
}

impl Ledger {
    /// Remembers a state; gives the one that had to give way.
    ///
    /// # Errors
    /// When others have as many as there may be.
    pub(super) fn give(&self, who: &Principal, ticket: Ticket) -> Result<Option<Ticket>, Error> {
        let mut given = self.0.lock();
        let full = given.of.get(who).is_some_and(|own| own.len() >= EACH);
        let lost = if full { given.pop(who) } else { None };
        if given.all >= MOST {
            return Err(Error::Capacity("too many calls wait for approvals".into()));
        }
        given.all += 1;
        given.of.entry(who.clone()).or_default().push_back(ticket);
        Ok(lost)
    }

    /// Uses up a state.
    pub(super) fn take(&self, who: &Principal, id: CallId) -> Option<Ticket> {
        let mut given = self.0.lock();
        let own = given.of.get_mut(who)?;
        let at = own.iter().position(|ticket| ticket.id == id)?;
        let ticket = own.remove(at)?;
        given.left(who, 1);
        Some(ticket)
    }

    /// Forgets the oldest state of a principal that came with a question.
    pub(super) fn drop_oldest(&self, who: &Principal) -> Option<Ticket> {
        let mut given = self.0.lock();
        let own = given.of.get_mut(who)?;
        let at = own.iter().position(|ticket| ticket.question.is_some())?;
        let ticket = own.remove(at)?;
        given.left(who, 1);
        Some(ticket)
    }

    /// Forgets the states that count no longer.
    pub(super) fn sweep(&self, now: Instant) -> Vec<(Principal, Ticket)> {
        let mut given = self.0.lock();
        let mut over = Vec::new();
        for (who, own) in &mut given.of {
            let (late, rest): (VecDeque<_>, VecDeque<_>) =
                own.drain(..).partition(|ticket| ticket.until + GRACE < now);
            *own = rest;
            over.extend(late.into_iter().map(|ticket| (who.clone(), ticket)));
        }
        given.of.retain(|_, own| !own.is_empty());
        given.all -= over.len();
        over
    }

    /// Forgets all states.
    pub(super) fn clear(&self) -> Vec<(Principal, Ticket)> {
        let Given { of, .. } = std::mem::take(&mut *self.0.lock());
        let each = |(who, own): (Principal, VecDeque<Ticket>)| {
            own.into_iter().map(move |ticket| (who.clone(), ticket))
        };
        of.into_iter().flat_map(each).collect()
    }
}

impl Given {
    fn pop(&mut self, who: &Principal) -> Option<Ticket> {
        let ticket = self.of.get_mut(who)?.pop_front()?;
        self.left(who, 1);
        Some(ticket)
    }

    /// So many of a principal are no longer here.
    fn left(&mut self, who: &Principal, count: usize) {
        self.all -= count;
        if self.of.get(who).is_some_and(VecDeque::is_empty) {
            self.of.remove(who);
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may read the clock")]
mod tests {
    use super::*;

    fn ticket(until: Instant) -> Ticket {
        Ticket {
            id: CallId::random().unwrap(),
            since: until,
            until,
            server: ServerName("alpha".into()),
            question: None,
        }
    }

    #[test]
    fn a_state_counts_once_and_for_its_principal() {
        let (ledger, now) = (Ledger::default(), Instant::now());
        let [mira, joris] = ["mira", "joris"].map(Principal::api_key);
        let given = ticket(now);
        let id = given.id;
        assert!(ledger.give(&mira, given).unwrap().is_none());
        assert!(ledger.take(&joris, id).is_none());
        assert!(ledger.take(&mira, id).is_some());
        assert!(ledger.take(&mira, id).is_none());
        assert!(ledger.0.lock().of.is_empty());
    }

    #[test]
    fn who_has_too_many_loses_their_own_oldest() {
        let (ledger, now) = (Ledger::default(), Instant::now());
        let [mira, joris] = ["mira", "joris"].map(Principal::api_key);
        let other = ticket(now);
        let (other_id, first) = (other.id, ticket(now));
        let first_id = first.id;
        ledger.give(&joris, other).unwrap();
        ledger.give(&mira, first).unwrap();
        for _ in 1..EACH {
            assert!(ledger.give(&mira, ticket(now)).unwrap().is_none());
        }
        let lost = ledger.give(&mira, ticket(now)).unwrap();
        assert_eq!(lost.unwrap().id, first_id);
        assert_eq!(ledger.0.lock().all, EACH + 1);
        assert!(ledger.take(&joris, other_id).is_some());
    }

    #[test]
    fn what_counts_no_longer_is_forgotten() {
        let (ledger, now) = (Ledger::default(), Instant::now());
        let mira = Principal::api_key("mira");
        let late = ticket(now + Duration::from_secs(9));
        let id = late.id;
        ledger.give(&mira, ticket(now)).unwrap();
        ledger.give(&mira, late).unwrap();
        assert_eq!(ledger.sweep(now + Duration::from_secs(5)).len(), 1);
        assert!(ledger.take(&mira, id).is_some());
        let given = ledger.0.lock();
        assert_eq!((given.all, given.of.len()), (0, 0));
    }
}
