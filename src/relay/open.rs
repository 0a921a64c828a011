//! Opens a session: for a legacy client, or in the gateway's own name for modern clients, who hold
//! none ([`super::modern`]).
//!
//! With a legacy server the negotiation of a legacy client is relayed, not made: version and
//! capabilities reach the server as the client declared them, so that old servers and clients adapt to
//! each other by themselves. A modern server has no such beginning; there the answer is made of what it
//! discovered.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;

use super::caller::{Caller, is_headless};
use super::greet::greet;
use super::inbound::Inbound;
use super::lease::{Lease, Legacy, Modern, whose};
use super::line::Line;
use super::session::{Face, LiveSession, Opened, SessionId};
use super::subscriptions::{self, Offers, Wish};
use super::teardown::Ending;
use super::welcome::Welcome;
use super::{Answer, Relay, Shared, now, today};
use crate::auth::Principal;
use crate::config::{OnSessionLost, ServerName};
use crate::error::Error;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_legacy::Accept;
use crate::protocol::message::{self, Malformed, Message};
use crate::protocol::object::{edit, is_object, text};
use crate::protocol::session::Session;
use crate::protocol::to_legacy;
use crate::protocol::version::{LEGACY, V2025_11_25, Version};
use crate::telemetry::audit::{Outcome, Record};
use crate::upstream::Whose;
use crate::upstream::era::{NoVerdict, Spoken};
use crate::upstream::server::Upstream;

/// What became of an `initialize`.
pub(super) struct Established {
    /// The session; none when the server refused.
    pub(super) session: Option<Arc<LiveSession>>,
    /// The server's response, for the request's id.
    pub(super) response: Bytes,
}

