//! When keys are fetched.

use std::time::Duration;

use tokio::time::Instant;

use crate::auth::schedule::{Schedule, Trigger};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

#[expect(
    clippy::disallowed_methods,
    reason = "any moment will do as the beginning of time"
)]
fn beginning() -> Instant {
    Instant::now()
}

#[test]
fn keys_are_fetched_again_when_their_age_is_up_within_a_minute_and_an_hour() {
    let now = beginning();
    for (max_age, spread, wait) in [
        (None, 0.0, HOUR),
        (None, 1.0, SECOND * 3240),
        (Some(SECOND * 300), 0.0, SECOND * 300),
        (Some(SECOND * 300), 1.0, SECOND * 270),
        (Some(Duration::ZERO), 1.0, SECOND * 60),
        (Some(SECOND * 60), 1.0, SECOND * 60),
        (Some(HOUR * 48), 0.0, HOUR),
        (Some(Duration::MAX), 0.5, SECOND * 3420),
    ] {
        let mut schedule = Schedule::new(now);
        assert_eq!(schedule.next(), now, "the first fetch is now");
        schedule.fetched(Trigger::Time, max_age, spread, now);
        assert_eq!(schedule.next(), now + wait, "{max_age:?} {spread}");
    }
}

#[test]
fn without_keys_the_next_tries_follow_quickly_and_then_every_minute() {
    let mut now = beginning();
    let mut schedule = Schedule::new(now);
    for wait in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
        schedule.failed(Trigger::Time, now);
        assert_eq!(schedule.next(), now + SECOND * wait);
        now = schedule.next();
    }
}

#[test]
fn good_keys_outlive_failed_fetches_for_a_day() {
    let now = beginning();
    let mut schedule = Schedule::new(now);
    schedule.fetched(Trigger::Time, None, 0.0, now);
    schedule.failed(Trigger::Time, now + HOUR);
    assert_eq!(schedule.next(), now + HOUR + SECOND * 60);
    assert!(!schedule.stale(now + HOUR * 24 - SECOND));
    assert!(schedule.stale(now + HOUR * 24));
    schedule.fetched(Trigger::Time, None, 0.0, now + HOUR * 24);
    assert!(!schedule.stale(now + HOUR * 47));
    assert!(
        !Schedule::new(now).stale(now + HOUR * 48),
        "what never was can't be stale"
    );
}

#[test]
fn requests_may_ask_for_one_fetch_in_thirty_seconds_and_the_plan_does_not_count() {
    let now = beginning();
    let mut schedule = Schedule::new(now);
    schedule.fetched(Trigger::Demand, None, 0.0, now);
    assert_eq!(
        schedule.cooling(now),
        None,
        "the first keys are free, whoever asked for them"
    );
    schedule.fetched(Trigger::Demand, None, 0.0, now + SECOND);
    assert_eq!(schedule.cooling(now + SECOND), Some(now + SECOND * 31));
    schedule.fetched(Trigger::Time, None, 0.0, now + SECOND * 5);
    assert_eq!(schedule.cooling(now + SECOND * 30), Some(now + SECOND * 31));
    assert_eq!(schedule.cooling(now + SECOND * 31), None);
    schedule.failed(Trigger::Demand, now + SECOND * 40);
    assert_eq!(
        schedule.cooling(now + SECOND * 41),
        Some(now + SECOND * 70),
        "a failure counts"
    );
}
