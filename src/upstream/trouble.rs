//! Tells the operator what a server did instead of answering.
//!
//! The client gets a short error that names the server and nothing of what is behind it; whoever has to
//! mend it reads here why.
//!
//! # Invariants
//! - Of what a server sent only the status and the media type are told: no header, no body. Of its
//!   address only the origin: people put keys into paths and queries.
//! - At most one line in a second for each server; the next one tells how many were left out.

use std::fmt;
#[cfg(test)]
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode};

use super::client::ClientError;
use super::reply::StreamError;
use crate::config::Server;
use crate::config::ServerName;
use crate::protocol::media;
use crate::protocol::server_legacy::Answered;
use crate::telemetry::{Causes, Pace};

/// Where the troubles of one server are told.
#[derive(Debug)]
pub struct Troubles {
    server: ServerName,
    origin: String,
    pace: Pace,
}

/// What a server did instead of answering.
#[derive(Debug)]
pub enum Trouble<'a> {
    /// No answer came.
    Lost(&'a ClientError),
    /// Its event stream broke.
    Broke(&'a StreamError),
    /// Its event stream ended before the answer.
    Cut,
    /// It did not answer in time.
    Slow(Duration),
    /// It began to answer, and said nothing more for so long.
    Silent(Duration),
    /// It answered what is of no use.
    Answered(&'a Head),
    /// It sent what is no message, or can't be read for certain.
    Unreadable,
}

/// What may be told of the head of an answer.
#[derive(Clone, Debug)]
pub struct Head {
    /// What it is.
    pub what: Answered,
    /// Its HTTP status.
    pub status: StatusCode,
    /// Its media type, if it has one.
    pub media: Option<HeaderValue>,
}

/// Longest media type that is repeated.
const MEDIA_MAX: usize = 60;

impl Troubles {
    /// Those of this server.
    pub fn of(server: &Server) -> Self {
        Self {
            server: server.name.clone(),
            origin: server.at.shown(),
            pace: Pace::default(),
        }
    }

    /// Those of a server that a test makes up.
    #[cfg(test)]
    pub(super) fn of_nobody() -> Arc<Self> {
        Arc::new(Self {
            server: ServerName("nobody".into()),
            origin: String::new(),
            pace: Pace::default(),
        })
    }

    /// Whose they are.
    pub(super) fn server(&self) -> &ServerName {
        &self.server
    }

    /// Tells one, unless one was told just now.
    pub fn tell(&self, trouble: &Trouble<'_>) {
        if let Some(left_out) = self.pace.now() {
            tracing::warn!(server = %self.server, at = %self.origin, left_out, "{}", self.text(trouble));
        }
    }

    fn text(&self, trouble: &Trouble<'_>) -> String {
        match trouble {
            Trouble::Lost(
                error @ (ClientError::Connect(_) | ClientError::Start(_) | ClientError::Resting(_)),
            ) => {
                format!("the server is unreachable: {}", Causes(error))
            }
            Trouble::Lost(error) => format!("no answer from the server: {}", Causes(error)),
            Trouble::Broke(error) => format!("no answer from the server: {}", Causes(error)),
            Trouble::Cut => {
                "no answer from the server: its stream ended before the answer".to_owned()
            }
            Trouble::Slow(limit) => format!("no answer from the server within {limit:?}"),
            Trouble::Silent(limit) => {
                format!("no answer from the server: it said nothing more within {limit:?}")
            }
            Trouble::Unreadable => "the server sent something that is no MCP message".to_owned(),
            Trouble::Answered(head) => self.answered(head),
        }
    }

    fn answered(&self, head: &Head) -> String {
        let server = &self.server;
        match head.what {
            Answered::Unauthorized => format!(
                "the server refuses the gateway's credentials: {head}; see servers.{server}.headers"
            ),
            Answered::Limited => format!("the server limits the gateway: {head}"),
            Answered::Redirect => format!(
                "the server redirects to another place, which is not followed: {head}; write the \
                 final address into servers.{server}.url"
            ),
            Answered::Accepted => format!("the server took a request without an answer: {head}"),
            _ if head.status.is_server_error() => format!("the server is in trouble: {head}"),
            _ => format!(
                "the server answers what is no MCP: {head}; is the path in servers.{server}.url right?"
            ),
        }
    }
}

/// `HTTP 404 Not Found, text/html`.
impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.status)?;
        let media = self.media.as_ref().map(HeaderValue::as_bytes);
        let media = String::from_utf8_lossy(media::bare(media.unwrap_or_default()));
        if media.is_empty() {
            return f.write_str(", no content type");
        }
        f.write_str(", ")?;
        let letters = media.chars().take(MEDIA_MAX).flat_map(char::to_lowercase);
        letters
            .flat_map(char::escape_debug)
            .try_for_each(|letter| write!(f, "{letter}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn troubles() -> Troubles {
        Troubles {
            server: ServerName("booking".into()),
            origin: "http://127.0.0.1:1".to_owned(),
            pace: Pace::default(),
        }
    }

    #[track_caller]
    fn check(what: Answered, status: u16, media: &str, expected: &str) {
        let head = Head {
            what,
            status: StatusCode::from_u16(status).unwrap(),
            media: (!media.is_empty()).then(|| HeaderValue::from_str(media).unwrap()),
        };
        assert_eq!(troubles().text(&Trouble::Answered(&head)), expected);
    }

    #[test]
    fn every_useless_answer_says_what_to_look_at() {
        check(
            Answered::Unauthorized,
            401,
            "text/plain",
            "the server refuses the gateway's credentials: HTTP 401 Unauthorized, text/plain; see \
             servers.booking.headers",
        );
        check(
            Answered::Redirect,
            308,
            "",
            "the server redirects to another place, which is not followed: HTTP 308 Permanent \
             Redirect, no content type; write the final address into servers.booking.url",
        );
        check(
            Answered::Refused,
            404,
            "text/html",
            "the server answers what is no MCP: HTTP 404 Not Found, text/html; is the path in \
             servers.booking.url right?",
        );
        check(
            Answered::Broken,
            200,
            "text/html",
            "the server answers what is no MCP: HTTP 200 OK, text/html; is the path in \
             servers.booking.url right?",
        );
        check(
            Answered::Broken,
            503,
            "text/html",
            "the server is in trouble: HTTP 503 Service Unavailable, text/html",
        );
        check(
            Answered::Limited,
            429,
            "application/json",
            "the server limits the gateway: HTTP 429 Too Many Requests, application/json",
        );
    }

    #[test]
    fn a_media_type_can_not_play_tricks() {
        let media = format!("\u{202e}{}", "x".repeat(1000));
        let media = HeaderValue::from_bytes(media.as_bytes()).ok();
        assert!(media.is_some());
        let head = Head {
            what: Answered::Broken,
            status: StatusCode::OK,
            media,
        };
        let text = troubles().text(&Trouble::Answered(&head));
        assert!(!text.contains('\u{202e}') && text.len() < 300, "{text}");
    }
}
