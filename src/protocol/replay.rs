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
pub(super) const MOST: usize = 16;

/// An address that a person has to visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Its key in `inputRequests`.
    pub key: String,
    /// Its parameters as a modern client takes them (JSON text).
    pub params: String,
    /// The id under which the server tells that the person is done.
    id: Option<String>,
    done: bool,
}

/// What the client's answers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The person opens every address.
    Given,
    /// Not one of them, or not all.
    Refused,
}

/// The machine.
#[derive(Debug)]
pub struct Replay {
    visits: Vec<Visit>,
    /// Since the person agreed; before, the client is away.
    held: Option<Held>,
}

/// The person agreed, and the client's request is held.
#[derive(Clone, Copy, Debug)]
struct Held {
    since: Instant,
    /// When the call is made again; none while it is.
    next: Option<Instant>,
    tries: usize,
}

impl Replay {
    /// A client is sent away with these addresses.
    pub fn new(visits: Vec<Visit>) -> Self {
        Self { visits, held: None }
    }

    /// When [`is_due`](Self::is_due) says yes.
    pub fn deadline(&self) -> Option<Instant> {
        self.held?.next
    }

    /// What the client's answers mean. From now on its request is held.
    ///
    /// # Errors
    /// When they don't fit. Everything is as it was.
    pub fn consent(
        &mut self,
        now: Instant,
        answers: &[(String, &str)],
    ) -> Result<Consent, Rejected> {
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
        self.held = Some(Held {
            since: now,
            next: Some(if self.is_done() { now } else { now + pause(0) }),
            tries: 0,
        });
        Ok(consent)
    }

    /// The server tells that the person is done at the address with this id.
    pub fn completed(&mut self, now: Instant, id: &str) {
        for visit in &mut self.visits {
            visit.done |= visit.id.as_deref() == Some(id);
        }
        let done = self.is_done();
        if let Some(Held {
            next: Some(next), ..
        }) = &mut self.held
            && done
        {
            *next = now;
        }
    }

    /// Whether it is time to make the call again. Then that is done.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let Some(held) = &mut self.held else {
            return false;
        };
        let due = held.next.is_some_and(|due| due <= now);
        if due {
            held.next = None;
            held.tries += 1;
        }
        due
    }

    /// The call was made again, and the server still wants these visited. False: the client has waited
    /// long enough and is to be asked anew.
    pub fn wants_again(&mut self, now: Instant, visits: Vec<Visit>) -> bool {
        self.visits = visits;
        let Some(held) = &mut self.held else {
            return false;
        };
        held.next = Some((held.since + pause(held.tries)).max(now));
        now.saturating_duration_since(held.since) < HOLD
    }

    /// Whether the person is done at every address.
    fn is_done(&self) -> bool {
        self.visits.iter().all(|visit| visit.done)
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
        done: false,
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
        let mut replay = Replay::new(visits(ERROR).unwrap());
        assert!(!replay.is_due(at(599)));
        assert_eq!(replay.consent(at(5), &both(YES, YES)), Ok(Consent::Given));
        for due in [8, 15, 30, 50, 65, 125, 185, 245] {
            assert_eq!(replay.deadline(), Some(at(due)));
            assert!(replay.is_due(at(due)));
            assert_eq!(replay.deadline(), None);
            assert!(replay.wants_again(at(due), visits(ERROR).unwrap()));
        }
        assert!(replay.is_due(at(305)));
        assert!(!replay.wants_again(at(305), visits(ERROR).unwrap()));
    }

    #[test]
    fn being_done_at_every_address_ends_the_pause() {
        let now = Instant::now();
        let mut replay = Replay::new(visits(ERROR).unwrap());
        replay.consent(now, &both(YES, YES)).unwrap();
        replay.completed(now, "1");
        replay.completed(now, "unknown");
        assert!(!replay.is_due(now));
        replay.completed(now, "2");
        assert!(replay.is_due(now));
    }

    #[test]
    fn who_is_done_before_saying_yes_waits_for_nothing() {
        let now = Instant::now();
        let mut replay = Replay::new(visits(ERROR).unwrap());
        replay.completed(now, "1");
        replay.completed(now, "2");
        assert!(!replay.is_due(now), "nobody agreed yet");
        replay.consent(now, &both(YES, YES)).unwrap();
        assert!(replay.is_due(now));
    }

    #[test]
    fn a_no_to_one_is_a_no() {
        let now = Instant::now();
        let mut replay = Replay::new(visits(ERROR).unwrap());
        for wrong in [&both(YES, "{}")[..], &both(YES, YES)[..1], &both(YES, "7")] {
            assert!(matches!(
                replay.consent(now, wrong),
                Err(Rejected::Answer(_))
            ));
            assert_eq!(replay.deadline(), None);
        }
        assert_eq!(
            replay.consent(now, &both(YES, r#"{"action":"decline"}"#)),
            Ok(Consent::Refused)
        );
    }
}
