//! One connection of a client, from its first byte to its end.
//!
//! ```text
//!            ┌── a request, or the end ──┐
//!            ▼                           │
//!   HTTP library ── nothing for a ──► asleep
//!     ▲      │      second or two
//!     │      └── events, and none ──► telling ── the last event ──┐
//!     │          for a second or two                              │
//!     └───────────────────────────────────────────────────────────┘
//! ```
//!
//! The HTTP library holds 16 KiB for each connection. Most of them only wait, for a request or for an event;
//! so it is let go meanwhile.
//!
//! # Invariants
//! The library is let go only between two requests or two events, when all that it had to write is flushed. What
//! it has read and not used is read again by whoever comes next, and the socket itself tells of the rest:
//! no byte is lost or read twice.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

use super::events::Telling;
use super::patient::Patient;
use super::seat::{Doing, Events, Outgoing, Seat, Turn};

/// How long a new connection may take to send the head of its first request: until then nobody knows
/// whose it is.
const FIRST_HEAD: Duration = Duration::from_secs(10);

/// How long the head of a request may take, and how long a connection may wait for its next one.
const HEAD: Duration = Duration::from_secs(75);

/// How often a waiting connection is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Bytes of the head of a request.
const HEAD_SIZE: usize = 64 * 1024;

/// Has the requests of a connection answered by `serve` until it ends, or until the answer that is being
/// given when `stop` comes.
pub(super) async fn converse<S, A>(socket: TcpStream, serve: S, stop: CancellationToken)
where
    S: Fn(Request<Incoming>, Turn) -> A + Clone,
    A: Future<Output = Result<Response<Outgoing>, Infallible>> + Send,
{
    let _slower = socket.set_nodelay(true);
    let seat = Arc::new(Seat::default());
    let mut stopping = Stopping {
        stop: pin!(stop.cancelled()),
        stopped: false,
    };
    let mut clock = Clock::new();
    let mut socket = Patient::new(socket, Arc::clone(&seat));
    loop {
        let http = open(socket, serve.clone(), Arc::clone(&seat));
        let next = match answer(http, &seat, &mut clock, &mut stopping).await {
            Left::Quiet(socket) => sleep_on(socket, &mut clock, &mut stopping).await,
            Left::Events(socket, events) => {
                let telling = Box::new(Telling::new(socket, events));
                tell(telling, &mut stopping).await
            }
            Left::Ended => None,
        };
        match next {
            Some(next) if !stopping.stopped => socket = next,
            _ => return,
        }
    }
}

/// The end of the gateway.
struct Stopping<F> {
    stop: F,
    stopped: bool,
}

impl<F: Future<Output = ()> + Unpin> Stopping<F> {
    /// Whether it has come since this was asked last.
    fn has_come(&mut self, cx: &mut Context<'_>) -> bool {
        let comes = !self.stopped && Pin::new(&mut self.stop).poll(cx).is_ready();
        self.stopped |= comes;
        comes
    }
}

/// Why the HTTP library was let go.
enum Left {
    Ended,
    /// Nothing is asked.
    Quiet(Patient),
    /// The answer is a stream, whose next event may take long.
    Events(Patient, Events),
}

type Http<S> = Box<http1::Connection<TokioIo<Patient>, S>>;

fn open<S, A>(
    socket: Patient,
    serve: S,
    seat: Arc<Seat>,
) -> Http<impl HttpService<Incoming, ResBody = Outgoing, Error = Infallible, Future: Send>>
where
    S: Fn(Request<Incoming>, Turn) -> A,
    A: Future<Output = Result<Response<Outgoing>, Infallible>> + Send,
{
    let service = service_fn(move |request| serve(request, seat.begin()));
    let http = http1::Builder::new()
        // The clock of this connection takes its place.
        .header_read_timeout(None)
        .max_buf_size(HEAD_SIZE)
        .serve_connection(TokioIo::new(socket), service);
    Box::new(http)
}

