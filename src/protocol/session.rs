//! One client's conversation with one server: the calls in flight, and the questions that the
//! server asks meanwhile. This is where a question finds its way back.
//!
//! Ids belong to a leg. Towards the server a call gets a [`LegId`], towards the client a question
//! gets a [`QuestionId`]; what the other side chose is kept as the JSON text it was and put back.
//!
//! # Invariants
//! - A question leaves the book exactly once: by [`answer`](Session::answer),
//!   [`withdraw`](Session::withdraw), [`give_up`](Session::give_up) or [`close`](Session::close). Who
//!   takes it out owes the server the one answer.
//! - An answer is matched by the id that was given to the question, never by order or by guess.
//! - Ids are never used twice on a leg.
//! - The time in which a person thinks is not the call's.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Instant;

use super::capability::{ClientCapabilities, Need, Undeclared};
use super::clock::{Clock, Due, Patience};
use super::early::Early;
use super::message::Message;
use super::object::text;

/// A call's id towards the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LegId(u64);

/// A question's id towards the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(u64);

/// A request of the client that has no outcome yet.
#[derive(Clone, Debug)]
pub struct Call {
    /// The id that the client gave it, as JSON text.
    pub client_id: Box<str>,
    /// Its progress token, as JSON text.
    pub token: Option<Box<str>>,
    cancelled: bool,
    clock: Clock,
}

impl Call {
    /// Whether its client has cancelled it, and the server was told.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }
}

/// A question of the server that has no answer yet.
#[derive(Clone, Debug)]
pub struct Question {
    /// The id that the server gave it, as JSON text.
    pub server_id: Box<str>,
    /// What is asked, such as `elicitation/create`.
    pub method: Box<str>,
    /// The call on whose stream it came; none when it came on the standalone stream.
    pub cause: Option<LegId>,
    /// When it came.
    pub asked: Instant,
    /// The call that began next.
    before: LegId,
}

/// Why a call can't begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBegun {
    /// The id is that of a call still in flight (JSON-RPC ids must be unique in a session).
    DuplicateId,
    /// It was cancelled before it came.
    Cancelled,
    /// The session has ended.
    Closed,
}

/// Why a question is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAsked {
    /// The client never said that it can be asked this.
    Undeclared(Undeclared),
    /// The session has ended.
    Closed,
}

/// The calls and questions of one legacy session.
#[derive(Debug)]
pub struct Session {
    capabilities: ClientCapabilities,
    calls: BTreeMap<LegId, Box<Call>>,
    legs: HashMap<Box<str>, LegId>,
    early: Early,
    questions: HashMap<QuestionId, Question>,
    next_leg: u64,
    next_question: u64,
    closed: bool,
}

/// What is left when a session ends.
#[derive(Debug, Default)]
pub struct Remains {
    /// Calls without an outcome.
    pub calls: Vec<(LegId, Call)>,
    /// Questions without an answer.
    pub questions: Vec<(QuestionId, Question)>,
}

impl Session {
    /// A session of a client that can be asked what `capabilities` says.
    pub fn new(capabilities: ClientCapabilities) -> Self {
        Self {
            capabilities,
            calls: BTreeMap::new(),
            legs: HashMap::new(),
            early: Early::default(),
            questions: HashMap::new(),
            next_leg: 1,
            next_question: 1,
            closed: false,
        }
    }

    /// A request of the client begins; it goes to the server under the returned id.
    ///
    /// # Errors
    /// When its id is in use, or the session has ended.
    pub fn begin(
        &mut self,
        now: Instant,
        client_id: &str,
        token: Option<&str>,
    ) -> Result<LegId, NotBegun> {
        if self.closed {
            return Err(NotBegun::Closed);
        }
        if self.legs.contains_key(client_id) {
            return Err(NotBegun::DuplicateId);
        }
        if self.early.take(now, client_id) {
            return Err(NotBegun::Cancelled);
        }
        let leg = LegId(self.next_leg);
        self.next_leg += 1;
        self.legs.insert(client_id.into(), leg);
        self.calls.insert(
            leg,
            Box::new(Call {
                client_id: client_id.into(),
                token: token.map(Into::into),
                cancelled: false,
                clock: Clock::new(now),
            }),
        );
        Ok(leg)
    }

