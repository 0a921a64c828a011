//! The limits of questions: of each principal, and of a server to each principal.

use super::*;

/// Questions of `booking` and `travel` are limited in the same way, and those of each principal.
fn asked(each: Option<usize>, pending: Option<u32>, rate: Option<Rate>) -> Config {
    let mut config = config();
    config.limits.per_principal.questions = each;
    for name in [booking(), travel()] {
        let limits = asking(pending, rate);
        add(&mut config, name, RateLimits::default(), limits);
    }
    config
}

#[test]
fn questions_wait_in_bounded_number_per_principal_whoever_asks() {
    let (limiter, _) = fake(&asked(Some(2), None, None));
    let (alice, bob) = (who("alice"), who("bob"));
    let first = limiter.question(&booking(), &alice).unwrap();
    let _second = limiter.question(&travel(), &alice).unwrap();
    for server in [booking(), travel()] {
        let refused = limiter.question(&server, &alice).unwrap_err();
        assert_eq!(refused, QuestionLimited::Questions);
    }
    assert!(limiter.question(&booking(), &bob).is_ok());
    drop(first);
    assert!(limiter.question(&travel(), &alice).is_ok());
}

#[test]
fn questions_of_one_server_wait_in_bounded_number_per_principal() {
    let (limiter, _) = fake(&asked(None, Some(2), None));
    let (alice, bob) = (who("alice"), who("bob"));
    let first = limiter.question(&booking(), &alice).unwrap();
    let _second = limiter.question(&booking(), &alice).unwrap();
    let refused = limiter.question(&booking(), &alice).unwrap_err();
    assert_eq!(refused, QuestionLimited::Pending);
    let _of_another = limiter.question(&travel(), &alice).unwrap();
    let _to_another = limiter.question(&booking(), &bob).unwrap();
    drop(first);
    let _again = limiter.question(&booking(), &alice).unwrap();
    assert!(limiter.question(&booking(), &alice).is_err());
}

#[test]
fn a_server_asks_a_principal_no_faster_than_it_may() {
    let (limiter, clock) = fake(&asked(None, None, Some(rate(2, 3))));
    let (alice, bob) = (who("alice"), who("bob"));
    let asked = |server: &ServerName, principal: &Principal| {
        (0..100)
            .filter(|_| limiter.question(server, principal).is_ok())
            .count()
    };
    assert_eq!(asked(&booking(), &alice), 3);
    let refused = limiter.question(&booking(), &alice).unwrap_err();
    assert_eq!(refused, QuestionLimited::Rate);
    assert_eq!((asked(&travel(), &alice), asked(&booking(), &bob)), (3, 3));
    clock.advance(Duration::from_secs(1));
    assert_eq!(asked(&booking(), &alice), 2);
}

#[test]
fn of_the_limits_of_questions_the_principals_own_is_told_first_and_the_rate_last() {
    let alice = who("alice");
    for (each, pending, expected) in [
        (Some(1), Some(1), QuestionLimited::Questions),
        (Some(2), Some(1), QuestionLimited::Pending),
        (Some(2), Some(2), QuestionLimited::Rate),
    ] {
        let (limiter, _) = fake(&asked(each, pending, Some(rate(1, 1))));
        let _waiting = limiter.question(&booking(), &alice).unwrap();
        let refused = limiter.question(&booking(), &alice).unwrap_err();
        assert_eq!(refused, expected);
    }
}

