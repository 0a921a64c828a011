//! What modern clients were asked by modern servers, until they come back with the answers: neither side
//! keeps it, and an answer can't be looked at without its question.
//!
//! # Invariants
//! - A round is found by its server, its principal, its request and the state of its server. What another
//!   principal brings finds nothing.
//! - Rounds and bytes are bounded, of each principal before all. Who is at the bound loses what they have
//!   answered already, and then can't be asked more; nobody else notices.
//! - A round that was answered stays until its time is over: who brings its answers once more is looked at
//!   once more.
//! - What is forgotten before it was answered is given to who forgets it, for the record.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::auth::Principal;
use crate::config::ServerName;
use crate::limit::QuestionSlot;
use crate::policy::Case;
use crate::protocol::message::Message;

/// How much there is, or may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bounds {
    rounds: usize,
    bytes: usize,
}

/// What one principal may have in the table.
const EACH: Bounds = Bounds {
    rounds: 512,
    bytes: 8 << 20,
};

/// What all may have in the table.
const ALL: Bounds = Bounds {
    rounds: 65_536,
    bytes: 256 << 20,
};

/// What a round takes beside its texts, about.
const ROUND: usize = 256;

/// What a question takes beside its texts, about.
const QUESTION: usize = 512;

/// The rounds that clients have not come back from.
pub(in crate::relay) struct Table {
    each: Bounds,
    all: Bounds,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    rounds: HashMap<Principal, Vec<Round>>,
    used: Bounds,
}

/// Which round it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) server: ServerName,
    /// The hash of method, target and `requestState`; without one that of the request.
    pub(super) state: [u8; 32],
    /// The hash of the request. A server may give many requests the same state.
    pub(super) request: [u8; 32],
}

/// What a client was asked in one answer.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) place: Place,
    /// When nobody is expected to come back any more.
    pub(super) until: Instant,
    pub(super) questions: Vec<Open>,
    /// What policy answered to other questions of the round: key and result (JSON text).
    pub(super) decided: Vec<(String, String)>,
    /// How many questions the request has caused so far.
    pub(super) asked: u32,
    /// The server got the answers.
    pub(super) answered: bool,
}

/// A question that the client has.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) key: String,
    pub(super) question: Message,
    pub(super) case: Case,
    pub(super) asked: Instant,
    /// An answer (JSON text) that waits until all others of the round are good, too.
    pub(super) kept: Option<String>,
    /// Its place among the questions that wait for its person, as long as it does.
    pub(super) slot: Option<Arc<QuestionSlot>>,
    /// How it ended is on record.
    pub(super) ended: bool,
}

/// There is no room for the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Default for Table {
    fn default() -> Self {
        Self::with(EACH, ALL)
    }
}

impl Table {
    fn with(each: Bounds, all: Bounds) -> Self {
        Self {
            each,
            all,
            held: Mutex::default(),
        }
    }

    /// The round that a request comes back from: if several have its state, the one of the same request, or
    /// else the newest.
    pub(super) fn find(&self, who: &Principal, place: &Place, now: Instant) -> Option<Round> {
        let held = self.held.lock();
        let fitting = held.rounds.get(who)?.iter().rev().filter(|round| {
            let other = &round.place;
            (&other.server, other.state) == (&place.server, place.state) && now < round.until
        });
        let best = fitting.reduce(|newest, round| {
            let same = |round: &Round| round.place.request == place.request;
            if same(round) && !same(newest) {
                round
            } else {
                newest
            }
        });
        best.cloned()
    }

    /// Takes out the round that is at this place.
    pub(super) fn take(&self, who: &Principal, place: &Place) -> Option<Round> {
        let mut held = self.held.lock();
        let own = held.rounds.get_mut(who)?;
        let at = own.iter().position(|it| it.place == *place)?;
        let round = own.remove(at);
        if own.is_empty() {
            held.rounds.remove(who);
        }
        held.used = held.used.without(Bounds::of([&round]));
        Some(round)
    }

    /// Remembers a round, in the place of what it was before. Gives those of the same principal from which
    /// nobody came back in time, and which are forgotten now.
    ///
    /// # Errors
    /// When there is no room, of the principal or of all.
    pub(super) fn keep(
        &self,
        who: &Principal,
        round: Round,
        now: Instant,
    ) -> Result<Vec<Round>, Full> {
        let mut held = self.held.lock();
        let mut own = held.rounds.remove(who).unwrap_or_default();
        held.used = held.used.without(Bounds::of(&own));
        own.retain(|it| it.place != round.place);
        let late = own.extract_if(.., |it| it.until <= now).collect();
        let new = Bounds::of([&round]);
        let room = loop {
            let mine = Bounds::of(&own).and(new);
            if mine.is_within(self.each) && mine.and(held.used).is_within(self.all) {
                own.push(round);
                break Ok(late);
            }
            let Some(oldest) = own.iter().position(|it| it.answered) else {
                // Those whose time is over are not lost for the record.
                own.extend(late);
                break Err(Full);
            };
            own.remove(oldest);
        };
        if !own.is_empty() {
            held.used = held.used.and(Bounds::of(&own));
            held.rounds.insert(who.clone(), own);
        }
        room
    }

