//! A call of a modern client at a legacy server, over the gaps in which the client is away.
//!
//! The server keeps one request in flight and asks in its midst; the client's request must end with
//! the questions, and comes back as a new one with the answers (2026-07-28 basic/patterns/mrtr). This
//! machine holds the two together. It is the table of states in rows: running with a client attached,
//! parked without one, parked with the outcome in hand, away at addresses that the server wants visited
//! before it processes the call at all, over.
//!
//! # Invariants
//! - A question keeps its key for the life of the call, and a key is never used for another.
//! - Each question that came in leaves as exactly one [`Output::Answer`], [`Output::Dismiss`] or [`Output::Refuse`],
//!   unless the server withdrew it.
//! - Nothing comes out after the outcome, but that a question which comes late is turned away.
//! - Of two retries of one round one wins: the other finds the round consumed.
//! - A retry that is refused changes nothing.
//! - A client that is away has a time by which it must be back, and time alone ends its call.
//! - Absence is never `decline` or `accept`.
//! - The call is made again only after the server said of the one before that it did not process it.

mod answers;
mod turns;
mod visits;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::capability::ClientCapabilities;
use super::client_modern::Rejected;
use super::message::Message;
use super::replay::Replay;
use super::session::QuestionId;
use answers::{absent, check, for_client, for_server};

pub use turns::{Asked, Input, Limits, Output, Retry, State};

/// How long a retry that answers nothing is held before it is asked again, so that a naive client
/// doesn't spin.
const SPIN: Duration = Duration::from_millis(250);

/// How many log notifications are kept for a client that is away.
const LOGS: usize = 32;

/// The machine.
#[derive(Debug)]
pub struct Call {
    state: State,
    limits: Limits,
    capabilities: ClientCapabilities,
    /// Shown to the client in the outstanding round.
    shown: Vec<Asked>,
    /// Arrived since.
    queued: Vec<Asked>,
    keys: u32,
    round: u32,
    /// When the next round goes out.
    window: Option<Instant>,
    /// When the client has been away too long; none when no round waits for it. It stays when the
    /// call is aborted over it, which tells a round that nobody answered from one that was.
    until: Option<Instant>,
    /// Whether the server has the call.
    in_flight: bool,
    /// Addresses to visit before the call is made again.
    replay: Option<Replay>,
    /// The addresses at which people were done since the call was made, by their ids.
    visited: Vec<String>,
    progress: Option<Bytes>,
    logs: VecDeque<Bytes>,
    outcome: Option<Message>,
    /// The server has answered.
    concluded: bool,
}

impl Call {
    /// A call whose first request is attached.
    pub fn new(limits: Limits, capabilities: ClientCapabilities) -> Self {
        Self {
            state: State::Running,
            limits,
            capabilities,
            shown: Vec::new(),
            queued: Vec::new(),
            keys: 0,
            round: 0,
            window: None,
            until: None,
            in_flight: true,
            replay: None,
            visited: Vec::new(),
            progress: None,
            logs: VecDeque::new(),
            outcome: None,
            concluded: false,
        }
    }

