//! How much one may ask: rate and concurrency per server and per principal, sessions, questions.
//!
//! A rate is a bucket: it holds `burst` requests and is refilled evenly. Concurrency, sessions and
//! questions are counts, held by guards that give back when they are dropped.
//!
//! # Invariants
//! - Concurrency is asked before the rates, so a request that has to wait for others costs nothing.
//! - A request takes from both rates or from none: what the principal's gave is put back when the
//!   server's refuses. So a refused request is as if it had never been. For the nanoseconds between
//!   the two, another request of the same principal may find the bucket emptier than it is.
//! - The principal's limits are asked first: one who is over their own never touches what all share,
//!   and hears of their own limit when both are reached.
//! - What is unlimited has no state: without limits on principals, and on the questions of servers, no
//!   principal is remembered.
//! - A question takes from all three limits or from none: the rate, which gives nothing back, is asked last.
//! - Nothing waits here, and no lock is held when a function returns.
//! - Memory is bounded, see [`account`]; [`Limiter::sweep`] has to be called now and then.

mod account;
mod limited;
mod party;
mod question;
mod standing;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};

use crate::auth::Principal;
use crate::config::{Config, RateLimits, ServerName};
use account::{Account, Accounts, Count};
use party::{Party, Rules, Side};
use question::QuestionRules;

pub use standing::Standing;

pub use limited::{Limited, QuestionLimited, What, Who};

/// Decides whether one more request, notification, session or question is within the limits.
pub struct Limiter<C: Clock = DefaultClock> {
    servers: HashMap<ServerName, Arc<Side<C>>>,
    principals: Rules<C>,
    accounts: Accounts,
    sessions_each: Option<usize>,
    sessions_all: Option<(usize, Arc<Count>)>,
    questions_each: Option<usize>,
    questions_of: HashMap<ServerName, QuestionRules<C>>,
}

/// A request that may run. Its place is free again when this is dropped: keep it until the
/// answer has been given.
#[derive(Debug)]
#[must_use]
pub struct Admission {
    #[expect(dead_code, reason = "held for their drop")]
    running: [Option<Guard>; 2],
}

impl Admission {
    /// For what the gateway itself asks on behalf of a request that was admitted.
    pub fn of_the_gateway() -> Self {
        Self {
            running: [None, None],
        }
    }
}

/// A session that may exist, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct SessionSlot {
    #[expect(dead_code, reason = "held for its drop")]
    own: Option<Guard>,
    all: Option<Arc<Count>>,
}

/// A question that may wait for an answer, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct QuestionSlot {
    #[expect(dead_code, reason = "held for their drop")]
    waiting: [Option<Guard>; 2],
}

/// One of an account's counts, to be given back.
#[derive(Debug)]
struct Guard(Arc<Account>, Kind);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Running,
    Session,
    Question,
}

impl Guard {
    fn take(account: &Arc<Account>, kind: Kind, max: usize) -> Option<Self> {
        kind.of(account)
            .take(max)
            .then(|| Self(Arc::clone(account), kind))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.1.of(&self.0).give_back();
    }
}

impl Kind {
    fn of(self, account: &Account) -> &Count {
        match self {
            Self::Running => &account.running,
            Self::Session => &account.sessions,
            Self::Question => &account.questions,
        }
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        if let Some(all) = &self.all {
            all.give_back();
        }
    }
}

impl Limiter {
    /// The limits that a configuration names.
    pub fn new(config: &Config) -> Self {
        Self::with_clock(config, &DefaultClock::default())
    }
}

