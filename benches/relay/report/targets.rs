//! What is demanded of the gateway, as ratios within one run, and what this run says to it.

use std::fmt;

use serde::Serialize;

use super::{Report, Row};
use crate::modes::{CROWDED, EMPTY, HALF, PLAIN};

/// A demand, and how it is met.
#[derive(Debug, Serialize)]
pub(crate) struct Target {
    text: String,
    is: f64,
    at_most: f64,
}

/// The modes whose CPU is compared to what nginx needs for the same, and how much more it may be.
const TO_NGINX: [(&str, f64); 8] = [
    (PLAIN, 2.0),
    ("call 256 B SSE", 2.0),
    ("call 64 KiB JSON", 1.3),
    ("call 64 KiB SSE", 1.3),
    ("call 1 MiB JSON", 1.3),
    ("call 1 MiB SSE", 1.3),
    ("question, legacy", 2.5),
    ("session churn", 3.0),
];

/// The modes whose CPU is compared to a plain call through the gateway.
const TO_CALL: [(&str, f64); 2] = [
    ("question, parked (modern to legacy)", 4.0),
    ("question, driver (legacy to modern)", 4.0),
];

/// Bytes of what waits.
const WEIGHTS: [(&str, f64); 2] = [
    ("idle session with an open stream", 12.0 * 1024.0),
    ("parked question, all of one person", 24.0 * 1024.0),
];

impl Target {
    /// All that this run has figures for.
    pub(crate) fn all(report: &Report) -> Vec<Self> {
        let cpu = |mode, way| report.row(mode, way).and_then(|row| row.cpu);
        let ratio = |own: Option<f64>, other: Option<f64>| Some(own? / other?);
        let mut all = Vec::new();
        let mut demand = |text: String, is: Option<f64>, at_most| {
            all.extend(is.map(|is| Self { text, is, at_most }));
        };
        for (mode, at_most) in TO_NGINX {
            let is = ratio(cpu(mode, "gateway"), cpu(mode, "nginx"));
            demand(format!("CPU of {mode}, to nginx"), is, at_most);
        }
        #[expect(clippy::cast_precision_loss, reason = "a time of a minute at most")]
        let p99 = |way| report.row(HALF, way).map(|row: &Row| row.p99 as f64);
        let is = ratio(p99("gateway"), p99("nginx"));
        demand("p99 at half of the peak load, to nginx".to_owned(), is, 1.5);
        for (mode, at_most) in TO_CALL {
            let is = ratio(cpu(mode, "gateway"), cpu(PLAIN, "gateway"));
            demand(format!("CPU of {mode}, to a call"), is, at_most);
        }
        for (what, at_most) in WEIGHTS {
            let mut weights = report.weights.iter();
            let weight = weights.find(|it| it.what == what && it.way == "gateway");
            #[expect(clippy::cast_precision_loss, reason = "not that heavy")]
            let is = weight.map(|weight| weight.bytes_each as f64);
            demand(format!("bytes of {what}"), is, at_most);
        }
        let is = ratio(cpu(CROWDED, "gateway"), cpu(EMPTY, "gateway"));
        let (idle, parked) = report.crowd;
        let text = format!("CPU of a call beside {idle} sessions and {parked} parked");
        demand(text, is, 1.15);
        all
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, is, at_most } = self;
        let met = if is <= at_most { "" } else { "  missed" };
        if *at_most > 100.0 {
            return write!(out, "{text:<64} {is:>8.0} {at_most:>8.0}{met}");
        }
        write!(out, "{text:<64} {is:>8.2} {at_most:>8.2}{met}")
    }
}
