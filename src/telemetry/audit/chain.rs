//! The chain: how a line of the audit log proves that the lines before it are what they were.
//!
//! A line is one JSON object. Its last member is `hash`: the SHA-256, in hexadecimal, of the line
//! without that member. The member before it is `prev`: the `hash` of the line before, 64 zeros in
//! the first line. `seq` counts from 1. So a changed, missing, added or moved line shows; only a cut
//! at the very end, or a chain that is written anew from some line on, needs a copy of a later
//! hash kept elsewhere to show.
//!
//! # Invariants
//! - Pure: bytes in, bytes out.
//! - What [`Chain::append`] writes, [`Link::parse`] takes, and it is at most [`LINE_MAX`] long.
//! - A line has no character that a terminal or a line-wise reader could take for something else
//!   ([`super::letters`]).

use aws_lc_rs::digest;
use serde::Deserialize;

use super::letters::{Calendar, hexadecimal, number};
use super::record::Record;

/// Bytes of one line, its newline included. The longest possible record is shorter.
pub const LINE_MAX: usize = 128 * 1024;

/// The version of the format, `v` in each line.
const VERSION: u32 = 1;

/// What every line begins with.
pub(super) const OPENING: &[u8] = br#"{"v":1,"seq":"#;

const BEFORE_PREV: &[u8] = br#","prev":""#;
const AFTER_PREV: &[u8] = br#""}"#;
const BEFORE_HASH: &[u8] = br#","hash":""#;
const AFTER_HASH: &[u8] = br#""}"#;
const HEX: usize = 64;

/// A SHA-256 in lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; HEX]);

impl Hash {
    /// What stands in `prev` of the first line.
    const ZERO: Self = Self([b'0'; HEX]);

    fn of(bytes: &[u8]) -> Self {
        Self::spelled(&digest::digest(&digest::SHA256, bytes))
    }

    fn of_both(parts: [&[u8]; 2]) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in parts {
            context.update(part);
        }
        Self::spelled(&context.finish())
    }

    fn spelled(digest: &digest::Digest) -> Self {
        let mut hex = [0; HEX];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(digest.as_ref()) {
            pair.copy_from_slice(&[hexadecimal(byte >> 4), hexadecimal(byte & 15)]);
        }
        Self(hex)
    }

    /// The hash as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// 64 hexadecimal digits, as `hash` of a line and `audit verify` show them.
impl std::str::FromStr for Hash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let hex: [u8; HEX] = text.as_bytes().try_into().map_err(|_| NotAHash)?;
        if hex.iter().all(u8::is_ascii_hexdigit) {
            Ok(Self(hex.map(|digit| digit.to_ascii_lowercase())))
        } else {
            Err(NotAHash)
        }
    }
}

/// A text is no hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 64 hexadecimal digits")]
pub struct NotAHash;

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The end of a chain, to which the next record is added.
#[derive(Clone, Debug)]
pub struct Chain {
    seq: u64,
    hash: Hash,
    calendar: Calendar,
}

impl Chain {
    /// A chain without a record.
    pub fn empty() -> Self {
        Self {
            seq: 0,
            hash: Hash::ZERO,
            calendar: Calendar::new(),
        }
    }

    /// The chain whose last line is this one.
    pub fn after(last: &Link) -> Self {
        Self {
            seq: last.seq,
            hash: last.hash,
            calendar: Calendar::new(),
        }
    }

    /// Adds a record: writes its line, with newline, to the end of `out`.
    pub fn append(&mut self, record: &Record, out: &mut Vec<u8>) {
        let start = out.len();
        self.seq += 1;
        out.extend_from_slice(OPENING);
        number(self.seq, out);
        out.push(b',');
        record.spell(&mut self.calendar, out);
        out.extend_from_slice(BEFORE_PREV);
        out.extend_from_slice(&self.hash.0);
        out.extend_from_slice(AFTER_PREV);
        self.hash = Hash::of(out.get(start..).unwrap_or_default());
        // The hash goes where the brace is, behind which it was made.
        out.pop();
        out.extend_from_slice(BEFORE_HASH);
        out.extend_from_slice(&self.hash.0);
        out.extend_from_slice(AFTER_HASH);
        out.push(b'\n');
    }
}

