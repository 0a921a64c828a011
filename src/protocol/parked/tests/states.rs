//! The table of states, row by row, and the notes under it.

use super::*;

/// From `state`, `event` brings out exactly `expected`, and the call is at `next`.
#[track_caller]
fn check(
    state: State,
    event: impl FnOnce(&mut Talk) -> Vec<String>,
    expected: &[&str],
    next: State,
) {
    let mut talk = Talk::at(state);
    assert_eq!(event(&mut talk), expected);
    assert_eq!(talk.call.state(), next);
}

/// From `state`, a retry of `round` is refused for `reason`, and changes nothing.
#[track_caller]
fn check_refused(state: State, round: u32, answers: &[(&str, &str)], reason: &str) {
    let mut talk = Talk::at(state);
    let before = format!("{:?}", talk.call);
    assert_eq!(talk.retry(round, answers), Err(reason.to_owned()));
    assert_eq!(format!("{:?}", talk.call), before);
}

#[test]
fn running() {
    use State::{Aborted, Delivered, Parked, Running};
    check(Running, |it| it.progress("p"), &["forward p"], Running);
    check(Running, |it| it.log("l"), &["forward l"], Running);
    check(Running, |it| it.ask("new", FORM), &[], Running);
    check(Running, |it| it.withdraw("queued"), &[], Running);
    check(
        Running,
        |it| it.wait(WINDOW),
        &["round 1: e1 queued"],
        Parked,
    );
    check(
        Running,
        |it| it.outcome("result"),
        &["dismiss queued", "done result"],
        Delivered,
    );
    let cancelled = ["cancel", "dismiss queued"];
    check(Running, |it| it.hear(Input::Gone), &cancelled, Aborted);
    check(Running, |it| it.hear(Input::End), &cancelled, Aborted);
    check_refused(Running, 0, &[], "state_consumed");
    check_refused(Running, 1, &[], "state_consumed");
}

#[test]
fn parked() {
    use State::{Aborted, Parked, ParkedDone, Running};
    check(Parked, |it| it.progress("p"), &[], Parked);
    check(Parked, |it| it.log("l"), &[], Parked);
    check(Parked, |it| it.ask("new", FORM), &[], Parked);
    check(Parked, |it| it.withdraw("shown"), &[], Parked);
    check(Parked, |it| it.withdraw("queued"), &[], Parked);
    check(Parked, |it| it.hear(Input::Gone), &[], Parked);
    check(
        Parked,
        |it| it.outcome("result"),
        &["dismiss shown", "dismiss queued"],
        ParkedDone,
    );
    check(
        Parked,
        |it| it.retry(1, &[("e1", ACCEPT)]).unwrap(),
        &[&answer("shown", ACCEPT)],
        Running,
    );
    let cancelled = ["cancel", "dismiss shown", "dismiss queued"];
    check(Parked, |it| it.wait(PARK), &cancelled, Aborted);
    check(Parked, |it| it.hear(Input::End), &cancelled, Aborted);
}

#[test]
fn parked_with_the_outcome_in_hand() {
    use State::{Aborted, Delivered, ParkedDone};
    check(ParkedDone, |it| it.progress("late"), &[], ParkedDone);
    check(ParkedDone, |it| it.log("late"), &[], ParkedDone);
    check(ParkedDone, |it| it.outcome("second"), &[], ParkedDone);
    check(ParkedDone, |it| it.hear(Input::Gone), &[], ParkedDone);
    check(
        ParkedDone,
        |it| it.ask("late", FORM),
        &["dismiss late"],
        ParkedDone,
    );
    check(
        ParkedDone,
        |it| it.retry(1, &[("e1", ACCEPT)]).unwrap(),
        &["forward p", "forward l", "done result"],
        Delivered,
    );
    check(ParkedDone, |it| it.wait(PARK), &[], Aborted);
    check(ParkedDone, |it| it.hear(Input::End), &[], Aborted);
    check_refused(ParkedDone, 2, &[], "state_consumed");
}

