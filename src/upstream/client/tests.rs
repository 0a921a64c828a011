//! How connections to servers are used, seen from a server that counts them.

#![expect(
    clippy::disallowed_methods,
    reason = "a server of a test runs beside it"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::{ClientError, HttpClient, Incoming, Listening, read};

/// What a server does with a request on a connection: `nth` of this connection, from 1 on.
type Act = fn(socket: TcpStream, nth: usize) -> Acting;
type Acting = std::pin::Pin<Box<dyn Future<Output = Option<TcpStream>> + Send>>;

/// A server, and how many connections it has had and how many are open.
struct Server {
    url: String,
    seen: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    async fn start(act: Act) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp?a=1", listener.local_addr().unwrap());
        let (seen, open, requests) = <(Arc<_>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let server = Self {
            url,
            seen: Arc::clone(&seen),
            open: Arc::clone(&open),
            requests: Arc::clone(&requests),
        };
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                seen.fetch_add(1, Ordering::SeqCst);
                open.fetch_add(1, Ordering::SeqCst);
                let (open, requests) = (Arc::clone(&open), Arc::clone(&requests));
                tokio::spawn(async move {
                    let mut nth = 0;
                    while head(&mut socket).await.is_some() {
                        nth += 1;
                        requests.fetch_add(1, Ordering::SeqCst);
                        match act(socket, nth).await {
                            Some(again) => socket = again,
                            None => break,
                        }
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    fn request(&self) -> Request<Full<Bytes>> {
        Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .body(Full::new(Bytes::from_static(b"{}")))
            .unwrap()
    }

    /// A request is sent, and answered.
    async fn answers(&self, client: &HttpClient) {
        let answer = client.send(self.request()).await.unwrap();
        assert_eq!(body(answer).await, "{}");
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Waits until so many connections are open.
    async fn until_open(&self, count: usize) {
        while self.open.load(Ordering::SeqCst) != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Reads one request; none when the client has closed.
async fn head(socket: &mut TcpStream) -> Option<String> {
    let mut all = Vec::new();
    let whole = |all: &[u8]| {
        let end = if all.starts_with(b"GET") { "" } else { "{}" };
        all.ends_with(format!("\r\n\r\n{end}").as_bytes())
    };
    while !whole(&all) {
        let mut byte = [0];
        if socket.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        all.extend_from_slice(&byte);
    }
    String::from_utf8(all).ok()
}

async fn say(mut socket: TcpStream, text: &'static str) -> Option<TcpStream> {
    socket.write_all(text.as_bytes()).await.ok()?;
    Some(socket)
}

/// The second request on a connection is read, and then that is closed.
fn close_at_the_second(socket: TcpStream, nth: usize) -> Acting {
    Box::pin(async move {
        if nth == 2 {
            None
        } else {
            say(socket, JSON).await
        }
    })
}

fn client() -> HttpClient {
    HttpClient::new(Duration::from_secs(5)).unwrap()
}

async fn body(response: Response<Incoming>) -> Bytes {
    read(response.into_body(), 1 << 20).await.unwrap()
}

/// An answer whose end does not come.
const BEGUN: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n";

const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let server = Server::start(|socket, _| Box::pin(say(socket, JSON))).await;
    let client = client();
    for _ in 0..20 {
        server.answers(&client).await;
    }
    assert_eq!((server.seen(), server.requests()), (1, 20));
}

#[tokio::test]
async fn a_connection_is_used_again_after_an_answer_without_a_body() {
    let server = Server::start(|socket, _| {
        Box::pin(say(
            socket,
            "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        ))
    })
    .await;
    let client = client();
    for _ in 0..5 {
        // Nobody reads that there is nothing.
        drop(client.send(server.request()).await.unwrap());
    }
    assert_eq!((server.seen(), server.requests()), (1, 5));
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_chunked_answer() {
    let server = Server::start(|socket, _| {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
        Box::pin(say(socket, chunked))
    })
    .await;
    let client = client();
    for _ in 0..5 {
        server.answers(&client).await;
    }
    assert_eq!((server.seen(), server.requests()), (1, 5));
}

#[tokio::test]
async fn who_has_heard_enough_need_not_wait_for_the_end_of_an_answer() {
    let server = Server::start(|mut socket, _| {
        Box::pin(async move {
            let begun = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n";
            socket.write_all(begun.as_bytes()).await.ok()?;
            tokio::time::sleep(Duration::from_millis(20)).await;
            say(socket, "0\r\n\r\n").await
        })
    })
    .await;
    let client = client();
    for _ in 0..3 {
        let mut answer = client.send(server.request()).await.unwrap().into_body();
        let first = answer.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "{}");
        answer.finish();
        assert!(answer.frame().await.is_none());
        drop(answer);
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!((server.seen(), server.requests()), (1, 3));
}

#[tokio::test]
async fn a_connection_whose_answer_goes_on_is_not_used_for_another_request() {
    let server = Server::start(|socket, _| Box::pin(say(socket, BEGUN))).await;
    let client = client();
    for _ in 0..2 {
        let mut answer = client.send(server.request()).await.unwrap().into_body();
        assert!(answer.frame().await.unwrap().is_ok());
        answer.finish();
    }
    assert_eq!((server.seen(), server.requests()), (2, 2));
}

#[tokio::test]
async fn a_connection_that_the_server_closes_after_its_answer_is_not_kept() {
    let server = Server::start(|socket, _| {
        let last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
        Box::pin(say(socket, last))
    })
    .await;
    let client = client();
    for _ in 0..3 {
        server.answers(&client).await;
        server.until_open(0).await;
    }
    assert_eq!((server.seen(), server.requests()), (3, 3));
}

#[tokio::test]
async fn answers_that_never_end_do_not_pile_up() {
    let server = Server::start(|socket, _| Box::pin(say(socket, BEGUN))).await;
    let client = client();
    for _ in 0..50 {
        let mut answer = client.send(server.request()).await.unwrap().into_body();
        assert!(answer.frame().await.unwrap().is_ok());
        answer.finish();
    }
    server.until_open(32).await;
    assert_eq!((server.seen(), server.requests()), (50, 50));
}

#[tokio::test]
async fn requests_at_once_have_a_connection_each() {
    let server = Server::start(|socket, _| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            say(socket, JSON).await
        })
    })
    .await;
    let client = client();
    let all = (0..8).map(|_| async { body(client.send(server.request()).await.unwrap()).await });
    let bodies = futures_util::future::join_all(all).await;
    assert!(bodies.iter().all(|body| body == "{}"));
    assert_eq!(server.seen(), 8);
}

#[tokio::test]
async fn to_drop_an_answer_that_goes_on_closes_its_connection() {
    let server = Server::start(|socket, _| Box::pin(say(socket, BEGUN))).await;
    let client = client();
    let answer = client.send(server.request()).await.unwrap();
    server.until_open(1).await;
    drop(answer);
    server.until_open(0).await;
}

#[tokio::test]
async fn to_drop_a_request_closes_its_connection() {
    let server = Server::start(|socket, _| {
        Box::pin(async move {
            let mut socket = socket;
            // It never answers, and learns when the client has gone.
            let _gone = socket.read(&mut [0]).await;
            None
        })
    })
    .await;
    let client = client();
    let waiting = tokio::time::timeout(Duration::from_millis(50), client.send(server.request()));
    assert!(waiting.await.is_err());
    server.until_open(0).await;
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_request_finds_another_connection_when_the_server_has_closed_the_one_that_waits() {
    let server = Server::start(|socket, _| {
        Box::pin(async move {
            drop(say(socket, JSON).await);
            None
        })
    })
    .await;
    let client = client();
    for _ in 0..5 {
        server.answers(&client).await;
        server.until_open(0).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((server.seen(), server.requests()), (5, 5));
}

#[tokio::test]
async fn what_a_server_has_read_is_not_sent_again() {
    let server = Server::start(close_at_the_second).await;
    let client = client();
    server.answers(&client).await;
    let lost = client.send(server.request()).await;
    assert!(matches!(lost, Err(ClientError::Broken(_))), "{lost:?}");
    assert_eq!((server.seen(), server.requests()), (1, 2));
}

#[tokio::test]
async fn nobody_there_means_that_nothing_was_sent() {
    // Nobody listens there, and as long as it is taken nobody else will.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", taken.local_addr().unwrap());
    for url in [url.as_str(), "/only/a/path"] {
        let request = Request::get(url).body(Full::default()).unwrap();
        let refused = client().send(request).await;
        assert!(
            matches!(refused, Err(ClientError::Connect(_))),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_server_is_told_its_name_and_the_path() {
    let (told, heard) = tokio::sync::oneshot::channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        told.send(head(&mut socket).await.unwrap()).unwrap();
        say(socket, JSON).await
    });
    let request = Request::post(format!("http://{address}/mcp?a=1"));
    let request = request.body(Full::new(Bytes::from_static(b"{}"))).unwrap();
    let _answer = client().send(request).await.unwrap();
    let request = heard.await.unwrap().to_ascii_lowercase();
    assert!(
        request.starts_with("post /mcp?a=1 http/1.1\r\n"),
        "{request}"
    );
    let host = format!("\r\nhost: {address}\r\n");
    assert!(request.contains(&host), "{request}");
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed_after_a_while() {
    let server = Server::start(|socket, _| Box::pin(say(socket, JSON))).await;
    let client = client();
    let all = (0..3).map(|_| client.send(server.request()));
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(body(answer.unwrap()).await, "{}");
    }
    server.until_open(3).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(5)).await;
    tokio::time::resume();
    server.until_open(0).await;
    server.answers(&client).await;
}

/// Asks for a stream.
async fn listen(client: &HttpClient, server: &Server) -> Result<Response<Listening>, ClientError> {
    let url = server.url.parse().unwrap();
    client
        .origin(&url)
        .listen(&url, HeaderMap::new(), || ())
        .await
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

#[tokio::test]
async fn a_stream_is_read_to_its_end() {
    let server = Server::start(|mut socket, _| {
        Box::pin(async move {
            // What comes before the answer itself is not the answer.
            let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
            let begun = format!("{early}{EVENTS}Transfer-Encoding: chunked\r\n\r\n4\r\na: b\r\n");
            for byte in begun.bytes() {
                socket.write_all(&[byte]).await.ok()?;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            say(socket, "2\r\n\n\n\r\n0\r\n\r\n").await
        })
    })
    .await;
    let answer = listen(&client(), &server).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    assert_eq!(read(answer.into_body(), 100).await.unwrap(), "a: b\n\n");
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error() {
    let server = Server::start(|socket, _| {
        Box::pin(async move {
            drop(
                say(
                    socket,
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab",
                )
                .await,
            );
            None
        })
    })
    .await;
    let mut answer = listen(&client(), &server).await.unwrap().into_body();
    assert_eq!(
        answer.frame().await.unwrap().unwrap().into_data().unwrap(),
        "ab"
    );
    assert!(answer.frame().await.unwrap().is_err());
    assert!(answer.frame().await.is_none());
}

#[tokio::test]
async fn a_stream_goes_on_a_connection_that_waits() {
    let server = Server::start(|socket, nth| {
        let events = "HTTP/1.1 200 OK\r\n\r\nevents";
        Box::pin(say(socket, if nth == 1 { JSON } else { events }))
    })
    .await;
    let client = client();
    server.answers(&client).await;
    let mut stream = listen(&client, &server).await.unwrap().into_body();
    assert_eq!(
        stream.frame().await.unwrap().unwrap().into_data().unwrap(),
        "events"
    );
    assert_eq!((server.seen(), server.requests()), (1, 2));
    // It is the stream's from then on.
    server.answers(&client).await;
    assert_eq!((server.seen(), server.requests()), (2, 3));
    drop(stream);
    server.until_open(1).await;
}

#[tokio::test]
async fn a_stream_is_asked_for_again_when_the_connection_that_waits_is_closed() {
    let server = Server::start(close_at_the_second).await;
    let client = client();
    server.answers(&client).await;
    let stream = listen(&client, &server).await.unwrap();
    assert_eq!(read(stream.into_body(), 10).await.unwrap(), "{}");
    assert_eq!((server.seen(), server.requests()), (2, 3));
}

#[tokio::test]
async fn an_answer_that_is_no_http_is_none() {
    for said in [
        "SSH-2.0-OpenSSH_9\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            head(&mut socket).await;
            say(socket, said).await
        });
        let client = client();
        let answer = client
            .origin(&url)
            .listen(&url, HeaderMap::new(), || ())
            .await;
        assert!(matches!(answer, Err(ClientError::Broken(_))), "{said:?}");
    }
}

#[tokio::test]
async fn a_head_without_end_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"HTTP/1.1 200 OK\r\na: ").await.unwrap();
        while socket.write_all(&[b'a'; 1000]).await.is_ok() {}
    });
    let client = client();
    let answer = client
        .origin(&url)
        .listen(&url, HeaderMap::new(), || ())
        .await;
    assert!(matches!(answer, Err(ClientError::Broken(_))));
}
