//! What those weigh who wait: parked questions, and questions on an open stream.

use super::LEGACY;
use crate::Fallible;
use crate::client::{Era, Step};
use crate::options::Options;
use crate::report::{Report, Weight};
use crate::world::World;

pub(super) const NAME: &str = "weight of a waiting question";
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
    for _ in 0..count {
        drop(one.park().await?);
    }
    let parked = process.memory_at_rest(options.rest).await?;
    report.weigh(Weight::new(
        "parked question, all of one person",
        "gateway",
        count,
        (empty, parked),
    ));

    let mut people = world.people(address, count, PARKED)?;
    for person in &mut people {
        drop(person.park().await?);
    }
    drop(people);
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
