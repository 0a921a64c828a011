//! Drives one call of a modern client at a legacy server: feeds the pure machine
//! ([`Call`]) and carries out what it decides, over all the requests that the call spans.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use super::super::deliver::Item;
use super::super::now;
use super::super::question::Settlement;
use super::attempt::Attempt;
use super::lot::Over;
use super::outlet::Outlet;
use super::parks::Parking;
use super::pool::Key;
use super::seal::CallId;
use super::telling::{address, question};
use crate::error::Error;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_modern::Rejected;
use crate::protocol::message::{self, Message};
use crate::protocol::object::{members, text};
use crate::protocol::parked::{Call, Input, Output, Retry, State};
use crate::protocol::session::QuestionId;
use crate::protocol::tasks::Task;

/// A request of the client that continues the call.
#[derive(Debug)]
pub(super) struct Return {
    pub(super) round: u32,
    /// What the request is to the last byte.
    pub(super) exactly: [u8; 32],
    pub(super) capabilities: ClientCapabilities,
    /// The answers by key (JSON text).
    pub(super) answers: Vec<(String, String)>,
    pub(super) outlet: Outlet,
    /// Whether it was taken; if not, the outlet comes back with the reason.
    pub(super) taken: oneshot::Sender<Result<(), Rejected>>,
}

/// What a call is made of.
pub(super) struct Driver {
    pub(super) id: CallId,
    pub(super) call: Call,
    /// The latest time that it was made.
    pub(super) attempt: Attempt,
    /// The id under which the session knows the call (JSON text); also its progress token.
    pub(super) inner: String,
    /// Whose session it is.
    pub(super) key: Key,
    /// What was sent to the server.
    pub(super) sent: Message,
    /// Whether it may be sent to a new session, should the server have forgotten this one.
    pub(super) fresh: bool,
    pub(super) method: String,
    /// What the request was.
    pub(super) request: [u8; 32],
    /// Whom its states are given to.
    pub(super) bound: Vec<u8>,
    pub(super) retries: Receiver<Box<Return>>,
    pub(super) outlet: Option<Outlet>,
    /// Whether the session is the call's alone.
    pub(super) single: bool,
    /// Where the server runs the call as a task.
    pub(super) task: Option<Task>,
    /// The place of a client that is away.
    pub(super) parking: Option<Parking>,
    /// The retry that is attached, to the last byte; none as long as the first request is.
    pub(super) answering: Option<[u8; 32]>,
}

impl Driver {
    /// Runs the call to its end.
    pub(super) async fn run(mut self) {
        let shared = Arc::clone(&self.attempt.pooled.session.shared);
        let keep_alive = shared.config.timeouts.keep_alive;
        let mut away = false;
        while !self.call.is_over() {
            away = self.call.is_away();
            let due = self.call.deadline().map(tokio::time::Instant::from_std);
            let outputs = tokio::select! {
                item = self.attempt.pipe.recv(), if self.call.is_in_flight() => match item {
                    Some(Item::Outcome(response)) => Box::pin(self.conclude(&response)).await,
                    Some(item) => self.take(item),
                    // The exchange always leaves an outcome; without one its task has died.
                    None => self.call.handle(now(), Input::End),
                },
                Some(back) = self.retries.recv() => self.take_back(*back),
                // Who is told of more than can be remembered misses some: then a pause ends by itself.
                Ok(id) = self.attempt.visited.recv() => self.call.handle(now(), Input::Visited(&id)),
                () = gone(&mut self.outlet) => self.call.handle(now(), Input::Gone),
                () = tokio::time::sleep_until(due.unwrap_or_else(far)), if due.is_some() => {
                    self.call.handle_timeout(now())
                }
                // Another call of the same principal went away, and there are enough.
                () = lost(self.parking.as_ref()) => self.call.handle(now(), Input::End),
                // Nobody can come back to a gateway that ends.
                () = shared.ending.cancelled(), if away => self.call.handle(now(), Input::End),
                () = tokio::time::sleep(keep_alive), if self.is_silent() => {
                    if let Some(outlet) = &mut self.outlet {
                        outlet.open();
                    }
                    continue;
                }
            };
            self.carry_out(outputs).await;
        }
        let late = self.drain().await;
        self.carry_out(late).await;
        self.leave(away);
    }

