//! What can go wrong, and the right answer: the rows that this machine reaches, each by its number.
//! Who comes back (F1), with which arguments (F6) and on what method (F10, F11) is judged before a
//! retry gets here; to which call a question belongs (F19, F20) is too.

use std::sync::{Barrier, Mutex};

use super::*;

/// What a malformed answer leaves behind: the same round, still open, still with its end.
#[track_caller]
fn check_malformed(asks: Asks, key: &str, malformed: &str, fitting: &str) {
    let mut talk = Talk::parked(&[("asked", asks), ("other", FORM)]);
    let before = format!("{:?}", talk.call);
    let answers = [("e2", ACCEPT), (key, malformed)];
    let refused = talk.retry(1, &answers).unwrap_err();
    assert!(refused.contains(&format!("{key:?}")), "{refused}");
    assert_eq!(format!("{:?}", talk.call), before, "{malformed}");
    assert_eq!(
        talk.retry(1, &[(key, fitting), ("e2", ACCEPT)]).unwrap(),
        [answer("asked", fitting), answer("other", ACCEPT)]
    );
}

#[test]
fn f2_a_retry_after_the_time_is_over() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    assert_eq!(talk.wait(PARK), ["cancel", "dismiss size"]);
    let late = talk.retry(1, &[("e1", ACCEPT)]);
    assert_eq!(late, Err("state_expired".into()));
}

#[test]
fn f2_a_retry_after_the_time_but_before_the_timer() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    talk.now += PARK;
    let late = talk.retry(1, &[("e1", ACCEPT)]);
    assert_eq!(late, Err("state_expired".into()));
    assert_eq!(talk.wait(Duration::ZERO), ["cancel", "dismiss size"]);
}

#[test]
fn f3_the_same_retry_twice() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    let again = talk.retry(1, &[("e1", ACCEPT)]);
    assert_eq!(again, Err("state_consumed".into()));
    talk.outcome("result");
    let again = talk.retry(1, &[("e1", ACCEPT)]);
    assert_eq!(again, Err("state_consumed".into()));
}

#[test]
fn f3_the_same_retry_after_the_first_lost_its_connection() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    assert_eq!(talk.hear(Input::Gone), ["cancel"]);
    let again = talk.retry(1, &[("e1", ACCEPT)]);
    assert_eq!(again, Err("state_consumed".into()));
}

#[test]
fn f4_the_same_retry_twice_at_once() {
    let talk = Mutex::new(Talk::parked(&[("size", FORM)]));
    let start = Barrier::new(2);
    let retry = || {
        start.wait();
        talk.lock().unwrap().retry(1, &[("e1", ACCEPT)])
    };
    let mut results = std::thread::scope(|scope| {
        let [one, other] = [scope.spawn(retry), scope.spawn(retry)];
        [one.join().unwrap(), other.join().unwrap()]
    });
    results.sort();
    assert_eq!(
        results,
        [
            Ok(vec![answer("size", ACCEPT)]),
            Err("state_consumed".into())
        ]
    );
}

#[test]
fn f5_a_retry_of_an_older_round() {
    let mut talk = Talk::at(State::Parked);
    talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    assert_eq!(talk.wait(WINDOW), ["round 2: e2 queued"]);
    let older = talk.retry(1, &[("e2", ACCEPT)]);
    assert_eq!(older, Err("state_consumed".into()));
    talk.wait(PARK);
    let older = talk.retry(1, &[("e2", ACCEPT)]);
    assert_eq!(older, Err("state_consumed".into()));
}

#[test]
fn f7_a_retry_with_missing_answers() {
    let mut talk = Talk::parked(&[("size", FORM), ("colour", FORM)]);
    let posted = talk.retry(1, &[("e2", ACCEPT)]).unwrap();
    assert_eq!(posted, [answer("colour", ACCEPT)]);
    assert_eq!(talk.wait(WINDOW), ["round 2: e1 size"]);
}

