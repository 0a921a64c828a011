//! A caller at a server, found once for all that they ask.
//!
//! # Invariants
//! - A standing counts with whatever else its principal and its server are asked for: it has their
//!   accounts, none of its own.
//! - It holds the principal's account, so that the account outlives all sweeps while the standing lives: two
//!   accounts of one principal would be twice the limit.
//! - It does not hold the account that strangers share when the map is full. Who came then has one of their
//!   own as soon as there is room.

use std::fmt;
use std::sync::Arc;

use governor::clock::{Clock, DefaultClock};

use super::account::Account;
use super::party::{self, Party, Side};
use super::{Admission, Limited, Limiter};
use crate::auth::Principal;
use crate::config::ServerName;

/// One principal at one server, for who asks often: a session. Spares each request the search for both.
pub struct Standing<C: Clock = DefaultClock> {
    principal: Principal,
    own: Option<Arc<Account>>,
    theirs: Option<Arc<Side<C>>>,
}

impl<C: Clock + Clone> Limiter<C> {
    /// Finds a principal and a server.
    pub fn standing(&self, server: &ServerName, principal: &Principal) -> Standing<C> {
        let limited = self.principals.limit_something();
        Standing {
            principal: principal.clone(),
            own: limited.then(|| self.accounts.own(principal)).flatten(),
            theirs: self.servers.get(server).cloned(),
        }
    }

    /// The same as [`admit`](Self::admit), of one whose standing is known.
    pub fn admit_known(&self, standing: &Standing<C>) -> Result<Admission, Limited> {
        let stranger = self.stranger(standing);
        let own = standing.own.as_ref().or(stranger.as_ref());
        party::admit(self.own(own), standing.theirs())
    }

    /// The same as [`pass`](Self::pass), of one whose standing is known.
    pub fn pass_known(&self, standing: &Standing<C>) -> Result<(), Limited> {
        let stranger = self.stranger(standing);
        let own = standing.own.as_ref().or(stranger.as_ref());
        party::spend(self.own(own), standing.theirs())
    }

    /// The account to look up for one who had none of their own when they came.
    fn stranger(&self, standing: &Standing<C>) -> Option<Arc<Account>> {
        match standing.own {
            Some(_) => None,
            None => self.rated(&standing.principal),
        }
    }
}

impl<C: Clock> Standing<C> {
    fn theirs(&self) -> Option<Party<'_, C>> {
        self.theirs.as_deref().map(Side::party)
    }
}

impl<C: Clock> fmt::Debug for Standing<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing")
            .field("principal", &self.principal)
            .field("server", &self.theirs.as_ref().map(|side| &side.name))
            .finish_non_exhaustive()
    }
}
