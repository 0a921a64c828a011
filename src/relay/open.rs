//! Opens a session: offers an `initialize` to the server and takes the server's choice.
//!
//! For a legacy client the negotiation is relayed, not made: version and capabilities reach the server
//! as the client declared them, so that old servers and clients adapt to each other by themselves. For
//! modern clients, who hold no sessions, the gateway opens one in its own name ([`super::modern`]).

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::greet::greet;
use super::inbound::Inbound;
use super::session::{Face, LiveSession, Opened, SessionId};
use super::teardown::Ending;
use super::{Answer, Relay, Shared, now, today};
use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_legacy::Accept;
use crate::protocol::message::Message;
use crate::protocol::session::Session;
use crate::telemetry::audit::{Outcome, Record};
use crate::upstream::http::Wire;

/// What became of an `initialize`.
pub(super) struct Established {
    /// The session; none when the server refused.
    pub(super) session: Option<Arc<LiveSession>>,
    /// The server's response, for the request's id.
    pub(super) response: Bytes,
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
        let Established { session, response } = shared
            .establish(server, principal, request, Face::Legacy)
            .await?;
        let answer = if accept.json {
            Answer::Json(200, response)
        } else {
            Answer::one_event(&response)
        };
        Ok((answer, session.map(|session| session.id().clone())))
    }
}

impl Shared {
    /// Opens a session at a server, with this `initialize`.
    pub(super) async fn establish(
        self: &Arc<Self>,
        server: &ServerName,
        principal: &Principal,
        request: &Message,
        face: Face,
    ) -> Result<Established, Error> {
        if self.ending.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let upstream = self
            .servers
            .get(server)
            .map(Arc::clone)
            .ok_or(Error::UnknownServer)?;
        // Before the server is asked: what can't be read must not leave a session behind there.
        let [capabilities] = request.param(["capabilities"])?;
        let capabilities = ClientCapabilities::read(capabilities);
        let began = now();
        let id = SessionId::random()?;
        let principal = if principal.is_anonymous() {
            Principal::anonymous_session(&SessionId::tag(id.as_bytes()))
        } else {
            principal.clone()
        };
        let _admission = match face {
            Face::Legacy => Some(self.limiter.admit(server, &principal)?),
            // The request that needs the session was admitted itself.
            Face::Modern => None,
        };
        let slot = self.limiter.session(&principal)?;
        let audit = self.audit.reserve().await.map_err(|_| Error::AuditFull)?;
        let record = |kind: fn(SystemTime) -> Record| {
            kind(today())
                .principal(&principal)
                .server(server)
                .method("initialize")
                .duration(now().saturating_duration_since(began))
        };
        let greeting = match greet(&upstream, request).await {
            Ok(greeting) => greeting,
            Err(error) => {
                let failed = record(Record::call).outcome(Outcome::Error);
                audit.write(failed.reason(error.reason()).code(error.code().into()));
                return Err(error);
            }
        };
        let response = greeting.response(request.id().unwrap_or("null"));
        let Some(version) = greeting.version else {
            audit.write(
                record(Record::call)
                    .outcome(Outcome::Error)
                    .reason("refused_by_server"),
            );
            return Ok(Established {
                session: None,
                response,
            });
        };
        let opened = Opened {
            id: id.clone(),
            principal: principal.clone(),
            server: upstream,
            wire: Wire {
                session: greeting.session,
                version: Some(version.clone()),
            },
            version,
            talk: Session::new(capabilities),
            face,
            slot,
        };
        let session = LiveSession::new(opened, Arc::clone(self));
        self.sessions.insert(id, Arc::clone(&session));
        audit.write(
            record(Record::session_opened)
                .session(session.tag())
                .outcome(Outcome::Ok),
        );
        tracing::info!(session = session.tag(), %server, %principal, version = %session.version(), "session opened");
        if self.ending.is_cancelled() {
            session.end(Ending::Shutdown).await;
            return Err(Error::ShuttingDown);
        }
        for inbound in greeting.early {
            match inbound {
                Inbound::Message(message) => session.take_from_server(None, &message).await,
                Inbound::Unreadable(id) => session.refuse_unreadable(&id).await,
            }
        }
        Ok(Established {
            session: Some(session),
            response,
        })
    }
}
