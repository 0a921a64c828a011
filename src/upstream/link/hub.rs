//! One session with a legacy server that several callers share (`shared: true`): each has a link of its own, and
//! all lead to one process.
//!
//! ```text
//!   link of a session ──┐                                ┌──► answers, by the ids of the port
//!   link of a session ──┼─ port ── hub ── link ── process ┤
//!   link of a session ──┘                                └──► list_changed to all, updates to subscribers
//! ```
//!
//! # Invariants
//! - The server is told of no ability of anybody: a question could not be attributed to a person. One that it
//!   asks all the same is refused here.
//! - Ids and progress tokens of one session mean nothing in another. Log messages, which may be about anybody's
//!   call, go to nobody.
//! - What one session says about the whole (log level, unsubscribing, its end) does not change the others.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::books::with_token;
use super::watched::Watched;
use super::{Answers, Intake, Link, Posted, Service};
use crate::protocol::message::{self, Kind, Message};
use crate::protocol::object::{edit, members, quoted, text};
use crate::protocol::version::{LEGACY, V2025_11_25};
use crate::upstream::client::ClientError;
use crate::upstream::era::GATEWAY;
use crate::upstream::trouble::Troubles;

/// How long a server may take to begin. It is less than the minute that clients commonly wait.
const PATIENCE: Duration = Duration::from_secs(45);

/// A process that several sessions share.
#[derive(Debug)]
pub(in crate::upstream) struct Hub {
    link: Arc<Link>,
    /// What the server answered to `initialize` (JSON text).
    initialized: Box<str>,
    ports: Mutex<HashMap<u64, Arc<tokio::sync::Mutex<Intake>>>>,
    /// Who subscribed to what.
    watched: Mutex<Watched>,
    next: AtomicU64,
    /// When somebody was last seen to use it.
    used: Mutex<Option<Instant>>,
    troubles: Arc<Troubles>,
    tasks: TaskTracker,
}

/// The place of one session at a hub.
#[derive(Debug)]
pub(super) struct Port {
    hub: Arc<Hub>,
    number: u64,
    /// Set when the session is over.
    gone: CancellationToken,
}

impl Hub {
    /// Opens the session with the server, and serves it.
    ///
    /// # Errors
    /// When the server does not open it.
    pub(in crate::upstream) async fn open(
        link: Arc<Link>,
        troubles: Arc<Troubles>,
        tasks: &TaskTracker,
    ) -> Result<Arc<Self>, ClientError> {
        let opening = tokio::time::timeout(PATIENCE, initialize(&link));
        let initialized = opening
            .await
            .map_err(|_| ClientError::Timeout(PATIENCE))??;
        let hub = Arc::new(Self {
            link,
            initialized: initialized.into(),
            ports: Mutex::default(),
            watched: Mutex::default(),
            next: AtomicU64::new(1),
            used: Mutex::default(),
            troubles,
            tasks: tasks.clone(),
        });
        tasks.spawn(serve(Arc::clone(&hub)));
        Ok(hub)
    }

