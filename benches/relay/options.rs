//! What a run is told on its command line.

use std::path::PathBuf;
use std::time::Duration;

pub(crate) const USAGE: &str = "\
cargo bench --bench relay -- [--quick] [--clients N] [--only WORD]… [--json FILE] [--under COMMAND]

  --quick       few and short rounds: less than two minutes
  --clients N   how many people call at once (64)
  --only WORD   only the modes with this word in their name, as they stand in the report
  --json FILE   where the figures go (target/relay.json)
  --under COMMAND
                what the gateway is run by: 'valgrind --tool=callgrind' shows where the time goes";

/// How long, how many, and which modes.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) clients: usize,
    /// How often each way has its turn in a mode.
    pub(crate) rounds: usize,
    /// How long a turn takes.
    pub(crate) window: Duration,
    /// How long memory may take to come to rest.
    pub(crate) rest: Duration,
    /// Idle sessions, as far as there are descriptors for them.
    pub(crate) idle: usize,
    /// Questions that wait.
    pub(crate) waiting: usize,
    pub(crate) json: PathBuf,
    /// The words of a command that runs the gateway; none where it runs by itself.
    pub(crate) under: Vec<String>,
    only: Vec<String>,
}

impl Options {
    /// Reads the arguments, without the name of the program.
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            clients: 64,
            rounds: 5,
            window: Duration::from_secs(1),
            rest: Duration::from_secs(12),
            idle: 8000,
            waiting: 1000,
            json: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/relay.json")),
            under: Vec::new(),
            only: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                // What `cargo bench` itself says.
                "--bench" => {}
                "--quick" => {
                    options.rounds = 3;
                    options.window = Duration::from_millis(300);
                    options.rest = Duration::from_secs(6);
                    options.idle = 2000;
                    options.waiting = 500;
                }
                "--clients" => {
                    let count = value()?.parse().ok().filter(|count| *count > 0);
                    options.clients = count.ok_or("--clients needs a number")?;
                }
                "--only" => options.only.push(value()?),
                "--under" => {
                    options.under = value()?.split_whitespace().map(str::to_owned).collect();
                }
                "--json" => options.json = PathBuf::from(value()?),
                other => return Err(format!("unknown argument {other}")),
            }
        }
        Ok(options)
    }

    /// Whether this mode is wanted.
    pub(crate) fn wants(&self, mode: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| mode.contains(word.as_str()))
    }
}
