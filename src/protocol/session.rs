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

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::capability::{ClientCapabilities, Undeclared};
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
    /// When it began.
    pub began: Instant,
    cancelled: bool,
    waiting: u32,
    waiting_since: Option<Instant>,
    waited: Duration,
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
}

/// Why a call can't begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBegun {
    /// The id is that of a call still in flight (JSON-RPC ids must be unique in a session).
    DuplicateId,
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
    calls: HashMap<LegId, Call>,
    legs: HashMap<Box<str>, LegId>,
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
            calls: HashMap::new(),
            legs: HashMap::new(),
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
        let leg = LegId(self.next_leg);
        self.next_leg += 1;
        self.legs.insert(client_id.into(), leg);
        self.calls.insert(
            leg,
            Call {
                client_id: client_id.into(),
                token: token.map(Into::into),
                began: now,
                cancelled: false,
                waiting: 0,
                waiting_since: None,
                waited: Duration::ZERO,
            },
        );
        Ok(leg)
    }

    /// A call has its outcome, or will never have one. Its questions stay: a server may still wait
    /// for an answer that it asked for on the side.
    pub fn finish(&mut self, leg: LegId) -> Option<Call> {
        let call = self.calls.remove(&leg)?;
        self.legs.remove(&call.client_id);
        Some(call)
    }

    /// The client cancels a call: the id that the server knows it by, the first time.
    pub fn cancel(&mut self, client_id: &str) -> Option<LegId> {
        let leg = *self.legs.get(client_id)?;
        let call = self.calls.get_mut(&leg)?;
        (!std::mem::replace(&mut call.cancelled, true)).then_some(leg)
    }

    /// How long a call has been at work, not counting the time in which a person was asked
    /// something; `None` while a person is.
    pub fn worked(&self, now: Instant, leg: LegId) -> Option<Duration> {
        let call = self.calls.get(&leg).filter(|call| call.waiting == 0)?;
        Some(
            now.saturating_duration_since(call.began)
                .saturating_sub(call.waited),
        )
    }

    /// Whether a call in flight asked for progress under this token (JSON text). A server may spell
    /// the same string in another way.
    pub fn expects_progress(&self, token: &str) -> bool {
        let same = |own: &str| own == token || (text(own).is_some() && text(own) == text(token));
        self.calls
            .values()
            .any(|call| call.token.as_deref().is_some_and(same))
    }

    /// Whether the server was told that it may ask this.
    ///
    /// # Errors
    /// What to tell it if not.
    pub fn allows(&self, question: &Message) -> Result<(), Undeclared> {
        self.capabilities.allow(question)
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
        }))
    }

    fn book(&mut self, question: Question) -> QuestionId {
        let id = QuestionId(self.next_question);
        self.next_question += 1;
        if let Some(call) = question.cause.and_then(|leg| self.calls.get_mut(&leg)) {
            call.waiting += 1;
            call.waiting_since.get_or_insert(question.asked);
        }
        self.questions.insert(id, question);
        id
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
        self.calls.get(&leg).is_some_and(Call::is_cancelled)
    }

    /// The session ends: nothing begins any more, and what is left is handed over.
    pub fn close(&mut self) -> Remains {
        self.closed = true;
        self.legs.clear();
        let mut remains = Remains {
            calls: self.calls.drain().collect(),
            questions: self.questions.drain().collect(),
        };
        remains.calls.sort_by_key(|(leg, _)| *leg);
        remains.questions.sort_by_key(|(id, _)| *id);
        remains
    }

    fn take(&mut self, now: Instant, id: QuestionId) -> Option<Question> {
        let question = self.questions.remove(&id)?;
        if let Some(call) = question.cause.and_then(|leg| self.calls.get_mut(&leg)) {
            call.waiting = call.waiting.saturating_sub(1);
            if call.waiting == 0
                && let Some(since) = call.waiting_since.take()
            {
                call.waited += now.saturating_duration_since(since);
            }
        }
        Some(question)
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
    fn parse(id: &str) -> Option<Self> {
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may read the clock")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVERYTHING: ClientCapabilities = ClientCapabilities {
        form: true,
        url: true,
        sampling: true,
        roots: true,
        sampling_tools: true,
        sampling_context: true,
    };

    fn question(id: &str) -> Message {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{}}}}"#);
        Message::parse(&text.into_bytes().into()).unwrap()
    }

    #[test]
    fn an_id_in_flight_can_not_be_used_again_and_types_differ() {
        let (now, mut session) = (Instant::now(), Session::new(EVERYTHING));
        let first = session.begin(now, "1", None).unwrap();
        let second = session.begin(now, "\"1\"", None).unwrap();
        assert_ne!(first, second);
        assert_eq!(session.begin(now, "1", None), Err(NotBegun::DuplicateId));
        assert_eq!(&*session.finish(first).unwrap().client_id, "1");
        assert!(session.begin(now, "1", None).is_ok());
    }

    #[test]
    fn a_question_is_answered_once_and_by_its_own_id() {
        let (now, mut session) = (Instant::now(), Session::new(EVERYTHING));
        let leg = session.begin(now, "7", None).unwrap();
        let id = session
            .ask(now, Some(leg), &question("12345678901234567890"))
            .unwrap();
        for stranger in [
            "1",
            "\"1\"",
            "\"cf-2\"",
            "\"cf-01\"",
            "\"cf-+1\"",
            "cf-1",
            "null",
            "\"\"",
        ] {
            assert!(session.answer(now, stranger).is_none(), "{stranger}");
        }
        let (_, answered) = session.answer(now, &id.to_string()).unwrap();
        assert_eq!(&*answered.server_id, "12345678901234567890");
        assert!(session.answer(now, &id.to_string()).is_none());
    }

    #[test]
    fn a_person_thinks_on_their_own_clock() {
        let (start, mut session) = (Instant::now(), Session::new(EVERYTHING));
        let at = |seconds| start + Duration::from_secs(seconds);
        let leg = session.begin(start, "1", None).unwrap();
        let first = session.ask(at(1), Some(leg), &question("1")).unwrap();
        let second = session.ask(at(3), Some(leg), &question("2")).unwrap();
        assert_eq!(session.worked(at(4), leg), None);
        session.answer(at(5), &first.to_string()).unwrap();
        assert_eq!(session.worked(at(6), leg), None);
        session.give_up(at(11), second).unwrap();
        assert_eq!(session.worked(at(12), leg), Some(Duration::from_secs(2)));
    }

    #[test]
    fn a_server_withdraws_its_own_question() {
        let (now, mut session) = (Instant::now(), Session::new(EVERYTHING));
        let id = session.ask(now, None, &question("\"a\"")).unwrap();
        assert!(session.withdraw(now, "\"b\"").is_none());
        assert_eq!(session.withdraw(now, "\"a\"").unwrap().0, id);
        assert!(session.answer(now, &id.to_string()).is_none());
    }

    #[test]
    fn the_gateways_own_question_is_no_matter_of_the_server() {
        let (now, mut session) = (Instant::now(), Session::new(ClientCapabilities::default()));
        let leg = session.begin(now, "1", None).unwrap();
        assert!(session.ask(now, Some(leg), &question("1")).is_err());
        let id = session
            .ask_own(now, leg, &question("\"approval\""))
            .unwrap();
        assert_eq!(session.worked(now, leg), None);
        for server_id in ["\"approval\"", "\"\"", "null"] {
            assert!(session.withdraw(now, server_id).is_none(), "{server_id}");
        }
        assert_eq!(session.answer(now, &id.to_string()).unwrap().0, id);
        assert!(session.worked(now, leg).is_some());
        session.close();
        let late = session.ask_own(now, leg, &question("1"));
        assert_eq!(late, Err(NotAsked::Closed));
    }

    #[test]
    fn a_closed_session_takes_nothing() {
        let (now, mut session) = (Instant::now(), Session::new(EVERYTHING));
        let leg = session.begin(now, "1", None).unwrap();
        session.ask(now, Some(leg), &question("1")).unwrap();
        let remains = session.close();
        assert_eq!((remains.calls.len(), remains.questions.len()), (1, 1));
        assert_eq!(session.begin(now, "2", None), Err(NotBegun::Closed));
        assert_eq!(
            session.ask(now, None, &question("2")),
            Err(NotAsked::Closed)
        );
        assert!(session.close().questions.is_empty());
    }

    #[test]
    fn cancelling_names_the_call_once() {
        let (now, mut session) = (Instant::now(), Session::new(EVERYTHING));
        let leg = session.begin(now, "\"c-101\"", None).unwrap();
        assert_eq!(session.cancel("101"), None);
        assert_eq!(session.cancel("\"c-101\""), Some(leg));
        assert_eq!(session.cancel("\"c-101\""), None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Begin(u8),
        Finish(u8),
        Ask(Option<u8>, u8),
        Answer(u8),
        Withdraw(u8),
        GiveUp(u8),
        Close,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<u8>().prop_map(|n| Step::Begin(n % 8)),
            2 => any::<u8>().prop_map(|n| Step::Finish(n % 8)),
            6 => (any::<Option<u8>>(), any::<u8>()).prop_map(|(c, n)| Step::Ask(c.map(|c| c % 8), n % 4)),
            4 => any::<u8>().prop_map(|n| Step::Answer(n % 32)),
            2 => any::<u8>().prop_map(|n| Step::Withdraw(n % 4)),
            2 => any::<u8>().prop_map(|n| Step::GiveUp(n % 32)),
            1 => Just(Step::Close),
        ]
    }

    proptest! {
        /// Whatever happens in whatever order: every question that was asked leaves the book exactly
        /// once, with the id that its server gave it, and no id is used twice on a leg.
        #[test]
        fn every_question_leaves_exactly_once(steps in proptest::collection::vec(step(), 0..200)) {
            let now = Instant::now();
            let mut session = Session::new(EVERYTHING);
            let mut asked: HashMap<QuestionId, String> = HashMap::new();
            let mut ended: HashMap<QuestionId, u32> = HashMap::new();
            let mut legs = Vec::new();
            let leave = |id: QuestionId, it: &Question, ended: &mut HashMap<_, u32>, asked: &HashMap<QuestionId, String>| {
                assert_eq!(asked[&id], *it.server_id);
                *ended.entry(id).or_default() += 1;
            };
            for step in steps {
                match step {
                    Step::Begin(n) => legs.extend(session.begin(now, &n.to_string(), None)),
                    Step::Finish(n) => { if let Some(leg) = legs.get(usize::from(n)) { session.finish(*leg); } }
                    Step::Ask(cause, n) => {
                        let cause = cause.and_then(|c| legs.get(usize::from(c)).copied());
                        if let Ok(id) = session.ask(now, cause, &question(&n.to_string())) {
                            prop_assert!(asked.insert(id, n.to_string()).is_none());
                        }
                    }
                    Step::Answer(n) => {
                        if let Some((id, it)) = session.answer(now, &format!("\"cf-{n}\"")) { leave(id, &it, &mut ended, &asked); }
                    }
                    Step::Withdraw(n) => {
                        if let Some((id, it)) = session.withdraw(now, &n.to_string()) { leave(id, &it, &mut ended, &asked); }
                    }
                    Step::GiveUp(n) => {
                        let id = QuestionId(u64::from(n));
                        if let Some(it) = session.give_up(now, id) { leave(id, &it, &mut ended, &asked); }
                    }
                    Step::Close => for (id, it) in session.close().questions { leave(id, &it, &mut ended, &asked); },
                }
            }
            for (id, it) in session.close().questions { leave(id, &it, &mut ended, &asked); }
            prop_assert_eq!(ended.len(), asked.len());
            prop_assert!(ended.values().all(|times| *times == 1));
            let unique: std::collections::HashSet<_> = legs.iter().collect();
            prop_assert_eq!(unique.len(), legs.len());
        }
    }
}
