//! One client's session: what is shared by the requests, streams and tasks that belong to it.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::channel;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::deliver::Item;
use super::exchange::InFlight;
use super::lease::Lease;
use super::line::Line;
use super::modern::listen::Listens;
use super::modern::tasks::{Became, Tasked};
use super::pending::Pending;
use super::streams::{PIPE, Streams};
use super::subscriptions::Wish;
use super::{EventPipe, Shared, now, today};
use crate::auth::Principal;
use crate::error::Error;
use crate::limit::{Admission, Limited, SessionSlot, Standing};
use crate::policy::Policy;
use crate::protocol::client_modern::Level;
use crate::protocol::event_id::{self, Kind};
use crate::protocol::message::{self, Message};
use crate::protocol::session::{LegId, QuestionId, Session};
use crate::protocol::version::Version;
use crate::telemetry::audit::Record;
use crate::upstream::server::Upstream;

/// A session's id towards its client: 256 random bits, base64url. Never printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(Box<[u8]>);

/// A session that is open, or just ending.
pub struct LiveSession {
    id: SessionId,
    tag: String,
    principal: Principal,
    /// What the limits know of its client.
    standing: Standing,
    server: Arc<Upstream>,
    lease: Lease,
    version: Version,
    /// Whom its questions are for, where the request that causes one doesn't say.
    pub(super) caller: Arc<Caller>,
    /// What happens to the questions of its server.
    pub(super) policy: Arc<Policy>,
    pub(super) shared: Arc<Shared>,
    pub(super) state: Mutex<State>,
    /// Set when the session ends; every task of it stops.
    pub(super) ended: CancellationToken,
    /// The server has said that it does not know the session.
    forgotten: AtomicBool,
    face: Face,
    /// The one stream of its client, where that has no others.
    line: Option<Arc<Line>>,
    listens: Listens,
    tasked: Tasked,
    /// How many of our own answers may be on their way to the server at once.
    pub(super) replies: Arc<Semaphore>,
    /// None: its line holds it.
    _slot: Option<SessionSlot>,
}

/// The most answers of ours that are on their way to one server at once; a server that asks faster is
/// read more slowly.
const REPLIES: usize = 16;

/// What is decided about under the lock.
pub(super) struct State {
    /// The calls and questions.
    pub(super) talk: Session,
    /// Where messages to the client go.
    pub(super) streams: Streams,
    /// What each open question holds.
    pub(super) pending: HashMap<QuestionId, Pending>,
    /// How each call in flight is told what does not come on its own stream.
    pub(super) calls: BTreeMap<LegId, Box<InFlight>>,
    /// When the client last sent something.
    last_seen: Instant,
    /// The client has said that it is ready, and the server's standalone stream is being read.
    pub(super) listening: bool,
    /// What modern clients would have had to declare for the questions of their calls, by the ids
    /// of the calls.
    pub(super) needs: HashMap<Box<str>, &'static str>,
    /// The tasks that calls of modern clients have become, by their ids.
    pub(super) tasks: HashMap<Box<str>, Became>,
    /// What the server was told to log, on behalf of modern clients.
    pub(super) level: Option<Level>,
}

impl State {
    /// Keeps a message until a stream opens. A question waits for that on a clock of its own.
    pub(super) fn hold(&mut self, item: Item) {
        let held = item.asks().and_then(|id| self.pending.get(&id));
        held.into_iter().for_each(Pending::hold);
        self.streams.waiting.hold(item);
    }
}

/// What a new session is made of.
pub(super) struct Opened {
    pub(super) id: SessionId,
    pub(super) principal: Principal,
    pub(super) server: Arc<Upstream>,
    pub(super) lease: Lease,
    pub(super) version: Version,
    pub(super) caller: Arc<Caller>,
    pub(super) policy: Arc<Policy>,
    pub(super) talk: Session,
    pub(super) face: Face,
    pub(super) line: Option<Arc<Line>>,
    pub(super) slot: Option<SessionSlot>,
}

