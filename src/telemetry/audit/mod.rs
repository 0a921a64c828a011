//! The audit log: every decision about a message, in a file that shows when it was tampered with.
//!
//! Those who write hold an [`Audit`], a cheap handle. A call reserves a [`Slot`] before it starts, so
//! that what happens is never unrecorded because the disk filled up in between; what can't be
//! refused any more is written with [`Audit::write`]. One thread stores the records as JSON Lines
//! ([`record`] says what is in them, [`chain`] how they are linked).
//!
//! # Invariants
//! - Memory is bounded; what happens at the bound is `when_full`'s decision.
//! - Nobody but the thread waits for the disk, unless `when_full` is `block` and the queue is full.
//! - After [`Audit::close`] all that was written before it is in the file, or an error is logged.

pub mod chain;
mod letters;
mod line;
mod open;
mod pace;
mod queue;
pub mod record;
pub mod text;
pub mod verify;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{SemaphorePermit, watch};

use crate::auth::Principal;
use crate::config::{AuditLog, WhenFull};
use open::Repair;
use pace::{Note, Pace};
use queue::Queue;
use writer::Writer;

pub use record::{Action, Outcome, Question, Record};

/// How long [`Audit::close`] waits for the disk.
const CLOSE: Duration = Duration::from_secs(5);

/// Where to tell what happened. Clones share one file.
#[derive(Clone, Debug)]
pub struct Audit(Option<Arc<Log>>);

#[derive(Debug)]
struct Log {
    queue: Arc<Queue>,
    when_full: WhenFull,
    pace: Pace,
    /// True, or closed, when the thread has ended.
    ended: watch::Receiver<bool>,
}

/// Why the audit log can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file can't be opened, read or made.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Its folder is not there.
    #[error("the folder {} doesn't exist; create it or change audit.file", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
    },
    /// Another process appends to it.
    #[error("{}: another process writes to it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The chain can't be continued.
    #[error(
        "{}: its last line can't be continued: {problem}; move the file away or name another one",
        path.display()
    )]
    NotALog {
        /// The file.
        path: PathBuf,
        /// What is wrong with its last line.
        problem: chain::BadLine,
    },
}

/// The audit log has no room, and its configuration says to refuse work then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit log takes no more records")]
pub struct AuditFull;

impl Audit {
    /// No audit log: everything is accepted and nothing is kept.
    pub fn off() -> Self {
        Self(None)
    }

    /// Opens the file, continues its chain, and starts the thread that writes.
    ///
    /// A line that a crash left unfinished is cut off and recorded as `audit.gap`.
    ///
    /// # Errors
    /// The file can't be opened, is written by another process, or does not end in a valid record.
    pub fn open(config: &AuditLog) -> Result<Self, AuditError> {
        Self::with_bounds(config, queue::ROOM, queue::SLOTS)
    }

