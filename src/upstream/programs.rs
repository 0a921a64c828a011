//! A server that is a program: its processes, and who uses them.
//!
//! # Invariants
//! - A process belongs to one session, or to one caller's requests; callers share one only where the
//!   configuration says so.
//! - So many run at once as the configuration says, and no more.
//! - A program that ends again and again before it says anything is left alone for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::breaker::Breaker;
use super::client::ClientError;
use super::command::Command;
use super::link::hub::Hub;
use super::link::process::Process;
use super::link::{Link, Manner};
use super::trouble::Troubles;
use super::warden::Warden;
use crate::config::{ServerName, Stdio};

/// Whose requests to a modern server may go on one link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Whose(Option<Arc<str>>);

impl Whose {
    /// Those of this caller.
    pub fn of(caller: &str) -> Self {
        Self(Some(caller.into()))
    }

    /// One request, alone.
    pub fn alone() -> Self {
        Self(None)
    }
}

/// A program and its processes.
#[derive(Debug)]
pub(super) struct Programs {
    server: ServerName,
    command: Command,
    shared: bool,
    places: Arc<Semaphore>,
    breaker: Arc<Mutex<Breaker>>,
    /// The links for requests, by who may use them.
    kept: Mutex<HashMap<Whose, Kept>>,
    /// The session that all share.
    hub: tokio::sync::Mutex<Option<Arc<Hub>>>,
    limit: usize,
    troubles: Arc<Troubles>,
    tasks: TaskTracker,
    warden: Option<Warden>,
}

#[derive(Debug)]
struct Kept {
    link: Arc<Link>,
    used: Instant,
}

impl Programs {
    pub(super) fn new(
        server: ServerName,
        stdio: &Stdio,
        limit: usize,
        troubles: Arc<Troubles>,
        tasks: &TaskTracker,
        warden: Option<Warden>,
    ) -> Self {
        let processes = usize::try_from(stdio.processes.get()).unwrap_or(usize::MAX);
        Self {
            server,
            command: Command::configured(&stdio.program),
            shared: stdio.shared,
            places: Arc::new(Semaphore::new(processes.min(Semaphore::MAX_PERMITS))),
            breaker: Arc::default(),
            kept: Mutex::default(),
            hub: tokio::sync::Mutex::default(),
            limit,
            troubles,
            tasks: tasks.clone(),
            warden,
        }
    }

    /// A link for a new session.
    ///
    /// # Errors
    /// As [`start`](Self::start); and where all share a session, when it can't be opened.
    pub(super) async fn session(&self) -> Result<Arc<Link>, ClientError> {
        if !self.shared {
            return self.start(Manner::Session);
        }
        let mut hub = self.hub.lock().await;
        if let Some(hub) = hub.as_ref().filter(|hub| !hub.has_ended()) {
            return Ok(hub.port());
        }
        let link = self.start(Manner::Session)?;
        let opened = Hub::open(link, Arc::clone(&self.troubles), &self.tasks).await?;
        Ok(hub.insert(opened).port())
    }

    /// Starts a process, and gives the link to it.
    ///
    /// # Errors
    /// When it can't be started, there are too many, or it does not even begin to work.
    fn start(&self, manner: Manner) -> Result<Arc<Link>, ClientError> {
        let place = Arc::clone(&self.places)
            .try_acquire_owned()
            .map_err(|_| ClientError::Full)?;
        self.breaker
            .lock()
            .ask(now())
            .map_err(ClientError::Resting)?;
        let group = self.command.start().map_err(|error| {
            self.breaker.lock().bad(now());
            ClientError::Start(error)
        })?;
        let watch = match (&self.warden, group.id()) {
            (Some(warden), Some(id)) => Some(warden.watch(id)),
            _ => None,
        };
        let (link, service) = Link::piped(manner, Arc::clone(&self.troubles));
        let process = Process {
            server: self.server.clone(),
            group,
            limit: self.limit,
            place,
            watch,
        };
        let breaker = Arc::clone(&self.breaker);
        self.tasks.spawn(async move {
            let ended = process.serve(service).await;
            match ended {
                it if it.spoke => breaker.lock().good(),
                it if !it.wanted => breaker.lock().bad(now()),
                _ => {}
            }
        });
        Ok(link)
    }

    /// The link for the requests of this caller.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(super) fn of(&self, whose: &Whose) -> Result<Arc<Link>, ClientError> {
        let whose = if self.shared { &Whose::of("") } else { whose };
        if whose.0.is_none() {
            return self.start(Manner::Requests);
        }
        let mut kept = self.kept.lock();
        if let Some(it) = kept.get_mut(whose).filter(|it| !it.link.has_ended()) {
            it.used = now();
            return Ok(Arc::clone(&it.link));
        }
        let link = self.start(Manner::Requests)?;
        let (used, own) = (now(), Arc::clone(&link));
        kept.insert(whose.clone(), Kept { link: own, used });
        Ok(link)
    }

    /// Lets go of what nobody has used for so long.
    pub(super) fn sweep(&self, idle: Duration) {
        let now = now();
        self.kept.lock().retain(|_, it| {
            if !it.link.is_idle() {
                it.used = now;
            }
            !it.link.has_ended() && now.saturating_duration_since(it.used) < idle
        });
        // Who opens it holds the lock, and then it is not idle.
        if let Ok(mut hub) = self.hub.try_lock()
            && hub.as_ref().is_some_and(|hub| hub.is_idle(now, idle))
        {
            *hub = None;
        }
    }

    /// Lets go of everything.
    pub(super) fn close(&self) {
        self.kept.lock().clear();
        if let Ok(hub) = self.hub.try_lock() {
            hub.iter().for_each(|hub| hub.close());
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is idle is told by the clock"
)]
fn now() -> Instant {
    Instant::now()
}
