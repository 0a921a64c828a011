//! A call whose server wants the person to visit some addresses first: the error -32042 of 2025-11-25
//! (client/elicitation, "URL Mode Elicitation for Sensitive Data"), which ends the server's request.
//!
//! The client is sent away with the addresses. It comes back as soon as the person agreed to open
//! them, long before they are done there; so the call is made again when the server says that they
//! are done, or after growing pauses, while the client's request is held open.
//!
//! # Invariants
//! - The call is made again only after a yes to every address, and only because the server said of
//!   the one before that it did not process it.
//! - A no ends it.

use std::time::{Duration, Instant};

use super::client_modern::Rejected;
use super::object::{edit, elements, is_object, members, text};

/// The code of the error.
pub const CODE: &str = "-32042";

/// When the call is made again, counted from the consent; then every minute.
const PAUSES: [u64; 5] = [3, 10, 25, 45, 60];

/// How long a request is held before the client is asked again.
const HOLD: Duration = Duration::from_mins(5);

/// The most addresses of one error.
const MOST: usize = 16;

/// An address that a person has to visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Its key in `inputRequests`.
    pub key: String,
    /// Its parameters as a modern client takes them (JSON text).
    pub params: String,
    /// The id under which the server tells that the person is done.
    id: Option<String>,
}

/// What the client's answers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The person opens every address.
    Given,
    /// Not one of them, or not all.
    Refused,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The call is made again.
    Again,
    /// The client has been away too long.
    Expired,
}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The client is away with the addresses.
    Away { until: Instant },
    /// The person agreed; the client's request is held.
    Held {
        since: Instant,
        next: Option<Instant>,
        tries: usize,
    },
}

/// The machine.
#[derive(Debug)]
pub struct Replay {
    visits: Vec<Visit>,
    round: u32,
    state: State,
}

impl Replay {
    /// A round that sends the client away with these addresses until `until`.
    pub fn new(visits: Vec<Visit>, round: u32, until: Instant) -> Self {
        Self {
            visits,
            round,
            state: State::Away { until },
        }
    }

    /// The addresses.
    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// Whether the client is away.
    pub fn is_away(&self) -> bool {
        matches!(self.state, State::Away { .. })
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Away { until } => Some(until),
            State::Held { next, .. } => next,
        }
    }

    /// Takes the client's answers to a round.
    ///
    /// # Errors
    /// When they don't fit. Everything is as it was.
    pub fn retry(
        &mut self,
        now: Instant,
        round: u32,
        answers: &[(String, &str)],
    ) -> Result<Consent, Rejected> {
        match self.state {
            State::Away { until } if until <= now => {
                return Err(Rejected::State(
                    "state_expired",
                    "the interaction has expired",
                ));
            }
            State::Away { .. } if round == self.round => {}
            State::Away { .. } | State::Held { .. } => {
                return Err(Rejected::State(
                    "state_consumed",
                    "this round has been answered",
                ));
            }
        }
        let mut consent = Consent::Given;
        for visit in &self.visits {
            let mut given = answers.iter().filter(|(key, _)| *key == visit.key);
            let action = match (given.next(), given.next()) {
                (Some((_, answer)), None) => action(answer),
                _ => None,
            };
            match action.as_deref() {
                Some("accept") => {}
                Some("decline" | "cancel") => consent = Consent::Refused,
                _ => {
                    let text = format!(
                        "the answer to {:?} must have the action accept, decline or cancel",
                        visit.key
                    );
                    return Err(Rejected::Answer(text));
                }
            }
        }
        let next = Some(now + pause(0));
        self.state = State::Held {
            since: now,
            next,
            tries: 0,
        };
        Ok(consent)
    }

    /// The server tells that the person is done at the address with this id.
    pub fn completed(&mut self, now: Instant, id: &str) {
        for visit in &mut self.visits {
            if visit.id.as_deref() == Some(id) {
                visit.id = None;
            }
        }
        if let State::Held {
            next: Some(next), ..
        } = &mut self.state
            && self.visits.iter().all(|visit| visit.id.is_none())
        {
            *next = now;
        }
    }

    /// Something is due.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Due> {
        match &mut self.state {
            State::Away { until } if *until <= now => Some(Due::Expired),
            State::Held { next, tries, .. } if next.is_some_and(|due| due <= now) => {
                *next = None;
                *tries += 1;
                Some(Due::Again)
            }
            State::Away { .. } | State::Held { .. } => None,
        }
    }

    /// The call was made again, and the server still wants these visited. True: the client has waited
    /// long enough and is to be asked anew.
    pub fn still(&mut self, now: Instant, visits: Vec<Visit>) -> bool {
        let State::Held { since, next, tries } = &mut self.state else {
            return true;
        };
        self.visits = visits;
        if now.saturating_duration_since(*since) >= HOLD {
            return true;
        }
        *next = Some((*since + pause(*tries)).max(now));
        false
    }
}

/// The addresses in the error object of a response; `None` when it is another error, or names none.
pub fn visits(error: &str) -> Option<Vec<Visit>> {
    let [code, data] = members(error, ["code", "data"]).ok()?;
    if code != Some(CODE) {
        return None;
    }
    let [list] = members(data?, ["elicitations"]).ok()?;
    let list = elements(list?, MOST).ok()?;
    let visits: Vec<_> = list
        .iter()
        .enumerate()
        .filter_map(|(at, raw)| visit(at + 1, raw))
        .collect();
    (!visits.is_empty() && visits.len() == list.len()).then_some(visits)
}

