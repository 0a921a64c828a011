//! How much, how often and how long: the limits and times of a configuration, with their defaults.

use std::num::NonZeroU32;
use std::time::Duration;

/// A rate with a burst, and a number of calls at once. `None` is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// How many requests in how much time, refilled evenly.
    pub requests: Option<Rate>,
    /// How many calls may run at once.
    pub concurrent: Option<NonZeroU32>,
}

/// `20/s` with a burst: one request every `period`, at most `burst` saved up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The time that refills one request.
    pub period: Duration,
    /// How many may come at once; by default as many as the rate names.
    pub burst: NonZeroU32,
}

/// What one may ask of the gateway, and what it keeps for them. `None` is unlimited.
#[derive(Clone, Debug)]
pub struct Limits {
    /// What one principal may do, over all servers.
    pub per_principal: PrincipalLimits,
    /// Bytes of one request body (default 4 MiB).
    pub body: Option<usize>,
    /// Bytes of one message from a server: a JSON answer, or one event of a stream (default 16 MiB).
    pub message: Option<usize>,
    /// Event streams that one session may have open at once (default 64).
    pub streams: Option<usize>,
    /// Messages kept for a client that has no stream open; the oldest notice goes first (default 64).
    pub buffer: usize,
    /// Client connections at once (default 10 000).
    pub connections: Option<usize>,
    /// How a limit is answered.
    pub answer: LimitAnswer,
}

/// What one principal may do.
#[derive(Clone, Debug)]
pub struct PrincipalLimits {
    /// Rate and concurrency over all servers.
    pub rates: RateLimits,
    /// Legacy sessions at once (default 50).
    pub sessions: Option<usize>,
    /// Questions that may wait for the principal's answer at once (default 16).
    pub questions: Option<usize>,
}

/// How a limit is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LimitAnswer {
    /// A JSON-RPC error in an HTTP 200: what every official SDK survives.
    #[default]
    JsonRpc,
    /// HTTP 429 with `Retry-After`, and the same JSON-RPC error as its body.
    Http,
}

/// How long things may take. Each one ends in a defined answer.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// To connect to a server (default 5 s).
    pub connect: Duration,
    /// For a call, not counting the time in which a person thinks (default 15 min).
    pub call: Duration,
    /// Until the answer to it begins; `None`: as long as the call may take.
    pub headers: Option<Duration>,
    /// Between two messages of that; `None`: as long as the call may take.
    pub idle: Option<Duration>,
    /// For a person's answer (default 5 min).
    pub question: Duration,
    /// How long a question waits for a stream that can carry it to its client (default 10 s).
    pub stream: Duration,
    /// How long a client that lost a stream may stay away (default 5 min): so long its events are kept, its
    /// calls go on, and its questions wait.
    pub resume: Duration,
    /// For running calls to end at shutdown (default 20 s).
    pub shutdown: Duration,
    /// Between two keep-alive comments on an open stream (default 15 s).
    pub keep_alive: Duration,
}

/// How long one server may take; `None`: what [`Timeouts`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTimeouts {
    /// Until its answer begins.
    pub headers: Option<Duration>,
    /// Between two messages of it.
    pub idle: Option<Duration>,
    /// For a call.
    pub call: Option<Duration>,
}

/// How long and how many legacy sessions live.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// A session without a request, an answer or an open stream ends after this (default 30 min).
    pub idle: Duration,
    /// Sessions at once, over all principals (default 10 000).
    pub max: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_principal: PrincipalLimits::default(),
            body: Some(4 << 20),
            message: Some(16 << 20),
            streams: Some(64),
            buffer: 64,
            connections: Some(10_000),
            answer: LimitAnswer::default(),
        }
    }
}

impl Default for PrincipalLimits {
    fn default() -> Self {
        Self {
            rates: RateLimits::default(),
            sessions: Some(50),
            questions: Some(16),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            call: Duration::from_mins(15),
            headers: None,
            idle: None,
            question: Duration::from_mins(5),
            stream: Duration::from_secs(10),
            resume: Duration::from_mins(5),
            shutdown: Duration::from_secs(20),
            keep_alive: Duration::from_secs(15),
        }
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            idle: Duration::from_mins(30),
            max: Some(10_000),
        }
    }
}
