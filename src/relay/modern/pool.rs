//! Sessions at legacy servers for clients that hold none.
//!
//! A modern request doesn't say which session it means, so the gateway keeps one for each principal and
//! each set of capabilities: a legacy session freezes at `initialize` what its client can be asked,
//! while a modern client says it anew with each request, and servers choose their way by it. What one
//! principal's calls leave behind at a server is never seen by another's.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::OnceCell;

use super::super::Shared;
use super::super::session::{Face, LiveSession};
use super::super::teardown::Ending;
use super::super::welcome::Welcome;
use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_modern::Level;
use crate::protocol::message::{self, Message};
use crate::protocol::renewal::Generation;
use crate::protocol::version::V2025_11_25;

/// Whose session it is, and what it is good for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(super) server: ServerName,
    pub(super) principal: Principal,
    /// The lane that the client named, where sessions are kept by lane.
    pub(super) lane: Option<String>,
    /// What the session is good for; none where the first request decides for all.
    pub(super) profile: Option<ClientCapabilities>,
}

type Cell = Arc<OnceCell<Pooled>>;

/// A session.
#[derive(Clone, Debug)]
pub(super) struct Pooled {
    pub(super) session: Arc<LiveSession>,
    /// Held where the session is for one request alone.
    lease: Option<Arc<Lease>>,
}

/// Ends its session when nobody uses it any more, however that came about.
#[derive(Debug)]
struct Lease(Arc<LiveSession>);

impl Drop for Lease {
    fn drop(&mut self) {
        // Without a runtime the process is at its end, and sessions have been ended.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.0.shared.tasks.spawn(self.0.end(Ending::Deleted));
        }
    }
}

impl Pooled {
    /// What its cursors are marked with. Cursors of a session that is gone with its request can only
    /// be the server's own.
    pub(super) fn tag(&self, generation: Generation) -> Option<String> {
        let tag = || format!("{}-{generation}", self.session.tag());
        self.lease.is_none().then(tag)
    }

    /// Whether the server declared this capability.
    pub(super) fn has(&self, capability: &str) -> bool {
        self.said(|welcome| welcome.has(capability))
            .unwrap_or(false)
    }

    /// Whether the server declared `part` of this capability with the value `true`.
    pub(super) fn has_part(&self, capability: &str, part: &str) -> bool {
        self.said(|welcome| welcome.has_part(capability, part))
            .unwrap_or(false)
    }

    /// How the server describes itself (JSON text).
    pub(super) fn info(&self) -> Option<String> {
        self.said(|welcome| welcome.info().map(str::to_owned))?
    }

    /// What the server said of itself when it opened the session that is used now.
    pub(super) fn said<T>(&self, read: impl FnOnce(&Welcome) -> T) -> Option<T> {
        self.session.tenure().map(|tenure| read(&tenure.welcome))
    }

    /// Sees to it that the server logs as much as a request wants.
    pub(super) async fn prepare(&self, level: Option<Level>) {
        if let Some(level) = level.filter(|_| self.has("logging")) {
            self.session.want_logs(level).await;
        }
    }
}

/// The sessions by key. A cell is filled once; who comes meanwhile waits for it.
#[derive(Debug, Default)]
pub(crate) struct Pool(DashMap<Key, Cell>);

impl Pool {
    /// Forgets the sessions that have ended.
    pub(crate) fn sweep(&self) {
        self.0
            .retain(|_, cell| cell.get().is_none_or(|it| !it.session.ended.is_cancelled()));
    }
}

impl Shared {
    /// The session for a request, opened if need be.
    pub(super) async fn pooled(
        self: &Arc<Self>,
        key: &Key,
        declared: ClientCapabilities,
    ) -> Result<Pooled, Error> {
        loop {
            let cell = Arc::clone(&self.pool.0.entry(key.clone()).or_default());
            // Carried through: who waits for it may hang up, the server has been asked.
            let opening = || async {
                let (shared, key) = (Arc::clone(self), key.clone());
                let opened = self
                    .tasks
                    .spawn(async move { shared.open_in_own_name(&key, declared).await });
                opened.await.unwrap_or(Err(Error::SessionEnded))
            };
            let pooled = match cell.get_or_try_init(opening).await {
                Ok(pooled) => pooled.clone(),
                Err(error) => {
                    self.pool
                        .0
                        .remove_if(key, |_, it| Arc::ptr_eq(it, &cell) && !it.initialized());
                    return Err(error);
                }
            };
            if !pooled.session.is_gone() {
                pooled.session.touch();
                return Ok(pooled);
            }
            self.pool.0.remove_if(key, |_, it| Arc::ptr_eq(it, &cell));
        }
    }