#[test]
fn away_at_addresses() {
    use State::{Aborted, Delivered, Running, Visiting};
    let yes = [
        ("u1", r#"{"action":"accept"}"#),
        ("u2", r#"{"action":"accept"}"#),
    ];
    let no = [yes[0], ("u2", DECLINE)];
    check(Visiting, |it| it.progress("late"), &[], Visiting);
    check(Visiting, |it| it.log("late"), &[], Visiting);
    check(Visiting, |it| it.outcome("second"), &[], Visiting);
    check(Visiting, |it| it.visited("a"), &[], Visiting);
    check(Visiting, |it| it.hear(Input::Gone), &[], Visiting);
    check(
        Visiting,
        |it| it.ask("late", FORM),
        &["dismiss late"],
        Visiting,
    );
    check(Visiting, |it| it.retry(1, &yes).unwrap(), &[], Running);
    check(
        Visiting,
        |it| it.retry(1, &no).unwrap(),
        &["declined"],
        Delivered,
    );
    check(Visiting, |it| it.wait(PARK), &[], Aborted);
    check(Visiting, |it| it.hear(Input::End), &[], Aborted);
    check_refused(Visiting, 2, &yes, "state_consumed");
}

#[test]
fn over() {
    for state in [State::Delivered, State::Aborted] {
        check(state, |it| it.progress("late"), &[], state);
        check(state, |it| it.log("late"), &[], state);
        check(state, |it| it.outcome("late"), &[], state);
        check(state, |it| it.visited("late"), &[], state);
        check(state, |it| it.withdraw("shown"), &[], state);
        check(state, |it| it.hear(Input::Gone), &[], state);
        check(state, |it| it.hear(Input::End), &[], state);
        check(state, |it| it.wait(PARK), &[], state);
        check(state, |it| it.ask("late", FORM), &["dismiss late"], state);
        assert!(Talk::at(state).call.is_over());
        assert_eq!(Talk::at(state).call.deadline(), None);
    }
    check_refused(State::Delivered, 1, &[("e1", ACCEPT)], "state_consumed");
    check_refused(State::Aborted, 1, &[("e1", ACCEPT)], "state_expired");
}

#[test]
fn a_question_that_the_attached_client_can_not_be_asked_is_refused_at_once() {
    let mut talk = Talk::with(Limits::default(), FORMS_ONLY);
    assert_eq!(talk.ask("size", FORM), [""; 0]);
    assert_eq!(talk.ask("sign in", URL), ["refuse sign in -32602"]);
    assert_eq!(talk.ask("model", SAMPLING), ["refuse model -32601"]);
    assert_eq!(talk.ask("files", ROOTS), ["refuse files -32601"]);
    assert_eq!(talk.ask("other", UNHEARD_OF), ["refuse other -32601"]);
    assert_eq!(talk.wait(WINDOW), ["round 1: e1 size"]);
}

#[test]
fn the_window_begins_with_the_first_question_and_the_timer_may_come_early() {
    let mut talk = Talk::new();
    assert_eq!(talk.call.deadline(), None);
    talk.ask("first", FORM);
    let due = talk.now + WINDOW;
    assert_eq!(talk.wait(Duration::from_millis(49)), [""; 0]);
    talk.ask("second", FORM);
    assert_eq!(talk.call.deadline(), Some(due));
    assert_eq!(
        talk.wait(Duration::from_millis(1)),
        ["round 1: e1 first, e2 second"]
    );
    assert_eq!(talk.call.deadline(), Some(due + PARK));
}

#[test]
fn no_round_goes_out_for_questions_that_were_withdrawn() {
    let mut talk = Talk::at(State::Running);
    talk.withdraw("queued");
    assert_eq!(talk.call.deadline(), None);
    assert_eq!(talk.wait(WINDOW), [""; 0]);
    // The window begins anew with the next question, whose key is its own.
    talk.ask("next", FORM);
    assert_eq!(talk.wait(WINDOW), ["round 1: e2 next"]);
}

#[test]
fn keys_tell_the_kind_and_are_never_used_for_another_question() {
    let mut talk = Talk::parked(&[("size", FORM), ("model", SAMPLING), ("files", ROOTS)]);
    talk.ask("sign in", URL);
    talk.retry(1, &[("e1", ACCEPT), ("r3", FILES)]).unwrap();
    talk.ask("colour", FORM);
    assert_eq!(
        talk.wait(WINDOW),
        ["round 2: s2 model, e4 sign in, e5 colour"]
    );
}

#[test]
fn an_outcome_is_preferred_to_a_round_that_is_due() {
    let mut talk = Talk::at(State::Running);
    talk.now += WINDOW;
    assert_eq!(talk.outcome("result"), ["dismiss queued", "done result"]);
    assert_eq!(talk.wait(WINDOW), [""; 0]);
}

#[test]
fn of_what_was_told_while_the_client_was_away_it_hears_the_newest() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    for old in ["1", "2"] {
        talk.progress(old);
    }
    talk.progress("3");
    for n in 0..40 {
        talk.hear(Input::Log(n.to_string().into()));
    }
    let heard = talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    let logs = (8..40).map(|n| format!("forward {n}"));
    let mut expected: Vec<_> = ["forward 3".to_owned()].into_iter().chain(logs).collect();
    expected.push(answer("size", ACCEPT));
    assert_eq!(heard, expected);
    // It hears nothing twice.
    talk.ask("next", FORM);
    talk.wait(WINDOW);
    assert_eq!(
        talk.retry(2, &[("e2", DECLINE)]).unwrap(),
        [answer("next", DECLINE)]
    );
}

#[test]
fn nobody_is_there_is_told_after_the_cancellation_and_never_as_an_answer() {
    let mut talk = Talk::parked(&[
        ("size", FORM),
        ("sign in", URL),
        ("model", SAMPLING),
        ("files", ROOTS),
    ]);
    assert_eq!(
        talk.wait(PARK),
        [
            "cancel",
            "dismiss size",
            "dismiss sign in",
            "refuse model -1",
            "refuse files -32603"
        ]
    );
}

#[test]
fn a_client_that_waits_with_nothing_asked_waits_for_the_outcome() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    assert_eq!(talk.call.deadline(), None);
    assert_eq!(talk.wait(PARK), [""; 0]);
    assert_eq!(talk.outcome("result"), ["done result"]);
}

#[test]
fn each_round_has_its_own_time() {
    let mut talk = Talk::parked(&[("size", FORM)]);
    let (nearly, rest) = (Duration::from_secs(599), Duration::from_secs(1));
    talk.wait(nearly);
    talk.ask("colour", FORM);
    talk.retry(1, &[("e1", ACCEPT)]).unwrap();
    assert_eq!(talk.wait(WINDOW), ["round 2: e2 colour"]);
    assert_eq!(talk.wait(nearly), [""; 0]);
    assert_eq!(talk.wait(rest), ["cancel", "dismiss colour"]);
}

#[test]
fn an_outcome_that_nobody_fetched_is_dropped() {
    for end in [
        |it: &mut Talk| it.wait(PARK),
        |it: &mut Talk| it.hear(Input::End),
    ] {
        let mut talk = Talk::at(State::ParkedDone);
        assert!(talk.call.outcome.is_some());
        end(&mut talk);
        assert_eq!(talk.call.outcome, None);
        assert_eq!((talk.call.progress, talk.call.logs.len()), (None, 0));
    }
}
