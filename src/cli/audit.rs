//! `contraflow audit verify FILE…`: is the audit log what the gateway wrote?
//!
//! Files are read in the given order; a file may start a chain or continue the one before it, so the
//! parts of a log that was moved away piece by piece are checked in one go. Exit code 0: every
//! chain is intact. 1: one is not, is empty, or a file can't be read; the line says which and where.
//!
//! A log that was cut at its end is an intact log that is shorter. So each line ends with the newest
//! hash: whoever keeps it elsewhere can ask later, with `--newest`, whether it is still there.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::telemetry::audit::chain::{Hash, Link};
use crate::telemetry::audit::verify::{Broken, Intact, verify as verify_chain};

/// Checks the files and prints a line about each on standard output. `newest` is a hash that one of
/// their records must have.
pub fn verify(paths: &[PathBuf], newest: Option<&Hash>) -> ExitCode {
    match report(paths, newest, &mut io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        // Whoever read our output is gone, and with it who would believe a success.
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}

/// True when all are intact, and `newest` is in one. Errors are those of `out`.
fn report(paths: &[PathBuf], newest: Option<&Hash>, out: &mut impl Write) -> io::Result<bool> {
    let mut all_intact = true;
    let mut found = false;
    let mut before: Option<Link> = None;
    for path in paths {
        let name = path.display();
        let seen = |link: &Link| found |= Some(link.hash()) == newest;
        match check(path, before.as_ref(), seen) {
            Ok(Ok(intact)) => {
                let summary = Summary {
                    intact: &intact,
                    anew: intact.begins && before.is_some(),
                };
                writeln!(out, "{name}: {summary}")?;
                all_intact &= intact.records > 0;
                before = intact.last.or(before);
            }
            Ok(Err(broken)) => {
                writeln!(out, "{name}: {broken}")?;
                (all_intact, before) = (false, None);
            }
            Err(error) => {
                writeln!(out, "{name}: {error}")?;
                (all_intact, before) = (false, None);
            }
        }
    }
    if let Some(newest) = newest.filter(|_| !found) {
        writeln!(
            out,
            "no record has the hash {newest}: the end was cut, or it is of another log"
        )?;
        return Ok(false);
    }
    Ok(all_intact)
}

fn check(
    path: &Path,
    before: Option<&Link>,
    seen: impl FnMut(&Link),
) -> io::Result<Result<Intact, Broken>> {
    verify_chain(
        BufReader::with_capacity(64 * 1024, File::open(path)?),
        before,
        seen,
    )
}

struct Summary<'a> {
    intact: &'a Intact,
    /// Whether it begins a chain although there was a file before it.
    anew: bool,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Intact {
            records,
            first,
            last,
            begins: _,
        } = self.intact;
        let (Some(first), Some(last)) = (first, last) else {
            return f.write_str("no records");
        };
        let noun = if *records == 1 { "record" } else { "records" };
        write!(
            f,
            "{records} {noun}, chain intact, {first} to {}, newest hash {}",
            last.time,
            last.hash()
        )?;
        if self.anew {
            f.write_str("; begins a new chain, so it doesn't prove the end of the file before it")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::telemetry::audit::chain::Chain;
    use crate::telemetry::audit::record::Record;

    fn lines(count: u64) -> Vec<u8> {
        let (mut chain, mut out) = (Chain::empty(), vec![]);
        for second in 0..count {
            chain.append(
                &Record::call(UNIX_EPOCH + Duration::from_secs(second)),
                &mut out,
            );
        }
        out
    }

    /// What is printed about files with these contents, without their folder, and whether it is a success.
    fn printed(files: &[(&str, &[u8])]) -> (String, bool) {
        printed_for(files, None)
    }

    fn printed_for(files: &[(&str, &[u8])], newest: Option<&Hash>) -> (String, bool) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = files
            .iter()
            .map(|(name, _)| folder.path().join(name))
            .collect();
        for (path, (_, content)) in paths.iter().zip(files) {
            std::fs::write(path, content).unwrap();
        }
        let mut out = vec![];
        let success = report(&paths, newest, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        (
            text.replace(&format!("{}/", folder.path().display()), ""),
            success,
        )
    }

    #[test]
    fn an_intact_log_is_counted_and_dated() {
        let log = lines(1234);
        let expected = format!(
            "audit.jsonl: 1234 records, chain intact, 1970-01-01T00:00:00.000000Z to \
             1970-01-01T00:20:33.000000Z, newest hash {}\n",
            newest(&log)
        );
        assert_eq!(printed(&[("audit.jsonl", &log)]), (expected, true));
    }

    /// The hash of the last line.
    fn newest(log: &[u8]) -> Hash {
        let line = log.strip_suffix(b"\n").unwrap();
        let line = line.rsplit(|byte| *byte == b'\n').next().unwrap();
        *Link::parse(line).unwrap().hash()
    }

    #[test]
    fn an_empty_log_proves_nothing() {
        assert_eq!(
            printed(&[("a", b"")]),
            ("a: no records\n".to_owned(), false)
        );
    }

    #[test]
    fn a_cut_end_shows_to_whoever_kept_the_newest_hash() {
        let log = lines(4);
        let kept = newest(&log);
        assert!(printed_for(&[("a", &log)], Some(&kept)).1);
        // A longer log still has it.
        assert!(printed_for(&[("a", &lines(9))], Some(&kept)).1);
        let (text, success) = printed_for(&[("a", &lines(3))], Some(&kept));
        assert!(!success);
        let expected =
            format!("no record has the hash {kept}: the end was cut, or it is of another log\n");
        assert!(
            text.starts_with("a: 3 records, chain intact") && text.ends_with(&expected),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_begins_a_new_chain_says_so() {
        let (text, success) = printed(&[("1", &lines(3)), ("2", &lines(1))]);
        assert!(success);
        let said: Vec<_> = text
            .lines()
            .map(|line| line.contains("begins a new chain"))
            .collect();
        assert_eq!(said, [false, true], "{text}");
    }

    #[test]
    fn one_broken_log_among_intact_ones_is_a_failure_and_all_are_told() {
        let mut broken = lines(3);
        broken[30] ^= 1;
        let (text, success) = printed(&[("a", &lines(2)), ("b", &broken), ("c", &lines(1))]);
        assert!(!success);
        let said: Vec<&str> = text.lines().collect();
        assert!(
            said[0].starts_with("a: 2 records, chain intact, "),
            "{text}"
        );
        assert_eq!(
            said[1],
            "b: chain broken at line 1: it was changed: its hash does not fit its content"
        );
        assert!(said[2].starts_with("c: 1 record, chain intact, "), "{text}");
    }

    #[test]
    fn a_log_in_pieces_is_one_chain_in_the_right_order_only() {
        let all = lines(4);
        let cut = memchr::memchr_iter(b'\n', &all).nth(1).unwrap() + 1;
        let (first, second) = all.split_at(cut);
        assert!(printed(&[("1", first), ("2", second)]).1);
        let (text, success) = printed(&[("2", second), ("1", first)]);
        assert!(!success);
        assert!(
            text.starts_with("2: chain broken at line 1: it is record 3, "),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_failure() {
        let (mut out, missing) = (vec![], PathBuf::from("/nowhere/audit.jsonl"));
        assert!(!report(&[missing], None, &mut out).unwrap());
        assert!(out.starts_with(b"/nowhere/audit.jsonl: No such file"));
    }
}
