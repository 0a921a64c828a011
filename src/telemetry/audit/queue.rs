//! The way of records from those who write them to the thread that stores them.
//!
//! Two bounds, because a record may be promised long before it is written. *Room* counts records
//! that wait for the disk. A *slot* is the promise that one record more will be taken, given
//! while there was room; a call holds it until it ends, which can be minutes. Room never waits for
//! a slot, so a call that holds one can always tell about its questions.
//!
//! Waking a thread costs more than all else that is done for a record, so the writer is woken seldom: by the
//! first record after a silence. Then it gathers: it sleeps for a time whatever comes, unless very much does.
//!
//! # Invariants
//! - At most `ROOM` + `SLOTS` records wait, each either in room or on a slot; one mark of dropped
//!   records may stand between two of them.
//! - Records leave in the order in which they came; a mark stands where its records are missing.
//! - The lock is held for a push or a swap, never while something waits or is written.
//! - Nobody can wait for room while the writer gathers: it is woken when half of it is taken.
//! - What a record holds is given back by the writer, for many at once, when they are stored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::record::Record;

/// Records that may wait for the disk.
pub(super) const ROOM: usize = 8192;

/// Records that may be promised at once.
pub(super) const SLOTS: usize = 65_536;

/// What waits for the writer.
#[derive(Debug)]
pub(super) enum Entry {
    /// A record, and what to give back when it is stored.
    Record(Record, Held),
    /// This many records were dropped here.
    Dropped(u64),
}

/// What a record that waits occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Room,
    Slot,
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
    /// The writer's alarm.
    alarm: Condvar,
    room: Semaphore,
    slots: Semaphore,
    /// So many entries end the gathering.
    many: usize,
    /// The disk takes nothing at the moment.
    stuck: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    dropped: u64,
    life: Life,
    sleep: Sleep,
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

/// What wakes the writer, apart from time and the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sleep {
    /// Nothing has to: it is awake, or waits for something else.
    #[default]
    None,
    /// The first entry.
    UntilAny,
    /// Many entries.
    UntilMany,
}

impl Queue {
    pub(super) fn new(room: usize, slots: usize) -> Self {
        Self {
            state: Mutex::default(),
            alarm: Condvar::new(),
            room: Semaphore::new(room),
            slots: Semaphore::new(slots),
            many: room.div_ceil(2),
            stuck: AtomicBool::new(false),
        }
    }