    /// A call has its outcome, or will never have one. Its questions stay: a server may still wait
    /// for an answer that it asked for on the side.
    pub fn finish(&mut self, leg: LegId) -> Option<Call> {
        let call = self.calls.remove(&leg)?;
        self.legs.remove(&call.client_id);
        self.early.finish(&call.client_id);
        Some(*call)
    }

    /// The client cancels a call: the id that the server knows it by, the first time. A call that has not come
    /// yet is remembered for a moment: the two come on connections of their own.
    pub fn cancel(&mut self, now: Instant, client_id: &str) -> Option<LegId> {
        let Some(&leg) = self.legs.get(client_id) else {
            self.early.cancel(now, client_id);
            return None;
        };
        let call = self.calls.get_mut(&leg)?;
        (!std::mem::replace(&mut call.cancelled, true)).then_some(leg)
    }

    /// When a call is late; never when there is no such call.
    pub fn due(&self, now: Instant, leg: LegId, patience: &Patience) -> Due {
        let call = self.calls.get(&leg);
        call.map_or(Due::Thinking, |call| call.clock.due(now, patience))
    }

    /// A call is sent to the server, for the first time or again.
    pub fn sent(&mut self, now: Instant, leg: LegId) {
        if let Some(call) = self.calls.get_mut(&leg) {
            call.clock.send(now);
        }
    }

    /// The server says something that belongs to a call.
    pub fn heard(&mut self, now: Instant, leg: LegId) {
        if let Some(call) = self.calls.get_mut(&leg) {
            call.clock.hear(now);
        }
    }

    /// Whether a call in flight asked for progress under this token (JSON text), of which there is some. A server
    /// may spell the same string in another way.
    pub fn takes_progress(&mut self, now: Instant, token: &str) -> bool {
        let same = |own: &str| own == token || (text(own).is_some() && text(own) == text(token));
        let mut any = false;
        for call in self.calls.values_mut() {
            if call.token.as_deref().is_some_and(same) {
                call.clock.hear(now);
                any = true;
            }
        }
        any
    }

    /// Whether the server was told that it may ask what needs this.
    ///
    /// # Errors
    /// What to tell it if not.
    pub fn allows(&self, need: Need) -> Result<(), Undeclared> {
        self.capabilities.meet(need)
    }

    /// The server asks something, on the stream of `cause` or on its own. The client is asked
    /// under the returned id.
    ///
    /// # Errors
    /// When the client can't be asked this, or the session has ended. The server has to be told.
    pub fn ask(
        &mut self,
        now: Instant,
        cause: Option<LegId>,
        question: &Message,
    ) -> Result<QuestionId, NotAsked> {
        if self.closed {
            return Err(NotAsked::Closed);
        }
        self.capabilities
            .allow(question)
            .map_err(NotAsked::Undeclared)?;
        let question = Question {
            server_id: question.id().unwrap_or("null").into(),
            method: question.method().into(),
            cause,
            asked: now,
            before: LegId(self.next_leg),
        };
        Ok(self.book(question))
    }

    /// The gateway itself asks something before it sends the call `cause` on: so what the server was told
    /// does not matter, and the server knows the question by no id under which it could withdraw it.
    ///
    /// # Errors
    /// When the session has ended.
    pub fn ask_own(
        &mut self,
        now: Instant,
        cause: LegId,
        question: &Message,
    ) -> Result<QuestionId, NotAsked> {
        if self.closed {
            return Err(NotAsked::Closed);
        }
        Ok(self.book(Question {
            server_id: "".into(),
            method: question.method().into(),
            cause: Some(cause),
            asked: now,
            before: LegId(self.next_leg),
        }))
    }

    fn book(&mut self, question: Question) -> QuestionId {
        let id = QuestionId(self.next_question);
        self.next_question += 1;
        self.book_as(question.asked, id, question);
        id
    }

    /// From now on the calls wait that wait for the answer.
    fn book_as(&mut self, now: Instant, id: QuestionId, question: Question) {
        for clock in self.paused_by(&question) {
            clock.ask(now);
        }
        self.questions.insert(id, question);
    }

