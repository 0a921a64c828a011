//! Who is connected: sessions, the calls and questions in them, and the tasks that move messages.
//!
//! A legacy client holds a [`session::LiveSession`]. What that uses at its server is a [`lease`]: a
//! session of its own at a legacy server, nothing at a modern one. When a server has lost it, [`renew`] goes on
//! with another one there. Each request of the client is an
//! [`exchange`]: a task that goes on whether or not the client is still there, since disconnecting is
//! not cancelling. With a legacy server it reads the answer to its end, and a [`standalone`] task reads
//! what the server sends outside of calls; with a modern server a [`driver`] carries it through the
//! rounds, and [`subscriptions`] listens for changes. A question of either is judged by the pure
//! [`Session`](crate::protocol::session::Session), which is locked for the moment of the decision and
//! never across a wait; [`judge`] walks it through the policy of its server, [`question`] carries out what
//! is booked, and the answer goes back to its [`Asker`](pending::Asker). What a client's streams carried
//! is kept for a while in [`streams`], so that it can come back to one that broke; [`resume`] does the same
//! with a server's.
//!
//! A client of HTTP+SSE has one stream, its [`mod@line`], which is its session: it ends with that, and all that
//! others read on several streams comes on it.
//!
//! A modern client holds nothing. Its requests go [`through`] to a modern server; what it takes to ask
//! it in the midst of a legacy server's call is in [`modern`]. What the gateway itself asks, before a call
//! goes to either kind of server, is in [`approval`].
//!
//! # Invariants
//! - One lease per session, from `initialize` to the end; of the sessions that it has at a legacy server only the
//!   latest is used.
//! - A session is found by its id, its server *and* its principal. Anything else is "unknown".
//! - One way out: [`teardown`], for DELETE, expiry, a server that forgot, and shutdown.

mod account;
mod approval;
mod asked;
mod attribution;
mod backoff;
pub mod batch;
mod caller;
mod carried;
mod deliver;
mod driver;
mod exchange;
mod greet;
mod inbound;
mod judge;
mod lease;
mod line;
mod local;
mod modern;
mod notify;
mod open;
mod pending;
mod pipe;
mod probe;
mod question;
mod relayed;
mod renew;
mod resume;
mod rpc;
mod session;
mod sink;
mod standalone;
mod stop;
mod streams;
mod subscriptions;
mod teardown;
mod through;
mod tools;
mod welcome;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use dashmap::DashMap;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::caller::says_headless;
pub use self::carried::Carried;
pub use self::deliver::Item;
pub use self::line::Line;
pub use self::pipe::{Event, EventPipe};
pub use self::probe::{Found, probe};
pub use self::session::{LiveSession, SessionId};
pub use self::teardown::Ending;
use self::tools::Catalogue;
use crate::auth::Principal;
use crate::config::{Config, Server, ServerName};
use crate::error::Error;
use crate::limit::Limiter;
use crate::policy::Policy;
use crate::protocol::clock::Patience;
use crate::telemetry::audit::Audit;
use crate::upstream::client::HttpClient;
use crate::upstream::server::Upstream;
use crate::upstream::warden::Warden;

/// What a client gets for what it posted.
#[derive(Debug)]
pub enum Answer {
    /// Taken; there is nothing to say.
    Accepted,
    /// One JSON body, with the status that goes with it.
    Json(u16, Bytes),
    /// A stream of messages.
    Events(EventPipe),
}

/// The sessions of one gateway.
#[derive(Clone)]
pub struct Relay(Arc<Shared>);

