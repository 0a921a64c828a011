//! The limits, with a clock that only moves when it is told to.

mod questions;
mod standing;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use governor::clock::FakeRelativeClock;
use proptest::prelude::*;

use super::account::ACCOUNTS_MAX;
use super::*;
use crate::config::questions::QuestionLimits;
use crate::config::{
    Access, LimitAnswer, Limits, PrincipalLimits, PublicUrl, Questions, Rate, Server, Sessions,
    Timeouts,
};

fn n(number: u32) -> NonZeroU32 {
    number.try_into().unwrap()
}

/// `count` requests a second, with a burst.
fn rate(count: u32, burst: u32) -> Rate {
    Rate {
        period: Duration::from_secs(1) / count,
        burst: n(burst),
    }
}

fn rates(requests: Option<Rate>, concurrent: Option<u32>) -> RateLimits {
    RateLimits {
        requests,
        concurrent: concurrent.map(n),
    }
}

/// Nothing is limited, but for what a test changes; there is one server, `booking`.
fn config() -> Config {
    Config {
        listen: ([127, 0, 0, 1], 0).into(),
        public_url: PublicUrl("http://127.0.0.1".into()),
        servers: BTreeMap::new(),
        access: Access::Local,
        limits: Limits {
            per_principal: PrincipalLimits {
                rates: RateLimits::default(),
                sessions: None,
                questions: None,
            },
            body: None,
            message: None,
            streams: None,
            buffer: 64,
            connections: None,
            answer: LimitAnswer::JsonRpc,
        },
        timeouts: Timeouts {
            connect: Duration::MAX,
            call: Duration::MAX,
            headers: None,
            idle: None,
            question: Duration::MAX,
            stream: Duration::MAX,
            resume: Duration::MAX,
            shutdown: Duration::MAX,
            keep_alive: Duration::MAX,
        },
        sessions: Sessions {
            idle: Duration::MAX,
            max: None,
        },
        allowed_hosts: vec![],
        allowed_origins: vec![],
        legacy_sse: false,
        audit: None,
    }
}

fn limited(server: RateLimits, principal: RateLimits) -> Config {
    let mut config = config();
    add(&mut config, booking(), server, asking(None, None));
    config.limits.per_principal.rates = principal;
    config
}

fn add(config: &mut Config, name: ServerName, limits: RateLimits, asking: QuestionLimits) {
    let server = Server {
        limits,
        questions: Questions {
            limits: asking,
            ..Questions::default()
        },
        ..Server::at(name.clone(), "http://127.0.0.1/mcp".parse().unwrap())
    };
    config.servers.insert(name, Arc::new(server));
}

/// What a server may ask; in one call as much as it likes.
fn asking(pending: Option<u32>, rate: Option<Rate>) -> QuestionLimits {
    QuestionLimits {
        per_call: None,
        pending: pending.map(n),
        rate,
    }
}

fn travel() -> ServerName {
    ServerName("travel".into())
}

fn booking() -> ServerName {
    ServerName("booking".into())
}

fn who(name: &str) -> Principal {
    Principal::token("https://login.example.com", name, None)
}

fn fake(config: &Config) -> (Limiter<FakeRelativeClock>, FakeRelativeClock) {
    let clock = FakeRelativeClock::default();
    (Limiter::with_clock(config, &clock), clock)
}

/// How many of `count` notifications pass now.
fn passed(limiter: &Limiter<FakeRelativeClock>, principal: &Principal, count: usize) -> usize {
    (0..count)
        .filter(|_| limiter.pass(&booking(), principal).is_ok())
        .count()
}

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn a_rate_gives_its_burst_at_once_and_then_one_a_period() {
    let (limiter, clock) = fake(&limited(
        rates(Some(rate(20, 40)), None),
        RateLimits::default(),
    ));
    assert_eq!(passed(&limiter, &who("alice"), 100), 40);
    clock.advance(50 * MILLISECOND);
    assert_eq!(passed(&limiter, &who("bob"), 100), 1);
    clock.advance(Duration::from_mins(1));
    assert_eq!(passed(&limiter, &who("alice"), 100), 40);
}

