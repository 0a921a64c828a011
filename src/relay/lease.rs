//! What a session uses at its server: a session of its own there, or nothing at all.

use parking_lot::Mutex;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::subscriptions::{Offers, Wish};
use crate::auth::Principal;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::server_modern::Envelope;
use crate::upstream::Whose;
use crate::upstream::server::Wire;

/// The server's side of a session.
pub(super) enum Lease {
    /// A legacy server keeps a session. It asks whenever it wants, and an answer is posted to it.
    Legacy(Wire),
    /// A modern server keeps nothing. What it has to know goes with each request, and it asks by
    /// answering a request with questions.
    Modern(Modern),
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
