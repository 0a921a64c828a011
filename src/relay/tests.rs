//! What takes its time, by a clock that runs a thousand times as fast: a relay with a modern server
//! behind it, on loopback.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::serve::ListenerExt as _;
use futures_util::stream;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::caller::Caller;
use super::*;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_legacy::Accept;
use crate::protocol::message::{self, Message};
use crate::protocol::sse;
use crate::protocol::subscription::{self, Filter};

/// Numbers the requests.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A relay to one server, and the streams that are opened there.
struct Rig {
    relay: Relay,
    server: ServerName,
    who: Principal,
    streams: mpsc::Receiver<Stream>,
}

/// What a server writes, as events.
type Stream = mpsc::Sender<Bytes>;

/// Discovers itself, and agrees to all other requests, each on a stream of its own.
async fn serve(State(streams): State<mpsc::Sender<Stream>>, body: Bytes) -> Response {
    let request = Message::parse(&body).unwrap();
    let id = request.id().unwrap();
    if request.method() == "server/discover" {
        let found = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}}"#;
        let json = [(CONTENT_TYPE, "application/json")];
        return (json, message::result(id, found)).into_response();
    }
    let (stream, chunks) = mpsc::channel(1);
    let [wanted] = request.param(["notifications"]).unwrap();
    let wanted = Filter::read(wanted, usize::MAX).unwrap_or_default();
    let agreed = subscription::acknowledgement(id, &wanted);
    stream.send(sse::encode(None, &agreed)).await.unwrap();
    streams.send(stream).await.unwrap();
    let body = stream::unfold(chunks, async |mut chunks| {
        let chunk = chunks.recv().await?;
        Some((Ok::<_, Infallible>(chunk), chunks))
    });
    let events = [(CONTENT_TYPE, "text/event-stream")];
    (events, axum::body::Body::from_stream(body)).into_response()
}

/// Lets an hour pass, or less if the future is done before. Sockets have their time too: a clock that jumps
/// whenever nobody is busy would overtake what is on its way.
async fn within_an_hour<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::time::pause();
    let passing = async {
        for _ in 0..3600 {
            tokio::time::advance(Duration::from_secs(1)).await;
            let wait = || std::thread::sleep(Duration::from_millis(1));
            tokio::task::spawn_blocking(wait).await.unwrap();
        }
    };
    let done = tokio::select! {
        done = future => Some(done),
        () = passing => None,
    };
    tokio::time::resume();
    done
}

impl Rig {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server ends with the test's runtime"
    )]
    async fn new() -> Self {
        let (opened, streams) = mpsc::channel(1024);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = axum::Router::new().fallback(serve).with_state(opened);
        // The end of a stream must not wait for an acknowledgement of its beginning.
        let listener = listener.tap_io(|socket| socket.set_nodelay(true).unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let yaml = format!("servers: {{ alpha: {{ url: \"http://{address}/mcp\" }} }}");
        let config = Config::parse("gateway.yaml", &yaml, &|_| None).unwrap();
        Self {
            relay: Relay::new(Arc::new(config), Audit::off(), None).unwrap(),
            server: ServerName("alpha".into()),
            who: Principal::anonymous(),
            streams,
        }
    }

    /// A client whose session is one stream, and what it reads there.
    async fn line(&self) -> (Arc<Line>, EventPipe) {
        let opened = self.relay.open_line(&self.server, &self.who, None);
        let (line, mut pipe) = opened.unwrap();
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#;
        let request = Message::parse(&message::request("0", "initialize", params)).unwrap();
        self.relay.begin(&line, request, false).unwrap();
        assert!(matches!(pipe.next().await, Some(Item::Outcome(_))));
        (line, pipe)
    }

    /// Posts a ping to a line.
    async fn ping(&self, line: &Line, session: &Arc<LiveSession>, id: u32) -> Result<(), Error> {
        let request = message::request(&id.to_string(), "ping", "{}");
        let request = Message::parse(&request).unwrap();
        let limiter = self.relay.limiter();
        let admission = limiter.admit(&self.server, session.principal()).unwrap();
        session.call_on(line, request, admission).await
    }

    /// A legacy client's session.
    async fn session(&self) -> Arc<LiveSession> {
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#;
        let request = Message::parse(&message::request("0", "initialize", params)).unwrap();
        let accept = Accept {
            json: true,
            events: true,
        };
        let opening = self
            .relay
            .open(&self.server, &self.who, &request, accept, false);
        let (_, id) = opening.await.unwrap();
        let id = id.unwrap();
        self.relay
            .session(&self.server, &self.who, id.as_bytes())
            .unwrap()
    }

    /// The response to a request of a session.
    async fn say(&self, session: &Arc<LiveSession>, method: &str, params: String) -> Message {
        let id = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
        let request = Message::parse(&message::request(&id, method, &params)).unwrap();
        let accept = Accept {
            json: true,
            events: false,
        };
        let admission = self.relay.limiter().admit(&self.server, &self.who).unwrap();
        match session.call(request, accept, admission).await {
            Ok(Answer::Json(_, response)) => Message::parse(&response).unwrap(),
            Err(error) => Message::parse(&error.body(Some(&id), None)).unwrap(),
            Ok(other) => panic!("{other:?}"),
        }
    }
}