    /// Forgets the rounds from which nobody came back in time, and gives those that were not answered.
    pub(super) fn sweep(&self, now: Instant) -> Vec<(Principal, Round)> {
        let mut held = self.held.lock();
        let mut used = Bounds::default();
        let mut over = Vec::new();
        held.rounds.retain(|who, own| {
            let late = own.extract_if(.., |round| round.until <= now);
            let open = late.filter(|round| !round.answered);
            over.extend(open.map(|round| (who.clone(), round)));
            used = used.and(Bounds::of(&*own));
            !own.is_empty()
        });
        held.used = used;
        over
    }

    /// Forgets all, and gives what was not answered.
    pub(super) fn clear(&self) -> Vec<(Principal, Round)> {
        let mut held = self.held.lock();
        held.used = Bounds::default();
        let rounds = held.rounds.drain().flat_map(|(who, own)| {
            let open = own.into_iter().filter(|round| !round.answered);
            open.map(move |round| (who.clone(), round))
        });
        rounds.collect()
    }
}

impl Bounds {
    fn of<'r>(rounds: impl IntoIterator<Item = &'r Round>) -> Self {
        rounds.into_iter().fold(Self::default(), |sum, round| {
            sum.and(Self {
                rounds: 1,
                bytes: round.size(),
            })
        })
    }

    fn and(self, more: Self) -> Self {
        Self {
            rounds: self.rounds.saturating_add(more.rounds),
            bytes: self.bytes.saturating_add(more.bytes),
        }
    }

    fn without(self, less: Self) -> Self {
        Self {
            rounds: self.rounds.saturating_sub(less.rounds),
            bytes: self.bytes.saturating_sub(less.bytes),
        }
    }

    fn is_within(self, most: Self) -> bool {
        self.rounds <= most.rounds && self.bytes <= most.bytes
    }
}

impl Round {
    /// The round when its client has come back, with these answers: nothing of it waits any more. As it was
    /// before, otherwise: whoever brings the answers once more is looked at once more.
    pub(super) fn come_back(mut self, reviewed: &Self) -> Self {
        for (open, reviewed) in self.questions.iter_mut().zip(&reviewed.questions) {
            open.slot = None;
            open.ended |= reviewed.kept.is_some();
        }
        self.answered = self.questions.iter().all(|open| open.ended);
        self
    }

    /// The round when its request has ended: nobody waits for anything of it.
    pub(super) fn over(mut self) -> Self {
        for open in &mut self.questions {
            (open.slot, open.ended) = (None, true);
        }
        self.answered = true;
        self
    }

