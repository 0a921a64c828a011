//! Drives one call of a modern client at a legacy server: feeds the pure machine
//! ([`Call`]) and carries out what it decides, over all the requests that the call spans.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use super::super::deliver::Item;
use super::super::question::Settlement;
use super::super::{now, today};
use super::attempt::Attempt;
use super::cursor;
use super::lot::Over;
use super::outlet::Outlet;
use super::pool::{Key, Pooled};
use super::seal::{self, CallId};
use crate::error::Error;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_modern::{Level, Rejected};
use crate::protocol::convert;
use crate::protocol::message::{self, Kind, Malformed, Message};
use crate::protocol::modern::meta_of_server;
use crate::protocol::object::{edit, members, text};
use crate::protocol::parked::{Asked, Call, Input, Output, Retry, State};
use crate::protocol::replay::Visit;
use crate::protocol::session::QuestionId;
use crate::protocol::tasks::{self, Task};

/// A request of the client that continues the call.
#[derive(Debug)]
pub(super) struct Return {
    pub(super) round: u32,
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
    pub(super) retries: Receiver<Return>,
    pub(super) outlet: Option<Outlet>,
    /// Whether the session is the call's alone.
    pub(super) single: bool,
    /// Where the server runs the call as a task.
    pub(super) task: Option<Task>,
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
                    Some(Item::Outcome(response)) => self.conclude(&response).await,
                    Some(item) => self.take(item),
                    // The exchange always leaves an outcome; without one its task has died.
                    None => self.call.handle(now(), Input::End),
                },
                Some(back) = self.retries.recv() => self.take_back(back),
                // Who is told of more than can be remembered misses some: then a pause ends by itself.
                Ok(id) = self.attempt.visited.recv() => self.call.handle(now(), Input::Visited(&id)),
                () = gone(&mut self.outlet) => self.call.handle(now(), Input::Gone),
                () = tokio::time::sleep_until(due.unwrap_or_else(far)), if due.is_some() => {
                    self.call.handle_timeout(now())
                }
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
    fn mark_away(&self, away: bool) {
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
        if std::mem::take(&mut self.fresh) && is_forgotten(&response) {
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
        // It is at work, so it was not forgotten.
        self.fresh = false;
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
            match output {
                Output::Forward(notice) => self.forward(&notice),
                Output::Round(round, asked) => {
                    self.send_round(round, asked.iter().map(question).collect())
                        .await;
                }
                Output::Visits(round, visits) => {
                    self.send_round(round, visits.iter().map(address).collect())
                        .await;
                }
                Output::Again => outputs.extend(self.call_again().await),
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
                Output::Cancel => {
                    let meanwhile = self.cancel().await;
                    outputs.extend(meanwhile);
                }
            }
        }
    }

    async fn settle(&self, id: QuestionId, settlement: Settlement) {
        self.attempt.pooled.session.settle(id, settlement).await;
    }

    /// The server did not process the call, and is asked again.
    async fn call_again(&mut self) -> Vec<Output> {
        self.fresh = true;
        match self.attempt_again().await {
            Ok(outputs) => outputs,
            Err(error) => self.fail(&error),
        }
    }

    /// Passes a notification on, if the attached request wants it.
    fn forward(&mut self, notice: &Bytes) {
        let (Some(outlet), Ok(notice)) = (&mut self.outlet, Message::parse(notice)) else {
            return;
        };
        let Ok(notice) = unrelated(notice) else {
            return;
        };
        if notice.method() == "notifications/progress" {
            let (Some(token), Ok([Some(inner)])) = (&outlet.token, notice.param(["progressToken"]))
            else {
                return;
            };
            if text(inner) == text(&self.inner) {
                let notice = notice.replacing(inner, token);
                outlet.forward(notice);
            }
        } else if convert::is_loud_enough(Level::of(&notice), outlet.level) {
            outlet.forward(notice.bytes().clone());
        }
    }

    /// Sends the client away with these entries of `inputRequests`.
    async fn send_round(&mut self, round: u32, entries: Vec<String>) {
        let Some(outlet) = self.outlet.take() else {
            return;
        };
        self.mark_away(true);
        let session = &self.attempt.pooled.session;
        let state = seal::State::new(self.id, round, self.request, today(), self.park());
        let sealed = match session.shared.seal.seal(&state, &self.bound) {
            Ok(sealed) => sealed,
            Err(error) => return outlet.fail(error, session.server().name().as_str()).await,
        };
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":"{sealed}"}}"#,
            entries.join(",")
        );
        let info = self.attempt.pooled.welcome.info();
        let meta = info.map(meta_of_server);
        let named = edit(&result, &[("_meta", meta.as_deref())]);
        let response = message::result(&outlet.id, named.as_deref().unwrap_or(&result));
        outlet.finish(200, response).await;
    }

    async fn finish(&mut self, response: &Message) {
        let Some(outlet) = self.outlet.take() else {
            return;
        };
        let pooled = &self.attempt.pooled;
        let need = pooled.session.state().needs.remove(self.inner.as_str());
        if let Some(required) = need.filter(|_| outlet.is_undecided() && has_failed(response)) {
            // The client can do something about it: declare more, and call again.
            let server = self.key.server.as_str();
            return outlet
                .fail(Rejected::Capability(required).into(), server)
                .await;
        }
        let (status, body) = response_for(response, &outlet.id, &self.method, pooled);
        outlet.finish(status, body).await;
    }

    /// The client is told what it must declare for such a call.
    async fn lack(&mut self, required: &'static str) {
        if let Some(outlet) = self.outlet.take() {
            let server = self.key.server.as_str();
            outlet
                .fail(Rejected::Capability(required).into(), server)
                .await;
        }
    }

    /// The person did not agree to what the call needs.
    async fn decline(&mut self) {
        let Some(outlet) = self.outlet.take() else {
            return;
        };
        let body = if self.method == "tools/call" {
            let text = "the user declined to open the page that the server asked for";
            let result =
                format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}"#);
            let info = self.attempt.pooled.welcome.info();
            message::result(&outlet.id, &convert::result(&self.method, &result, info))
        } else {
            Error::Declined.body(Some(&outlet.id), Some(self.key.server.as_str()))
        };
        outlet.finish(200, body).await;
    }
}

