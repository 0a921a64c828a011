//! A client whose session is one stream: HTTP+SSE (2024-11-05 basic/transports). It opens the stream by a
//! GET, learns there where to post, and reads on it all that there is to read: the outcome of every
//! request, what its server asks, what its server tells.
//!
//! # Invariants
//! - A line has one session at most, under the same id, and ends with it; the session ends with the line.
//! - What is lost with a line is lost: it is not resumed, and events have no ids.
//! - Who posts to a line is who opened it, and to nobody else it exists.
//! - A client that takes nothing loses the line, not a message of it; what waits for it till then is bounded.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::mpsc::channel;
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::approval::Consent;
use super::caller::is_headless;
use super::deliver::{Item, STALLED, room};
use super::lease::Lease;
use super::open::Established;
use super::session::{Face, LiveSession, SessionId};
use super::sink::Sink;
use super::streams::{PIPE, Pipe};
use super::subscriptions::Wish;
use super::teardown::Ending;
use super::{EventPipe, Relay, Shared, now, today};
use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;
use crate::limit::{Admission, SessionSlot};
use crate::protocol::client_legacy::Accept;
use crate::protocol::message::Message;
use crate::telemetry::audit::{Outcome, Record};

/// What such a client takes as an answer: whatever comes on its stream.
const ANYTHING: Accept = Accept {
    json: true,
    events: true,
};

/// The stream of such a client.
pub struct Line {
    id: SessionId,
    server: ServerName,
    principal: Principal,
    /// What is written to; none once it is over.
    pipe: Mutex<Option<Pipe>>,
    /// The client has sent its `initialize`.
    begun: AtomicBool,
    /// Until when it lasts: the credentials that were shown for it.
    until: watch::Sender<Option<Instant>>,
    over: CancellationToken,
    _slot: SessionSlot,
}

impl Relay {
    /// Opens a line for a client, whose credential counts for so much longer, and the stream that it reads.
    ///
    /// # Errors
    /// When the caller has too many sessions, or the gateway ends.
    pub fn open_line(
        &self,
        server: &ServerName,
        principal: &Principal,
        left: Option<Duration>,
    ) -> Result<(Arc<Line>, EventPipe), Error> {
        let shared = &self.0;
        if shared.ending.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let id = SessionId::random()?;
        let principal = principal.in_session(&SessionId::tag(id.as_bytes()));
        let slot = shared.limiter.session(&principal)?;
        let (pipe, rest) = channel(PIPE);
        let line = Arc::new(Line {
            id: id.clone(),
            server: server.clone(),
            principal,
            pipe: Mutex::new(Some(pipe.clone())),
            begun: AtomicBool::new(false),
            until: watch::channel(left.map(|left| now() + left)).0,
            over: CancellationToken::new(),
            _slot: slot,
        });
        shared.lines.insert(id, Arc::clone(&line));
        shared
            .tasks
            .spawn(Arc::clone(&line).watch(Arc::clone(shared), pipe));
        Ok((line, EventPipe::alone(Vec::new(), rest)))
    }

    /// The line that a client posts to: this id, at this server, of this principal, whose credential counts
    /// for so much longer.
    ///
    /// # Errors
    /// [`Error::UnknownSession`] whichever of the three is wrong.
    pub fn line(
        &self,
        server: &ServerName,
        principal: &Principal,
        id: &[u8],
        left: Option<Duration>,
    ) -> Result<Arc<Line>, Error> {
        let line = self.0.lines.get(id).map(|it| Arc::clone(&it));
        let line = line
            .filter(|line| line.server == *server && principal.holds_of(&line.principal))
            .ok_or(Error::UnknownSession)?;
        line.last(left);
        Ok(line)
    }

    /// The session of a line.
    ///
    /// # Errors
    /// When it has none yet, or none any more.
    pub fn session_of(&self, line: &Line) -> Result<Arc<LiveSession>, Error> {
        let session = self.0.sessions.get(line.id.as_bytes());
        let session = session.map(|it| Arc::clone(&it));
        if let Some(session) = &session {
            session.touch();
        }
        session.ok_or_else(|| {
            if line.over.is_cancelled() {
                Error::UnknownSession
            } else {
                Error::Misposted("the session is not open yet; initialize first")
            }
        })
    }

    /// Opens the session of a line, whose client may have said that nobody sits there (`headless`). What comes
    /// of it comes on the line, which ends where it is no session.
    ///
    /// # Errors
    /// When the line has a session, or one is being opened.
    pub fn begin(&self, line: &Arc<Line>, request: Message, headless: bool) -> Result<(), Error> {
        if line.begun.swap(true, Ordering::Relaxed) {
            return Err(Error::Misposted(
                "the session is open; open another stream for another session",
            ));
        }
        let (relay, line) = (self.clone(), Arc::clone(line));
        self.0.tasks.spawn(async move {
            let shared = &relay.0;
            let headless = headless || is_headless(&shared.config, &line.principal);
            let established = shared
                .establish(
                    &line.server,
                    &line.principal,
                    &request,
                    Face::Legacy,
                    headless,
                    Some(&line),
                )
                .await;
            match established {
                Ok(Established { session, response }) => {
                    line.say(Item::Outcome(response)).await;
                    match session {
                        Some(session) => session.speak_on(&line).await,
                        None => line.close(),
                    }
                }
                Err(error) => {
                    relay.refuse_on(&line, &error, &request).await;
                    line.close();
                }
            }
        });
        Ok(())
    }

