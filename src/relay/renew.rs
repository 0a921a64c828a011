//! Goes on with a new session at a server that no longer knows the old one: one `initialize`, whoever needs it.
//!
//! What was at the server is lost, and is not made up: what it had asked is withdrawn, calls that wait for such an
//! answer end, and clients are told that everything may have changed. Which requests are sent once more, and
//! what a new session is told, is decided in [`renewal`].
//!
//! # Invariants
//! - Many who meet the same loss wait for one renewal. A loss of an older session than the one that is used
//!   renews nothing.
//! - The new session is what the client was told of the old one, or the client's session ends.
//! - A session that ends is not renewed, and one that was opened too late is ended at the server.
//! - A server that can't be reached is left alone for a while, and the session stays.

use std::sync::Arc;
use std::time::Duration;

use super::deliver::Item;
use super::greet::{Greeting, greet};
use super::inbound::{Inbound, Reading};
use super::lease::{Lease, Legacy, Tenure};
use super::now;
use super::pending::{Asker, Pending};
use super::session::LiveSession;
use super::stop::Halt;
use super::teardown::Ending;
use super::welcome::Welcome;
use crate::error::Error;
use crate::protocol::message::{self, Kind, Message};
use crate::protocol::renewal::{self, Generation, Told};
use crate::protocol::server_legacy::Answered;
use crate::protocol::session::{Question, QuestionId};
use crate::telemetry::audit::{Outcome, Record};
use crate::upstream::reply::Reply;
use crate::upstream::server::Wire;
use crate::upstream::trouble::Trouble;

/// How long a server may take to hear what it was told before. What it does not take by then is left out.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long it may take to hear something that has no answer.
const STEP: Duration = Duration::from_secs(5);

/// Why there is no new session.
enum Failed {
    /// There may be one later.
    NotNow(Error),
    /// There will be none.
    Over(Error),
}

/// The new session is lost, too.
struct Again;

/// A question out of the book, whether the client had not read it, and what ends its call.
type Taken = (QuestionId, Question, Pending, bool, Option<Arc<Halt>>);

impl LiveSession {
    /// The session at the server that is used now; none at a modern server.
    pub(super) fn tenure(&self) -> Option<Arc<Tenure>> {
        match self.lease() {
            Lease::Legacy(legacy) => Some(legacy.tenure()),
            Lease::Modern(_) => None,
        }
    }

    /// Which that is.
    pub(super) fn generation(&self) -> Generation {
        self.tenure().map_or(0, |tenure| tenure.generation)
    }

    /// The server does not know the session of this tenure, and nobody waits for another one.
    ///
    /// # Errors
    /// [`Error::Forgotten`] when there will be none.
    pub(super) fn lose(self: &Arc<Self>, tenure: &Tenure) -> Result<(), Error> {
        let Lease::Legacy(legacy) = self.lease() else {
            return Ok(());
        };
        if !legacy.renewable && legacy.tenure().generation == tenure.generation {
            return Err(self.forget(Error::Forgotten));
        }
        let (session, lost) = (Arc::clone(self), tenure.generation);
        let renewing = async move { session.renew_in_turn(lost).await.ok() };
        self.shared.tasks.spawn(renewing);
        Ok(())
    }

    /// Waits for another session than that of this tenure, which the server does not know.
    ///
    /// # Errors
    /// [`Error::Forgotten`] when there will be none: the client has to begin anew. Others, when the server can't
    /// be had at the moment.
    pub(super) async fn renew(self: &Arc<Self>, lost: &Tenure) -> Result<(), Error> {
        // Carried through: who waits for it may go, the server has been asked.
        let (session, lost) = (Arc::clone(self), lost.generation);
        let renewing = async move { session.renew_in_turn(lost).await };
        let renewed = self.shared.tasks.spawn(renewing).await;
        renewed.unwrap_or(Err(Error::SessionEnded))
    }

    /// The session can't go on.
    pub(super) fn forget(self: &Arc<Self>, why: Error) -> Error {
        self.mark_forgotten();
        self.shared.tasks.spawn(self.end(Ending::Forgotten));
        why
    }

