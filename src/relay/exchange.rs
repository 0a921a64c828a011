//! One request of a client, from its arrival to its outcome.
//!
//! The task goes on when the client has gone: at this era disconnecting is not cancelling
//! (2025-03-26 … 2025-11-25 basic/transports, "Sending Messages to the Server").

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;

use super::session::LiveSession;
use super::sink::Sink;
use super::{Answer, now, today};
use crate::error::Error;
use crate::limit::Admission;
use crate::protocol::client_legacy::{Accept, Asked};
use crate::protocol::message::{self, Body, Kind, Message};
use crate::protocol::object;
use crate::protocol::server_legacy::Answered;
use crate::protocol::session::{LegId, NotBegun};
use crate::telemetry::audit::{Outcome, Record, Slot};
use crate::upstream::client::ClientError;
use crate::upstream::http::{Reply, StreamError};

/// How long a server is waited for after its call was cancelled: it should not answer, but some do.
const AFTER_CANCEL: Duration = Duration::from_secs(5);

/// A request on its way.
pub(super) struct Exchange {
    session: Arc<LiveSession>,
    leg: LegId,
    request: Message,
    sink: Sink,
    cancelled: Arc<Notify>,
    record: Record,
    slot: Slot,
    began: Instant,
    _admission: Admission,
}

/// How a request ended.
enum End {
    /// The server's response, with the HTTP status that goes with it.
    Response(u16, Message),
    /// An error of the gateway's.
    Failed(Error),
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
        self.begin(request, sink, admission).await?;
        answer.await.unwrap_or(Err(Error::SessionEnded))
    }

    /// Begins an exchange whose answer goes into `sink`.
    pub(super) async fn begin(
        self: &Arc<Self>,
        request: Message,
        sink: Sink,
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
        let leg = {
            let mut state = self.state();
            let leg = state
                .talk
                .begin(began, request.id().unwrap_or_default(), asked.token)
                .map_err(|refused| match refused {
                    NotBegun::DuplicateId => Error::DuplicateId,
                    NotBegun::Closed => Error::UnknownSession,
                })?;
            state.cancels.insert(leg, Arc::clone(&cancelled));
            leg
        };
        let record = self.record_of(&request, asked.target);
        let exchange = Exchange {
            session: Arc::clone(self),
            leg,
            request,
            sink,
            cancelled,
            record,
            slot,
            began,
            _admission: admission,
        };
        self.shared.calls.spawn(exchange.run());
        Ok(())
    }

    fn record_of(&self, request: &Message, target: Option<&str>) -> Record {
        let record = self.about(Record::call).method(request.method());
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
}

impl Exchange {
    async fn run(mut self) {
        let end = self.relay().await;
        {
            let mut state = self.session.state();
            state.talk.finish(self.leg);
            state.streams.close_call(self.leg);
            state.cancels.remove(&self.leg);
        }
        let record = self
            .record
            .at(today())
            .duration(now().saturating_duration_since(self.began));
        let id = self.request.id();
        match end {
            End::Response(status, response) => {
                let record = match response.kind() {
                    Kind::Error => code_of(&response)
                        .into_iter()
                        .fold(record.outcome(Outcome::Error), Record::code),
                    _ => record.outcome(Outcome::Ok),
                };
                self.slot.write(record.bytes(response.bytes().len() as u64));
                self.sink
                    .finish(status, response.with_id(id.unwrap_or("null")))
                    .await;
            }
            End::Failed(error) => {
                let outcome = match &error {
                    Error::Slow(_) => Outcome::Timeout,
                    Error::Cancelled => Outcome::Cancelled,
                    Error::SessionEnded | Error::Forgotten | Error::Broken => Outcome::Lost,
                    _ => Outcome::Error,
                };
                let record = record
                    .outcome(outcome)
                    .reason(error.reason())
                    .code(error.code().into());
                self.slot.write(record);
                // What was cancelled should have no answer (basic/utilities/cancellation), but an HTTP
                // request that still waits for its head must have one.
                if outcome == Outcome::Cancelled && !self.sink.is_waiting() {
                    return;
                }
                let body = error.body(id, Some(self.session.server().name().as_str()));
                self.sink.fail(error, body).await;
            }
        }
    }

    async fn relay(&mut self) -> End {
        let session = Arc::clone(&self.session);
        let stop = stop(Arc::clone(&session), self.leg, Arc::clone(&self.cancelled));
        tokio::pin!(stop);
        let reply = {
            let post = self.post();
            tokio::pin!(post);
            loop {
                let keep_alive = session.shared.config.timeouts.keep_alive;
                tokio::select! {
                    reply = &mut post => break reply,
                    end = &mut stop => return end,
                    // Nothing for so long: a stream can at least be kept alive.
                    () = tokio::time::sleep(keep_alive), if self.sink.is_undecided() => {
                        self.sink.open(&session, self.leg).await;
                    }
                }
            }
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => return End::Failed(lost(&error)),
        };
        if reply.what == Answered::Events {
            self.sink.open(&session, self.leg).await;
        }
        tokio::select! {
            end = self.read(reply) => end,
            end = &mut stop => end,
        }
    }

