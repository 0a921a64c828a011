//! A request on its way to a legacy server, and its answer, however that comes.
//!
//! When the server does not know the session any more, the request goes to another one; when its answer breaks
//! off, it is taken up where it broke, or sent again where that changes nothing. Which of that may be is
//! decided in [`renewal`](crate::protocol::renewal).
//!
//! # Invariants
//! - A call that its client has cancelled is not sent. One that was cancelled on its way is cancelled once more
//!   when the server surely has it: a cancel that overtakes its call means nothing to a server.
//! - Only the wait for the server is cut short. What it has sent is dealt with to the end: a question that was
//!   read must be booked or refused.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use super::exchange::{End, Exchange};
use super::inbound::{self, Inbound, Reading};
use super::lease::{Legacy, Tenure};
use super::now;
use super::resume::TakenUp;
use super::session::{Face, LiveSession};
use crate::error::Error;
use crate::protocol::client_modern::Rejected;
use crate::protocol::message::{self, Kind, Message};
use crate::protocol::renewal::{Sendings, Setback};
use crate::protocol::server_legacy::Answered;
use crate::protocol::session::LegId;
use crate::upstream::client::ClientError;
use crate::upstream::fault::{no_message, no_response, only_accepted};
use crate::upstream::reply::{Reply, StreamError};
use crate::upstream::trouble::Trouble;

/// How long a server is waited for after its call was cancelled: it should not answer, but some do.
const AFTER_CANCEL: Duration = Duration::from_secs(5);

/// How long the answer to a request is waited for whose session has ended.
const LAST_WORD: Duration = Duration::from_millis(500);

/// What became of a request that was sent.
enum Way {
    Ended(End),
    /// The server did not know the session.
    Unknown,
    /// Its answer broke off.
    Broken(Error),
}

impl Exchange {
    /// Takes the request to the server.
    pub(super) async fn relay(&mut self, legacy: &Legacy) -> End {
        let session = Arc::clone(&self.session);
        let stop = self.stop(AFTER_CANCEL);
        tokio::pin!(stop);
        let mut sendings = Sendings::default();
        loop {
            let tenure = match session.send_on(self.leg, legacy) {
                Ok(tenure) => tenure,
                Err(error) => return End::Failed(error),
            };
            self.sent.store(tenure.generation, Ordering::Relaxed);
            let (setback, error) = match self.try_on(&tenure, stop.as_mut()).await {
                Way::Ended(end) => {
                    if let End::Response(_, response) = &end {
                        legacy.standing.lock().note(&self.request, response);
                    }
                    return end;
                }
                Way::Unknown => (Setback::Unknown, Error::SessionLost),
                Way::Broken(error) => (Setback::Broken, error),
            };
            let asked = session.has_asked(self.leg);
            let unknown = setback == Setback::Unknown;
            if !sendings.again(setback, self.request.method(), asked) {
                return End::Failed(match unknown {
                    true if sendings.met_renewal() => session.forget(Error::ForgottenAgain),
                    true => session.lose(&tenure).err().unwrap_or(error),
                    false => error,
                });
            }
            if unknown && let Err(error) = Box::pin(self.renew(&tenure, stop.as_mut())).await {
                return End::Failed(error);
            }
        }
    }

    /// Waits for another session than that of this tenure, which has not taken the request.
    async fn renew(
        &self,
        tenure: &Tenure,
        mut stop: Pin<&mut impl Future<Output = Error>>,
    ) -> Result<(), Error> {
        let session = &self.session;
        session.take_back_call(self.leg);
        let renewing = session.renew(tenure);
        tokio::pin!(renewing);
        let renewed = tokio::select! {
            biased;
            renewed = &mut renewing => renewed,
            error = &mut stop => match error {
                // It may have ended for that very reason.
                Error::SessionEnded => tokio::time::timeout(LAST_WORD, renewing)
                    .await
                    .unwrap_or(Err(error)),
                other => Err(other),
            },
        };
        let paged = matches!(self.request.param(["cursor"]), Ok([Some(_)]));
        if renewed.is_ok() && paged && session.face() == Face::Modern {
            // A cursor is good at the session that gave it.
            let text = "the cursor is not valid any more; list from the beginning";
            return Err(Rejected::Answer(text.to_owned()).into());
        }
        renewed
    }

