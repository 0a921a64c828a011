//! How the scripted server behaves by itself: handshake, notices, answers, GET, DELETE, small tools.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Request, State as Given};
use axum::http::Method;
use axum::response::Response;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::json;
use super::script::{Held, Seen, Stream, response, streaming};

/// How the server behaves where the test does not reply itself.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each habit is had or not, independent of others"
)]
pub(crate) struct Habits {
    /// Whether GET opens a stream; if not, 405.
    pub(crate) get: bool,
    /// Whether it hands out session ids.
    pub(crate) sessions: bool,
    /// The version it always chooses; `None`: the one that the client offers.
    pub(crate) version: Option<&'static str>,
    /// Refuses a request after the handshake whose version header is not the negotiated one.
    pub(crate) strict: bool,
    /// Holds `initialize` for the test, too.
    pub(crate) hold_initialize: bool,
    /// Answers `initialize` as a stream of events.
    pub(crate) initialize_as_stream: bool,
    /// Status and body for notices and answers.
    pub(crate) accepted: (u16, &'static str),
    /// Status for DELETE.
    pub(crate) deleted: u16,
    /// Capabilities it declares.
    pub(crate) capabilities: &'static str,
    /// Speaks 2026-07-28 and nothing else.
    pub(crate) modern: bool,
    /// The tools that it lists at that version, as a JSON array.
    pub(crate) tools: &'static str,
    /// Answers every request with this status and content type and body, if set.
    pub(crate) always: Option<(u16, &'static str, &'static str)>,
}

/// What the server's tasks and the test share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) habits: Mutex<Habits>,
    pub(super) state: Mutex<State>,
    pub(super) changed: watch::Sender<()>,
}

/// What the server knows and remembers.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) seen: Vec<Seen>,
    pub(super) held: VecDeque<Held>,
    pub(super) streams: VecDeque<(String, Stream)>,
    pub(super) opened: Vec<String>,
    pub(super) live: BTreeSet<String>,
    pub(super) versions: BTreeMap<String, String>,
    pub(super) counters: BTreeMap<String, u32>,
    pub(super) quizzes: BTreeMap<(String, String), oneshot::Sender<String>>,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            get: true,
            sessions: true,
            version: None,
            strict: false,
            hold_initialize: false,
            initialize_as_stream: false,
            accepted: (202, ""),
            deleted: 200,
            capabilities: r#"{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true}}"#,
            modern: false,
            tools: "[]",
            always: None,
        }
    }
}

/// Records a request, and replies to it sooner or later.
pub(super) async fn serve(
    Given(shared): Given<Arc<Shared>>,
    request: Request,
) -> Result<Response, Infallible> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let seen = Seen {
        http: head.method,
        headers: head.headers,
        body,
    };
    shared.state.lock().seen.push(seen.clone());
    let reply = shared.reply(seen).await;
    Ok(reply)
}

impl Shared {
    async fn reply(self: &Arc<Self>, seen: Seen) -> Response {
        self.changed.send_replace(());
        let habits = self.habits.lock().clone();
        if let Some((status, content_type, body)) = habits.always {
            return response(status, content_type, body.to_owned());
        }
        if habits.modern {
            return self.modern(seen, &habits).await;
        }
        let method = seen.method();
        // What a gateway asks to learn the era; here the answer is: an old one.
        if method.as_deref() == Some("server/discover") {
            let error = json::error(&json::id(seen.text()), -32601, "Method not found");
            return response(404, "application/json", error);
        }
        let opening = method.as_deref() == Some("initialize");
        if let Some(refusal) = self.refuse(&seen, &habits, opening) {
            return refusal;
        }
        match (&seen.http, method.as_deref()) {
            (&Method::GET, _) if habits.get => self.listen(seen),
            (&Method::DELETE, _) => {
                if habits.deleted < 300 {
                    self.state.lock().live.remove(seen.session());
                }
                response(habits.deleted, "", String::new())
            }
            (&Method::POST, Some("initialize")) if !habits.hold_initialize => {
                self.initialize(&seen, &habits)
            }
            (&Method::POST, Some("ping")) if seen.raw(&["id"]).is_some() => answer(&seen, "{}"),
            (&Method::POST, Some(_)) if seen.raw(&["id"]).is_none() => accepted(&habits),
            (&Method::POST, None) if seen.is_answer() => {
                let key = (seen.session().to_owned(), json::id(seen.text()));
                if let Some(quiz) = self.state.lock().quizzes.remove(&key) {
                    drop(quiz.send(seen.text().to_owned()));
                }
                accepted(&habits)
            }
            (&Method::POST, Some("tools/call")) => match seen.tool().as_deref() {
                Some("echo") => {
                    let text = seen.raw(&["params", "arguments", "x"]).unwrap_or_default();
                    answer(&seen, &json::text_result(&text))
                }
                Some("count") => {
                    let mut state = self.state.lock();
                    let counter = state.counters.entry(seen.session().to_owned()).or_default();
                    *counter += 1;
                    answer(&seen, &json::text_result(&counter.to_string()))
                }
                Some("who") => answer(&seen, &json::text_result(&format!("{:?}", seen.headers))),
                Some("quiz") => self.quiz(seen),
                _ => self.hold(seen).await,
            },
            (&Method::POST, _) => self.hold(seen).await,
            _ => response(405, "", String::new()),
        }
    }

