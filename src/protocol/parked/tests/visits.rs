//! A server that ends the call with addresses to visit (-32042): when the client is sent to them, what
//! its answers mean, and when the call is made again.

use super::*;

const YES: &str = r#"{"action":"accept"}"#;

/// Agrees to visit both addresses of `round`.
fn agree(talk: &mut Talk, round: u32) -> Vec<String> {
    talk.retry(round, &[("u1", YES), ("u2", YES)]).unwrap()
}

/// A client that agreed and waits.
fn held() -> Talk {
    let mut talk = Talk::at(State::Visiting);
    assert_eq!(agree(&mut talk, 1), [""; 0]);
    assert_eq!(talk.call.state(), State::Running);
    talk
}

#[test]
fn a_client_is_sent_to_addresses_and_nothing_is_in_flight() {
    let mut talk = Talk::at(State::Running);
    assert!(talk.call.is_in_flight());
    assert_eq!(
        talk.wants(&["a", "b"]),
        ["dismiss queued", "visits 1: u1, u2"]
    );
    assert_eq!(talk.call.state(), State::Visiting);
    assert!(!talk.call.is_in_flight() && talk.call.is_away());
    assert_eq!(talk.ask("late", FORM), ["dismiss late"]);
    assert_eq!(talk.progress("late"), [""; 0]);
    assert_eq!(talk.hear(Input::Gone), [""; 0]);
    assert_eq!(talk.call.state(), State::Visiting);
}

#[test]
fn a_client_that_does_not_come_back_from_addresses_leaves_nothing_to_cancel() {
    for end in [
        |it: &mut Talk| it.wait(PARK),
        |it: &mut Talk| it.hear(Input::End),
    ] {
        let mut talk = Talk::at(State::Visiting);
        assert_eq!(end(&mut talk), [""; 0]);
        assert_eq!(talk.call.state(), State::Aborted);
        let late = talk.retry(1, &[("u1", YES), ("u2", YES)]);
        assert_eq!(late, Err("state_expired".into()));
    }
}

#[test]
fn a_retry_from_addresses_that_does_not_fit_changes_nothing() {
    let mut talk = Talk::at(State::Visiting);
    let before = format!("{:?}", talk.call);
    for answers in [&[("u1", YES)][..], &[("u1", YES), ("u2", "{}")], &[]] {
        let refused = talk.retry(1, answers).unwrap_err();
        assert!(
            refused.contains("\"u2\"") || refused.contains("\"u1\""),
            "{refused}"
        );
    }
    assert_eq!(talk.retry(2, &[]), Err("state_consumed".into()));
    assert_eq!(format!("{:?}", talk.call), before);
    agree(&mut talk, 1);
    let again = talk.retry(1, &[("u1", YES), ("u2", YES)]);
    assert_eq!(again, Err("state_consumed".into()));
}

#[test]
fn the_call_is_made_again_after_a_pause_or_when_the_person_is_done() {
    let mut talk = held();
    assert_eq!(talk.wait(BE_BACK), ["again"]);
    assert!(talk.call.is_in_flight());
    let mut talk = held();
    assert_eq!(talk.visited("a"), [""; 0]);
    assert_eq!(talk.wait(Duration::ZERO), [""; 0]);
    talk.visited("b");
    assert_eq!(talk.wait(Duration::ZERO), ["again"]);
    assert_eq!(talk.wait(PARK), [""; 0], "it is made once");
    assert_eq!(talk.outcome("result"), ["done result"]);
}

#[test]
fn who_is_done_before_the_server_has_named_the_address_is_done() {
    let mut talk = held();
    talk.wait(BE_BACK);
    talk.visited("c");
    assert_eq!(talk.wants(&["c"]), [""; 0]);
    assert_eq!(talk.wait(Duration::ZERO), ["again"]);
    // What was told of an address before is nothing to the call after, or it would never rest.
    assert_eq!(talk.wants(&["c"]), [""; 0]);
    assert_eq!(talk.wait(Duration::ZERO), [""; 0]);
}

#[test]
fn the_client_waits_on_while_the_server_says_it_again_and_is_asked_anew_after_a_while() {
    let mut talk = held();
    for _ in 0..8 {
        talk.now = talk.call.deadline().unwrap();
        assert_eq!(talk.wait(Duration::ZERO), ["again"]);
        assert_eq!(talk.wants(&["a", "b"]), [""; 0]);
        assert_eq!(talk.call.state(), State::Running);
    }
    talk.now = talk.call.deadline().unwrap();
    assert_eq!(talk.wait(Duration::ZERO), ["again"]);
    assert_eq!(talk.wants(&["c"]), ["visits 2: u1"]);
    let due = talk.call.deadline();
    assert_eq!(due, Some(talk.now + PARK), "with the whole time");
}