    fn post(&self) -> impl Future<Output = Result<Reply, ClientError>> + use<> {
        let session = Arc::clone(&self.session);
        let body = self.request.with_id(&self.leg.to_string());
        async move {
            match session.server().post(session.wire(), body.clone()).await {
                // Surely nothing was sent, so sending it again can't do it twice.
                Err(ClientError::Connect(_)) => session.server().post(session.wire(), body).await,
                other => other,
            }
        }
    }

    async fn read(&self, reply: Reply) -> End {
        let status = reply.status.as_u16();
        let misbehaved = |text: &'static str| End::Failed(Error::Misbehaved(text.into()));
        match reply.what {
            Answered::Events => self.read_events(reply).await,
            Answered::Json => match reply.whole().await {
                Err(error) => End::Failed(lost(&error)),
                Ok(body) => match self.take(&body).await {
                    Some(response) => End::Response(200, response),
                    None => {
                        misbehaved("answered with something that is no response to the request")
                    }
                },
            },
            Answered::Accepted => misbehaved("accepted the request but did not answer it"),
            Answered::SessionGone => {
                let gone = self.session.check_gone(&reply);
                End::Failed(gone.err().unwrap_or(Error::Forgotten))
            }
            Answered::Limited => End::Failed(Error::ServerLimited(
                reply.retry_after().unwrap_or(Duration::from_secs(1)),
            )),
            Answered::Unauthorized => End::Failed(Error::Credentials),
            Answered::Redirect => misbehaved("redirects to another place, which is not followed"),
            Answered::Refused | Answered::NotOffered | Answered::Broken => {
                match reply
                    .whole()
                    .await
                    .ok()
                    .and_then(|body| self.refusal(&body))
                {
                    Some(response) => {
                        End::Response(if status < 500 { status } else { 200 }, response)
                    }
                    None => End::Failed(Error::Misbehaved(
                        format!("answered HTTP {status} and no MCP message").into(),
                    )),
                }
            }
        }
    }

    async fn read_events(&self, reply: Reply) -> End {
        let mut events = reply.events();
        loop {
            match events.next().await {
                Ok(Some(event)) if event.data.is_empty() => {}
                Ok(Some(event)) if event.name.as_deref().is_some_and(|name| name != b"message") => {
                }
                Ok(Some(event)) => {
                    if let Some(response) = self.take(&event.data).await {
                        return End::Response(200, response);
                    }
                }
                Ok(None) | Err(StreamError::Broken(_)) => return End::Failed(Error::Broken),
                Err(StreamError::TooLarge(_)) => {
                    return End::Failed(Error::Misbehaved(
                        "sent a message that is too large".into(),
                    ));
                }
            }
        }
    }

    /// Takes what the server sent, and returns the response to the request when it is that.
    async fn take(&self, data: &Bytes) -> Option<Message> {
        let messages = match Body::parse(data) {
            Ok(Body::Single(message)) => vec![message],
            Ok(Body::Batch(members)) => members
                .iter()
                .filter_map(|it| Message::parse(it).ok())
                .collect(),
            Err(error) => {
                tracing::warn!(server = %self.session.server().name(), %error, "the server sent something that is no message");
                return None;
            }
        };
        let mut response = None;
        for message in messages {
            if self.answers_this(&message) {
                response.get_or_insert(message);
            } else {
                self.session
                    .take_from_server(Some(self.leg), &message)
                    .await;
            }
        }
        response
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
        match message.kind() {
            Kind::Request => self.ask(cause, message).await,
            Kind::Notification => self.notice(cause, message).await,
            Kind::Result | Kind::Error => {
                tracing::debug!(server = %self.server().name(), session = self.tag(), "a response to no request");
            }
        }
    }
}

/// Waits until the exchange must stop, whatever the server does.
async fn stop(session: Arc<LiveSession>, leg: LegId, cancelled: Arc<Notify>) -> End {
    let limit = session.shared.config.timeouts.call;
    let over = async {
        loop {
            let worked = session.state().talk.worked(now(), leg);
            match worked {
                Some(worked) if worked >= limit => return,
                Some(worked) => tokio::time::sleep(limit.saturating_sub(worked)).await,
                // A person thinks; when they have answered, the rest of the time counts.
                None => tokio::time::sleep((limit / 4).min(Duration::from_secs(5))).await,
            }
        }
    };
    let error = tokio::select! {
        () = session.ended.cancelled() => Error::SessionEnded,
        () = async { cancelled.notified().await; tokio::time::sleep(AFTER_CANCEL).await } => Error::Cancelled,
        () = over => {
            let params = format!(r#"{{"requestId":{leg},"reason":"no answer in time"}}"#);
            let notice = message::notification("notifications/cancelled", &params);
            let telling = Arc::clone(&session);
            session.shared.tasks.spawn(async move { telling.tell_server(notice).await.ok() });
            Error::Slow(limit)
        }
    };
    End::Failed(error)
}

fn lost(error: &ClientError) -> Error {
    tracing::warn!(%error, "no answer from the server");
    match error {
        ClientError::Connect(_) => Error::Unreachable,
        ClientError::Broken(_) => Error::Broken,
        ClientError::Timeout(within) => Error::Slow(*within),
        ClientError::TooLarge(_) => Error::Misbehaved("sent a message that is too large".into()),
    }
}

fn code_of(response: &Message) -> Option<i64> {
    let [code] = object::members(response.error()?, ["code"]).ok()?;
    code?.parse().ok()
}