    async fn renew_in_turn(self: Arc<Self>, lost: Generation) -> Result<(), Error> {
        let Lease::Legacy(legacy) = self.lease() else {
            return Err(Error::SessionEnded);
        };
        let mut tries = legacy.tries.lock().await;
        if self.is_forgotten() {
            return Err(Error::Forgotten);
        }
        if self.ended.is_cancelled() {
            return Err(Error::SessionEnded);
        }
        if self.shared.ending.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        if legacy.tenure().generation != lost {
            return Ok(());
        }
        if !legacy.renewable {
            return Err(self.forget(Error::Forgotten));
        }
        if let Some(error) = tries.too_soon(now()) {
            return Err(error);
        }
        self.withdraw_all(lost).await;
        let server = self.server().name();
        match self.open_again(legacy, lost).await {
            Ok(()) => {
                tries.succeeded(now());
                tracing::info!(session = self.tag(), %server, "session renewed");
                Ok(())
            }
            Err(Failed::NotNow(error)) => {
                tries.failed(now(), error.clone());
                Err(error)
            }
            Err(Failed::Over(error)) => Err(self.forget(error)),
        }
    }

    async fn open_again(self: &Arc<Self>, legacy: &Legacy, lost: Generation) -> Result<(), Failed> {
        let patience = self.shared.patience(self.server().name()).call;
        let greeting = greet(self.server(), &legacy.hello, patience).await;
        let greeting = greeting.map_err(|error| {
            Failed::NotNow(match error {
                // What was not answered is the gateway's own `initialize`.
                Error::Broken => Error::Unreachable,
                other => other,
            })
        })?;
        if greeting.is_from_modern() {
            self.server().doubt_era();
        }
        if greeting.version.is_none() {
            return Err(Failed::Over(Error::Forgotten));
        }
        let wire = greeting.wire.clone();
        let opened = self.take_up_new(legacy, lost, greeting, &wire).await;
        if opened.is_err() && wire.is_held() {
            let _told = tokio::time::timeout(STEP, self.server().end(&wire)).await;
        }
        opened
    }

    /// Makes of what was opened the session that is used.
    async fn take_up_new(
        self: &Arc<Self>,
        legacy: &Legacy,
        lost: Generation,
        greeting: Greeting,
        wire: &Wire,
    ) -> Result<(), Failed> {
        let welcome = greeting.result().unwrap_or("{}");
        let standing = legacy.standing.lock().clone();
        if !renewal::holds(legacy.tenure().welcome.result(), welcome) || !standing.is_whole() {
            return Err(Failed::Over(Error::Forgotten));
        }
        if self.is_ready() {
            self.say_ready(wire).await?;
        }
        let tenure = Arc::new(Tenure {
            generation: lost + 1,
            wire: wire.clone(),
            welcome: Welcome::new(welcome),
        });
        {
            let mut state = self.state();
            if state.talk.is_closed() {
                return Err(Failed::NotNow(Error::SessionEnded));
            }
            // They were known to the old session alone.
            state.tasks.clear();
            legacy.go_on_with(Arc::clone(&tenure));
        }
        let record = self.about(Record::session_renewed).outcome(Outcome::Ok);
        self.shared.audit.write(record).await;
        let telling = Arc::clone(self).tell_missed(
            Arc::clone(&tenure),
            greeting.early,
            standing.changes(tenure.welcome.result()),
        );
        let replaying = self.replay(&tenure, standing.requests());
        match tokio::time::timeout(PATIENCE, replaying).await {
            Ok(Ok(())) => {}
            Ok(Err(Again)) => return Err(Failed::Over(Error::ForgottenAgain)),
            Err(_slow) => self.server().troubles().tell(&Trouble::Slow(PATIENCE)),
        }
        // Not waited for: a client that reads nothing must not keep others waiting.
        self.shared.tasks.spawn(telling);
        Ok(())
    }

    /// Says that the session may be used.
    async fn say_ready(&self, wire: &Wire) -> Result<(), Failed> {
        let ready = message::notification("notifications/initialized", "{}");
        match tokio::time::timeout(STEP, self.server().post(wire, ready)).await {
            Ok(Ok(reply)) if reply.what == Answered::SessionGone => {
                Err(Failed::Over(Error::ForgottenAgain))
            }
            Ok(Err(error)) if error.is_away() => Err(Failed::NotNow((&error).into())),
            // Whatever else it thinks of it: what follows shows whether it works.
            _ => Ok(()),
        }
    }

