//! The book of one session: its calls, its questions, and whose time counts.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::protocol::capability::ClientCapabilities;
use crate::protocol::clock::{Due, Patience};
use crate::protocol::message::Message;
use crate::protocol::session::{NotAsked, NotBegun, Question, QuestionId, Session};

const PATIENCE: Patience = Patience {
    headers: Duration::from_mins(1),
    idle: Duration::from_mins(1),
    call: Duration::from_mins(1),
};

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
    assert_eq!(session.due(at(4), leg, &PATIENCE), Due::Thinking);
    session.answer(at(5), &first.to_string()).unwrap();
    assert_eq!(session.due(at(6), leg, &PATIENCE), Due::Thinking);
    session.give_up(at(11), second).unwrap();
    // Of a minute two seconds are gone.
    let left = Duration::from_secs(58);
    assert_eq!(session.due(at(12), leg, &PATIENCE), Due::In(left));
}

#[test]
fn whoever_may_wait_for_a_question_that_names_no_call_waits() {
    let (start, mut session) = (Instant::now(), Session::new(EVERYTHING));
    let at = |seconds| start + Duration::from_secs(seconds);
    let due = |session: &Session, seconds, leg| session.due(at(seconds), leg, &PATIENCE);
    let [first, second] = ["1", "2"].map(|id| session.begin(start, id, None).unwrap());
    let question = session.ask(start, None, &question("1")).unwrap();
    let later = session.begin(start, "3", None).unwrap();
    for leg in [first, second] {
        assert_eq!(due(&session, 9, leg), Due::Thinking);
    }
    let left = |seconds| Due::In(Duration::from_secs(seconds));
    assert_eq!(due(&session, 10, later), left(50));
    session.finish(first);
    session.answer(at(20), &question.to_string()).unwrap();
    assert_eq!(due(&session, 20, second), left(60));
    assert_eq!(due(&session, 20, later), left(40));
}

#[test]
fn a_cancel_that_overtakes_its_call_is_a_cancel() {
    let (start, mut session) = (Instant::now(), Session::new(EVERYTHING));
    assert_eq!(session.cancel(start, "1"), None);
    assert!(session.begin(start, "\"1\"", None).is_ok());
    assert_eq!(session.begin(start, "1", None), Err(NotBegun::Cancelled));
    // Once: who uses the id again means another call.
    let again = session.begin(start, "1", None).unwrap();
    session.finish(again);
    // Of one that is over it means nothing.
    assert_eq!(session.cancel(start, "1"), None);
    assert!(session.begin(start, "1", None).is_ok());
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
    assert_eq!(session.due(now, leg, &PATIENCE), Due::Thinking);
    for server_id in ["\"approval\"", "\"\"", "null"] {
        assert!(session.withdraw(now, server_id).is_none(), "{server_id}");
    }
    assert_eq!(session.answer(now, &id.to_string()).unwrap().0, id);
    assert!(matches!(session.due(now, leg, &PATIENCE), Due::In(_)));
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
    assert_eq!(session.cancel(now, "101"), None);
    assert_eq!(session.cancel(now, "\"c-101\""), Some(leg));
    assert_eq!(session.cancel(now, "\"c-101\""), None);
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
                    let id = QuestionId::parse(&format!("\"cf-{n}\"")).unwrap();
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

/// What an open question was taken for was wrong: from then on it stops the clock of its own call alone, and its
/// answer lets that one go on, and no other.
#[test]
fn a_question_that_was_another_calls_stops_the_clock_of_that_one() {
    let (now, mut session) = (Instant::now(), Session::new(EVERYTHING));
    let [listing, own] = ["1", "2"].map(|id| session.begin(now, id, None).unwrap());
    let thinks = |session: &Session, leg| session.due(now, leg, &PATIENCE) == Due::Thinking;
    for cause in [None, Some(listing)] {
        let id = session.ask(now, cause, &question("7")).unwrap();
        let other = session.ask(now, Some(own), &question("8")).unwrap();
        session.recast(now, id, own);
        assert!(!thinks(&session, listing), "{cause:?}");
        session.give_up(now, other).unwrap();
        assert!(thinks(&session, own), "{cause:?}: the other is open");
        session.give_up(now, id).unwrap();
        assert!(!thinks(&session, own), "{cause:?}");
    }
}