    /// The client answers the question with this id (JSON text). `None`: there is no such question,
    /// or it has its answer.
    pub fn answer(&mut self, now: Instant, id: &str) -> Option<(QuestionId, Question)> {
        let id = QuestionId::parse(id)?;
        Some((id, self.take(now, id)?))
    }

    /// The server withdraws its question with this id (JSON text).
    pub fn withdraw(&mut self, now: Instant, server_id: &str) -> Option<(QuestionId, Question)> {
        // The newest first: a server that reused an id means its latest question.
        let matching = self
            .questions
            .iter()
            .filter(|(_, it)| &*it.server_id == server_id);
        let id = *matching.map(|(id, _)| id).max()?;
        Some((id, self.take(now, id)?))
    }

    /// The question will not be answered: its time is over, or it reached nobody.
    pub fn give_up(&mut self, now: Instant, id: QuestionId) -> Option<Question> {
        self.take(now, id)
    }

    /// Whether the question still has no answer.
    pub fn is_open(&self, id: QuestionId) -> bool {
        self.questions.contains_key(&id)
    }

    /// The call that caused an open question, if one did.
    pub fn cause_of(&self, id: QuestionId) -> Option<LegId> {
        self.questions.get(&id)?.cause
    }

    /// An open question was another call's than was thought.
    pub fn recast(&mut self, now: Instant, id: QuestionId, cause: LegId) {
        if let Some(question) = self.take(now, id) {
            let cause = Some(cause);
            self.book_as(now, id, Question { cause, ..question });
        }
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether anything is in flight, in either direction.
    pub fn is_busy(&self) -> bool {
        !self.calls.is_empty() || !self.questions.is_empty()
    }

    /// The call that the client gave this id (JSON text), while it is in flight.
    pub fn leg(&self, client_id: &str) -> Option<LegId> {
        self.legs.get(client_id).copied()
    }

    /// How many calls are in flight.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// The id that the client gave this call, as JSON text.
    pub fn client_id(&self, leg: LegId) -> Option<&str> {
        self.calls.get(&leg).map(|call| &*call.client_id)
    }

    /// Whether the client has cancelled this call.
    pub fn is_cancelled(&self, leg: LegId) -> bool {
        self.calls.get(&leg).is_some_and(|call| call.is_cancelled())
    }

    /// The session ends: nothing begins any more, and what is left is handed over.
    pub fn close(&mut self) -> Remains {
        self.closed = true;
        self.legs.clear();
        let mut remains = Remains {
            calls: std::mem::take(&mut self.calls)
                .into_iter()
                .map(|(leg, call)| (leg, *call))
                .collect(),
            questions: self.questions.drain().collect(),
        };
        remains.calls.sort_by_key(|(leg, _)| *leg);
        remains.questions.sort_by_key(|(id, _)| *id);
        remains
    }

    fn take(&mut self, now: Instant, id: QuestionId) -> Option<Question> {
        let question = self.questions.remove(&id)?;
        for clock in self.paused_by(&question) {
            clock.answer(now);
        }
        Some(question)
    }

    /// The clocks of the calls that wait for the answer to a question: the one that caused it, or all that there
    /// were, where nothing says which.
    fn paused_by(&mut self, question: &Question) -> impl Iterator<Item = &mut Clock> {
        let (cause, before) = (question.cause, question.before);
        let waits = move |leg: &LegId| cause.map_or(*leg < before, |cause| *leg == cause);
        let calls = self.calls.iter_mut().filter(move |(leg, _)| waits(leg));
        calls.map(|(_, call)| &mut call.clock)
    }
}

impl LegId {
    /// The leg that a response of the server names (JSON text); exactly as it was sent.
    pub fn parse(id: &str) -> Option<Self> {
        let leg = Self(id.parse().ok()?);
        (leg.to_string() == id).then_some(leg)
    }
}

impl fmt::Display for LegId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl QuestionId {
    /// The question that an answer of the client names (JSON text); exactly as it was sent.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let id = text(id)?;
        let number = Self(id.strip_prefix("cf-")?.parse().ok()?);
        (number.to_string().trim_matches('"') == id).then_some(number)
    }
}

/// As JSON text.
impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"cf-{}\"", self.0)
    }
}