    /// Room for one record, when there is some; `None` when the queue is closed.
    pub(super) async fn room(&self) -> Option<SemaphorePermit<'_>> {
        match self.try_room() {
            Some(room) => Some(room),
            None => self.room.acquire().await.ok(),
        }
    }

    /// Room for one record, if there is some now.
    pub(super) fn try_room(&self) -> Option<SemaphorePermit<'_>> {
        self.room.try_acquire().ok()
    }

    /// The promise to take one record, as soon as there is room; `None` when the queue is closed.
    pub(super) async fn slot(&self) -> Option<SemaphorePermit<'_>> {
        if let Some(slot) = self.slot_and_room() {
            return Some(slot);
        }
        let slot = self.slots.acquire().await.ok()?;
        // Only a look: the record will need room when it comes, which may be long from now.
        drop(self.room.acquire().await.ok()?);
        Some(slot)
    }

    /// The promise to take one record, if there is room now and the disk takes records.
    pub(super) fn try_slot(&self) -> Option<SemaphorePermit<'_>> {
        if self.is_stuck() {
            return None;
        }
        self.slot_and_room()
    }

    /// A slot, if there is one and room too. What others wait for is not there.
    fn slot_and_room(&self) -> Option<SemaphorePermit<'_>> {
        let slot = self.slots.try_acquire().ok()?;
        (self.room.available_permits() > 0).then_some(slot)
    }

    /// Gives back a slot on which no record came.
    pub(super) fn free_slot(&self) {
        self.slots.add_permits(1);
    }

    /// Adds a record that has room. False: the writer is gone.
    pub(super) fn push(&self, record: Record, room: SemaphorePermit<'_>) -> bool {
        let taken = self.add(record, Held::Room);
        if taken {
            room.forget();
        }
        taken
    }

    /// Adds a record that was promised a place: in room if there is some, else on its slot. Either is
    /// given back when the record is stored, and the slot at once where it isn't needed.
    pub(super) fn push_promised(&self, record: Record) -> bool {
        match self.try_room() {
            Some(room) => {
                let taken = self.push(record, room);
                self.free_slot();
                taken
            }
            None => self.add(record, Held::Slot),
        }
    }

    fn add(&self, record: Record, held: Held) -> bool {
        let mut state = self.state.lock();
        if state.life == Life::Ended {
            return false;
        }
        if state.dropped > 0 {
            let mark = Entry::Dropped(std::mem::take(&mut state.dropped));
            state.entries.push(mark);
        }
        state.entries.push(Entry::Record(record, held));
        self.wake(state);
        true
    }

    /// Counts a record that found no room. False: the writer is gone, nobody will read the count.
    pub(super) fn count_dropped(&self) -> bool {
        let mut state = self.state.lock();
        state.dropped += 1;
        let read = state.life != Life::Ended;
        self.wake(state);
        read
    }

    /// Wakes the writer if there is what it sleeps for.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let due = match state.sleep {
            Sleep::None => false,
            Sleep::UntilAny => true,
            Sleep::UntilMany => state.entries.len() >= self.many,
        };
        if due {
            // Once is enough: until it runs, others need not try.
            state.sleep = Sleep::None;
            drop(state);
            self.alarm.notify_one();
        }
    }

    /// Waits for entries, at most for `wait`, and moves all of them to `out`, which is empty.
    pub(super) fn take(&self, out: &mut Vec<Entry>, wait: Option<Duration>) -> Work {
        let mut state = self.state.lock();
        let until = wait.map(|wait| now() + wait);
        while state.entries.is_empty() && state.dropped == 0 {
            if state.life != Life::Open {
                state.life = Life::Ended;
                return Work::End;
            }
            state.sleep = Sleep::UntilAny;
            let late = match until {
                None => {
                    self.alarm.wait(&mut state);
                    false
                }
                Some(until) => self.alarm.wait_until(&mut state, until).timed_out(),
            };
            state.sleep = Sleep::None;
            if late && state.entries.is_empty() && state.dropped == 0 {
                return Work::None;
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

    /// Lets entries gather: returns after `wait`, or when there are many, or no more will come.
    pub(super) fn gather(&self, wait: Duration) {
        let until = now() + wait;
        let mut state = self.state.lock();
        while state.life == Life::Open && state.entries.len() < self.many {
            state.sleep = Sleep::UntilMany;
            let late = self.alarm.wait_until(&mut state, until).timed_out();
            state.sleep = Sleep::None;
            if late {
                return;
            }
        }
    }

    /// Gives back what stored records held.
    pub(super) fn give_back(&self, stored: &[Entry]) {
        let (mut room, mut slots) = (0, 0);
        for entry in stored {
            match entry {
                Entry::Record(_, Held::Room) => room += 1,
                Entry::Record(_, Held::Slot) => slots += 1,
                Entry::Dropped(_) => {}
            }
        }
        if room > 0 {
            self.room.add_permits(room);
        }
        if slots > 0 {
            self.slots.add_permits(slots);
        }
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
        let until = now() + wait;
        while state.life == Life::Open {
            if self.alarm.wait_until(&mut state, until).timed_out() {
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
        self.alarm.notify_all();
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

#[expect(clippy::disallowed_methods, reason = "the writer is a driver")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    fn call() -> Record {
        Record::call(UNIX_EPOCH)
    }

    fn asleep(queue: &Queue, how: Sleep) {
        while queue.state.lock().sleep != how {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_first_record_after_a_silence_wakes_the_writer_and_the_next_ones_only_when_they_are_many()
    {
        let queue = Arc::new(Queue::new(8, 8));
        let writer = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let (mut first, mut more) = (vec![], vec![]);
                queue.take(&mut first, None);
                queue.gather(LONG);
                queue.take(&mut more, None);
                (first.len(), more.len())
            }
        });
        asleep(&queue, Sleep::UntilAny);
        assert!(queue.push(call(), queue.try_room().unwrap()));
        asleep(&queue, Sleep::UntilMany);
        for _ in 0..3 {
            assert!(queue.push(call(), queue.try_room().unwrap()));
            assert_eq!(queue.state.lock().sleep, Sleep::UntilMany);
        }
        assert!(queue.push(call(), queue.try_room().unwrap()));
        assert_eq!(writer.join().unwrap(), (1, 4));
    }

    #[test]
    fn the_end_of_the_log_ends_the_gathering() {
        let queue = Arc::new(Queue::new(8, 8));
        let writer = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                queue.gather(LONG);
                queue.take(&mut vec![], None)
            }
        });
        asleep(&queue, Sleep::UntilMany);
        queue.close();
        assert_eq!(writer.join().unwrap(), Work::End);
    }

    #[test]
    fn a_place_is_free_again_when_its_record_is_stored_and_not_before() {
        let queue = Queue::new(1, 1);
        queue.try_slot().unwrap().forget();
        assert!(queue.push(call(), queue.try_room().unwrap()));
        // Without room it waits on its slot.
        assert!(queue.push_promised(call()));
        let mut entries = vec![];
        assert_eq!(queue.take(&mut entries, None), Work::Entries);
        assert!(queue.try_room().is_none() && queue.try_slot().is_none());
        queue.give_back(&entries);
        assert!(queue.try_room().is_some() && queue.try_slot().is_some());

        queue.try_slot().unwrap().forget();
        assert!(queue.push_promised(call()));
        // It has taken room, so its slot is free; but without room nothing is promised.
        assert!(queue.slots.try_acquire().is_ok() && queue.try_slot().is_none());
    }
}
