//! A server behind the gateway, whatever it is reached over.
//!
//! # Invariants
//! - What is known about a server, and what is told of its troubles, is one for all who use it.
//! - A session stays where it was opened: its [`Wire`] says where that is.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::client::{ClientError, HttpClient};
use super::era::Eras;
use super::http::Endpoint;
use super::reply::Reply;
use super::trouble::Troubles;
use crate::config::{Config, Server, ServerName};
use crate::protocol::version::Version;

/// A server and how to reach it.
#[derive(Debug)]
pub struct Upstream {
    name: ServerName,
    endpoint: Endpoint,
    message_limit: usize,
    eras: Eras,
    troubles: Arc<Troubles>,
}

/// The session at a server that a request belongs to.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// The id that the server gave it; none when the server keeps no sessions.
    pub session: Option<HeaderValue>,
    /// The negotiated version; none before there is one.
    pub version: Option<Version>,
}

impl Upstream {
    /// The server as configured.
    ///
    /// # Errors
    /// When TLS can't be set up.
    pub fn new(server: &Server, config: &Config) -> Result<Self, rustls::Error> {
        let client = HttpClient::new(config.timeouts.connect)?;
        Ok(Self {
            name: server.name.clone(),
            endpoint: Endpoint::new(&server.url, server.headers.clone(), client),
            message_limit: config.limits.message.unwrap_or(usize::MAX),
            eras: Eras::new(server.era),
            troubles: Arc::new(Troubles::of(server)),
        })
    }

    /// Its name.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Where the operator is told what it does instead of answering.
    pub fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    /// What is known about its era.
    pub(super) fn eras(&self) -> &Eras {
        &self.eras
    }

    /// Sends a message of a session.
    ///
    /// # Errors
    /// When no answer came. [`ClientError::Connect`] means that nothing was sent.
    pub async fn post(&self, wire: &Wire, message: Bytes) -> Result<Reply, ClientError> {
        let response = self.endpoint.post(wire, message).await?;
        Ok(self.reply(response, wire))
    }

    /// Sends a request that stands for itself, with these headers beside the configured ones. To drop
    /// the future or the answer is to cancel the request (2026-07-28 streamable-http).
    ///
    /// # Errors
    /// When no answer came. [`ClientError::Connect`] means that nothing was sent.
    pub async fn ask(&self, headers: &HeaderMap, message: Bytes) -> Result<Reply, ClientError> {
        let response = self.endpoint.ask(headers, message).await?;
        Ok(self.reply(response, &Wire::default()))
    }

    /// Opens the standalone stream of a session, after the event `last` where one was seen.
    ///
    /// # Errors
    /// When no answer came.
    pub async fn listen(&self, wire: &Wire, last: Option<&Bytes>) -> Result<Reply, ClientError> {
        let response = self.endpoint.listen(wire, last).await?;
        Ok(self.reply(response, wire))
    }

    /// Ends the session at the server. What it answers doesn't matter: it may not offer this.
    ///
    /// # Errors
    /// When no answer came.
    pub async fn end(&self, wire: &Wire) -> Result<StatusCode, ClientError> {
        self.endpoint.end(wire).await
    }

    fn reply(&self, response: http::Response<hyper::body::Incoming>, wire: &Wire) -> Reply {
        let troubles = Arc::clone(&self.troubles);
        Reply::new(
            response,
            wire.session.is_some(),
            self.message_limit,
            troubles,
        )
    }
}