/// Who a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// A legacy client, who holds it.
    Legacy,
    /// Modern clients, for whom the gateway holds it.
    Modern,
}

impl SessionId {
    /// A new one, which nobody can guess.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(super) fn random() -> Result<Self, Error> {
        let mut bytes = [0; 32];
        aws_lc_rs::rand::fill(&mut bytes)
            .map_err(|_| Error::Capacity("no randomness for a session id".into()))?;
        Ok(Self(
            BASE64_URL_SAFE_NO_PAD.encode(bytes).into_bytes().into(),
        ))
    }

    /// As the header carries it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What records and logs call it: enough to tell sessions apart, useless to take one over.
    pub fn tag(id: &[u8]) -> String {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, id);
        let start = digest.as_ref().first_chunk().copied().unwrap_or_default();
        format!("{:016x}", u64::from_be_bytes(start))
    }
}

impl Borrow<[u8]> for SessionId {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", Self::tag(&self.0))
    }
}

impl LiveSession {
    pub(super) fn new(opened: Opened, shared: Arc<Shared>) -> Arc<Self> {
        let resumable = is_resumable(opened.face, &opened.version, opened.line.as_deref());
        let state = State {
            talk: opened.talk,
            streams: Streams::new(shared.config.limits.buffer, resumable),
            pending: HashMap::new(),
            calls: BTreeMap::new(),
            last_seen: now(),
            listening: false,
            needs: HashMap::new(),
            tasks: HashMap::new(),
            level: None,
        };
        Arc::new(Self {
            tag: SessionId::tag(opened.id.as_bytes()),
            id: opened.id,
            standing: shared
                .limiter
                .standing(opened.server.name(), &opened.principal),
            principal: opened.principal,
            server: opened.server,
            lease: opened.lease,
            version: opened.version,
            caller: opened.caller,
            policy: opened.policy,
            shared,
            state: Mutex::new(state),
            ended: CancellationToken::new(),
            forgotten: AtomicBool::new(false),
            face: opened.face,
            line: opened.line,
            listens: Listens::default(),
            tasked: Tasked::default(),
            replies: Arc::new(Semaphore::new(REPLIES)),
            _slot: opened.slot,
        })
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// What records and logs call it.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// What marks the ids of its events.
    pub(super) fn mark(&self) -> &str {
        self.tag.get(..8).unwrap_or_default()
    }

    /// Whether its client may come back to a stream that broke.
    pub(super) fn is_resumable(&self) -> bool {
        is_resumable(self.face, &self.version, self.line())
    }

    /// The one stream of its client, where that has no others.
    pub(super) fn line(&self) -> Option<&Line> {
        self.line.as_deref()
    }

    /// Asks the limits for a request of its client that will run.
    pub fn admit(&self) -> Result<Admission, Limited> {
        self.shared.limiter.admit_known(&self.standing)
    }

    /// Asks the limits for a notification of its client.
    pub fn pass(&self) -> Result<(), Limited> {
        self.shared.limiter.pass_known(&self.standing)
    }

    /// Who holds it.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The negotiated version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Who it is for.
    pub(super) fn face(&self) -> Face {
        self.face
    }

    /// Who listens for changes.
    pub(super) fn listens(&self) -> &Listens {
        &self.listens
    }

    /// Which tools run as tasks only.
    pub(super) fn tasked(&self) -> &Tasked {
        &self.tasked
    }

    /// Whether it can't be used any more: it has ended, or is about to.
    pub(super) fn is_gone(&self) -> bool {
        self.ended.is_cancelled() || self.is_forgotten()
    }

    /// Whether its server has lost it for good.
    pub(super) fn is_forgotten(&self) -> bool {
        self.forgotten.load(Ordering::Relaxed)
    }

    /// Its server has.
    pub(super) fn mark_forgotten(&self) {
        self.forgotten.store(true, Ordering::Relaxed);
    }

    /// Whether its client has said that it is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.state().listening
    }

    /// The server it is with.
    pub(super) fn server(&self) -> &Arc<Upstream> {
        &self.server
    }

