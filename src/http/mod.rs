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
mod connection;
mod cors;
mod events;
mod hosts;
mod line;
pub(crate) mod listener;
mod mcp;
mod patient;
mod reply;
mod seat;
mod stream;
#[cfg(test)]
mod tests;
mod visit;

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, Method, Request, StatusCode, Uri};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use self::body::RequestBody;
use self::hosts::Hosts;
use self::mcp::{Asked, Door};
use self::reply::Response;
use self::seat::{Framing, Outgoing, Turn};
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

    /// Answers a request.
    async fn serve(
        self,
        request: Request<Incoming>,
        turn: Turn,
    ) -> Result<http::Response<Outgoing>, Infallible> {
        let (parts, body) = request.into_parts();
        let (method, uri, headers) = (parts.method, parts.uri, parts.headers);
        let framing = Framing::of(parts.version, &headers);
        let mut body = RequestBody::new(body);
        let response = match Place::of(uri.path(), self.0.config.legacy_sse) {
            Place::Door(door, name) => match decoded(name) {
                Some(server) => {
                    let asked = Asked {
                        door,
                        server: &server,
                        method: &method,
                        uri: &uri,
                        body: &mut body,
                        last: turn.last_token(),
                    };
                    self.take(asked, headers).await
                }
                None => reply::text(
                    StatusCode::BAD_REQUEST,
                    "Invalid URL: Invalid UTF-8 in `server`",
                ),
            },
            Place::Metadata => self.describe(&method, &headers, &uri),
            Place::Health | Place::Readiness if !matches!(method, Method::GET | Method::HEAD) => {
                reply::not_allowed("GET,HEAD")
            }
            Place::Health => reply::json(StatusCode::OK, r#"{"status":"ok"}"#.into()),
            Place::Readiness => self.ready(),
            Place::Nowhere => {
                let error = Error::NoSuchPath(beginning(uri.path()));
                reply::error(&error, None, None, self.0.config.limits.answer)
            }
        };
        let whole = body.is_whole();
        Ok(response.map(|body| turn.answer(body, framing, whole)))
    }

    /// RFC 9728 metadata. Open to everybody, also across origins: it is how a client learns to log in.
    fn describe(&self, method: &Method, headers: &HeaderMap, uri: &Uri) -> Response {
        let config = &self.0.config;
        if method == Method::OPTIONS {
            return cors::anybody(reply::empty(StatusCode::NO_CONTENT));
        }
        if method != Method::GET && method != Method::HEAD {
            return reply::not_allowed("GET, OPTIONS");
        }
        if let Err(error) = self.0.hosts.check_host(headers, uri) {
            self.tell_misdirected(&error);
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

    fn ready(&self) -> Response {
        let parts = &self.0;
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
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
enum Place<'p> {
    /// A door of the server with this name, as it stands in the path.
    Door(Door, &'p str),
    Metadata,
    Health,
    Readiness,
    Nowhere,
}

impl<'p> Place<'p> {
    /// The routes.
    fn of(path: &'p str, legacy_sse: bool) -> Self {
        if let Some(rest) = path.strip_prefix("/mcp/") {
            let (server, rest) = rest.split_once('/').unwrap_or((rest, ""));
            return match rest {
                _ if server.is_empty() => Self::Nowhere,
                "" => Self::Door(Door::Endpoint, server),
                "sse" if legacy_sse => Self::Door(Door::Stream, server),
                "messages" if legacy_sse => Self::Door(Door::Messages, server),
                _ => Self::Nowhere,
            };
        }
        let described = |path: &str| {
            let rest = path.strip_prefix(metadata::WELL_KNOWN)?.strip_prefix('/')?;
            (!rest.is_empty()).then_some(())
        };
        match path {
            "/healthz" => Self::Health,
            "/readyz" => Self::Readiness,
            _ if described(path).is_some() => Self::Metadata,
            _ => Self::Nowhere,
        }
    }
}

/// A segment of a path without its percent-encoding (RFC 3986, section 2.1); nothing when that is no text.
fn decoded(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('%') {
        return Some(Cow::Borrowed(segment));
    }
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        let encoded = (*first == b'%').then(|| Some((digit(0)?, digit(1)?)));
        let encoded = encoded
            .flatten()
            .and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        bytes.push(encoded.unwrap_or(*first));
        rest = after.get(if encoded.is_some() { 2 } else { 0 }..)?;
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Whether no issuer's tokens can be checked. One that is down does not take the others with it.
fn no_issuer_ready(auth: &Authenticator) -> bool {
    let issuers = auth.ready();
    !issuers.is_empty() && issuers.iter().all(|(_, ready)| !ready)
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