    /// Whether the server has answered, so that what is still open may be another call's.
    pub fn has_concluded(&self) -> bool {
        self.concluded
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether a client was ever sent away.
    pub fn has_asked(&self) -> bool {
        self.round > 0
    }

    /// What the client of the latest request can be asked.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    /// Whether the server has the call, and an outcome is to come.
    pub fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// Whether the client was sent away.
    pub fn is_away(&self) -> bool {
        matches!(
            self.state,
            State::Parked | State::ParkedDone | State::Visiting
        )
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Running => self
                .window
                .or_else(|| self.replay.as_ref().and_then(Replay::deadline)),
            State::Parked | State::ParkedDone | State::Visiting => self.until,
            State::Delivered | State::Aborted => None,
        }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Delivered | State::Aborted)
    }

    /// Takes an event.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) -> Vec<Output> {
        match (self.state, input) {
            (_, Input::Question(id, message)) => self.ask(now, id, message),
            (_, Input::Withdrawn(id)) => {
                self.shown.retain(|it| it.id != id);
                self.queued.retain(|it| it.id != id);
                if self.queued.is_empty() && self.shown.is_empty() {
                    self.window = None;
                }
                Vec::new()
            }
            (State::Running, Input::Progress(notice) | Input::Log(notice)) if self.in_flight => {
                vec![Output::Forward(notice)]
            }
            (State::Parked, Input::Progress(notice)) => {
                self.progress = Some(notice);
                Vec::new()
            }
            (State::Parked, Input::Log(notice)) => {
                if self.logs.len() == LOGS {
                    self.logs.pop_front();
                }
                self.logs.push_back(notice);
                Vec::new()
            }
            (State::Running, Input::Outcome(response)) if self.in_flight => {
                self.conclude(now, response)
            }
            (State::Parked, Input::Outcome(response)) => {
                self.state = State::ParkedDone;
                self.in_flight = false;
                self.concluded = true;
                self.outcome = Some(response);
                if self.limits.guessed {
                    // What the person is asked may be another call's, and is answered all the same.
                    return self
                        .queued
                        .drain(..)
                        .map(|it| absent(it.id, &it.method))
                        .collect();
                }
                self.settle()
            }
            (
                State::Running | State::Parked | State::ParkedDone | State::Visiting,
                Input::Visited(id),
            ) => {
                self.mark_visited(now, id);
                Vec::new()
            }
            (State::Running, Input::Gone) | (State::Running | State::Parked, Input::End) => {
                self.abort()
            }
            (State::ParkedDone | State::Visiting, Input::End) => {
                self.forget();
                self.settle()
            }
            // The client is away anyway, nothing is in flight, or everything has been said.
            (State::Parked | State::ParkedDone | State::Visiting, Input::Gone)
            | (_, Input::Progress(_) | Input::Log(_) | Input::Outcome(_))
            | (State::Delivered | State::Aborted, Input::Visited(_) | Input::Gone | Input::End) => {
                Vec::new()
            }
        }
    }

    /// Something is due: a round goes out, the call is made again, or the client has been away too long.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<Output> {
        if self.deadline().is_none_or(|due| due > now) {
            return Vec::new();
        }
        match self.state {
            State::Running if self.window.is_some() => self.send_round(now),
            State::Running => self.make_again(now),
            State::Parked => self.abort(),
            State::ParkedDone | State::Visiting => {
                self.forget();
                self.settle()
            }
            State::Delivered | State::Aborted => Vec::new(),
        }
    }

    /// Takes a retry; its request is attached from now on.
    ///
    /// # Errors
    /// When it does not fit. The call is as it was.
    pub fn retry(&mut self, now: Instant, retry: &Retry<'_>) -> Result<Vec<Output>, Rejected> {
        let Some(until) = self.until.filter(|_| retry.round == self.round) else {
            return Err(consumed());
        };
        if self.state == State::Aborted || until <= now {
            return Err(expired());
        }
        if self.state == State::Visiting {
            return self.come_from_visits(now, retry);
        }
        self.check_answers(&retry.answers)?;
        self.until = None;
        self.state = State::Running;
        self.capabilities = retry.capabilities;
        let mut outputs = self.flush();
        let before = self.shown.len();
        for (key, answer) in &retry.answers {
            if let Some(at) = self.shown.iter().position(|it| it.key == *key) {
                let asked = self.shown.remove(at);
                outputs.push(Output::Answer(asked.id, for_server(&asked.method, answer)));
            }
        }
        if let Some(outcome) = self.outcome.take() {
            outputs.extend(self.conclude(now, outcome));
            return Ok(outputs);
        }
        let answered = before != self.shown.len() || before == 0;
        outputs.extend(self.refuse_undeclared());
        if self.round >= self.limits.rounds {
            // What is open can't be asked again.
            outputs.extend(self.settle());
        }
        if !self.shown.is_empty() || !self.queued.is_empty() {
            self.window = Some(now + if answered { self.limits.window } else { SPIN });
        }
        Ok(outputs)
    }

    fn ask(&mut self, now: Instant, id: QuestionId, message: &Message) -> Vec<Output> {
        let prefix = match message.method() {
            "elicitation/create" => 'e',
            "sampling/createMessage" => 's',
            "roots/list" => 'r',
            _ => return vec![Output::Refuse(id, -32601, "the client can't be asked this")],
        };
        if !self.in_flight {
            // Its call is over, and the one that may come is another.
            return vec![absent(id, message.method())];
        }
        if let (State::Running, Err(undeclared)) = (self.state, self.capabilities.allow(message)) {
            return vec![Output::Refuse(id, undeclared.code, undeclared.message)];
        }
        if self.round >= self.limits.rounds {
            return vec![absent(id, message.method())];
        }
        // It is being processed: the addresses are behind it.
        self.replay = None;
        self.keys += 1;
        self.queued.push(Asked {
            key: format!("{prefix}{}", self.keys),
            method: message.method().to_owned(),
            params: message
                .params()
                .map(|params| for_client(params, self.capabilities)),
            id,
            message: message.clone(),
        });
        if self.state == State::Running {
            self.window.get_or_insert(now + self.limits.window);
        }
        Vec::new()
    }

    fn send_round(&mut self, now: Instant) -> Vec<Output> {
        self.window = None;
        self.shown.append(&mut self.queued);
        if self.shown.is_empty() {
            return Vec::new();
        }
        self.round += 1;
        self.state = State::Parked;
        self.until = Some(now + self.limits.park);
        vec![Output::Round(self.round, self.shown.clone())]
    }

    /// Each open question has at most one answer, and one of its kind.
    fn check_answers(&self, answers: &[(String, &str)]) -> Result<(), Rejected> {
        for (at, (key, answer)) in answers.iter().enumerate() {
            let Some(asked) = self.shown.iter().find(|it| it.key == *key) else {
                continue;
            };
            if answers.iter().take(at).any(|(other, _)| other == key) {
                return Err(Rejected::Answer(format!("{key:?} is answered twice")));
            }
            check(asked, answer)?;
        }
        Ok(())
    }

    /// What the client that came back can't be asked is refused; the call goes on.
    fn refuse_undeclared(&mut self) -> Vec<Output> {
        let capabilities = self.capabilities;
        let mut outputs = Vec::new();
        let mut keep = |asked: &Asked| match capabilities.allow(&asked.message) {
            Ok(()) => true,
            Err(undeclared) => {
                outputs.push(Output::Refuse(
                    asked.id,
                    undeclared.code,
                    undeclared.message,
                ));
                false
            }
        };
        self.shown.retain(&mut keep);
        self.queued.retain(&mut keep);
        outputs
    }

    fn flush(&mut self) -> Vec<Output> {
        self.progress
            .take()
            .into_iter()
            .chain(self.logs.drain(..))
            .map(Output::Forward)
            .collect()
    }

    fn abort(&mut self) -> Vec<Output> {
        let cancel = self.in_flight.then_some(Output::Cancel);
        self.forget();
        let open = self.settle();
        cancel.into_iter().chain(open).collect()
    }

    /// Nobody will read what was kept for the client.
    fn forget(&mut self) {
        self.state = State::Aborted;
        self.in_flight = false;
        self.replay = None;
        self.visited.clear();
        self.progress = None;
        self.logs.clear();
        self.outcome = None;
    }

    /// Nobody will answer what is open.
    fn settle(&mut self) -> Vec<Output> {
        self.window = None;
        let open = self.shown.drain(..).chain(self.queued.drain(..));
        open.map(|it| absent(it.id, &it.method)).collect()
    }
}

fn consumed() -> Rejected {
    Rejected::State("state_consumed", "this round has been answered")
}

fn expired() -> Rejected {
    Rejected::State("state_expired", "the interaction has expired")
}

#[cfg(test)]
mod tests;
