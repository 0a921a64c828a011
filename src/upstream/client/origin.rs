//! The connections to one origin, and those of them that wait for another request.
//!
//! # Invariants
//! - A request goes on a connection of its own, so that none waits behind another.
//! - A connection waits for [`POOL_IDLE`] at most. The one that was used last is used first, and the others
//!   come to an end.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower_service::Service as _;

use super::ClientError;
use super::connection::{Connection, Incoming, Resting, Socket, Unanswered};
use super::listening::Listening;

/// Time after which an unused connection is closed. Common servers close theirs after 5 s; a
/// request written into a closing connection is lost, and must not be sent twice.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// Connections at most on which the end of an answer is waited for that has said what was asked: some servers
/// never end theirs.
const UNFINISHED: usize = 32;

/// Makes connections.
pub(super) type Connector = HttpsConnector<HttpConnector>;

/// Scheme, host and port, and the connections to it.
#[derive(Debug)]
pub(in crate::upstream) struct Origin {
    /// With a path that means nothing.
    uri: Uri,
    host: HeaderValue,
    connector: Connector,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// The last used at the end.
    waiting: Vec<(Instant, Resting)>,
    /// Whether somebody sees to it that they don't wait for too long.
    watched: bool,
}

impl Origin {
    /// The one that an absolute URI is at. One that is not absolute can't be reached.
    pub(super) fn of(uri: &Uri, connector: Connector) -> Arc<Self> {
        let host = uri.authority().map(|authority| {
            // Some servers take a name with its default port for another name.
            let default = match uri.scheme_str() {
                Some("https") => 443,
                _ => 80,
            };
            let port = authority.port_u16().filter(|port| *port != default);
            let host = authority.host();
            port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
        });
        let host = HeaderValue::try_from(host.unwrap_or_default());
        Arc::new(Self {
            uri: uri.clone(),
            host: host.unwrap_or(HeaderValue::from_static("")),
            connector,
            idle: Mutex::default(),
        })
    }

    /// Sends a request and waits for the head of the answer, however long that takes. Of its URI, the path
    /// and the query count. Calls `reached` as soon as there is a connection.
    ///
    /// # Errors
    /// [`ClientError::Connect`] when surely nothing was sent, [`ClientError::Broken`] otherwise.
    pub(in crate::upstream) async fn send(
        self: &Arc<Self>,
        mut request: Box<Request<Full<Bytes>>>,
        reached: impl FnOnce(),
    ) -> Result<Response<Incoming>, ClientError> {
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = path.unwrap_or(PathAndQuery::from_static("/")).into();
        let host = request.headers_mut().entry(header::HOST);
        host.or_insert_with(|| self.host.clone());
        let mut reached = Some(reached);
        loop {
            let (connection, again) = match self.waiting() {
                Some(connection) => (connection, true),
                None => (Box::pin(self.connect()).await?, false),
            };
            if let Some(reached) = reached.take() {
                reached();
            }
            match connection.send(request, self).await {
                Ok(answer) => return Ok(answer),
                // A server may close a connection that waits at any time.
                Err(Unanswered::Unsent(unsent)) if again => request = unsent,
                Err(Unanswered::Unsent(_)) => {
                    let closed = "the server closed the connection before the request was sent";
                    return Err(ClientError::Connect(closed.into()));
                }
                Err(Unanswered::Broken(error)) => return Err(ClientError::Broken(Box::new(error))),
            }
        }
    }

    /// Asks for a stream that mostly waits. Of the URI, the path and the query count. Calls `reached` as soon as
    /// there is a connection.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub(in crate::upstream) async fn listen(
        &self,
        uri: &Uri,
        mut headers: HeaderMap,
        reached: impl FnOnce(),
    ) -> Result<Response<Listening>, ClientError> {
        let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let host = headers.entry(header::HOST);
        host.or_insert_with(|| self.host.clone());
        // A server may close a connection that waits at any time; to ask twice changes nothing.
        let first = match self.waiting().and_then(Connection::into_socket) {
            Some(socket) => Listening::open(socket, path, &headers).await.ok(),
            None => None,
        };
        if let Some(answer) = first {
            reached();
            return Ok(answer);
        }
        let socket = Box::pin(self.socket()).await?;
        reached();
        let answer = Listening::open(socket, path, &headers).await;
        answer.map_err(|error| ClientError::Broken(Box::new(error)))
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        let connection = Connection::over(self.socket().await?).await;
        connection.map_err(|error| ClientError::Connect(Box::new(error)))
    }

    async fn socket(&self) -> Result<Socket, ClientError> {
        let socket = self.connector.clone().call(self.uri.clone()).await;
        socket.map_err(ClientError::Connect)
    }

    /// A connection that waits for a request.
    fn waiting(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        // The last ones may still wait for the end of an answer.
        for place in (0..idle.waiting.len()).rev() {
            let Some((since, resting)) = idle.waiting.get_mut(place) else {
                break;
            };
            if since.elapsed() >= POOL_IDLE {
                break;
            }
            let ready = resting.is_ready();
            if ready || resting.is_closed() {
                let (_, resting) = idle.waiting.remove(place);
                if ready {
                    return Some(resting.into_connection());
                }
            }
        }
        None
    }

    /// Keeps a connection for the next request.
    pub(super) fn keep(self: &Arc<Self>, resting: Resting) {
        let mut idle = self.idle.lock();
        let unfinished = |(_, resting): &&(Instant, Resting)| resting.is_unfinished();
        if resting.is_unfinished() && idle.waiting.iter().filter(unfinished).count() >= UNFINISHED {
            return;
        }
        idle.waiting.push((now(), resting));
        if !idle.watched
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            idle.watched = true;
            // The end of the gateway need not wait for it: it holds nothing.
            runtime.spawn(watch(Arc::downgrade(self)));
        }
    }
}

/// Closes the connections that have waited for long enough, as long as there are some.
async fn watch(origin: Weak<Origin>) {
    let mut pause = POOL_IDLE;
    loop {
        tokio::time::sleep(pause).await;
        let Some(origin) = origin.upgrade() else {
            return;
        };
        let mut idle = origin.idle.lock();
        let late = |(since, _): &(Instant, Resting)| since.elapsed() >= POOL_IDLE;
        let old = idle.waiting.partition_point(late);
        let closing: Vec<_> = idle.waiting.drain(..old).collect();
        let Some((oldest, _)) = idle.waiting.first() else {
            idle.waiting = Vec::new();
            idle.watched = false;
            return;
        };
        pause = POOL_IDLE.saturating_sub(oldest.elapsed());
        drop(idle);
        drop(closing);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a connection waits is told by the clock"
)]
fn now() -> Instant {
    Instant::now()
}
