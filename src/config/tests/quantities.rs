//! Durations, sizes, rates and counts as people write them.

use std::fmt::Debug;
use std::time::Duration;

use crate::config::quantity::{count, duration, number, or_off, rate, size};
use crate::config::read::Fault;

/// What a text means, or why it means nothing and what it should be.
type Reading<T> = Result<T, (&'static str, Option<&'static str>)>;

/// Compares what a text means, or why it means nothing and what it should be.
#[track_caller]
fn check<T: PartialEq + Debug>(
    parse: impl Fn(&str) -> Result<T, Fault>,
    cases: &[(&str, Reading<T>)],
) {
    for (text, expected) in cases {
        let result = parse(text);
        let result = result
            .as_ref()
            .map_err(|fault| (fault.why, fault.fix.as_deref()));
        assert_eq!(
            result,
            expected.as_ref().map_err(|expected| *expected),
            "{text}"
        );
    }
}

#[test]
fn durations_have_a_unit() {
    check(
        duration,
        &[
            ("500ms", Ok(Duration::from_millis(500))),
            ("30s", Ok(Duration::from_secs(30))),
            ("5m", Ok(Duration::from_mins(5))),
            ("1h", Ok(Duration::from_hours(1))),
            ("8784h", Ok(Duration::from_hours(8784))),
            ("8785h", Err(("is longer than a year", None))),
            (
                "18446744073709551615h",
                Err(("is longer than a year", None)),
            ),
            ("99999999999999999999s", Err(("is not a duration", None))),
            ("30", Err(("has no unit", Some("30s")))),
            ("30 sec", Err(("is not a duration", Some("30s")))),
            ("5min", Err(("is not a duration", Some("5m")))),
            ("2d", Err(("is not a duration", Some("48h")))),
            ("1.5h", Err(("is not a duration", None))),
            ("1h30m", Err(("is not a duration", None))),
            ("-1s", Err(("is not a duration", None))),
            ("", Err(("is not a duration", None))),
            ("0s", Err(("is no time at all", None))),
            ("0ms", Err(("is no time at all", None))),
            (
                "off",
                Err(("can't be switched off: every wait has an end", None)),
            ),
        ],
    );
}

#[test]
fn sizes_are_bytes_or_have_a_whole_unit() {
    check(
        size,
        &[
            ("65536", Ok(65_536)),
            ("10B", Ok(10)),
            ("64KiB", Ok(64 << 10)),
            ("4MiB", Ok(4 << 20)),
            ("4 mib", Ok(4 << 20)),
            ("2GiB", Ok(2 << 30)),
            ("1kB", Ok(1000)),
            ("1MB", Ok(1_000_000)),
            ("1GB", Ok(1_000_000_000)),
            ("4M", Err(("has half a unit", Some("4MiB")))),
            ("4k", Err(("has half a unit", Some("4KiB")))),
            ("4 apples", Err(("is not a size", None))),
            ("4.5MiB", Err(("is not a size", None))),
            ("-1", Err(("is not a size", None))),
            ("", Err(("is not a size", None))),
            ("0", Err(("lets nothing through", None))),
            (
                "18446744073709551615GiB",
                Err(("is more than this machine can count", None)),
            ),
        ],
    );
}

#[test]
fn rates_are_a_count_in_a_unit_of_time() {
    let period = |text: &str| rate(text).map(|rate| (rate.period, rate.burst.get()));
    check(
        period,
        &[
            ("20/s", Ok((Duration::from_millis(50), 20))),
            ("600/min", Ok((Duration::from_millis(100), 600))),
            ("100/h", Ok((Duration::from_secs(36), 100))),
            ("1/h", Ok((Duration::from_hours(1), 1))),
            ("20 / s", Ok((Duration::from_millis(50), 20))),
            ("20", Err(("is not a rate", Some("20/s")))),
            ("20/m", Err(("has an unknown unit", Some("20/min")))),
            ("20/hour", Err(("has an unknown unit", Some("20/h")))),
            ("20/fortnight", Err(("has an unknown unit", None))),
            ("0/s", Err(("lets nothing through", None))),
            ("0.5/s", Err(("is not a rate", None))),
            ("-1/s", Err(("is not a rate", None))),
            (
                "4294967295/s",
                Err(("is faster than a clock can tell", None)),
            ),
            ("4294967296/s", Err(("is not a rate", None))),
        ],
    );
}

#[test]
fn counts_start_at_one() {
    check(
        count,
        &[
            ("1", Ok(1)),
            ("10000", Ok(10_000)),
            ("0", Err(("lets nothing through", None))),
            ("1e3", Err(("is not a whole number", None))),
            ("ten", Err(("is not a whole number", None))),
            (
                "off",
                Err(("can't be switched off: it must be bounded", None)),
            ),
        ],
    );
    let number = |text: &str| number(text).map(std::num::NonZeroU32::get);
    check(
        number,
        &[
            ("4294967295", Ok(u32::MAX)),
            (
                "4294967296",
                Err(("is more than this gateway can count", None)),
            ),
        ],
    );
}

#[test]
fn off_is_the_one_word_for_no_limit() {
    check(
        or_off(size),
        &[
            ("off", Ok(None)),
            ("1KiB", Ok(Some(1024))),
            ("0", Err(("lets nothing through", Some("off")))),
            ("none", Err(("is not a size", Some("off")))),
            ("unlimited", Err(("is not a size", Some("off")))),
            ("Off", Err(("is not a size", None))),
        ],
    );
}
