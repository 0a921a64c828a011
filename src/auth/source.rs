//! Where an issuer's key set is read from: its metadata, a URL, or a file.
//!
//! # Invariants
//! Every read is bounded in time and size. Redirects are not followed. A document that names
//! another issuer is not believed (RFC 8414, section 3.3), and metadata can send the gateway only
//! to an `https` address or to the issuer's own origin.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, USER_AGENT};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use url::Url;

use crate::config::KeySource;
use crate::upstream::client::{ClientError, HttpClient};

use super::jwks::KeySet;

/// Reads one issuer's keys.
#[derive(Debug)]
pub(super) struct Source {
    issuer: String,
    from: KeySource,
    client: HttpClient,
    /// What the metadata said last.
    discovered: Option<Url>,
}

/// A key set, and how long its publisher allows it to be kept.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) keys: KeySet,
    pub(super) max_age: Option<Duration>,
}

/// Why there is no key set.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("{0} gave no answer")]
    NoAnswer(Url, #[source] ClientError),
    #[error("{0} answered {1}")]
    Status(Url, StatusCode),
    #[error("{0} is no address that can be asked")]
    Address(String, #[source] http::Error),
    #[error("{0} is not the issuer's metadata")]
    NoMetadata(Url),
    #[error("{0} names the issuer {1:?}")]
    OtherIssuer(Url, String),
    #[error(
        "the metadata names the key set {0:?}, which is neither https nor on the issuer's host"
    )]
    KeySetAddress(String),
    #[error("the issuer is no URL, so its metadata can't be found")]
    IssuerAddress,
    #[error("the file can't be read")]
    File(#[source] std::io::Error),
    #[error("the answer is no key set with a usable key")]
    NoKeys,
}

/// The members of the metadata that are needed here (RFC 8414, section 2).
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl Source {
    pub(super) fn new(issuer: &str, from: KeySource, client: HttpClient) -> Self {
        Self {
            issuer: issuer.to_owned(),
            from,
            client,
            discovered: None,
        }
    }

    /// Reads the key set. In a hurry the address that the metadata gave last is good enough.
    pub(super) async fn fetch(&mut self, hurry: Hurry) -> Result<Fetched, FetchError> {
        let url = match &self.from {
            KeySource::File(path) => return read_file(path).await,
            KeySource::Url(url) => url.clone(),
            KeySource::Discovery => match (&self.discovered, hurry) {
                (Some(known), Hurry::Yes) => known.clone(),
                (known, _) => match (self.discover().await, known) {
                    (Ok(found), _) => found,
                    (Err(_), Some(known)) => known.clone(),
                    (Err(error), None) => return Err(error),
                },
            },
        };
        let answer = get(&self.client, &url).await?;
        let max_age = max_age(answer.headers());
        let keys = KeySet::parse(answer.body()).ok_or(FetchError::NoKeys)?;
        if matches!(self.from, KeySource::Discovery) {
            self.discovered = Some(url);
        }
        Ok(Fetched { keys, max_age })
    }

    /// Asks the issuer where its keys are.
    async fn discover(&self) -> Result<Url, FetchError> {
        let issuer = Url::parse(&self.issuer).map_err(|_| FetchError::IssuerAddress)?;
        let mut first = None;
        for url in metadata_urls(&issuer) {
            match self.metadata(&issuer, url).await {
                Ok(jwks_uri) => return Ok(jwks_uri),
                // The first address is the standard's: its failure explains most.
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(FetchError::IssuerAddress))
    }

    async fn metadata(&self, issuer: &Url, url: Url) -> Result<Url, FetchError> {
        let answer = get(&self.client, &url).await?;
        let Ok(metadata) = serde_json::from_slice::<Metadata>(answer.body()) else {
            return Err(FetchError::NoMetadata(url));
        };
        if metadata.issuer != self.issuer {
            return Err(FetchError::OtherIssuer(url, metadata.issuer));
        }
        let allowed = |url: &Url| {
            let plain = url.username().is_empty() && url.password().is_none();
            plain && (url.scheme() == "https" || url.origin() == issuer.origin())
        };
        let jwks_uri = Url::parse(&metadata.jwks_uri).ok().filter(allowed);
        jwks_uri.ok_or(FetchError::KeySetAddress(metadata.jwks_uri))
    }
}

/// Whether a request is waiting for the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hurry {
    Yes,
    No,
}

/// The addresses of an issuer's metadata, in the order in which the MCP specification has them
/// tried: that of OAuth and that of `OpenID`, both with the issuer's path behind the well-known
/// name; then `OpenID`'s as it was first defined, with the path before it.
pub(super) fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/').to_owned();
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    paths.into_iter().map(at).collect()
}

async fn get(client: &HttpClient, url: &Url) -> Result<Response<Bytes>, FetchError> {
    let request = Request::get(url.as_str())
        .header(ACCEPT, "application/json, application/jwk-set+json")
        .header(
            USER_AGENT,
            concat!("contraflow/", env!("CARGO_PKG_VERSION")),
        )
        .body(Full::default())
        .map_err(|error| FetchError::Address(url.to_string(), error))?;
    let answer = client.fetch(request, WITHIN, MAX_BYTES).await;
    let answer = answer.map_err(|error| FetchError::NoAnswer(url.clone(), error))?;
    if answer.status() == StatusCode::OK {
        Ok(answer)
    } else {
        Err(FetchError::Status(url.clone(), answer.status()))
    }
}

async fn read_file(path: &Path) -> Result<Fetched, FetchError> {
    let mut json = Vec::new();
    let file = tokio::fs::File::open(path)
        .await
        .map_err(FetchError::File)?;
    // One byte more than allowed, to tell a set of exactly that size from a larger one.
    let mut file = file.take(MAX_BYTES as u64 + 1);
    file.read_to_end(&mut json)
        .await
        .map_err(FetchError::File)?;
    let keys = (json.len() <= MAX_BYTES)
        .then(|| KeySet::parse(&json))
        .flatten();
    Ok(Fetched {
        keys: keys.ok_or(FetchError::NoKeys)?,
        max_age: None,
    })
}

/// `Cache-Control: max-age` (RFC 9111, section 5.2.2.1).
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers
        .get_all(CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .find_map(|directive| {
            let (name, seconds) = directive.split_once('=')?;
            let seconds = seconds.trim().trim_matches('"').parse().ok()?;
            name.trim()
                .eq_ignore_ascii_case("max-age")
                .then(|| Duration::from_secs(seconds))
        })
}

/// Time for one answer.
const WITHIN: Duration = Duration::from_secs(5);
/// Size of one answer, or of the file.
pub(super) const MAX_BYTES: usize = 1024 * 1024;
