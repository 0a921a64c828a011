//! What came out: a table, what is demanded of it, and the same as JSON.

mod targets;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::Fallible;
use crate::load::Tally;
use crate::options::Options;
use crate::world::World;

pub(crate) use self::targets::Target;

/// All figures of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    cores: String,
    clients: usize,
    rounds: usize,
    window: Duration,
    pub(crate) has_nginx: bool,
    /// Idle sessions and parked questions of the crowded gateway.
    pub(crate) crowd: (usize, usize),
    pub(crate) rows: Vec<Row>,
    weights: Vec<Weight>,
}

/// What one mode took on one way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    mode: String,
    way: String,
    steps: u64,
    pub(crate) per_second: f64,
    /// Microseconds.
    p50: u64,
    p99: u64,
    p999: u64,
    /// Microseconds of a core, in the process that stands in the way.
    cpu: Option<f64>,
}

/// Memory for each of many.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Weight {
    what: String,
    way: String,
    count: usize,
    bytes_each: u64,
}

impl Row {
    pub(crate) fn new(mode: &str, way: &str, tally: &Tally) -> Self {
        let at = |quantile| tally.took.value_at_quantile(quantile);
        Self {
            mode: mode.to_owned(),
            way: way.to_owned(),
            steps: tally.steps,
            per_second: tally.per_second(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            cpu: tally.cpu_per_step(),
        }
    }
}

impl Weight {
    /// `count` of `what` made the process grow from the first to the second.
    pub(crate) fn new(what: &str, way: &str, count: usize, (before, after): (u64, u64)) -> Self {
        let count = count.max(1);
        Self {
            what: what.to_owned(),
            way: way.to_owned(),
            count,
            bytes_each: after.saturating_sub(before) / count as u64,
        }
    }
}

impl Report {
    pub(crate) fn new(world: &World, options: &Options) -> Self {
        Self {
            cores: world.cores.describe(),
            clients: world.clients,
            rounds: options.rounds,
            window: options.window,
            has_nginx: false,
            crowd: (0, 0),
            rows: Vec::new(),
            weights: Vec::new(),
        }
    }

    pub(crate) fn weigh(&mut self, weight: Weight) {
        self.weights.push(weight);
    }

    /// What a mode took on a way, if that was measured.
    pub(crate) fn row(&self, mode: &str, way: &str) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.mode == mode && row.way == way)
    }

    /// Writes it as JSON.
    pub(crate) fn save(&self, file: &Path) -> Fallible<()> {
        let mut value = serde_json::to_value(self)?;
        let targets = serde_json::to_value(Target::all(self))?;
        if let Some(value) = value.as_object_mut() {
            value.insert("targets".to_owned(), targets);
        }
        std::fs::write(file, serde_json::to_string_pretty(&value)?)?;
        Ok(())
    }

    /// How a figure of a row stands to that of the same mode on another way.
    fn ratio(&self, row: &Row, way: &str, figure: impl Fn(&Row) -> Option<f64>) -> String {
        let other = self
            .row(&row.mode, way)
            .filter(|other| other.way != row.way);
        match (figure(row), other.and_then(figure)) {
            (Some(own), Some(other)) if other > 0.0 => format!("{:.2}", own / other),
            _ => "-".to_owned(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "\n{} clients, {} rounds of {:?}; {}",
            self.clients, self.rounds, self.window, self.cores
        )?;
        if !self.has_nginx {
            writeln!(out, "nginx is not installed: nothing is compared to it")?;
        }
        writeln!(
            out,
            "\n{:<36} {:<8} {:>9} {:>8} {:>8} {:>8} {:>9}  {:>9} {:>9} {:>10}",
            "mode",
            "way",
            "per s",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "CPU µs",
            "CPU/nginx",
            "p99/nginx",
            "p99/direct"
        )?;
        #[expect(clippy::cast_precision_loss, reason = "a time of a minute at most")]
        let p99 = |row: &Row| Some(row.p99 as f64);
        for row in &self.rows {
            let cpu = row
                .cpu
                .map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.1}"));
            writeln!(
                out,
                "{:<36} {:<8} {:>9.0} {:>8} {:>8} {:>8} {:>9}  {:>9} {:>9} {:>10}",
                row.mode,
                row.way,
                row.per_second,
                row.p50,
                row.p99,
                row.p999,
                cpu,
                self.ratio(row, "nginx", |row| row.cpu),
                self.ratio(row, "nginx", p99),
                self.ratio(row, "direct", p99),
            )?;
        }
        if !self.weights.is_empty() {
            writeln!(
                out,
                "\n{:<44} {:<8} {:>6} {:>12}",
                "memory", "way", "count", "bytes each"
            )?;
        }
        for Weight {
            what,
            way,
            count,
            bytes_each,
        } in &self.weights
        {
            writeln!(out, "{what:<44} {way:<8} {count:>6} {bytes_each:>12}")?;
        }
        writeln!(out, "\n{:<64} {:>8} {:>8}", "target", "is", "at most")?;
        for target in Target::all(self) {
            writeln!(out, "{target}")?;
        }
        Ok(())
    }
}
