//! A caller whose accounts were found once is limited as one who is looked up each time.

use super::*;

/// Requests in a rate, and some at once, for the server and for each principal.
fn both() -> (Limiter<FakeRelativeClock>, FakeRelativeClock) {
    fake(&limited(
        rates(Some(rate(1, 8)), Some(3)),
        rates(Some(rate(1, 5)), Some(2)),
    ))
}

#[test]
fn a_standing_counts_with_all_else_that_its_principal_asks() {
    let (limiter, _) = both();
    let alice = who("alice");
    let (one, other) = (
        limiter.standing(&booking(), &alice),
        limiter.standing(&booking(), &alice),
    );
    let running = (
        limiter.admit_known(&one).unwrap(),
        limiter.admit(&booking(), &alice).unwrap(),
    );
    let refused = limiter.admit_known(&other).unwrap_err();
    assert_eq!(refused, limiter.admit(&booking(), &alice).unwrap_err());
    assert_eq!(
        (refused.who, refused.what),
        (Who::Principal, What::Concurrency(n(2)))
    );
    drop(running);
    // Two of five are gone, and who was refused has paid nothing.
    assert!(limiter.pass_known(&one).is_ok() && limiter.pass_known(&other).is_ok());
    assert!(limiter.pass(&booking(), &alice).is_ok());
    assert_eq!(
        limiter.pass_known(&one).unwrap_err().what,
        What::Rate(rate(1, 5))
    );
}

#[test]
fn a_standing_counts_with_all_others_at_its_server() {
    let (limiter, _) = both();
    let standings: Vec<_> = ["alice", "bob"]
        .iter()
        .map(|name| limiter.standing(&booking(), &who(name)))
        .collect();
    let passed = (0..100)
        .filter(|turn| limiter.pass_known(&standings[turn % 2]).is_ok())
        .count();
    assert_eq!(passed, 8);
    assert_eq!(
        limiter.pass(&booking(), &who("carol")).unwrap_err().who,
        Who::Server(booking())
    );
    // At a server without limits only their own count, and there is some left of each.
    assert!(
        limiter
            .pass_known(&limiter.standing(&travel(), &who("alice")))
            .is_ok()
    );
}

#[test]
fn an_account_outlives_all_sweeps_while_a_standing_holds_it() {
    let (limiter, clock) = both();
    let alice = who("alice");
    let standing = limiter.standing(&booking(), &alice);
    clock.advance(Duration::from_hours(1));
    limiter.sweep();
    assert_eq!(limiter.accounts.len(), 1);
    let running = [(); 2].map(|()| limiter.admit_known(&standing).unwrap());
    // Were there two accounts now, this would find the other one.
    assert!(limiter.admit(&booking(), &alice).is_err());

    drop(running);
    drop(standing);
    clock.advance(Duration::from_hours(1));
    limiter.sweep();
    assert_eq!(limiter.accounts.len(), 0);
}

#[test]
fn who_came_when_there_was_no_room_is_a_stranger_only_until_there_is() {
    let (limiter, clock) = fake(&limited(
        RateLimits::default(),
        rates(Some(rate(1, 5)), None),
    ));
    for number in 0..ACCOUNTS_MAX {
        assert!(limiter.pass(&booking(), &who(&number.to_string())).is_ok());
    }
    let (late, later) = (
        limiter.standing(&booking(), &who("late")),
        limiter.standing(&booking(), &who("later")),
    );
    for standing in [&late, &later, &late, &later, &late] {
        assert!(limiter.pass_known(standing).is_ok());
    }
    assert!(limiter.pass_known(&later).is_err());

    clock.advance(Duration::from_secs(2));
    limiter.sweep();
    for standing in [&late, &later] {
        let passed = (0..100)
            .filter(|_| limiter.pass_known(standing).is_ok())
            .count();
        assert_eq!(passed, 5);
    }
}

#[test]
fn without_limits_a_standing_leaves_no_trace() {
    let (limiter, _) = fake(&limited(RateLimits::default(), RateLimits::default()));
    let standing = limiter.standing(&booking(), &who("alice"));
    assert!(limiter.admit_known(&standing).is_ok() && limiter.pass_known(&standing).is_ok());
    assert_eq!(limiter.accounts.len(), 0);
}
