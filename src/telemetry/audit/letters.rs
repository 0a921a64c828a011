//! How the log spells texts, numbers and times: compact JSON that escapes more than JSON demands.
//!
//! # Invariants
//! - Pure: appends bytes to what is there.
//! - What is spelled has no control, line separator, text-direction mark or letter that is not seen: they
//!   are written as `\u` escapes, so a terminal or a line-wise reader takes a line for nothing else.
//! - A text that needs no escape, as nearly all, is copied as a whole.

use std::time::{SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;

/// A JSON string.
pub(super) fn text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    // Without a way out early, many bytes are looked at in one go.
    if text.bytes().fold(false, |odd, byte| odd | is_odd(byte)) {
        while let Some(at) = rest.bytes().position(is_odd) {
            let (plain, from) = rest.split_at(at);
            out.extend_from_slice(plain.as_bytes());
            let mut letters = from.chars();
            if let Some(letter) = letters.next() {
                spell(letter, out);
            }
            rest = letters.as_str();
        }
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

/// Whether a byte may need an escape, or be the first one of a letter that does.
fn is_odd(byte: u8) -> bool {
    !(b' '..0x7f).contains(&byte) || byte == b'"' || byte == b'\\'
}

/// One letter, escaped where it has to be.
fn spell(letter: char, out: &mut Vec<u8>) {
    match letter {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        letter if is_deceptive(letter) => {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                out.extend_from_slice(b"\\u");
                for shift in [12, 8, 4, 0] {
                    // The last four bits, so it is one hexadecimal digit.
                    let nibble = (*unit >> shift) & 15;
                    out.push(hexadecimal(u8::try_from(nibble).unwrap_or_default()));
                }
            }
        }
        letter => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Characters that a terminal acts on, or that are not seen.
fn is_deceptive(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// The hexadecimal digit of a number under 16, in lower case.
pub(super) fn hexadecimal(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'a' + nibble - 10,
    }
}

/// A number that is not negative.
pub(super) fn number(number: u64, out: &mut Vec<u8>) {
    let (mut digits, mut rest, mut first) = ([0; MOST_DIGITS], number, MOST_DIGITS);
    for (place, digit) in digits.iter_mut().enumerate().rev() {
        *digit = decimal(rest % 10);
        rest /= 10;
        first = place;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(first..).unwrap_or_default());
}

/// Digits of the largest number.
const MOST_DIGITS: usize = 20;

/// A number that may be negative.
pub(super) fn signed(signed: i64, out: &mut Vec<u8>) {
    if signed < 0 {
        out.push(b'-');
    }
    number(signed.unsigned_abs(), out);
}

fn decimal(digit: u64) -> u8 {
    b'0' + u8::try_from(digit).unwrap_or_default()
}

/// Writes times: RFC 3339 in UTC with six digits of a second, so that records sort as text.
///
/// It remembers the last second: of thousands of records within one, the first alone asks the calendar.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    second: u64,
    /// That second: `2026-11-30T11:04:05`.
    spelled: String,
}

impl Calendar {
    pub(super) fn new() -> Self {
        Self {
            second: 0,
            spelled: spelled(OffsetDateTime::UNIX_EPOCH),
        }
    }

    /// A time as a JSON string. One that no calendar has is the epoch.
    pub(super) fn time(&mut self, time: SystemTime, out: &mut Vec<u8>) {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (mut second, mut fraction) = (since.as_secs(), since.subsec_micros());
        if second != self.second {
            let date = i64::try_from(second)
                .ok()
                .and_then(|second| OffsetDateTime::from_unix_timestamp(second).ok());
            if date.is_none() {
                (second, fraction) = (0, 0);
            }
            self.spelled = spelled(date.unwrap_or(OffsetDateTime::UNIX_EPOCH));
            self.second = second;
        }
        out.push(b'"');
        out.extend_from_slice(self.spelled.as_bytes());
        out.push(b'.');
        for place in [100_000, 10_000, 1000, 100, 10, 1] {
            out.push(decimal(u64::from(fraction / place % 10)));
        }
        out.extend_from_slice(b"Z\"");
    }
}

fn spelled(utc: OffsetDateTime) -> String {
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        utc.year(),
        u8::from(utc.month()),
        utc.day(),
        utc.hour(),
        utc.minute(),
        utc.second(),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn spelling(of: &str) -> String {
        let mut out = vec![];
        text(of, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn numbers(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = vec![];
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_json_escapes_is_escaped_as_others_do_it() {
        for letter in ('\0'..' ').chain(['"', '\\', '/', 'a', '~', 'é', '語', '\u{1f600}']) {
            let of = format!("a{letter}{letter}b");
            assert_eq!(spelling(&of), serde_json::to_string(&of).unwrap());
        }
    }

    #[test]
    fn what_is_not_seen_is_escaped_too() {
        assert_eq!(
            spelling("a\u{7f}\u{85}\u{200b}\u{2028}\u{202e}\u{2060}\u{feff}\u{e0041}é"),
            r#""a\u007f\u0085\u200b\u2028\u202e\u2060\ufeff\udb40\udc41é""#
        );
    }

    #[test]
    fn a_second_is_remembered_and_another_one_is_not_mistaken_for_it() {
        let mut calendar = Calendar::new();
        let mut at = |since: Duration| numbers(|out| calendar.time(UNIX_EPOCH + since, out));
        for (since, expected) in [
            (Duration::from_nanos(1_999), "1970-01-01T00:00:00.000001Z"),
            (
                Duration::from_micros(1_796_036_645_000_123),
                "2026-11-30T11:04:05.000123Z",
            ),
            (
                Duration::from_micros(1_796_036_645_999_999),
                "2026-11-30T11:04:05.999999Z",
            ),
            (
                Duration::from_secs(1_796_036_646),
                "2026-11-30T11:04:06.000000Z",
            ),
            (
                Duration::from_secs(253_402_300_799),
                "9999-12-31T23:59:59.000000Z",
            ),
            // Years of five digits don't sort as text.
            (
                Duration::from_millis(253_402_300_800_500),
                "1970-01-01T00:00:00.000000Z",
            ),
            (Duration::from_secs(1 << 62), "1970-01-01T00:00:00.000000Z"),
            (Duration::from_millis(1_500), "1970-01-01T00:00:01.500000Z"),
        ] {
            assert_eq!(at(since), format!("\"{expected}\""));
        }
    }

    #[test]
    fn a_time_before_the_epoch_is_the_epoch() {
        let before = UNIX_EPOCH - Duration::from_millis(1);
        let spelled = numbers(|out| Calendar::new().time(before, out));
        assert_eq!(spelled, "\"1970-01-01T00:00:00.000000Z\"");
    }

    proptest! {
        #[test]
        fn every_text_reads_back_as_it_was(of in any::<String>()) {
            let spelled = spelling(&of);
            prop_assert_eq!(serde_json::from_str::<String>(&spelled).unwrap(), of);
            prop_assert!(!spelled.contains(is_deceptive));
        }

        #[test]
        fn numbers_are_decimal(of in prop_oneof![any::<u64>(), 0..1000_u64, Just(u64::MAX)], negative in any::<i64>()) {
            prop_assert_eq!(numbers(|out| number(of, out)), of.to_string());
            prop_assert_eq!(numbers(|out| signed(negative, out)), negative.to_string());
        }
    }
}
