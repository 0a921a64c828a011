//! What a process costs, as the kernel counts it, and on which cores it runs.

use std::process::Command;
use std::time::Duration;

use crate::Fallible;

/// A process that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(pub(crate) u32);

/// The unit in which `/proc` counts time; the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

impl Process {
    /// The time that it ran so far, in user and in kernel mode, all threads together.
    pub(crate) fn cpu(self) -> Fallible<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0))?;
        // The name of the program, in parentheses, may contain anything.
        let (_, fields) = stat.rsplit_once(')').ok_or("no name in stat")?;
        // proc_pid_stat(5): fields 14 and 15, and the name is the second.
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks = ticks
            .map(str::parse::<u32>)
            .sum::<Result<u32, _>>()
            .map_err(|error| format!("stat: {error}"))?;
        Ok(Duration::from_secs_f64(f64::from(ticks) / TICKS_PER_SECOND))
    }

    /// Bytes of memory of its own, without what it shares with others that run the same program.
    pub(crate) fn memory(self) -> Fallible<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .ok_or("no RssAnon in status")?;
        let kibibytes = line.split_whitespace().next().ok_or("an empty RssAnon")?;
        Ok(kibibytes.parse::<u64>()? * 1024)
    }

    /// Its memory once that has come to rest: a process gives back by and by what it needed for a moment.
    /// It is waited for that as long as `most`.
    pub(crate) async fn memory_at_rest(self, most: Duration) -> Fallible<u64> {
        const PAUSES: u32 = 8;
        let mut last = self.memory()?;
        let mut quiet = 0;
        for _ in 0..PAUSES {
            tokio::time::sleep(most / PAUSES).await;
            let now = self.memory()?;
            quiet = if now.abs_diff(last) < last / 200 {
                quiet + 1
            } else {
                0
            };
            last = now;
            if quiet == 3 {
                break;
            }
        }
        Ok(last)
    }

    /// The one process that it has started.
    pub(crate) fn child(self) -> Option<Self> {
        let path = format!("/proc/{0}/task/{0}/children", self.0);
        let children = std::fs::read_to_string(path).ok()?;
        children.split_whitespace().next()?.parse().ok().map(Self)
    }
}

/// Who runs where: the measured process on the last core, the load and the server on the others.
#[derive(Clone, Debug)]
pub(crate) struct Cores(Option<(String, String)>);

impl Cores {
    /// Puts this process, and the threads that it will start, on its cores. Does nothing where there is only
    /// one core, or no `taskset`.
    pub(crate) fn divide() -> Self {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        if count < 2 {
            return Self(None);
        }
        let (load, measured) = (format!("0-{}", count - 2), format!("{}", count - 1));
        let pinned = Command::new("taskset")
            .args(["-c", "-p", &load, &std::process::id().to_string()])
            .output();
        match pinned {
            Ok(output) if output.status.success() => Self(Some((load, measured))),
            _ => Self(None),
        }
    }

    /// A command that runs `program` on the measured core.
    pub(crate) fn measured(&self, program: &str) -> tokio::process::Command {
        match &self.0 {
            None => tokio::process::Command::new(program),
            Some((_, core)) => {
                let mut command = tokio::process::Command::new("taskset");
                command.args(["-c", core, program]);
                command
            }
        }
    }

    /// For the report.
    pub(crate) fn describe(&self) -> String {
        match &self.0 {
            None => "not divided: one core, or no taskset".to_owned(),
            Some((load, measured)) => {
                format!("load and server on {load}, the measured process on {measured}")
            }
        }
    }
}
