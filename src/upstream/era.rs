//! Finds out which era a server speaks, and keeps what a modern one discovered.
//!
//! What an answer means and how long it counts is decided in [`protocol::era`](crate::protocol::era);
//! here it is asked. The credentials of a server are part of its configuration, so what is known
//! about it is known for all its callers.
//!
//! # Invariants
//! - One probe at a time for each server; who comes meanwhile waits for its answer, and takes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::client::ClientError;
use super::fault::no_message;
use super::programs::Whose;
use super::reply::Reply;
use super::server::Upstream;
use super::trouble::Trouble;
use crate::config::ServerEra;
use crate::error::Error;
use crate::protocol::era::{Era, Knowledge, Verdict, judge};
use crate::protocol::message::Message;
use crate::protocol::mirror::Marks;
use crate::protocol::server_legacy::Answered;
use crate::protocol::server_modern::{self, Envelope};

/// What is known about one server, and who is finding out.
#[derive(Debug)]
pub(super) struct Eras {
    knowledge: Mutex<Knowledge>,
    /// What the last probe found, and when.
    probing: tokio::sync::Mutex<Option<(Instant, Result<Era, NoVerdict>)>>,
    next_id: AtomicU64,
}

/// What a server speaks.
#[derive(Clone, Debug)]
pub enum Spoken {
    /// An old version, in sessions.
    Legacy,
    /// A new one; this is what it discovered (JSON text).
    Modern(Arc<str>),
}

/// The server's era could not be found out.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the era of the server is unknown")]
pub struct NoVerdict {
    /// Why.
    #[source]
    pub error: Error,
    /// Whether there is a server at all.
    pub reached: bool,
}

