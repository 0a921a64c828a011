//! A small MCP server that asks questions: the legacy era over Streamable HTTP, on loopback.
//!
//! It is a real one, so that the demo shows the gateway and not a picture of it. What it does is
//! in `booking`, what it keeps for a client in `session`; this page is the transport (MCP
//! specification 2025-03-26, 2025-06-18 and 2025-11-25, "Transports").
//!
//! # Invariants
//! - It listens on loopback only, and only pages from loopback may call it.
//! - Sessions, bodies and calls are bounded; the session that was unused longest makes room.
//! - Deliberately absent: resumption. A lost stream loses its call, and nothing is booked.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::calls::{Running, respond};
use super::message::{Message, answer, heard, parse, read_answer, takes_forms};
use super::session::{Back, Session, touch};
use super::story::{Story, Way};

/// How long a person may think about a question.
pub(super) const PATIENCE: Duration = Duration::from_mins(10);
/// Versions that this server speaks, newest first.
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// The version that still had batches, and that is meant where none is named.
const OLDEST: &str = "2025-03-26";
const MAX_SESSIONS: usize = 100;
const MAX_BODY: usize = 256 * 1024;
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// The running server.
pub(super) struct DemoServer {
    address: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
}

struct Shared {
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    requests: AtomicU64,
    stop: CancellationToken,
    story: Story,
}

impl DemoServer {
    /// Starts it on a free port of the loopback interface.
    pub(super) async fn start(story: Story) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let shared = Shared {
            sessions: Mutex::default(),
            requests: AtomicU64::new(0),
            stop: stop.clone(),
            story,
        };
        let routes = Router::new()
            .route("/mcp", post(receive).get(listen).delete(end))
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .with_state(Arc::new(shared));
        let tasks = TaskTracker::new();
        // Small events that wait for an acknowledgement would be 40 ms late.
        let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
        let serve =
            axum::serve(listener, routes).with_graceful_shutdown(stop.clone().cancelled_owned());
        tasks.spawn(serve.into_future());
        tasks.close();
        Ok(Self {
            address,
            stop,
            tasks,
        })
    }

    /// Its MCP endpoint.
    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Ends every session and waits until the last stream is closed.
    pub(super) async fn shutdown(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

/// What is answered instead of serving a request.
pub(super) struct Refusal(
    pub(super) StatusCode,
    pub(super) i32,
    pub(super) &'static str,
);

impl Refusal {
    /// The request is not what the protocol allows.
    pub(super) const fn invalid(text: &'static str) -> Self {
        Self(StatusCode::BAD_REQUEST, -32600, text)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = json!({ "code": self.1, "message": self.2 });
        let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
        (
            self.0,
            [(header::CONTENT_TYPE, "application/json")],
            body.to_string(),
        )
            .into_response()
    }
}

pub(super) const SERVER_ERROR: i32 = -32000;

/// POST: one message, or at 2025-03-26 several.
async fn receive(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    check_origin(&headers)?;
    let (messages, batch) = parse(&body)?;
    if let [first] = messages.as_slice()
        && first.method.as_deref() == Some("initialize")
    {
        return shared.initialize(first);
    }
    let session = shared.session(&headers)?;
    if batch && session.version != OLDEST {
        return Err(Refusal::invalid("batches ended with 2025-03-26"));
    }
    let mut requests = Vec::new();
    for message in messages {
        match (message.id, message.method) {
            (Some(id), Some(method)) => requests.push((id, method, message.params)),
            (None, Some(method)) => notice(&session, &method, &message.params),
            (Some(id), None) => {
                let question = serde_json::from_str::<String>(id.get()).unwrap_or_default();
                let answer = read_answer(message.result, message.error);
                shared.story.message(Way::GatewayToServer, heard(&answer));
                if !session.answer(&question, answer) {
                    shared.story.detail("nobody waits for this answer");
                }
            }
            (None, None) => {
                return Err(Refusal::invalid("this is no message"));
            }
        }
    }
    if requests.is_empty() {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let streamed = batch || requests.iter().any(|(_, method, _)| method == "tools/call");
    let (events, queue) = mpsc::channel(4);
    let back = Back {
        session: Arc::clone(&session),
        events,
        story: shared.story.clone(),
    };
    if let [(id, method, params)] = requests.as_slice()
        && !streamed
    {
        return Ok(json_response(respond(id, method, params, &back).await));
    }
    Ok(stream_response(Running::start(requests, back, queue)))
}

/// GET: the stream for what belongs to no call. This server has nothing to say there; it stays
/// open as long as the session.
async fn listen(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    check_origin(&headers)?;
    let session = shared.session(&headers)?;
    let hello = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b": open\n\n"))]);
    let over = session.open_stream().cancelled_owned();
    let rest = stream::once(over).filter_map(|()| std::future::ready(None));
    Ok(stream_response(hello.chain(rest)))
}

