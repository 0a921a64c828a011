//! What idle sessions with an open stream weigh, and whether a call costs more while they and many parked
//! questions are there.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::LEGACY;
use super::weight::{AT_ONCE, PARKED, park};
use crate::Fallible;
use crate::client::{Person, Reply, Step};
use crate::load::{Pace, Tally};
use crate::options::Options;
use crate::process::Process;
use crate::report::{Report, Row, Weight};
use crate::world::World;

pub(super) const NAME: &str = "idle sessions";
pub(crate) const CROWDED: &str = "256 B beside a crowd";
pub(crate) const EMPTY: &str = "256 B without a crowd";

/// Descriptors that are kept for all else.
const RESERVE: usize = 3000;

pub(super) async fn measure(world: &World, options: &Options, report: &mut Report) -> Fallible<()> {
    // A session has a connection at both ends, and both ends are here.
    let (_, hard) = rlimit::getrlimit(rlimit::Resource::NOFILE)?;
    let possible =
        usize::try_from(hard).map_or(usize::MAX, |hard| hard.saturating_sub(RESERVE) / 2);
    let count = options.idle.min(possible);
    if let Some(nginx) = world.nginx("idle-nginx").await? {
        let way = ("nginx", nginx.address, nginx.process);
        drop(idle(world, (count, options.rest), way, report).await?);
    }
    let gateway = world.gateway("idle").await?;
    let way = ("gateway", gateway.address, gateway.process);
    let sessions = idle(world, (count, options.rest), way, report).await?;

    let windows = (0..AT_ONCE)
        .map(|number| world.window((&format!("one-{number}"), "one"), gateway.address, PARKED))
        .collect::<Fallible<Vec<_>>>()?;
    park(windows, options.waiting / AT_ONCE).await?;
    report.crowd = (sessions.len(), options.waiting / AT_ONCE * AT_ONCE);
    let empty = world.gateway("empty").await?;
    let step = Step::Call {
        size: 256,
        events: false,
    };
    let mut turns = Vec::new();
    for (name, gateway) in [(EMPTY, &empty), (CROWDED, &gateway)] {
        let mut people = world.callers(gateway.address, LEGACY).await?;
        let mut warming = Tally::new()?;
        let pace = Pace {
            window: options.window / 4,
            every: None,
        };
        warming.add(&mut people, step, pace, None).await?;
        turns.push((name, gateway.process, people, Tally::new()?));
    }
    for _ in 0..options.rounds {
        for (_, process, people, tally) in &mut turns {
            let pace = Pace {
                window: options.window,
                every: None,
            };
            tally.add(people, step, pace, Some(*process)).await?;
        }
    }
    for (name, _, _, tally) in &turns {
        report.rows.push(Row::new(name, "gateway", tally));
    }
    Ok(())
}

/// So many sessions with an open stream each, weighed.
async fn idle(
    world: &World,
    (count, rest): (usize, Duration),
    (name, address, process): (&'static str, SocketAddr, Process),
    report: &mut Report,
) -> Fallible<Vec<(Person, Reply)>> {
    let mut first = world.callers(address, LEGACY).await?;
    for person in &mut first {
        for _ in 0..100 {
            person
                .step(Step::Call {
                    size: 256,
                    events: false,
                })
                .await?;
        }
    }
    let empty = process.memory_at_rest(rest).await?;
    let arrive = async |number: usize| {
        let mut person = world.person(&format!("idle-{number}"), address, LEGACY)?;
        person.arrive().await?;
        let stream = person.listen().await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>((person, stream))
    };
    let sessions: Vec<_> = stream::iter(0..count)
        .map(arrive)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let full = process.memory_at_rest(rest).await?;
    report.weigh(Weight::new(
        "idle session with an open stream",
        name,
        count,
        (empty, full),
    ));
    Ok(sessions)
}
