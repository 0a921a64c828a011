//! Modern clients at legacy servers: what the specification says fails.
//!
//! A modern client holds no session and can't be asked in the middle of a request; a legacy server knows
//! nothing else. So the gateway holds the session ([`pool`]), keeps the server's request in flight while
//! the client is away ([`call`], [`lot`]), and gives the client a sealed state to come back with
//! ([`seal`]). A tool that the server runs as a task only is driven as one ([`tasks`]).

mod attempt;
pub(super) mod call;
mod cursor;
mod discover;
mod kept;
pub(super) mod listen;
mod listening;
pub(super) mod lot;
mod outlet;
mod parks;
mod pass;
pub(super) mod pool;
mod retry;
pub(super) mod seal;
pub(super) mod tasks;
mod telling;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use tokio::sync::mpsc::channel;

use self::attempt::Attempt;
use self::call::Driver;
use self::outlet::Outlet;
use self::pool::{Key, Pooled};
use self::seal::CallId;
use super::approval::Consent;
use super::caller::{Caller, is_headless, says_headless};
use super::{Answer, Relay, Shared};
use crate::auth::Principal;
use crate::config::{Profile, Server, ServerName, SessionScope};
use crate::error::Error;
use crate::limit::Admission;
use crate::policy::Policy;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_modern::{self, Rejected, Request};
use crate::protocol::era::Era;
use crate::protocol::message::Message;
use crate::protocol::modern::may_ask;
use crate::protocol::object::edit;
use crate::protocol::parked::{Call, Limits};
use crate::protocol::tasks::Task;

/// Numbers the calls of the process: the id under which a session knows a call of several clients.
static CALLS: AtomicU64 = AtomicU64::new(1);

impl Relay {
    /// Answers a request of a modern client, which came with the headers `from`.
    ///
    /// # Errors
    /// When it is refused, or its server can't be reached.
    pub async fn modern(
        &self,
        server: &ServerName,
        principal: &Principal,
        message: &Message,
        request: &Request<'_>,
        from: &HeaderMap,
    ) -> Result<Answer, Error> {
        let shared = &self.0;
        if shared.ending.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let upstream = shared.server(server)?;
        let era = upstream.era().await.map_err(|unknown| unknown.error)?;
        let config = &shared.config;
        let headless = says_headless(from) || is_headless(config, principal);
        let caller = Caller::new(request.capabilities, request.info, headless);
        if era == Era::Modern {
            let admission = shared.limiter.admit(server, principal)?;
            let message = message.clone();
            return self
                .through(server, principal, message, from, caller, admission)
                .await;
        }
        let lane = match config
            .servers
            .get(server)
            .map(|it| config.session_scope(it))
        {
            Some(SessionScope::Lane) => lane(from)?,
            _ => None,
        };
        let policy = shared.policy(server)?;
        let visit = Visit {
            lane,
            declared: caller.declared(request.capabilities, policy),
            caller: Arc::new(caller),
            policy,
            shared,
            server,
            principal,
            message,
            request,
        };
        if client_modern::is_gone(message.method()) {
            return Err(Rejected::Method.into());
        }
        if visit.continues() {
            return visit.come_back().await;
        }
        match message.method() {
            "server/discover" => visit.discover().await,
            "subscriptions/listen" => visit.listen().await,
            method if may_ask(method) => visit.call().await,
            _ => visit.pass().await,
        }
    }
}

/// A request on its way to a legacy server.
struct Visit<'v> {
    /// The lane that it names, where sessions are kept by lane.
    lane: Option<String>,
    /// Whom the questions of the request are for.
    caller: Arc<Caller>,
    policy: &'v Arc<Policy>,
    /// What the server sees that it may ask.
    declared: ClientCapabilities,
    shared: &'v Arc<Shared>,
    server: &'v ServerName,
    principal: &'v Principal,
    message: &'v Message,
    request: &'v Request<'v>,
}