#[test]
fn the_wait_that_is_named_is_enough_and_not_too_long() {
    let (limiter, clock) = fake(&limited(
        rates(Some(rate(20, 1)), None),
        RateLimits::default(),
    ));
    assert_eq!(passed(&limiter, &who("alice"), 1), 1);
    clock.advance(20 * MILLISECOND);
    let refused = limiter.pass(&booking(), &who("alice")).unwrap_err();
    assert_eq!(refused.retry_after, 30 * MILLISECOND);
    assert_eq!(
        refused.to_string(),
        "server booking allows 20 requests/s; try again in 30 ms"
    );
    clock.advance(29 * MILLISECOND);
    assert_eq!(passed(&limiter, &who("alice"), 1), 0);
    clock.advance(MILLISECOND);
    assert_eq!(passed(&limiter, &who("alice"), 1), 1);
}

#[test]
fn each_principal_has_a_rate_of_their_own_whatever_client_they_use() {
    let (limiter, _) = fake(&limited(
        RateLimits::default(),
        rates(Some(rate(10, 5)), None),
    ));
    assert_eq!(passed(&limiter, &who("alice"), 10), 5);
    assert_eq!(passed(&limiter, &who("bob"), 10), 5);
    let other_client = Principal::token("https://login.example.com", "alice", Some("vscode"));
    assert_eq!(passed(&limiter, &other_client, 10), 0);
    let other_issuer = Principal::token("https://other.example.com", "alice", None);
    assert_eq!(passed(&limiter, &other_issuer, 10), 5);
}

#[test]
fn who_is_over_their_own_rate_takes_nothing_from_the_others() {
    let config = limited(
        rates(Some(rate(1, 10)), None),
        rates(Some(rate(1, 2)), None),
    );
    let (limiter, _) = fake(&config);
    assert_eq!(passed(&limiter, &who("greedy"), 1000), 2);
    let refused = limiter.pass(&booking(), &who("greedy")).unwrap_err();
    assert_eq!(refused.who, Who::Principal);
    for other in ["a", "b", "c", "d"] {
        assert_eq!(passed(&limiter, &who(other), 2), 2, "{other}");
    }
    // Now both are used up, and the caller hears of the limit that they can do something about.
    let refused = limiter.pass(&booking(), &who("greedy")).unwrap_err();
    assert_eq!(refused.who, Who::Principal);
    let refused = limiter.pass(&booking(), &who("e")).unwrap_err();
    assert_eq!(refused.who, Who::Server(booking()));
}

#[test]
fn who_is_refused_by_the_server_has_paid_nothing() {
    let mut config = limited(rates(Some(rate(1, 3)), None), rates(Some(rate(1, 5)), None));
    let free = ServerName("free".into());
    let server = Server {
        name: free.clone(),
        limits: RateLimits::default(),
        ..Server::clone(&config.servers[&booking()])
    };
    config.servers.insert(free.clone(), Arc::new(server));
    let (limiter, _) = fake(&config);
    let alice = who("alice");
    assert_eq!(passed(&limiter, &alice, 100), 3);
    let left = (0..100)
        .filter(|_| limiter.pass(&free, &alice).is_ok())
        .count();
    assert_eq!(left, 2);
}

#[test]
fn who_has_no_place_to_run_has_paid_nothing() {
    let (limiter, _) = fake(&limited(
        rates(Some(rate(1, 2)), Some(1)),
        RateLimits::default(),
    ));
    let running = limiter.admit(&booking(), &who("alice")).unwrap();
    for _ in 0..10 {
        let refused = limiter.admit(&booking(), &who("alice")).unwrap_err();
        assert_eq!(refused.what, What::Concurrency(n(1)));
    }
    drop(running);
    drop(limiter.admit(&booking(), &who("alice")).unwrap());
    let refused = limiter.admit(&booking(), &who("alice")).unwrap_err();
    assert_eq!(refused.what, What::Rate(rate(1, 2)));
}