/// Nobody waits for ever for a modern client that does not read: it loses its stream, and the server the
/// one that it told it on.
#[tokio::test]
async fn a_client_that_does_not_read_loses_its_stream() {
    let mut rig = Rig::new().await;
    let request = message::request("1", "subscriptions/listen", "{}");
    let request = Message::parse(&request).unwrap();
    let admission = rig.relay.limiter().admit(&rig.server, &rig.who).unwrap();
    let headers = HeaderMap::new();
    let listening = rig.relay.through(
        &rig.server,
        &rig.who,
        request,
        &headers,
        Caller::new(ClientCapabilities::default(), None, false),
        admission,
    );
    let Answer::Events(mut unread) = listening.await.unwrap() else {
        panic!("no stream");
    };
    let stream = rig.streams.recv().await.unwrap();
    let params = format!(r#"{{"x":"{}"}}"#, "x".repeat(64 * 1024));
    let notice = message::notification("m", &params);
    let telling = async { while stream.send(sse::encode(None, &notice)).await.is_ok() {} };
    let ended = within_an_hour(telling).await;
    assert!(ended.is_some(), "the server still tells");
    while unread.next().await.is_some() {}
}

/// For a legacy client a modern server is listened to while there is somebody to tell; who comes back
/// hears that things may have changed.
#[tokio::test]
async fn nobody_is_listened_to_for_a_client_without_a_stream() {
    let mut rig = Rig::new().await;
    let session = rig.session().await;
    let gone = session.listen(None).unwrap();
    let stream = rig.streams.recv().await.unwrap();
    drop(gone);
    let closed = within_an_hour(stream.closed()).await;
    assert!(closed.is_some(), "the server is still listened to");
    let mut back = session.listen(None).unwrap();
    rig.streams.recv().await.unwrap();
    let changed = message::notification("notifications/tools/list_changed", "{}");
    assert_eq!(back.next().await.unwrap().message(), &changed);
}

/// A server that ends each stream as soon as it has agreed is asked less and less often.
#[tokio::test]
async fn a_server_that_ends_each_stream_at_once_is_left_alone() {
    let mut rig = Rig::new().await;
    let session = rig.session().await;
    let mut hearing = session.listen(None).unwrap();
    let mut times = 0;
    let ending = async {
        while rig.streams.recv().await.is_some() {
            times += 1;
        }
    };
    let reading = async { while hearing.next().await.is_some() {} };
    let both = async { tokio::join!(ending, reading) };
    assert!(within_an_hour(both).await.is_none());
    assert!((5..100).contains(&times), "{times} streams in an hour");
}

/// A session that subscribes to ever more is told when it is enough; what it has stays.
#[tokio::test]
async fn what_a_session_subscribes_to_is_bounded() {
    let rig = Rig::new().await;
    let session = rig.session().await;
    let subscribe = |number: usize| {
        let params = format!(r#"{{"uri":"shop://{number}"}}"#);
        rig.say(&session, "resources/subscribe", params)
    };
    let all: Vec<_> = (0..subscription::MOST).collect();
    for some in all.chunks(16) {
        let answers = futures_util::future::join_all(some.iter().map(|it| subscribe(*it)));
        assert!(answers.await.iter().all(|answer| answer.error().is_none()));
    }
    let refused = subscribe(subscription::MOST).await;
    assert!(refused.error().unwrap().contains("-31006"), "{refused:?}");
    assert!(subscribe(0).await.error().is_none());
}

#[tokio::test]
async fn a_client_that_does_not_read_its_line_loses_it_and_nothing_before_that() {
    let rig = Rig::new().await;
    let (line, mut pipe) = rig.line().await;
    let session = rig.relay.session_of(&line).unwrap();
    for id in 1..=40 {
        rig.ping(&line, &session, id).await.unwrap();
    }
    let ended = within_an_hour(session.ended.cancelled()).await;
    ended.expect("the session ends with the line");
    let mut read = 0;
    while pipe.next().await.is_some() {
        read += 1;
    }
    assert!(read >= streams::PIPE, "{read}");
    let gone = rig
        .relay
        .line(&rig.server, &rig.who, line.id().as_bytes(), None);
    assert!(matches!(gone, Err(Error::UnknownSession)), "{gone:?}");
}

#[tokio::test]
async fn a_client_that_does_not_read_can_not_pile_up_outcomes() {
    let rig = Rig::new().await;
    let (line, _pipe) = rig.line().await;
    let session = rig.relay.session_of(&line).unwrap();
    let mut id = 0;
    let full = loop {
        id += 1;
        assert!(id < 1000, "it is never full");
        if let Err(error) = rig.ping(&line, &session, id).await {
            break error;
        }
        tokio::task::yield_now().await;
    };
    assert!(full.to_string().contains("not read"), "{full}");
}
