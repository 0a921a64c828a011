//! Listens to a modern server for a legacy session: what changed reaches the client as if the server
//! had told it (2026-07-28 patterns/subscriptions).
//!
//! A subscription at such a server never changes. So for another set of resources a new one is opened,
//! and when the server has agreed the old one is closed.
//!
//! # Invariants
//! - A client that subscribed to a resource was told so only after the server had agreed.
//! - Nobody is listened to for a client that has had no stream for [`UNHEARD`].
//! - What may have been missed while nobody listened is made up for by saying that it changed.
//! - A stream that ends is opened again, each time later while it does not hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use super::backoff::{Backoff, pause};
use super::deliver::Item;
use super::lease::{Lease, Modern};
use super::now;
use super::rpc::{self, Head, Next, Stream};
use super::session::LiveSession;
use super::standalone::jittered;
use crate::error::Error;
use crate::protocol::message::Message;
use crate::protocol::object::members;
use crate::protocol::subscription::{Filter, MOST};
use crate::protocol::to_legacy::untagged;

/// What a server offers beside answers, as it discovered.
#[derive(Clone, Debug, Default)]
pub(super) struct Offers {
    pub(super) logging: bool,
    pub(super) subscribe: bool,
    /// The lists whose changes it tells.
    lists: Filter,
}

/// What the session wants of who listens.
#[derive(Debug)]
pub(super) enum Wish {
    /// The client has opened a stream.
    Listening,
    /// The client wants to hear of this resource.
    Subscribe(String, oneshot::Sender<Result<(), NotSubscribed>>),
    /// The client has heard enough of it.
    Unsubscribe(String),
}

/// Why a client does not hear of a resource.
#[derive(Debug)]
pub(super) enum NotSubscribed {
    /// The server left it out.
    Declined,
    /// The server can't be listened to.
    Failed(Error),
}

/// How long wishes are gathered, so that many cost one subscription.
const GATHER: Duration = Duration::from_millis(100);

/// How long a server may take to agree.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a server is listened to for a client without a stream.
const UNHEARD: Duration = Duration::from_mins(1);

/// How often it is looked whether anybody still hears.
const LOOK: Duration = Duration::from_secs(15);

impl Offers {
    /// Reads what a server discovered (JSON text).
    pub(super) fn read(discovered: &str) -> Self {
        let [capabilities] = members(discovered, ["capabilities"]).unwrap_or_default();
        let capabilities = capabilities.unwrap_or("{}");
        let parts = ["logging", "tools", "prompts", "resources"];
        let Ok([logging, ..]) = members(capabilities, parts) else {
            return Self::default();
        };
        let says = |capability: &str, part: &str| {
            let [capability] = members(capabilities, [capability]).unwrap_or_default();
            let part = capability.and_then(|it| members(it, [part]).ok());
            part == Some([Some("true")])
        };
        Self {
            logging: logging.is_some(),
            subscribe: says("resources", "subscribe"),
            lists: Filter::of_lists(|list| says(list, "listChanged")),
        }
    }
}

/// Listens for a session, until it ends.
pub(super) async fn run(session: Arc<LiveSession>, wishes: Receiver<Wish>) {
    let Lease::Modern(modern) = session.lease() else {
        return;
    };
    let mut listener = Listener {
        session: &session,
        modern,
        wanted: BTreeSet::new(),
        stream: None,
        again: None,
        backoff: Backoff::default(),
        heard: now(),
        missed: false,
    };
    let _ended = session
        .ended
        .run_until_cancelled(listener.listen(wishes))
        .await;
}

struct Listener<'s> {
    session: &'s Arc<LiveSession>,
    modern: &'s Modern,
    /// The resources that the client hears of.
    wanted: BTreeSet<String>,
    stream: Option<Box<Stream>>,
    /// When a stream that ended is opened again.
    again: Option<Instant>,
    backoff: Backoff,
    /// When the client was last known to have a stream.
    heard: Instant,
    /// Nobody listened for a while.
    missed: bool,
}

/// What happened next.
enum Event {
    Wish(Option<Wish>),
    Server(Result<Next, Error>),
    Again,
    Look,
}

