//! What a session uses at its server: a session of its own there, or nothing at all.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::watch;

use super::backoff::Tries;
use super::subscriptions::{Offers, Wish};
use super::welcome::Welcome;
use crate::auth::Principal;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::message::Message;
use crate::protocol::renewal::{Generation, Standing};
use crate::protocol::server_modern::Envelope;
use crate::upstream::Whose;
use crate::upstream::server::Wire;

/// The server's side of a session.
pub(super) enum Lease {
    /// A legacy server keeps a session. It asks whenever it wants, and an answer is posted to it.
    Legacy(Box<Legacy>),
    /// A modern server keeps nothing. What it has to know goes with each request, and it asks by
    /// answering a request with questions.
    Modern(Modern),
}

/// A session at a legacy server, and what it takes to have another one like it.
pub(super) struct Legacy {
    /// The one that is used now.
    tenure: watch::Sender<Arc<Tenure>>,
    /// The `initialize`, as the server saw it.
    pub(super) hello: Message,
    /// What it was told since that lasts.
    pub(super) standing: Mutex<Standing>,
    /// Whether there may be another one.
    pub(super) renewable: bool,
    /// Held by who opens another one; whoever needs it too waits for that.
    pub(super) tries: tokio::sync::Mutex<Tries>,
}

/// One session at a legacy server: what a request goes on, and the answers to the questions that come
/// by it.
#[derive(Debug)]
pub(super) struct Tenure {
    /// Which it is of those that its client's session has had, from 0 on.
    pub(super) generation: Generation,
    pub(super) wire: Wire,
    pub(super) welcome: Welcome,
}

impl Legacy {
    /// What `hello` has opened.
    pub(super) fn new(hello: Message, wire: Wire, welcome: Welcome, renewable: bool) -> Self {
        let first = Tenure {
            generation: 0,
            wire,
            welcome,
        };
        Self {
            tenure: watch::Sender::new(Arc::new(first)),
            hello,
            standing: Mutex::default(),
            renewable,
            tries: tokio::sync::Mutex::default(),
        }
    }

    /// The session that is used now.
    pub(super) fn tenure(&self) -> Arc<Tenure> {
        Arc::clone(&self.tenure.borrow())
    }

    /// Uses another one from now on.
    pub(super) fn go_on_with(&self, tenure: Arc<Tenure>) {
        self.tenure.send_replace(tenure);
    }

    /// Waits until another one is used than that of this generation.
    pub(super) async fn renewed(&self, since: Generation) -> Arc<Tenure> {
        let mut tenures = self.tenure.subscribe();
        loop {
            let tenure = Arc::clone(&tenures.borrow_and_update());
            // It lives as long as this, so that the change is not missed.
            if tenure.generation != since || tenures.changed().await.is_err() {
                return tenure;
            }
        }
    }
}

/// What a modern server is told about a session.
pub(super) struct Modern {
    /// What the client can be asked, as requests say it (JSON text) and as questions are judged by.
    capabilities: String,
    pub(super) can: ClientCapabilities,
    /// Who the client is (JSON text).
    client: Option<String>,
    /// Whose requests go together.
    pub(super) whose: Whose,
    /// The log messages that the client wants (JSON text).
    level: Mutex<Option<String>>,
    /// What the server offers beside answers.
    pub(super) offers: Offers,
    /// To who listens to the server for this session.
    pub(super) wishes: Sender<Wish>,
}

/// Wishes that wait for the one who listens.
const WISHES: usize = 64;

/// Whose the requests of a caller are. Those of nobody in particular (`auth: open`) have nothing in common.
pub(super) fn whose(principal: &Principal) -> Whose {
    if principal.is_anonymous() {
        return Whose::alone();
    }
    Whose::of(&format!("{}\0{}", principal.issuer(), principal.subject()))
}

impl Modern {
    /// For a client that declared `capabilities`, and the wishes that it will have.
    pub(super) fn new(
        whose: Whose,
        capabilities: String,
        client: Option<String>,
        offers: Offers,
    ) -> (Self, Receiver<Wish>) {
        let (wishes, heard) = mpsc::channel(WISHES);
        let modern = Self {
            can: ClientCapabilities::read(Some(&capabilities)),
            capabilities,
            client,
            whose,
            level: Mutex::new(None),
            offers,
            wishes,
        };
        (modern, heard)
    }

    /// Remembers the log level (JSON text), for every request from now on.
    pub(super) fn set_level(&self, level: &str) {
        *self.level.lock() = Some(level.to_owned());
    }

    /// Calls `with` with what a request says about the client.
    pub(super) fn envelope<T>(&self, with: impl FnOnce(&Envelope<'_>) -> T) -> T {
        let level = self.level.lock().clone();
        with(&Envelope {
            capabilities: &self.capabilities,
            client: self.client.as_deref(),
            log_level: level.as_deref(),
        })
    }
}
