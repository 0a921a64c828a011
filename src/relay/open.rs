//! Opens a session: offers the client's `initialize` to the server and answers the server's choice.
//!
//! The negotiation is relayed, not made: version and capabilities reach the server as the client
//! declared them, so that old servers and clients adapt to each other by themselves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;

use super::session::{LiveSession, Opened, SessionId};
use super::standalone::Reading;
use super::{Answer, Relay, now, today};
use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_legacy::Accept;
use crate::protocol::message::{Kind, Message};
use crate::protocol::object::{members, text};
use crate::protocol::server_legacy::Answered;
use crate::protocol::session::Session;
use crate::protocol::version::Version;
use crate::telemetry::audit::{Outcome, Record};
use crate::upstream::client::ClientError;
use crate::upstream::http::{HttpServer, Reply, Wire};

/// How long a server may take to open a session.
const PATIENCE: Duration = Duration::from_mins(1);

/// The id of `initialize` towards the server; calls count from 1.
const ID: &str = "0";

/// What a server answered to `initialize`.
struct Greeting {
    response: Message,
    /// The version that it chose; none when it refused.
    version: Option<Version>,
    session: Option<HeaderValue>,
    early: Vec<Message>,
}

impl Relay {
    /// Opens a session for a client. Its id goes into the header of the answer; when the server
    /// refuses, the answer is its error and there is no session.
    ///
    /// # Errors
    /// When the caller has too many sessions, or the server can't be reached or does not answer.
    pub async fn open(
        &self,
        server: &ServerName,
        principal: &Principal,
        request: &Message,
        accept: Accept,
    ) -> Result<(Answer, Option<SessionId>), Error> {
        let shared = &self.0;
        if shared.ending.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let upstream = shared
            .servers
            .get(server)
            .map(Arc::clone)
            .ok_or(Error::UnknownServer)?;
        let began = now();
        let id = SessionId::random()?;
        let principal = if principal.is_anonymous() {
            Principal::anonymous_session(&SessionId::tag(id.as_bytes()))
        } else {
            principal.clone()
        };
        let _admission = shared.limiter.admit(server, &principal)?;
        let slot = shared.limiter.session(&principal)?;
        let audit = shared.audit.reserve().await.map_err(|_| Error::AuditFull)?;
        let record = |kind: fn(std::time::SystemTime) -> Record| {
            kind(today())
                .principal(&principal)
                .server(server)
                .method("initialize")
                .duration(now().saturating_duration_since(began))
        };
        let greeting = tokio::time::timeout(PATIENCE, greet(&upstream, request)).await;
        let greeting = match greeting.unwrap_or(Err(Error::Slow(PATIENCE))) {
            Ok(greeting) => greeting,
            Err(error) => {
                audit.write(
                    record(Record::call)
                        .outcome(Outcome::Error)
                        .reason(error.reason())
                        .code(error.code().into()),
                );
                return Err(error);
            }
        };
        let answer = answer(&greeting.response, request, accept);
        let Some(version) = greeting.version else {
            audit.write(
                record(Record::call)
                    .outcome(Outcome::Error)
                    .reason("refused_by_server"),
            );
            return Ok((answer, None));
        };
        let [capabilities] = request.param(["capabilities"])?;
        let session = LiveSession::new(
            Opened {
                id: id.clone(),
                principal: principal.clone(),
                server: upstream,
                wire: Wire {
                    session: greeting.session,
                    version: Some(version.clone()),
                },
                version,
                talk: Session::new(ClientCapabilities::read(capabilities)),
                slot,
            },
            Arc::clone(shared),
        );
        shared.sessions.insert(id.clone(), Arc::clone(&session));
        audit.write(
            record(Record::session_opened)
                .session(session.tag())
                .outcome(Outcome::Ok),
        );
        tracing::info!(session = session.tag(), %server, %principal, version = %session.version(), "session opened");
        for message in &greeting.early {
            session.take_from_server(None, message).await;
        }
        Ok((answer, Some(id)))
    }
}

/// Sends `initialize` and reads the answer, however it comes.
async fn greet(server: &HttpServer, request: &Message) -> Result<Greeting, Error> {
    let wire = Wire::default();
    let body = request.with_id(ID);
    let reply = match server.post(&wire, body.clone()).await {
        Err(ClientError::Connect(_)) => server.post(&wire, body).await,
        other => other,
    };
    let reply = reply.map_err(|error| match error {
        ClientError::Connect(_) => Error::Unreachable,
        _ => Error::Broken,
    })?;
    let session = reply.session();
    let status = reply.status.as_u16();
    let (response, early) = match reply.what {
        Answered::Events => from_events(reply).await?,
        Answered::Json | Answered::Refused | Answered::Broken => {
            (whole(reply).await.filter(Message::is_response), Vec::new())
        }
        Answered::Unauthorized => return Err(Error::Credentials),
        Answered::Limited => {
            return Err(Error::ServerLimited(
                reply.retry_after().unwrap_or(Duration::from_secs(1)),
            ));
        }
        Answered::Redirect => {
            return Err(Error::Misbehaved(
                "redirects to another place, which is not followed".into(),
            ));
        }
        Answered::Accepted | Answered::SessionGone | Answered::NotOffered => (None, Vec::new()),
    };
    let response = response.ok_or_else(|| {
        Error::Misbehaved(format!("answered HTTP {status} and no MCP message").into())
    })?;
    let version = match response.result() {
        None => None,
        Some(result) => Some(chosen(result).ok_or_else(|| {
            Error::Misbehaved("answered initialize without a protocol version".into())
        })?),
    };
    Ok(Greeting {
        response,
        version,
        session,
        early,
    })
}

async fn whole(reply: Reply) -> Option<Message> {
    Message::parse(&reply.whole().await.ok()?).ok()
}

async fn from_events(reply: Reply) -> Result<(Option<Message>, Vec<Message>), Error> {
    const MOST_EARLY: usize = 64;
    let mut reading = Reading::new(reply);
    let mut early = Vec::new();
    while let Some(message) = reading.next().await {
        if message.is_response() && message.id() == Some(ID) {
            return Ok((Some(message), early));
        }
        if early.len() < MOST_EARLY {
            early.push(message);
        }
    }
    Ok((None, early))
}

fn chosen(result: &str) -> Option<Version> {
    let [version] = members(result, ["protocolVersion"]).ok()?;
    Some(Version::new(&text(version?)?))
}

fn answer(response: &Message, request: &Message, accept: Accept) -> Answer {
    let id = request.id().unwrap_or("null");
    let body = match (response.kind(), response.id()) {
        // A server that could not read the id leaves it out.
        (Kind::Error, None) => {
            let error = response.error().unwrap_or("{}");
            Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
        }
        _ => response.with_id(id),
    };
    if accept.json {
        Answer::Json(200, body)
    } else {
        Answer::one_event(&body)
    }
}