#[test]
fn a_request_that_the_rate_refuses_holds_no_place() {
    let (limiter, clock) = fake(&limited(
        rates(Some(rate(1, 1)), Some(1)),
        rates(None, Some(1)),
    ));
    drop(limiter.admit(&booking(), &who("alice")).unwrap());
    assert!(matches!(
        limiter.admit(&booking(), &who("alice")).unwrap_err().what,
        What::Rate(_)
    ));
    clock.advance(Duration::from_secs(1));
    drop(limiter.admit(&booking(), &who("alice")).unwrap());
}

#[test]
fn concurrency_is_counted_per_server_and_per_principal() {
    let (limiter, _) = fake(&limited(rates(None, Some(3)), rates(None, Some(2))));
    let first = limiter.admit(&booking(), &who("alice")).unwrap();
    let _second = limiter.admit(&booking(), &who("alice")).unwrap();
    let refused = limiter.admit(&booking(), &who("alice")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "each caller is allowed 2 requests at once; try again in 1 s"
    );
    let _third = limiter.admit(&booking(), &who("bob")).unwrap();
    let refused = limiter.admit(&booking(), &who("bob")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "server booking allows 3 requests at once; try again in 1 s"
    );
    drop(first);
    let _fourth = limiter.admit(&booking(), &who("bob")).unwrap();
}

#[test]
fn sessions_are_counted_per_principal_and_in_total() {
    let mut config = config();
    config.limits.per_principal.sessions = Some(2);
    config.sessions.max = Some(3);
    let (limiter, _) = fake(&config);
    let first = limiter.session(&who("alice")).unwrap();
    let _second = limiter.session(&who("alice")).unwrap();
    let refused = limiter.session(&who("alice")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "each caller is allowed 2 sessions at once; try again in 10 s"
    );
    let _third = limiter.session(&who("bob")).unwrap();
    for _ in 0..5 {
        // A session that the gateway refuses is not counted for bob.
        let refused = limiter.session(&who("bob")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the gateway allows 3 sessions at once; try again in 10 s"
        );
    }
    drop(first);
    let _fourth = limiter.session(&who("bob")).unwrap();
}

#[test]
fn what_is_unlimited_leaves_no_trace() {
    let (limiter, _) = fake(&limited(RateLimits::default(), RateLimits::default()));
    let alice = who("alice");
    let guards: Vec<_> = (0..100)
        .map(|_| limiter.admit(&booking(), &alice).unwrap())
        .collect();
    let sessions: Vec<_> = (0..100).map(|_| limiter.session(&alice).unwrap()).collect();
    let questions: Vec<_> = (0..100)
        .map(|_| limiter.question(&booking(), &alice).unwrap())
        .collect();
    assert_eq!(passed(&limiter, &alice, 100), 100);
    assert_eq!((limiter.servers.len(), limiter.accounts.len()), (0, 0));
    assert_eq!(limiter.questions_of.len(), 0);
    drop((guards, sessions, questions));
}

#[test]
fn a_sweep_forgets_those_of_whom_nothing_is_to_be_remembered_and_no_one_else() {
    let mut config = limited(RateLimits::default(), rates(Some(rate(1, 10)), Some(5)));
    config.limits.per_principal.sessions = Some(1);
    let (limiter, clock) = fake(&config);
    drop(limiter.admit(&booking(), &who("idle")).unwrap());
    let _running = limiter.admit(&booking(), &who("running")).unwrap();
    let _session = limiter.session(&who("session")).unwrap();
    assert_eq!(passed(&limiter, &who("fast"), 100), 10);
    limiter.sweep();
    assert_eq!(limiter.accounts.len(), 4);

    clock.advance(Duration::from_secs(5));
    limiter.sweep();
    // `idle` is like new; the bucket of `fast` is half full; the others are in use.
    assert_eq!(limiter.accounts.len(), 3);
    assert_eq!(passed(&limiter, &who("fast"), 100), 5);
    assert!(limiter.session(&who("session")).is_err());

    clock.advance(Duration::from_secs(10));
    limiter.sweep();
    assert_eq!(limiter.accounts.len(), 2);
}