impl Visit<'_> {
    fn key(&self) -> Key {
        let pinned = self
            .config()
            .is_some_and(|server| server.profile == Profile::Pinned);
        Key {
            server: self.server.clone(),
            principal: self.principal.clone(),
            lane: self.lane.clone(),
            profile: (!pinned).then_some(self.declared),
        }
    }

    fn config(&self) -> Option<&Server> {
        self.shared
            .config
            .servers
            .get(self.server)
            .map(|server| &**server)
    }

    /// Whether a session serves one call only. Without authentication that is so whatever the
    /// configuration says: such calls have nobody in common.
    fn is_single(&self) -> bool {
        let scope = self
            .config()
            .map(|server| self.shared.config.session_scope(server));
        self.principal.is_anonymous() || scope == Some(SessionScope::Call)
    }

    async fn session(&self) -> Result<Pooled, Error> {
        self.shared
            .session_for(&self.key(), self.is_single(), self.declared)
            .await
    }

    /// A request whose server may ask something in its midst.
    async fn call(&self) -> Result<Answer, Error> {
        let (id, inner) = (CallId::random()?, inner_id());
        let (attempt, sent, as_task) = match self.begin(&inner).await {
            // It ended in between, so nothing was sent.
            Err(Error::UnknownSession) => self.begin(&inner).await,
            begun => begun,
        }
        .map_err(|error| match error {
            // Of the gateway's session the client knows nothing.
            Error::UnknownSession => Error::SessionEnded,
            other => other,
        })?;
        let (outlet, answer) = Outlet::new(
            self.message.id().unwrap_or("null"),
            self.request.token,
            self.request.level,
        );
        let (retries, desk) = channel(1);
        let driver = Driver {
            id,
            call: Call::new(self.limits(&attempt), self.request.capabilities),
            attempt,
            key: self.key(),
            inner,
            sent,
            fresh: true,
            method: self.message.method().to_owned(),
            request: self.fingerprint(),
            bound: seal::bound_to(self.server, self.principal),
            retries: desk,
            outlet: Some(outlet),
            single: self.is_single(),
            task: as_task.then(Task::default),
            parking: None,
            answering: None,
        };
        self.shared.lot.open(id, retries);
        self.shared.calls.spawn(driver.run());
        answer.await.unwrap_or(Err(Error::SessionEnded))
    }

    /// Sends a call to the server; gives what was sent, too, and whether as a task.
    async fn begin(&self, inner: &str) -> Result<(Attempt, Message, bool), Error> {
        let admission = self.admit()?;
        let pooled = self
            .shared
            .prepared(
                &self.key(),
                self.is_single(),
                self.declared,
                self.request.level,
            )
            .await?;
        if !is_offered(self.message.method(), &pooled) {
            return Err(Rejected::Method.into());
        }
        let request = self.for_server(inner, &pooled)?;
        let (request, as_task) = match (self.message.method(), &self.request.target) {
            ("tools/call", Some(tool)) => pooled.as_the_tool_runs(request, tool).await,
            _ => (request, false),
        };
        if pooled.session.is_gone() {
            return Err(Error::UnknownSession);
        }
        let consent = Consent::default();
        let attempt = Attempt::begin(
            pooled,
            request.clone(),
            &self.caller,
            consent,
            admission,
            as_task,
        );
        let attempt = attempt.await?;
        Ok((attempt, request, as_task))
    }

    fn admit(&self) -> Result<Admission, Error> {
        Ok(self.shared.limiter.admit(self.server, self.principal)?)
    }

    /// The request as a legacy server takes it, under an id and a progress token of our own: two
    /// clients of a session may use the same ones. A call has a token always, since the client may want
    /// progress only when it comes back.
    fn for_server(&self, inner: &str, pooled: &Pooled) -> Result<Message, Error> {
        let wanted = self.request.token.is_some() || may_ask(self.message.method());
        let whole = std::str::from_utf8(self.message.bytes()).unwrap_or_default();
        let params = self.message.params().unwrap_or("{}");
        let params = match pooled.tag(pooled.session.generation()) {
            Some(tag) => cursor::unwrap(params, &tag)?,
            None => params.into(),
        };
        let params = client_modern::to_legacy(&params, wanted.then_some(inner));
        let whole = edit(whole, &[("id", Some(inner)), ("params", params.as_deref())])
            .map_err(|_| Error::Misbehaved("could not be asked".into()))?;
        Ok(Message::parse(&Bytes::from(whole.into_owned()))?)
    }

    fn limits(&self, attempt: &Attempt) -> Limits {
        let tenure = attempt.pooled.session.tenure();
        Limits {
            guessed: tenure.is_some_and(|tenure| tenure.wire.is_link()),
            park: self
                .policy
                .patience()
                .unwrap_or(self.shared.config.timeouts.question),
            ..Limits::default()
        }
    }

    fn fingerprint(&self) -> [u8; 32] {
        let target = self.request.target.as_deref().unwrap_or_default();
        seal::fingerprint(self.message.method(), target, self.request.arguments)
    }
}

/// Whether a server may be asked this: it declared what the method needs, or we never heard of the
/// method and it is the server's to judge.
fn is_offered(method: &str, pooled: &Pooled) -> bool {
    !is_known(method) || is_declared(method, pooled)
}

/// Whether a method belongs to a capability.
fn is_known(method: &str) -> bool {
    let family = method.split_once('/').map_or("", |(family, _)| family);
    matches!(
        family,
        "tools" | "prompts" | "resources" | "completion" | "tasks"
    )
}

/// Whether a server declared the capability that this method belongs to.
fn is_declared(method: &str, pooled: &Pooled) -> bool {
    let capability = match method.split_once('/') {
        Some(("tools", _)) => "tools",
        Some(("prompts", _)) => "prompts",
        Some(("resources", _)) => "resources",
        Some(("completion", _)) => "completions",
        // Tasks of the revision before are not offered here, and what we never heard of was not declared.
        _ => return false,
    };
    pooled.has(capability)
}

/// The header that names a lane: several conversations of one principal with a server that keeps
/// state, each apart from the others.
const LANE: HeaderName = HeaderName::from_static("contraflow-lane");

/// The lane that a request names.
fn lane(from: &HeaderMap) -> Result<Option<String>, Rejected> {
    const LONGEST: usize = 128;
    let Some(lane) = from.get(LANE) else {
        return Ok(None);
    };
    match lane.to_str() {
        Ok(lane) if lane.len() <= LONGEST => Ok(Some(lane.to_owned())),
        _ => Err(Rejected::Header(
            "the contraflow-lane header is malformed".to_owned(),
        )),
    }
}

fn inner_id() -> String {
    format!("\"cf-{}\"", CALLS.fetch_add(1, Ordering::Relaxed))
}

/// The capabilities of a client that can be asked nothing.
const NOTHING: ClientCapabilities = ClientCapabilities {
    form: false,
    url: false,
    sampling: false,
    roots: false,
    sampling_tools: false,
    sampling_context: false,
};