#[test]
fn a_question_that_is_refused_takes_from_no_limit() {
    let alice = who("alice");
    // For want of a place among the principal's own, or among those of the server: the rate is untouched.
    for (each, pending) in [(Some(1), None), (None, Some(1))] {
        let (limiter, _) = fake(&asked(each, pending, Some(rate(1, 2))));
        let waiting = limiter.question(&booking(), &alice).unwrap();
        for _ in 0..10 {
            assert!(limiter.question(&booking(), &alice).is_err());
        }
        drop(waiting);
        drop(limiter.question(&booking(), &alice).unwrap());
        let refused = limiter.question(&booking(), &alice).unwrap_err();
        assert_eq!(refused, QuestionLimited::Rate);
    }

    // By the server's number: the principal's own place is free for another server.
    let (limiter, _) = fake(&asked(Some(2), Some(1), None));
    let _waiting = limiter.question(&booking(), &alice).unwrap();
    assert!(limiter.question(&booking(), &alice).is_err());
    assert!(limiter.question(&travel(), &alice).is_ok());

    // By the rate: both places are free.
    let (limiter, clock) = fake(&asked(Some(1), Some(1), Some(rate(1, 1))));
    drop(limiter.question(&booking(), &alice).unwrap());
    let refused = limiter.question(&booking(), &alice).unwrap_err();
    assert_eq!(refused, QuestionLimited::Rate);
    assert!(limiter.question(&travel(), &alice).is_ok());
    clock.advance(Duration::from_secs(1));
    assert!(limiter.question(&booking(), &alice).is_ok());
}

#[test]
fn a_server_whose_question_is_limited_reads_which_limit_it_was() {
    for (limited, reason, code, text) in [
        (
            QuestionLimited::Questions,
            "capacity",
            -31006,
            "too many questions wait for this person",
        ),
        (
            QuestionLimited::Pending,
            "question_pending",
            -31006,
            "too many questions of this server wait for this person",
        ),
        (
            QuestionLimited::Rate,
            "question_rate",
            -31004,
            "this server asks this person too many questions in a short time",
        ),
    ] {
        assert_eq!(
            (limited.reason(), limited.code(), limited.text()),
            (reason, code, text)
        );
    }
}

#[test]
fn a_sweep_forgets_whom_a_server_asked_when_nothing_is_to_be_remembered() {
    let (limiter, clock) = fake(&asked(None, Some(1), Some(rate(1, 10))));
    let known = || limiter.questions_of[&booking()].len();
    drop(limiter.question(&booking(), &who("idle")).unwrap());
    let waiting = limiter.question(&booking(), &who("waiting")).unwrap();
    for _ in 0..10 {
        drop(limiter.question(&booking(), &who("often")).unwrap());
    }
    limiter.sweep();
    assert_eq!((known(), limiter.questions_of[&travel()].len()), (3, 0));

    clock.advance(Duration::from_secs(5));
    limiter.sweep();
    // `idle` is like new; the bucket of `often` is half full; a question waits for `waiting`.
    assert_eq!(known(), 2);
    let refused = limiter.question(&booking(), &who("waiting")).unwrap_err();
    assert_eq!(refused, QuestionLimited::Pending);
    let more = (0..100)
        .filter(|_| limiter.question(&booking(), &who("often")).is_ok())
        .count();
    assert_eq!(more, 5);

    drop(waiting);
    clock.advance(Duration::from_secs(10));
    limiter.sweep();
    assert_eq!(known(), 0);
    assert_eq!(limiter.accounts.len(), 0);
}

#[test]
fn a_server_that_asks_very_many_does_not_fill_the_memory_nor_slow_down_another() {
    let (limiter, clock) = fake(&asked(None, Some(4), Some(rate(10, 20))));
    for number in 0..ACCOUNTS_MAX + 1000 {
        // Beyond the bound they share one account, so most are refused.
        drop(limiter.question(&booking(), &who(&number.to_string())));
    }
    let known = || limiter.questions_of[&booking()].len();
    assert_eq!(known(), ACCOUNTS_MAX);
    let stranger = who("one more");
    let refused = limiter.question(&booking(), &stranger).unwrap_err();
    assert_eq!(refused, QuestionLimited::Rate);
    assert!(limiter.question(&travel(), &stranger).is_ok());
    // Who was there before has their own.
    assert!(limiter.question(&booking(), &who("0")).is_ok());

    clock.advance(Duration::from_mins(1));
    limiter.sweep();
    assert_eq!(known(), 0);
    assert!(limiter.question(&booking(), &stranger).is_ok());
}