fn visit(number: usize, raw: &str) -> Option<Visit> {
    let [mode, url, id] = members(raw, ["mode", "url", "elicitationId"]).ok()?;
    if text(mode?)? != "url" || url.and_then(text).is_none() {
        return None;
    }
    Some(Visit {
        key: format!("u{number}"),
        params: edit(raw, &[("elicitationId", None)]).ok()?.into_owned(),
        id: id.and_then(text).map(std::borrow::Cow::into_owned),
    })
}

fn action(answer: &str) -> Option<String> {
    let [action] = is_object(answer)
        .then(|| members(answer, ["action"]).ok())
        .flatten()?;
    action.and_then(text).map(std::borrow::Cow::into_owned)
}

/// From the consent to the try after so many.
fn pause(tries: usize) -> Duration {
    let last = PAUSES.last().copied().unwrap_or_default();
    let more = u64::try_from(tries.saturating_sub(PAUSES.len() - 1)).unwrap_or(u64::MAX);
    let seconds = PAUSES
        .get(tries)
        .copied()
        .unwrap_or_else(|| last.saturating_add(more.saturating_mul(60)));
    Duration::from_secs(seconds)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may read the clock")]
mod tests {
    use super::*;

    const ERROR: &str = r#"{"code":-32042,"message":"m","data":{"elicitations":[
        {"mode":"url","url":"https://a/?x=%20","message":"A","elicitationId":"1"},
        {"mode":"url","url":"https://b","message":"B","elicitationId":"2"}]}}"#;
    const YES: &str = r#"{"action":"accept"}"#;

    fn both<'a>(first: &'a str, second: &'a str) -> [(String, &'a str); 2] {
        [("u1".into(), first), ("u2".into(), second)]
    }

    #[test]
    fn the_error_names_the_addresses() {
        let found = visits(ERROR).unwrap();
        assert_eq!(found[0].key, "u1");
        assert_eq!(
            found[0].params,
            r#"{"mode":"url","url":"https://a/?x=%20","message":"A"}"#
        );
        for other in [
            r#"{"code":-32603,"message":"m"}"#,
            r#"{"code":-32042,"message":"m"}"#,
            r#"{"code":-32042,"data":{"elicitations":[]}}"#,
            r#"{"code":-32042,"data":{"elicitations":[{"mode":"form"}]}}"#,
        ] {
            assert_eq!(visits(other), None, "{other}");
        }
    }

    #[test]
    fn the_call_is_made_again_after_growing_pauses_and_then_the_client_is_asked_anew() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut replay = Replay::new(visits(ERROR).unwrap(), 1, at(600));
        assert_eq!(replay.handle_timeout(at(599)), None);
        assert_eq!(replay.retry(at(5), 1, &both(YES, YES)), Ok(Consent::Given));
        for due in [8, 15, 30, 50, 65, 125, 185, 245] {
            assert_eq!(replay.deadline(), Some(at(due)));
            assert_eq!(replay.handle_timeout(at(due)), Some(Due::Again));
            assert_eq!(replay.deadline(), None);
            assert!(!replay.still(at(due), visits(ERROR).unwrap()));
        }
        assert_eq!(replay.handle_timeout(at(305)), Some(Due::Again));
        assert!(replay.still(at(305), visits(ERROR).unwrap()));
    }

    #[test]
    fn being_done_at_every_address_ends_the_pause() {
        let now = Instant::now();
        let mut replay = Replay::new(visits(ERROR).unwrap(), 1, now + HOLD);
        replay.retry(now, 1, &both(YES, YES)).unwrap();
        replay.completed(now, "1");
        replay.completed(now, "unknown");
        assert_eq!(replay.handle_timeout(now), None);
        replay.completed(now, "2");
        assert_eq!(replay.handle_timeout(now), Some(Due::Again));
    }

    #[test]
    fn a_no_to_one_is_a_no_and_a_round_is_answered_once() {
        let now = Instant::now();
        let mut replay = Replay::new(visits(ERROR).unwrap(), 4, now + HOLD);
        for wrong in [&both(YES, "{}")[..], &both(YES, YES)[..1], &both(YES, "7")] {
            assert!(matches!(
                replay.retry(now, 4, wrong),
                Err(Rejected::Answer(_))
            ));
        }
        assert!(matches!(
            replay.retry(now, 3, &both(YES, YES)),
            Err(Rejected::State("state_consumed", _))
        ));
        assert_eq!(
            replay.retry(now, 4, &both(YES, r#"{"action":"decline"}"#)),
            Ok(Consent::Refused)
        );
        assert!(matches!(
            replay.retry(now, 4, &both(YES, YES)),
            Err(Rejected::State("state_consumed", _))
        ));
    }

    #[test]
    fn who_comes_too_late_is_told() {
        let now = Instant::now();
        let mut replay = Replay::new(visits(ERROR).unwrap(), 1, now);
        assert!(matches!(
            replay.retry(now, 1, &both(YES, YES)),
            Err(Rejected::State("state_expired", _))
        ));
        assert_eq!(replay.handle_timeout(now), Some(Due::Expired));
    }
}