    fn size(&self) -> usize {
        let questions = self.questions.iter().map(|open| {
            let kept = open.kept.as_ref().map_or(0, String::len);
            // The text, the form that was read out of it, and what of it the person is shown.
            let texts = open.key.len() + 4 * open.question.bytes().len() + kept;
            QUESTION + texts
        });
        let decided = self.decided.iter();
        let decided = decided.map(|(key, result)| QUESTION + key.len() + result.len());
        ROUND + questions.sum::<usize>() + decided.sum::<usize>()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.held.lock().used;
        f.debug_struct("Table")
            .field("used", &used)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::message;

    const MINUTE: Duration = Duration::from_mins(1);

    #[expect(clippy::disallowed_methods, reason = "a point to count from")]
    fn start() -> Instant {
        Instant::now()
    }

    fn table(rounds: usize, all: usize) -> Table {
        let bytes = 64 << 10;
        Table::with(Bounds { rounds, bytes }, Bounds { rounds: all, bytes })
    }

    fn place(state: u8, request: u8) -> Place {
        Place {
            server: ServerName("alpha".into()),
            state: [state; 32],
            request: [request; 32],
        }
    }

    fn round(place: Place, until: Instant) -> Round {
        let question = message::request("1", "elicitation/create", "{}");
        Round {
            place,
            until,
            questions: vec![Open {
                key: "k".to_owned(),
                question: Message::parse(&question).unwrap(),
                case: Case::default(),
                asked: until,
                kept: None,
                slot: None,
                ended: false,
            }],
            decided: Vec::new(),
            asked: 1,
            answered: false,
        }
    }

    fn who(name: &str) -> Principal {
        Principal::api_key(name)
    }

    #[test]
    fn a_round_is_found_by_its_own_principal_at_its_own_place_until_its_time_is_over() {
        let (table, now) = (table(8, 8), start());
        let kept = table.keep(&who("mira"), round(place(1, 1), now + MINUTE), now);
        assert!(kept.unwrap().is_empty());
        let find = |name, place, now| table.find(&who(name), &place, now).is_some();
        assert!(find("mira", place(1, 1), now));
        assert!(find("mira", place(1, 2), now), "the state says enough");
        assert!(!find("joris", place(1, 1), now));
        assert!(!find("mira", place(2, 1), now));
        let elsewhere = Place {
            server: ServerName("beta".into()),
            ..place(1, 1)
        };
        assert!(!find("mira", elsewhere, now));
        assert!(!find("mira", place(1, 1), now + MINUTE));
    }

    #[test]
    fn of_rounds_with_one_state_that_of_the_request_is_found_and_else_the_newest() {
        let (table, now) = (table(8, 8), start());
        for (request, asked) in [(1, 1), (2, 2), (3, 3), (1, 4)] {
            let round = Round {
                asked,
                ..round(place(1, request), now + MINUTE)
            };
            table.keep(&who("mira"), round, now).unwrap();
        }
        let found = |request| table.find(&who("mira"), &place(1, request), now).unwrap();
        assert_eq!([1, 2, 3, 9].map(|it| found(it).asked), [4, 2, 3, 4]);
    }

    #[test]
    fn who_is_at_the_bound_can_not_be_asked_more_and_others_can() {
        let (table, now) = (table(2, 3), start());
        let keep = |name, state, now: Instant| {
            let round = round(place(state, state), now + MINUTE);
            let kept = table.keep(&who(name), round, now);
            kept.map(|late| late.len())
        };
        assert_eq!(keep("mira", 1, now), Ok(0));
        assert_eq!(keep("mira", 2, now), Ok(0));
        assert_eq!(keep("mira", 3, now), Err(Full));
        assert_eq!(keep("mira", 2, now), Ok(0), "it was there already");
        assert_eq!(keep("joris", 1, now), Ok(0));
        assert_eq!(keep("joris", 2, now), Err(Full), "of all");
        assert!(table.find(&who("mira"), &place(1, 1), now).is_some());
        let later = now + MINUTE;
        assert_eq!(keep("mira", 3, later), Ok(2), "nobody comes back to those");
        assert_eq!(table.sweep(later).len(), 1, "that of another");
        assert_eq!(table.sweep(later + MINUTE).len(), 1);
        assert_eq!(table.held.lock().used, Bounds::default());
        assert!(table.held.lock().rounds.is_empty());
    }

    #[test]
    fn what_was_answered_makes_room() {
        let (table, now) = (table(2, 8), start());
        for state in [1, 2] {
            let round = Round {
                answered: state == 1,
                ..round(place(state, 0), now + MINUTE)
            };
            table.keep(&who("mira"), round, now).unwrap();
        }
        let third = table.keep(&who("mira"), round(place(3, 0), now + MINUTE), now);
        assert!(third.is_ok());
        let found = |state| table.find(&who("mira"), &place(state, 0), now).is_some();
        assert_eq!([1, 2, 3].map(found), [false, true, true]);
    }

    #[test]
    fn what_was_not_answered_is_given_to_who_forgets_it() {
        let (table, now) = (table(8, 8), start());
        for state in [1, 2, 3] {
            let round = Round {
                answered: state == 1,
                ..round(place(state, 0), now + MINUTE)
            };
            table.keep(&who("mira"), round, now).unwrap();
        }
        assert!(table.take(&who("joris"), &place(2, 0)).is_none());
        assert!(table.take(&who("mira"), &place(2, 0)).is_some());
        assert!(table.take(&who("mira"), &place(2, 0)).is_none());
        let left = table.clear();
        assert_eq!(left.len(), 1, "the answered one is no matter");
        assert_eq!(left[0].1.place, place(3, 0));
        assert_eq!(table.held.lock().used, Bounds::default());
    }

    #[test]
    fn bytes_count_too() {
        let (table, now) = (table(8, 8), start());
        let mut large = round(place(1, 1), now + MINUTE);
        large.decided = vec![("k".to_owned(), "x".repeat(64 << 10))];
        assert!(table.keep(&who("mira"), large, now).is_err());
        assert_eq!(table.held.lock().used, Bounds::default());
    }
}
