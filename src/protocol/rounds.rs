//! One request of a legacy client at a modern server: in rounds, since such a server can't ask while
//! it works. It answers "I need this first" and is asked again with what it needs.
//!
//! ```text
//!          ┌────── retry ◀──── all legs answered ───┐
//!          ▼                                        │
//!   start ▶ SENT ── questions ──▶ LEGS ─────────────┤
//!          │  ▲  └─ state alone ─▶ PACE ── timer ───┤
//!          │  └─────────────────────────────────────┘
//!          └── answer, error, trouble, cancel ──▶ DONE
//! ```
//!
//! A *leg* is one question at the client. Nothing is in flight at the server while legs are open.
//!
//! # Invariants
//! - The last output is the one [`Output::Done`]; after it there is none.
//! - Each leg is asked once, under a number of its own, and ends once: answered, failed or withdrawn.
//! - A retry brings back the answers of its own round and exactly the state that came with it.
//! - The client sees progress rise over all rounds, although each begins anew at the server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::capability::ClientCapabilities;
use super::message::{self, Message};
use super::modern::may_ask;
use super::object::{is_object, members, text};
use super::renewal::is_repeatable;
use super::server_modern::{Required, Retry, Wanted, responses};

/// The most rounds of one request; clients of this era would stop at ten.
pub const MOST_ROUNDS: u32 = 8;

/// The pause before a server is asked again that only wanted its state back.
const PACE: Duration = Duration::from_millis(250);

/// The pauses before a server is asked again that sends people to the same place as before.
const SAME_URLS: [Duration; 4] = [
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(20),
];

/// The number of a leg; never used twice in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Leg(u32);

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The server gave its result or an error.
    Answered,
    /// The server wants something first.
    Required(Required),
    /// The server's answer breaks the rules.
    Invalid(&'static str),
    /// The connection to the server broke before there was an answer.
    Broken,
    /// The client answered, with this result (JSON text).
    Leg(Leg, String),
    /// The client did not answer, or with an error.
    LegFailed(Leg, &'static str),
    /// The pause is over.
    Timer,
    /// The client gives the request up.
    Cancelled,
    /// The request has taken longer than it may.
    Expired,
    /// The session of the client is over.
    Ended,
}

/// Something that is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send the request to the server, under a new id, with this.
    Send(Retry),
    /// Put a question to the client.
    Ask(Leg, Wanted),
    /// Tell the client that a question is over.
    Withdraw(Leg),
    /// Say when the pause until then is over.
    Wait(Instant),
    /// It is over.
    Done(End),
}

/// How it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By the answer of the server.
    Answer,
    /// The person could not be asked, or not often enough.
    Interaction(&'static str),
    /// The server broke the rules.
    Server(&'static str),
    /// The connection to the server broke; what it did is unknown.
    Broken,
    /// The client gave it up.
    Cancelled,
    /// It took too long.
    Expired,
    /// The client's session is over.
    Ended,
}

/// Where a request is.
#[derive(Debug)]
pub struct Rounds {
    repeatable: bool,
    capabilities: ClientCapabilities,
    state: State,
    round: u32,
    legs: u32,
    /// The last that was sent, to send it once more.
    sent: Retry,
    repeated: bool,
    urls: Vec<String>,
    same_urls: usize,
    base: f64,
    last: Option<f64>,
    end: Option<End>,
}

#[derive(Debug)]
enum State {
    Sent,
    Legs(Legs),
    Pace(Instant, Retry),
    Done,
}

/// The legs of a round.
#[derive(Debug)]
struct Legs {
    /// Those without an answer, by what they ask.
    open: BTreeMap<Leg, usize>,
    /// Key and answer of each question, in the server's order.
    answers: Vec<(String, String)>,
    state: Option<String>,
    pause: Option<Duration>,
}

/// How far a request is, as the client may hear it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The value.
    pub value: f64,
    /// It is the server's own: its spelling can stay, and its total still means something.
    pub own: bool,
}

impl Rounds {
    /// A request with this method, of a client that can be asked what `capabilities` says, and the
    /// first thing to do.
    pub fn begin(method: &str, capabilities: ClientCapabilities) -> (Self, Output) {
        let rounds = Self {
            repeatable: is_repeatable(method),
            // Whatever the client can: only some requests may be answered by questions.
            capabilities: if may_ask(method) {
                capabilities
            } else {
                ClientCapabilities::default()
            },
            state: State::Sent,
            round: 0,
            legs: 0,
            sent: Retry::default(),
            repeated: false,
            urls: Vec::new(),
            same_urls: 0,
            base: 0.0,
            last: None,
            end: None,
        };
        (rounds, Output::Send(Retry::default()))
    }

    /// Whether it is over.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// How it is over; none while it isn't.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// The server says how far it is in this round.
    pub fn progress(&mut self, value: f64) -> Option<Progress> {
        if !matches!(self.state, State::Sent) || !value.is_finite() {
            return None;
        }
        let value = self.base + value;
        if self.last.is_some_and(|last| value <= last) {
            return None;
        }
        self.last = Some(value);
        Some(Progress {
            value,
            own: self.round == 0,
        })
    }

    /// Takes what happened; says what is to be done, in this order.
    pub fn take(&mut self, now: Instant, input: Input) -> Vec<Output> {
        let outputs = self.step(now, input);
        if let Some(Output::Done(end)) = outputs.last() {
            self.end = Some(*end);
        }
        outputs
    }

