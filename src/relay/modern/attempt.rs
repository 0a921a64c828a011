//! One time that a call is made at its server: in which session, and what comes of it. A call is made
//! again when the server surely did not process it: it had forgotten the session, or said so (-32042).

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::mpsc::{Receiver, channel};

use super::super::approval::Consent;
use super::super::caller::Caller;
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
use crate::protocol::tasks::Task;

/// One time that a call is made.
pub(super) struct Attempt {
    pub(super) pooled: Pooled,
    /// Whom its questions are for.
    caller: Arc<Caller>,
    /// Whether the person has approved the call, however often it is made.
    pub(super) consent: Consent,
    /// What the server sends for it.
    pub(super) pipe: Receiver<Item>,
    /// The addresses that people are done at, as the session hears of them.
    pub(super) visited: broadcast::Receiver<String>,
    /// The place of a call of several requests, until it ends.
    place: Option<Admission>,
}

impl Attempt {
    /// Sends the call to the server; as a task it will take more than this request.
    pub(super) async fn begin(
        pooled: Pooled,
        request: Message,
        caller: &Arc<Caller>,
        consent: Consent,
        admission: Admission,
        as_task: bool,
    ) -> Result<Self, Error> {
        // Before the server can say anything about the call.
        let visited = pooled.session.listens().visited();
        let (own, place) = if as_task {
            (Admission::of_the_gateway(), Some(admission))
        } else {
            (admission, None)
        };
        Ok(Self {
            pipe: send(&pooled.session, request, caller, consent.clone(), own).await?,
            pooled,
            caller: Arc::clone(caller),
            consent,
            visited,
            place,
        })
    }

    /// Sends one more request of the same call.
    pub(super) async fn go_on(&mut self, request: Message) -> Result<(), Error> {
        let own = Admission::of_the_gateway();
        let consent = self.consent.clone();
        self.pipe = send(&self.pooled.session, request, &self.caller, consent, own).await?;
        Ok(())
    }

    /// The work is done; a client that reads slowly must not keep the place of another.
    pub(super) fn leave_place(&mut self) {
        self.place = None;
    }

    /// The call once more, in the same session, or in another when that is gone.
    async fn again(
        &self,
        key: &Key,
        single: bool,
        capabilities: ClientCapabilities,
        level: Option<Level>,
        request: Message,
        as_task: bool,
    ) -> Result<Self, Error> {
        let session = &self.pooled.session;
        let capabilities = self.caller.declared(capabilities, &session.policy);
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
        let consent = self.consent.clone();
        Self::begin(pooled, request, &self.caller, consent, admission, as_task).await
    }
}

/// Sends a request; what the server sends for it comes out of the pipe.
async fn send(
    session: &Arc<LiveSession>,
    request: Message,
    caller: &Arc<Caller>,
    consent: Consent,
    admission: Admission,
) -> Result<Receiver<Item>, Error> {
    let (pipe, items) = channel(PIPE);
    let both = Accept {
        json: true,
        events: true,
    };
    session
        .begin(
            request,
            Sink::shared(both, pipe),
            Some(Arc::clone(caller)),
            consent,
            admission,
        )
        .await?;
    Ok(items)
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
            self.task.is_some(),
        );
        let attempt = tokio::select! {
            attempt = sending => attempt?,
            () = gone(&mut self.outlet) => return Ok(self.call.handle(now(), Input::Gone)),
        };
        self.forget_task();
        self.attempt = attempt;
        self.task = self.task.as_ref().map(|_| Task::default());
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
