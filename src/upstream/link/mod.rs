//! A connection on which all messages go, of both sides and of all calls: the pipes of a program, or
//! HTTP+SSE. It looks from outside like a server over Streamable HTTP that answers each request with a
//! stream, and has a standalone stream for what belongs to no request.
//!
//! ```text
//!              post ──► books (who waits) ──► way ──► pipe, or POST ──► server
//!   answers ◄──────────── intake ◄────────────────── lines, or events ◄─┘
//!   rest    ◄───────────────┘
//! ```
//!
//! # Invariants
//! - A link belongs to one session, or to the requests of one caller. Nothing of another comes on it.
//! - When it ends, whoever waits for something learns it at once; what is posted after that is answered
//!   as by a server that has forgotten the session, and was not sent.
//! - What nobody reads is bounded: the server is read more slowly, and before there is a reader the
//!   oldest wait and the newest are left out.

mod beginning;
mod books;
pub(super) mod events;
pub(super) mod hub;
mod lines;
pub(super) mod process;
mod watched;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::beginning::Begun;
pub(super) use self::books::Manner;
use self::books::{Books, Place};
use self::events::Outlet;
use self::hub::Port;
use super::client::{ClientError, Incoming};
use super::trouble::{Trouble, Troubles};
use crate::protocol::message::{self, Body, Kind, Message};
use crate::telemetry::Pace;

/// The messages that wait for who reads what belongs to no request.
const REST: usize = 256;

/// The messages that wait for the server.
const OUTBOX: usize = 64;

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Link {
    manner: Manner,
    way: Way,
    books: Arc<Mutex<Books>>,
    rest: Mutex<Option<Receiver<Bytes>>>,
    /// There is a reader of the rest.
    read: Arc<AtomicBool>,
    /// Set when it is to end.
    closing: CancellationToken,
    /// Set when nothing is left of it.
    over: CancellationToken,
    /// Nobody uses it any more: it ends.
    _unused: DropGuard,
}

/// How messages get to the server.
#[derive(Debug)]
enum Way {
    /// Into a pipe.
    Pipe(Sender<Bytes>),
    /// By POST.
    Post(Box<Outlet>),
    /// On a link that others use too.
    Hub(Port),
}

/// What became of a message.
#[derive(Debug)]
pub(super) enum Posted {
    /// It was a request, and this is what comes for it.
    Request(Answers),
    /// It was sent, and nothing comes.
    Sent,
    /// It was not sent: the link has ended.
    Ended,
    /// The server has refused to take it.
    Refused(Box<http::Response<Incoming>>),
}

/// What comes for one request. Dropping it says that nobody waits any more.
#[derive(Debug)]
pub(super) struct Answers {
    link: Arc<Link>,
    id: String,
    comes: Receiver<Bytes>,
}

/// The end of a link at which messages of the server arrive.
#[derive(Debug)]
pub(super) struct Intake {
    books: Arc<Mutex<Books>>,
    rest: Sender<Bytes>,
    read: Arc<AtomicBool>,
    troubles: Arc<Troubles>,
    junk: Pace,
    /// The server has said something.
    pub(super) spoke: bool,
    /// A slow reader is waited for. Where it is not the only one on its link, or others use the same server,
    /// it loses what it does not read.
    patient: bool,
    over: CancellationToken,
}

/// What the one gets who serves a link.
#[derive(Debug)]
pub(super) struct Service {
    /// What is to be sent.
    pub(super) outbox: Receiver<Bytes>,
    /// Where what comes is put.
    pub(super) intake: Intake,
    /// Set when the link is to end.
    pub(super) closing: CancellationToken,
}

impl Link {
    /// A link over a pipe, and what serves it.
    pub(super) fn piped(manner: Manner, troubles: Arc<Troubles>) -> (Arc<Self>, Service) {
        let (outbox, rest) = channel(OUTBOX);
        Self::new(manner, Way::Pipe(outbox), rest, troubles)
    }

    /// A link whose messages are posted, and what serves it.
    fn posting(outlet: Outlet, troubles: Arc<Troubles>) -> (Arc<Self>, Service) {
        let (_nothing, rest) = channel(1);
        Self::new(Manner::Session, Way::Post(Box::new(outlet)), rest, troubles)
    }

    /// A link of one session to a server that others use too, and what serves it.
    fn to_hub(port: Port, troubles: Arc<Troubles>) -> (Arc<Self>, Service) {
        let (_nothing, rest) = channel(1);
        let (link, mut service) = Self::new(Manner::Session, Way::Hub(port), rest, troubles);
        service.intake.patient = false;
        (link, service)
    }