#[test]
fn f7_a_retry_without_any_answer_is_not_asked_again_at_once() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    assert_eq!(talk.retry(1, &[]).unwrap(), [""; 0]);
    assert_eq!(talk.wait(WINDOW), [""; 0]);
    assert_eq!(talk.wait(SPIN.saturating_sub(WINDOW)), ["round 2: e1 size"]);
}

#[test]
fn f8_a_retry_with_keys_that_were_not_asked() {
    let mut talk = Talk::at(State::Parked);
    // Not even `e2`, which is a question that the client has not seen.
    let answers = [("x", "7"), ("e1", ACCEPT), ("E1", DECLINE), ("e2", DECLINE)];
    let posted = talk.retry(1, &answers).unwrap();
    assert_eq!(posted, [answer("shown", ACCEPT)]);
    assert_eq!(talk.wait(WINDOW), ["round 2: e2 queued"]);
}

#[test]
fn f9_a_malformed_answer() {
    let wrapped = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{ACCEPT}}}"#);
    for malformed in [
        "7",
        "null",
        r#""accept""#,
        "[]",
        "{}",
        r#"{"action":null}"#,
        r#"{"action":"ACCEPT"}"#,
        r#"{"Action":"accept"}"#,
        r#"{"action":"accept","action":"decline"}"#,
        r#"{"action":"decline","content":{},"content":{"size":"M"}}"#,
        r#"{"action":"decline","Content":{"size":"M"}}"#,
        &wrapped,
    ] {
        check_malformed(FORM, "e1", malformed, ACCEPT);
        check_malformed(URL, "e1", malformed, r#"{"action":"accept"}"#);
    }
    let wrapped = format!(r#"{{"result":{SAMPLE}}}"#);
    for malformed in [
        "[]",
        "{}",
        ACCEPT,
        r#"{"role":"assistant","model":"m"}"#,
        &wrapped,
    ] {
        check_malformed(SAMPLING, "s1", malformed, SAMPLE);
    }
    for malformed in [
        "[]",
        "{}",
        ACCEPT,
        r#"{"roots":{}}"#,
        r#"{"result":{"roots":[]}}"#,
    ] {
        check_malformed(ROOTS, "r1", malformed, FILES);
    }
}

#[test]
fn f9_two_answers_to_one_question() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    let before = format!("{:?}", talk.call);
    let refused = talk.retry(1, &[("e1", ACCEPT), ("e1", DECLINE)]);
    assert!(refused.unwrap_err().contains("\"e1\""));
    assert_eq!(format!("{:?}", talk.call), before);
}

#[test]
fn f12_a_retry_that_declares_fewer_capabilities() {
    let mut talk = Talk::parked(&[("size", FORM), ("model", SAMPLING), ("files", ROOTS)]);
    talk.ask("sign in", URL);
    talk.ask("colour", FORM);
    // What is answered is answered, whatever the client says that it can.
    let answers = [("s2", SAMPLE)];
    assert_eq!(
        talk.retry_with(FORMS_ONLY, 1, &answers).unwrap(),
        [
            answer("model", SAMPLE),
            "refuse files -32601".into(),
            "refuse sign in -32602".into()
        ]
    );
    assert_eq!(talk.ask("more", SAMPLING), ["refuse more -32601"]);
    assert_eq!(talk.wait(WINDOW), ["round 2: e1 size, e5 colour"]);
}

#[test]
fn f12_a_retry_that_declares_more_capabilities() {
    let mut talk = Talk::with(Limits::default(), FORMS_ONLY);
    talk.ask("size", FORM);
    talk.wait(WINDOW);
    // The client may be able to when it is back.
    assert_eq!(talk.ask("model", SAMPLING), [""; 0]);
    talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    assert_eq!(talk.wait(WINDOW), ["round 2: s2 model"]);
}