    /// The call has ended; whether its client was away.
    fn leave(&self, away: bool) {
        self.forget_task();
        let over = match (self.call.state(), away) {
            (State::Delivered, _) | (_, false) => Over::Consumed,
            (_, true) => Over::Expired,
        };
        let session = &self.attempt.pooled.session;
        session.state().needs.remove(self.inner.as_str());
        let lot = &session.shared.lot;
        if self.call.has_asked() {
            lot.close(self.id, over, now());
        } else {
            // Nobody has a state that names it.
            lot.forget(self.id);
        }
    }

    /// What was on its way when the request ended at the server: a question wants its answer, too.
    pub(super) async fn drain(&mut self) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.attempt.pipe.close();
        while let Some(item) = self.attempt.pipe.recv().await {
            outputs.extend(self.take(item));
        }
        outputs
    }

    /// Tells the session, for questions of which it does not know whose they are.
    pub(super) fn mark_away(&self, away: bool) {
        let mut state = self.attempt.pooled.session.state();
        if let Some(leg) = state.talk.leg(&self.inner) {
            state.streams.set_away(leg, away);
        }
    }

    /// How long a client may stay away.
    pub(super) fn park(&self) -> Duration {
        self.attempt.pooled.session.shared.config.timeouts.question
    }

    /// The server has answered, which is not always the end.
    async fn conclude(&mut self, response: &Bytes) -> Vec<Output> {
        let Ok(response) = Message::parse(response) else {
            return self.fail(&Error::Misbehaved("sent no message".into()));
        };
        if std::mem::take(&mut self.fresh) && is_own(&response, "-31003", "forgotten_by_server") {
            // The server forgot the session before it took the call: it goes to a new one, once.
            return match self.attempt_again().await {
                Ok(outputs) => outputs,
                Err(error) => {
                    tracing::warn!(server = %self.key.server, %error, "no new session for a call");
                    self.call.handle(now(), Input::Outcome(response))
                }
            };
        }
        let outcome = match self.outcome_of(response).await {
            Ok(outcome) => outcome,
            Err(outputs) => return outputs,
        };
        let mut outputs = self.call.handle(now(), Input::Outcome(outcome));
        outputs.extend(self.drain().await);
        outputs
    }

    /// The call ends with an error of the gateway's.
    pub(super) fn fail(&mut self, error: &Error) -> Vec<Output> {
        let body = error.body(Some(&self.inner), Some(self.key.server.as_str()));
        let end = Message::parse(&body).map_or(Input::End, Input::Outcome);
        self.call.handle(now(), end)
    }

    /// Whether the client waits and has not heard anything, not even that there is a stream.
    fn is_silent(&self) -> bool {
        self.outlet.as_ref().is_some_and(Outlet::is_undecided)
    }

    pub(super) fn take(&mut self, item: Item) -> Vec<Output> {
        // It is at work, so it was not forgotten. The gateway's own question comes before that.
        self.fresh &= self.attempt.consent.is_awaited();
        let now = now();
        match item {
            Item::Question(id, bytes) => match Message::parse(&bytes) {
                Ok(question) => self.call.handle(now, Input::Question(id, &question)),
                Err(_) => vec![Output::Refuse(id, -32600, "the request is no message")],
            },
            Item::Withdrawn(id, _) => self.call.handle(now, Input::Withdrawn(id)),
            Item::Progress(bytes) => self.call.handle(now, Input::Progress(bytes)),
            Item::Notice(bytes) => self.call.handle(now, Input::Log(bytes)),
            // There is one, and it has been taken.
            Item::Outcome(_) => Vec::new(),
        }
    }

    fn take_back(&mut self, back: Return) -> Vec<Output> {
        let Return {
            round,
            exactly,
            capabilities,
            answers,
            outlet,
            taken,
        } = back;
        let answers = answers
            .iter()
            .map(|(key, answer)| (key.clone(), answer.as_str()))
            .collect();
        match self.call.retry(
            now(),
            &Retry {
                round,
                capabilities,
                answers,
            },
        ) {
            Ok(outputs) => {
                self.outlet = Some(outlet);
                self.parking = None;
                self.answering = Some(exactly);
                self.mark_away(false);
                let _gone = taken.send(Ok(()));
                outputs
            }
            Err(rejected) => {
                let _gone = taken.send(Err(rejected));
                Vec::new()
            }
        }
    }

    async fn carry_out(&mut self, outputs: Vec<Output>) {
        let mut outputs = VecDeque::from(outputs);
        while let Some(output) = outputs.pop_front() {
            // Boxed, as most of the time a call waits.
            let more = Box::pin(self.carry_out_one(output)).await;
            outputs.extend(more);
        }
    }

    /// Carries out one thing; gives what comes of it.
    async fn carry_out_one(&mut self, output: Output) -> Vec<Output> {
        match output {
            Output::Forward(notice) => self.forward(&notice),
            Output::Round(round, asked) => {
                let entries = asked.iter().map(question).collect();
                return self.send_round(round, entries).await;
            }
            Output::Visits(round, visits) => {
                let entries = visits.iter().map(address).collect();
                return self.send_round(round, entries).await;
            }
            Output::Again => return self.call_again().await,
            Output::Done(response) => self.finish(&response).await,
            Output::Declined => self.decline().await,
            Output::Undeclared(required) => self.lack(required).await,
            Output::Answer(id, result) => {
                let related = self.task.as_ref().and_then(|task| task.answer(&result));
                let result = related.unwrap_or(result);
                let answer = message::result(&id.to_string(), &result);
                if let Ok(answer) = Message::parse(&answer) {
                    // The loss of the session shows itself as the outcome of the call.
                    let _gone = self.attempt.pooled.session.answer(&answer).await;
                }
            }
            Output::Dismiss(id) => self.settle(id, Settlement::Dismissed).await,
            Output::Refuse(id, code, text) => {
                self.settle(id, Settlement::Refused(code, text)).await;
            }
            Output::Cancel => return self.cancel().await,
        }
        Vec::new()
    }

    async fn settle(&self, id: QuestionId, settlement: Settlement) {
        let session = &self.attempt.pooled.session;
        if self.call.has_concluded() && session.adopt(id).await {
            return;
        }
        session.settle(id, settlement).await;
    }

    /// The server did not process the call, and is asked again.
    async fn call_again(&mut self) -> Vec<Output> {
        self.fresh = true;
        match self.attempt_again().await {
            Ok(outputs) => outputs,
            Err(error) => self.fail(&error),
        }
    }
}

/// Whether a response is the gateway's own, an error of this code for this reason.
pub(super) fn is_own(response: &Message, code: &str, reason: &str) -> bool {
    let data = response
        .error()
        .and_then(|error| members(error, ["code", "data"]).ok());
    let Some([Some(own), Some(data)]) = data else {
        return false;
    };
    let Ok([Some(source), Some(why)]) = members(data, ["source", "reason"]) else {
        return false;
    };
    own == code
        && text(source).as_deref() == Some("gateway")
        && text(why).as_deref() == Some(reason)
}

pub(super) async fn gone(outlet: &mut Option<Outlet>) {
    match outlet {
        Some(outlet) => outlet.gone().await,
        None => std::future::pending().await,
    }
}

async fn lost(parking: Option<&Parking>) {
    match parking {
        Some(parking) => parking.lost().await,
        None => std::future::pending().await,
    }
}

fn far() -> tokio::time::Instant {
    tokio::time::Instant::from_std(now() + Duration::from_hours(24))
}
