//! Durations, sizes, rates and counts as people write them: `30s`, `4MiB`, `20/s`, `50`.
//!
//! # Invariants
//! - Nothing is zero. What may be without a limit is `off`, and says so.
//! - Whole numbers with one unit only: every reader sees the same number.

use std::num::NonZeroU32;
use std::time::Duration;

use super::Rate;
use super::read::{Fault, Parse};

const DURATION: &str = "write a duration as `500ms`, `30s`, `5m` or `1h`";
const SIZE: &str = "write a size as `4MiB`, `64KiB`, `1MB` or a number of bytes";
const RATE: &str = "write a rate as `20/s`, `600/min` or `100/h`, or `off` for no limit";
const COUNT: &str = "write a whole number from 1";

/// The longest duration, so that no sum of a time and a duration overflows.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// `500ms`, `30s`, `5m`, `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, Fault> {
    let (number, unit) = split(text);
    let Ok(number) = number.parse::<u64>() else {
        return Err(off(
            text,
            "is not a duration",
            "can't be switched off: every wait has an end",
            DURATION,
        ));
    };
    let fault = |why| Fault::new(why, DURATION);
    let duration = match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(60 * 60).map(Duration::from_secs),
        "" => return Err(fault("has no unit").fix(format!("{number}s"))),
        _ => {
            let corrected = match unit.to_ascii_lowercase().as_str() {
                "sec" | "secs" | "second" | "seconds" => Some(format!("{number}s")),
                "min" | "mins" | "minute" | "minutes" => Some(format!("{number}m")),
                "hr" | "hour" | "hours" => Some(format!("{number}h")),
                "d" | "day" | "days" => number.checked_mul(24).map(|hours| format!("{hours}h")),
                _ => None,
            };
            return Err(Fault {
                fix: corrected,
                ..fault("is not a duration")
            });
        }
    };
    match duration {
        Some(Duration::ZERO) => Err(fault("is no time at all")),
        Some(duration) if duration <= LONGEST => Ok(duration),
        _ => Err(fault("is longer than a year")),
    }
}

/// `4MiB`, `64KiB`, `1MB`, `65536`.
pub(super) fn size(text: &str) -> Result<usize, Fault> {
    let (number, unit) = split(text);
    let fault = |why| Fault::new(why, SIZE);
    let Ok(number) = number.parse::<usize>() else {
        return Err(fault("is not a size"));
    };
    let unit: usize = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1000 * 1000,
        "gb" => 1000 * 1000 * 1000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "k" => return Err(fault("has half a unit").fix(format!("{number}KiB"))),
        "m" => return Err(fault("has half a unit").fix(format!("{number}MiB"))),
        "g" => return Err(fault("has half a unit").fix(format!("{number}GiB"))),
        _ => return Err(fault("is not a size")),
    };
    match number.checked_mul(unit) {
        Some(0) => Err(fault("lets nothing through")),
        Some(bytes) => Ok(bytes),
        None => Err(fault("is more than this machine can count")),
    }
}

/// `20/s`, `600/min`, `100/h`: the time that refills one request, and the count that the rate
/// names, which is the burst unless the file has another.
pub(super) fn rate(text: &str) -> Result<Rate, Fault> {
    let fault = |why| Fault::new(why, RATE);
    let Some((number, unit)) = text.split_once('/') else {
        let fault = fault("is not a rate");
        let number = text.parse::<u32>().ok();
        return Err(Fault {
            fix: number.map(|number| format!("{number}/s")),
            ..fault
        });
    };
    let Ok(number) = number.trim().parse::<u32>() else {
        return Err(fault("is not a rate"));
    };
    let Some(count) = NonZeroU32::new(number) else {
        return Err(fault("lets nothing through"));
    };
    let unit = match unit.trim() {
        "s" => Duration::from_secs(1),
        "min" => Duration::from_mins(1),
        "h" => Duration::from_hours(1),
        "sec" | "second" => return Err(fault("has an unknown unit").fix(format!("{number}/s"))),
        "m" | "minute" => return Err(fault("has an unknown unit").fix(format!("{number}/min"))),
        "hour" | "hr" => return Err(fault("has an unknown unit").fix(format!("{number}/h"))),
        _ => return Err(fault("has an unknown unit")),
    };
    let period = unit / number;
    if period.is_zero() {
        return Err(fault("is faster than a clock can tell"));
    }
    Ok(Rate {
        period,
        burst: count,
    })
}

/// A whole number from 1.
pub(super) fn number(text: &str) -> Result<NonZeroU32, Fault> {
    let fault = |why| Fault::new(why, COUNT);
    match text.parse::<u64>() {
        Ok(0) => Err(fault("lets nothing through")),
        Ok(number) => u32::try_from(number)
            .and_then(NonZeroU32::try_from)
            .map_err(|_| fault("is more than this gateway can count")),
        Err(_) => {
            let bounded = "can't be switched off: it must be bounded";
            Err(off(text, "is not a whole number", bounded, COUNT))
        }
    }
}

/// The same, as the length of something.
pub(super) fn count(text: &str) -> Result<usize, Fault> {
    let fault = |_| Fault::new("is more than this machine can count", COUNT);
    number(text).and_then(|number| usize::try_from(number.get()).map_err(fault))
}

/// `true` or `false`.
pub(super) fn yes_or_no(text: &str) -> Result<bool, Fault> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Fault::new(
            "is neither yes nor no",
            "write `true` or `false`",
        )),
    }
}

/// What `parse` reads, or `off`, which is `None`.
pub(super) fn or_off<T>(parse: impl Parse<T>) -> impl Parse<Option<T>> {
    move |text: &str| match (text, parse(text)) {
        ("off", _) => Ok(None),
        (_, Ok(value)) => Ok(Some(value)),
        // Nobody who counts to nothing surely means "without end".
        ("0", Err(fault)) if fault.usual == COUNT => Err(Fault {
            usual: with_off(fault.usual),
            ..fault
        }),
        ("0" | "none" | "null" | "false" | "no" | "unlimited", Err(fault)) => Err(fault.fix("off")),
        (_, Err(fault)) => Err(Fault {
            usual: with_off(fault.usual),
            ..fault
        }),
    }
}

fn with_off(usual: &'static str) -> &'static str {
    match usual {
        SIZE => {
            "write a size as `4MiB`, `64KiB`, `1MB` or a number of bytes, or `off` for no limit"
        }
        COUNT => "write a whole number from 1, or `off` for no limit",
        other => other,
    }
}

fn off(text: &str, otherwise: &'static str, why: &'static str, usual: &'static str) -> Fault {
    Fault::new(if text == "off" { why } else { otherwise }, usual)
}

/// The leading digits and what follows them.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).unwrap_or((text, ""));
    (number, unit.trim_start())
}
