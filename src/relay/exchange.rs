//! One request of a client, from its arrival to its outcome.
//!
//! The task goes on when the client has gone: at this era disconnecting is not cancelling
//! (2025-03-26 … 2025-11-25 basic/transports, "Sending Messages to the Server").

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::approval::Consent;
use super::caller::Caller;
use super::inbound::{self, Inbound, Reading};
use super::lease::Lease;
use super::pending::Asker;
use super::session::LiveSession;
use super::sink::Sink;
use super::{Answer, now, today};
use crate::error::Error;
use crate::limit::Admission;
use crate::protocol::client_legacy::{Accept, Asked};
use crate::protocol::event_id::Name;
use crate::protocol::message::{Kind, Message};
use crate::protocol::object;
use crate::protocol::server_legacy::Answered;
use crate::protocol::session::{LegId, NotBegun};
use crate::telemetry::audit::{Outcome, Record, Slot};
use crate::upstream::client::ClientError;
use crate::upstream::fault::{no_message, no_response, only_accepted};
use crate::upstream::http::{Reply, StreamError, Wire};
use crate::upstream::trouble::Trouble;

/// How long a server is waited for after its call was cancelled: it should not answer, but some do.
const AFTER_CANCEL: Duration = Duration::from_secs(5);

/// How long the answer to a request is waited for whose session has ended.
const LAST_WORD: Duration = Duration::from_millis(500);

/// A request on its way.
pub(super) struct Exchange {
    pub(super) session: Arc<LiveSession>,
    pub(super) leg: LegId,
    pub(super) request: Message,
    pub(super) sink: Sink,
    pub(super) cancelled: Arc<Notify>,
    /// The response, where it does not come on the stream of the request.
    elsewhere: Receiver<Message>,
    pub(super) record: Record,
    /// Whether its person has approved it.
    pub(super) consent: Consent,
    slot: Slot,
    began: Instant,
    admission: Admission,
}

/// A call in flight.
pub(super) struct InFlight {
    /// What is asked of the server.
    pub(super) request: Message,
    /// Whom its questions are for, if that differs from the session's.
    pub(super) caller: Option<Arc<Caller>>,
    /// How many questions it caused.
    pub(super) asked: u32,
    /// It waits for the approval of its person, and its server knows nothing of it.
    pub(super) unsent: bool,
    /// Its client has cancelled it.
    pub(super) cancelled: Arc<Notify>,
    /// Its response came on another stream.
    pub(super) responses: Sender<Message>,
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
        let (sink, answer) = Sink::new(accept);
        self.begin(request, sink, None, Consent::default(), admission)
            .await?;
        answer.await.unwrap_or(Err(Error::SessionEnded))
    }

    /// Begins an exchange whose answer goes into `sink`. Its questions are for `caller`, or for who holds the
    /// session.
    pub(super) async fn begin(
        self: &Arc<Self>,
        request: Message,
        sink: Sink,
        caller: Option<Arc<Caller>>,
        consent: Consent,
        admission: Admission,
    ) -> Result<(), Error> {
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
        let cancelled = Arc::new(Notify::new());
        let (responses, elsewhere) = channel(1);
        let in_flight = InFlight {
            request: request.clone(),
            caller,
            asked: 0,
            unsent: false,
            cancelled: Arc::clone(&cancelled),
            responses,
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
                    NotBegun::Closed => Error::UnknownSession,
                })?;
            state.calls.insert(leg, in_flight);
            leg
        };
        let record = about_call(self.about(Record::call), &request, asked.target);
        let mut exchange = Exchange {
            session: Arc::clone(self),
            leg,
            request,
            sink,
            cancelled,
            elsewhere,
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
        self.shared.calls.spawn(exchange.run());
        Ok(())
    }
}

/// A record about a request, and the tool, prompt or resource (JSON text) that it is about.
pub(super) fn about_call(record: Record, request: &Message, target: Option<&str>) -> Record {
    let record = record.method(request.method());
    let record = match request.id() {
        Some(id) => record.request(id),
        None => record,
    };
    match (
        target.and_then(object::text),
        request.method().starts_with("resources/"),
    ) {
        (Some(uri), true) => record.resource(&uri),
        (Some(name), false) => record.target(&name),
        (None, _) => record,
    }
}

