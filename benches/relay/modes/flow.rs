//! Modes in which something is done again and again, on each way in turns.

use std::time::Duration;

use crate::Fallible;
use crate::client::{Era, Person, Step};
use crate::load::{Pace, Tally};
use crate::options::Options;
use crate::report::{Report, Row};
use crate::world::{Way, World};

/// Something that is done by as many people as call at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    pub(super) name: &'static str,
    /// Of the people and of the server.
    eras: (Era, Era),
    step: Step,
}

/// Those who do it on one way, and what it took.
struct Turn {
    way: Way,
    people: Vec<Person>,
    tally: Tally,
}

impl Mode {
    pub(super) const fn new(name: &'static str, eras: (Era, Era), step: Step) -> Self {
        Self { name, eras, step }
    }

    pub(super) async fn measure(
        self,
        world: &World,
        options: &Options,
        ways: &[Way],
        report: &mut Report,
    ) -> Fallible<()> {
        let (person, server) = self.eras;
        // Only the gateway can bring those together who speak differently.
        let possible = |way: &&Way| person == server || way.name == "gateway";
        let ways: Vec<Way> = ways.iter().filter(possible).copied().collect();
        let full = Pace {
            window: options.window,
            every: None,
        };
        let rows = self.take_turns(world, options, &ways, full).await?;
        report.rows.extend(rows);
        Ok(())
    }

    /// Each way has its turn in each round.
    pub(super) async fn take_turns(
        self,
        world: &World,
        options: &Options,
        ways: &[Way],
        pace: Pace,
    ) -> Fallible<Vec<Row>> {
        let fault = |way: &Way, error| format!("{} ({}): {error}", self.name, way.name);
        let mut turns = Vec::new();
        for way in ways {
            let people = world.callers(way.address, self.eras).await;
            let mut people = people.map_err(|error| fault(way, error))?;
            let mut warming = Tally::new()?;
            let short = Pace {
                window: options.window / 4,
                every: pace.every,
            };
            let warmed = warming.add(&mut people, self.step, short, None).await;
            warmed.map_err(|error| fault(way, error))?;
            turns.push(Turn {
                way: *way,
                people,
                tally: Tally::new()?,
            });
        }
        for _ in 0..options.rounds {
            for turn in &mut turns {
                let process = turn.way.process;
                let added = turn
                    .tally
                    .add(&mut turn.people, self.step, pace, process)
                    .await;
                added.map_err(|error| fault(&turn.way, error))?;
            }
        }
        let row = |turn: Turn| Row::new(self.name, turn.way.name, &turn.tally);
        Ok(turns.into_iter().map(row).collect())
    }
}

/// The plain call at half of what the gateway can do at most, on all ways.
pub(super) async fn half(
    world: &World,
    options: &Options,
    ways: &[Way],
    report: &mut Report,
) -> Fallible<()> {
    let mode = super::MODES.into_iter().next().ok_or("no mode")?;
    if report.row(mode.name, "gateway").is_none() {
        mode.measure(world, options, ways, report).await?;
    }
    let peak = report.row(mode.name, "gateway").ok_or("no peak")?;
    // So often each person calls.
    let every = f64::from(u32::try_from(world.clients)?) / (peak.per_second / 2.0);
    let pace = Pace {
        window: options.window.max(Duration::from_secs(1)),
        every: Some(Duration::from_secs_f64(every)),
    };
    let mode = Mode {
        name: super::HALF,
        ..mode
    };
    let rows = mode.take_turns(world, options, ways, pace).await?;
    report.rows.extend(rows);
    Ok(())
}