#[test]
fn a_client_that_leaves_while_it_waits_cancels_only_what_is_in_flight() {
    let mut talk = held();
    assert_eq!(talk.hear(Input::Gone), [""; 0]);
    assert_eq!(talk.call.state(), State::Aborted);
    let mut talk = held();
    talk.wait(BE_BACK);
    assert_eq!(talk.hear(Input::Gone), ["cancel"]);
}

#[test]
fn a_call_that_is_made_again_can_ask() {
    let mut talk = held();
    talk.wait(BE_BACK);
    assert_eq!(talk.ask("size", FORM), [""; 0]);
    assert_eq!(talk.wait(WINDOW), ["round 2: e1 size"]);
    assert_eq!(
        talk.retry(2, &[("e1", ACCEPT)]).unwrap(),
        [answer("size", ACCEPT)]
    );
    // Were it ended with addresses now, they would be new ones.
    assert_eq!(talk.wants(&["a"]), ["visits 3: u1"]);
}

#[test]
fn f27_a_no_ends_it_and_the_call_is_not_made_again() {
    for no in [r#"{"action":"decline"}"#, r#"{"action":"cancel"}"#] {
        let mut talk = Talk::at(State::Visiting);
        assert_eq!(
            talk.retry(1, &[("u1", YES), ("u2", no)]).unwrap(),
            ["declined"]
        );
        assert_eq!(talk.call.state(), State::Delivered);
        assert_eq!(talk.wait(PARK), [""; 0]);
    }
}

#[test]
fn f25_a_client_that_can_not_be_sent_anywhere() {
    let undeclared = [r#"undeclared {"elicitation":{"url":{}}}"#];
    let mut talk = Talk::with(Limits::default(), FORMS_ONLY);
    assert_eq!(talk.wants(&["a"]), undeclared);
    // The same when only the request that came back can't.
    let mut talk = Talk::at(State::Visiting);
    let back = talk.retry_with(FORMS_ONLY, 1, &[("u1", YES), ("u2", YES)]);
    assert_eq!(back.unwrap(), [""; 0]);
    talk.wait(BE_BACK);
    assert_eq!(talk.wants(&["a"]), undeclared);
    assert!(talk.call.is_over());
}

#[test]
fn addresses_that_come_while_the_client_is_away_are_its_next_round() {
    let mut talk = Talk::at(State::Parked);
    assert_eq!(talk.wants(&["a"]), ["dismiss shown", "dismiss queued"]);
    assert_eq!(talk.call.state(), State::ParkedDone);
    talk.visited("a");
    talk.log("l");
    // Whatever it answers to what was asked before.
    assert_eq!(talk.retry(1, &[("e1", "7")]).unwrap(), ["visits 2: u1"]);
    assert_eq!(talk.call.state(), State::Visiting);
    talk.retry(2, &[("u1", YES)]).unwrap();
    assert_eq!(talk.wait(Duration::ZERO), ["again"], "done meanwhile");
    assert_eq!(talk.outcome("result"), ["done result"]);
}

#[test]
fn addresses_for_a_client_that_comes_back_with_less() {
    let mut talk = Talk::at(State::Parked);
    talk.wants(&["a"]);
    assert_eq!(
        talk.retry_with(FORMS_ONLY, 1, &[]).unwrap(),
        [r#"undeclared {"elicitation":{"url":{}}}"#]
    );
    assert_eq!(talk.call.state(), State::Delivered);
}

#[test]
fn addresses_that_nobody_fetches_are_dropped() {
    let mut talk = Talk::at(State::Parked);
    talk.wants(&["a"]);
    assert_eq!(talk.wait(PARK), [""; 0]);
    assert_eq!(talk.call.state(), State::Aborted);
    assert_eq!(talk.retry(1, &[]), Err("state_expired".into()));
}

#[test]
fn f21_addresses_take_rounds_too() {
    let limits = Limits {
        rounds: 1,
        ..Limits::default()
    };
    let mut talk = Talk::with(limits, EVERYTHING);
    talk.ask("size", FORM);
    talk.wait(WINDOW);
    talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    assert_eq!(talk.wants(&["a"]), ["done error"]);
    assert!(talk.call.is_over());
}
