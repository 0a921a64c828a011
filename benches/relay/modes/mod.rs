//! What is done, in its order.

mod crowd;
mod flow;
mod weight;

use crate::Fallible;
use crate::client::{Era, Step};
use crate::options::Options;
use crate::report::Report;
use crate::world::{Way, World};

use self::flow::Mode;

const KIB: usize = 1024;
const LEGACY: (Era, Era) = (Era::Legacy, Era::Legacy);

/// The mode by which the others are judged.
pub(crate) const PLAIN: &str = "call 256 B JSON";
pub(crate) use self::crowd::{CROWDED, EMPTY};

pub(crate) const HALF: &str = "half load, 256 B";

/// The modes that are compared on all ways, or need the gateway since the eras differ.
const MODES: [Mode; 12] = [
    Mode::new(PLAIN, LEGACY, call(256, false)),
    Mode::new("call 256 B SSE", LEGACY, call(256, true)),
    Mode::new("call 64 KiB JSON", LEGACY, call(64 * KIB, false)),
    Mode::new("call 64 KiB SSE", LEGACY, call(64 * KIB, true)),
    Mode::new("call 1 MiB JSON", LEGACY, call(KIB * KIB, false)),
    Mode::new("call 1 MiB SSE", LEGACY, call(KIB * KIB, true)),
    Mode::new(
        "modern call 256 B",
        (Era::Modern, Era::Modern),
        call(256, false),
    ),
    Mode::new("question, legacy", LEGACY, Step::Ask),
    Mode::new("question, modern", (Era::Modern, Era::Modern), Step::Ask),
    Mode::new(
        "question, parked (modern to legacy)",
        (Era::Modern, Era::Legacy),
        Step::Ask,
    ),
    Mode::new(
        "question, driver (legacy to modern)",
        (Era::Legacy, Era::Modern),
        Step::Ask,
    ),
    Mode::new("session churn", LEGACY, Step::Churn { size: 256 }),
];

const fn call(size: usize, events: bool) -> Step {
    Step::Call { size, events }
}

/// Does all that is wanted.
pub(crate) async fn run(world: &World, options: &Options) -> Fallible<Report> {
    let mut report = Report::new(world, options);
    let gateway = world.gateway("gateway").await?;
    let nginx = world.nginx("nginx").await?;
    report.has_nginx = nginx.is_some();
    let mut ways = vec![Way::direct(world)];
    ways.extend(nginx.as_ref().map(Way::nginx));
    ways.push(Way::gateway(&gateway));
    for mode in MODES {
        if options.wants(mode.name) {
            eprintln!("{} …", mode.name);
            mode.measure(world, options, &ways, &mut report).await?;
        }
    }
    if options.wants(HALF) {
        eprintln!("{HALF} …");
        flow::half(world, options, &ways, &mut report).await?;
    }
    drop((gateway, nginx));
    if options.wants(weight::NAME) {
        eprintln!("{} …", weight::NAME);
        weight::measure(world, options, &mut report).await?;
    }
    if options.wants(crowd::NAME) {
        eprintln!("{} …", crowd::NAME);
        crowd::measure(world, options, &mut report).await?;
    }
    Ok(report)
}