/// Answers requests for as long as any come.
async fn answer<S, F>(
    http: Http<S>,
    seat: &Seat,
    clock: &mut Clock,
    stopping: &mut Stopping<F>,
) -> Left
where
    S: HttpService<Incoming, ResBody = Outgoing, Error = Infallible>,
    F: Future<Output = ()> + Unpin,
{
    let mut http = Some(http);
    std::future::poll_fn(|cx| {
        let Some(connection) = &mut http else {
            return Poll::Ready(Left::Ended);
        };
        if stopping.has_come(cx) {
            Pin::new(&mut **connection).graceful_shutdown();
        }
        if let Poll::Ready(ended) = Pin::new(&mut **connection).poll(cx) {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
            return Poll::Ready(Left::Ended);
        }
        if stopping.stopped {
            return Poll::Pending;
        }
        let doing = ready!(clock.poll(cx, seat));
        let events = match doing {
            Doing::Streaming => seat.take_events(),
            Doing::Waiting => None,
            // It has waited for too long.
            Doing::Other => return Poll::Ready(Left::Ended),
        };
        seat.last.forget();
        let Some(parts) = http.take().map(|http| http.into_parts()) else {
            return Poll::Ready(Left::Ended);
        };
        let mut socket = parts.io.into_inner();
        socket.put_before(&parts.read_buf);
        Poll::Ready(match events {
            Some(events) => Left::Events(socket, events),
            None => Left::Quiet(socket),
        })
    })
    .await
}

/// Waits for the next request; nothing when none comes in time.
async fn sleep_on<F>(
    socket: Patient,
    clock: &mut Clock,
    stopping: &mut Stopping<F>,
) -> Option<Patient>
where
    F: Future<Output = ()> + Unpin,
{
    clock.wait_to_the_end();
    let comes = std::future::poll_fn(|cx| {
        if stopping.has_come(cx) {
            return Poll::Ready(false);
        }
        if let Poll::Ready(readable) = socket.poll_readable(cx) {
            return Poll::Ready(readable.is_ok());
        }
        clock.timer.as_mut().poll(cx).map(|()| false)
    });
    comes.await.then_some(socket)
}

/// Tells events until the last; nothing when the connection ends with it.
async fn tell<F>(mut telling: Box<Telling>, stopping: &mut Stopping<F>) -> Option<Patient>
where
    F: Future<Output = ()> + Unpin,
{
    let told = std::future::poll_fn(|cx| {
        if stopping.has_come(cx) {
            telling.is_last();
        }
        telling.poll(cx)
    });
    let left = match told.await {
        Ok(()) => telling.leave().await,
        Err(error) => Err(error),
    };
    left.unwrap_or_else(|error| {
        tracing::debug!(%error, "a connection ended");
        None
    })
}

/// Looks from time to time at what a connection does. It ticks only while the connection waits.
struct Clock {
    timer: Pin<Box<Sleep>>,
    is_set: bool,
    /// How many requests had begun at the last look, and since when it has been so many.
    asked: usize,
    since: Instant,
}

impl Clock {
    fn new() -> Self {
        Self {
            timer: Box::pin(sleep(LOOK)),
            is_set: true,
            asked: 0,
            since: now(),
        }
    }

    /// What the connection waits for when it has done so for some time; [`Doing::Other`] when for too long.
    fn poll(&mut self, cx: &mut Context<'_>, seat: &Seat) -> Poll<Doing> {
        loop {
            if !self.is_set {
                if seat.doing() == Doing::Other {
                    return Poll::Pending;
                }
                self.timer.as_mut().reset(now() + LOOK);
                self.is_set = true;
            }
            ready!(self.timer.as_mut().poll(cx));
            self.is_set = false;
            let (doing, asked) = (seat.doing(), seat.asked());
            if asked != self.asked {
                (self.asked, self.since) = (asked, now());
                continue;
            }
            match doing {
                Doing::Waiting if now() >= self.end() => return Poll::Ready(Doing::Other),
                // The beginning of a head is with the library, which has to stay.
                Doing::Waiting if seat.has_read() => {}
                Doing::Waiting | Doing::Streaming => return Poll::Ready(doing),
                Doing::Other => {}
            }
        }
    }

    /// When a connection that waits for a request has waited for too long.
    fn end(&self) -> Instant {
        self.since + if self.asked == 0 { FIRST_HEAD } else { HEAD }
    }

    fn wait_to_the_end(&mut self) {
        let end = self.end();
        self.timer.as_mut().reset(end);
        self.is_set = false;
    }
}

#[expect(clippy::disallowed_methods, reason = "a connection keeps its own time")]
fn now() -> Instant {
    Instant::now()
}