#[test]
fn a_million_principals_do_not_fill_the_memory() {
    let (limiter, clock) = fake(&limited(
        RateLimits::default(),
        rates(Some(rate(10, 20)), Some(4)),
    ));
    let known = who("known");
    let _running = limiter.admit(&booking(), &known).unwrap();
    for number in 0..1_000_000 {
        // Beyond the bound they share one bucket, so most are refused.
        drop(limiter.admit(&booking(), &who(&number.to_string())));
    }
    assert_eq!(limiter.accounts.len(), ACCOUNTS_MAX);
    assert_eq!(limiter.accounts.len(), limiter.accounts.entries());
    assert!(limiter.admit(&booking(), &who("one more")).is_err());
    // Who was there before has their own.
    assert_eq!(passed(&limiter, &known, 100), 19);

    clock.advance(Duration::from_mins(1));
    limiter.sweep();
    assert_eq!(limiter.accounts.len(), 1);
    assert!(limiter.accounts.capacity() < ACCOUNTS_MAX / 10);
    assert!(limiter.admit(&booking(), &who("one more")).is_ok());
}

#[test]
fn under_threads_never_more_run_than_may_and_all_places_come_back() {
    const MOST: u32 = 5;
    let mut config = limited(rates(None, Some(MOST)), rates(None, Some(MOST)));
    let most = MOST as usize;
    config.limits.per_principal.sessions = Some(most);
    config.limits.per_principal.questions = Some(most);
    config.sessions.max = Some(most);
    add(
        &mut config,
        travel(),
        RateLimits::default(),
        asking(Some(MOST - 1), None),
    );
    let limiter = Limiter::new(&config);
    let inside = [const { AtomicUsize::new(0) }; 4];
    let barrier = Barrier::new(8);
    let visit = |count: &AtomicUsize, most: usize| {
        assert!(count.fetch_add(1, Ordering::SeqCst) < most);
        std::thread::yield_now();
        count.fetch_sub(1, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (limiter, inside, barrier) = (&limiter, &inside, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let alice = who("alice");
                for turn in 0..5_000 {
                    if let Ok(guard) = limiter.admit(&booking(), &alice) {
                        visit(&inside[0], most);
                        drop(guard);
                    }
                    if let Ok(guard) = limiter.session(&alice) {
                        visit(&inside[1], most);
                        drop(guard);
                    }
                    if let Ok(guard) = limiter.question(&booking(), &alice) {
                        visit(&inside[2], most);
                        drop(guard);
                    }
                    if let Ok(guard) = limiter.question(&travel(), &alice) {
                        visit(&inside[3], most - 1);
                        drop(guard);
                    }
                    if (thread + turn) % 100 == 0 {
                        limiter.sweep();
                    }
                }
            });
        }
    });
    let alice = who("alice");
    let admitted: Vec<_> = (0..10)
        .filter_map(|_| limiter.admit(&booking(), &alice).ok())
        .collect();
    let sessions: Vec<_> = (0..10)
        .filter_map(|_| limiter.session(&alice).ok())
        .collect();
    let questions: Vec<_> = (0..10)
        .flat_map(|_| [travel(), booking()])
        .filter_map(|server| limiter.question(&server, &alice).ok())
        .collect();
    assert_eq!(
        (admitted.len(), sessions.len(), questions.len()),
        (most, most, most)
    );
    drop((admitted, sessions, questions));
    limiter.sweep();
    assert_eq!((limiter.accounts.len(), limiter.accounts.entries()), (0, 0));
    assert_eq!(limiter.questions_of[&travel()].len(), 0);
}