/// Whether a response is an error, of the protocol or of a tool.
fn has_failed(response: &Message) -> bool {
    match response.result() {
        None => true,
        Some(result) => matches!(members(result, ["isError"]), Ok([Some("true")])),
    }
}

/// Whether a response is the gateway's own, and says that the server forgot the session.
fn is_forgotten(response: &Message) -> bool {
    let data = response
        .error()
        .and_then(|error| members(error, ["code", "data"]).ok());
    let Some([Some("-31003"), Some(data)]) = data else {
        return false;
    };
    matches!(
        members(data, ["source", "reason"]),
        Ok([Some(r#""gateway""#), Some(r#""forgotten_by_server""#)])
    )
}

/// A response of a legacy server as a modern client reads it, and the HTTP status that goes with it.
pub(super) fn response_for(
    response: &Message,
    id: &str,
    method: &str,
    pooled: &Pooled,
) -> (u16, Bytes) {
    if let (Kind::Result, Some(result)) = (response.kind(), response.result()) {
        let result = match pooled.tag() {
            Some(tag) => cursor::wrap(result, tag),
            None => result.into(),
        };
        let result = convert::result(method, &result, pooled.welcome.info());
        return (200, message::result(id, &result));
    }
    let error = response.error().unwrap_or("{}");
    let missing = matches!(members(error, ["code"]), Ok([Some("-32601")]));
    let status = if missing && !super::is_declared(method, pooled) {
        404
    } else {
        200
    };
    let error = convert::error(error);
    (
        status,
        Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)),
    )
}

/// A notification without the name of the task that it belongs to.
fn unrelated(notice: Message) -> Result<Message, Malformed> {
    match notice.params().and_then(tasks::unrelated) {
        Some(params) => Message::parse(&notice.with_body("", &params)),
        None => Ok(notice),
    }
}

/// A question as an entry of `inputRequests`.
fn question(asked: &Asked) -> String {
    entry(&asked.key, &asked.method, asked.params.as_deref())
}

/// An address as an entry of `inputRequests`.
fn address(visit: &Visit) -> String {
    entry(&visit.key, "elicitation/create", Some(&visit.params))
}

fn entry(key: &str, method: &str, params: Option<&str>) -> String {
    match params {
        Some(params) => format!(r#""{key}":{{"method":"{method}","params":{params}}}"#),
        None => format!(r#""{key}":{{"method":"{method}"}}"#),
    }
}

pub(super) async fn gone(outlet: &mut Option<Outlet>) {
    match outlet {
        Some(outlet) => outlet.gone().await,
        None => std::future::pending().await,
    }
}

fn far() -> tokio::time::Instant {
    tokio::time::Instant::from_std(now() + Duration::from_hours(24))
}
