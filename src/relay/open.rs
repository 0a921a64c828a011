//! Opens a session: offers the client's `initialize` to the server and answers the server's choice.
//!
//! The negotiation is relayed, not made: version and capabilities reach the server as the client
//! declared them, so that old servers and clients adapt to each other by themselves.

use std::sync::Arc;
use std::time::SystemTime;

use super::greet::greet;
use super::inbound::Inbound;
use super::session::{LiveSession, Opened, SessionId};
use super::teardown::Ending;
use super::{Answer, Relay, now, today};
use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_legacy::Accept;
use crate::protocol::message::Message;
use crate::protocol::session::Session;
use crate::telemetry::audit::{Outcome, Record};
use crate::upstream::http::Wire;

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
        let _admission = shared.limiter.admit(server, &principal)?;
        let slot = shared.limiter.session(&principal)?;
        let audit = shared.audit.reserve().await.map_err(|_| Error::AuditFull)?;
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
        let answer = if accept.json {
            Answer::Json(200, response)
        } else {
            Answer::one_event(&response)
        };
        let Some(version) = greeting.version else {
            audit.write(
                record(Record::call)
                    .outcome(Outcome::Error)
                    .reason("refused_by_server"),
            );
            return Ok((answer, None));
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
            slot,
        };
        let session = LiveSession::new(opened, Arc::clone(shared));
        shared.sessions.insert(id.clone(), Arc::clone(&session));
        audit.write(
            record(Record::session_opened)
                .session(session.tag())
                .outcome(Outcome::Ok),
        );
        tracing::info!(session = session.tag(), %server, %principal, version = %session.version(), "session opened");
        if shared.ending.is_cancelled() {
            session.end(Ending::Shutdown).await;
            return Err(Error::ShuttingDown);
        }
        for inbound in greeting.early {
            match inbound {
                Inbound::Message(message) => session.take_from_server(None, &message).await,
                Inbound::Unreadable(id) => session.refuse_unreadable(&id).await,
            }
        }
        Ok((answer, Some(id)))
    }
}
