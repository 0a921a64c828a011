//! A hook that is a URL: told in the body of a POST, heard in the body of the answer.
//!
//! # Invariants
//! - Only a status of success carries an answer. Redirects are not followed: whoever may answer is who
//!   stands in the configuration.
//! - Of the URL only the origin is ever shown: people put keys into paths and queries.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::Full;
use url::Url;

use super::{HookError, MAX_OUTPUT, Reply};
use crate::upstream::client::{ClientError, HttpClient};

/// Where a hook is asked over HTTP.
#[derive(Clone)]
pub struct Endpoint {
    client: HttpClient,
    url: Url,
    headers: HeaderMap,
}

impl Endpoint {
    /// A URL, reached by this client. The headers go with every request, and are never shown.
    pub fn new(client: HttpClient, url: Url, headers: HeaderMap) -> Self {
        Self {
            client,
            url,
            headers,
        }
    }

    /// Scheme, host and port.
    pub(super) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub(super) async fn ask(&self, input: Bytes, within: Duration) -> Result<Reply, HookError> {
        let uri = self.url.as_str().parse::<http::Uri>();
        let mut request = Request::post(uri.map_err(|_| HookError::Address)?)
            .body(Full::new(input))
            .map_err(|_| HookError::Address)?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, JSON);
        headers.insert(USER_AGENT, AGENT);
        headers.extend(self.headers.clone());
        headers.insert(CONTENT_TYPE, JSON);
        let answer = self.client.fetch(request, within, MAX_OUTPUT).await;
        let answer = answer.map_err(|error| match error {
            ClientError::Timeout(_) => HookError::Timeout(within),
            ClientError::TooLarge(_) => HookError::TooMuch("the answer"),
            error => HookError::Unreachable(error),
        })?;
        if answer.status().is_success() {
            Ok(Reply::Output(answer.into_body()))
        } else {
            Err(HookError::Status(answer.status()))
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("origin", &self.origin())
            .finish_non_exhaustive()
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("contraflow/", env!("CARGO_PKG_VERSION")));
