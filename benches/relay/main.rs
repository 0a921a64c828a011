//! What a hop through the gateway costs: `cargo bench --bench relay`; with `-- --quick` in less than two minutes.
//!
//! A fast server and the people who call it are in this process, the gateway is one of its own, on a core of its
//! own, and so is nginx, where it is installed. The same things are done directly, through nginx and through the
//! gateway, in turns, so that whatever else the machine does falls on all of them alike.
//!
//! # Invariants
//! - Every answer is checked. One that is lost, or has reached somebody else, ends the run with exit code 1.
//! - A figure is a ratio within one run, or it says of which machine it is.

#![expect(
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and drives its own tasks"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the report is for a terminal"
)]

mod client;
mod gateway;
mod load;
mod modes;
mod nginx;
mod options;
mod process;
mod report;
mod server;
mod text;
mod token;
mod world;

use std::process::ExitCode;

use self::options::Options;
use self::report::Report;
use self::world::World;

/// An outcome; whatever goes wrong ends the run.
type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match measure(&options) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Fallible<Report> {
    rlimit::increase_nofile_limit(u64::MAX)?;
    // Before any thread is started: threads inherit their cores.
    let cores = process::Cores::divide();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(async {
        let world = World::new(cores, options)?;
        modes::run(&world, options).await
    })?;
    report.save(&options.json)?;
    Ok(report)
}