    /// A session that is used for one call and ended then.
    pub(super) async fn single(
        self: &Arc<Self>,
        key: &Key,
        declared: ClientCapabilities,
    ) -> Result<Pooled, Error> {
        let (shared, key) = (Arc::clone(self), key.clone());
        let opened = self.tasks.spawn(async move {
            let mut pooled = shared.open_in_own_name(&key, declared).await?;
            pooled.lease = Some(Arc::new(Lease(Arc::clone(&pooled.session))));
            Ok(pooled)
        });
        opened.await.unwrap_or(Err(Error::SessionEnded))
    }

    /// A session for a call: its own when it is `single`, whatever becomes of an earlier one, else the one
    /// of the pool.
    pub(super) async fn session_for(
        self: &Arc<Self>,
        key: &Key,
        single: bool,
        declared: ClientCapabilities,
    ) -> Result<Pooled, Error> {
        if single {
            self.single(key, declared).await
        } else {
            self.pooled(key, declared).await
        }
    }

    /// The session for a call, whose server logs as much as the call wants.
    pub(super) async fn prepared(
        self: &Arc<Self>,
        key: &Key,
        single: bool,
        declared: ClientCapabilities,
        level: Option<Level>,
    ) -> Result<Pooled, Error> {
        let pooled = self.session_for(key, single, declared).await?;
        pooled.prepare(level).await;
        if !pooled.session.is_gone() {
            return Ok(pooled);
        }
        // The server has forgotten it, and nothing else was sent to it.
        let pooled = self.session_for(key, single, declared).await?;
        pooled.prepare(level).await;
        Ok(pooled)
    }

    async fn open_in_own_name(
        self: Arc<Self>,
        key: &Key,
        declared: ClientCapabilities,
    ) -> Result<Pooled, Error> {
        let request = initialize(key.profile.unwrap_or(declared));
        let request = Message::parse(&request.into_bytes().into())?;
        let established = self
            .establish(
                &key.server,
                &key.principal,
                &request,
                Face::Modern,
                false,
                None,
            )
            .await?;
        let Some(session) = established.session else {
            return Err(Error::Misbehaved("refused to open a session".into()));
        };
        let ready = Message::parse(&message::notification("notifications/initialized", "{}"))?;
        if let Err(error) = session.notify(&ready).await {
            session.end(Ending::Forgotten).await;
            return Err(error);
        }
        Ok(Pooled {
            session,
            lease: None,
        })
    }
}

/// An `initialize` of the gateway's own, for clients that can be asked what `profile` says.
fn initialize(profile: ClientCapabilities) -> String {
    let elicitation = match (profile.form, profile.url) {
        (false, false) => None,
        (true, false) => Some(r#""elicitation":{"form":{}}"#),
        (false, true) => Some(r#""elicitation":{"url":{}}"#),
        (true, true) => Some(r#""elicitation":{"form":{},"url":{}}"#),
    };
    let sampling = match (
        profile.sampling,
        profile.sampling_tools,
        profile.sampling_context,
    ) {
        (false, _, _) => None,
        (true, false, false) => Some(r#""sampling":{}"#),
        (true, true, false) => Some(r#""sampling":{"tools":{}}"#),
        (true, false, true) => Some(r#""sampling":{"context":{}}"#),
        (true, true, true) => Some(r#""sampling":{"tools":{},"context":{}}"#),
    };
    let roots = profile.roots.then_some(r#""roots":{}"#);
    let capabilities: Vec<_> = [elicitation, sampling, roots]
        .into_iter()
        .flatten()
        .collect();
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{V2025_11_25}","capabilities":{{{}}},"clientInfo":{{"name":"contraflow","version":"{}"}}}}}}"#,
        capabilities.join(","),
        env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_is_what_the_client_can_be_asked() {
        for bits in 0..64 {
            let profile = ClientCapabilities {
                form: bits & 1 > 0,
                url: bits & 2 > 0,
                sampling: bits & 4 > 0,
                roots: bits & 8 > 0,
                sampling_tools: bits & 0x14 == 0x14,
                sampling_context: bits & 0x24 == 0x24,
            };
            let message = Message::parse(&initialize(profile).into_bytes().into()).unwrap();
            let [capabilities] = message.param(["capabilities"]).unwrap();
            assert_eq!(ClientCapabilities::read(capabilities), profile);
        }
    }
}