/// What every session needs.
pub(crate) struct Shared {
    config: Arc<Config>,
    servers: BTreeMap<ServerName, Arc<Upstream>>,
    /// What happens to the questions of each server.
    policies: BTreeMap<ServerName, Arc<Policy>>,
    sessions: DashMap<SessionId, Arc<LiveSession>>,
    /// The streams that are sessions, or become one.
    lines: DashMap<SessionId, Arc<Line>>,
    limiter: Limiter,
    audit: Audit,
    /// The exchanges that run: what shutdown waits for first.
    calls: TaskTracker,
    /// Everything else that runs.
    tasks: TaskTracker,
    /// Sessions of clients that hold none.
    pool: modern::pool::Pool,
    /// Calls whose clients are away.
    lot: modern::lot::Lot,
    /// The approvals that modern clients hold states for, at modern servers.
    ledger: approval::Ledger,
    /// What modern servers asked modern clients.
    asked: through::Table,
    /// Seals what such clients hold.
    seal: modern::seal::Seal,
    /// How many sessions may be ending at each server at once: one that is slow to take it holds up
    /// its own alone.
    partings: BTreeMap<ServerName, Semaphore>,
    /// Set when the gateway ends: nothing new begins.
    ending: CancellationToken,
    /// Set when what was begun has had its time.
    over: CancellationToken,
    /// The tools of modern servers.
    tools: Catalogue,
}

/// The most sessions that end at one server at once.
const PARTINGS: usize = 64;

impl Relay {
    /// A relay to the configured servers. Their processes are left to `warden` if the gateway is killed.
    ///
    /// # Errors
    /// When TLS can't be set up, or the system gives no randomness.
    pub fn new(config: Arc<Config>, audit: Audit, warden: Option<&Warden>) -> Result<Self, Error> {
        let tasks = TaskTracker::new();
        let servers = config
            .servers
            .iter()
            .map(|(name, server)| {
                let server = Upstream::new(server, &config, &tasks, warden)
                    .map_err(|error| Error::Capacity(error.to_string().into()))?;
                Ok((name.clone(), Arc::new(server)))
            })
            .collect::<Result<_, Error>>()?;
        let hooks = HttpClient::new(config.timeouts.connect)
            .map_err(|error| Error::Capacity(error.to_string().into()))?;
        let policy = |(name, server): (&ServerName, &Arc<Server>)| {
            let policy = Policy::new(name.as_str(), &server.questions, &hooks, &tasks);
            (name.clone(), Arc::new(policy))
        };
        let policies = config.servers.iter().map(policy).collect();
        let limiter = Limiter::new(&config);
        let lot = modern::lot::Lot::new(config.limits.per_principal.questions);
        let partings = config
            .servers
            .keys()
            .map(|name| (name.clone(), Semaphore::new(PARTINGS)))
            .collect();
        Ok(Self(Arc::new(Shared {
            config,
            servers,
            policies,
            sessions: DashMap::new(),
            lines: DashMap::new(),
            limiter,
            audit,
            calls: TaskTracker::new(),
            tasks,
            pool: modern::pool::Pool::default(),
            lot,
            ledger: approval::Ledger::default(),
            asked: through::Table::default(),
            seal: modern::seal::Seal::new()?,
            partings,
            ending: CancellationToken::new(),
            over: CancellationToken::new(),
            tools: Catalogue::new(),
        })))
    }

    /// The session that a request names: this id, at this server, of this principal. That of a [`Line`] is
    /// found by posting to the line, and nowhere else.
    ///
    /// # Errors
    /// [`Error::UnknownSession`] whichever of them is wrong.
    pub fn session(
        &self,
        server: &ServerName,
        principal: &Principal,
        id: &[u8],
    ) -> Result<Arc<LiveSession>, Error> {
        let session = self
            .0
            .sessions
            .get(id)
            .map(|it| Arc::clone(&it))
            .ok_or(Error::UnknownSession)?;
        let here = session.server().name() == server && session.line().is_none();
        if !here || !session.belongs_to(principal) {
            return Err(Error::UnknownSession);
        }
        session.touch();
        Ok(session)
    }

    /// Whether a session of this id exists, whoever holds it: what tells a stranger from a mistake.
    pub fn is_foreign(&self, id: &[u8]) -> bool {
        self.0.sessions.contains_key(id) || self.0.lines.contains_key(id)
    }

    /// Carries something through, whether or not the client that asked for it stays: what it began must
    /// not be left half done when a connection breaks.
    ///
    /// # Errors
    /// As the future.
    pub fn carry<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Carried<Result<T, Error>> {
        Carried::new(&self.0.tasks, work)
    }

    /// The limits on requests.
    pub fn limiter(&self) -> &Limiter {
        &self.0.limiter
    }

