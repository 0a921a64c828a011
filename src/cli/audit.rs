//! `contraflow audit verify FILE…`: is the audit log what the gateway wrote?
//!
//! Files are read in the given order; a file may start a chain or continue the one before it, so the
//! parts of a log that was moved away piece by piece are checked in one go. Exit code 0: every
//! chain is intact. 1: one is not, or a file can't be read; the line says which and where.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::telemetry::audit::chain::Link;
use crate::telemetry::audit::verify::{Broken, Intact, verify as verify_chain};

/// Checks the files and prints a line about each on standard output.
pub fn verify(paths: &[PathBuf]) -> ExitCode {
    match report(paths, &mut io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        // Whoever read our output is gone, and with it who would believe a success.
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}

/// True when all are intact. Errors are those of `out`.
fn report(paths: &[PathBuf], out: &mut impl Write) -> io::Result<bool> {
    let mut all_intact = true;
    let mut before: Option<Link> = None;
    for path in paths {
        let name = path.display();
        match check(path, before.as_ref()) {
            Ok(Ok(intact)) => {
                writeln!(out, "{name}: {}", Summary(&intact))?;
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
    Ok(all_intact)
}

fn check(path: &Path, before: Option<&Link>) -> io::Result<Result<Intact, Broken>> {
    verify_chain(
        BufReader::with_capacity(64 * 1024, File::open(path)?),
        before,
    )
}

struct Summary<'a>(&'a Intact);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Intact {
            records,
            first,
            last,
        } = self.0;
        let noun = if *records == 1 { "record" } else { "records" };
        write!(f, "{records} {noun}, chain intact")?;
        if let (Some(first), Some(last)) = (first, last) {
            write!(f, ", {first} to {}", last.time)?;
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
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = files
            .iter()
            .map(|(name, _)| folder.path().join(name))
            .collect();
        for (path, (_, content)) in paths.iter().zip(files) {
            std::fs::write(path, content).unwrap();
        }
        let mut out = vec![];
        let success = report(&paths, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        (
            text.replace(&format!("{}/", folder.path().display()), ""),
            success,
        )
    }

    #[test]
    fn an_intact_log_is_counted_and_dated() {
        let expected = "audit.jsonl: 1234 records, chain intact, \
            1970-01-01T00:00:00.000000Z to 1970-01-01T00:20:33.000000Z\n";
        assert_eq!(
            printed(&[("audit.jsonl", &lines(1234))]),
            (expected.to_owned(), true)
        );
    }

    #[test]
    fn one_broken_log_among_intact_ones_is_a_failure_and_all_are_told() {
        let mut broken = lines(3);
        broken[30] ^= 1;
        let (text, success) = printed(&[("a", b""), ("b", &broken), ("c", &lines(1))]);
        assert!(!success);
        let expected = "a: 0 records, chain intact\n\
            b: chain broken at line 1: it was changed: its hash does not fit its content\n\
            c: 1 record, chain intact, 1970-01-01T00:00:00.000000Z to 1970-01-01T00:00:00.000000Z\n";
        assert_eq!(text, expected);
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
        assert!(!report(&[missing], &mut out).unwrap());
        assert!(out.starts_with(b"/nowhere/audit.jsonl: No such file"));
    }
}
