//! An MCP endpoint: the pipeline that every message of a client goes through.
//!
//! The order is a security property. Nothing of the body is looked at before the sender is known,
//! and nothing is sent to a server before the limits agreed; what decides is the parsed body, once,
//! and never a header alone.

use http::{HeaderMap, HeaderValue, Method, Uri};

use super::body::RequestBody;
use super::reply::{self, Response};
use super::visit::Visit;
use super::{Front, beginning, cors, line, today};
use crate::auth::{Denied, LastToken, Principal};
use crate::config::{LimitAnswer, ServerName};
use crate::error::Error;
use crate::protocol::client_modern;
use crate::protocol::version::SESSION_HEADER;
use crate::relay::SessionId;
use crate::telemetry::audit::{Outcome, Record};

/// Why a request is not answered by its server, and what is known about it.
pub(super) struct Refused {
    pub(super) error: Error,
    /// The JSON-RPC id, as JSON text.
    pub(super) id: Option<String>,
    pub(super) method: Option<String>,
    /// Whether limits are answered by an HTTP status, whatever the configuration says.
    pub(super) strict: bool,
}

impl<E: Into<Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            id: None,
            method: None,
            strict: false,
        }
    }
}

/// A request as far as its head goes, and what belongs to it.
pub(super) struct Asked<'r> {
    pub(super) door: Door,
    /// The name of the server.
    pub(super) server: &'r str,
    pub(super) method: &'r Method,
    pub(super) uri: &'r Uri,
    pub(super) body: &'r mut RequestBody,
    /// What the connection remembers.
    pub(super) last: &'r LastToken,
}

/// Where a request comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// The endpoint, for all versions but the first.
    Endpoint,
    /// Where an HTTP+SSE session is opened.
    Stream,
    /// Where its client posts.
    Messages,
}

impl Door {
    /// What may be done here.
    fn methods(self) -> (&'static [Method], &'static str) {
        match self {
            Self::Endpoint => (
                &[Method::GET, Method::POST, Method::DELETE],
                "GET, POST, DELETE, OPTIONS",
            ),
            Self::Stream => (&[Method::GET], "GET, OPTIONS"),
            Self::Messages => (&[Method::POST], "POST, OPTIONS"),
        }
    }
}

impl Front {
    /// Lets nobody in who comes by a name or from a web page that is not allowed.
    pub(super) async fn take(&self, asked: Asked<'_>, headers: HeaderMap) -> Response {
        let hosts = &self.0.hosts;
        let allowed = hosts
            .check_host(&headers, asked.uri)
            .and_then(|()| hosts.check_origin(&headers));
        let origin = match allowed {
            Ok(origin) => origin,
            Err(error) => {
                self.tell_misdirected(&error);
                return self.refuse(None, None, &headers, error.into());
            }
        };
        let response = match &origin {
            Some(origin) if asked.method == Method::OPTIONS => {
                return cors::preflight(origin, &headers);
            }
            _ => self.enter(asked, headers).await,
        };
        match &origin {
            Some(origin) => cors::allow(response, origin),
            None => response,
        }
    }

    /// Finds the server, learns who is asking, and hands over to the method.
    async fn enter(&self, asked: Asked<'_>, mut headers: HeaderMap) -> Response {
        let Asked {
            door,
            server,
            method,
            uri,
            body,
            last,
        } = asked;
        let Some((server, _)) = self.0.config.servers.get_key_value(server) else {
            let error = Error::UnknownServer(beginning(server));
            return self.refuse(None, None, &headers, error.into());
        };
        let (methods, named) = door.methods();
        if !methods.contains(method) {
            return reply::not_allowed(named);
        }
        if door != Door::Endpoint {
            line::name_session(&mut headers, uri);
        }
        // A modern endpoint takes POST alone (2026-07-28 transports/streamable-http).
        let modern = door == Door::Endpoint && client_modern::names_modern(&headers);
        if *method != Method::POST && modern {
            return reply::not_allowed("POST, OPTIONS");
        }
        let identity = match self
            .0
            .auth
            .authenticate(server, &headers, today(), last)
            .await
        {
            Ok(identity) => identity,
            Err(denied) => return self.deny(server, &denied),
        };
        let visit = Visit {
            front: self,
            server,
            headers,
            identity,
        };
        let answered = match (door, method) {
            (Door::Stream, _) => visit.open_line(),
            (Door::Messages, _) => Box::pin(visit.post_to_line(body)).await,
            (Door::Endpoint, &Method::POST) => visit.post(body).await,
            (Door::Endpoint, &Method::GET) => visit.listen(),
            (Door::Endpoint, _) => Box::pin(visit.end()).await,
        };
        match answered {
            Ok(response) => response,
            Err(refused) => {
                let principal = Some(&visit.identity.principal);
                self.refuse(Some(server), principal, &visit.headers, refused)
            }
        }
    }

    /// Answers a caller who may not come in, and puts that on record.
    fn deny(&self, server: &ServerName, denied: &Denied) -> Response {
        let (reason, status) = (denied.reason(), denied.status().as_u16());
        if let Some(left_out) = self.0.denied.now() {
            tracing::info!(%server, reason, status, left_out, "credentials refused");
        }
        let record = Record::refused(today())
            .server(server)
            .outcome(Outcome::Refused)
            .reason(reason)
            .status(status);
        self.0.relay.audit().note(None, record);
        reply::denied(denied)
    }

    /// Answers with an error, and puts a refusal on record.
    fn refuse(
        &self,
        server: Option<&ServerName>,
        principal: Option<&Principal>,
        headers: &HeaderMap,
        refused: Refused,
    ) -> Response {
        let Refused {
            error,
            id,
            method,
            strict,
        } = refused;
        let answer = if strict {
            LimitAnswer::Http
        } else {
            self.0.config.limits.answer
        };
        let response = reply::error(
            &error,
            id.as_deref(),
            server.map(ServerName::as_str),
            answer,
        );
        if !error.is_refusal() || matches!(error, Error::AuditFull) {
            return response;
        }
        let mut record = Record::refused(today())
            .outcome(Outcome::Refused)
            .reason(self.reason(&error, headers))
            .code(error.code().into())
            .status(response.status().as_u16());
        if let Some(server) = server {
            record = record.server(server);
        }
        if let Some(principal) = principal {
            record = record.principal(principal);
        }
        if let Some(session) = headers.get(SESSION_HEADER) {
            record = record.session(&SessionId::tag(session.as_bytes()));
        }
        if let Some(method) = &method {
            record = record.method(method);
        }
        self.0.relay.audit().note(principal, record);
        response
    }

    /// The reason for the record, which may tell more than the caller learns.
    fn reason(&self, error: &Error, headers: &HeaderMap) -> &'static str {
        let session = headers.get(SESSION_HEADER).map(HeaderValue::as_bytes);
        match error {
            Error::UnknownSession if session.is_some_and(|id| self.0.relay.is_foreign(id)) => {
                "foreign_session"
            }
            _ => error.reason(),
        }
    }
}
