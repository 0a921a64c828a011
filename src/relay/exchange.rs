//! One request of a client, from its arrival to its outcome. How it is taken to a legacy server is in
//! [`relayed`](super::relayed), to a modern one in [`driver`](super::driver).
//!
//! It goes on when the client has gone: at this era disconnecting is not cancelling
//! (2025-03-26 … 2025-11-25 basic/transports, "Sending Messages to the Server"). As long as the client waits for
//! the head of its answer, the task of its request does the work; from then on it has one of its own.

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::account::{about_call, of_failure, of_response};
use super::approval::Consent;
use super::caller::Caller;
use super::carried::Carried;
use super::lease::{Lease, Tenure};
use super::session::LiveSession;
use super::sink::Sink;
use super::stop::Halt;
use super::{Answer, now, today};
use crate::error::Error;
use crate::limit::Admission;
use crate::protocol::client_legacy::{Accept, Asked};
use crate::protocol::event_id::Name;
use crate::protocol::message::Message;
use crate::protocol::renewal::Generation;
use crate::protocol::session::{LegId, NotBegun};
use crate::telemetry::audit::{Outcome, Record, Slot};

/// A request on its way.
pub(super) struct Exchange {
    pub(super) session: Arc<LiveSession>,
    pub(super) leg: LegId,
    pub(super) request: Message,
    pub(super) sink: Sink,
    pub(super) halt: Arc<Halt>,
    /// The response, where it does not come on the stream of the request.
    pub(super) elsewhere: Elsewhere,
    /// The session at the server that it was sent to last.
    pub(super) sent: Arc<AtomicU32>,
    pub(super) record: Record,
    /// Whether its person has approved it.
    pub(super) consent: Consent,
    slot: Slot,
    began: Instant,
    admission: Admission,
}

/// A call in flight.
pub(super) struct InFlight {
    /// What is asked of the server, and since when.
    pub(super) request: Message,
    pub(super) began: Instant,
    /// Whom its questions are for, if that differs from the session's.
    pub(super) caller: Option<Arc<Caller>>,
    /// How many questions it caused.
    pub(super) asked: u32,
    /// The session at a legacy server that it was sent to; none as long as no server knows of it.
    pub(super) tenure: Option<Arc<Tenure>>,
    /// Its answer has begun, so the server has it.
    pub(super) headed: bool,
    /// What ends it.
    pub(super) halt: Arc<Halt>,
    /// Its response came on another stream.
    pub(super) response: Option<oneshot::Sender<Message>>,
}

/// Where the response comes to that is on another stream than its request's.
pub(super) struct Elsewhere(Option<oneshot::Receiver<Message>>);

impl Elsewhere {
    /// The response. Dropping the future loses nothing.
    pub(super) async fn response(&mut self) -> Message {
        if let Some(coming) = &mut self.0 {
            let come = coming.await;
            // There is one at most.
            self.0 = None;
            if let Ok(response) = come {
                return response;
            }
        }
        std::future::pending().await
    }
}

/// How a request ended.
pub(super) enum End {
    /// The server's response, with the HTTP status that goes with it.
    Response(u16, Message),
    /// An error of the gateway's.
    Failed(Error),
    /// A result of the gateway's: the person has not approved the call, and the server knows nothing of it.
    Denied(Message),
}

impl LiveSession {
    /// Takes a request to the server and its outcome to the client.
    ///
    /// # Errors
    /// When it can't begin, or fails before the answer has a head.
    pub async fn call(
        self: &Arc<Self>,
        request: Message,
        accept: Accept,
        admission: Admission,
    ) -> Result<Answer, Error> {
        let (answer, _) = self.call_at(request, accept, admission).await?;
        Ok(answer)
    }

    /// The same, and which session at the server has answered.
    ///
    /// # Errors
    /// The same.
    pub(super) async fn call_at(
        self: &Arc<Self>,
        request: Message,
        accept: Accept,
        admission: Admission,
    ) -> Result<(Answer, Generation), Error> {
        let (sink, mut answer) = Sink::new(accept);
        let exchange = self
            .prepare(request, sink, None, Consent::default(), admission)
            .await?;
        let sent = Arc::clone(&exchange.sent);
        let mut work = Carried::new(&self.shared.calls, exchange.run());
        let answer = poll_fn(|cx| {
            let over = Pin::new(&mut work).poll(cx).is_ready();
            // Nobody else says anything, so it need not be waited for.
            match answer.try_recv() {
                Ok(answer) => Poll::Ready(answer),
                Err(TryRecvError::Empty) if !over => Poll::Pending,
                Err(_) => Poll::Ready(Err(Error::SessionEnded)),
            }
        });
        Ok((answer.await?, sent.load(Ordering::Relaxed)))
    }

    /// Begins an exchange whose answer goes into `sink`, in a task of its own. Its questions are for `caller`, or
    /// for who holds the session. Gives where it can be read which session at the server it was sent to last.
    pub(super) async fn begin(
        self: &Arc<Self>,
        request: Message,
        sink: Sink,
        caller: Option<Arc<Caller>>,
        consent: Consent,
        admission: Admission,
    ) -> Result<Arc<AtomicU32>, Error> {
        let exchange = self
            .prepare(request, sink, caller, consent, admission)
            .await?;
        let sent = Arc::clone(&exchange.sent);
        self.shared.calls.spawn(exchange.run());
        Ok(sent)
    }