impl Exchange {
    async fn run(mut self) {
        let session = Arc::clone(&self.session);
        let end = match (self.approve().await, session.lease()) {
            (Some(end), _) => end,
            (None, Lease::Legacy(wire)) => self.relay(wire).await,
            // Apart: a call at a legacy server must not take the room that rounds need.
            (None, Lease::Modern(modern)) => Box::pin(self.drive(modern)).await,
        };
        let (cancelled, stream) = {
            let mut state = self.session.state();
            let cancelled = state.talk.is_cancelled(self.leg);
            state.talk.finish(self.leg);
            let call = state.calls.remove(&self.leg);
            if let (End::Response(_, response), Some(call)) = (&end, call) {
                session.learn_task(&mut state, call, &self.sink, response);
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
                let error = if cancelled && matches!(error, Error::Broken | Error::Misbehaved(_)) {
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

    async fn relay(&mut self, wire: &Wire) -> End {
        let session = Arc::clone(&self.session);
        let stop = self.stop(AFTER_CANCEL);
        tokio::pin!(stop);
        let post = self.post(wire.clone());
        tokio::pin!(post);
        let reply = loop {
            let keep_alive = session.shared.config.timeouts.keep_alive;
            tokio::select! {
                reply = &mut post => break reply,
                Some(response) = self.elsewhere.recv() => return End::Response(200, response),
                error = &mut stop => return self.last_word(error, post).await,
                // Nothing for so long: a stream can at least be kept alive.
                () = tokio::time::sleep(keep_alive), if self.sink.is_undecided() => {
                    self.sink.open(&session, self.leg);
                }
            }
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => return End::Failed(self.lost(&error)),
        };
        if reply.what == Answered::SessionGone {
            // Said at once, also when another request has learned it before: this one was not carried out.
            return self.read(reply).await;
        }
        if reply.what != Answered::Events {
            return tokio::select! {
                end = self.read(reply) => end,
                error = &mut stop => End::Failed(error),
            };
        }
        self.sink.open(&session, self.leg);
        let mut reading = Reading::new(reply);
        loop {
            // Only the wait for the server is cut short. What it has sent is dealt with to the end: a
            // question that was read must be booked or refused.
            let next = tokio::select! {
                next = reading.next() => next,
                Some(response) = self.elsewhere.recv() => return End::Response(200, response),
                error = &mut stop => return End::Failed(error),
            };
            match next {
                Ok(Some(inbound)) => {
                    if let Some(response) = self.take(inbound).await {
                        return End::Response(200, response);
                    }
                }
                Err(error @ StreamError::TooLarge(_)) => {
                    self.tell(&Trouble::Broke(&error));
                    return End::Failed(error.into());
                }
                broken => {
                    let again = tokio::select! {
                        again = session.take_up(wire, &reading) => again,
                        Some(response) = self.elsewhere.recv() => return End::Response(200, response),
                        error = &mut stop => return End::Failed(error),
                    };
                    if let Some(again) = again {
                        reading = again;
                        continue;
                    }
                    match broken {
                        Err(error) => self.tell(&Trouble::Broke(&error)),
                        _ => self.tell(&Trouble::Cut),
                    }
                    return End::Failed(Error::Broken);
                }
            }
        }
    }

    /// The session ended while the request was on its way. If that is because the server forgot it, the
    /// server will say so to the request too, and then it surely was not carried out.
    async fn last_word(
        &self,
        error: Error,
        post: std::pin::Pin<&mut impl Future<Output = Result<Reply, ClientError>>>,
    ) -> End {
        if !matches!(error, Error::SessionEnded) {
            return End::Failed(error);
        }
        match tokio::time::timeout(LAST_WORD, post).await {
            Ok(Ok(reply)) if reply.what == Answered::SessionGone => End::Failed(Error::Forgotten),
            _ => End::Failed(error),
        }
    }

    fn post(&self, wire: Wire) -> impl Future<Output = Result<Reply, ClientError>> + use<> {
        let session = Arc::clone(&self.session);
        let body = self.request.with_id(&self.leg.to_string());
        async move {
            match session.server().post(&wire, body.clone()).await {
                // Surely nothing was sent, so sending it again can't do it twice.
                Err(ClientError::Connect(_)) => session.server().post(&wire, body).await,
                other => other,
            }
        }
    }

    /// Reads an answer that is no stream.
    async fn read(&self, reply: Reply) -> End {
        let status = reply.status;
        let head = reply.head();
        let useless = |end| {
            self.tell(&Trouble::Answered(&head));
            end
        };
        if let Some(error) = reply.refused() {
            return useless(End::Failed(error));
        }
        match reply.what {
            Answered::Accepted => useless(End::Failed(only_accepted())),
            Answered::SessionGone => {
                let gone = self.session.check_gone(&reply);
                End::Failed(gone.err().unwrap_or(Error::Forgotten))
            }
            Answered::Events | Answered::Json => match reply.whole().await {
                Err(error) => End::Failed(self.lost(&error)),
                Ok(body) => match self.find_response(&body).await {
                    Some(response) => End::Response(200, response),
                    None => useless(End::Failed(no_response())),
                },
            },
            _ => {
                let body = reply.whole().await.ok();
                match body.and_then(|body| self.refusal(&body)) {
                    // Any other status would say something about the client's session.
                    Some(response) => {
                        End::Response(if status == 400 { 400 } else { 200 }, response)
                    }
                    None => useless(End::Failed(no_message(status))),
                }
            }
        }
    }

    /// The response in a JSON body. What else is in it is dealt with too.
    async fn find_response(&self, body: &Bytes) -> Option<Message> {
        let mut response = None;
        for inbound in inbound::read(body, self.session.server().troubles()) {
            response = response.or(self.take(inbound).await);
        }
        response.or_else(|| self.refusal(body))
    }

    /// Takes what the server sent, and returns it when it is the response to the request.
    async fn take(&self, inbound: Inbound) -> Option<Message> {
        match inbound {
            Inbound::Message(message) if self.answers_this(&message) => return Some(message),
            Inbound::Message(message) => {
                self.session
                    .take_from_server(Some(self.leg), &message)
                    .await;
            }
            Inbound::Unreadable(id) => self.session.refuse_unreadable(&id).await,
        }
        None
    }

    /// Tells the operator, unless the client no longer wants the answer: a server may then do anything.
    fn tell(&self, trouble: &Trouble<'_>) {
        if !self.session.state().talk.is_cancelled(self.leg) {
            self.session.server().troubles().tell(trouble);
        }
    }

    fn lost(&self, error: &ClientError) -> Error {
        self.tell(&Trouble::Lost(error));
        error.into()
    }

    fn answers_this(&self, message: &Message) -> bool {
        message.is_response() && message.id().and_then(LegId::parse) == Some(self.leg)
    }

    /// A refusal that says why in JSON-RPC. Its id may be missing: it may not have been read.
    fn refusal(&self, body: &Bytes) -> Option<Message> {
        let message = Message::parse(body)
            .ok()
            .filter(|message| message.kind() == Kind::Error)?;
        if self.answers_this(&message) {
            return Some(message);
        }
        let error = message.error().filter(|_| message.id().is_none())?;
        let named = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, self.leg);
        Message::parse(&named.into()).ok()
    }
}

impl LiveSession {
    /// Takes a message of the server that ends no exchange here.
    pub(super) async fn take_from_server(
        self: &Arc<Self>,
        cause: Option<LegId>,
        message: &Message,
    ) {
        let cause = match message.kind() {
            Kind::Request => self.cause_to_come(cause, message).await,
            _ => self.cause_of(cause, message),
        };
        match message.kind() {
            Kind::Request => self.ask(cause, message, Asker::Server).await,
            Kind::Notification => self.notice(cause, message).await,
            Kind::Result | Kind::Error => {
                // The first one counts, whichever stream it comes on: a server that goes on with a broken
                // stream may choose another.
                let leg = message.id().and_then(LegId::parse);
                let state = self.state();
                if let Some(call) = leg.and_then(|leg| state.calls.get(&leg))
                    && call.responses.try_send(message.clone()).is_ok()
                {
                    return;
                }
                drop(state);
                tracing::debug!(server = %self.server().name(), session = self.tag(), "a response to no request");
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

pub(super) fn of_response(record: Record, response: &Message) -> Record {
    let record = record.bytes(response.bytes().len() as u64);
    if response.kind() != Kind::Error {
        return record.outcome(Outcome::Ok);
    }
    let record = record.outcome(Outcome::Error);
    match code_of(response) {
        Some(code) => record.code(code),
        None => record,
    }
}

pub(super) fn of_failure(record: Record, error: &Error) -> Record {
    let outcome = match error {
        Error::Slow(_) => Outcome::Timeout,
        Error::Cancelled => Outcome::Cancelled,
        Error::SessionEnded | Error::Forgotten | Error::Broken => Outcome::Lost,
        _ => Outcome::Error,
    };
    record
        .outcome(outcome)
        .reason(error.reason())
        .code(error.code().into())
}

fn code_of(response: &Message) -> Option<i64> {
    let [code] = object::members(response.error()?, ["code"]).ok()?;
    code?.parse().ok()
}