impl Relay {
    /// Opens a session for a client, which may have said that nobody sits there (`headless`). Its id goes into the header of the answer; when the server
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
        headless: bool,
    ) -> Result<(Answer, Option<SessionId>), Error> {
        let shared = &self.0;
        let headless = headless || is_headless(&shared.config, principal);
        let Established { session, response } = shared
            .establish(server, principal, request, Face::Legacy, headless, None)
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
    /// Whether a session that this server has lost is made anew there.
    fn renews(&self, server: &ServerName) -> bool {
        let server = self.config.servers.get(server);
        server.is_some_and(|server| server.on_session_lost == OnSessionLost::Renew)
    }

    /// Opens a session at a server, with this `initialize`: one of its own, or that of a line.
    pub(super) async fn establish(
        self: &Arc<Self>,
        server: &ServerName,
        principal: &Principal,
        request: &Message,
        face: Face,
        headless: bool,
        line: Option<&Arc<Line>>,
    ) -> Result<Established, Error> {
        if self.ending.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let upstream = Arc::clone(self.server(server)?);
        // Before the server is asked: what can't be read must not leave a session behind there.
        let policy = Arc::clone(self.policy(server)?);
        let [capabilities, info] = request.param(["capabilities", "clientInfo"])?;
        let can = ClientCapabilities::read(capabilities);
        let caller = Caller::new(can, info, headless);
        let declared = caller.declared(can, &policy);
        let request = &seen(request, declared)?;
        let began = now();
        let id = line.map_or_else(SessionId::random, |line| Ok(line.id().clone()))?;
        let principal = principal.in_session(&SessionId::tag(id.as_bytes()));
        let _admission = match face {
            Face::Legacy => Some(self.limiter.admit(server, &principal)?),
            // The request that needs the session was admitted itself.
            Face::Modern => None,
        };
        let slot = line.is_none().then(|| self.limiter.session(&principal));
        let slot = slot.transpose()?;
        let audit = self.audit.reserve().await.map_err(|_| Error::AuditFull)?;
        let record = |kind: fn(SystemTime) -> Record| {
            kind(today())
                .principal(&principal)
                .server(server)
                .method("initialize")
                .duration(now().saturating_duration_since(began))
        };
        let (whose, patience) = (whose(&principal), self.patience(server).call);
        let renewable = self.renews(server);
        let beginning = begin(&upstream, whose, request, face, renewable, patience).await;
        let beginning = match beginning {
            Ok(beginning) => beginning,
            Err(error) => {
                let failed = record(Record::call).outcome(Outcome::Error);
                audit.write(failed.reason(error.reason()).code(error.code().into()));
                return Err(error);
            }
        };
        let response = beginning.response;
        let Some((version, lease)) = beginning.agreed else {
            let refused = record(Record::call).outcome(Outcome::Error);
            audit.write(refused.reason("refused_by_server"));
            let session = None;
            return Ok(Established { session, response });
        };
        let talk = Session::new(match &lease {
            Lease::Legacy(_) => declared,
            Lease::Modern(modern) => modern.can,
        });
        let opened = Opened {
            id: id.clone(),
            principal: principal.clone(),
            server: upstream,
            lease,
            version,
            caller: Arc::new(caller),
            policy,
            talk,
            face,
            line: line.cloned(),
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
        if let Some(wishes) = beginning.wishes {
            let listening = subscriptions::run(Arc::clone(&session), wishes);
            self.tasks.spawn(listening);
        }
        session.take_early(beginning.early).await;
        Ok(Established {
            session: Some(session),
            response,
        })
    }
}

impl LiveSession {
    /// Takes what the server sent before its answer.
    async fn take_early(self: &Arc<Self>, early: Vec<Inbound>) {
        let Some(tenure) = self.tenure() else { return };
        for inbound in early {
            match inbound {
                Inbound::Message(message) => self.take_from_server(&tenure, None, &message).await,
                Inbound::Unreadable(id) => self.refuse_unreadable(&tenure, &id).await,
            }
        }
    }
}

/// An `initialize` as the server sees it: with what its questions can get an answer to.
fn seen(request: &Message, declared: ClientCapabilities) -> Result<Message, Error> {
    let [version, capabilities] = request.param(["protocolVersion", "capabilities"])?;
    let version = Version::new(&version.and_then(text).unwrap_or_default());
    let theirs = ClientCapabilities::read(capabilities);
    let declared = ClientCapabilities {
        // What a version does not have is not added to it; what a client says of itself stays.
        form: declared.form && (theirs.form || version.has_elicitation()),
        url: declared.url && (theirs.url || version.has_modes()),
        ..declared
    };
    let Some(seen) = declared.in_place_of(capabilities, version.has_modes()) else {
        return Ok(request.clone());
    };
    let params = request.params().unwrap_or("{}");
    let params = edit(params, &[("capabilities", Some(&seen))])
        .map_err(|error| Malformed::NotAMessage(error.to_string()))?;
    Ok(Message::parse(
        &request.with_body(request.id().unwrap_or("null"), &params),
    )?)
}

/// How a server takes the beginning of a session.
struct Beginning {
    /// The answer for the client.
    response: Bytes,
    /// The version, and what the session uses at the server; none when the server refused.
    agreed: Option<(Version, Lease)>,
    /// What the session will want to be told by a modern server.
    wishes: Option<Receiver<Wish>>,
    /// What a legacy server sent before its answer.
    early: Vec<Inbound>,
}

async fn begin(
    server: &Upstream,
    whose: Whose,
    request: &Message,
    face: Face,
    renewable: bool,
    patience: Duration,
) -> Result<Beginning, Error> {
    // Who opens a session in the gateway's own name knows that the server keeps sessions.
    let spoken = match face {
        Face::Legacy => server.spoken().await,
        Face::Modern => Ok(Spoken::Legacy),
    };
    match spoken {
        Ok(Spoken::Modern(discovered)) => return with_modern(server, whose, request, &discovered),
        Err(NoVerdict {
            error,
            reached: false,
        }) => return Err(error),
        // Without a verdict the client's own era is as good a guess as any, for this once.
        Ok(Spoken::Legacy) | Err(_) => {}
    }
    let greeting = greet(server, request, patience).await?;
    if greeting.is_from_modern() {
        server.doubt_era();
        if face == Face::Modern {
            return Err(Error::NoVersion);
        }
        if let Ok(Spoken::Modern(discovered)) = server.spoken().await {
            return with_modern(server, whose, request, &discovered);
        }
    }
    let response = greeting.response(request.id().unwrap_or("null"));
    let welcome = Welcome::new(greeting.result().unwrap_or("{}"));
    let agreed = greeting.version.map(|version| {
        let legacy = Legacy::new(request.clone(), greeting.wire, welcome, renewable);
        (version, Lease::Legacy(Box::new(legacy)))
    });
    Ok(Beginning {
        response,
        agreed,
        wishes: None,
        early: greeting.early,
    })
}

fn with_modern(
    server: &Upstream,
    whose: Whose,
    request: &Message,
    discovered: &str,
) -> Result<Beginning, Error> {
    let [version, capabilities, client] =
        request.param(["protocolVersion", "capabilities", "clientInfo"])?;
    let version = version
        .and_then(text)
        .filter(|version| LEGACY.contains(&&**version))
        .map_or_else(
            || Version::new(V2025_11_25),
            |version| Version::new(&version),
        );
    let result = to_legacy::initialize(&version, discovered, server.name().as_str());
    let (modern, wishes) = Modern::new(
        whose,
        to_legacy::client_capabilities(&version, capabilities),
        client.filter(|it| is_object(it)).map(str::to_owned),
        Offers::read(discovered),
    );
    Ok(Beginning {
        response: message::result(request.id().unwrap_or("null"), &result),
        agreed: Some((version, Lease::Modern(modern))),
        wishes: Some(wishes),
        early: Vec::new(),
    })
}
