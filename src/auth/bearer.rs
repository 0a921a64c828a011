//! Access tokens of the configured issuers.
//!
//! # Invariants
//! The issuer is found by its exact name before any key is looked at, so a key of one issuer never
//! vouches for another. What was checked once is remembered for a minute, by the hash of the token
//! and for as long as the issuer publishes the same keys; time and audience are checked on every
//! request. A connection remembers it without the hash ([`LastToken`](super::LastToken)), for no longer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{SHA256, digest};
use moka::future::Cache;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Identity;
use super::audience::Audiences;
use super::claims::Holder;
use super::jwt::Token;
use super::keys::Keys;
use super::refusal::Refusal;
use super::source::Source;
use crate::config::{Config, Issuer, ServerName};
use crate::upstream::client::HttpClient;

/// Checks access tokens.
#[derive(Debug)]
pub(super) struct Bearers {
    issuers: Vec<Arc<Trusted>>,
    checked: Cache<[u8; 32], Arc<Checked>>,
    client: HttpClient,
}

/// An issuer whose tokens are accepted.
#[derive(Debug)]
struct Trusted {
    config: Issuer,
    keys: Keys,
    audiences: HashMap<ServerName, Audiences>,
}

/// A token that passed every check but the ones that depend on the request.
#[derive(Debug)]
pub(super) struct Checked {
    issuer: Arc<Trusted>,
    /// When that was.
    at: SystemTime,
    /// The key set that knew the signature.
    key_set: [u8; 32],
    holder: Holder,
}

impl Bearers {
    pub(super) fn new(config: &Config, issuers: &[Issuer], client: HttpClient) -> Self {
        let trust = |issuer: &Issuer| {
            let audiences = |server: &ServerName| Audiences::of(issuer, config, server);
            Arc::new(Trusted {
                config: issuer.clone(),
                keys: Keys::new(),
                audiences: config
                    .servers
                    .keys()
                    .map(|s| (s.clone(), audiences(s)))
                    .collect(),
            })
        };
        let checked = Cache::builder()
            .max_capacity(CACHE_BYTES)
            .weigher(|_, checked: &Arc<Checked>| checked.weight())
            .time_to_live(CACHED_FOR)
            .build();
        Self {
            issuers: issuers.iter().map(trust).collect(),
            checked,
            client,
        }
    }

    /// Starts one task per issuer that keeps its keys fresh until `stop`.
    pub(super) fn start(&self, tasks: &TaskTracker, stop: &CancellationToken) {
        for issuer in &self.issuers {
            let (issuer, stop) = (Arc::clone(issuer), stop.clone());
            let config = &issuer.config;
            let source = Source::new(&config.issuer, config.keys.clone(), self.client.clone());
            tasks.spawn(async move {
                issuer
                    .keys
                    .keep_fresh(&issuer.config.issuer, source, stop)
                    .await;
            });
        }
    }

    /// Each issuer, and whether its tokens can be checked.
    pub(super) fn ready(&self) -> impl Iterator<Item = (&str, bool)> {
        let ready = |issuer: &Trusted| issuer.keys.fingerprint().is_some();
        self.issuers
            .iter()
            .map(move |issuer| (issuer.config.issuer.as_str(), ready(issuer)))
    }

    /// What is known about the token, if it passes every check but the ones that depend on the request.
    pub(super) async fn check(
        &self,
        token: &str,
        now: SystemTime,
    ) -> Result<Arc<Checked>, Refusal> {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        let remembered = self
            .checked
            .get(&hash)
            .await
            .filter(|checked| checked.still_counts());
        if let Some(checked) = remembered {
            return Ok(checked);
        }
        let checked = Arc::new(Box::pin(self.check_token(token, now)).await?);
        self.checked.insert(hash, Arc::clone(&checked)).await;
        Ok(checked)
    }

    /// Everything about a token that does not depend on the server.
    async fn check_token(&self, token: &str, now: SystemTime) -> Result<Checked, Refusal> {
        let token = Token::parse(token)?;
        let claimed = token.claims.issuer().ok_or(Refusal::MissingClaim)?;
        let issuer = self
            .issuers
            .iter()
            .find(|issuer| issuer.config.issuer == claimed);
        let issuer = Arc::clone(issuer.ok_or(Refusal::UnknownIssuer)?);
        let key_set = issuer.keys.verify(&token).await?;
        let holder = token.claims.check(token.promised, now)?;
        Ok(Checked {
            issuer,
            at: now,
            key_set,
            holder,
        })
    }
}

impl Checked {
    /// The holder of the token, if it opens the server.
    pub(super) fn admit(&self, server: &ServerName, now: SystemTime) -> Result<Identity, Refusal> {
        let Self { issuer, holder, .. } = self;
        if holder.expires <= now {
            return Err(Refusal::TokenExpired);
        }
        let audiences = issuer.audiences.get(server).ok_or(Refusal::WrongAudience)?;
        if !audiences.admit(&holder.audiences) {
            return Err(Refusal::WrongAudience);
        }
        Ok(Identity {
            principal: holder.principal.clone(),
            expires: Some(holder.expires),
        })
    }

    /// Whether the issuer still publishes the keys that the signature was checked with.
    pub(super) fn still_counts(&self) -> bool {
        self.issuer.keys.fingerprint() == Some(self.key_set)
    }

    /// Whether it was checked less than a minute ago. A clock that was set back makes it too old.
    pub(super) fn is_fresh(&self, now: SystemTime) -> bool {
        now.duration_since(self.at)
            .is_ok_and(|age| age < CACHED_FOR)
    }

    fn weight(&self) -> u32 {
        let audiences: usize = self
            .holder
            .audiences
            .iter()
            .map(|audience| audience.len() + 24)
            .sum();
        u32::try_from(CACHE_ENTRY + audiences).unwrap_or(u32::MAX)
    }
}

/// How long a checked token is remembered.
const CACHED_FOR: Duration = Duration::from_mins(1);
/// Memory for remembered tokens; about 30 000 usual ones.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;
/// What a remembered token takes beside its audiences: names of at most 255 bytes and the
/// bookkeeping.
const CACHE_ENTRY: usize = 500;