impl<C: Clock + Clone> Limiter<C> {
    fn with_clock(config: &Config, clock: &C) -> Self {
        let servers = config
            .servers
            .values()
            .filter(|server| server.limits != RateLimits::default());
        let questions_of = config.servers.values().filter_map(|server| {
            let rules = QuestionRules::new(&server.questions.limits, clock)?;
            Some((server.name.clone(), rules))
        });
        let each = &config.limits.per_principal;
        Self {
            servers: servers
                .map(|server| {
                    let side = Side {
                        name: server.name.clone(),
                        rules: Rules::new(&server.limits, clock),
                        account: Arc::default(),
                    };
                    (server.name.clone(), Arc::new(side))
                })
                .collect(),
            principals: Rules::new(&each.rates, clock),
            accounts: Accounts::default(),
            sessions_each: each.sessions,
            sessions_all: config.sessions.max.map(|max| (max, Arc::default())),
            questions_each: each.questions,
            questions_of: questions_of.collect(),
        }
    }

    /// Asks for one request that will run: the concurrency and the rate of both.
    pub fn admit(&self, server: &ServerName, principal: &Principal) -> Result<Admission, Limited> {
        let account = self.rated(principal);
        party::admit(self.own(account.as_ref()), self.theirs(server))
    }

    /// Asks for one message that does not run, a notification: the rate of both.
    pub fn pass(&self, server: &ServerName, principal: &Principal) -> Result<(), Limited> {
        let account = self.rated(principal);
        party::spend(self.own(account.as_ref()), self.theirs(server))
    }

    /// Asks for one question more that this server puts to the principal, and that waits for the answer.
    pub fn question(
        &self,
        server: &ServerName,
        principal: &Principal,
    ) -> Result<QuestionSlot, QuestionLimited> {
        let own = match self.questions_each {
            None => None,
            Some(max) => Some(
                Guard::take(&self.accounts.of(principal), Kind::Question, max)
                    .ok_or(QuestionLimited::Questions)?,
            ),
        };
        let of_server = match self.questions_of.get(server) {
            None => None,
            Some(rules) => rules.take(principal)?,
        };
        Ok(QuestionSlot {
            waiting: [own, of_server],
        })
    }

    /// Asks for one session more, of the principal and of all.
    pub fn session(&self, principal: &Principal) -> Result<SessionSlot, Limited> {
        let full = |who, max| Limited {
            who,
            what: What::Sessions(max),
            retry_after: SESSION_WAIT,
        };
        let own = match self.sessions_each {
            None => None,
            Some(max) => Some(
                Guard::take(&self.accounts.of(principal), Kind::Session, max)
                    .ok_or_else(|| full(Who::Principal, max))?,
            ),
        };
        let all = match &self.sessions_all {
            None => None,
            Some((max, count)) if count.take(*max) => Some(Arc::clone(count)),
            Some((max, _)) => return Err(full(Who::Gateway, *max)),
        };
        Ok(SessionSlot { own, all })
    }

    /// Forgets the principals of whom there is nothing to remember. To be called each minute; takes
    /// time in proportion to the principals seen since the last one (some 10 ms for 100 000), by all
    /// and by each server that asked them.
    pub fn sweep(&self) {
        let bucket = self.principals.bucket.as_ref();
        self.accounts
            .sweep(|account| bucket.is_none_or(|bucket| bucket.is_full(account)));
        for rules in self.questions_of.values() {
            rules.sweep();
        }
    }

    /// The account of a principal, where requests of principals are limited.
    fn rated(&self, principal: &Principal) -> Option<Arc<Account>> {
        let limited = self.principals.limit_something();
        limited.then(|| self.accounts.of(principal))
    }

    fn own<'a>(&'a self, account: Option<&'a Arc<Account>>) -> Option<Party<'a, C>> {
        let rules = &self.principals;
        account.map(|account| Party {
            server: None,
            rules,
            account,
        })
    }

    fn theirs(&self, server: &ServerName) -> Option<Party<'_, C>> {
        self.servers.get(server).map(|side| side.party())
    }
}

/// When to ask again for a session.
const SESSION_WAIT: Duration = Duration::from_secs(10);

impl<C: Clock> fmt::Debug for Limiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("limited_servers", &self.servers.len())
            .field("known_principals", &self.accounts.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
