//! What one who is over a limit is told: a caller, or a server that asks questions.
//!
//! # Invariants
//! - The text names the limit and the wait, and nothing of what others do.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::config::{Rate, ServerName};
use crate::error::Error;

/// Why something is over a limit, and when to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited {
    /// Whose limit it is.
    pub who: Who,
    /// Which one.
    pub what: What,
    /// When another attempt makes sense. For a rate exact; for a count, which ends when others
    /// end, a polite guess.
    pub retry_after: Duration,
}

/// Whose limit it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// That of a server, shared by all its callers.
    Server(ServerName),
    /// That of the caller.
    Principal,
    /// That of the gateway, shared by all.
    Gateway,
}

/// Which limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Requests in a time.
    Rate(Rate),
    /// Requests running at once.
    Concurrency(NonZeroU32),
    /// Sessions at once.
    Sessions(usize),
}

/// Why a server may not put one question more to a principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionLimited {
    /// As many as may do wait for the principal, of all servers together.
    Questions,
    /// As many as may do wait for the principal, of this server.
    Pending,
    /// The server asks the principal faster than it may.
    Rate,
}

impl QuestionLimited {
    /// A word for `data.reason` and the record.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Questions => "capacity",
            Self::Pending => "question_pending",
            Self::Rate => "question_rate",
        }
    }

    /// The JSON-RPC code.
    pub fn code(self) -> i32 {
        match self {
            Self::Questions | Self::Pending => -31006,
            Self::Rate => -31004,
        }
    }

    /// What the server is told.
    pub fn text(self) -> &'static str {
        match self {
            Self::Questions => "too many questions wait for this person",
            Self::Pending => "too many questions of this server wait for this person",
            Self::Rate => "this server asks this person too many questions in a short time",
        }
    }
}

/// For the client: `server booking allows 20 requests/s; try again in 350 ms`.
impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            Who::Server(name) => write!(f, "server {name} allows ")?,
            Who::Principal => f.write_str("each caller is allowed ")?,
            Who::Gateway => f.write_str("the gateway allows ")?,
        }
        match self.what {
            What::Rate(rate) => write!(f, "{}", Plain(rate))?,
            What::Concurrency(max) => write!(f, "{max} requests at once")?,
            What::Sessions(max) => write!(f, "{max} sessions at once")?,
        }
        write!(f, "; try again in {}", Wait(self.retry_after))
    }
}

/// A rate as people write it: `20 requests/s`.
struct Plain(Rate);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = self.0.period.as_nanos().max(1);
        for (unit, seconds) in [("s", 1), ("min", 60), ("h", 3600)] {
            let unit_length = seconds * 1_000_000_000;
            let count = (unit_length + period / 2) / period;
            // A period is cut to nanoseconds: 30/s is one in 33.333333 ms.
            if count > 0 && unit_length.abs_diff(count * period) <= count {
                return write!(f, "{count} requests/{unit}");
            }
        }
        write!(f, "one request in {}", Wait(self.0.period))
    }
}

/// A time to wait, rounded up: `350 ms`, `2 s`.
struct Wait(Duration);

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_nanos().div_ceil(1_000_000) {
            milliseconds @ 0..1000 => write!(f, "{} ms", milliseconds.max(1)),
            milliseconds => write!(f, "{} s", milliseconds.div_ceil(1000)),
        }
    }
}

/// As the caller is told.
impl From<Limited> for Error {
    fn from(limited: Limited) -> Self {
        let (text, retry_after) = (limited.to_string(), limited.retry_after);
        match limited.what {
            What::Sessions(_) => Self::Sessions { text, retry_after },
            What::Concurrency(_) => Self::Crowded { text, retry_after },
            What::Rate(_) => Self::Limited { text, retry_after },
        }
    }
}
