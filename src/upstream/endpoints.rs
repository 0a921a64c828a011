//! The addresses of one server over Streamable HTTP.
//!
//! # Invariants
//! - A session stays at the address where it was opened. New sessions, and requests that stand for
//!   themselves, are spread over those that can be reached.
//! - An address that can't be reached is left alone for a while, and its callers hear so at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use parking_lot::Mutex;
use url::Url;

use super::breaker::Breaker;
use super::client::{ClientError, HttpClient};
use super::http::Endpoint;
use super::server::Wire;

/// The addresses, at least one.
#[derive(Debug)]
pub(super) struct Endpoints {
    all: Vec<Address>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Address {
    endpoint: Endpoint,
    breaker: Mutex<Breaker>,
}

impl Endpoints {
    pub(super) fn new(urls: &[Url], headers: &HeaderMap, client: &HttpClient) -> Self {
        let address = |url| Address {
            endpoint: Endpoint::new(url, headers.clone(), client.clone()),
            breaker: Mutex::default(),
        };
        Self {
            all: urls.iter().map(address).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// The address for a new session: one after the other of those that don't rest. Where all do, the
    /// next one, which says so.
    pub(super) fn choose(&self) -> usize {
        let count = self.all.len().max(1);
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let now = now();
        let in_turn = (0..count).map(|step| start.wrapping_add(step) % count);
        let awake = |place: &usize| {
            let address = self.all.get(*place);
            address.is_some_and(|it| !it.breaker.lock().rests(now))
        };
        let mut awake = in_turn.filter(awake);
        awake.next().unwrap_or(start % count)
    }

    /// Whether a session should be moved: its address rests, and another does not.
    pub(super) fn is_lost(&self, place: usize) -> bool {
        let now = now();
        let rests = |address: &Address| address.breaker.lock().rests(now);
        self.all.len() > 1 && self.all.get(place).is_some_and(rests) && !self.all.iter().all(rests)
    }

    /// Sends a message of a session.
    pub(super) async fn post(
        &self,
        wire: &Wire,
        message: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let address = self.at(wire.place)?;
        address.heard(address.endpoint.post(wire, message).await)
    }

    /// Sends a request that stands for itself. Another address is tried where one can't be reached.
    pub(super) async fn ask(
        &self,
        headers: &HeaderMap,
        message: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut last = None;
        for _ in &self.all {
            let address = match self.at(self.choose()) {
                Ok(address) => address,
                Err(resting) => return Err(last.unwrap_or(resting)),
            };
            match address.heard(address.endpoint.ask(headers, message.clone()).await) {
                Err(error @ ClientError::Connect(_)) => last = Some(error),
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
    ) -> Result<Response<Incoming>, ClientError> {
        let address = self.at(wire.place)?;
        address.heard(address.endpoint.listen(wire, last).await)
    }

    /// Ends a session.
    pub(super) async fn end(&self, wire: &Wire) -> Result<StatusCode, ClientError> {
        let address = self.at(wire.place)?;
        address.heard(address.endpoint.end(wire).await)
    }

    /// The address at this place, unless it rests.
    fn at(&self, place: usize) -> Result<&Address, ClientError> {
        // There is no place without an address.
        let address = self.all.get(place).ok_or(ClientError::Full)?;
        let mut breaker = address.breaker.lock();
        breaker.ask(now()).map_err(ClientError::Resting)?;
        drop(breaker);
        Ok(address)
    }
}

impl Address {
    fn heard<T>(&self, answer: Result<T, ClientError>) -> Result<T, ClientError> {
        match &answer {
            Ok(_) => self.breaker.lock().good(),
            Err(ClientError::Connect(_)) => self.breaker.lock().bad(now()),
            // It was reached, and that is all that counts here.
            Err(_) => {}
        }
        answer
    }
}

#[expect(clippy::disallowed_methods, reason = "who rests is told by the clock")]
fn now() -> Instant {
    Instant::now()
}
