//! A connection that is driven by who uses it: there is no task of its own for it, so that a request and
//! its answer wake nobody but the one who waits for them.
//!
//! # Invariants
//! - What hyper tells the user of a connection is looked for after each step of it. So nobody has to be woken
//!   for that, and the connection itself is all that wakes.
//! - To drop a request or a body that is not at its end closes the connection.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::coop::unconstrained;

use super::origin::Origin;

/// A socket, with TLS or without.
pub(super) type Socket = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A connection to a server, with nothing on its way.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Driver,
}

/// What reads and writes; none when the connection is closed.
struct Driver(Option<Pin<Box<Http1>>>);

type Http1 = http1::Connection<Socket, Full<Bytes>>;

impl Driver {
    /// Goes on as far as the connection lets it. What is dropped at its end tells whoever waits for it.
    fn run(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.0
            && connection.as_mut().poll(cx).is_ready()
        {
            self.0 = None;
        }
    }

    /// What comes next of an answer on the connection.
    fn bring(
        &mut self,
        body: &mut hyper::body::Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // To ask is to let the connection read.
        let frame = Pin::new(&mut *body).poll_frame(&mut nobody());
        if frame.is_ready() {
            return frame;
        }
        self.run(cx);
        Pin::new(body).poll_frame(&mut nobody())
    }

    fn is_open(&self) -> bool {
        self.0.is_some()
    }
}

/// Why there is no answer.
pub(super) enum Unanswered {
    /// The connection was closed before any of the request was written.
    Unsent(Box<Request<Full<Bytes>>>),
    Broken(hyper::Error),
}

impl Connection {
    /// The socket, of a connection that rests; none where there is something on it.
    pub(super) fn into_socket(self) -> Option<Socket> {
        let parts = Pin::into_inner(self.driver.0?).into_parts();
        parts.read_buf.is_empty().then_some(parts.io)
    }

    /// Speaks HTTP on a socket.
    pub(super) async fn over(socket: Socket) -> Result<Self, hyper::Error> {
        let (sender, connection) = http1::handshake(socket).await?;
        Ok(Self {
            sender,
            driver: Driver(Some(Box::pin(connection))),
        })
    }

    /// Sends a request, and waits for the head of its answer.
    pub(super) async fn send(
        mut self,
        request: Box<Request<Full<Bytes>>>,
        home: &Arc<Origin>,
    ) -> Result<Response<Incoming>, Unanswered> {
        // Not a step of the task's: it only looks whether there is something.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(*request)));
        let answer = std::future::poll_fn(|cx| {
            self.driver.run(cx);
            answer.as_mut().poll(&mut nobody())
        })
        .await;
        let answer = answer.map_err(|mut unsent| match unsent.take_message() {
            Some(request) => Unanswered::Unsent(Box::new(request)),
            None => Unanswered::Broken(unsent.into_error()),
        })?;
        Ok(answer.map(|body| Incoming {
            body: Some(body),
            connection: Some(self),
            home: Arc::clone(home),
        }))
    }

    /// Whether it can take a request; brings it there, if it has only to be noticed that an answer is over.
    /// Nobody is woken by it from now on.
    fn rests(&mut self) -> bool {
        self.driver.run(&mut nobody());
        self.driver.is_open() && self.sender.is_ready()
    }
}

/// A connection that can take a request, or will when the rest of an answer has come.
pub(super) struct Resting {
    connection: Connection,
    /// Of which nothing is wanted any more.
    rest: Option<hyper::body::Incoming>,
}

impl Resting {
    /// Whether it can take a request now.
    pub(super) fn is_ready(&mut self) -> bool {
        // At most so much is read of an answer that has said what was asked.
        for _ in 0..4 {
            let Some(rest) = &mut self.rest else { break };
            match self.connection.driver.bring(rest, &mut nobody()) {
                Poll::Ready(Some(_)) => {}
                Poll::Ready(None) => self.rest = None,
                Poll::Pending => return false,
            }
        }
        self.rest.is_none() && self.connection.rests()
    }

    /// Whether it will never take one.
    pub(super) fn is_closed(&self) -> bool {
        !self.connection.driver.is_open()
    }

    /// Whether the end of an answer is still to come on it.
    pub(super) fn is_unfinished(&self) -> bool {
        self.rest.is_some() && !self.is_closed()
    }

    pub(super) fn into_connection(self) -> Connection {
        self.connection
    }
}

/// The body of an answer. Read to its end, it gives its connection back for another request.
pub struct Incoming {
    body: Option<hyper::body::Incoming>,
    connection: Option<Connection>,
    home: Arc<Origin>,
}

impl Incoming {
    /// The answer has said what was asked: its end need not be waited for before the connection can be used
    /// again.
    pub fn finish(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let rest = self.body.take().filter(|body| !body.is_end_stream());
        let mut resting = Resting { connection, rest };
        // One that the server closes after its answer is closed here, too.
        if resting.is_ready() || resting.is_unfinished() {
            self.home.keep(resting);
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let (Some(body), Some(connection)) = (&mut this.body, &mut this.connection) else {
            return Poll::Ready(None);
        };
        let frame = connection.driver.bring(body, cx);
        if matches!(frame, Poll::Ready(None)) {
            this.finish();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// Some answers have no body, which nobody reads then.
impl Drop for Incoming {
    fn drop(&mut self) {
        if self.is_end_stream() {
            self.finish();
        }
    }
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming")
            .field("body", &self.body)
            .field("open", &self.connection.is_some())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Resting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resting")
            .field("rest", &self.rest)
            .finish_non_exhaustive()
    }
}

fn nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