    fn with_bounds(config: &AuditLog, room: usize, slots: usize) -> Result<Self, AuditError> {
        let path = &config.file;
        let mut opened = open::open(path)?;
        let mut buffer = Vec::new();
        match opened.repair {
            Repair::Nothing => {}
            Repair::Newline => buffer.push(b'\n'),
            Repair::Cut(bytes) => {
                tracing::warn!(path = %path.display(), bytes, "audit log ended in a torn line, cut off");
                #[expect(clippy::disallowed_methods, reason = "opening is the driver's work")]
                let now = std::time::SystemTime::now();
                opened
                    .chain
                    .append(&Record::gap(now, "torn_line").bytes(bytes), &mut buffer);
            }
        }
        let queue = Arc::new(Queue::new(room, slots));
        let (end, ended) = watch::channel(false);
        let writer = Writer {
            path: path.clone(),
            file: opened.file,
            regular: opened.regular,
            chain: opened.chain,
            buffer,
            queue: Arc::clone(&queue),
        };
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                writer.run();
                end.send_replace(true);
            })
            .map_err(|source| AuditError::Io {
                path: path.clone(),
                source,
            })?;
        Ok(Self(Some(Arc::new(Log {
            queue,
            when_full: config.when_full,
            pace: Pace::new(),
            ended,
        }))))
    }

    /// Asks, before an operation, for a place for the one record that will tell how it ended.
    ///
    /// When records come faster than the disk takes them: `block` waits, `refuse` is the error,
    /// `drop` gives a slot that may drop its record. Cancel-safe.
    pub async fn reserve(&self) -> Result<Slot, AuditFull> {
        let Some(log) = &self.0 else {
            return Ok(Slot(Place::Nowhere));
        };
        let promise = match log.when_full {
            WhenFull::Block => log.queue.slot().await,
            WhenFull::Refuse => log.queue.try_slot(),
            WhenFull::Drop => return Ok(Slot(Place::IfRoom(Arc::clone(log)))),
        };
        // From here on it is the slot's to give back.
        promise.ok_or(AuditFull)?.forget();
        Ok(Slot(Place::Promised(Promise(Some(Arc::clone(log))))))
    }

    /// Records what can't be refused any more: teardown, questions, late answers, refusals.
    ///
    /// When the queue is full, `block` waits; otherwise the record is dropped and counted. After
    /// [`close`](Self::close) it is lost.
    pub async fn write(&self, record: Record) {
        let Some(log) = &self.0 else { return };
        let room = match log.when_full {
            WhenFull::Block => log.queue.room().await,
            WhenFull::Refuse | WhenFull::Drop => log.queue.try_room(),
        };
        log.push(record, room);
    }

    /// Records that somebody was refused. Never waits, and of one caller only so many: whoever can be
    /// refused at no cost must not fill the log, nor hold it up.
    pub fn note(&self, who: Option<&Principal>, record: Record) {
        let Some(log) = &self.0 else { return };
        match log.pace.refused(who) {
            Note::Count => return,
            Note::Write(0) => {}
            Note::Write(more) => {
                let mut sum = Record::refused(record.time())
                    .reason("more_of_the_same")
                    .count(more);
                if let Some(who) = who {
                    sum = sum.principal(who);
                }
                log.push(sum, log.queue.try_room());
            }
        }
        log.push(record, log.queue.try_room());
    }

    /// Whether the disk takes no records at the moment.
    pub fn is_stuck(&self) -> bool {
        self.0.as_ref().is_some_and(|log| log.queue.is_stuck())
    }

    /// Forgets callers of whom there is nothing to remember. To be called each minute.
    pub fn sweep(&self) {
        if let Some(log) = &self.0 {
            log.pace.sweep();
        }
    }

    /// Writes everything to the disk and ends the thread. Waits at most 5 s; records that the disk does
    /// not take in that time are lost, and an error with their number is logged. Idempotent.
    pub async fn close(&self) {
        let Some(log) = &self.0 else { return };
        log.queue.close();
        let mut ended = log.ended.clone();
        if tokio::time::timeout(CLOSE, ended.wait_for(|ended| *ended))
            .await
            .is_err()
        {
            tracing::error!("audit log is still busy, not waiting for it any longer");
        }
    }
}

impl Log {
    fn push(&self, record: Record, room: Option<SemaphorePermit<'_>>) {
        expect_open(match room {
            Some(room) => self.queue.push(record, room),
            None => self.queue.count_dropped(),
        });
    }
}

fn expect_open(taken: bool) {
    if !taken {
        tracing::warn!("a record came after the end of the audit log and is lost");
    }
}

/// Without a handle nobody can write any more, so the thread may end; without `close` nobody waits for it.
impl Drop for Log {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// A place for one record. Dropped unused, it is free again.
#[derive(Debug)]
#[must_use]
pub struct Slot(Place);

#[derive(Debug)]
enum Place {
    Nowhere,
    Promised(Promise),
    IfRoom(Arc<Log>),
}

/// One of the queue's slots; none once its record has come.
#[derive(Debug)]
struct Promise(Option<Arc<Log>>);

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(log) = &self.0 {
            log.queue.free_slot();
        }
    }
}

impl Slot {
    /// Records how the operation ended. Never waits.
    pub fn write(self, record: Record) {
        match self.0 {
            Place::Nowhere => {}
            Place::Promised(mut promise) => {
                if let Some(log) = promise.0.take() {
                    expect_open(log.queue.push_promised(record));
                }
            }
            Place::IfRoom(log) => {
                let room = log.queue.try_room();
                log.push(record, room);
            }
        }
    }
}

#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod tests;