    fn step(&mut self, now: Instant, input: Input) -> Vec<Output> {
        match (std::mem::replace(&mut self.state, State::Done), input) {
            (State::Done, _) => Vec::new(),
            (state, Input::Cancelled) => Self::over(state, End::Cancelled),
            (state, Input::Expired) => Self::over(state, End::Expired),
            (state, Input::Ended) => Self::over(state, End::Ended),
            (State::Sent, Input::Answered) => vec![Output::Done(End::Answer)],
            (State::Sent, Input::Invalid(why)) => vec![Output::Done(End::Server(why))],
            (State::Sent, Input::Required(required)) => self.required(now, required),
            (State::Sent, Input::Broken) if self.repeatable && !self.repeated => {
                self.repeated = true;
                let again = self.sent.clone();
                self.send(again)
            }
            (State::Sent, Input::Broken) => vec![Output::Done(End::Broken)],
            (State::Legs(legs), Input::Leg(leg, result)) => self.answered(now, legs, leg, result),
            (State::Legs(legs), Input::LegFailed(leg, why)) => self.failed(legs, leg, why),
            (State::Pace(until, retry), Input::Timer) if now >= until => self.send(retry),
            (state, _) => {
                self.state = state;
                Vec::new()
            }
        }
    }

    fn required(&mut self, now: Instant, required: Required) -> Vec<Output> {
        self.round += 1;
        if self.round > MOST_ROUNDS {
            let why = "the server asked again and again";
            return vec![Output::Done(End::Interaction(why))];
        }
        let refused = required.questions.iter().any(|it| !self.may_be_asked(it));
        if refused || required == Required::default() {
            let why = "asked what its client can't be asked";
            return vec![Output::Done(End::Server(why))];
        }
        // Each round counts from the beginning; the client's count goes on.
        self.base = self.last.unwrap_or(0.0);
        if required.questions.is_empty() {
            let retry = Retry {
                responses: None,
                state: required.state,
            };
            return self.pause(now, PACE, retry);
        }
        let pause = self.pause_of(&required.questions);
        let mut legs = Legs {
            open: BTreeMap::new(),
            answers: Vec::with_capacity(required.questions.len()),
            state: required.state,
            pause,
        };
        let mut outputs = Vec::with_capacity(required.questions.len());
        for (place, question) in required.questions.into_iter().enumerate() {
            self.legs += 1;
            let leg = Leg(self.legs);
            legs.open.insert(leg, place);
            legs.answers.push((question.key.clone(), String::new()));
            outputs.push(Output::Ask(leg, question));
        }
        self.state = State::Legs(legs);
        outputs
    }

    fn may_be_asked(&self, question: &Wanted) -> bool {
        let known = matches!(
            question.method.as_str(),
            "elicitation/create" | "sampling/createMessage" | "roots/list"
        );
        // What can be read in two ways is not asked at all.
        let params = question.params.as_deref().unwrap_or("{}");
        known
            && Message::parse(&message::request("1", &question.method, params))
                .is_ok_and(|question| self.capabilities.allow(&question).is_ok())
    }

    /// The pause after this round: one that sends people where they have just been has to wait for
    /// them, or a client that always agrees would storm the server.
    fn pause_of(&mut self, questions: &[Wanted]) -> Option<Duration> {
        let mut urls: Vec<String> = questions.iter().filter_map(url).collect();
        urls.sort_unstable();
        if urls.is_empty() || urls != self.urls {
            self.urls = urls;
            self.same_urls = 0;
            return None;
        }
        let step = self.same_urls.min(SAME_URLS.len() - 1);
        self.same_urls += 1;
        SAME_URLS.get(step).copied()
    }

    fn answered(&mut self, now: Instant, mut legs: Legs, leg: Leg, result: String) -> Vec<Output> {
        if !is_object(&result) {
            return self.failed(legs, leg, "the client's answer is no object");
        }
        let place = legs.open.remove(&leg);
        if let Some((_, answer)) = place.and_then(|place| legs.answers.get_mut(place)) {
            *answer = result;
        }
        if !legs.open.is_empty() {
            self.state = State::Legs(legs);
            return Vec::new();
        }
        let answers = legs.answers.iter();
        let retry = Retry {
            responses: Some(responses(
                answers.map(|(key, answer)| (key.as_str(), answer.as_str())),
            )),
            state: legs.state,
        };
        match legs.pause {
            None => self.send(retry),
            Some(pause) => self.pause(now, pause, retry),
        }
    }

    /// A retry can't carry an error, so one failed leg ends all.
    fn failed(&mut self, mut legs: Legs, leg: Leg, why: &'static str) -> Vec<Output> {
        if legs.open.remove(&leg).is_none() {
            self.state = State::Legs(legs);
            return Vec::new();
        }
        Self::over(State::Legs(legs), End::Interaction(why))
    }

    fn send(&mut self, retry: Retry) -> Vec<Output> {
        self.state = State::Sent;
        self.sent = retry.clone();
        vec![Output::Send(retry)]
    }

    fn pause(&mut self, now: Instant, pause: Duration, retry: Retry) -> Vec<Output> {
        let until = now + pause;
        self.state = State::Pace(until, retry);
        vec![Output::Wait(until)]
    }

    fn over(state: State, end: End) -> Vec<Output> {
        let open = match state {
            State::Legs(legs) => legs.open,
            _ => BTreeMap::new(),
        };
        let withdrawn = open.into_keys().map(Output::Withdraw);
        withdrawn.chain([Output::Done(end)]).collect()
    }
}

fn url(question: &Wanted) -> Option<String> {
    let [mode, url] = members(question.params.as_deref()?, ["mode", "url"]).ok()?;
    mode.and_then(text).filter(|mode| mode == "url")?;
    Some(text(url?)?.into_owned())
}
