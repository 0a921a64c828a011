//! The thread that stores records.
//!
//! It takes all that waits, turns up to [`BATCH`] records into one write, and gives their
//! room back when the write is done. The first record after a silence is written at once; those that
//! follow gather for [`GATHER`], because waking a thread to write one record costs far more than the record. What
//! is written is made safe with `fdatasync` at most [`SYNC`] later, and at most once in that time. So a crash
//! of the process loses nothing that was written, which all is but for the last 2 ms, and a crash of the
//! machine at most the last 20 ms.
//!
//! When the disk takes nothing, the thread keeps the bytes, also the rest of a line that was
//! written in part, says so once, and tries again until it works or the gateway ends. Meanwhile the
//! queue fills up, and `when_full` decides what happens to new work.
//!
//! # Invariants
//! - Only this thread touches the file, and only by appending.
//! - Bytes go out in order, each once, so the chain is whole whenever the disk comes back.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::chain::Chain;
use super::queue::{Entry, Queue, Work};
use super::record::Record;

/// Records of one write.
const BATCH: usize = 256;

/// How long records wait for others while they come one after the other.
const GATHER: Duration = Duration::from_millis(2);

/// How long written bytes may be unsafe.
const SYNC: Duration = Duration::from_millis(20);

/// Between the first two attempts on a full disk; doubled up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// How long a closing log tries a disk that takes nothing. Less than [`super::CLOSE`].
const LAST_ATTEMPTS: Duration = Duration::from_secs(4);

pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Whether the file can be made safe; a pipe or a device can't.
    pub(super) regular: bool,
    pub(super) chain: Chain,
    /// Bytes to write; may begin with what repairs the end of the file.
    pub(super) buffer: Vec<u8>,
    pub(super) queue: Arc<Queue>,
}

/// The log was closed while the disk took nothing.
struct GaveUp;

impl Writer {
    /// Stores records until the queue ends.
    pub(super) fn run(mut self) {
        let mut entries = Vec::new();
        let mut dirty_since: Option<Instant> = None;
        loop {
            let wait = dirty_since.map(|since| SYNC.saturating_sub(since.elapsed()));
            let work = self.queue.take(&mut entries, wait);
            if work == Work::Entries {
                dirty_since.get_or_insert_with(now);
                if let Err(lost) = self.store(&mut entries) {
                    let lost = lost + self.queue.abandon();
                    tracing::error!(path = %self.path.display(), lost, "audit records are lost");
                    return;
                }
            }
            if dirty_since.is_some_and(|since| work != Work::Entries || since.elapsed() >= SYNC) {
                self.sync();
                dirty_since = None;
            }
            match work {
                Work::Entries => {
                    let safe_in = dirty_since.map_or(SYNC, |it| SYNC.saturating_sub(it.elapsed()));
                    self.queue.gather(GATHER.min(safe_in));
                }
                Work::None => {}
                Work::End => return,
            }
        }
    }

    /// Writes all entries; the error is the number of those that are lost.
    fn store(&mut self, entries: &mut Vec<Entry>) -> Result<(), u64> {
        let mut batch = Vec::with_capacity(BATCH.min(entries.len()));
        let mut rest = entries.drain(..);
        loop {
            batch.extend(rest.by_ref().take(BATCH));
            if batch.is_empty() {
                return Ok(());
            }
            for entry in &batch {
                match entry {
                    Entry::Record(record, _) => self.chain.append(record, &mut self.buffer),
                    Entry::Dropped(count) => {
                        let record = Record::gap(today(), "queue_full").count(*count);
                        self.chain.append(&record, &mut self.buffer);
                    }
                }
            }
            if matches!(self.flush(), Err(GaveUp)) {
                return Err(batch
                    .drain(..)
                    .chain(rest)
                    .map(|entry| entry.records())
                    .sum());
            }
            // Here, when the bytes are written, and not before.
            self.queue.give_back(&batch);
            batch.clear();
        }
    }

    /// Writes the buffer, however long it takes while the log is open.
    fn flush(&mut self) -> Result<(), GaveUp> {
        let mut done = 0;
        let mut trouble: Option<Trouble> = None;
        while let Some(rest) = self.buffer.get(done..).filter(|rest| !rest.is_empty()) {
            let result = match self.file.write(rest) {
                Ok(0) => Err(ErrorKind::WriteZero.into()),
                result => result,
            };
            match result {
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let path = self.path.display();
                    let trouble = trouble.get_or_insert_with(|| {
                        tracing::error!(%path, %error, "audit log takes no more records, trying again");
                        self.queue.set_stuck(true);
                        Trouble::default()
                    });
                    trouble.wait(&self.queue)?;
                }
            }
        }
        if let Some(trouble) = trouble {
            let attempts = trouble.attempts;
            self.queue.set_stuck(false);
            tracing::warn!(path = %self.path.display(), attempts, "audit log takes records again");
        }
        self.buffer.clear();
        Ok(())
    }

    /// Makes what is written safe.
    fn sync(&self) {
        if self.regular
            && let Err(error) = self.file.sync_data()
        {
            tracing::error!(path = %self.path.display(), %error, "audit log is not safe on disk");
        }
    }
}

/// A disk that takes nothing.
#[derive(Default)]
struct Trouble {
    attempts: u32,
    closing_since: Option<Instant>,
}

impl Trouble {
    /// Waits before the next attempt, or gives up when the log was closed long ago.
    fn wait(&mut self, queue: &Queue) -> Result<(), GaveUp> {
        let doubled = RETRY_MIN.saturating_mul(1 << self.attempts.min(8));
        self.attempts += 1;
        if queue.pause(doubled.min(RETRY_MAX)) {
            return Ok(());
        }
        if self.closing_since.get_or_insert_with(now).elapsed() >= LAST_ATTEMPTS {
            return Err(GaveUp);
        }
        std::thread::sleep(RETRY_MIN);
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "the writer is a driver")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the writer is a driver")]
fn today() -> SystemTime {
    SystemTime::now()
}
