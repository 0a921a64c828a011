//! Reading an audit log back: is every line what it was, and is every line there?
//!
//! # Invariants
//! - One line is held at a time, and a line that is too long is not held at all.
//! - Of a broken log the first break is reported, with the line to look at.

use std::fmt;
use std::io::{self, BufRead, Read};

use super::chain::{BadLine, LINE_MAX, Link};

/// What an intact log contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intact {
    /// How many records.
    pub records: u64,
    /// The time of the first one.
    pub first: Option<String>,
    /// The last one, on which the chain goes on.
    pub last: Option<Link>,
    /// Whether the first one begins a chain, and doesn't continue that of the file before.
    pub begins: bool,
}

/// The place where the chain breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The line, from 1.
    pub line: u64,
    /// How.
    pub how: Break,
}

/// How a chain breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Break {
    /// The line itself is not what was written.
    Line(BadLine),
    /// The line is longer than any record.
    TooLong,
    /// The last line has no newline: a write that never ended.
    Torn,
    /// Records `from` to `to` are nowhere.
    Missing {
        /// The first one that is missing.
        from: u64,
        /// The last one that is missing.
        to: u64,
    },
    /// Record `found` stands where `expected` belongs.
    Reordered {
        /// The record that belongs here.
        expected: u64,
        /// The record that is here.
        found: u64,
        /// The line where the expected record is, when it comes later.
        at: Option<u64>,
    },
    /// The record has the right number but belongs to another past: the one before it was replaced.
    Replaced,
    /// The log starts with this record, and what came before it was not given.
    NotTheBeginning(u64),
}

/// Checks one file. `before` is the last record of the file before it, if it continues one. `seen` is
/// called with every record whose place in the chain is proved.
///
/// # Errors
/// The file can't be read. That its chain is broken is not an error but the answer.
pub fn verify(
    mut log: impl BufRead,
    before: Option<&Link>,
    mut seen: impl FnMut(&Link),
) -> io::Result<Result<Intact, Broken>> {
    let mut intact = Intact::default();
    let mut line = Vec::new();
    loop {
        let number = intact.records + 1;
        let how = match next(&mut log, &mut line)? {
            Next::End => return Ok(Ok(intact)),
            Next::TooLong => Break::TooLong,
            Next::Torn => Break::Torn,
            Next::Line => match Link::parse(&line) {
                Err(problem) => Break::Line(problem),
                Ok(found) => {
                    let last = intact.last.as_ref().or(before);
                    let begins = number == 1 && found.follows(None);
                    if found.follows(last) || begins {
                        seen(&found);
                        intact.begins |= begins;
                        intact.first.get_or_insert_with(|| found.time.clone());
                        intact.records = number;
                        intact.last = Some(found);
                        continue;
                    }
                    let expected = last.map(|last| last.seq.saturating_add(1));
                    classify(&mut log, &mut line, number, expected, found.seq)?
                }
            },
        };
        return Ok(Err(Broken { line: number, how }));
    }
}

/// Why record `found`, itself intact, is not the one that belongs in this line.
fn classify(
    log: &mut impl BufRead,
    line: &mut Vec<u8>,
    number: u64,
    expected: Option<u64>,
    found: u64,
) -> io::Result<Break> {
    let Some(expected) = expected else {
        return Ok(Break::NotTheBeginning(found));
    };
    if found == expected {
        return Ok(Break::Replaced);
    }
    if found < expected {
        return Ok(Break::Reordered {
            expected,
            found,
            at: None,
        });
    }
    // The rest of the file tells a record that moved from one that is gone.
    for at in number + 1.. {
        match next(log, line)? {
            Next::End | Next::Torn => break,
            Next::TooLong => {}
            Next::Line => {
                if Link::parse(line).is_ok_and(|link| link.seq == expected) {
                    return Ok(Break::Reordered {
                        expected,
                        found,
                        at: Some(at),
                    });
                }
            }
        }
    }
    Ok(Break::Missing {
        from: expected,
        to: found - 1,
    })
}

enum Next {
    /// A line, without its newline.
    Line,
    Torn,
    TooLong,
    End,
}

