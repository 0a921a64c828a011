//! Which era a server speaks: what its answer to a probe says, and how long that counts.
//!
//! The probe is `server/discover`, which every modern server has (2026-07-28 server/discover). A
//! belief is dated. A wrong "modern" fails loudly, a wrong "legacy" would work for ever with less
//! than there is; so a belief ends after a [`horizon`], or at once when something speaks against it.
//!
//! # Invariants
//! - Trouble is no evidence: neither 401, 403, 429 and 5xx nor silence change what is believed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::message::{Kind, Message};
use super::object::{elements, members, text};
use super::version::MODERN;

/// How a server keeps its conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// In sessions (until 2025-11-25).
    Legacy,
    /// Not at all (from 2026-07-28 on).
    Modern,
}

/// What the answer to a probe says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A modern server, and what it discovered (JSON text).
    Modern(Arc<str>),
    /// A modern server that does not take the probe.
    Unwilling,
    /// A legacy server.
    Legacy,
    /// It says nothing.
    Unclear,
}

/// What is known about a server's era.
#[derive(Clone, Debug)]
pub struct Knowledge {
    fixed: Option<Era>,
    held: Option<Held>,
}

#[derive(Clone, Debug)]
struct Held {
    era: Era,
    /// When the belief ends.
    due: Instant,
    discovered: Option<Arc<str>>,
    /// Until when what was discovered may be used.
    fresh: Instant,
}

/// How long a belief counts.
const HORIZON: Duration = Duration::from_hours(24);

/// How long an old belief is kept when a new probe says nothing.
const AGAIN: Duration = Duration::from_mins(1);

/// The longest that a server may let its discovery be kept.
const LONGEST: Duration = Duration::from_hours(24);

/// 24 hours, give or take a tenth, by `chance` from 0 to 255: so that not all servers are probed at once.
pub fn horizon(chance: u8) -> Duration {
    HORIZON.mul_f64(0.9 + 0.2 * f64::from(chance) / 255.0)
}

/// Reads the answer to a probe: the HTTP status, and the JSON-RPC response if there was one.
pub fn judge(status: u16, response: Option<&Message>) -> Verdict {
    match status {
        200..=299 | 400 | 404 | 405 | 406 | 409 | 410 | 415 | 422 => {}
        _ => return Verdict::Unclear,
    }
    let Some(response) = response.filter(|it| it.is_response()) else {
        // A client error without a word of this protocol is how old servers greet the unknown.
        return if status >= 400 {
            Verdict::Legacy
        } else {
            Verdict::Unclear
        };
    };
    if response.kind() == Kind::Error {
        let [code, data] = response
            .error()
            .and_then(|error| members(error, ["code", "data"]).ok())
            .unwrap_or_default();
        return match code {
            // It knows which versions there are, and ours is not among them.
            Some("-32022") if !speaks_modern(data, "supported") => Verdict::Legacy,
            Some("-32020" | "-32021" | "-32022") => Verdict::Unwilling,
            _ => Verdict::Legacy,
        };
    }
    match response.result() {
        Some(result) if speaks_modern(Some(result), "supportedVersions") => {
            Verdict::Modern(result.into())
        }
        // Some servers of both eras discover legacy versions only.
        _ => Verdict::Legacy,
    }
}

fn speaks_modern(object: Option<&str>, name: &str) -> bool {
    let versions = object
        .and_then(|object| members(object, [name]).ok())
        .and_then(|[versions]| elements(versions?, 100).ok())
        .unwrap_or_default();
    versions
        .into_iter()
        .filter_map(text)
        .any(|version| MODERN.contains(&&*version))
}

/// Whether an error response to `initialize` shows that its server is modern.
pub fn is_modern_refusal(response: &Message) -> bool {
    let code = response
        .error()
        .and_then(|error| members(error, ["code"]).ok());
    matches!(code, Some([Some("-32022")]))
}

