//! People who do the same thing again and again, and what that took.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::Fallible;
use crate::client::{Person, Step};
use crate::process::Process;

/// What the steps of one mode took on one way, over all rounds.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) wall: Duration,
    /// Of the measured process; nothing where there is none.
    pub(crate) cpu: Option<Duration>,
    /// Microseconds of each step.
    pub(crate) took: Histogram<u64>,
}

/// For how long, and how often each person begins a step; at once after the last one when nothing is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) window: Duration,
    pub(crate) every: Option<Duration>,
}

impl Tally {
    pub(crate) fn new() -> Fallible<Self> {
        Ok(Self {
            steps: 0,
            wall: Duration::ZERO,
            cpu: None,
            // A microsecond to a minute, three digits.
            took: Histogram::new_with_bounds(1, 60_000_000, 3)?,
        })
    }

    /// Lets everybody step for a while, waits until all are done, and adds what it took.
    pub(crate) async fn add(
        &mut self,
        people: &mut Vec<Person>,
        step: Step,
        pace: Pace,
        process: Option<Process>,
    ) -> Fallible<()> {
        let before = process.map(Process::cpu).transpose()?;
        let began = Instant::now();
        let took = run(people, step, pace).await?;
        self.wall += began.elapsed();
        self.steps += took.len();
        self.took.add(took)?;
        if let (Some(process), Some(before)) = (process, before) {
            let spent = process.cpu()?.saturating_sub(before);
            self.cpu = Some(self.cpu.unwrap_or_default() + spent);
        }
        Ok(())
    }

    /// Steps in a second.
    #[expect(clippy::cast_precision_loss, reason = "no run has so many steps")]
    pub(crate) fn per_second(&self) -> f64 {
        self.steps as f64 / self.wall.as_secs_f64()
    }

    /// Microseconds of CPU for a step.
    #[expect(clippy::cast_precision_loss, reason = "no run has so many steps")]
    pub(crate) fn cpu_per_step(&self) -> Option<f64> {
        let cpu = self.cpu?.as_secs_f64() * 1e6;
        Some(cpu / self.steps as f64)
    }
}

async fn run(people: &mut Vec<Person>, step: Step, pace: Pace) -> Fallible<Histogram<u64>> {
    let took = Arc::new(Mutex::new(Histogram::new_with_bounds(1, 60_000_000, 3)?));
    let count = u32::try_from(people.len())?.max(1);
    let mut tasks = JoinSet::new();
    let end = Instant::now() + pace.window;
    for (number, mut person) in (0..count).zip(people.drain(..)) {
        let took = Arc::clone(&took);
        // Spread over the interval, or all would come at the same moment.
        let first = pace
            .every
            .map(|every| Instant::now() + every * number / count);
        tasks.spawn(async move {
            repeat(&mut person, step, (end, pace.every, first), &took).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(person)
        });
    }
    while let Some(person) = tasks.join_next().await {
        people.push(person??);
    }
    let took = Arc::into_inner(took).ok_or("somebody still steps")?;
    Ok(took.into_inner())
}

async fn repeat(
    person: &mut Person,
    step: Step,
    (end, every, first): (Instant, Option<Duration>, Option<Instant>),
    took: &Mutex<Histogram<u64>>,
) -> Fallible<()> {
    let mut planned = first;
    while Instant::now() < end {
        let mut began = Instant::now();
        if let (Some(at), Some(every)) = (&mut planned, every) {
            if *at > began {
                tokio::time::sleep_until((*at).into()).await;
                began = Instant::now();
            } else {
                // The step before took too long, and this one waited for it: that counts.
                began = *at;
            }
            *at += every;
        }
        person.step(step).await?;
        let micros = u64::try_from(began.elapsed().as_micros())?;
        took.lock().saturating_record(micros.max(1));
    }
    Ok(())
}
