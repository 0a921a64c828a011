//! What the demo server keeps for one client: its bookings, its running calls and the questions
//! that wait for its answer.
//!
//! # Invariants
//! - A question is answered once, by the session that it was asked in; any other answer is nothing.
//! - A question ends with its call: however the call ends, nothing of it stays behind.
//! - Bookings, calls and questions are bounded.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::story::{Story, Way};

/// One client of the demo server.
pub(super) struct Session {
    /// The protocol version that was agreed on.
    pub(super) version: &'static str,
    /// Whether the client said that it can be asked with a form.
    pub(super) takes_forms: bool,
    /// Cancelled when the session ends: its calls and streams end with it.
    pub(super) ended: CancellationToken,
    /// When it was used last, in requests of the whole server.
    pub(super) last_used: AtomicU64,
    state: Mutex<State>,
    stream: Mutex<CancellationToken>,
}

#[derive(Default)]
struct State {
    bookings: Vec<Booking>,
    booked: u32,
    asked: u32,
    questions: HashMap<String, oneshot::Sender<Answer>>,
    calls: HashMap<String, CancellationToken>,
}

/// A table that is reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Booking {
    /// `B1`, `B2` …
    pub(super) id: String,
    /// Where, when, for how many, and which seats.
    pub(super) what: String,
}

/// What came back for a question.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// The person filled the form in.
    Accept(Map<String, Value>),
    /// The person said no.
    Decline,
    /// The person closed the question without a choice.
    Cancel,
    /// The question could not be put, or no answer came: why.
    None(String),
}

const MAX_BOOKINGS: usize = 20;
const MAX_CALLS: usize = 32;

impl Session {
    pub(super) fn new(version: &'static str, takes_forms: bool, ended: CancellationToken) -> Self {
        Self {
            version,
            takes_forms,
            last_used: AtomicU64::new(0),
            state: Mutex::default(),
            stream: Mutex::new(ended.child_token()),
            ended,
        }
    }

    /// Opens the stream for what belongs to no call: the token says when it is over, with the
    /// session or because the client opened another one.
    pub(super) fn open_stream(&self) -> CancellationToken {
        let new = self.ended.child_token();
        std::mem::replace(&mut *self.stream.lock(), new.clone()).cancel();
        new
    }

    /// Every booking, oldest first.
    pub(super) fn bookings(&self) -> Vec<Booking> {
        self.state.lock().bookings.clone()
    }

    /// Reserves a table; `None` when the session has too many already.
    pub(super) fn book(&self, what: String) -> Option<Booking> {
        let mut state = self.state.lock();
        if state.bookings.len() >= MAX_BOOKINGS {
            return None;
        }
        state.booked += 1;
        let booking = Booking {
            id: format!("B{}", state.booked),
            what,
        };
        state.bookings.push(booking.clone());
        Some(booking)
    }

    /// The booking with this id.
    pub(super) fn booking(&self, id: &str) -> Option<Booking> {
        self.state
            .lock()
            .bookings
            .iter()
            .find(|booking| booking.id == id)
            .cloned()
    }

    /// Takes a booking back; `false` when it is gone already.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let mut state = self.state.lock();
        let before = state.bookings.len();
        state.bookings.retain(|booking| booking.id != id);
        state.bookings.len() < before
    }

    /// Counts a call that starts; `None` when too many run. `id` is the request's id as it was
    /// written.
    pub(super) fn begin(self: &Arc<Self>, id: &str) -> Option<Call> {
        let mut state = self.state.lock();
        if state.calls.len() >= MAX_CALLS || state.calls.contains_key(id) {
            return None;
        }
        let cancelled = self.ended.child_token();
        state.calls.insert(id.to_owned(), cancelled.clone());
        Some(Call {
            id: id.to_owned(),
            cancelled,
            session: Arc::clone(self),
        })
    }

    /// Stops the call with this id (`notifications/cancelled`).
    pub(super) fn stop(&self, id: &str) {
        if let Some(cancelled) = self.state.lock().calls.get(id) {
            cancelled.cancel();
        }
    }

    /// Gives an answer to the question that waits for it; `false` when none does.
    pub(super) fn answer(&self, question: &str, answer: Answer) -> bool {
        let waiting = self.state.lock().questions.remove(question);
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    fn question(self: &Arc<Self>) -> Open {
        let (sender, answer) = oneshot::channel();
        let mut state = self.state.lock();
        state.asked += 1;
        let id = format!("question-{}", state.asked);
        state.questions.insert(id.clone(), sender);
        Open {
            id,
            answer,
            session: Arc::clone(self),
        }
    }
}

/// A running call; ends by being dropped.
pub(super) struct Call {
    id: String,
    /// Cancelled when the client wants no answer any more, or the session ends.
    pub(super) cancelled: CancellationToken,
    session: Arc<Session>,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.session.state.lock().calls.remove(&self.id);
    }
}

/// A question that waits. A call asks one at a time, so the bound of calls bounds questions too.
struct Open {
    id: String,
    answer: oneshot::Receiver<Answer>,
    session: Arc<Session>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.session.state.lock().questions.remove(&self.id);
    }
}

/// The way back from a running call to its client: the stream of the request that started it.
#[derive(Clone)]
pub(super) struct Back {
    pub(super) session: Arc<Session>,
    pub(super) events: mpsc::Sender<Bytes>,
    pub(super) story: Story,
}

impl Back {
    /// Asks the person behind the client to fill in a form, and waits for the answer.
    ///
    /// A question is sent only to a client that declared `elicitation`; see "User Interaction
    /// Model" and "Capabilities" of the client features in the MCP specification, 2025-06-18.
    pub(super) async fn ask(&self, message: &str, form: Value) -> Answer {
        if !self.session.takes_forms {
            return Answer::None("this client did not say that it can be asked".to_owned());
        }
        let mut open = self.session.question();
        self.story.message(
            Way::ServerToGateway,
            "a question, in the middle of the call (elicitation/create)",
        );
        let question = json!({
            "jsonrpc": "2.0",
            "id": open.id,
            "method": "elicitation/create",
            "params": { "message": message, "requestedSchema": form },
        });
        if self
            .events
            .send(event(&question.to_string()))
            .await
            .is_err()
        {
            return Answer::None("the client's stream is closed".to_owned());
        }
        match tokio::time::timeout(super::server::PATIENCE, &mut open.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Answer::None("no answer came".to_owned()),
        }
    }
}

/// A message as an event of a stream (<https://html.spec.whatwg.org/#event-stream-interpretation>).
/// JSON as `serde_json` writes it has no line breaks.
pub(super) fn event(message: &str) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

/// Counts a use of the session; `now` grows with every request of the server.
pub(super) fn touch(session: &Session, now: u64) {
    session.last_used.fetch_max(now, Ordering::Relaxed);
}