impl Knowledge {
    /// Nothing, or what the operator says.
    pub fn new(fixed: Option<Era>) -> Self {
        Self { fixed, held: None }
    }

    /// The era, if it needs no probe.
    pub fn era(&self, now: Instant) -> Option<Era> {
        self.fixed
            .or_else(|| Some(self.held.as_ref().filter(|held| now < held.due)?.era))
    }

    /// What a modern server discovered, if that may still be used.
    pub fn discovered(&self, now: Instant) -> Option<Arc<str>> {
        let held = self.held.as_ref()?;
        held.discovered
            .clone()
            .filter(|_| now < held.fresh && now < held.due)
    }

    /// What was discovered last, however old: better than nothing when a probe says nothing.
    pub fn stale(&self) -> Option<Arc<str>> {
        self.held.as_ref()?.discovered.clone()
    }

    /// Takes the verdict of a probe, and says what era is believed in now; none: nothing is known.
    pub fn learn(&mut self, now: Instant, verdict: &Verdict, chance: u8) -> Option<Era> {
        let due = now + horizon(chance);
        let (era, discovered) = match verdict {
            Verdict::Modern(discovered) => (Era::Modern, Some(Arc::clone(discovered))),
            Verdict::Unwilling => (Era::Modern, None),
            Verdict::Legacy => (Era::Legacy, None),
            Verdict::Unclear => {
                let held = self.held.as_mut()?;
                held.due = held.due.max(now + AGAIN);
                return Some(self.fixed.unwrap_or(held.era));
            }
        };
        let fresh = now + discovered.as_deref().map_or(Duration::ZERO, time_to_live);
        self.held = Some(Held {
            era,
            due,
            discovered,
            fresh,
        });
        Some(self.fixed.unwrap_or(era))
    }

    /// Something speaks against what is believed: the next one to ask probes.
    pub fn doubt(&mut self) {
        self.held = None;
    }
}