    /// A link for one more session.
    pub(in crate::upstream) fn port(self: &Arc<Self>) -> Arc<Link> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let port = Port {
            hub: Arc::clone(self),
            number,
            gone: CancellationToken::new(),
        };
        let (link, service) = Link::to_hub(port, Arc::clone(&self.troubles));
        let Service {
            intake, closing, ..
        } = service;
        let intake = Arc::new(tokio::sync::Mutex::new(intake));
        self.ports.lock().insert(number, intake);
        let hub = Arc::downgrade(self);
        let ended = self.link.closing.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = ended.cancelled() => {}
            }
            if let Some(hub) = hub.upgrade() {
                hub.leave(number);
            }
        });
        link
    }

    /// Whether no session can begin any more.
    pub(in crate::upstream) fn has_ended(&self) -> bool {
        self.link.has_ended()
    }

    /// Whether nobody has used it for so long.
    pub(in crate::upstream) fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let mut used = self.used.lock();
        if !self.ports.lock().is_empty() {
            *used = Some(now);
        }
        // Looked at for the first time, it is young.
        now.saturating_duration_since(*used.get_or_insert(now)) >= idle
    }

    /// Ends it.
    pub(in crate::upstream) fn close(&self) {
        self.link.closing.cancel();
    }

    fn leave(&self, port: u64) {
        self.ports.lock().remove(&port);
        self.watched.lock().leave(port);
    }

    fn intake(&self, port: u64) -> Option<Arc<tokio::sync::Mutex<Intake>>> {
        self.ports.lock().get(&port).map(Arc::clone)
    }

    /// Brings a notification to those whom it is for.
    async fn notice(&self, notice: &Message) {
        match notice.method() {
            "notifications/progress" => {
                let Ok([Some(token)]) = notice.param(["progressToken"]) else {
                    return;
                };
                if let Some((port, theirs)) = unmarked(token) {
                    self.give(port, &notice.replacing(token, &theirs)).await;
                }
            }
            "notifications/resources/updated" => {
                let uri = notice.param(["uri"]).ok().and_then(|[uri]| text(uri?));
                let hearing = uri.map(|uri| self.watched.lock().hear_of(&uri));
                for port in hearing.into_iter().flatten() {
                    self.give(port, notice.bytes()).await;
                }
            }
            method if method.ends_with("/list_changed") => {
                let ports: Vec<u64> = self.ports.lock().keys().copied().collect();
                for port in ports {
                    self.give(port, notice.bytes()).await;
                }
            }
            _ => {}
        }
    }

    async fn give(&self, port: u64, data: &Bytes) {
        if let Some(intake) = self.intake(port) {
            intake.lock().await.take(data).await;
        }
    }
}

impl Port {
    /// Sends a message of the session.
    pub(super) async fn send(&self, data: Bytes) -> Result<Posted, ClientError> {
        let Ok(message) = Message::parse(&data) else {
            return Ok(Posted::Sent);
        };
        match (message.kind(), message.method()) {
            (Kind::Request, method) => {
                let id = message.id().unwrap_or("null").to_owned();
                let wish = self.note_wish(&message);
                let own = match method {
                    "initialize" => Some(self.welcome(&message)),
                    "logging/setLevel" | "resources/unsubscribe" | "ping" => Some("{}".into()),
                    _ => None,
                };
                if let Some(result) = own {
                    let answer = message::result(&id, &result);
                    self.hub.give(self.number, &answer).await;
                    return Ok(Posted::Sent);
                }
                let sent = self.outward(&message, &id);
                match self.hub.link.post(sent).await? {
                    Posted::Request(answers) => {
                        let (hub, number) = (Arc::clone(&self.hub), self.number);
                        let gone = self.gone.clone();
                        self.hub.tasks.spawn(async move {
                            let answer = pass_answer(hub, number, id, wish, answers);
                            let _gone = gone.run_until_cancelled(answer).await;
                        });
                        Ok(Posted::Sent)
                    }
                    other => Ok(other),
                }
            }
            (_, "notifications/cancelled") => {
                let id = message.param(["requestId"]).ok();
                let Some([Some(id)]) = id else {
                    return Ok(Posted::Sent);
                };
                let cancel = message.replacing(id, &marked(self.number, id));
                self.hub.link.post(cancel).await
            }
            // It is said for all, or to nobody.
            _ => Ok(Posted::Sent),
        }
    }

    /// Remembers of which resources the session wants to hear. The server may tell of one before it answers; the
    /// resource is given back where it may yet refuse.
    fn note_wish(&self, request: &Message) -> Option<Box<str>> {
        let begins = request.method() == "resources/subscribe";
        if !begins && request.method() != "resources/unsubscribe" {
            return None;
        }
        let [uri] = request.param(["uri"]).ok()?;
        let uri = text(uri?)?;
        let mut watched = self.hub.watched.lock();
        if !begins {
            watched.end(self.number, &uri);
            return None;
        }
        if !watched.begin(self.number, &uri) {
            tracing::debug!(server = %self.hub.troubles.server(), "a session subscribes to too many resources");
        }
        Some(uri.into())
    }