    /// Books an exchange, which runs then.
    async fn prepare(
        self: &Arc<Self>,
        request: Message,
        sink: Sink,
        caller: Option<Arc<Caller>>,
        consent: Consent,
        admission: Admission,
    ) -> Result<Exchange, Error> {
        if self.shared.ending.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let asked = Asked::read(&request)?;
        let slot = self
            .shared
            .audit
            .reserve()
            .await
            .map_err(|_| Error::AuditFull)?;
        let began = now();
        let halt = Arc::new(Halt::default());
        let (response, elsewhere) = oneshot::channel();
        let in_flight = InFlight {
            request: request.clone(),
            began,
            caller,
            asked: 0,
            tenure: None,
            headed: false,
            halt: Arc::clone(&halt),
            response: Some(response),
        };
        let leg = {
            let mut state = self.state();
            let most = self.shared.config.limits.streams;
            if most.is_some_and(|most| state.talk.calls() >= most) {
                return Err(Error::Capacity(
                    "the session has too many calls in flight".into(),
                ));
            }
            let leg = state
                .talk
                .begin(began, request.id().unwrap_or_default(), asked.token)
                .map_err(|refused| match refused {
                    NotBegun::DuplicateId => Error::DuplicateId,
                    NotBegun::Cancelled => Error::Cancelled,
                    NotBegun::Closed => Error::UnknownSession,
                })?;
            state.calls.insert(leg, Box::new(in_flight));
            leg
        };
        let record = about_call(self.about(Record::call), &request, asked.target);
        let mut exchange = Exchange {
            session: Arc::clone(self),
            leg,
            request,
            sink,
            halt,
            elsewhere: Elsewhere(Some(elsewhere)),
            sent: Arc::default(),
            record,
            consent,
            slot,
            began,
            admission,
        };
        if !exchange.sink.is_waiting() {
            // From its first moment it is there for what belongs to it.
            exchange.sink.open(self, leg);
        }
        Ok(exchange)
    }
}

impl Exchange {
    async fn run(mut self) {
        let session = Arc::clone(&self.session);
        // What few calls need is boxed: all would have to make room for it.
        let refused = match self.awaits() {
            Ok(None) => None,
            Ok(Some(approval)) => Box::pin(self.approve(approval)).await,
            Err(error) => Some(End::Failed(error)),
        };
        let end = match (refused, session.lease()) {
            (Some(end), _) => end,
            (None, Lease::Legacy(legacy)) => self.relay(legacy).await,
            (None, Lease::Modern(modern)) => Box::pin(self.drive(modern)).await,
        };
        let (cancelled, stream) = {
            let mut state = self.session.state();
            let cancelled = state.talk.is_cancelled(self.leg);
            state.talk.finish(self.leg);
            let call = state.calls.remove(&self.leg);
            if let (End::Response(_, response), Some(call)) = (&end, call) {
                session.learn_task(&mut state, *call, &self.sink, response);
            }
            (cancelled, state.streams.end_call(self.leg))
        };
        // The work is done; a client that reads slowly must not keep the place of another.
        drop(self.admission);
        let took = now().saturating_duration_since(self.began);
        let record = self.record.at(today()).duration(took);
        let id = self.request.id();
        match end {
            End::Response(status, response) => {
                self.slot.write(of_response(record, &response));
                let response = response.with_id(id.unwrap_or("null"));
                finish(&session, self.sink, stream, (status, response)).await;
            }
            End::Denied(response) => {
                self.slot
                    .write(record.outcome(Outcome::Refused).reason("not_approved"));
                let response = response.with_id(id.unwrap_or("null"));
                finish(&session, self.sink, stream, (200, response)).await;
            }
            End::Failed(error) => {
                // A server may end what was cancelled without a word, or with an odd one.
                let error = if cancelled
                    && matches!(
                        error,
                        Error::Broken | Error::SessionLost | Error::Misbehaved(_)
                    ) {
                    Error::Cancelled
                } else {
                    error
                };
                self.slot.write(of_failure(record, &error));
                // What was cancelled should have no answer (basic/utilities/cancellation), but an HTTP
                // request that still waits for its head must have one.
                if matches!(error, Error::Cancelled) && !self.sink.is_waiting() {
                    let close = |stream| session.state().streams.settle(stream, now());
                    return stream.map_or((), close);
                }
                let body = error.body(id, Some(self.session.server().name().as_str()));
                match stream {
                    Some(stream) => session.conclude(stream, body).await,
                    None => self.sink.fail(error, body).await,
                }
            }
        }
    }
}

/// Brings a response, with the HTTP status that goes with it, to where its client reads it.
async fn finish(
    session: &Arc<LiveSession>,
    sink: Sink,
    stream: Option<Name>,
    (status, response): (u16, Bytes),
) {
    match stream {
        Some(stream) => session.conclude(stream, response).await,
        None => sink.finish(status, response).await,
    }
}

pub(super) fn misbehaved(what: impl Into<Cow<'static, str>>) -> End {
    End::Failed(Error::Misbehaved(what.into()))
}
