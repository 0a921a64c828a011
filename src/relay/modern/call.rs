//! Drives one call of a modern client at a legacy server: feeds the pure machine
//! ([`Call`]) and carries out what it decides, over all the requests that the call spans.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::oneshot;

use super::super::deliver::Item;
use super::super::question::Settlement;
use super::super::session::LiveSession;
use super::super::sink::Sink;
use super::super::streams::PIPE;
use super::super::{now, today};
use super::cursor;
use super::lot::Over;
use super::outlet::Outlet;
use super::pool::{Key, Pooled};
use super::seal::{self, CallId};
use crate::error::Error;
use crate::limit::Admission;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_legacy::Accept;
use crate::protocol::client_modern::{Level, Rejected};
use crate::protocol::convert;
use crate::protocol::message::{self, Kind, Message};
use crate::protocol::modern::meta_of_server;
use crate::protocol::object::{edit, members};
use crate::protocol::parked::{Asked, Call, Input, Output, Retry, State};
use crate::protocol::replay::Replay;

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
    pub(super) pooled: Pooled,
    /// The id under which the session knows the call (JSON text); also its progress token.
    pub(super) inner: String,
    /// Whose session it is.
    pub(super) key: Key,
    /// What was sent to the server.
    pub(super) sent: Message,
    /// Whether it may be sent to a new session, should the server have forgotten this one.
    pub(super) fresh: bool,
    /// Whether the server has it.
    pub(super) in_flight: bool,
    /// Addresses that the person has to visit before the call is made again.
    pub(super) replay: Option<Replay>,
    pub(super) method: String,
    /// What the request was.
    pub(super) request: [u8; 32],
    /// Whom its states are given to.
    pub(super) bound: Vec<u8>,
    pub(super) pipe: Receiver<Item>,
    pub(super) retries: Receiver<Return>,
    pub(super) outlet: Option<Outlet>,
    /// Whether the session is the call's alone.
    pub(super) single: bool,
}

impl Driver {
    /// Runs the call to its end.
    pub(super) async fn run(mut self) {
        let keep_alive = self.pooled.session.shared.config.timeouts.keep_alive;
        let ending = self.pooled.session.shared.ending.clone();
        let mut done = self.pooled.session.listens().visited();
        let mut away = false;
        while !self.call.is_over() {
            away = self.is_away();
            let due = self.deadline().map(tokio::time::Instant::from_std);
            let outputs = tokio::select! {
                item = self.pipe.recv(), if self.in_flight => match item {
                    Some(Item::Outcome(response)) => self.conclude(response).await,
                    Some(item) => self.take(item),
                    // The exchange always leaves an outcome; without one its task has died.
                    None => self.call.handle(now(), Input::End),
                },
                Some(back) = self.retries.recv() => self.take_back(back),
                () = gone(&mut self.outlet) => self.call.handle(now(), Input::Gone),
                () = tokio::time::sleep_until(due.unwrap_or_else(far)), if due.is_some() => {
                    let mut outputs = self.call.handle_timeout(now());
                    outputs.extend(self.visits_due().await);
                    outputs
                }
                // Nobody can come back to a gateway that ends.
                () = ending.cancelled(), if away => self.call.handle(now(), Input::End),
                Ok(()) = done.changed(), if self.replay.is_some() => {
                    let ids = done.borrow_and_update().clone();
                    self.visited(&ids);
                    continue;
                }
                () = tokio::time::sleep(keep_alive), if self.is_silent() => {
                    if let Some(outlet) = &mut self.outlet {
                        outlet.open();
                    }
                    continue;
                }
            };
            self.carry_out(outputs).await;
        }
        // A question that was on its way meanwhile wants its answer, too.
        self.pipe.close();
        while let Some(item) = self.pipe.recv().await {
            let outputs = self.take(item);
            self.carry_out(outputs).await;
        }
        let over = match (self.call.state(), away) {
            (State::Delivered, _) | (_, false) => Over::Consumed,
            (_, true) => Over::Expired,
        };
        self.pooled
            .session
            .state()
            .needs
            .remove(self.inner.as_str());
        let lot = &self.pooled.session.shared.lot;
        if self.call.has_asked() {
            lot.close(self.id, over, now());
        } else {
            // Nobody has a state that names it.
            lot.forget(self.id);
        }
    }

