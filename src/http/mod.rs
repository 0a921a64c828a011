//! The front door: every route of the gateway on one page.
//!
//! | route | methods | what |
//! |---|---|---|
//! | `/mcp/{server}` | POST, GET, DELETE, OPTIONS | an MCP endpoint ([`mcp`]); with and without a trailing slash |
//! | `/mcp/{server}/sse` | GET, OPTIONS | the stream of an HTTP+SSE session ([`mod@line`]), with `legacy_sse` |
//! | `/mcp/{server}/messages` | POST, OPTIONS | where such a session's client posts, with `legacy_sse` |
//! | `/.well-known/oauth-protected-resource/mcp/{server}` | GET, OPTIONS | RFC 9728 metadata of it |
//! | `/healthz` | GET | the process serves |
//! | `/readyz` | GET | it takes new sessions, and can check tokens |

mod body;
mod cors;
mod hosts;
mod line;
pub(crate) mod listener;
mod mcp;
mod patient;
mod reply;
mod stream;
mod visit;

use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{any, get};
use http::{HeaderMap, Method, StatusCode, Uri};
use tokio_util::sync::CancellationToken;

use self::hosts::Hosts;
use crate::auth::{Authenticator, metadata};
use crate::config::Config;
use crate::error::Error;
use crate::relay::Relay;
use crate::telemetry::Pace;

/// What every request needs.
#[derive(Clone)]
pub(crate) struct Front(Arc<Parts>);

struct Parts {
    config: Arc<Config>,
    auth: Authenticator,
    relay: Relay,
    hosts: Hosts,
    /// Paces the log lines about refused hosts and origins, and those about refused credentials.
    misdirected: Pace,
    denied: Pace,
    /// Set when the gateway ends.
    ending: CancellationToken,
}

impl Front {
    pub(crate) fn new(
        config: Arc<Config>,
        auth: Authenticator,
        relay: Relay,
        ending: CancellationToken,
    ) -> Self {
        let hosts = Hosts::new(&config);
        Self(Arc::new(Parts {
            config,
            auth,
            relay,
            hosts,
            misdirected: Pace::default(),
            denied: Pace::default(),
            ending,
        }))
    }

    /// Tells the operator who was refused for the name or the web page that they came by: behind a
    /// proxy that changes the Host header, that is everybody.
    fn tell_misdirected(&self, error: &Error) {
        let Some(left_out) = self.0.misdirected.now() else {
            return;
        };
        match error {
            Error::Host(host) => tracing::warn!(
                left_out,
                "refused host={}; add it to allowed_hosts, or let the proxy pass the Host header on",
                beginning(host).escape_debug()
            ),
            Error::Origin(origin) => tracing::warn!(
                left_out,
                "refused origin={}; add it to allowed_origins if this web page may call the gateway",
                beginning(origin).escape_debug()
            ),
            _ => {}
        }
    }

    /// The routes.
    pub(crate) fn router(self) -> Router {
        let oldest = if self.0.config.legacy_sse {
            Router::new()
                .route("/mcp/{server}/sse", any(line::stream))
                .route("/mcp/{server}/messages", any(line::messages))
        } else {
            Router::new()
        };
        oldest
            .route("/mcp/{server}", any(mcp::handle))
            .route("/mcp/{server}/", any(mcp::handle))
            .route(
                &format!("{}/{{*path}}", metadata::WELL_KNOWN),
                any(describe),
            )
            .route("/healthz", get(healthy))
            .route("/readyz", get(ready))
            .fallback(nowhere)
            .with_state(self)
    }
}

/// RFC 9728 metadata. Open to everybody, also across origins: it is how a client learns to log in.
async fn describe(
    State(front): State<Front>,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let config = &front.0.config;
    if method == Method::OPTIONS {
        return cors::anybody(reply::empty(StatusCode::NO_CONTENT));
    }
    if method != Method::GET && method != Method::HEAD {
        return reply::not_allowed("GET, OPTIONS");
    }
    if let Err(error) = front.0.hosts.check_host(&headers, &uri) {
        front.tell_misdirected(&error);
        return reply::error(&error, None, None, config.limits.answer);
    }
    let asked = uri.path().trim_end_matches('/');
    let document = config
        .servers
        .keys()
        .find(|server| metadata::path(&config.public_url, server) == asked)
        .and_then(|server| metadata::document(config, server));
    cors::anybody(match document {
        Some(document) => reply::json(StatusCode::OK, document.into()),
        None => reply::json(StatusCode::NOT_FOUND, r#"{"error":"not_found"}"#.into()),
    })
}

async fn healthy() -> Response {
    reply::json(StatusCode::OK, r#"{"status":"ok"}"#.into())
}

async fn ready(State(front): State<Front>) -> Response {
    let parts = &front.0;
    let (status, text) = if parts.ending.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"ending"}"#)
    } else if parts.relay.audit().is_stuck() {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            r#"{"status":"the audit log takes no records"}"#,
        )
    } else if no_issuer_ready(&parts.auth) {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            r#"{"status":"waiting for the keys of the issuers"}"#,
        )
    } else {
        (StatusCode::OK, r#"{"status":"ready"}"#)
    };
    reply::json(status, text.into())
}

/// Whether no issuer's tokens can be checked. One that is down does not take the others with it.
fn no_issuer_ready(auth: &Authenticator) -> bool {
    let issuers = auth.ready();
    !issuers.is_empty() && issuers.iter().all(|(_, ready)| !ready)
}

async fn nowhere(State(front): State<Front>, uri: Uri) -> Response {
    reply::error(
        &Error::NoSuchPath(beginning(uri.path())),
        None,
        None,
        front.0.config.limits.answer,
    )
}

/// The beginning of a text that a caller sent, to tell it back to them or to the operator.
fn beginning(text: &str) -> String {
    const LONGEST: usize = 100;
    let mut beginning: String = text.chars().take(LONGEST).collect();
    if beginning.len() < text.len() {
        beginning.push('…');
    }
    beginning
}

#[expect(
    clippy::disallowed_methods,
    reason = "credentials and records are about the time of day"
)]
fn today() -> SystemTime {
    SystemTime::now()
}