/// DELETE: the client is done with its session.
async fn end(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Result<StatusCode, Refusal> {
    check_origin(&headers)?;
    shared.session(&headers)?;
    if let Some(id) = text(&headers, SESSION)
        && let Some(session) = shared.sessions.lock().remove(id)
    {
        session.ended.cancel();
        shared
            .story
            .message(Way::GatewayToServer, "the session ends");
    }
    Ok(StatusCode::NO_CONTENT)
}

impl Shared {
    /// Opens a session: the version that both speak, and what this server can do.
    fn initialize(&self, request: &Message) -> Result<Response, Refusal> {
        let Some(id) = &request.id else {
            return Err(Refusal::invalid("initialize needs an id"));
        };
        let offered = request
            .params
            .get("protocolVersion")
            .and_then(Value::as_str);
        let [newest, ..] = VERSIONS;
        let version = VERSIONS
            .into_iter()
            .find(|known| offered == Some(known))
            .unwrap_or(newest);
        let takes_forms = takes_forms(request.params.pointer("/capabilities/elicitation"));
        let name = new_session_id().ok_or(Refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            SERVER_ERROR,
            "no randomness for a session id",
        ))?;
        let session = Arc::new(Session::new(version, takes_forms, self.stop.child_token()));
        touch(&session, self.now());
        self.keep(name.clone(), session);
        let can = if takes_forms {
            "can be asked"
        } else {
            "can't be asked"
        };
        self.story.message(
            Way::GatewayToServer,
            format_args!("a client that {can} says hello"),
        );
        self.story.message(
            Way::ServerToGateway,
            format_args!("welcome, we speak MCP {version}"),
        );
        let result = json!({
            "protocolVersion": version,
            "capabilities": { "tools": {} },
            "serverInfo": {
                "name": "demo",
                "title": "Contraflow demo: tables in restaurants",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "instructions": "Books tables. Asks the user for what it needs to know.",
        });
        let mut response = json_response(answer(id, Ok(result)));
        if let Ok(name) = HeaderValue::from_str(&name) {
            response.headers_mut().insert(SESSION, name);
        }
        Ok(response)
    }

    fn keep(&self, name: String, session: Arc<Session>) {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= MAX_SESSIONS {
            let used = |session: &Session| session.last_used.load(Ordering::Relaxed);
            let oldest = sessions
                .iter()
                .min_by_key(|(_, s)| used(s))
                .map(|(name, _)| name.clone());
            if let Some(left) = oldest.and_then(|name| sessions.remove(&name)) {
                left.ended.cancel();
            }
        }
        sessions.insert(name, session);
    }

    /// The session that a request names.
    fn session(&self, headers: &HeaderMap) -> Result<Arc<Session>, Refusal> {
        let missing = Refusal::invalid("Mcp-Session-Id is missing");
        let name = text(headers, SESSION).ok_or(missing)?;
        let unknown = Refusal(
            StatusCode::NOT_FOUND,
            SERVER_ERROR,
            "there is no such session",
        );
        let session = self
            .sessions
            .lock()
            .get(name)
            .map(Arc::clone)
            .ok_or(unknown)?;
        // Absent, the version is what the session agreed on.
        if text(headers, VERSION).is_some_and(|version| version != session.version) {
            let text = "MCP-Protocol-Version is not what this session agreed on";
            return Err(Refusal::invalid(text));
        }
        touch(&session, self.now());
        Ok(session)
    }

    fn now(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }
}

fn notice(session: &Session, method: &str, params: &Value) {
    if method == "notifications/cancelled"
        && let Some(id) = params.get("requestId")
    {
        session.stop(&id.to_string());
    }
}

/// Keeps web pages of other sites out, whose names may resolve to loopback.
fn check_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let origin = origin
        .to_str()
        .ok()
        .and_then(|origin| url::Url::parse(origin).ok());
    match origin.as_ref().and_then(url::Url::host_str) {
        Some("localhost" | "127.0.0.1" | "[::1]") => Ok(()),
        _ => Err(Refusal(
            StatusCode::FORBIDDEN,
            SERVER_ERROR,
            "pages of this origin may not call",
        )),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// 128 random bits, in hexadecimal digits.
fn new_session_id() -> Option<String> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn json_response(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn stream_response(
    events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, Body::from_stream(events)).into_response()
}