/// What the chain needs of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub seq: u64,
    /// When it was recorded, as it is written.
    pub time: String,
    prev: Hash,
    hash: Hash,
}

/// Why a line is no link of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// It does not look like a line of an audit log at all.
    #[error("it is not an audit record")]
    NotARecord,
    /// Its content is not what its hash was made of.
    #[error("it was changed: its hash does not fit its content")]
    Changed,
}

impl Link {
    /// Reads a line, without its newline, and checks it against its own hash.
    pub fn parse(line: &[u8]) -> Result<Self, BadLine> {
        #[derive(Deserialize)]
        struct Head<'a> {
            v: u32,
            seq: u64,
            time: &'a str,
            prev: &'a str,
        }
        let (body, hash) = split(line).ok_or(BadLine::NotARecord)?;
        if Hash::of_both([body, b"}"]) != hash {
            return Err(BadLine::Changed);
        }
        let head: Head<'_> = serde_json::from_slice(line).map_err(|_| BadLine::NotARecord)?;
        let prev = head
            .prev
            .as_bytes()
            .try_into()
            .map_err(|_| BadLine::NotARecord)?;
        if head.v != VERSION {
            return Err(BadLine::NotARecord);
        }
        Ok(Self {
            seq: head.seq,
            time: head.time.to_owned(),
            prev: Hash(prev),
            hash,
        })
    }

    /// Whether this line is the one that comes after `before`, or the first one of a chain.
    pub fn follows(&self, before: Option<&Self>) -> bool {
        let (seq, hash) = before.map_or((0, Hash::ZERO), |before| (before.seq, before.hash));
        seq.checked_add(1) == Some(self.seq) && self.prev == hash
    }

    /// The line's hash. Kept elsewhere it proves later that the log was not cut or written anew.
    pub fn hash(&self) -> &Hash {
        &self.hash
    }
}

