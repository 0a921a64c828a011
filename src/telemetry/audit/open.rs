//! Opening the file: whose it is, where its chain ends, and what a crash left behind.
//!
//! A crash in the middle of a write leaves a last line without newline. If that line is whole, it
//! gets its newline; if it is torn, it is cut off and a gap is recorded. Everything else that does
//! not look like our log is left alone and is an error: it may be somebody's other file.
//!
//! # Invariants
//! - Only bytes after the last newline, behind a valid record or the beginning of a first one, are ever removed.
//! - One process at a time appends to a file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::AuditError;
use super::chain::{BadLine, Chain, LINE_MAX, Link, OPENING};

/// How far from the end the last record may be. A torn write is at most one batch of records.
const TAIL_MAX: u64 = 4 << 20;

/// A file that is ready to be appended to.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) chain: Chain,
    pub(super) regular: bool,
    pub(super) repair: Repair,
}

/// What the end of the file needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    Nothing,
    /// A newline has to be written first.
    Newline,
    /// This many bytes of a torn line were cut off.
    Cut(u64),
}

/// Opens or makes the file, alone, and finds the end of its chain.
pub(super) fn open(path: &Path) -> Result<Opened, AuditError> {
    let io = |source: io::Error| match path.parent() {
        Some(folder) if source.kind() == io::ErrorKind::NotFound => AuditError::Folder {
            folder: folder.to_owned(),
        },
        _ => AuditError::Io {
            path: path.to_owned(),
            source,
        },
    };
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        // A pipe or a device: there is nothing to read back, each start is a chain of its own.
        return Ok(Opened {
            file,
            chain: Chain::empty(),
            regular: false,
            repair: Repair::Nothing,
        });
    }
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(AuditError::InUse {
                path: path.to_owned(),
            });
        }
        Err(TryLockError::Error(error)) => {
            tracing::warn!(path = %path.display(), %error, "audit log can't be locked, see that one gateway alone writes it");
        }
    }
    let tail = read_tail(&mut file, metadata.len()).map_err(io)?;
    let (chain, repair) =
        end_of_chain(&tail, metadata.len()).map_err(|problem| AuditError::NotALog {
            path: path.to_owned(),
            problem,
        })?;
    if let Repair::Cut(bytes) = repair {
        file.set_len(metadata.len().saturating_sub(bytes))
            .map_err(io)?;
    }
    Ok(Opened {
        file,
        chain,
        regular: true,
        repair,
    })
}

fn read_tail(file: &mut File, len: u64) -> io::Result<Vec<u8>> {
    let wanted = len.min(TAIL_MAX);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(len - wanted))?;
    file.take(wanted).read_to_end(&mut tail)?;
    Ok(tail)
}

/// Where the chain ends in a file of which `tail` is the end, and what has to be repaired.
fn end_of_chain(tail: &[u8], len: u64) -> Result<(Chain, Repair), BadLine> {
    let (whole, rest) = match memchr::memrchr(b'\n', tail) {
        Some(newline) => tail.split_at(newline + 1),
        None => (b"".as_slice(), tail),
    };
    if let Ok(last) = Link::parse(rest) {
        return Ok((Chain::after(&last), Repair::Newline));
    }
    let repair = match u64::try_from(rest.len()) {
        Ok(0) | Err(_) => Repair::Nothing,
        Ok(torn) => Repair::Cut(torn),
    };
    if let Some(lines) = whole.strip_suffix(b"\n") {
        let start = memchr::memrchr(b'\n', lines).map_or(0, |newline| newline + 1);
        let last = Link::parse(lines.get(start..).unwrap_or_default())?;
        return Ok((Chain::after(&last), repair));
    }
    let is_first_record = rest.starts_with(OPENING) || OPENING.starts_with(rest);
    if len == 0 || (is_first_record && rest.len() < LINE_MAX) {
        return Ok((Chain::empty(), repair));
    }
    Err(BadLine::NotARecord)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::telemetry::audit::record::Record;

    fn log(records: usize) -> Vec<u8> {
        let (mut chain, mut out) = (Chain::empty(), vec![]);
        (0..records).for_each(|_| chain.append(&Record::call(UNIX_EPOCH), &mut out));
        out
    }

    fn end(bytes: &[u8]) -> Result<Repair, BadLine> {
        end_of_chain(bytes, bytes.len() as u64).map(|(_, repair)| repair)
    }

    #[test]
    fn wherever_a_write_was_torn_only_the_torn_line_goes() {
        let bytes = log(3);
        let lines: Vec<usize> = memchr::memchr_iter(b'\n', &bytes)
            .map(|at| at + 1)
            .collect();
        for cut in 0..=bytes.len() {
            let kept = lines
                .iter()
                .copied()
                .filter(|end| *end <= cut)
                .max()
                .unwrap_or(0);
            let expected = if kept == cut {
                Repair::Nothing
            } else if lines.contains(&(cut + 1)) {
                Repair::Newline
            } else {
                Repair::Cut((cut - kept) as u64)
            };
            assert_eq!(end(&bytes[..cut]), Ok(expected), "cut at {cut}");
        }
    }

    #[test]
    fn zeros_that_a_crash_of_the_machine_left_are_a_torn_line() {
        let mut bytes = log(2);
        bytes.extend([0; 4096]);
        assert_eq!(end(&bytes), Ok(Repair::Cut(4096)));
    }

    #[test]
    fn a_file_that_is_something_else_is_left_alone() {
        for other in [
            "hello",
            "hello\n",
            "{\"v\":1}\n",
            "{\"v\":1}",
            "\n",
            "a: 1\nb: 2",
        ] {
            assert_eq!(end(other.as_bytes()), Err(BadLine::NotARecord), "{other:?}");
        }
        let mut changed = log(2);
        let at = changed.len() - 100;
        changed[at] ^= 1;
        assert_eq!(end(&changed), Err(BadLine::Changed));
    }
}
