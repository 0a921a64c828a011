//! A call of a modern client at a legacy server, over the gaps in which the client is away.
//!
//! The server keeps one request in flight and asks in its midst; the client's request must end with
//! the questions, and comes back as a new one with the answers (2026-07-28 basic/patterns/mrtr). This
//! machine holds the two together. It is the table of states in rows: running with a client attached,
//! parked without one, parked with the outcome in hand, over.
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

mod answers;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::capability::ClientCapabilities;
use super::client_modern::Rejected;
use super::message::Message;
use super::session::QuestionId;
use answers::{absent, check, for_client, for_server};

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a server's questions are gathered into one round.
    pub window: Duration,
    /// How long a client may stay away.
    pub park: Duration,
    /// The most rounds of one call, counting those that ask again; clients stop at ten.
    pub rounds: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(50),
            park: Duration::from_mins(10),
            rounds: 8,
        }
    }
}

/// How long a retry that answers nothing is held before it is asked again, so that a naive client
/// doesn't spin.
const SPIN: Duration = Duration::from_millis(250);

/// How many log notifications are kept for a client that is away.
const LOGS: usize = 32;

/// What happens to a call.
#[derive(Debug)]
pub enum Input<'a> {
    /// The server asks; the question is in the session's book under this id.
    Question(QuestionId, &'a Message),
    /// The question is not to be answered any more.
    Withdrawn(QuestionId),
    /// How far the call is.
    Progress(Bytes),
    /// A log notification.
    Log(Bytes),
    /// The response of the server.
    Outcome(Bytes),
    /// The client closed the request that is attached. That cancels (2026-07-28 transports).
    Gone,
    /// The call must end, because the gateway does. (A session that is lost is an outcome: the error
    /// that the client is to read when it is back.)
    End,
}

/// A retry that continues a round.
#[derive(Debug)]
pub struct Retry<'a> {
    /// The round that it answers.
    pub round: u32,
    /// What the client can be asked now.
    pub capabilities: ClientCapabilities,
    /// The answers by key (JSON text).
    pub answers: Vec<(String, &'a str)>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The attached client reads this notification.
    Forward(Bytes),
    /// The attached request ends with these questions.
    Round(u32, Vec<Asked>),
    /// The attached request ends with the server's response.
    Done(Bytes),
    /// The server gets this result (JSON text) as the answer to the question.
    Answer(QuestionId, String),
    /// The server gets `cancel` as the answer to its elicitation: nobody is there.
    Dismiss(QuestionId),
    /// The server gets an error as the answer to the question.
    Refuse(QuestionId, i32, &'static str),
    /// The call is cancelled at the server. It comes before the answers to its questions, so that
    /// no handler takes them for a reason to go on.
    Cancel,
}

/// A question as a client is asked it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Its key in `inputRequests`.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters (JSON text).
    pub params: Option<String>,
    id: QuestionId,
    message: Message,
}

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A request of the client is attached.
    Running,
    /// The client was sent away with questions.
    Parked,
    /// The outcome waits for the client.
    ParkedDone,
    /// The outcome was delivered.
    Delivered,
    /// It was cancelled, or nobody came back in time.
    Aborted,
}

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
    progress: Option<Bytes>,
    logs: VecDeque<Bytes>,
    outcome: Option<Bytes>,
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
            progress: None,
            logs: VecDeque::new(),
            outcome: None,
        }
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

    /// Counts a round that is asked beside this machine; `None` when there were too many.
    pub fn take_round(&mut self) -> Option<u32> {
        if self.round >= self.limits.rounds {
            return None;
        }
        self.round += 1;
        Some(self.round)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Running => self.window,
            State::Parked | State::ParkedDone => self.until,
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
            (State::Running | State::Parked, Input::Question(id, message)) => {
                self.ask(now, id, message)
            }
            (
                State::Delivered | State::Aborted | State::ParkedDone,
                Input::Question(id, message),
            ) => {
                vec![absent(id, message.method())]
            }
            (_, Input::Withdrawn(id)) => {
                self.shown.retain(|it| it.id != id);
                self.queued.retain(|it| it.id != id);
                if self.queued.is_empty() && self.shown.is_empty() {
                    self.window = None;
                }
                Vec::new()
            }
            (State::Running, Input::Progress(notice) | Input::Log(notice)) => {
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
            (State::Running, Input::Outcome(response)) => {
                self.state = State::Delivered;
                let mut outputs = self.settle();
                outputs.push(Output::Done(response));
                outputs
            }
            (State::Parked, Input::Outcome(response)) => {
                self.state = State::ParkedDone;
                self.outcome = Some(response);
                self.settle()
            }
            (State::Running, Input::Gone) | (State::Running | State::Parked, Input::End) => {
                self.abort()
            }
            (State::ParkedDone, Input::End) => {
                self.forget();
                Vec::new()
            }
            // The client is away anyway, or everything has been said.
            (State::Parked | State::ParkedDone, Input::Gone)
            | (
                State::ParkedDone | State::Delivered | State::Aborted,
                Input::Progress(_) | Input::Log(_) | Input::Outcome(_),
            )
            | (State::Delivered | State::Aborted, Input::Gone | Input::End) => Vec::new(),
        }
    }

    /// Something is due: a round goes out, or the client has been away too long.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<Output> {
        if self.deadline().is_none_or(|due| due > now) {
            return Vec::new();
        }
        match self.state {
            State::Running => self.send_round(now),
            State::Parked => self.abort(),
            State::ParkedDone => {
                self.forget();
                Vec::new()
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
        if self.state == State::ParkedDone {
            self.until = None;
            self.state = State::Delivered;
            let mut outputs = self.flush();
            outputs.extend(self.outcome.take().map(Output::Done));
            return Ok(outputs);
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
        if let (State::Running, Err(undeclared)) = (self.state, self.capabilities.allow(message)) {
            return vec![Output::Refuse(id, undeclared.code, undeclared.message)];
        }
        if self.round >= self.limits.rounds {
            return vec![absent(id, message.method())];
        }
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
        self.forget();
        let mut outputs = vec![Output::Cancel];
        outputs.extend(self.settle());
        outputs
    }

    /// Nobody will read what was kept for the client.
    fn forget(&mut self) {
        self.state = State::Aborted;
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