    /// Sends the request, and reads what comes.
    async fn try_on(
        &mut self,
        tenure: &Arc<Tenure>,
        mut stop: Pin<&mut impl Future<Output = Error>>,
    ) -> Way {
        let session = Arc::clone(&self.session);
        // Boxed, for it is over when the answer begins, and what follows may take long.
        let mut post = Box::pin(self.post(tenure));
        let reply = loop {
            let keep_alive = session.shared.config.timeouts.keep_alive;
            tokio::select! {
                biased;
                reply = &mut post => break reply,
                response = self.elsewhere.response() => return ended(response),
                error = &mut stop => {
                    if matches!(error, Error::Cancelled) {
                        session.cancel_late(self.leg, tenure);
                    }
                    return Box::pin(self.last_word(error, post.as_mut())).await;
                }
                // Nothing for so long: a stream can at least be kept alive.
                () = tokio::time::sleep(keep_alive), if self.sink.is_undecided() => {
                    self.sink.open(&session, self.leg);
                }
            }
        };
        drop(post);
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => return self.lost(tenure, &error),
        };
        if reply.what == Answered::SessionGone {
            // Said at once, also when another request has learned it before: this one was not carried out.
            return Way::Unknown;
        }
        session.is_headed(self.leg);
        if reply.what != Answered::Events {
            return tokio::select! {
                way = self.read(tenure, reply) => way,
                error = &mut stop => Way::Ended(End::Failed(error)),
            };
        }
        if session.state().talk.is_cancelled(self.leg) {
            session.cancel_late(self.leg, tenure);
        }
        self.sink.open(&session, self.leg);
        let mut reading = Box::new(Reading::new(reply));
        loop {
            let next = tokio::select! {
                biased;
                error = &mut stop => return Way::Ended(End::Failed(error)),
                // Of two responses the one on the stream of the request came first: what a server says to a
                // request that it has answered comes elsewhere.
                next = reading.next() => next,
                response = self.elsewhere.response() => return ended(response),
            };
            match next {
                Ok(Some(inbound)) => {
                    if let Some(response) = self.take(tenure, inbound).await {
                        reading.finish();
                        return ended(response);
                    }
                }
                Err(error @ StreamError::TooLarge(_)) => {
                    self.tell(&Trouble::Broke(&error));
                    return Way::Ended(End::Failed(error.into()));
                }
                broken => {
                    let again = tokio::select! {
                        again = Box::pin(session.take_up(&tenure.wire, &reading)) => again,
                        response = self.elsewhere.response() => return ended(response),
                        error = &mut stop => return Way::Ended(End::Failed(error)),
                    };
                    if let TakenUp::Again(again) = again {
                        reading = again;
                        continue;
                    }
                    match broken {
                        Err(error) => self.tell(&Trouble::Broke(&error)),
                        _ => self.tell(&Trouble::Cut),
                    }
                    if matches!(again, TakenUp::Unknown) {
                        // Whether the request was carried out is not known: not even this says it was not.
                        let _over = session.lose(tenure);
                        return Way::Broken(Error::SessionLost);
                    }
                    return self.broken(tenure, Error::Broken);
                }
            }
        }
    }

    /// The session ended while the request was on its way. If that is because the server forgot it, the
    /// server will say so to the request too, and then it surely was not carried out.
    async fn last_word(
        &self,
        error: Error,
        post: Pin<&mut impl Future<Output = Result<Reply, ClientError>>>,
    ) -> Way {
        Way::Ended(End::Failed(match error {
            Error::SessionEnded => match tokio::time::timeout(LAST_WORD, post).await {
                Ok(Ok(reply)) if reply.what == Answered::SessionGone => Error::Forgotten,
                _ => error,
            },
            other => other,
        }))
    }

    fn post(
        &self,
        tenure: &Arc<Tenure>,
    ) -> impl Future<Output = Result<Reply, ClientError>> + use<> {
        let (session, tenure) = (Arc::clone(&self.session), Arc::clone(tenure));
        let body = self.request.with_id(&self.leg.to_string());
        async move {
            match session.server().post(&tenure.wire, body.clone()).await {
                // Surely nothing was sent, so sending it again can't do it twice.
                Err(ClientError::Connect(_)) => {
                    Box::pin(session.server().post(&tenure.wire, body)).await
                }
                other => other,
            }
        }
    }

    /// Reads an answer that is no stream.
    async fn read(&self, tenure: &Arc<Tenure>, reply: Reply) -> Way {
        let status = reply.status;
        let head = reply.head();
        let useless = |error| {
            self.tell(&Trouble::Answered(&head));
            Way::Ended(End::Failed(error))
        };
        if let Some(error) = reply.refused() {
            return useless(error);
        }
        match reply.what {
            Answered::Accepted => useless(only_accepted()),
            Answered::Events | Answered::Json => match reply.whole().await {
                Err(error) => self.lost(tenure, &error),
                Ok(body) => match self.find_response(tenure, &body).await {
                    Some(response) => ended(response),
                    None => useless(no_response()),
                },
            },
            _ => {
                let body = reply.whole().await.ok();
                match body.and_then(|body| self.refusal(&body)) {
                    // Any other status would say something about the client's session.
                    Some(response) => {
                        let status = if status == 400 { 400 } else { 200 };
                        Way::Ended(End::Response(status, response))
                    }
                    None => useless(no_message(status)),
                }
            }
        }
    }

    /// The response in a JSON body. What else is in it is dealt with too.
    async fn find_response(&self, tenure: &Arc<Tenure>, body: &Bytes) -> Option<Message> {
        let mut response = None;
        for inbound in inbound::read(body, self.session.server().troubles()) {
            response = response.or(self.take(tenure, inbound).await);
        }
        response.or_else(|| self.refusal(body))
    }

    /// Takes what the server sent, and returns it when it is the response to the request.
    async fn take(&self, tenure: &Arc<Tenure>, inbound: Inbound) -> Option<Message> {
        match inbound {
            Inbound::Message(message) if self.answers_this(&message) => return Some(message),
            Inbound::Message(message) => {
                let cause = Some(self.leg);
                Box::pin(self.session.take_from_server(tenure, cause, &message)).await;
            }
            Inbound::Unreadable(id) => {
                Box::pin(self.session.refuse_unreadable(tenure, &id)).await;
            }
        }
        None
    }

    /// Tells the operator, unless the client no longer wants the answer: a server may then do anything.
    fn tell(&self, trouble: &Trouble<'_>) {
        if !self.session.state().talk.is_cancelled(self.leg) {
            self.session.server().troubles().tell(trouble);
        }
    }

    /// No answer came, or none whole.
    fn lost(&self, tenure: &Tenure, error: &ClientError) -> Way {
        self.tell(&Trouble::Lost(error));
        match error {
            ClientError::Broken(_) => self.broken(tenure, error.into()),
            _ => Way::Ended(End::Failed(error.into())),
        }
    }

    /// The answer broke off. Where the session is known to be lost, that is said instead.
    fn broken(&self, tenure: &Tenure, error: Error) -> Way {
        let lost = tenure.wire.is_link() || self.session.generation() != tenure.generation;
        Way::Broken(if lost { Error::SessionLost } else { error })
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

fn ended(response: Message) -> Way {
    Way::Ended(End::Response(200, response))
}

impl LiveSession {
    /// A call goes on the session that is used now, unless it is over.
    fn send_on(&self, leg: LegId, legacy: &Legacy) -> Result<Arc<Tenure>, Error> {
        let state = &mut *self.state();
        if state.talk.is_closed() {
            return Err(Error::SessionEnded);
        }
        if state.talk.is_cancelled(leg) {
            return Err(Error::Cancelled);
        }
        let tenure = legacy.tenure();
        if let Some(call) = state.calls.get_mut(&leg) {
            call.tenure = Some(Arc::clone(&tenure));
            call.headed = false;
        }
        state.talk.sent(now(), leg);
        Ok(tenure)
    }

    /// No server knows of a call any more.
    fn take_back_call(&self, leg: LegId) {
        if let Some(call) = self.state().calls.get_mut(&leg) {
            call.tenure = None;
        }
    }

    /// The server has a call.
    fn is_headed(&self, leg: LegId) {
        let state = &mut *self.state();
        if let Some(call) = state.calls.get_mut(&leg) {
            call.headed = true;
        }
        state.talk.heard(now(), leg);
    }

    /// Cancels a call at the server once more, which may have heard of the cancel before the call.
    fn cancel_late(self: &Arc<Self>, leg: LegId, tenure: &Arc<Tenure>) {
        let params = format!(r#"{{"requestId":{leg},"reason":"the client has cancelled it"}}"#);
        let notice = message::notification("notifications/cancelled", &params);
        let (session, tenure) = (Arc::clone(self), Arc::clone(tenure));
        self.shared.tasks.spawn(async move {
            let _gone = session.tell(&tenure, notice).await;
        });
    }

    /// Whether a person was asked something on behalf of a call.
    fn has_asked(&self, leg: LegId) -> bool {
        let state = self.state();
        state.calls.get(&leg).is_some_and(|call| call.asked > 0)
    }
}