    fn refuse(&self, seen: &Seen, habits: &Habits, opening: bool) -> Option<Response> {
        if opening || !habits.sessions {
            return None;
        }
        let state = self.state.lock();
        if !state.live.contains(seen.session()) {
            let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
            return Some(response(404, "application/json", body.to_owned()));
        }
        let negotiated = state
            .versions
            .get(seen.session())
            .map_or("", String::as_str);
        let named = seen.header("mcp-protocol-version");
        let wrong = if negotiated == "2025-03-26" {
            !named.is_empty() && named != negotiated
        } else {
            named != negotiated
        };
        if habits.strict && wrong {
            return Some(response(400, "text/plain", "wrong version".to_owned()));
        }
        None
    }

    fn initialize(&self, seen: &Seen, habits: &Habits) -> Response {
        let offered = seen.raw(&["params", "protocolVersion"]).unwrap_or_default();
        let version = habits
            .version
            .map_or(offered, |version| format!("\"{version}\""));
        let result = format!(
            r#"{{"protocolVersion":{version},"capabilities":{},"serverInfo":{{"name":"scripted","version":"1"}}}}"#,
            habits.capabilities
        );
        let mut reply = if habits.initialize_as_stream {
            let body = format!(
                "data: {}\n\n",
                json::result(&json::id(seen.text()), &result)
            );
            response(200, "text/event-stream", body)
        } else {
            answer(seen, &result)
        };
        if habits.sessions {
            let mut state = self.state.lock();
            let session = format!("upstream-{}-{}", state.opened.len(), std::process::id());
            reply
                .headers_mut()
                .insert("mcp-session-id", session.parse().unwrap());
            state.opened.push(session.clone());
            state
                .versions
                .insert(session.clone(), version.trim_matches('"').to_owned());
            state.live.insert(session);
        }
        self.changed.send_replace(());
        reply
    }

    fn listen(&self, seen: Seen) -> Response {
        let (chunks, response) = streaming("text/event-stream");
        let session = seen.session().to_owned();
        let stream = Stream {
            id: String::new(),
            seen,
            chunks,
        };
        self.state.lock().streams.push_back((session, stream));
        self.changed.send_replace(());
        response
    }

    pub(super) async fn hold(&self, seen: Seen) -> Response {
        let (reply, replied) = oneshot::channel();
        self.state.lock().held.push_back(Held { seen, reply });
        self.changed.send_replace(());
        replied
            .await
            .unwrap_or_else(|_| response(500, "text/plain", "the test let it go".to_owned()))
    }

    /// Asks the argument `token` back, as often as the argument `rounds` says, and returns what was
    /// answered, all by itself. Where `at_once` says so, each round is that many questions, and all are
    /// numbered.
    fn quiz(self: &Arc<Self>, seen: Seen) -> Response {
        let (chunks, response) = streaming("text/event-stream");
        let argument = |name| seen.raw(&["params", "arguments", name]);
        let number = |name| argument(name).map(|number| number.parse::<usize>().unwrap());
        let token = argument("token").unwrap_or_default();
        let (rounds, at_once) = (number("rounds").unwrap_or(1), number("at_once"));
        let message = move |number| match at_once {
            None => token.clone(),
            Some(_) => token.replacen('"', &format!("\"{number}:"), 1),
        };
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let stream = Stream {
                id: json::id(seen.text()),
                seen,
                chunks,
            };
            let mut said = Vec::new();
            for _ in 0..rounds {
                let mut asked = Vec::new();
                for number in 0..at_once.unwrap_or(1) {
                    let message = message(said.len() + number);
                    asked.push(shared.question(&stream, &message).await);
                }
                for answered in asked {
                    let Ok(answer) = answered.await else { return };
                    said.push(json::raw(&answer, &["result", "content", "said"]).unwrap_or(answer));
                }
            }
            stream.result(&json::text_result(&said.join(","))).await;
        });
        response
    }

    async fn question(&self, stream: &Stream, message: &str) -> oneshot::Receiver<String> {
        let session = stream.seen.session().to_owned();
        let (answer, answered) = oneshot::channel();
        // Every session counts its questions from 1: ids repeat between sessions, as in real servers.
        let id = {
            let mut state = self.state.lock();
            let counter = state.counters.entry(session.clone()).or_default();
            *counter += 1;
            let id = counter.to_string();
            state.quizzes.insert((session, id.clone()), answer);
            id
        };
        let params = format!(
            r#"{{"message":{message},"requestedSchema":{{"type":"object","properties":{{"said":{{"type":"string"}}}}}}}}"#
        );
        let question = json::request(&id, "elicitation/create", &params);
        stream.send(&question).await;
        answered
    }
}

fn accepted(habits: &Habits) -> Response {
    let (status, body) = habits.accepted;
    response(
        status,
        if body.is_empty() {
            ""
        } else {
            "application/json"
        },
        body.to_owned(),
    )
}

pub(super) fn answer(seen: &Seen, result: &str) -> Response {
    response(
        200,
        "application/json",
        json::result(&json::id(seen.text()), result),
    )
}
