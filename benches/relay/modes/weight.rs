//! What those weigh who wait: parked questions, and questions on an open stream.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::LEGACY;
use crate::Fallible;
use crate::client::{Era, Person, Step};
use crate::options::Options;
use crate::report::{Report, Weight};
use crate::world::World;

pub(super) const NAME: &str = "weight of a waiting question";
/// How many come at the same time.
pub(super) const AT_ONCE: usize = 25;

pub(super) const PARKED: (Era, Era) = (Era::Modern, Era::Legacy);

pub(super) async fn measure(world: &World, options: &Options, report: &mut Report) -> Fallible<()> {
    let count = options.waiting;
    let gateway = world.gateway("weight").await?;
    let (address, process) = (gateway.address, gateway.process);

    // All buffers and tables that one person needs, so that they are not weighed.
    let mut one = world.person("one", address, PARKED)?;
    for _ in 0..100 {
        one.step(Step::Ask).await?;
    }
    let empty = process.memory_at_rest(options.rest).await?;
    let windows = (0..AT_ONCE)
        .map(|number| world.window((&format!("one-{number}"), "one"), address, PARKED))
        .collect::<Fallible<Vec<_>>>()?;
    park(windows, count / AT_ONCE).await?;
    let parked = process.memory_at_rest(options.rest).await?;
    report.weigh(Weight::new(
        "parked question, all of one person",
        "gateway",
        count / AT_ONCE * AT_ONCE,
        (empty, parked),
    ));

    park(world.people(address, count, PARKED)?, 1).await?;
    let each = process.memory_at_rest(options.rest).await?;
    report.weigh(Weight::new(
        "parked question with its person's session",
        "gateway",
        count,
        (parked, each),
    ));
    drop(gateway);

    let gateway = world.gateway("open").await?;
    let (address, process) = (gateway.address, gateway.process);
    let mut first = world.person("one", address, LEGACY)?;
    first.arrive().await?;
    for _ in 0..100 {
        first.step(Step::Ask).await?;
    }
    let empty = process.memory_at_rest(options.rest).await?;
    let mut people = world.people(address, count, LEGACY)?;
    for person in &mut people {
        person.arrive().await?;
    }
    let opened = process.memory_at_rest(options.rest).await?;
    report.weigh(Weight::new(
        "session without a stream",
        "gateway",
        count,
        (empty, opened),
    ));
    let mut open = Vec::new();
    for person in &mut people {
        open.push(person.be_asked().await?);
    }
    let asked = process.memory_at_rest(options.rest).await?;
    report.weigh(Weight::new(
        "open question on the stream of its call",
        "gateway",
        count,
        (opened, asked),
    ));
    Ok(())
}

/// Lets everybody park so many questions, some at the same time: each takes a while. Nobody comes back.
pub(super) async fn park(people: Vec<Person>, each: usize) -> Fallible<()> {
    let leave = async |mut person: Person| {
        for _ in 0..each {
            drop(person.park().await?);
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    };
    let left = stream::iter(people).map(leave).buffer_unordered(AT_ONCE);
    left.try_collect::<()>().await
}