#[test]
fn under_threads_a_bucket_gives_exactly_what_it_has() {
    let slow = Rate {
        period: Duration::from_secs(1_000_000),
        burst: n(1000),
    };
    let small = Rate {
        period: Duration::from_secs(1_000_000),
        burst: n(700),
    };
    let limiter = Limiter::new(&limited(rates(Some(small), None), rates(Some(slow), None)));
    let passed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    if limiter.pass(&booking(), &who("alice")).is_ok() {
                        passed.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(passed.into_inner(), 700);
    // The 3300 that the server refused were given back.
    let elsewhere = ServerName("elsewhere".into());
    let left = (0..1000)
        .filter(|_| limiter.pass(&elsewhere, &who("alice")).is_ok())
        .count();
    assert_eq!(left, 300);
}

#[test]
fn limits_read_as_people_write_them() {
    let text = |period, wait| {
        let rate = Rate {
            period,
            burst: n(1),
        };
        Limited {
            who: Who::Principal,
            what: What::Rate(rate),
            retry_after: wait,
        }
        .to_string()
    };
    let second = Duration::from_secs(1);
    for (period, wait, expected) in [
        (second / 30, second, "30 requests/s; try again in 1 s"),
        (
            second / 7,
            Duration::from_micros(1),
            "7 requests/s; try again in 1 ms",
        ),
        (
            second * 2,
            second * 3 / 2,
            "30 requests/min; try again in 2 s",
        ),
        (
            second * 60 / 7,
            second * 90,
            "7 requests/min; try again in 90 s",
        ),
        (
            second * 60,
            999 * MILLISECOND,
            "1 requests/min; try again in 999 ms",
        ),
        (
            second * 3600 / 7,
            Duration::ZERO,
            "7 requests/h; try again in 1 ms",
        ),
        (
            second * 86_400,
            second,
            "one request in 86400 s; try again in 1 s",
        ),
    ] {
        assert_eq!(
            text(period, wait),
            format!("each caller is allowed {expected}")
        );
    }
}

#[test]
fn odd_rates_are_kept_and_harm_nothing() {
    for (period, burst) in [
        (Duration::ZERO, 1),
        (Duration::from_nanos(1), u32::MAX),
        (Duration::MAX, 1),
        (Duration::MAX, u32::MAX),
        (Duration::from_hours(24), u32::MAX),
    ] {
        let odd = rates(
            Some(Rate {
                period,
                burst: n(burst),
            }),
            None,
        );
        let (limiter, clock) = fake(&limited(odd.clone(), odd));
        clock.advance(Duration::from_secs(1));
        assert!(
            limiter.pass(&booking(), &who("alice")).is_ok(),
            "{period:?} {burst}"
        );
        drop(limiter.pass(&booking(), &who("alice")));
        limiter.sweep();
    }
}

/// A bucket as one would write it with whole numbers: what it holds, in periods' nanoseconds.
struct Model {
    saved: u128,
    period: u128,
    most: u128,
}

impl Model {
    fn new(rate: Rate) -> Self {
        let period = rate.period.as_nanos();
        let most = period * u128::from(rate.burst.get());
        Self {
            saved: most,
            period,
            most,
        }
    }
}

proptest! {
    /// Any sequence of waits and requests is decided as two plain token buckets decide it.
    #[test]
    fn both_rates_are_exactly_token_buckets_and_a_refusal_costs_nothing(
        own in (1_u64..50, 1_u32..6),
        shared in (1_u64..50, 1_u32..6),
        steps in prop::collection::vec((0_u64..40, any::<bool>()), 1..200),
    ) {
        let own = Rate { period: Duration::from_millis(own.0), burst: n(own.1) };
        let shared = Rate { period: Duration::from_millis(shared.0), burst: n(shared.1) };
        let (limiter, clock) = fake(&limited(rates(Some(shared), None), rates(Some(own), None)));
        let elsewhere = ServerName("elsewhere".into());
        let (mut own, mut shared) = (Model::new(own), Model::new(shared));
        for (wait, here) in steps {
            let wait = Duration::from_millis(wait);
            clock.advance(wait);
            for model in [&mut own, &mut shared] {
                model.saved = model.most.min(model.saved + wait.as_nanos());
            }
            let allowed = own.saved >= own.period && (!here || shared.saved >= shared.period);
            if allowed {
                own.saved -= own.period;
                if here {
                    shared.saved -= shared.period;
                }
            }
            let server = if here { booking() } else { elsewhere.clone() };
            prop_assert_eq!(limiter.pass(&server, &who("alice")).is_ok(), allowed);
        }
    }
}
