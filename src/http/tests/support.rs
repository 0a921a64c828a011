//! A connection with a client at one end, which says what it likes byte by byte, and [`converse`] at the
//! other, with a service that answers by the path: `/events` is a stream, and every other path is said back.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::http::body::RequestBody;
use crate::http::connection::converse;
use crate::http::reply;
use crate::http::seat::{Framing, Outgoing, Turn};
use crate::http::stream::EventBody;
use crate::relay::{EventPipe, Item};

/// Comments come after so much silence.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) struct Connection {
    pub(super) client: TcpStream,
    pub(super) stop: CancellationToken,
    task: JoinHandle<()>,
    opened: Arc<AtomicUsize>,
    streams: Arc<Mutex<Vec<Sender<Item>>>>,
}

/// What answers, and counts how often it is cloned, which is how often the HTTP library is opened.
struct Service {
    opened: Arc<AtomicUsize>,
    streams: Arc<Mutex<Vec<Sender<Item>>>>,
    left: Option<Duration>,
}

impl Clone for Service {
    fn clone(&self) -> Self {
        self.opened.fetch_add(1, Ordering::SeqCst);
        Self {
            opened: Arc::clone(&self.opened),
            streams: Arc::clone(&self.streams),
            left: self.left,
        }
    }
}

impl Service {
    fn answer(
        &self,
        request: Request<Incoming>,
        turn: Turn,
    ) -> impl Future<Output = Result<Response<Outgoing>, Infallible>> + use<> {
        let (streams, left) = (Arc::clone(&self.streams), self.left);
        async move { Ok(answer(request, turn, &streams, left).await) }
    }
}

impl Connection {
    pub(super) async fn open() -> Self {
        Self::with_credential(None).await
    }

    /// One whose streams end after so long.
    pub(super) async fn with_credential(left: Option<Duration>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let (opened, streams) = (Arc::default(), Arc::default());
        let service = Service {
            opened: Arc::clone(&opened),
            streams: Arc::clone(&streams),
            left,
        };
        let serve = move |request, turn| service.answer(request, turn);
        let stop = CancellationToken::new();
        let task = TaskTracker::new().spawn(converse(socket, serve, stop.clone()));
        Self {
            client,
            stop,
            task,
            opened,
            streams,
        }
    }

    /// How often the HTTP library was opened.
    pub(super) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    pub(super) async fn say(&mut self, text: &str) {
        self.client.write_all(text.as_bytes()).await.unwrap();
    }

    pub(super) async fn ask(&mut self, path: &str) {
        self.say(&format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"))
            .await;
    }

    /// Reads until `end` has come, and no byte more.
    pub(super) async fn until(&mut self, end: &str) -> String {
        let mut read = Vec::new();
        while !read.ends_with(end.as_bytes()) {
            match self.client.read_u8().await {
                Ok(byte) => read.push(byte),
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&read)),
            }
        }
        String::from_utf8(read).unwrap()
    }

    /// Reads the answer to a request for this path.
    pub(super) async fn answered(&mut self, path: &str) {
        let head = self.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(self.until(path).await, path);
    }

    /// Asks, and reads the answer.
    pub(super) async fn is_served(&mut self) {
        self.ask("/again").await;
        self.answered("/again").await;
    }

    /// Opens a stream: its head, and what puts events into it.
    pub(super) async fn listen(&mut self, version: &str, more: &str) -> (String, Sender<Item>) {
        self.say(&format!(
            "GET /events {version}\r\nhost: x\r\n{more}\r\n\r\n"
        ))
        .await;
        let head = self.until("\r\n\r\n").await;
        let stream = self.streams.lock().pop().unwrap();
        (head, stream)
    }

    /// Reads to the end of the connection.
    pub(super) async fn rest(&mut self) -> String {
        let mut rest = String::new();
        match self.client.read_to_string(&mut rest).await {
            Ok(_) => rest,
            Err(error) => panic!("{error} after {rest:?}"),
        }
    }

    /// The gateway's end is over.
    pub(super) async fn ends(self) {
        let (task, client) = (self.task, self.client);
        task.await.unwrap();
        drop(client);
    }
}

/// Lets so much time pass, in no time. It passes here alone: while somebody waits for a socket, virtual time
/// would leap to the next timer.
pub(super) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::sleep(time).await;
    tokio::time::resume();
}

/// Long enough for the HTTP library to be let go.
pub(super) async fn doze() {
    pass(Duration::from_secs(5)).await;
}

async fn answer(
    request: Request<Incoming>,
    turn: Turn,
    streams: &Mutex<Vec<Sender<Item>>>,
    left: Option<Duration>,
) -> Response<Outgoing> {
    let (parts, body) = request.into_parts();
    let framing = Framing::of(parts.version, &parts.headers);
    let mut body = RequestBody::new(body);
    let path = parts.uri.path().to_owned();
    let response = if path == "/events" {
        let (stream, rest) = channel(64);
        streams.lock().push(stream);
        let pipe = EventPipe::alone(vec![], rest);
        reply::events(EventBody::new(pipe, KEEP_ALIVE, left))
    } else {
        if parts.method == Method::POST {
            body.read(&parts.headers, None).await.unwrap();
        }
        reply::json(StatusCode::OK, path.into())
    };
    let whole = body.is_whole();
    response.map(|body| turn.answer(body, framing, whole))
}