/// Reads the next line, and over one that is too long.
fn next(log: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Next> {
    line.clear();
    let mut too_long = false;
    loop {
        let limit = u64::try_from(LINE_MAX).unwrap_or(u64::MAX);
        log.by_ref().take(limit).read_until(b'\n', line)?;
        let ended = line.last() == Some(&b'\n');
        if !ended && line.len() == LINE_MAX {
            too_long = true;
            line.clear();
            continue;
        }
        return Ok(match (ended, too_long) {
            (_, true) => Next::TooLong,
            (true, false) => {
                line.pop();
                Next::Line
            }
            (false, false) if line.is_empty() => Next::End,
            (false, false) => Next::Torn,
        });
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chain broken at line {}: {}", self.line, self.how)
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(problem) => problem.fmt(f),
            Self::TooLong => write!(f, "it is longer than any audit record ({LINE_MAX} bytes)"),
            Self::Torn => f.write_str("it is torn: the last line does not end"),
            Self::Missing { from, to } if from == to => {
                write!(f, "record {from} is missing before it")
            }
            Self::Missing { from, to } => write!(f, "records {from} to {to} are missing before it"),
            Self::Reordered {
                expected,
                found,
                at: Some(at),
            } => {
                write!(
                    f,
                    "reordered: record {found} stands where {expected} belongs, which is in line {at}"
                )
            }
            Self::Reordered {
                expected,
                found,
                at: None,
            } => {
                write!(
                    f,
                    "reordered or repeated: record {found} stands where {expected} belongs"
                )
            }
            Self::Replaced => {
                f.write_str("it does not follow from the line before, which was replaced")
            }
            Self::NotTheBeginning(seq) => write!(
                f,
                "it is record {seq}, what came before is missing (name the earlier file first if there is one)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::telemetry::audit::chain::Chain;
    use crate::telemetry::audit::record::Record;

    /// A log of `count` lines, each with its newline.
    fn log(count: u64) -> Vec<Vec<u8>> {
        let mut chain = Chain::empty();
        (1..=count)
            .map(|second| {
                let mut line = vec![];
                chain.append(
                    &Record::call(UNIX_EPOCH + Duration::from_secs(second)),
                    &mut line,
                );
                line
            })
            .collect()
    }

    fn check(lines: &[Vec<u8>]) -> Result<u64, String> {
        let result = verify(lines.concat().as_slice(), None, |_| ()).unwrap();
        result
            .map(|intact| intact.records)
            .map_err(|broken| broken.to_string())
    }

    #[test]
    fn an_intact_log_is_counted_and_dated() {
        let intact = verify(log(9).concat().as_slice(), None, |_| ())
            .unwrap()
            .unwrap();
        assert_eq!(intact.records, 9);
        assert_eq!(intact.first.as_deref(), Some("1970-01-01T00:00:01.000000Z"));
        assert_eq!(intact.last.unwrap().time, "1970-01-01T00:00:09.000000Z");
        assert_eq!(check(&[]), Ok(0));
    }

    #[test]
    fn a_changed_line_is_named() {
        let mut lines = log(9);
        lines[4][40] ^= 1;
        let expected = "chain broken at line 5: it was changed: its hash does not fit its content";
        assert_eq!(check(&lines), Err(expected.into()));
    }

    #[test]
    fn a_line_that_was_written_anew_with_its_hash_shows_in_the_next_one() {
        let mut lines = log(9);
        let before = Link::parse(lines[3].strip_suffix(b"\n").unwrap()).unwrap();
        lines[4].clear();
        Chain::after(&before).append(&Record::refused(UNIX_EPOCH), &mut lines[4]);
        let expected =
            "chain broken at line 6: it does not follow from the line before, which was replaced";
        assert_eq!(check(&lines), Err(expected.into()));
    }

    #[test]
    fn missing_lines_are_counted() {
        let mut lines = log(9);
        lines.remove(4);
        assert_eq!(
            check(&lines),
            Err("chain broken at line 5: record 5 is missing before it".into())
        );
        lines.remove(4);
        assert_eq!(
            check(&lines),
            Err("chain broken at line 5: records 5 to 6 are missing before it".into())
        );
    }

    #[test]
    fn a_missing_beginning_is_no_beginning() {
        let lines = log(9);
        let text = check(&lines[2..]).unwrap_err();
        assert!(
            text.starts_with("chain broken at line 1: it is record 3, what came before"),
            "{text}"
        );
    }

    #[test]
    fn lines_that_changed_places_are_told_from_missing_ones() {
        let mut lines = log(9);
        lines.swap(2, 6);
        let expected = "chain broken at line 3: reordered: record 7 stands where 3 belongs, which is in line 7";
        assert_eq!(check(&lines), Err(expected.into()));
    }

    #[test]
    fn a_repeated_line_is_found() {
        let mut lines = log(9);
        lines.insert(5, lines[4].clone());
        let expected =
            "chain broken at line 6: reordered or repeated: record 5 stands where 6 belongs";
        assert_eq!(check(&lines), Err(expected.into()));
    }

    #[test]
    fn a_torn_tail_is_named() {
        let mut lines = log(9);
        lines[8].truncate(50);
        assert_eq!(
            check(&lines),
            Err("chain broken at line 9: it is torn: the last line does not end".into())
        );
    }

    #[test]
    fn a_foreign_or_empty_line_is_no_record() {
        for text in ["\n", "hello\n", "{}\n"] {
            let mut lines = log(9);
            lines.insert(1, text.as_bytes().to_vec());
            assert_eq!(
                check(&lines),
                Err("chain broken at line 2: it is not an audit record".into())
            );
        }
    }

    #[test]
    fn a_line_without_end_breaks_the_chain_and_is_not_held() {
        let endless = io::BufReader::new(io::repeat(b'x').take(64 << 20));
        let broken = verify(endless, None, |_| ()).unwrap().unwrap_err();
        assert_eq!(
            broken,
            Broken {
                line: 1,
                how: Break::TooLong
            }
        );
    }

    #[test]
    fn a_file_may_continue_the_one_before_it() {
        let lines = log(9);
        let first = verify(lines[..4].concat().as_slice(), None, |_| ())
            .unwrap()
            .unwrap();
        let rest = lines[4..].concat();
        assert_eq!(
            verify(rest.as_slice(), first.last.as_ref(), |_| ())
                .unwrap()
                .unwrap()
                .records,
            5
        );
        let missing = lines[5..].concat();
        let broken = verify(missing.as_slice(), first.last.as_ref(), |_| ())
            .unwrap()
            .unwrap_err();
        assert_eq!(broken.how, Break::Missing { from: 5, to: 5 });
    }
}