/// How long a server may take to answer a probe.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who the gateway is, where it asks something itself.
pub const GATEWAY: &str = concat!(
    r#"{"name":"contraflow","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

impl Eras {
    pub(super) fn new(setting: ServerEra) -> Self {
        let fixed = match setting {
            ServerEra::Auto => None,
            ServerEra::Legacy => Some(Era::Legacy),
            ServerEra::Modern => Some(Era::Modern),
        };
        Self {
            knowledge: Mutex::new(Knowledge::new(fixed)),
            probing: tokio::sync::Mutex::new(None),
            next_id: AtomicU64::new(1),
        }
    }
}

impl Upstream {
    /// An id (JSON text) that no request to this server had.
    pub fn next_id(&self) -> String {
        self.eras()
            .next_id
            .fetch_add(1, Ordering::Relaxed)
            .to_string()
    }

    /// The era that the server speaks; asks it, if that isn't known or not any more.
    ///
    /// # Errors
    /// When its answer says nothing about that, or there was none.
    pub async fn era(&self) -> Result<Era, NoVerdict> {
        if let Some(era) = self.believed() {
            return Ok(era);
        }
        self.probe_together().await
    }

    /// The era, and what a modern server discovered: from memory while the server allows it, else asked
    /// again.
    ///
    /// # Errors
    /// As [`era`](Self::era); and [`Error::NoVersion`] when a modern server discovers nothing.
    pub async fn spoken(&self) -> Result<Spoken, NoVerdict> {
        let known = || {
            let knowledge = self.eras().knowledge.lock();
            match knowledge.era(now())? {
                Era::Legacy => Some(Spoken::Legacy),
                Era::Modern => Some(Spoken::Modern(knowledge.discovered(now())?)),
            }
        };
        if let Some(spoken) = known() {
            return Ok(spoken);
        }
        match self.probe_together().await? {
            Era::Legacy => Ok(Spoken::Legacy),
            Era::Modern => {
                let discovered = self.eras().knowledge.lock().stale();
                discovered.map(Spoken::Modern).ok_or(NoVerdict {
                    error: Error::NoVersion,
                    reached: true,
                })
            }
        }
    }

    /// Something speaks against what is known: the next one to ask finds out again.
    pub fn doubt_era(&self) {
        tracing::info!(server = %self.name(), "the era of the server is in doubt");
        self.eras().knowledge.lock().doubt();
    }

    fn believed(&self) -> Option<Era> {
        self.eras().knowledge.lock().era(now())
    }

    /// Probes, or takes what a probe found that ended while this one waited for its turn.
    async fn probe_together(&self) -> Result<Era, NoVerdict> {
        let asked = now();
        let mut last = self.eras().probing.lock().await;
        if let Some((ended, found)) = &*last
            && *ended >= asked
        {
            return found.clone();
        }
        let found = self.probe().await;
        *last = Some((now(), found.clone()));
        found
    }

    async fn probe(&self) -> Result<Era, NoVerdict> {
        let asked = tokio::time::timeout(PATIENCE, self.ask_discovery()).await;
        let (verdict, error) = match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                self.troubles().tell(&Trouble::Lost(&error));
                let reached = !matches!(
                    error,
                    ClientError::Connect(_) | ClientError::Start(_) | ClientError::Resting(_)
                );
                (Verdict::Unclear, Some((error.into(), reached)))
            }
            // 2026-07-28 transports/stdio: silence is how old programs take what they don't know.
            Err(_) if self.is_program() => (Verdict::Legacy, None),
            Err(_) => {
                self.troubles().tell(&Trouble::Slow(PATIENCE));
                (Verdict::Unclear, Some((Error::Slow(PATIENCE), true)))
            }
        };
        let mut chance = [128];
        let _steady = aws_lc_rs::rand::fill(&mut chance);
        let [chance] = chance;
        let era = self.eras().knowledge.lock().learn(now(), &verdict, chance);
        if let Some(era) = era.filter(|_| error.is_none()) {
            tracing::info!(server = %self.name(), ?era, "found out which era the server speaks");
        }
        era.ok_or_else(|| {
            let (error, reached) = error.unwrap_or((Error::Unreachable, true));
            NoVerdict { error, reached }
        })
    }

    async fn ask_discovery(&self) -> Result<(Verdict, Option<(Error, bool)>), ClientError> {
        let id = self.next_id();
        let envelope = Envelope {
            capabilities: "{}",
            client: Some(GATEWAY),
            log_level: None,
        };
        let body = server_modern::own_request(&id, "server/discover", "{}", &envelope);
        let Ok(message) = Message::parse(&body) else {
            return Ok((Verdict::Unclear, None));
        };
        let headers = server_modern::headers(&message, &Marks::default());
        // A process of its own: some programs end when they are asked what they don't know, and others
        // speak in the era of the first message only.
        let whose = Whose::alone();
        let reply = match self.ask(&whose, &headers, body.clone()).await {
            Err(ClientError::Connect(_)) => self.ask(&whose, &headers, body).await?,
            other => other?,
        };
        let (head, refused) = (reply.head(), reply.refused());
        let response = response(reply, &id).await;
        let verdict = match judge(head.status.as_u16(), response.as_ref()) {
            // It ended without a word.
            Verdict::Unclear if self.is_program() => Verdict::Legacy,
            verdict => verdict,
        };
        if verdict != Verdict::Unclear {
            return Ok((verdict, None));
        }
        self.troubles().tell(&Trouble::Answered(&head));
        let error = refused.unwrap_or_else(|| no_message(head.status));
        Ok((verdict, Some((error, true))))
    }
}

/// The response in an answer, however it comes.
async fn response(reply: Reply, id: &str) -> Option<Message> {
    if reply.what != Answered::Events {
        return Message::parse(&reply.whole().await.ok()?).ok();
    }
    let mut events = reply.events();
    while let Ok(Some(event)) = events.next().await {
        if let Ok(message) = Message::parse(&event.data)
            && message.is_response()
            && message.id() == Some(id)
        {
            return Some(message);
        }
    }
    None
}

#[expect(clippy::disallowed_methods, reason = "beliefs are dated")]
fn now() -> Instant {
    Instant::now()
}