    /// Whether the client was sent away.
    fn is_away(&self) -> bool {
        matches!(self.call.state(), State::Parked | State::ParkedDone)
            || self.replay.as_ref().is_some_and(Replay::is_away)
    }

    /// Tells the session, for questions of which it does not know whose they are.
    fn mark_away(&self, away: bool) {
        let mut state = self.pooled.session.state();
        if let Some(leg) = state.talk.leg(&self.inner) {
            state.streams.set_away(leg, away);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let replay = self.replay.as_ref().and_then(Replay::deadline);
        self.call.deadline().into_iter().chain(replay).min()
    }

    /// How long a client may stay away.
    pub(super) fn park(&self) -> Duration {
        self.pooled.session.shared.config.timeouts.question
    }

    /// The server has answered, which is not always the end.
    async fn conclude(&mut self, response: Bytes) -> Vec<Output> {
        // The end of the pipe, which follows, says nothing more.
        self.in_flight = false;
        if std::mem::take(&mut self.fresh) && is_forgotten(&response) {
            return self.begin_anew(response).await;
        }
        if let Some(visits) = self.wants_visits(&response) {
            return self.send_away(visits, response).await;
        }
        self.replay = None;
        self.call.handle(now(), Input::Outcome(response))
    }

    /// The server forgot the session before it took the call: it goes to a new one, once.
    async fn begin_anew(&mut self, response: Bytes) -> Vec<Output> {
        let shared = Arc::clone(&self.pooled.session.shared);
        let begun = async {
            let pooled = shared
                .session_for(&self.key, self.single, self.call.capabilities())
                .await?;
            pooled
                .prepare(self.outlet.as_ref().and_then(|outlet| outlet.level))
                .await;
            let admission = shared
                .limiter
                .admit(&self.key.server, &self.key.principal)?;
            let pipe = begin(&pooled.session, self.sent.clone(), admission).await?;
            Ok::<_, Error>((pooled, pipe))
        };
        match begun.await {
            Ok((pooled, pipe)) => {
                self.pooled = pooled;
                self.pipe = pipe;
                self.in_flight = true;
                Vec::new()
            }
            Err(error) => {
                tracing::warn!(server = %self.key.server, %error, "no new session for a call");
                self.call.handle(now(), Input::Outcome(response))
            }
        }
    }

    /// Whether the client waits and has not heard anything, not even that there is a stream.
    fn is_silent(&self) -> bool {
        self.outlet.as_ref().is_some_and(Outlet::is_undecided)
    }

    fn take(&mut self, item: Item) -> Vec<Output> {
        // It is at work, so it was not forgotten.
        self.fresh = false;
        if matches!(item, Item::Question(..)) {
            // The addresses are behind it.
            self.replay = None;
        }
        let now = now();
        match item {
            Item::Question(id, bytes) => match Message::parse(&bytes) {
                Ok(question) => self.call.handle(now, Input::Question(id, &question)),
                Err(_) => vec![Output::Refuse(id, -32600, "the request is no message")],
            },
            Item::Withdrawn(id, _) => self.call.handle(now, Input::Withdrawn(id)),
            Item::Progress(bytes) => self.call.handle(now, Input::Progress(bytes)),
            Item::Notice(bytes) => self.call.handle(now, Input::Log(bytes)),
            Item::Outcome(bytes) => self.call.handle(now, Input::Outcome(bytes)),
        }
    }

    fn take_back(&mut self, back: Return) -> Vec<Output> {
        if self.replay.is_some() {
            return self.come_from_visits(back);
        }
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
        let session = Arc::clone(&self.pooled.session);
        for output in outputs {
            match output {
                Output::Forward(notice) => self.forward(&notice),
                Output::Round(round, asked) => {
                    self.send_round(round, asked.iter().map(input_request).collect())
                        .await;
                }
                Output::Done(response) => self.finish(&response).await,
                Output::Answer(id, result) => {
                    let answer = message::result(&id.to_string(), &result);
                    if let Ok(answer) = Message::parse(&answer) {
                        // The loss of the session shows itself as the outcome of the call.
                        let _gone = session.answer(&answer).await;
                    }
                }
                Output::Dismiss(id) => session.settle(id, Settlement::Dismissed).await,
                Output::Refuse(id, code, text) => {
                    session.settle(id, Settlement::Refused(code, text)).await;
                }
                Output::Cancel => self.cancel().await,
            }
        }
    }

    /// Passes a notification on, if the attached request wants it.
    fn forward(&mut self, notice: &Bytes) {
        let (Some(outlet), Ok(notice)) = (&mut self.outlet, Message::parse(notice)) else {
            return;
        };
        if notice.method() == "notifications/progress" {
            let (Some(token), Ok([Some(inner)])) = (&outlet.token, notice.param(["progressToken"]))
            else {
                return;
            };
            let notice = notice.replacing(inner, token);
            outlet.forward(notice);
        } else if convert::is_loud_enough(Level::of(&notice), outlet.level) {
            outlet.forward(notice.bytes().clone());
        }
    }

    /// Sends the client away with these entries of `inputRequests`.
    pub(super) async fn send_round(&mut self, round: u32, entries: Vec<String>) {
        let Some(outlet) = self.outlet.take() else {
            return;
        };
        self.mark_away(true);
        let session = &self.pooled.session;
        let state = seal::State::new(self.id, round, self.request, today(), self.park());
        let sealed = match session.shared.seal.seal(&state, &self.bound) {
            Ok(sealed) => sealed,
            Err(error) => return outlet.fail(error, session.server().name().as_str()).await,
        };
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":"{sealed}"}}"#,
            entries.join(",")
        );
        let info = self.pooled.welcome.info();
        let meta = info.map(meta_of_server);
        let named = edit(&result, &[("_meta", meta.as_deref())]);
        let response = message::result(&outlet.id, named.as_deref().unwrap_or(&result));
        outlet.finish(200, response).await;
    }