/// A line as what its hash is made of, but for the closing brace, and the hash.
fn split(line: &[u8]) -> Option<(&[u8], Hash)> {
    let rest = line.strip_suffix(AFTER_HASH)?;
    let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(HEX)?)?;
    Some((rest.strip_suffix(BEFORE_HASH)?, Hash(hash.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;

    use super::*;
    use crate::auth::Principal;
    use crate::config::ServerName;
    use crate::telemetry::audit::record::{Action, NAMES_MAX, Outcome, Question, STEPS_MAX};
    use crate::telemetry::audit::text::TEXT_MAX;

    fn lines(records: &[Record]) -> Vec<Vec<u8>> {
        let (mut chain, mut out) = (Chain::empty(), vec![]);
        for record in records {
            chain.append(record, &mut out);
        }
        assert_eq!(out.pop(), Some(b'\n'));
        out.split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    }

    fn call(target: &str) -> Record {
        Record::call(UNIX_EPOCH + Duration::from_secs(1)).target(target)
    }

    #[test]
    fn a_line_ends_with_the_hash_of_all_that_is_before_it() {
        let lines = lines(&[call("book"), call("cancel")]);
        let first = String::from_utf8(lines[0].clone()).unwrap();
        let zeros = "0".repeat(64);
        let body = format!(
            r#"{{"v":1,"seq":1,"time":"1970-01-01T00:00:01.000000Z","type":"call","target":"book","prev":"{zeros}""#
        );
        let hash = Hash::of_both([body.as_bytes(), b"}"]);
        let hash = hash.as_str();
        assert_eq!(first, format!(r#"{body},"hash":"{hash}"}}"#));

        let second = Link::parse(&lines[1]).unwrap();
        assert_eq!((second.seq, second.prev.as_str()), (2, hash));
        assert!(second.follows(Some(&Link::parse(&lines[0]).unwrap())));
        assert!(!second.follows(None));
    }

    #[test]
    fn the_hash_is_sha_256() {
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hash::of(b"abc").as_str(), expected);
        assert_eq!(Hash::of_both([b"a", b"bc"]).as_str(), expected);
    }

    #[test]
    fn a_chain_goes_on_after_its_last_line() {
        let lines = lines(&[call("book"), call("cancel")]);
        let mut out = vec![];
        Chain::after(&Link::parse(&lines[0]).unwrap()).append(&call("cancel"), &mut out);
        assert_eq!(out.strip_suffix(b"\n"), Some(lines[1].as_slice()));
    }

    #[test]
    fn no_single_bit_of_a_line_can_change_unseen() {
        let line = lines(&[call("book")]).remove(0);
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut changed = line.clone();
                changed[at] ^= 1 << bit;
                assert!(Link::parse(&changed).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn what_is_not_a_record_is_told_from_a_changed_one() {
        let line = lines(&[call("book")]).remove(0);
        let text = String::from_utf8(line).unwrap();
        let changed = text.replace("book", "cook");
        assert_eq!(Link::parse(changed.as_bytes()), Err(BadLine::Changed));
        for other in ["", "{}", "hello", r#"{"a":1}"#, text.split_at(100).0] {
            assert_eq!(
                Link::parse(other.as_bytes()),
                Err(BadLine::NotARecord),
                "{other}"
            );
        }
    }

    #[test]
    fn a_good_hash_over_something_else_is_no_record() {
        for body in [r#"{"v":2,"seq":1,"time":"t","prev":"00""#, "{", r#"{"v":1"#] {
            let hash = Hash::of_both([body.as_bytes(), b"}"]);
            let line = format!(r#"{body},"hash":"{}"}}"#, hash.as_str());
            assert_eq!(
                Link::parse(line.as_bytes()),
                Err(BadLine::NotARecord),
                "{body}"
            );
        }
    }

    #[test]
    fn text_that_plays_tricks_stays_on_its_line_and_reads_back_as_it_was() {
        let text = "a\r\n{\"type\":\"fake\"}\u{1b}[2J\u{7f}\u{85}\u{2028}\u{202e}\u{e0041}é";
        let line = lines(&[call(text)]).remove(0);
        let written = std::str::from_utf8(&line).unwrap();
        assert!(
            written
                .chars()
                .all(|letter| (' '..='~').contains(&letter) || letter == 'é'),
            "{written}"
        );
        let json: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(json["target"], text);
        assert_eq!(json["type"], "call");
        assert!(Link::parse(&line).is_ok());
    }

    #[test]
    fn the_longest_record_fits_into_a_line() {
        let long = "\u{1}".repeat(1000);
        let names = vec![long.as_str(); NAMES_MAX + 1];
        // A control is what JSON makes longest; the other words are longer than any of the gateway.
        let word = "a_word_that_is_longer_than_all_of_them";
        let steps = vec![(word, Some(long.as_str()), word); STEPS_MAX + 1];
        let host = format!("http://{}", "h.".repeat(TEXT_MAX));
        let record = call(&long)
            .principal(&Principal::token(&long, &long, Some(&long)))
            .server(&ServerName("s".repeat(64).into()))
            .session(&long)
            .request(&long)
            .method(&long)
            .question(Question::new(&long, &long).url(&host).form(names))
            .policy(steps)
            .decided(word)
            .action(Action::Decline)
            .outcome(Outcome::Cancelled)
            .reason(word)
            .code(i64::MIN)
            .status(u16::MAX)
            .duration(Duration::MAX)
            .waited(Duration::MAX)
            .bytes(u64::MAX)
            .count(u64::MAX);
        let line = lines(&[record]).remove(0);
        assert!(line.len() < LINE_MAX, "{}", line.len());
        for part in ["host", "fields", "policy", "decided_by", "count"] {
            let part = format!("\"{part}\":");
            assert!(
                line.windows(part.len()).any(|at| at == part.as_bytes()),
                "{part}"
            );
        }
        assert!(Link::parse(&line).is_ok());
    }

    proptest! {
        #[test]
        fn whatever_the_texts_are_each_record_is_one_valid_line(texts in prop::collection::vec(any::<String>(), 1..6)) {
            let records: Vec<Record> = texts.iter().map(|text| call(text).method(text)).collect();
            let lines = lines(&records);
            prop_assert_eq!(lines.len(), texts.len());
            let mut before = None;
            for line in &lines {
                prop_assert!(line.starts_with(OPENING));
                let link = Link::parse(line).unwrap();
                prop_assert!(link.follows(before.as_ref()));
                before = Some(link);
            }
        }
    }
}
