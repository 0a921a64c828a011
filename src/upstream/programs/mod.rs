//! A server that is a program: its processes, and who uses them.
//!
//! # Invariants
//! - A process belongs to one session, or to one caller's requests; callers share one only where the
//!   configuration says so.
//! - So many run at once as the configuration says, and no more. One that is only kept, and that nobody uses,
//!   makes room.
//! - A program that ends again and again before it says anything is left alone for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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

impl Kept {
    /// The link, for one who uses it now; none when it has ended.
    fn take_up(&mut self) -> Option<Arc<Link>> {
        if self.link.has_ended() {
            return None;
        }
        self.used = now();
        Some(Arc::clone(&self.link))
    }
}

/// How long a place is waited for: that of a process which is made to end now, and any.
const ENDING: Duration = Duration::from_secs(6);
const SOON: Duration = Duration::from_secs(1);

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
            return self.start(Manner::Session).await;
        }
        let mut hub = self.hub.lock().await;
        if let Some(hub) = hub.as_ref().filter(|hub| !hub.has_ended()) {
            return Ok(hub.port());
        }
        let link = self.start(Manner::Session).await?;
        let opened = Hub::open(link, Arc::clone(&self.troubles), &self.tasks).await?;
        Ok(hub.insert(opened).port())
    }

    /// Starts a process, and gives the link to it.
    ///
    /// # Errors
    /// When it can't be started, there are too many, or it does not even begin to work.
    async fn start(&self, manner: Manner) -> Result<Arc<Link>, ClientError> {
        let place = self.place().await?;
        self.start_at(place, manner)
    }

    /// A place for one more process. One that is just ending is waited for.
    async fn place(&self) -> Result<OwnedSemaphorePermit, ClientError> {
        let places = Arc::clone(&self.places);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return Ok(place);
        }
        let patience = if self.make_room() { ENDING } else { SOON };
        let place = tokio::time::timeout(patience, places.acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or(ClientError::Full)
    }

    /// Lets go of the kept link that nobody has used for the longest time, if there is one.
    fn make_room(&self) -> bool {
        let mut kept = self.kept.lock();
        let unused = kept.iter().filter(|(_, it)| it.link.is_idle());
        let oldest = unused.min_by_key(|(_, it)| it.used);
        let Some(whose) = oldest.map(|(whose, _)| whose.clone()) else {
            return false;
        };
        kept.remove(&whose).is_some()
    }

    fn start_at(
        &self,
        place: OwnedSemaphorePermit,
        manner: Manner,
    ) -> Result<Arc<Link>, ClientError> {
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
            breaker: Arc::clone(&self.breaker),
        };
        self.tasks.spawn(process.serve(service));
        Ok(link)
    }

    /// The link for the requests of this caller.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(super) async fn of(&self, whose: &Whose) -> Result<Arc<Link>, ClientError> {
        let whose = if self.shared { &Whose::of("") } else { whose };
        if whose.0.is_none() {
            return self.start(Manner::Requests).await;
        }
        if let Some(link) = self.kept.lock().get_mut(whose).and_then(Kept::take_up) {
            return Ok(link);
        }
        let place = self.place().await?;
        let mut kept = self.kept.lock();
        // Another request of the same caller may have been here meanwhile.
        if let Some(link) = kept.get_mut(whose).and_then(Kept::take_up) {
            return Ok(link);
        }
        let link = self.start_at(place, Manner::Requests)?;
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

#[cfg(test)]
mod tests;
