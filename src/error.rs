//! From cause to answer: who is at fault, the HTTP status, the JSON-RPC code and the text that the
//! client reads. The only such mapping.
//!
//! # Invariants
//! - A text for clients names the server and what to do; never a key, an address or another's error page.
//! - 404 towards a legacy client means "your session is gone" and nothing else in its session.
//! - What concerns a parsed request is an HTTP 200 with a JSON-RPC error unless the protocol demands
//!   a status: official SDKs lose their session on 403, 429 and 5xx.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::protocol::client_modern::{ReadError, Rejected};
use crate::protocol::message::{self, Malformed};
use crate::protocol::version::V2026_07_28;

/// Why a request is not answered by its server.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// `Host` names somebody else.
    #[error("this gateway is not called {0:?}; add the name to `allowed_hosts`")]
    Host(String),
    /// `Origin` is a web page that may not call the gateway.
    #[error("pages of {0:?} may not call this gateway; add it to `allowed_origins`")]
    Origin(String),
    /// Nothing is at this path.
    #[error("there is nothing at {0:?}; MCP endpoints are at /mcp/<server>")]
    NoSuchPath(String),
    /// No server has this name.
    #[error("there is no server {0:?}")]
    UnknownServer(String),
    /// The session is unknown, has ended, or is somebody else's; which one is not told.
    #[error("unknown session; initialize again")]
    UnknownSession,
    /// The server no longer knows the session.
    #[error("the server no longer knows the session; initialize again")]
    Forgotten,
    /// The server lost the session, and the one in its place at once.
    #[error("the server loses every session at once; initialize again")]
    ForgottenAgain,
    /// The server lost its session while it had the request.
    #[error(
        "the server lost its session while the request was in flight; whether it was carried out is unknown"
    )]
    SessionLost,
    /// The stream that a client wants to read on is not kept any more.
    #[error("the stream of this Last-Event-ID is not known any more; what it carried is lost")]
    UnknownStream,
    /// No session is named.
    #[error("the Mcp-Session-Id header is missing; initialize first")]
    MissingSession,
    /// A message was posted to an HTTP+SSE session that can't be posted there, or not now.
    #[error("{0}")]
    Misposted(&'static str),
    /// The body is no message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The body is an array in a version without batches.
    #[error("batches are not part of this protocol version")]
    Batch,
    /// The version header contradicts the session.
    #[error("the MCP-Protocol-Version header does not match the session, which uses {0}")]
    Version(String),
    /// The body is larger than it may be.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body did not arrive in time or whole.
    #[error("the body did not arrive")]
    Incomplete,
    /// The body is not said to be JSON.
    #[error("the Content-Type must be application/json")]
    MediaType,
    /// The client takes neither form of answer.
    #[error("the Accept header must allow application/json and text/event-stream")]
    NotAcceptable,
    /// The id is that of a request in flight.
    #[error("the id is already used by a request in flight")]
    DuplicateId,
    /// A question put the wrong way round.
    #[error("only servers may send {0}")]
    ServerOnly(String),
    /// A rate is exceeded.
    #[error("{text}")]
    Limited {
        /// What is exceeded, for the client.
        text: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// Too many calls run at once.
    #[error("{text}")]
    Crowded {
        /// What is exceeded, for the client.
        text: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// There are as many sessions as there may be.
    #[error("{text}")]
    Sessions {
        /// What is exceeded, for the client.
        text: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// Something bounded is full.
    #[error("{0}")]
    Capacity(Cow<'static, str>),
    /// The gateway is ending.
    #[error("the gateway is shutting down")]
    ShuttingDown,
    /// The audit log takes no more, and nothing is done that it doesn't record.
    #[error("the audit log is full; nothing is done that can't be recorded")]
    AuditFull,
    /// No connection to the server: nothing was sent.
    #[error("the server is not reachable")]
    Unreachable,
    /// The server answered with an error of HTTP, or with what is no answer.
    #[error("the server {0}")]
    Misbehaved(Cow<'static, str>),
    /// The connection broke after the request was sent: it may have been carried out.
    #[error("the connection to the server broke; whether the request was carried out is unknown")]
    Broken,
    /// The server did not answer in time.
    #[error("the server did not answer within {0:?}")]
    Slow(Duration),
    /// The server began to answer, and then said nothing for so long.
    #[error("the server said nothing more within {0:?}")]
    Silent(Duration),
    /// The server speaks no version that the gateway does.
    #[error("the server speaks no version of the protocol that is known here")]
    NoVersion,
    /// The person could not be asked, or gave no answer.
    #[error("{0}")]
    Interaction(&'static str),
    /// The policy does not allow what the server asked, and there is no way to tell the server.
    #[error("{0}")]
    Denied(&'static str),
    /// The server limits the gateway.
    #[error("the server is limiting requests")]
    ServerLimited(Duration),
    /// The server does not accept the gateway's credentials.
    #[error(
        "the server does not accept the gateway's credentials; whoever runs the gateway can renew them"
    )]
    Credentials,
    /// The session ended while the request was in flight.
    #[error("the session ended while the request was in flight")]
    SessionEnded,
    /// The person said no to what the call needs.
    #[error("the user declined what the request needs")]
    Declined,
    /// A modern client posted a response: its revision has none.
    #[error("this protocol version has no responses from clients")]
    ResponsePosted,
    /// A modern request is not as its revision demands.
    #[error(transparent)]
    Modern(#[from] Rejected),
    /// The client cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Rejected(rejected) => Self::Modern(rejected),
            ReadError::Malformed(malformed) => Self::Malformed(malformed),
        }
    }
}

impl Error {
    /// A short word for logs, the audit log and `data.reason`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Host(_) => "host_not_allowed",
            Self::Origin(_) => "origin_not_allowed",
            Self::NoSuchPath(_) => "no_such_path",
            Self::UnknownServer(_) => "unknown_server",
            Self::UnknownSession => "unknown_session",
            Self::Forgotten => "forgotten_by_server",
            Self::ForgottenAgain => "forgotten_again",
            Self::UnknownStream => "unknown_stream",
            Self::MissingSession => "session_missing",
            Self::Misposted(_) => "misposted",
            Self::Malformed(Malformed::NotJson(_)) => "not_json",
            Self::Malformed(Malformed::NotAMessage(_)) => "not_a_message",
            Self::Batch => "batch",
            Self::Version(_) => "version_mismatch",
            Self::TooLarge(_) => "body_too_large",
            Self::Incomplete => "body_incomplete",
            Self::MediaType => "media_type",
            Self::NotAcceptable => "not_acceptable",
            Self::DuplicateId => "duplicate_id",
            Self::ServerOnly(_) => "server_only_method",
            Self::Limited { .. } => "rate_limited",
            Self::Crowded { .. } => "concurrency_limited",
            Self::Capacity(_) | Self::Sessions { .. } => "capacity",
            Self::ShuttingDown => "shutting_down",
            Self::AuditFull => "audit_full",
            Self::Unreachable => "upstream_unavailable",
            Self::Misbehaved(_) => "upstream_misbehaved",
            Self::Broken => "outcome_unknown",
            Self::Slow(_) | Self::Silent(_) => "upstream_timeout",
            Self::NoVersion => "upstream_version",
            Self::ServerLimited(_) => "upstream_limited",
            Self::Credentials => "upstream_credentials",
            Self::SessionEnded | Self::SessionLost => "session_lost",
            Self::Interaction(_) | Self::Declined => "interaction_failed",
            Self::Denied(_) => "policy_denied",
            Self::ResponsePosted => "response_posted",
            Self::Modern(rejected) => rejected.reason(),
            Self::Cancelled => "cancelled",
        }
    }

    /// The JSON-RPC code. Own codes lie outside JSON-RPC's reserved range (2026-07-28 basic/index).
    pub fn code(&self) -> i32 {
        match self {
            Self::Malformed(Malformed::NotJson(_)) | Self::Incomplete => -32700,
            Self::ServerOnly(_) => -32601,
            Self::Unreachable | Self::NoVersion => -31001,
            Self::Slow(_) | Self::Silent(_) => -31002,
            Self::SessionEnded | Self::SessionLost | Self::Forgotten | Self::ForgottenAgain => {
                -31003
            }
            Self::Limited { .. } | Self::Crowded { .. } | Self::ServerLimited(_) => -31004,
            Self::Credentials | Self::Denied(_) => -31005,
            Self::Interaction(_) | Self::Declined => -31007,
            Self::Capacity(_) | Self::Sessions { .. } | Self::ShuttingDown | Self::AuditFull => {
                -31006
            }
            Self::Misbehaved(_) | Self::Broken => -32603,
            Self::Modern(rejected) => rejected.code(),
            Self::Cancelled => -32800,
            _ => -32600,
        }
    }

    /// The HTTP status, when the error is an HTTP answer of its own.
    pub fn status(&self) -> u16 {
        match self {
            Self::Host(_) | Self::Origin(_) => 403,
            Self::NoSuchPath(_)
            | Self::UnknownServer(_)
            | Self::UnknownSession
            | Self::Forgotten
            | Self::ForgottenAgain => 404,
            Self::NotAcceptable => 406,
            Self::Modern(rejected) => rejected.status(),
            Self::TooLarge(_) => 413,
            Self::MediaType => 415,
            Self::Incomplete => 408,
            Self::MissingSession
            | Self::Misposted(_)
            | Self::UnknownStream
            | Self::Malformed(_)
            | Self::Batch
            | Self::Version(_)
            | Self::ResponsePosted
            | Self::DuplicateId => 400,
            _ => 200,
        }
    }

    /// The HTTP status where the operator wants limits answered by HTTP (`limits.answer: http`).
    pub fn strict_status(&self) -> u16 {
        match self {
            Self::Limited { .. } | Self::Crowded { .. } | Self::ServerLimited(_) => 429,
            Self::Capacity(_) | Self::Sessions { .. } | Self::ShuttingDown | Self::AuditFull => 503,
            _ => self.status(),
        }
    }

    /// Whether the gateway said no before anything was sent to a server; else the request has a
    /// record of its own.
    pub fn is_refusal(&self) -> bool {
        !matches!(
            self,
            Self::Forgotten
                | Self::ForgottenAgain
                | Self::SessionLost
                | Self::Unreachable
                | Self::Misbehaved(_)
                | Self::Broken
                | Self::Slow(_)
                | Self::Silent(_)
                | Self::NoVersion
                | Self::Interaction(_)
                | Self::Denied(_)
                | Self::ServerLimited(_)
                | Self::Credentials
                | Self::SessionEnded
                | Self::Cancelled
        )
    }

    /// When to try again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Limited { retry_after, .. }
            | Self::Crowded { retry_after, .. }
            | Self::Sessions { retry_after, .. }
            | Self::ServerLimited(retry_after) => Some(*retry_after),
            _ => None,
        }
    }

    /// The JSON-RPC error response. `id` is JSON text; `server` is named where it is known.
    pub fn body(&self, id: Option<&str>, server: Option<&str>) -> Bytes {
        let mut data = json!({ "source": "gateway", "reason": self.reason() });
        if let Self::Modern(rejected) = self {
            match rejected {
                Rejected::Version(requested) => {
                    data = json!({ "supported": [V2026_07_28], "requested": requested });
                }
                Rejected::Capability(required) => {
                    let required: serde_json::Value =
                        serde_json::from_str(required).unwrap_or_default();
                    data = json!({ "requiredCapabilities": required });
                }
                _ => {}
            }
        }
        if let Some(data) = data.as_object_mut() {
            if let Some(server) = server {
                data.insert("upstream".to_owned(), json!(server));
            }
            if let Some(wait) = self.retry_after() {
                let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
                data.insert("retryAfterMs".to_owned(), json!(millis));
            }
        }
        let text = match (self, server) {
            (
                Self::Unreachable
                | Self::Misbehaved(_)
                | Self::Broken
                | Self::Slow(_)
                | Self::Silent(_)
                | Self::NoVersion
                | Self::SessionLost
                | Self::ServerLimited(_)
                | Self::Capacity(_)
                | Self::Credentials,
                Some(server),
            ) => self
                .to_string()
                .replacen("the server", &format!("the server {server:?}"), 1),
            _ => self.to_string(),
        };
        message::error(id, self.code(), &text, Some(&data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_gateway_says_so_and_names_the_server() {
        let body = Error::Unreachable.body(Some("\"7\""), Some("booking"));
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(value["id"], "7");
        assert_eq!(value["error"]["code"], -31001);
        assert_eq!(
            value["error"]["message"],
            "the server \"booking\" is not reachable"
        );
        assert_eq!(value["error"]["data"]["source"], "gateway");
        assert_eq!(value["error"]["data"]["reason"], "upstream_unavailable");
        assert_eq!(value["error"]["data"]["upstream"], "booking");
    }

    #[test]
    fn a_limit_tells_when_to_come_back() {
        let error = Error::Limited {
            text: "slow down".into(),
            retry_after: Duration::from_micros(10),
        };
        let value: serde_json::Value =
            serde_json::from_slice(&error.body(Some("1"), None)).unwrap();
        assert_eq!(value["error"]["data"]["retryAfterMs"], 1);
        assert_eq!(
            (error.status(), error.strict_status(), error.code()),
            (200, 429, -31004)
        );
    }

    #[test]
    fn every_limit_has_its_word_its_code_and_its_status_and_says_when_to_come_back() {
        let retry_after = Duration::from_secs(10);
        let text = || "enough".to_owned();
        let table = [
            (
                Error::Limited {
                    text: text(),
                    retry_after,
                },
                ("rate_limited", -31004, 200, 429),
            ),
            (
                Error::Crowded {
                    text: text(),
                    retry_after,
                },
                ("concurrency_limited", -31004, 200, 429),
            ),
            (
                Error::Sessions {
                    text: text(),
                    retry_after,
                },
                ("capacity", -31006, 200, 503),
            ),
        ];
        for (error, expected) in table {
            let told = (
                error.reason(),
                error.code(),
                error.status(),
                error.strict_status(),
            );
            assert_eq!(told, expected);
            assert_eq!(error.retry_after(), Some(retry_after));
        }
    }

    #[test]
    fn only_a_lost_session_or_an_unknown_server_is_not_found() {
        assert_eq!(Error::UnknownSession.status(), 404);
        assert_eq!(Error::SessionEnded.status(), 200);
        assert_eq!(Error::ServerOnly("roots/list".into()).status(), 200);
    }
}
