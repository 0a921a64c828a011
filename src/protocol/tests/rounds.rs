//! Every row of the table of rounds, and what holds in whatever order things happen.

use std::collections::{BTreeSet, HashMap};

use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::protocol::capability::ClientCapabilities;
use crate::protocol::rounds::{End, Input, Leg, MOST_ROUNDS, Output, Progress, Rounds};
use crate::protocol::server_modern::{Required, Retry, Wanted, responses};

const EVERYTHING: ClientCapabilities = ClientCapabilities {
    form: true,
    url: true,
    sampling: true,
    sampling_tools: true,
    sampling_context: true,
    roots: true,
};

fn wanted(key: &str, method: &str, params: &str) -> Wanted {
    Wanted {
        key: key.into(),
        method: method.into(),
        params: Some(params.into()),
    }
}

fn form(key: &str) -> Wanted {
    wanted(key, "elicitation/create", r#"{"message":"?"}"#)
}

fn link(key: &str, url: &str) -> Wanted {
    let params = format!(r#"{{"mode":"url","url":"{url}"}}"#);
    wanted(key, "elicitation/create", &params)
}

fn required(questions: Vec<Wanted>, state: Option<&str>) -> Input {
    Input::Required(Required {
        questions,
        state: state.map(str::to_owned),
    })
}

fn asks(questions: Vec<Wanted>) -> Input {
    required(questions, Some("\"s\""))
}

fn begin(method: &str) -> (Instant, Rounds) {
    let (rounds, first) = Rounds::begin(method, EVERYTHING);
    assert_eq!(first, Output::Send(Retry::default()));
    (Instant::now(), rounds)
}

fn legs(outputs: &[Output]) -> Vec<Leg> {
    let leg = |output: &Output| match output {
        Output::Ask(leg, _) => *leg,
        other => panic!("no question: {other:?}"),
    };
    outputs.iter().map(leg).collect()
}

fn accept() -> String {
    r#"{"action":"accept"}"#.to_owned()
}

fn is_server(outputs: &[Output]) -> bool {
    matches!(outputs, [Output::Done(End::Server(_))])
}

fn is_interaction(outputs: &[Output]) -> bool {
    matches!(outputs, [.., Output::Done(End::Interaction(_))])
}

#[test]
fn an_answer_is_the_outcome_and_nothing_follows() {
    let (now, mut rounds) = begin("tools/call");
    assert_eq!(
        rounds.take(now, Input::Answered),
        [Output::Done(End::Answer)]
    );
    for late in [
        Input::Answered,
        Input::Broken,
        Input::Cancelled,
        asks(vec![form("a")]),
    ] {
        assert_eq!(rounds.take(now, late), []);
    }
}

#[test]
fn all_questions_of_a_round_go_out_at_once_and_come_back_together() {
    let (now, mut rounds) = begin("tools/call");
    let asked = rounds.take(now, asks(vec![form("b"), wanted("a", "roots/list", "{}")]));
    let [b, a] = legs(&asked)[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(
        rounds.take(now, Input::Leg(a, r#"{"roots":[]}"#.into())),
        []
    );
    assert_eq!(rounds.take(now, Input::Leg(a, "{}".into())), []);
    let retry = Retry {
        responses: Some(r#"{"b":{"action":"accept"},"a":{"roots":[]}}"#.into()),
        state: Some("\"s\"".into()),
    };
    assert_eq!(
        rounds.take(now, Input::Leg(b, accept())),
        [Output::Send(retry)]
    );
}

#[test]
fn a_retry_has_the_state_of_its_round_or_none() {
    let (now, mut rounds) = begin("prompts/get");
    for state in [None, Some("\"one\""), None] {
        let asked = rounds.take(now, required(vec![form("k")], state));
        let sent = rounds.take(now, Input::Leg(legs(&asked)[0], accept()));
        let retry = Retry {
            responses: Some(r#"{"k":{"action":"accept"}}"#.into()),
            state: state.map(str::to_owned),
        };
        assert_eq!(sent, [Output::Send(retry)]);
    }
}

#[test]
fn declining_and_cancelling_are_answers() {
    for action in ["decline", "cancel"] {
        let (now, mut rounds) = begin("tools/call");
        let asked = rounds.take(now, asks(vec![form("k")]));
        let result = format!(r#"{{"action":"{action}"}}"#);
        let sent = rounds.take(now, Input::Leg(legs(&asked)[0], result.clone()));
        let Output::Send(retry) = &sent[0] else {
            panic!("{sent:?}")
        };
        assert_eq!(retry.responses, Some(format!(r#"{{"k":{result}}}"#)));
    }
}

#[test]
fn state_alone_is_paced() {
    let (now, mut rounds) = begin("tools/call");
    let due = now + Duration::from_millis(250);
    assert_eq!(
        rounds.take(now, required(vec![], Some("\"s\""))),
        [Output::Wait(due)]
    );
    assert_eq!(rounds.take(now, Input::Timer), []);
    let retry = Retry {
        responses: None,
        state: Some("\"s\"".into()),
    };
    assert_eq!(rounds.take(due, Input::Timer), [Output::Send(retry)]);
}

#[test]
fn the_same_place_again_is_paced() {
    let (now, mut rounds) = begin("tools/call");
    let mut waited = Vec::new();
    for _ in 0..6 {
        let asked = rounds.take(
            now,
            asks(vec![link("u", "https://a"), link("v", "https://b")]),
        );
        let legs = legs(&asked);
        rounds.take(now, Input::Leg(legs[0], accept()));
        match &rounds.take(now, Input::Leg(legs[1], accept()))[..] {
            [Output::Wait(until)] => {
                waited.push(until.duration_since(now).as_secs());
                rounds.take(*until, Input::Timer);
            }
            [Output::Send(_)] => waited.push(0),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(waited, [0, 2, 5, 10, 20, 20]);
    let asked = rounds.take(now, asks(vec![link("u", "https://elsewhere")]));
    let sent = rounds.take(now, Input::Leg(legs(&asked)[0], accept()));
    assert!(matches!(sent[..], [Output::Send(_)]));
}

#[test]
fn f18_what_the_client_never_declared_is_not_asked() {
    let none = ClientCapabilities::default();
    let form_only = ClientCapabilities { form: true, ..none };
    for (capabilities, question) in [
        (none, form("k")),
        (form_only, link("k", "https://a")),
        (form_only, wanted("k", "sampling/createMessage", "{}")),
        (form_only, wanted("k", "roots/list", "{}")),
        (EVERYTHING, wanted("k", "vendor/ask", "{}")),
        (EVERYTHING, wanted("k", "ping", "{}")),
    ] {
        let (mut rounds, _) = Rounds::begin("tools/call", capabilities);
        let outputs = rounds.take(Instant::now(), asks(vec![form("ok"), question.clone()]));
        assert!(is_server(&outputs), "{question:?} {outputs:?}");
    }
}

#[test]
fn f41_what_breaks_the_rules_ends_the_request() {
    let (now, mut rounds) = begin("tools/call");
    assert!(is_server(
        &rounds.take(now, Input::Invalid("an odd result"))
    ));
    let (now, mut rounds) = begin("tools/call");
    assert!(is_server(&rounds.take(now, required(vec![], None))));
    let (now, mut rounds) = begin("tools/list");
    assert!(is_server(&rounds.take(now, asks(vec![form("k")]))));
}

#[test]
fn f21_there_are_eight_rounds_and_no_more() {
    let (now, mut rounds) = begin("tools/call");
    for _ in 0..MOST_ROUNDS {
        let asked = rounds.take(now, asks(vec![form("k")]));
        assert!(matches!(
            rounds.take(now, Input::Leg(legs(&asked)[0], accept()))[..],
            [Output::Send(_)]
        ));
    }
    assert!(is_interaction(&rounds.take(now, asks(vec![form("k")]))));
}

#[test]
fn f37_a_leg_that_fails_takes_the_others_with_it() {
    for input in [
        |leg| Input::LegFailed(leg, "the client answered with an error"),
        |leg| Input::Leg(leg, "7".to_owned()),
    ] {
        let (now, mut rounds) = begin("tools/call");
        let asked = rounds.take(now, asks(vec![form("a"), form("b"), form("c")]));
        let [a, b, c] = legs(&asked)[..] else {
            panic!("{asked:?}")
        };
        assert_eq!(rounds.take(now, Input::Leg(a, accept())), []);
        let outputs = rounds.take(now, input(b));
        assert_eq!(outputs[0], Output::Withdraw(c));
        assert!(
            outputs.len() == 2 && is_interaction(&outputs),
            "{outputs:?}"
        );
    }
}

#[test]
fn f38_cancelling_ends_the_legs_and_sends_nothing() {
    for (input, end) in [
        (Input::Cancelled, End::Cancelled),
        (Input::Expired, End::Expired),
        (Input::Ended, End::Ended),
    ] {
        let (now, mut rounds) = begin("tools/call");
        let asked = rounds.take(now, asks(vec![form("a")]));
        let leg = legs(&asked)[0];
        assert_eq!(
            rounds.take(now, input.clone()),
            [Output::Withdraw(leg), Output::Done(end)]
        );
        assert_eq!(rounds.take(now, Input::Leg(leg, accept())), []);
        let (now, mut rounds) = begin("tools/call");
        assert_eq!(rounds.take(now, input.clone()), [Output::Done(end)]);
        let (now, mut rounds) = begin("tools/call");
        rounds.take(now, required(vec![], Some("1")));
        assert_eq!(rounds.take(now, input), [Output::Done(end)]);
    }
}

#[test]
fn f42_only_what_changes_nothing_is_sent_once_more() {
    let (now, mut rounds) = begin("tools/call");
    assert_eq!(rounds.take(now, Input::Broken), [Output::Done(End::Broken)]);
    let (now, mut rounds) = begin("resources/read");
    let asked = rounds.take(now, asks(vec![form("k")]));
    let sent = rounds.take(now, Input::Leg(legs(&asked)[0], accept()));
    assert_eq!(rounds.take(now, Input::Broken), sent);
    assert_eq!(rounds.take(now, Input::Broken), [Output::Done(End::Broken)]);
}

#[test]
fn progress_rises_over_all_rounds() {
    let (now, mut rounds) = begin("tools/call");
    let value = |progress: Option<Progress>| progress.map(|it| (it.value, it.own));
    assert_eq!(value(rounds.progress(1.0)), Some((1.0, true)));
    assert_eq!(value(rounds.progress(1.0)), None);
    assert_eq!(value(rounds.progress(5.0)), Some((5.0, true)));
    let asked = rounds.take(now, asks(vec![form("k")]));
    assert_eq!(value(rounds.progress(9.0)), None);
    rounds.take(now, Input::Leg(legs(&asked)[0], accept()));
    assert_eq!(value(rounds.progress(0.0)), None);
    assert_eq!(value(rounds.progress(1.0)), Some((6.0, false)));
    assert_eq!(value(rounds.progress(f64::NAN)), None);
    rounds.take(now, Input::Answered);
    assert_eq!(value(rounds.progress(100.0)), None);
}

#[derive(Clone, Debug)]
enum Step {
    Answered,
    Asks(u8, bool),
    Invalid,
    Broken,
    Leg(u8, bool),
    Fail(u8),
    Timer,
    Cancel,
    Progress(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Answered),
        8 => (0u8..4, any::<bool>()).prop_map(|(n, state)| Step::Asks(n, state)),
        1 => Just(Step::Invalid),
        1 => Just(Step::Broken),
        12 => (any::<u8>(), any::<bool>()).prop_map(|(n, newest)| Step::Leg(n, newest)),
        1 => any::<u8>().prop_map(Step::Fail),
        6 => Just(Step::Timer),
        1 => Just(Step::Cancel),
        4 => any::<u8>().prop_map(Step::Progress),
    ]
}

proptest! {
    /// In whatever order things happen: each question is asked once and ends once, a retry holds
    /// the answers of its own round, nothing comes after the outcome, progress only rises.
    #[test]
    fn whatever_happens_in_whatever_order(
        method in prop_oneof![Just("tools/call"), Just("resources/read"), Just("tools/list")],
        steps in proptest::collection::vec(step(), 0..80),
    ) {
        let (mut now, mut rounds) = begin(method);
        let mut asked: Vec<Leg> = Vec::new();
        let mut open: BTreeSet<Leg> = BTreeSet::new();
        let mut round: HashMap<Leg, (String, String)> = HashMap::new();
        let (mut done, mut last, mut sends) = (0, f64::NEG_INFINITY, 1);
        for (number, step) in steps.into_iter().enumerate() {
            now += Duration::from_millis(300);
            let pick = |n: u8, newest: bool| {
                if newest { asked.last().copied() } else { asked.get(usize::from(n) % asked.len().max(1)).copied() }
            };
            let result = format!(r#"{{"n":{number}}}"#);
            let input = match step {
                Step::Answered => Input::Answered,
                Step::Asks(n, state) => required(
                    (0..n).map(|k| form(&format!("k{k}"))).collect(),
                    (state || n == 0).then_some("\"s\""),
                ),
                Step::Invalid => Input::Invalid("odd"),
                Step::Broken => Input::Broken,
                Step::Leg(n, newest) => match pick(n, newest) {
                    Some(leg) => Input::Leg(leg, result.clone()),
                    None => continue,
                },
                Step::Fail(n) => match pick(n, false) {
                    Some(leg) => Input::LegFailed(leg, "failed"),
                    None => continue,
                },
                Step::Timer => Input::Timer,
                Step::Cancel => Input::Cancelled,
                Step::Progress(value) => {
                    if let Some(progress) = rounds.progress(f64::from(value)) {
                        prop_assert!(progress.value > last && done == 0);
                        last = progress.value;
                    }
                    continue;
                }
            };
            let was_done = rounds.is_done();
            let mut ended: Vec<Leg> = Vec::new();
            match &input {
                Input::Leg(leg, result) if open.remove(leg) => {
                    round.get_mut(leg).unwrap().1.clone_from(result);
                    ended.push(*leg);
                }
                Input::LegFailed(leg, _) if open.remove(leg) => ended.push(*leg),
                _ => {}
            }
            let outputs = rounds.take(now, input);
            prop_assert!(!was_done || outputs.is_empty());
            for (place, output) in outputs.iter().enumerate() {
                match output {
                    Output::Ask(leg, wanted) => {
                        prop_assert!(!asked.contains(leg));
                        if place == 0 { round.clear(); }
                        asked.push(*leg);
                        open.insert(*leg);
                        round.insert(*leg, (wanted.key.clone(), String::new()));
                    }
                    Output::Withdraw(leg) => prop_assert!(open.remove(leg)),
                    Output::Send(retry) => {
                        sends += 1;
                        prop_assert!(open.is_empty());
                        if !ended.is_empty() {
                            let mut legs: Vec<_> = round.iter().collect();
                            legs.sort();
                            let expected = responses(legs.iter().map(|(_, (key, result))| (key.as_str(), result.as_str())));
                            prop_assert_eq!(retry.responses.as_ref(), Some(&expected));
                        }
                    }
                    Output::Wait(until) => prop_assert!(*until > now && open.is_empty()),
                    Output::Done(_) => {
                        done += 1;
                        prop_assert_eq!(place + 1, outputs.len());
                        prop_assert!(open.is_empty());
                    }
                }
            }
            prop_assert_eq!(done > 0, rounds.is_done());
        }
        prop_assert!(done <= 1);
        prop_assert!(sends <= MOST_ROUNDS + 2);
        rounds.take(now, Input::Ended);
        prop_assert!(rounds.is_done());
    }
}
