//! The ids of the events that a client reads (2025-03-26 … 2025-11-25 basic/transports, "Resumability and
//! Redelivery"): which session, which of its streams, which event of that.
//!
//! # Invariants
//! - An id is unique in its session, and names one stream: who resumes with it gets what that stream
//!   carried, and nothing of another.
//! - The id of another session is none of ours, even where the rest is the same.

use std::fmt;

/// A stream of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// What opened it.
    pub kind: Kind,
    /// Which of the session's streams it is.
    pub number: u32,
}

/// What opened a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A POST with requests: it ends with their outcomes.
    Call,
    /// A GET.
    Standalone,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Call => 'c',
            Kind::Standalone => 's',
        };
        write!(f, "{kind}{}", self.number)
    }
}

/// The id of an event: `session` is a mark of the session that tells nothing about it.
pub fn write(session: &str, stream: Name, event: u64) -> String {
    format!("{session}-{stream}-{event}")
}

/// The stream and the event that an id of this session names.
pub fn read(session: &str, id: &str) -> Option<(Name, u64)> {
    let rest = id.strip_prefix(session)?.strip_prefix('-')?;
    let (stream, event) = rest.split_once('-')?;
    let mut letters = stream.chars();
    let kind = match letters.next()? {
        'c' => Kind::Call,
        's' => Kind::Standalone,
        _ => return None,
    };
    let number = number(letters.as_str())?;
    let name = Name {
        kind,
        number: number.try_into().ok()?,
    };
    Some((name, self::number(event)?))
}

/// A number as we write it: digits alone.
fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_nobody_gave_out_names_nothing() {
        for id in [
            "",
            "77",
            "ab",
            "ab-",
            "ab-c1",
            "ab-c1-",
            "ab-x1-1",
            "ab-c-1",
            "ab-c1-+1",
            "ab-c1--1",
            "ab-c4294967296-1",
            "ab-c1-99999999999999999999",
            "ac-c1-1",
            "abc1-1",
            "ab-ç1-1",
            "ab-c1-1-1",
        ] {
            assert_eq!(read("ab", id), None, "{id}");
        }
    }

    proptest! {
        #[test]
        fn an_id_names_its_event_in_its_session_alone(number: u32, event: u64, call: bool, other in "[0-9a-f]{8}") {
            let kind = if call { Kind::Call } else { Kind::Standalone };
            let name = Name { kind, number };
            let id = write("0a1b2c3d", name, event);
            prop_assert_eq!(read("0a1b2c3d", &id), Some((name, event)));
            prop_assume!(other != "0a1b2c3d");
            prop_assert_eq!(read(&other, &id), None);
        }

        #[test]
        fn any_text_is_read_without_a_panic(id in ".{0,40}") {
            let _none = read("ab", &id);
        }
    }
}
