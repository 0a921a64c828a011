//! Outcomes that were given to clients who had come back, for the moment in which a connection may have
//! broken before they were read. Who asks for one again by the same bytes gets it again, and nothing is
//! executed twice. It is no cache: nothing else finds it.
//!
//! # Invariants
//! - What is kept is bounded: in time, in size, in number for each principal, and in bytes for all.
//! - An outcome is found by its call and the bytes of the request that it answered. Whose call it is has
//!   been judged before, by the seal of the state that names it.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::seal::CallId;
use crate::auth::Principal;

/// How long an outcome is kept.
const WINDOW: Duration = Duration::from_secs(30);

/// The most outcomes of one principal.
const EACH: usize = 16;

/// The largest outcome that is kept, in bytes.
const LARGEST: usize = 256 * 1024;

/// The most bytes of all of them.
const MOST: usize = 32 * 1024 * 1024;

/// What a client was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// The digest of the request that it answered.
    pub(super) request: [u8; 32],
    pub(super) status: u16,
    pub(super) body: Bytes,
}

/// The outcomes.
#[derive(Debug, Default)]
pub(super) struct Kept {
    of: HashMap<CallId, (Given, Principal, Instant)>,
    /// The calls, the oldest outcome first; some may be gone.
    order: VecDeque<CallId>,
    each: HashMap<Principal, VecDeque<CallId>>,
    bytes: usize,
}

impl Kept {
    /// A client is given the outcome of its call.
    pub(super) fn keep(&mut self, now: Instant, call: CallId, who: &Principal, given: Given) {
        self.sweep(now);
        if given.body.len() > LARGEST {
            return;
        }
        let own = self.each.get(who);
        if let Some(oldest) =
            own.and_then(|own| (own.len() >= EACH).then(|| own.front().copied())?)
        {
            self.forget(oldest);
        }
        while self.bytes + given.body.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.forget(oldest);
        }
        self.bytes += given.body.len();
        self.order.push_back(call);
        self.each.entry(who.clone()).or_default().push_back(call);
        self.of.insert(call, (given, who.clone(), now + WINDOW));
    }

    /// What the client was given for this request, of which `request` is the digest.
    pub(super) fn find(&self, now: Instant, call: CallId, request: [u8; 32]) -> Option<Given> {
        let (given, _, until) = self.of.get(&call)?;
        (given.request == request && now < *until).then(|| given.clone())
    }

    /// Forgets what has been kept long enough.
    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some(oldest) = self.order.front().copied() {
            if self
                .of
                .get(&oldest)
                .is_some_and(|(_, _, until)| now < *until)
            {
                return;
            }
            self.order.pop_front();
            self.forget(oldest);
        }
    }

    fn forget(&mut self, call: CallId) {
        let Some((given, who, _)) = self.of.remove(&call) else {
            return;
        };
        self.bytes -= given.body.len();
        if let Some(own) = self.each.get_mut(&who) {
            own.retain(|it| *it != call);
            if own.is_empty() {
                self.each.remove(&who);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may read the clock")]
mod tests {
    use super::*;

    fn given(body: &str) -> Given {
        Given {
            request: [1; 32],
            status: 200,
            body: body.to_owned().into_bytes().into(),
        }
    }

    fn call() -> CallId {
        CallId::random().unwrap()
    }

    #[test]
    fn f3_the_same_request_gets_the_same_outcome_for_a_while() {
        let (now, mira) = (Instant::now(), Principal::api_key("mira"));
        let (mut kept, call) = (Kept::default(), call());
        kept.keep(now, call, &mira, given("done"));
        let nearly = now + WINDOW.saturating_sub(Duration::from_nanos(1));
        for time in [now, nearly] {
            assert_eq!(kept.find(time, call, [1; 32]), Some(given("done")));
            assert_eq!(kept.find(time, call, [2; 32]), None, "another request");
            assert_eq!(kept.find(time, self::call(), [1; 32]), None);
        }
        assert_eq!(kept.find(now + WINDOW, call, [1; 32]), None);
        kept.sweep(now + WINDOW);
        assert_eq!((kept.bytes, kept.order.len()), (0, 0));
        assert!(kept.of.is_empty() && kept.each.is_empty());
    }

    #[test]
    fn who_has_many_loses_their_own_oldest() {
        let now = Instant::now();
        let [mira, joris] = ["mira", "joris"].map(Principal::api_key);
        let (mut kept, other) = (Kept::default(), call());
        kept.keep(now, other, &joris, given("joris"));
        let calls: Vec<_> = (0..=EACH).map(|_| call()).collect();
        for call in &calls {
            kept.keep(now, *call, &mira, given("mira"));
        }
        assert_eq!(kept.find(now, calls[0], [1; 32]), None);
        for call in &calls[1..] {
            assert!(kept.find(now, *call, [1; 32]).is_some());
        }
        assert!(kept.find(now, other, [1; 32]).is_some());
        assert_eq!(kept.bytes, 5 + EACH * 4);
    }

    #[test]
    fn what_is_kept_of_all_is_bounded_in_bytes() {
        let now = Instant::now();
        let (mut kept, large) = (Kept::default(), "x".repeat(LARGEST));
        let most = MOST / LARGEST;
        let calls: Vec<_> = (0..=most).map(|_| call()).collect();
        for (number, call) in calls.iter().enumerate() {
            let who = Principal::api_key(&number.to_string());
            kept.keep(now, *call, &who, given(&large));
        }
        assert_eq!(kept.bytes, MOST);
        assert_eq!(kept.find(now, calls[0], [1; 32]), None);
        assert!(kept.find(now, calls[most], [1; 32]).is_some());
        let too_large = call();
        let who = Principal::api_key("mira");
        kept.keep(now, too_large, &who, given(&format!("{large}x")));
        assert_eq!(kept.find(now, too_large, [1; 32]), None);
        assert_eq!(kept.bytes, MOST);
    }
}