    /// The audit log.
    pub fn audit(&self) -> &Audit {
        &self.0.audit
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.0.sessions.len()
    }

    /// Starts the task that ends idle sessions and tidies the limits.
    pub fn start_sweeping(&self) {
        let shared = Arc::clone(&self.0);
        self.0.tasks.spawn(async move {
            let idle = shared.config.sessions.idle;
            let patience = idle.min(shared.config.timeouts.resume);
            let pause = (patience / 4).clamp(Duration::from_millis(100), Duration::from_secs(30));
            while shared
                .ending
                .run_until_cancelled(tokio::time::sleep(pause))
                .await
                .is_some()
            {
                shared.limiter.sweep();
                shared.audit.sweep();
                shared.pool.sweep();
                shared.lot.sweep(now());
                shared.sweep_approvals().await;
                shared.sweep_rounds().await;
                shared.end_idle(now());
                shared.servers.values().for_each(|it| it.sweep(idle));
            }
        });
    }

    /// Ends everything: no new sessions from now on, calls in flight get `grace` to end, then
    /// every session is torn down. Bounded in time.
    pub async fn shutdown(&self, grace: Duration) {
        self.0.ending.cancel();
        for session in self.0.all() {
            session.close_standalone();
        }
        for line in &self.0.lines {
            line.close_unused();
        }
        self.0.calls.close();
        let _cut_short = tokio::time::timeout(grace, self.0.calls.wait()).await;
        self.0.over.cancel();
        let endings: Vec<_> = self
            .0
            .all()
            .iter()
            .map(|it| it.end(Ending::Shutdown))
            .collect();
        let all = futures_util::future::join_all(endings);
        let _late = tokio::time::timeout(teardown::PATIENCE, all).await;
        let waiting = async {
            self.0.end_approvals(Ending::Shutdown.reason()).await;
            self.0.end_rounds(Ending::Shutdown.reason()).await;
        };
        let _late = tokio::time::timeout(teardown::PATIENCE, waiting).await;
        self.0.servers.values().for_each(|it| it.close());
        self.0.tasks.close();
        let _late = tokio::time::timeout(teardown::PATIENCE, self.0.tasks.wait()).await;
    }
}

impl Shared {
    /// The server of this name.
    ///
    /// # Errors
    /// When there is none.
    fn server(&self, name: &ServerName) -> Result<&Arc<Upstream>, Error> {
        let server = self.servers.get(name);
        server.ok_or_else(|| Error::UnknownServer(name.to_string()))
    }

    /// The policy for the questions of a server.
    ///
    /// # Errors
    /// When there is no such server.
    fn policy(&self, server: &ServerName) -> Result<&Arc<Policy>, Error> {
        let policy = self.policies.get(server);
        policy.ok_or_else(|| Error::UnknownServer(server.to_string()))
    }

    /// How long a server may take.
    fn patience(&self, server: &ServerName) -> Patience {
        let all = &self.config.timeouts;
        let own = self.config.servers.get(server).map(|it| it.timeouts);
        let own = own.unwrap_or_default();
        let call = own.call.unwrap_or(all.call);
        Patience {
            headers: own.headers.or(all.headers).unwrap_or(call),
            idle: own.idle.or(all.idle).unwrap_or(call),
            call,
        }
    }

    fn all(&self) -> Vec<Arc<LiveSession>> {
        self.sessions
            .iter()
            .map(|entry| Arc::clone(&entry))
            .collect()
    }

    fn end_idle(&self, now: Instant) {
        let idle = self.config.sessions.idle;
        for session in self.all() {
            if session.is_idle(now, idle) {
                self.tasks.spawn(session.end(Ending::Idle));
            } else {
                session.sweep(now);
            }
        }
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("sessions", &self.sessions())
            .finish_non_exhaustive()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the relay drives the pure parts and reads the clock for them"
)]
fn now() -> Instant {
    // The clock that its tasks sleep by: a test may let it run ahead.
    tokio::time::Instant::now().into_std()
}

#[expect(clippy::disallowed_methods, reason = "records carry the time of day")]
fn today() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests;
