//! The one outgoing HTTP client: pools, TLS, no redirects, no decompression, no invented headers.
//!
//! Servers and key sets are all reached through it, so that time limits and size limits exist once.

mod connection;
mod framing;
mod listening;
mod origin;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use parking_lot::Mutex;
use rustls_platform_verifier::BuilderVerifierExt as _;

pub use self::connection::Incoming;
pub use self::listening::Listening;
use self::origin::Connector;
pub(super) use self::origin::Origin;
use super::command::NotStarted;

/// An HTTP client for one server or issuer, with connections of its own. Clones share them.
#[derive(Clone, Debug)]
pub struct HttpClient {
    connector: Connector,
    origins: Arc<Mutex<HashMap<Place, Arc<Origin>>>>,
}

/// What tells origins apart.
type Place = (Option<Scheme>, Option<Authority>);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No connection, so surely nothing was sent.
    #[error("could not connect")]
    Connect(#[source] BoxError),
    /// The program that the server is can't be started.
    #[error("the program can't be started")]
    Start(#[source] NotStarted),
    /// It could not be reached again and again, and is left alone for so long.
    #[error("it could not be reached several times, and is tried again in {0:?}")]
    Resting(Duration),
    /// As many processes of it run as may.
    #[error("there are too many processes of it")]
    Full,
    /// The connection broke: what was sent may have been acted on.
    #[error("the connection broke")]
    Broken(#[source] BoxError),
    /// The time ran out.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The answer is larger than it may be.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
}

impl ClientError {
    /// Whether it could not be reached, and surely nothing was sent: it may be there in a moment, or at another
    /// of its addresses.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Resting(_))
    }
}

impl HttpClient {
    /// Makes a client that gives up connecting after `connect`.
    ///
    /// # Errors
    /// When TLS can't be set up.
    pub fn new(connect: Duration) -> Result<Self, rustls::Error> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(connect));
        // A stream that waits for a person is silent; without this a dead one would look the same.
        http.set_keepalive(Some(Duration::from_secs(30)));
        let tls = tls()?;
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            // HTTP/2 would put all streams of a server on one connection, and the server's limit on
            // streams would then hold up every message beside them.
            .enable_http1()
            .wrap_connector(http);
        Ok(Self {
            connector: https,
            origins: Arc::default(),
        })
    }

    /// The origin of an absolute URI. One that is not absolute can't be reached.
    pub(super) fn origin(&self, uri: &Uri) -> Arc<Origin> {
        let place = (uri.scheme().cloned(), uri.authority().cloned());
        let mut origins = self.origins.lock();
        let known = origins.entry(place);
        Arc::clone(known.or_insert_with(|| Origin::of(uri, self.connector.clone())))
    }

    /// Sends a request and waits for the head of the answer, however long that takes.
    ///
    /// # Errors
    /// [`ClientError::Connect`] when surely nothing was sent, [`ClientError::Broken`] otherwise.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ClientError> {
        let origin = self.origin(request.uri());
        origin.send(Box::new(request), || ()).await
    }

    /// Sends a request and reads the whole answer, bounded in time and size.
    ///
    /// # Errors
    /// As [`send`](Self::send), and when the time or the size is exceeded.
    pub async fn fetch(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
        limit: usize,
    ) -> Result<Response<Bytes>, ClientError> {
        let fetch = async {
            let (head, body) = self.send(request).await?.into_parts();
            Ok(Response::from_parts(head, read(body, limit).await?))
        };
        tokio::time::timeout(within, fetch)
            .await
            .map_err(|_| ClientError::Timeout(within))?
    }
}

/// The system's certificate store. A machine without one can still reach servers over plain HTTP; over
/// HTTPS it trusts nobody.
fn tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let builder = || {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
    };
    Ok(match builder()?.with_platform_verifier() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "no system certificates; servers can't be reached over https");
            let nobody = rustls::RootCertStore::empty();
            builder()?
                .with_root_certificates(nobody)
                .with_no_client_auth()
        }
    })
}

/// Reads the body of an answer, of at most `limit` bytes.
///
/// # Errors
/// [`ClientError::TooLarge`] beyond that, [`ClientError::Broken`] when the connection breaks.
pub async fn read<B>(mut body: B, limit: usize) -> Result<Bytes, ClientError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let collected = collect(&mut body, limit).await;
    collected.map_err(|unread| match unread {
        Unread::TooLarge => ClientError::TooLarge(limit),
        Unread::Broken(error) => ClientError::Broken(error.into()),
    })
}

/// Why a body was not read to its end.
#[derive(Debug)]
pub enum Unread<E> {
    /// It is larger than it may be.
    TooLarge,
    /// It broke off.
    Broken(E),
}

/// Bytes of a body that is copied rather than kept with the buffer that it was read into.
const SMALL: usize = 2048;

/// Collects a body of at most `limit` bytes, whoever sent it.
///
/// # Errors
/// When it is larger, and when it breaks off. What follows is left in it.
pub async fn collect<B>(body: &mut B, limit: usize) -> Result<Bytes, Unread<B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Unread::Broken)?.into_data() else {
            continue;
        };
        if first.len() + all.len() + data.len() > limit {
            return Err(Unread::TooLarge);
        }
        // Most bodies are one frame: that one is passed on without a copy.
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    Ok(if !all.is_empty() {
        all.freeze()
    } else if first.len() <= SMALL {
        // A slice keeps the buffer that it was read into, which could be used again.
        Bytes::copy_from_slice(&first)
    } else {
        first
    })
}
