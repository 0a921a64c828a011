//! The addresses of one server over Streamable HTTP.
//!
//! # Invariants
//! - A session stays at the address where it was opened. New sessions, and requests that stand for
//!   themselves, are spread over those that can be reached.
//! - An address that can't be reached is left alone for a while, and its callers hear so at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use url::Url;

use super::client::{ClientError, HttpClient, Incoming};
use super::http::Endpoint;
use super::reply::Source;
use super::server::Wire;

/// The addresses, at least one.
#[derive(Debug)]
pub(super) struct Endpoints {
    all: Vec<Endpoint>,
    next: AtomicUsize,
}

impl Endpoints {
    pub(super) fn new(urls: &[Url], headers: &HeaderMap, client: &HttpClient) -> Self {
        let endpoint = |url| Endpoint::new(url, headers.clone(), client);
        Self {
            all: urls.iter().map(endpoint).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// The address for a new session: one after the other of those that don't rest. Where all do, the
    /// next one, which says so.
    pub(super) fn choose(&self) -> usize {
        let count = self.all.len().max(1);
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..count).map(|step| start.wrapping_add(step) % count);
        let awake = |place: &usize| self.all.get(*place).is_some_and(|it| !it.rests());
        let mut awake = in_turn.filter(awake);
        awake.next().unwrap_or(start % count)
    }

    /// Whether a session should be moved: its address rests, and another does not.
    pub(super) fn is_lost(&self, place: usize) -> bool {
        self.all.len() > 1
            && self.all.get(place).is_some_and(Endpoint::rests)
            && !self.all.iter().all(Endpoint::rests)
    }

    /// Sends a message of a session.
    pub(super) async fn post(
        &self,
        wire: &Wire,
        message: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        self.at(wire.place)?.post(wire, message).await
    }

    /// Sends a request that stands for itself. Another address is tried where one can't be reached.
    pub(super) async fn ask(
        &self,
        headers: &HeaderMap,
        message: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut last = None;
        for _ in &self.all {
            let endpoint = self.at(self.choose())?;
            match endpoint.ask(headers, message.clone()).await {
                Err(error @ ClientError::Connect(_)) => last = Some(error),
                // What was tried says more.
                Err(error @ ClientError::Resting(_)) => last = last.or(Some(error)),
                other => return other,
            }
        }
        Err(last.unwrap_or(ClientError::Full))
    }

    /// Opens the standalone stream of a session.
    pub(super) async fn listen(
        &self,
        wire: &Wire,
        last: Option<&Bytes>,
    ) -> Result<Response<Source>, ClientError> {
        self.at(wire.place)?.listen(wire, last).await
    }

    /// Ends a session.
    pub(super) async fn end(&self, wire: &Wire) -> Result<StatusCode, ClientError> {
        self.at(wire.place)?.end(wire).await
    }

    /// The address at this place.
    fn at(&self, place: usize) -> Result<&Endpoint, ClientError> {
        // There is no place without an address.
        self.all.get(place).ok_or(ClientError::Full)
    }
}