#[test]
fn f13_the_client_never_comes_back() {
    let mut talk = Talk::at(State::Parked);
    let due = talk.call.deadline().unwrap();
    talk.now = due;
    assert_eq!(
        talk.wait(Duration::ZERO),
        ["cancel", "dismiss shown", "dismiss queued"]
    );
    assert!(talk.call.is_over());
}

#[test]
fn f14_the_session_dies_while_the_client_is_away() {
    let mut talk = Talk::at(State::Parked);
    talk.outcome("error -31003");
    let delivered = talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    assert_eq!(delivered, ["done error -31003"]);
}

/// Over standard input and output nothing says whose a question is: it may be that of another call of the person.
#[test]
fn what_may_be_another_calls_is_answered_all_the_same() {
    let limits = Limits {
        guessed: true,
        ..Limits::default()
    };
    let parked = || {
        let mut talk = Talk::with(limits, EVERYTHING);
        talk.ask("shown", FORM);
        talk.wait(WINDOW);
        talk.ask("queued", FORM);
        assert_eq!(talk.outcome("result"), ["dismiss queued"]);
        assert!(talk.call.has_concluded());
        talk
    };
    let mut talk = parked();
    assert_eq!(
        talk.retry(1, &[("e1", ACCEPT)]).unwrap(),
        [
            r#"answer shown {"action":"accept","content":{"size":"M"}}"#,
            "done result"
        ]
    );
    let mut talk = parked();
    assert_eq!(
        talk.retry(1, &[]).unwrap(),
        ["dismiss shown", "done result"]
    );
    let mut talk = parked();
    assert_eq!(talk.wait(PARK), ["dismiss shown"]);
}

#[test]
fn f15_the_server_finishes_while_the_client_is_away() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    assert_eq!(talk.outcome("result"), ["dismiss size"]);
    // Answers don't matter any more, not even malformed ones.
    let delivered = talk.retry(1, &[("e1", "7")]).unwrap();
    assert_eq!(delivered, ["done result"]);
}

#[test]
fn f16_the_server_withdraws_its_question() {
    let mut talk = Talk::parked(&[("size", FORM), ("colour", FORM)]);
    talk.withdraw("size");
    // Its answer is ignored, whatever it is.
    let posted = talk.retry(1, &[("e1", "7"), ("e2", ACCEPT)]).unwrap();
    assert_eq!(posted, [answer("colour", ACCEPT)]);
    assert_eq!(talk.outcome("result"), ["done result"]);
}

#[test]
fn f16_the_call_waits_on_when_every_question_was_withdrawn() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    talk.withdraw("size");
    assert_eq!(talk.call.state(), State::Parked);
    talk.ask("colour", FORM);
    assert_eq!(talk.retry(1, &[("e1", ACCEPT)]).unwrap(), [""; 0]);
    assert_eq!(talk.wait(WINDOW), ["round 2: e2 colour"]);
}

#[test]
fn f17_the_server_loses_patience_and_its_tool_fails() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    talk.wait(Duration::from_mins(1));
    talk.withdraw("size");
    assert_eq!(talk.outcome("tool error"), [""; 0]);
    let delivered = talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    assert_eq!(delivered, ["done tool error"]);
}

#[test]
fn f18_the_server_asks_what_the_client_never_declared() {
    let mut talk = Talk::with(Limits::default(), NOTHING);
    assert_eq!(talk.ask("size", FORM), ["refuse size -32601"]);
    assert_eq!(talk.call.deadline(), None);
    assert_eq!(talk.outcome("result"), ["done result"]);
}

#[test]
fn f21_the_server_asks_in_more_rounds_than_there_are() {
    let limits = Limits {
        rounds: 2,
        ..Limits::default()
    };
    let mut talk = Talk::with(limits, EVERYTHING);
    talk.ask("first", FORM);
    talk.wait(WINDOW);
    talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    talk.ask("second", FORM);
    assert_eq!(talk.wait(WINDOW), ["round 2: e2 second"]);
    assert_eq!(talk.ask("away", SAMPLING), ["refuse away -1"]);
    talk.retry(2, &[("e2", ACCEPT)]).unwrap();
    assert_eq!(talk.ask("back", FORM), ["dismiss back"]);
    assert_eq!(talk.outcome("result"), ["done result"]);
}