    /// What it uses there.
    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Whether this caller holds it.
    pub(super) fn belongs_to(&self, principal: &Principal) -> bool {
        principal.holds_of(&self.principal)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn touch(&self) {
        self.state().last_seen = now();
    }

    /// Whether nobody has used it for this long: nothing came, nothing ran, no stream was open.
    pub(super) fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let mut state = self.state();
        if state.talk.is_busy() || state.streams.count() > 0 || self.listens.any() {
            state.last_seen = now;
        }
        now.saturating_duration_since(state.last_seen) >= idle
    }

    pub(super) fn close_standalone(&self) {
        self.state().streams.close_standalone();
    }

    /// A record about this session.
    pub(super) fn about(&self, record: fn(std::time::SystemTime) -> Record) -> Record {
        record(today())
            .principal(&self.principal)
            .server(self.server.name())
            .session(&self.tag)
    }

    /// Opens a standalone stream for the client, or again the one that it lost: `last` is the id of the
    /// last event that it has read (2025-03-26 … 2025-11-25 basic/transports, "Resumability and
    /// Redelivery"). An id that nobody gave out in this session means nothing.
    ///
    /// # Errors
    /// When it has as many streams as it may, the session has ended, or the stream of a call is no longer
    /// known.
    pub fn listen(self: &Arc<Self>, last: Option<&str>) -> Result<EventPipe, Error> {
        let place = last.filter(|_| self.is_resumable());
        let place = place.and_then(|id| event_id::read(self.mark(), id));
        let mut state = self.state();
        if self.ended.is_cancelled() {
            return Err(Error::UnknownSession);
        }
        if self.shared.ending.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let most = self.shared.config.limits.streams;
        if most.is_some_and(|most| state.streams.count() >= most) {
            return Err(Error::Capacity(
                "the session has too many open streams".into(),
            ));
        }
        let (pipe, rest) = channel(PIPE);
        let mut opened = match place {
            Some((stream, event)) => state
                .streams
                .resume(stream, event, pipe)
                .ok_or(Error::UnknownStream)?,
            None => state.streams.open_standalone(pipe),
        };
        // Of a question that is over nobody wants to hear again.
        opened
            .again
            .retain(|(_, item)| item.asks().is_none_or(|id| state.talk.is_open(id)));
        let standalone = opened.name.kind == Kind::Standalone;
        drop(state);
        if let Lease::Modern(modern) = &self.lease
            && standalone
        {
            // Full: there are wishes enough to make the one who listens look.
            let _full = modern.wishes.try_send(Wish::Listening);
        }
        Ok(EventPipe::new(opened, rest, self))
    }

    /// Lets go of what nobody came back for. A call whose client stays away so long is cancelled: nobody
    /// could be told its outcome.
    pub(super) fn sweep(self: &Arc<Self>, now: Instant) {
        let patience = self.shared.config.timeouts.resume;
        let mut state = self.state();
        let abandoned = state.streams.sweep(now, patience);
        let calls: Vec<_> = abandoned
            .into_iter()
            .filter_map(|leg| state.talk.client_id(leg).map(str::to_owned))
            .collect();
        drop(state);
        for call in calls {
            let params =
                format!(r#"{{"requestId":{call},"reason":"the client did not come back"}}"#);
            let notice = message::notification("notifications/cancelled", &params);
            let session = Arc::clone(self);
            self.shared.tasks.spawn(async move {
                if let Ok(notice) = Message::parse(&notice) {
                    // The loss of the session shows itself to whoever asks next.
                    let _gone = session.notify(&notice).await;
                }
            });
        }
    }
}

/// Whether a client may come back to its streams: not where one of them is all that the session is.
fn is_resumable(face: Face, version: &Version, line: Option<&Line>) -> bool {
    face == Face::Legacy && version.has_event_ids() && line.is_none()
}

impl fmt::Debug for LiveSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveSession")
            .field("session", &self.tag)
            .field("server", self.server.name())
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}
