//! How a caller proves who they are.
//!
//! [`Authenticator`] turns the headers of a request into an [`Identity`], or into a [`Denied`] that
//! is ready to be sent. `bearer` checks access tokens, `api_key` checks keys, `metadata` tells
//! clients where to log in.
//!
//! ```text
//! headers ─► one credential ─┬─ API key ─► hash ─────────────────────────────► principal
//!                            └─ token ─► parse ─► issuer ─► signature ─► claims ─► audience
//!                                                              ▲
//!                            issuer ─► source ─► key set ──────┘  (one task per issuer)
//! ```
//!
//! # Invariants
//! Every request is authenticated anew; no session stands in for a credential. A credential is
//! looked for in headers only, never in the URL. Two credentials are refused, not ranked. No
//! credential, and no part of one, is in any log, error or `Debug` output.

mod api_key;
mod audience;
mod bearer;
mod claims;
mod jwks;
mod jwt;
mod keys;
mod last_token;
pub mod metadata;
pub mod principal;
mod refusal;
mod schedule;
mod source;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::SystemTime;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::api_key::ApiKeys;
use self::bearer::Bearers;
use self::refusal::Refusal;
use crate::config::{Access, Config, ServerName};
use crate::upstream::client::HttpClient;

pub use self::last_token::LastToken;
pub use self::principal::Principal;
pub use self::refusal::Denied;

/// Whether a text is a key set (RFC 7517) with a key that can be used.
pub fn is_key_set(json: &[u8]) -> bool {
    json.len() <= source::MAX_BYTES && jwks::KeySet::parse(json).is_some()
}

/// Decides who is asking.
#[derive(Debug)]
pub struct Authenticator(Mode);

#[derive(Debug)]
enum Mode {
    /// No credential is asked for, and none that comes is looked at.
    Everybody(Principal),
    Required(Box<Required>),
}

#[derive(Debug)]
struct Required {
    bearers: Bearers,
    api_keys: ApiKeys,
    /// Where each server's metadata is; empty without issuers.
    metadata: HashMap<ServerName, String>,
}

/// A caller who may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who it is.
    pub principal: Principal,
    /// When the credential stops counting, allowed clock difference included; streams end then.
    pub expires: Option<SystemTime>,
}