    /// What the server answered to `initialize`, in no newer version than this one asks for.
    fn welcome(&self, request: &Message) -> Cow<'_, str> {
        let result = &*self.hub.initialized;
        let asked = request
            .param(["protocolVersion"])
            .ok()
            .and_then(|[it]| text(it?));
        let known = |version: &&&str| asked.as_deref() == Some(**version);
        let chosen = members(result, ["protocolVersion"])
            .ok()
            .and_then(|[it]| text(it?));
        match (LEGACY.iter().find(known), chosen) {
            // Versions are dates.
            (Some(asked), Some(chosen)) if **asked < *chosen => {
                let version = [("protocolVersion", Some(&*quoted(asked)))];
                edit(result, &version)
                    .unwrap_or(Cow::Borrowed(result))
                    .into_owned()
                    .into()
            }
            _ => Cow::Borrowed(result),
        }
    }

    /// A request under the id and the progress token that the server knows it by.
    fn outward(&self, request: &Message, id: &str) -> Bytes {
        let id = marked(self.number, id);
        let changed = with_token(request, &id, |token| marked(self.number, token));
        changed.map_or_else(|| request.with_id(&id), |(sent, _)| sent)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.gone.cancel();
        self.hub.leave(self.number);
    }
}

/// An id or token (JSON text) of a port, as the server knows it: a text that both can be read from.
fn marked(port: u64, id: &str) -> String {
    quoted(&format!("{port}/{id}"))
}

/// What such a text was made of.
fn unmarked(id: &str) -> Option<(u64, String)> {
    let whole: Cow<'_, str> = text(id)?;
    let (port, id) = whole.split_once('/')?;
    Some((port.parse().ok()?, id.to_owned()))
}

/// Brings the answer to a request back to its session, and what is said before it. Who no longer waits there
/// lets go of it. Of the resource of a wish that is refused the session does not hear.
async fn pass_answer(
    hub: Arc<Hub>,
    port: u64,
    id: String,
    wish: Option<Box<str>>,
    mut answers: Answers,
) {
    while let Some(data) = answers.next().await {
        match Message::parse(&data) {
            Ok(answer) if answer.is_response() => {
                if let (Kind::Error, Some(uri)) = (answer.kind(), &wish) {
                    hub.watched.lock().end(port, uri);
                }
                hub.give(port, &answer.with_id(&id)).await;
            }
            Ok(message) => hub.notice(&message).await,
            Err(_) => {
                let text = "the answer of the server is too large";
                let error = message::error(Some(&id), -32603, text, None);
                hub.give(port, &error).await;
            }
        }
    }
}

async fn initialize(link: &Arc<Link>) -> Result<String, ClientError> {
    let ended = || ClientError::Broken("it ended before it answered initialize".into());
    let params = format!(
        r#"{{"protocolVersion":"{V2025_11_25}","capabilities":{{}},"clientInfo":{GATEWAY}}}"#
    );
    let request = message::request("0", "initialize", &params);
    let Posted::Request(mut answers) = link.post(request).await? else {
        return Err(ended());
    };
    while let Some(data) = answers.next().await {
        let Ok(message) = Message::parse(&data) else {
            continue;
        };
        if message.kind() == Kind::Request {
            link.post(refusal(&message)).await?;
        }
        if message.is_response() {
            let Some(result) = message.result() else {
                return Err(ClientError::Broken("it refused initialize".into()));
            };
            let result = result.to_owned();
            let ready = message::notification("notifications/initialized", "{}");
            link.post(ready).await?;
            return Ok(result);
        }
    }
    Err(ended())
}

/// Deals with what belongs to no request, until the server has ended.
async fn serve(hub: Arc<Hub>) {
    let Some(mut rest) = hub.link.rest() else {
        return;
    };
    let hub = {
        let weak = Arc::downgrade(&hub);
        drop(hub);
        weak
    };
    while let Some(data) = rest.recv().await {
        let Some(hub) = hub.upgrade() else { continue };
        match Message::parse(&data) {
            Ok(message) if message.kind() == Kind::Request => {
                let _ended = hub.link.post(refusal(&message)).await;
            }
            Ok(message) => hub.notice(&message).await,
            Err(_) => {
                if let Some(id) = message::id_of_unreadable(&data) {
                    let text = "the request can't be read";
                    let refused = message::error(Some(&id), -32600, text, None);
                    let _ended = hub.link.post(refused).await;
                }
            }
        }
    }
}

/// The answer to what a server asks of nobody in particular.
fn refusal(question: &Message) -> Bytes {
    let id = question.id().unwrap_or("null");
    if question.method() == "ping" {
        return message::result(id, "{}");
    }
    message::error(
        Some(id),
        -32601,
        "the server is shared by several clients, so it can't ask anything",
        None,
    )
}