    /// Says on a line why a request that was posted to it is not carried out.
    pub async fn refuse_on(&self, line: &Line, error: &Error, request: &Message) {
        if error.is_refusal() {
            let record = Record::refused(today())
                .principal(&line.principal)
                .server(&line.server)
                .session(&SessionId::tag(line.id.as_bytes()))
                .method(request.method())
                .outcome(Outcome::Refused)
                .reason(error.reason())
                .code(error.code().into());
            self.0.audit.note(Some(&line.principal), record);
        }
        let body = error.body(request.id(), Some(line.server.as_str()));
        line.say(Item::Outcome(body)).await;
    }
}

impl Line {
    /// Its id, which is that of its session, and which only its client knows.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// What is written to, while somebody reads it.
    fn pipe(&self) -> Option<Pipe> {
        let pipe = self.pipe.lock().clone();
        pipe.filter(|pipe| !pipe.is_closed())
    }

    /// It lasts for so much longer, or until when it did, whichever is later.
    fn last(&self, left: Option<Duration>) {
        let until = left.map(|left| now() + left);
        self.until.send_if_modified(|last| {
            let longer = last.is_some_and(|last| until.is_none_or(|until| until > last));
            if longer {
                *last = until;
            }
            longer
        });
    }

    /// Ends it: what is on it already is still read.
    pub(super) fn close(&self) {
        drop(self.pipe.lock().take());
        self.over.cancel();
    }

    /// Ends it if it is no session, and is not becoming one.
    pub(super) fn close_unused(&self) {
        if !self.begun.load(Ordering::Relaxed) {
            self.close();
        }
    }

    /// Puts something onto it that belongs to no session.
    async fn say(&self, item: Item) {
        let Some(pipe) = self.pipe() else { return };
        match room(&pipe, STALLED).await {
            Ok(room) => room.send(item),
            Err(_gone) => self.close(),
        }
    }

    /// Waits until it is over, and ends what belongs to it.
    async fn watch(self: Arc<Self>, shared: Arc<Shared>, pipe: Pipe) {
        let mut until = self.until.subscribe();
        let unused = sleep(shared.config.sessions.idle);
        tokio::pin!(unused);
        let mut waited = false;
        loop {
            let last = *until.borrow_and_update();
            let expired = async {
                match last {
                    Some(last) => sleep_until(last.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = pipe.closed() => break,
                () = self.over.cancelled() => break,
                () = shared.over.cancelled() => break,
                () = expired => break,
                Ok(()) = until.changed() => {}
                () = &mut unused, if !waited => {
                    waited = true;
                    if !self.begun.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }
        }
        drop(pipe);
        // From here on nobody finds it, and whoever is just opening its session sees that it is over.
        shared.lines.remove(self.id.as_bytes());
        self.over.cancel();
        let session = shared.sessions.get(self.id.as_bytes());
        let session = session.map(|it| Arc::clone(&it));
        if let Some(session) = session {
            session.end(Ending::Left).await;
        }
        self.close();
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("id", &self.id)
            .field("server", &self.server)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

impl LiveSession {
    /// From now on all that the session has to say goes onto its line: first what has waited for that.
    async fn speak_on(self: &Arc<Self>, line: &Line) {
        let first = match line.pipe() {
            Some(pipe) => self.state().streams.open_standalone(pipe).first,
            None => Vec::new(),
        };
        if line.over.is_cancelled() {
            return self.end(Ending::Left).await;
        }
        if let Lease::Modern(modern) = self.lease() {
            // Full: there are wishes enough to make the one who listens look.
            let _full = modern.wishes.try_send(Wish::Listening);
        }
        for item in first {
            self.deliver(None, item).await;
        }
    }

    /// Takes a request that was posted to the session's line, on which its outcome comes.
    ///
    /// # Errors
    /// When it can't begin.
    pub async fn call_on(
        self: &Arc<Self>,
        line: &Line,
        request: Message,
        admission: Admission,
    ) -> Result<(), Error> {
        let pipe = line.pipe().ok_or(Error::UnknownSession)?;
        // Those in flight are counted where they begin; these are over, and wait for their client to read. On
        // a stream of its own each would hold a connection.
        let most = self.shared.config.limits.streams;
        if most.is_some_and(|most| self.state().streams.count() > most) {
            return Err(Error::Capacity(
                "the session has too many outcomes that were not read".into(),
            ));
        }
        let sink = Sink::shared(ANYTHING, pipe);
        self.begin(request, sink, None, Consent::default(), admission)
            .await?;
        Ok(())
    }
}