    fn new(
        manner: Manner,
        way: Way,
        outbox: Receiver<Bytes>,
        troubles: Arc<Troubles>,
    ) -> (Arc<Self>, Service) {
        let books = Arc::new(Mutex::new(Books::new(manner)));
        let read = Arc::new(AtomicBool::new(false));
        let (closing, over) = (CancellationToken::new(), CancellationToken::new());
        let (rest, kept) = channel(REST);
        let intake = Intake {
            books: Arc::clone(&books),
            rest,
            read: Arc::clone(&read),
            troubles,
            junk: Pace::default(),
            spoke: false,
            patient: manner == Manner::Session,
            over: over.clone(),
        };
        let link = Arc::new(Self {
            manner,
            way,
            books,
            rest: Mutex::new(Some(kept)),
            read,
            _unused: closing.clone().drop_guard(),
            closing: closing.clone(),
            over,
        });
        let service = Service {
            outbox,
            intake,
            closing,
        };
        (link, service)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When nothing is known of what became of it.
    pub(super) async fn post(self: &Arc<Self>, message: Bytes) -> Result<Posted, ClientError> {
        let parsed = Message::parse(&message).ok();
        let request = parsed.filter(|message| message.kind() == Kind::Request);
        let Some(request) = request else {
            return self.send(message).await;
        };
        let Some((sent, comes)) = self.books.lock().expect(&request) else {
            return Ok(Posted::Ended);
        };
        let answers = Answers {
            link: Arc::clone(self),
            id: request.id().unwrap_or("null").to_owned(),
            comes,
        };
        match self.send(sent).await? {
            Posted::Sent => Ok(Posted::Request(answers)),
            other => {
                self.books.lock().forget(&answers.id);
                Ok(other)
            }
        }
    }

    async fn send(&self, message: Bytes) -> Result<Posted, ClientError> {
        if self.has_ended() {
            return Ok(Posted::Ended);
        }
        match &self.way {
            Way::Pipe(outbox) => Ok(match outbox.send(one_line(&message)).await {
                Ok(()) => Posted::Sent,
                Err(_) => Posted::Ended,
            }),
            // Boxed: it ends in a link, too.
            Way::Hub(port) => Box::pin(port.send(message)).await,
            Way::Post(outlet) => {
                let posted = outlet.post(message).await?;
                if matches!(posted, Posted::Ended) {
                    self.closing.cancel();
                }
                Ok(posted)
            }
        }
    }

    /// What belongs to no request, for the one who reads it. None: somebody does.
    pub(super) fn rest(&self) -> Option<Receiver<Bytes>> {
        let rest = self.rest.lock().take()?;
        self.read.store(true, Ordering::Relaxed);
        Some(rest)
    }

    /// Whether nothing can be sent on it any more.
    pub(super) fn has_ended(&self) -> bool {
        self.closing.is_cancelled() || self.books.lock().is_closed()
    }

    /// Whether nobody waits for anything.
    pub(super) fn is_idle(&self) -> bool {
        self.books.lock().is_idle()
    }

    /// Ends it, and waits until nothing is left of it.
    pub(super) async fn end(&self) {
        self.closing.cancel();
        self.over.cancelled().await;
    }
}

/// A message as it goes into a pipe. Line breaks in JSON stand between its parts, where a blank does as well.
fn one_line(message: &[u8]) -> Bytes {
    let mut line = if memchr::memchr2(b'\n', b'\r', message).is_some() {
        let blank = |byte: &u8| match byte {
            b'\n' | b'\r' => b' ',
            other => *other,
        };
        message.iter().map(blank).collect()
    } else {
        message.to_vec()
    };
    line.push(b'\n');
    line.into()
}

impl Answers {
    /// The next message, an empty one in place of a response that is too large; none when no more comes. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.comes.recv().await
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let waited = self.link.books.lock().forget(&self.id);
        // Where a request stands for itself, not to wait for it is to cancel it (2026-07-28
        // transports/stdio, "Cancellation"). In a session that is said by who holds it.
        if waited
            && self.link.manner == Manner::Requests
            && let Way::Pipe(outbox) = &self.link.way
        {
            let params = format!(r#"{{"requestId":{}}}"#, self.id);
            let cancel = message::notification("notifications/cancelled", &params);
            // A server that does not even read can't be told.
            let _full = outbox.try_send(one_line(&cancel));
        }
    }
}

impl Intake {
    /// Takes what the server has sent. Waits while its reader is slow.
    pub(super) async fn take(&mut self, data: &Bytes) {
        match Body::parse(data) {
            Ok(Body::Single(message)) => self.put(&message).await,
            Ok(Body::Batch(members)) => {
                for member in members {
                    match Message::parse(&member) {
                        Ok(message) => self.put(&message).await,
                        Err(_) => self.troubles.tell(&Trouble::Unreadable),
                    }
                }
            }
            // It wants an answer, which the session can give.
            Err(_) if message::id_of_unreadable(data).is_some() => {
                self.put_aside(data.clone()).await;
            }
            Err(_) => {
                if let Some(left_out) = self.junk.now() {
                    tracing::warn!(server = %self.troubles.server(), left_out, "the server wrote something that is no MCP message; programs must log to standard error");
                }
            }
        }
    }

    async fn put(&mut self, message: &Message) {
        self.spoke = true;
        let place = self.books.lock().sort(message);
        match place {
            // The last place is the response's: what comes before it can be missed.
            Place::Reader(to, _)
                if !self.patient && !message.is_response() && to.capacity() <= 1 => {}
            Place::Reader(to, bytes) => {
                let _gone = to.send(bytes).await;
            }
            Place::Rest => self.put_aside(message.bytes().clone()).await,
            Place::Nobody => {}
        }
    }

    async fn put_aside(&self, data: Bytes) {
        if self.patient && self.read.load(Ordering::Relaxed) {
            let _nobody = self.rest.send(data).await;
        } else if self.rest.try_send(data).is_err() {
            tracing::debug!(server = %self.troubles.server(), "too much of the server before anybody reads it");
        }
    }

    /// Something came that is too large; this is how it begins and ends. False: nobody knows whose it was, so that
    /// somebody may wait for it for ever.
    pub(super) async fn too_large(&mut self, beginning: &Bytes, end: &Bytes) -> bool {
        tracing::warn!(server = %self.troubles.server(), "the server wrote a line that is too large");
        match Begun::read(beginning, end) {
            Begun::Response(id) => self.books.lock().spoil(&id),
            Begun::Request(id) => {
                // In its place: something that can't be read, either, and is refused.
                let stub = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"","method":""}}"#);
                self.put_aside(stub.into()).await;
                true
            }
            Begun::Notification => true,
            Begun::Unknown => false,
        }
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.books.lock().close();
        self.over.cancel();
    }
}

#[cfg(test)]
mod tests;