    async fn finish(&mut self, response: &Bytes) {
        let Some(outlet) = self.outlet.take() else {
            return;
        };
        let need = self
            .pooled
            .session
            .state()
            .needs
            .remove(self.inner.as_str());
        if let Some(required) = need.filter(|_| outlet.is_undecided() && has_failed(response)) {
            // The client can do something about it: declare more, and call again.
            let server = self.pooled.session.server().name().as_str();
            return outlet
                .fail(Rejected::Capability(required).into(), server)
                .await;
        }
        let (status, body) = response_for(response, &outlet.id, &self.method, &self.pooled);
        outlet.finish(status, body).await;
    }

    async fn cancel(&self) {
        let params = format!(
            r#"{{"requestId":{},"reason":"the client is gone"}}"#,
            self.inner
        );
        let notice = message::notification("notifications/cancelled", &params);
        if let Ok(notice) = Message::parse(&notice) {
            let _gone = self.pooled.session.notify(&notice).await;
        }
    }
}

/// Begins a call at a session; what the server sends for it comes out of the pipe.
pub(super) async fn begin(
    session: &Arc<LiveSession>,
    request: Message,
    admission: Admission,
) -> Result<Receiver<Item>, Error> {
    let (pipe, items) = channel(PIPE);
    let sink = Sink::shared(
        Accept {
            json: true,
            events: true,
        },
        pipe,
    );
    session.begin(request, sink, admission).await?;
    Ok(items)
}

/// Whether a response is an error, of the protocol or of a tool.
fn has_failed(response: &Bytes) -> bool {
    Message::parse(response).is_ok_and(|response| match response.result() {
        None => true,
        Some(result) => matches!(members(result, ["isError"]), Ok([Some("true")])),
    })
}

/// Whether a response is the gateway's own, and says that the server forgot the session.
fn is_forgotten(response: &Bytes) -> bool {
    let Ok(response) = Message::parse(response) else {
        return false;
    };
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
    response: &Bytes,
    id: &str,
    method: &str,
    pooled: &Pooled,
) -> (u16, Bytes) {
    let Ok(response) = Message::parse(response) else {
        return (
            200,
            Error::Misbehaved("sent no message".into()).body(Some(id), None),
        );
    };
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

fn input_request(asked: &Asked) -> String {
    match &asked.params {
        Some(params) => format!(
            r#""{}":{{"method":"{}","params":{params}}}"#,
            asked.key, asked.method
        ),
        None => format!(r#""{}":{{"method":"{}"}}"#, asked.key, asked.method),
    }
}

async fn gone(outlet: &mut Option<Outlet>) {
    match outlet {
        Some(outlet) => outlet.gone().await,
        None => std::future::pending().await,
    }
}

fn far() -> tokio::time::Instant {
    tokio::time::Instant::from_std(now() + Duration::from_hours(24))
}
