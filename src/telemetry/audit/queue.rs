//! The way of records from those who write them to the thread that stores them.
//!
//! Two bounds, because a record may be promised long before it is written. *Room* counts records
//! that wait for the disk. A *slot* is the promise that one record more will be taken, given
//! while there was room; a call holds it until it ends, which can be minutes. Room never waits for
//! a slot, so a call that holds one can always tell about its questions.
//!
//! # Invariants
//! - At most `ROOM` + `SLOTS` records wait, each either in room or on a slot; one mark of dropped
//!   records may stand between two of them.
//! - Records leave in the order in which they came; a mark stands where its records are missing.
//! - The lock is held for a push or a swap, never while something waits or is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::record::Record;

/// Records that may wait for the disk.
pub(super) const ROOM: usize = 8192;

/// Records that may be promised at once.
pub(super) const SLOTS: usize = 65_536;

/// What waits for the writer.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all entries are records")]
pub(super) enum Entry {
    /// A record, and what it gives back when it is stored.
    Record(
        Record,
        #[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit,
    ),
    /// This many records were dropped here.
    Dropped(u64),
}

/// What the writer gets when it asks for work.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// There are entries.
    Entries,
    /// None came in time.
    None,
    /// None will come any more.
    End,
}

#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    room: Arc<Semaphore>,
    slots: Arc<Semaphore>,
    /// The disk takes nothing at the moment.
    stuck: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    dropped: u64,
    life: Life,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Life {
    #[default]
    Open,
    /// What is there will be stored, then it ends.
    Closing,
    /// The writer is gone.
    Ended,
}

impl Queue {
    pub(super) fn new(room: usize, slots: usize) -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            room: Arc::new(Semaphore::new(room)),
            slots: Arc::new(Semaphore::new(slots)),
            stuck: AtomicBool::new(false),
        }
    }

    /// Room for one record, when there is some; `None` when the queue is closed.
    pub(super) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).acquire_owned().await.ok()
    }

    /// Room for one record, if there is some now.
    pub(super) fn try_room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    /// The promise to take one record, as soon as there is room; `None` when the queue is closed.
    pub(super) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok()?;
        // Only a look: the record will need room when it comes, which may be long from now.
        drop(self.room.acquire().await.ok()?);
        Some(slot)
    }

    /// The promise to take one record, if there is room now and the disk takes records.
    pub(super) fn try_slot(&self) -> Option<OwnedSemaphorePermit> {
        if self.stuck.load(Ordering::Relaxed) {
            return None;
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        drop(self.room.try_acquire().ok()?);
        Some(slot)
    }

    /// Adds a record that holds room or a slot. False: the writer is gone.
    pub(super) fn push(&self, record: Record, held: OwnedSemaphorePermit) -> bool {
        let mut state = self.state.lock();
        if state.life == Life::Ended {
            return false;
        }
        if state.dropped > 0 {
            let mark = Entry::Dropped(std::mem::take(&mut state.dropped));
            state.entries.push(mark);
        }
        state.entries.push(Entry::Record(record, held));
        drop(state);
        self.filled.notify_one();
        true
    }

    /// Adds a record that was promised a place: in room if there is some, else on its slot.
    pub(super) fn push_promised(&self, record: Record, slot: OwnedSemaphorePermit) -> bool {
        let held = self.try_room().unwrap_or(slot);
        self.push(record, held)
    }

    /// Counts a record that found no room. False: the writer is gone, nobody will read the count.
    pub(super) fn count_dropped(&self) -> bool {
        let mut state = self.state.lock();
        state.dropped += 1;
        let read = state.life != Life::Ended;
        drop(state);
        self.filled.notify_one();
        read
    }

    /// Waits for entries, at most for `wait`, and moves all of them to `out`, which is empty.
    pub(super) fn take(&self, out: &mut Vec<Entry>, wait: Option<Duration>) -> Work {
        let mut state = self.state.lock();
        #[expect(clippy::disallowed_methods, reason = "the writer is a driver")]
        let until = wait.map(|wait| Instant::now() + wait);
        while state.entries.is_empty() && state.dropped == 0 {
            if state.life != Life::Open {
                state.life = Life::Ended;
                return Work::End;
            }
            match until {
                None => self.filled.wait(&mut state),
                Some(until) if self.filled.wait_until(&mut state, until).timed_out() => {
                    return Work::None;
                }
                Some(_) => {}
            }
        }
        // After a burst the memory goes back.
        out.shrink_to(ROOM / 16);
        std::mem::swap(out, &mut state.entries);
        if state.dropped > 0 {
            out.push(Entry::Dropped(std::mem::take(&mut state.dropped)));
        }
        Work::Entries
    }

    /// The writer tells whether the disk takes records.
    pub(super) fn set_stuck(&self, stuck: bool) {
        self.stuck.store(stuck, Ordering::Relaxed);
    }

    /// Whether the disk takes nothing at the moment.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }

    /// Lets the writer sleep between two attempts; closing wakes it. Returns whether it is open.
    pub(super) fn pause(&self, wait: Duration) -> bool {
        let mut state = self.state.lock();
        #[expect(clippy::disallowed_methods, reason = "the writer is a driver")]
        let until = Instant::now() + wait;
        while state.life == Life::Open {
            if self.filled.wait_until(&mut state, until).timed_out() {
                return true;
            }
        }
        false
    }

    /// Nothing new is promised; who waits for room gets none; the writer ends when it is done.
    pub(super) fn close(&self) {
        self.room.close();
        self.slots.close();
        let mut state = self.state.lock();
        if state.life == Life::Open {
            state.life = Life::Closing;
        }
        drop(state);
        self.filled.notify_all();
    }

    /// The writer ends, with what is left; returns how many records are lost.
    pub(super) fn abandon(&self) -> u64 {
        self.room.close();
        self.slots.close();
        let mut state = self.state.lock();
        state.life = Life::Ended;
        let left = state
            .entries
            .drain(..)
            .map(|entry| entry.records())
            .sum::<u64>();
        left + std::mem::take(&mut state.dropped)
    }
}

impl Entry {
    /// How many records it stands for.
    pub(super) fn records(&self) -> u64 {
        match self {
            Self::Record(..) => 1,
            Self::Dropped(count) => *count,
        }
    }
}