/// How long a cacheable result (JSON text) may be kept; nothing or nonsense means not at all.
pub fn time_to_live(result: &str) -> Duration {
    let millis = members(result, ["ttlMs"])
        .ok()
        .and_then(|[ttl]| ttl?.parse::<u64>().ok());
    Duration::from_millis(millis.unwrap_or(0)).min(LONGEST)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may read the clock")]
mod tests {
    use super::*;

    fn response(body: &str) -> Option<Message> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,{body}}}"#);
        Message::parse(&text.into_bytes().into()).ok()
    }

    const DISCOVERED: &str = r#"{"supportedVersions":["2026-07-28"],"ttlMs":5000}"#;

    #[test]
    fn an_answer_to_a_probe_says_which_era() {
        let modern = || Verdict::Modern(DISCOVERED.into());
        let result = format!(r#""result":{DISCOVERED}"#);
        let old = r#""result":{"supportedVersions":["2025-11-25"]}"#;
        let error = |code: &str| format!(r#""error":{{"code":{code},"message":"m"}}"#);
        let versions = |list: &str| {
            format!(r#""error":{{"code":-32022,"message":"m","data":{{"supported":{list}}}}}"#)
        };
        let table = [
            (200, result, modern()),
            (200, old.to_owned(), Verdict::Legacy),
            (200, r#""result":{}"#.to_owned(), Verdict::Legacy),
            (200, error("-32601"), Verdict::Legacy),
            (200, error("-32000"), Verdict::Legacy),
            (404, error("-32601"), Verdict::Legacy),
            (404, error("-32001"), Verdict::Legacy),
            (400, error("-32000"), Verdict::Legacy),
            (400, String::new(), Verdict::Legacy),
            (404, String::new(), Verdict::Legacy),
            (405, String::new(), Verdict::Legacy),
            (400, error("-32020"), Verdict::Unwilling),
            (400, error("-32021"), Verdict::Unwilling),
            (400, versions(r#"["2026-07-28"]"#), Verdict::Unwilling),
            (400, versions(r#"["2025-11-25"]"#), Verdict::Legacy),
            (200, String::new(), Verdict::Unclear),
            (202, String::new(), Verdict::Unclear),
            (307, String::new(), Verdict::Unclear),
            (401, error("-32601"), Verdict::Unclear),
            (403, String::new(), Verdict::Unclear),
            (408, String::new(), Verdict::Unclear),
            (429, error("-32601"), Verdict::Unclear),
            (500, error("-32601"), Verdict::Unclear),
            (503, String::new(), Verdict::Unclear),
        ];
        for (status, body, expected) in table {
            let response = response(&body);
            assert_eq!(
                judge(status, response.as_ref()),
                expected,
                "{status} {body}"
            );
        }
    }

    #[test]
    fn f47_a_belief_ends_at_its_horizon_and_an_upgrade_is_seen() {
        let (start, mut knowledge) = (Instant::now(), Knowledge::new(None));
        assert_eq!(knowledge.era(start), None);
        assert_eq!(
            knowledge.learn(start, &Verdict::Legacy, 0),
            Some(Era::Legacy)
        );
        let nearly = start + Duration::from_mins(1295);
        assert_eq!(knowledge.era(nearly), Some(Era::Legacy));
        let due = start + horizon(0);
        assert_eq!(knowledge.era(due), None);
        knowledge.learn(due, &Verdict::Modern(DISCOVERED.into()), 255);
        assert_eq!(knowledge.era(due), Some(Era::Modern));
        assert_eq!(horizon(0), Duration::from_mins(1296));
        assert_eq!(horizon(255), Duration::from_mins(1584));
    }

    #[test]
    fn f45_what_says_nothing_changes_nothing() {
        let (now, mut knowledge) = (Instant::now(), Knowledge::new(None));
        assert_eq!(knowledge.learn(now, &Verdict::Unclear, 0), None);
        assert_eq!(knowledge.era(now), None);
        knowledge.learn(now, &Verdict::Legacy, 0);
        let late = now + horizon(0);
        assert_eq!(
            knowledge.learn(late, &Verdict::Unclear, 0),
            Some(Era::Legacy)
        );
        assert_eq!(knowledge.era(late), Some(Era::Legacy));
        assert_eq!(knowledge.era(late + AGAIN), None);
    }

    #[test]
    fn doubt_ends_a_belief_at_once() {
        let (now, mut knowledge) = (Instant::now(), Knowledge::new(None));
        knowledge.learn(now, &Verdict::Modern(DISCOVERED.into()), 0);
        knowledge.doubt();
        assert_eq!(
            (knowledge.era(now), knowledge.discovered(now)),
            (None, None)
        );
        let refusal = response(r#""error":{"code":-32022,"message":"m"}"#).unwrap();
        assert!(is_modern_refusal(&refusal));
    }

    #[test]
    fn what_was_discovered_is_kept_as_long_as_the_server_says() {
        let (now, mut knowledge) = (Instant::now(), Knowledge::new(None));
        knowledge.learn(now, &Verdict::Modern(DISCOVERED.into()), 0);
        let at = |seconds| now + Duration::from_secs(seconds);
        assert!(knowledge.discovered(at(4)).is_some());
        assert!(knowledge.discovered(at(5)).is_none());
        assert!(knowledge.stale().is_some());
        assert_eq!(time_to_live(r#"{"ttlMs":-1}"#), Duration::ZERO);
        assert_eq!(time_to_live("{}"), Duration::ZERO);
    }

    #[test]
    fn what_the_operator_says_needs_no_probe() {
        let now = Instant::now();
        for era in [Era::Legacy, Era::Modern] {
            let mut knowledge = Knowledge::new(Some(era));
            assert_eq!(knowledge.era(now), Some(era));
            assert_eq!(knowledge.learn(now, &Verdict::Legacy, 0), Some(era));
        }
    }
}