impl Listener<'_> {
    async fn listen(&mut self, mut wishes: Receiver<Wish>) {
        loop {
            let again = self.again.map(|at| at.saturating_duration_since(now()));
            let event = tokio::select! {
                wish = wishes.recv() => Event::Wish(wish),
                next = next_of(&mut self.stream), if self.stream.is_some() => Event::Server(next),
                () = tokio::time::sleep(again.unwrap_or(LOOK)), if again.is_some() => Event::Again,
                () = tokio::time::sleep(LOOK), if self.stream.is_some() => Event::Look,
            };
            match event {
                Event::Wish(None) => return,
                Event::Wish(Some(wish)) => {
                    let wishes = gather(wish, &mut wishes).await;
                    self.grant(wishes).await;
                }
                Event::Server(Ok(Next::Notice(notice))) => self.pass(&notice).await,
                Event::Server(Ok(Next::Response(_)) | Err(_)) => self.lost(),
                Event::Again => self.reopen().await,
                Event::Look => self.look(),
            }
        }
    }

    /// Does what the client wishes.
    async fn grant(&mut self, wishes: Vec<Wish>) {
        let before = self.wanted.clone();
        let mut waiting = Vec::new();
        for wish in wishes {
            match wish {
                Wish::Listening => self.heard = now(),
                Wish::Unsubscribe(uri) => {
                    self.wanted.remove(&uri);
                }
                Wish::Subscribe(uri, done) if self.has_no_room_for(&uri) => {
                    let _gone = done.send(Err(NotSubscribed::Failed(Error::Capacity(
                        "the session has too many subscriptions".into(),
                    ))));
                }
                Wish::Subscribe(uri, done) => {
                    self.wanted.insert(uri.clone());
                    waiting.push((uri, done));
                }
            }
        }
        // What is no longer wanted is only not passed on: that is no reason for a new subscription.
        let more = !self.wanted.is_subset(&before);
        if self.stream.is_some() && !more {
            for (_, done) in waiting {
                let _gone = done.send(Ok(()));
            }
            return;
        }
        if self.filter().is_empty() {
            return;
        }
        match self.open().await {
            Ok((stream, agreed)) => {
                self.opened(stream).await;
                for (uri, done) in waiting {
                    let outcome = if agreed.contains(&uri) {
                        Ok(())
                    } else {
                        self.wanted.remove(&uri);
                        Err(NotSubscribed::Declined)
                    };
                    let _gone = done.send(outcome);
                }
            }
            Err(error) => {
                for (uri, done) in waiting {
                    if !before.contains(&uri) {
                        self.wanted.remove(&uri);
                    }
                    let _gone = done.send(Err(NotSubscribed::Failed(error.clone())));
                }
                if self.stream.is_none() {
                    self.lost();
                }
            }
        }
    }

    fn has_no_room_for(&self, uri: &str) -> bool {
        self.wanted.len() >= MOST && !self.wanted.contains(uri)
    }

    /// Opens a subscription to all that is wanted; gives the resources that the server agreed to.
    async fn open(&self) -> Result<(Box<Stream>, BTreeSet<String>), Error> {
        let opening = async {
            let params = format!(r#"{{"notifications":{}}}"#, self.filter().to_json());
            let server = self.session.server();
            let (_, head) = rpc::open(server, self.modern, "subscriptions/listen", &params).await?;
            let Head::Stream(mut stream) = head else {
                return Err(Error::Misbehaved("did not agree to a subscription".into()));
            };
            match stream.next().await? {
                Next::Notice(notice)
                    if notice.method() == "notifications/subscriptions/acknowledged" =>
                {
                    Ok((stream, agreed(&notice)))
                }
                _ => Err(Error::Misbehaved("did not agree to a subscription".into())),
            }
        };
        tokio::time::timeout(PATIENCE, opening)
            .await
            .unwrap_or(Err(Error::Slow(PATIENCE)))
    }

    /// All that is listened for.
    fn filter(&self) -> Filter {
        let mut filter = self.modern.offers.lists.clone();
        filter.uris.extend(self.wanted.iter().cloned());
        filter
    }

    async fn opened(&mut self, stream: Box<Stream>) {
        self.stream = Some(stream);
        self.again = None;
        self.heard = now();
        self.backoff.held(self.heard);
        if std::mem::take(&mut self.missed) {
            self.make_up().await;
        }
    }

    async fn reopen(&mut self) {
        self.again = None;
        match self.open().await {
            Ok((stream, _)) => self.opened(stream).await,
            Err(error) => {
                tracing::debug!(server = %self.session.server().name(), %error, "the server can't be listened to");
                self.lost();
            }
        }
    }

    /// The stream is over. If anybody hears, it is opened again.
    fn lost(&mut self) {
        self.stream = None;
        self.missed = true;
        if self.is_heard() || !self.wanted.is_empty() {
            let tries = self.backoff.lost(now());
            self.again = Some(now() + jittered(pause(tries)));
        }
    }

    /// Closes the stream when nobody has heard for a while.
    fn look(&mut self) {
        if self.is_heard() {
            self.heard = now();
        } else if now().saturating_duration_since(self.heard) >= UNHEARD {
            self.stream = None;
            self.missed = true;
        }
    }

    fn is_heard(&self) -> bool {
        self.session.state().streams.has_standalone()
    }

    /// Passes a notification on, without the name of the subscription.
    async fn pass(&mut self, notice: &Message) {
        match notice.method() {
            "notifications/subscriptions/acknowledged" => return,
            // Of what is no longer wanted the server may still tell.
            "notifications/resources/updated" if !self.filter().includes(notice) => return,
            "notifications/tools/list_changed" => self.forget_tools().await,
            _ => {}
        }
        let bytes = match notice.params() {
            None => notice.bytes().clone(),
            Some(params) => notice.with_body("null", &untagged(params)),
        };
        self.deliver(bytes).await;
    }

    async fn make_up(&mut self) {
        self.forget_tools().await;
        for change in self.filter().changes() {
            self.deliver(change).await;
        }
    }

    async fn forget_tools(&self) {
        let session = self.session;
        let (server, principal) = (session.server().name(), session.principal());
        session.shared.tools.forget(server, principal).await;
    }

    async fn deliver(&self, notice: Bytes) {
        self.session.deliver(None, Item::Notice(notice)).await;
    }
}

async fn next_of(stream: &mut Option<Box<Stream>>) -> Result<Next, Error> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

/// The wish and those that follow at once.
async fn gather(first: Wish, wishes: &mut Receiver<Wish>) -> Vec<Wish> {
    let mut gathered = vec![first];
    let waiting = tokio::time::sleep(GATHER);
    tokio::pin!(waiting);
    loop {
        tokio::select! {
            wish = wishes.recv() => match wish {
                Some(wish) => gathered.push(wish),
                None => return gathered,
            },
            () = &mut waiting => return gathered,
        }
    }
}

/// The resources that a server agreed to tell about.
fn agreed(acknowledged: &Message) -> BTreeSet<String> {
    const READ: usize = 100_000;
    let [filter] = acknowledged.param(["notifications"]).unwrap_or_default();
    let agreed = Filter::read(filter, READ).unwrap_or_default();
    agreed.uris.into_iter().collect()
}