/// The one header that a request brought its credential in.
#[derive(Clone, Copy)]
enum Presented<'h> {
    Authorization(&'h HeaderValue),
    ApiKey(&'h HeaderValue),
}

/// What a request brought along.
enum Credential<'h> {
    Token(&'h str),
    ApiKey(&'h [u8]),
}

impl Authenticator {
    /// Prepares what the configuration asks for. `client` fetches the keys of the issuers.
    pub fn new(config: &Config, client: HttpClient) -> Self {
        let auth = match &config.access {
            Access::Local => return Self(Mode::Everybody(Principal::local())),
            Access::Open => return Self(Mode::Everybody(Principal::anonymous())),
            Access::Required(auth) => auth,
        };
        let documented = |server: &&ServerName| metadata::document(config, server).is_some();
        let address = |server: &ServerName| metadata::url(&config.public_url, server);
        Self(Mode::Required(Box::new(Required {
            bearers: Bearers::new(config, &auth.issuers, client),
            api_keys: ApiKeys::new(&auth.api_keys),
            metadata: config
                .servers
                .keys()
                .filter(documented)
                .map(|server| (server.clone(), address(server)))
                .collect(),
        })))
    }

    /// Starts fetching the issuers' keys, and keeps them fresh until `stop`. To be called once.
    pub fn start(&self, tasks: &TaskTracker, stop: &CancellationToken) {
        if let Mode::Required(required) = &self.0 {
            required.bearers.start(tasks, stop);
        }
    }

    /// Each issuer, and whether its tokens can be checked at the moment.
    pub fn ready(&self) -> Vec<(&str, bool)> {
        match &self.0 {
            Mode::Everybody(_) => Vec::new(),
            Mode::Required(required) => required.bearers.ready().collect(),
        }
    }

    /// Who sends a request with these headers to `server`, on a connection that remembers `last`. May
    /// wait some seconds for an issuer's keys.
    ///
    /// # Errors
    /// [`Denied`] when nobody is proved to, or the one who is may not use this server.
    pub async fn authenticate(
        &self,
        server: &ServerName,
        headers: &HeaderMap,
        now: SystemTime,
        last: &LastToken,
    ) -> Result<Identity, Denied> {
        let required = match &self.0 {
            Mode::Everybody(principal) => {
                return Ok(Identity {
                    principal: principal.clone(),
                    expires: None,
                });
            }
            Mode::Required(required) => required,
        };
        required
            .authenticate(server, headers, now, last)
            .await
            .map_err(|refusal| {
                let metadata = required.metadata.get(server).map(String::as_str);
                Denied::new(refusal, metadata::challenge(refusal, metadata))
            })
    }
}

impl Required {
    async fn authenticate(
        &self,
        server: &ServerName,
        headers: &HeaderMap,
        now: SystemTime,
        last: &LastToken,
    ) -> Result<Identity, Refusal> {
        let presented = Presented::find(headers)?;
        if let Presented::Authorization(value) = presented
            && let Some(checked) = last.recall(value.as_bytes(), now)
        {
            return checked.admit(server, now);
        }
        match presented.credential()? {
            Credential::Token(token) => {
                let checked = Box::pin(self.bearers.check(token, now)).await?;
                if let Presented::Authorization(value) = presented {
                    last.remember(value.as_bytes(), &checked);
                }
                checked.admit(server, now)
            }
            Credential::ApiKey(key) => {
                let principal = self.api_keys.check(key, server)?;
                Ok(Identity {
                    principal,
                    expires: None,
                })
            }
        }
    }
}

impl<'h> Presented<'h> {
    /// Where the one credential of a request is (RFC 6750, section 2.1, and `X-API-Key`).
    fn find(headers: &'h HeaderMap) -> Result<Self, Refusal> {
        let mut authorizations = headers.get_all(AUTHORIZATION).iter();
        let mut keys = headers.get_all(API_KEY).iter();
        let found = (
            authorizations.next(),
            authorizations.next(),
            keys.next(),
            keys.next(),
        );
        match found {
            (None, _, None, _) => Err(Refusal::NoCredentials),
            (Some(value), None, None, _) => Ok(Self::Authorization(value)),
            (None, _, Some(key), None) => Ok(Self::ApiKey(key)),
            _ => Err(Refusal::SeveralCredentials),
        }
    }

    /// The credential itself.
    fn credential(self) -> Result<Credential<'h>, Refusal> {
        let value = match self {
            Self::Authorization(value) => value,
            Self::ApiKey(key) => return Credential::key(key.as_bytes()),
        };
        if value.len() > MAX_BYTES {
            return Err(Refusal::TokenTooLarge);
        }
        let value = value.to_str().map_err(|_| Refusal::MalformedCredentials)?;
        let (scheme, credential) = value.split_once(' ').unwrap_or((value, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Refusal::UnsupportedScheme);
        }
        let credential = credential.trim();
        if credential.is_empty() || !credential.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Refusal::MalformedCredentials);
        }
        if jwt::looks_like_jwt(credential) {
            Ok(Credential::Token(credential))
        } else {
            Credential::key(credential.as_bytes())
        }
    }
}

impl<'h> Credential<'h> {
    fn key(key: &'h [u8]) -> Result<Self, Refusal> {
        match key.len() {
            0 => Err(Refusal::MalformedCredentials),
            1..=MAX_BYTES => Ok(Self::ApiKey(key)),
            _ => Err(Refusal::TokenTooLarge),
        }
    }
}

/// The header for API keys, beside `Authorization: Bearer`.
const API_KEY: &str = "x-api-key";
/// Longest credential that is looked at.
const MAX_BYTES: usize = 16 * 1024;
