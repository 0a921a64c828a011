//! A scripted MCP server: the test is the script.
//!
//! Handshake, notices, answers, GET and DELETE are served by themselves; so are the small tools
//! `echo`, `count`, `who` and `quiz`. Every other request is held until the test takes it with
//! [`Server::called`] or [`Server::asked`] and replies, byte by byte if it wants.
//!
//! # Invariants
//! - Every HTTP request is recorded before it is answered, in order of arrival, body unread by anyone.
//! - A session that it did not give out, or has forgotten, gets 404 whatever is asked.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::habits::{Shared, State, serve};
use super::{PATIENCE, json};

pub(crate) use super::habits::Habits;
pub(crate) use super::script::{Held, Seen, Stream, response};

/// The running server. Dropping it does not stop it; the test's runtime does.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// A server with ordinary habits.
    pub(crate) async fn start() -> Self {
        Self::with(|_| ()).await
    }

    /// A server with other habits.
    pub(crate) async fn with(change: impl FnOnce(&mut Habits)) -> Self {
        let mut habits = Habits::default();
        change(&mut habits);
        let shared = Arc::new(Shared {
            habits: Mutex::new(habits),
            state: Mutex::default(),
            changed: watch::channel(()).0,
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new()
            .fallback(serve)
            .with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, shared }
    }

    /// Its endpoint.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Changes its habits from now on.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Habits)) {
        change(&mut self.shared.habits.lock());
    }

    /// Everything that arrived so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.state.lock().seen.clone()
    }

    /// How many messages arrived so far. The GET of a session comes when it comes and is not counted.
    pub(crate) fn posts(&self) -> usize {
        self.seen()
            .iter()
            .filter(|seen| seen.http == Method::POST)
            .count()
    }

    /// The requests and notifications with this JSON-RPC method that arrived so far.
    pub(crate) fn seen_method(&self, method: &str) -> Vec<Seen> {
        let wanted = Some(method.to_owned());
        self.seen()
            .into_iter()
            .filter(|seen| seen.method() == wanted)
            .collect()
    }

    /// The bodies of all answers that arrived so far.
    pub(crate) fn answers(&self) -> Vec<String> {
        self.seen()
            .iter()
            .filter(|s| s.is_answer())
            .map(|s| s.text().to_owned())
            .collect()
    }

    /// The session ids that it gave out, in order.
    pub(crate) fn opened(&self) -> Vec<String> {
        self.shared.state.lock().opened.clone()
    }

    /// The sessions that have not ended.
    pub(crate) fn live(&self) -> usize {
        self.shared.state.lock().live.len()
    }

    /// Forgets all sessions, as after a restart.
    pub(crate) fn forget(&self) {
        self.shared.state.lock().live.clear();
    }

    /// Takes the next held call of this tool.
    pub(crate) async fn called(&self, tool: &str) -> Held {
        let wanted = Some(tool.to_owned());
        self.take(&format!("a call of {tool}"), |held| {
            held.seen.tool() == wanted
        })
        .await
    }

    /// Takes the next held request with this method.
    pub(crate) async fn asked(&self, method: &str) -> Held {
        let wanted = Some(method.to_owned());
        self.take(&format!("a request {method}"), |held| {
            held.seen.method() == wanted
        })
        .await
    }

    /// Takes the next held request that fits.
    pub(crate) async fn take(&self, what: &str, fits: impl Fn(&Held) -> bool) -> Held {
        self.wait(what, |state| {
            let position = state.held.iter().position(&fits)?;
            state.held.remove(position)
        })
        .await
    }

    /// Takes the GET stream that the gateway opened in this session.
    pub(crate) async fn get_stream(&self, session: &str) -> Stream {
        self.wait(&format!("the GET stream of {session}"), |state| {
            let position = state
                .streams
                .iter()
                .position(|(owner, _)| owner == session)?;
            state.streams.remove(position).map(|(_, stream)| stream)
        })
        .await
    }

    /// Takes the GET stream of the session that was opened last.
    pub(crate) async fn last_get_stream(&self) -> Stream {
        let session = self.opened().last().cloned().unwrap_or_default();
        self.get_stream(&session).await
    }

    /// Waits for the first request that fits.
    pub(crate) async fn sees(&self, what: &str, fits: impl Fn(&Seen) -> bool) -> Seen {
        self.wait(what, |state| {
            state.seen.iter().find(|seen| fits(seen)).cloned()
        })
        .await
    }

    /// Waits for a notification with this method.
    pub(crate) async fn notice(&self, method: &str) -> Seen {
        let wanted = Some(method.to_owned());
        self.sees(method, |seen| {
            seen.http == Method::POST && seen.method() == wanted
        })
        .await
    }

    /// Waits for the answer to the question with exactly this id and gives its body.
    pub(crate) async fn answer_to(&self, id: &str) -> String {
        let wanted = Some(id.to_owned());
        let fits = |seen: &Seen| seen.is_answer() && seen.raw(&["id"]) == wanted;
        self.sees(&format!("the answer to {id}"), fits)
            .await
            .text()
            .to_owned()
    }

    /// Waits for an error as answer to the question with exactly this id and gives its code.
    pub(crate) async fn error_to(&self, id: &str) -> i64 {
        let answer = self.answer_to(id).await;
        json::parse(&answer)["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("not an error: {answer}"))
    }

    /// Waits for `cancel` as answer to the question with exactly this id: nobody answered it.
    pub(crate) async fn cancelled(&self, id: &str) {
        let answer = self.answer_to(id).await;
        assert_eq!(answer, json::result(id, r#"{"action":"cancel"}"#));
    }

    async fn wait<T>(&self, what: &str, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        let mut changed = self.shared.changed.subscribe();
        let found = async {
            loop {
                if let Some(found) = look(&mut self.shared.state.lock()) {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        };
        let Ok(found) = tokio::time::timeout(PATIENCE, found).await else {
            panic!("the server waited for {what}; it saw:\n{}", self.dump());
        };
        found
    }

    fn dump(&self) -> String {
        let line = |seen: &Seen| {
            let body = String::from_utf8_lossy(&seen.body).into_owned();
            format!("  {} {} {body}\n", seen.http, seen.session())
        };
        self.seen().iter().map(line).collect()
    }
}