#[test]
fn f21_asking_again_needs_a_round_too() {
    let mut talk = Talk::parked(&[("size", FORM), ("files", ROOTS)]);
    for round in 1..8 {
        assert_eq!(talk.retry(round, &[]).unwrap(), [""; 0]);
        assert_eq!(
            talk.wait(SPIN),
            [format!("round {}: e1 size, r2 files", round + 1)]
        );
    }
    assert_eq!(
        talk.retry(8, &[]).unwrap(),
        ["dismiss size", "refuse files -32603"]
    );
    assert_eq!(talk.call.deadline(), None);
    assert_eq!(talk.outcome("result"), ["done result"]);
}

#[test]
fn f22_two_questions_at_once() {
    let mut talk = Talk::new();
    talk.ask("size", FORM);
    talk.ask("files", ROOTS);
    assert_eq!(talk.wait(WINDOW), ["round 1: e1 size, r2 files"]);
    // In the order of the answers.
    assert_eq!(
        talk.retry(1, &[("r2", FILES), ("e1", ACCEPT)]).unwrap(),
        [answer("files", FILES), answer("size", ACCEPT)]
    );
}

#[test]
fn f23_a_second_question_while_the_person_thinks() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    assert_eq!(talk.ask("colour", FORM), [""; 0]);
    assert_eq!(
        talk.retry(1, &[("e1", ACCEPT)]).unwrap(),
        [answer("size", ACCEPT)]
    );
    assert_eq!(talk.wait(WINDOW), ["round 2: e2 colour"]);
}

#[test]
fn f24_the_server_insists_on_what_the_client_can_not_do() {
    let mut talk = Talk::with(Limits::default(), NOTHING);
    talk.ask("size", FORM);
    assert_eq!(talk.outcome("tool error"), ["done tool error"]);
}

#[test]
fn f28_the_client_disconnects_while_it_waits() {
    let mut talk = Talk::parked(&[("size", FORM), ("files", ROOTS)]);
    talk.ask("colour", FORM);
    talk.retry(1, &[("r2", FILES)]).unwrap();
    assert_eq!(
        talk.hear(Input::Gone),
        ["cancel", "dismiss size", "dismiss colour"]
    );
    assert_eq!(talk.outcome("late"), [""; 0]);
}

#[test]
fn f30_the_client_disconnects_while_the_round_is_written() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    assert_eq!(talk.hear(Input::Gone), [""; 0]);
    assert_eq!(talk.call.state(), State::Parked);
    assert_eq!(talk.wait(PARK), ["cancel", "dismiss size"]);
}

#[test]
fn f34_the_gateway_ends_while_calls_are_parked() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    assert_eq!(talk.hear(Input::End), ["cancel", "dismiss size"]);
    let late = talk.retry(1, &[("e1", ACCEPT)]);
    assert_eq!(late, Err("state_expired".into()));
}

#[test]
fn f55_a_second_response_of_the_server() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    talk.outcome("first");
    talk.outcome("second");
    assert_eq!(talk.retry(1, &[]).unwrap(), ["done first"]);
    assert_eq!(talk.outcome("third"), [""; 0]);
}

#[test]
fn f56_progress_after_the_outcome() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    talk.outcome("result");
    talk.progress("late");
    talk.log("late");
    assert_eq!(talk.retry(1, &[]).unwrap(), ["done result"]);
    assert_eq!(talk.progress("later"), [""; 0]);
}

#[test]
fn f59_an_answer_that_does_not_match_the_form() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    let odd = r#"{"action":"accept","content":{"size":1.0e1,"x":[]},"_meta":{}}"#;
    assert_eq!(
        talk.retry(1, &[("e1", odd)]).unwrap(),
        [answer("size", odd)]
    );
}