    /// Tells the new session what the old one had been told.
    async fn replay(
        self: &Arc<Self>,
        tenure: &Arc<Tenure>,
        requests: Vec<Told>,
    ) -> Result<(), Again> {
        for (number, told) in requests.into_iter().enumerate() {
            let id = format!(r#""cf-renew-{}-{number}""#, tenure.generation);
            let Told {
                method,
                params,
                uri,
            } = told;
            let request =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            let reply = match self.server().post(&tenure.wire, request.into()).await {
                Ok(reply) if reply.what == Answered::SessionGone => return Err(Again),
                Ok(reply) => reply,
                Err(error) => {
                    self.server().troubles().tell(&Trouble::Lost(&error));
                    continue;
                }
            };
            let answer = self.answer_in(tenure, reply, &id).await;
            if answer.is_none_or(|answer| answer.kind() != Kind::Result)
                && let Some(uri) = uri
            {
                self.hear_less(&uri);
            }
        }
        Ok(())
    }

    /// The response with this id in an answer; what else is in it is dealt with.
    async fn answer_in(
        self: &Arc<Self>,
        tenure: &Arc<Tenure>,
        reply: Reply,
        id: &str,
    ) -> Option<Message> {
        if reply.what != Answered::Events {
            return Message::parse(&reply.whole().await.ok()?).ok();
        }
        let mut reading = Reading::new(reply);
        while let Ok(Some(inbound)) = reading.next().await {
            match inbound {
                Inbound::Message(it) if it.is_response() && it.id() == Some(id) => {
                    reading.finish();
                    return Some(it);
                }
                Inbound::Message(it) => self.take_from_server(tenure, None, &it).await,
                Inbound::Unreadable(id) => self.refuse_unreadable(tenure, &id).await,
            }
        }
        None
    }

    /// A resource can't be subscribed any more. A listen that was promised it ends; a legacy client reads it,
    /// since it is said to have changed, and learns why.
    fn hear_less(&self, uri: &str) {
        if let Lease::Legacy(legacy) = self.lease() {
            legacy.standing.lock().give_up(uri);
        }
        self.listens().tell_less(uri);
    }

    /// Brings the client what the server said first, and that what it could not hear of may have changed.
    async fn tell_missed(
        self: Arc<Self>,
        tenure: Arc<Tenure>,
        early: Vec<Inbound>,
        changes: Vec<bytes::Bytes>,
    ) {
        for inbound in early {
            match inbound {
                Inbound::Message(it) => self.take_from_server(&tenure, None, &it).await,
                Inbound::Unreadable(id) => self.refuse_unreadable(&tenure, &id).await,
            }
        }
        for change in changes {
            if let Ok(change) = Message::parse(&change) {
                self.notice(None, &change).await;
            }
        }
    }

    /// What the old session asked can't be answered any more. Its client is told, and calls end that wait for
    /// such an answer.
    async fn withdraw_all(self: &Arc<Self>, lost: Generation) {
        let taken: Vec<_> = {
            let state = &mut *self.state();
            let old = |pending: &Pending| match &pending.asked.asker {
                Asker::Server(tenure) => tenure.generation <= lost,
                _ => false,
            };
            let ids = state.pending.iter().filter(|(_, pending)| old(pending));
            let ids: Vec<_> = ids.map(|(id, _)| *id).collect();
            let mut taken: Vec<Taken> = Vec::new();
            for id in ids {
                let Some(question) = state.talk.give_up(now(), id) else {
                    continue;
                };
                let unread = state.streams.waiting.drop_question(id);
                let call = question.cause.and_then(|leg| state.calls.get(&leg));
                let halt = call.map(|call| Arc::clone(&call.halt));
                if let Some(pending) = state.pending.remove(&id) {
                    taken.push((id, question, pending, unread, halt));
                }
            }
            taken
        };
        for (id, question, pending, unread, halt) in taken {
            pending.stop_clock();
            self.record_unanswered(&question, &pending, Outcome::Lost, "session_lost")
                .await;
            let shown = pending.was_shown() && !unread;
            let params = format!(r#"{{"requestId":{id},"reason":"the server lost its session"}}"#);
            let notice = message::notification("notifications/cancelled", &params);
            // Not waited for, as above.
            let session = Arc::clone(self);
            self.shared.tasks.spawn(async move {
                if shown {
                    let item = Item::Withdrawn(id, notice);
                    session.deliver(question.cause, item).await;
                }
                // After that: with the call ends the stream on which the client hears of it.
                if let Some(halt) = halt {
                    halt.lost.notify_one();
                }
            });
        }
    }
}
