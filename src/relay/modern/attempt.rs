//! One time that a call is made at its server: in which session, and what comes of it. A call is made
//! again when the server surely did not process it: it had forgotten the session, or said so (-32042).

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::mpsc::{Receiver, channel};

use super::super::deliver::Item;
use super::super::now;
use super::super::session::LiveSession;
use super::super::sink::Sink;
use super::super::streams::PIPE;
use super::call::{Driver, gone};
use super::pool::{Key, Pooled};
use crate::error::Error;
use crate::limit::Admission;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_legacy::Accept;
use crate::protocol::client_modern::Level;
use crate::protocol::message::{self, Message};
use crate::protocol::parked::{Input, Output};

/// One time that a call is made.
pub(super) struct Attempt {
    pub(super) pooled: Pooled,
    /// What the server sends for it.
    pub(super) pipe: Receiver<Item>,
    /// The addresses that people are done at, as the session hears of them.
    pub(super) visited: broadcast::Receiver<String>,
}

impl Attempt {
    /// Sends the call to the server.
    pub(super) async fn begin(
        pooled: Pooled,
        request: Message,
        admission: Admission,
    ) -> Result<Self, Error> {
        // Before the server can say anything about the call.
        let visited = pooled.session.listens().visited();
        let (pipe, items) = channel(PIPE);
        let sink = Sink::shared(
            Accept {
                json: true,
                events: true,
            },
            pipe,
        );
        pooled.session.begin(request, sink, admission).await?;
        Ok(Self {
            pooled,
            pipe: items,
            visited,
        })
    }

    /// The call once more, in the same session, or in another when that is gone.
    async fn again(
        &self,
        key: &Key,
        single: bool,
        capabilities: ClientCapabilities,
        level: Option<Level>,
        request: Message,
    ) -> Result<Self, Error> {
        let session = &self.pooled.session;
        if !session.is_gone() {
            self.pooled.prepare(level).await;
        }
        let pooled = if session.is_gone() {
            let shared = &session.shared;
            shared.prepared(key, single, capabilities, level).await?
        } else {
            self.pooled.clone()
        };
        let admission = session.shared.limiter.admit(&key.server, &key.principal)?;
        Self::begin(pooled, request, admission).await
    }
}

impl Driver {
    /// Makes the call again, unless its client leaves before it could be sent.
    ///
    /// # Errors
    /// When it can't be sent.
    pub(super) async fn attempt_again(&mut self) -> Result<Vec<Output>, Error> {
        let level = self.outlet.as_ref().and_then(|outlet| outlet.level);
        let capabilities = self.call.capabilities();
        let sending = self.attempt.again(
            &self.key,
            self.single,
            capabilities,
            level,
            self.sent.clone(),
        );
        let attempt = tokio::select! {
            attempt = sending => attempt?,
            () = gone(&mut self.outlet) => return Ok(self.call.handle(now(), Input::Gone)),
        };
        self.attempt = attempt;
        Ok(Vec::new())
    }
}

/// Cancels a request that a session knows by this id (JSON text), unless it has ended.
pub(super) async fn cancel(session: &Arc<LiveSession>, inner: &str) {
    let params = format!(r#"{{"requestId":{inner},"reason":"the client is gone"}}"#);
    let notice = message::notification("notifications/cancelled", &params);
    if let Ok(notice) = Message::parse(&notice) {
        let _gone = session.notify(&notice).await;
    }
}
