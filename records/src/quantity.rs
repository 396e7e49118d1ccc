//! Sizes, numbers of ranks, shares and durations as people write them.
//!
//! Sizes take a number of bytes or `8KiB`, `1MiB`, `2GiB`; lists are `4,8,16` or a range. A range
//! of sizes `1..8MiB` means the powers of two in it (ends included); a range of numbers of ranks
//! `2..32` means every integer in it.

use std::{
    ops::{Bound, RangeBounds},
    time::Duration,
};

use crate::{
    number::{check_procs, expected_procs},
    quoted,
};

const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// Reads a size in bytes: `0`, `64`, `64B`, `8KiB`, `1 MiB`.
///
/// # Errors
/// Says what would be right.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (number, shift) = UNITS
        .into_iter()
        .find_map(|(unit, shift)| text.strip_suffix(unit).map(|number| (number.trim_end(), shift)))
        .unwrap_or((text, 0));
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)).ok_or_else(|| {
        format!(
            "{} is not a size; write bytes as 4096, or 4KiB, 1MiB, 2GiB (GiB is the largest \
                 unit)",
            quoted(text)
        )
    })
}

/// The shortest exact spelling without a blank: `8KiB`, `1000`.
pub fn compact_bytes(bytes: u64) -> String {
    match exact_unit(bytes) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// For people: `8 KiB`, `1000 B`.
pub fn format_bytes(bytes: u64) -> String {
    match exact_unit(bytes) {
        Some((unit, shift)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} B"),
    }
}

fn exact_unit(bytes: u64) -> Option<(&'static str, u32)> {
    UNITS
        .into_iter()
        .filter(|(_, shift)| *shift > 0)
        .find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift))
}

/// Of a power of ten: what is greater is rounded up to it where three digits are printed.
const NEARLY: f64 = 0.9995;

/// For people: `1.50 s`, `49.2 ms`, `8.06 ms`, `71.4 us`, `310 ns`.
pub fn format_seconds(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() / NEARLY {
        s if s >= 1.0 => (seconds, "s"),
        s if s >= 1e-3 => (seconds * 1e3, "ms"),
        s if s >= 1e-6 => (seconds * 1e6, "us"),
        _ => (seconds * 1e9, "ns"),
    };
    let decimals = match value.abs() / NEARLY {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// For people, with three significant digits: `83.8 ns/byte`, `0.0234 ns/byte`.
pub fn format_seconds_per_byte(seconds: f64) -> String {
    let value = seconds * 1e9;
    let magnitude = if value == 0.0 { 2 } else { (value.abs() / NEARLY).log10().floor() as i32 };
    let decimals = (2 - magnitude).clamp(0, MAX_DECIMALS) as usize;
    format!("{value:.decimals$} ns/byte")
}

/// Of a number for people: what is smaller is nothing.
const MAX_DECIMALS: i32 = 8;

/// For people, in whole seconds: `45s`, `2m`, `1h30m`, `1h5s`; below one in milliseconds: `20ms`.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds == 0 && !duration.is_zero() {
        return format!("{}ms", duration.as_millis().max(1));
    }
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    if parts.is_empty() { "0s".into() } else { parts.concat() }
}

/// Reads `--sizes`: ascending distinct sizes in bytes; a range stands for its powers of two.
///
/// A range that begins at 0 holds 0 too; the ends are included even where they are not powers.
///
/// # Errors
/// Says what would be right; a reversed range is one.
pub fn parse_sizes(text: &str) -> Result<Vec<u64>, String> {
    parse_list(text, parse_bytes, |low, high| {
        let powers = (0..64).map(|shift| 1_u64 << shift);
        let inside = powers.filter(|size| (low..=high).contains(size));
        inside.chain([low, high]).collect()
    })
}

/// Reads `--procs`: ascending distinct numbers of ranks, each at least 1; a range holds every integer.
///
/// # Errors
/// Says what would be right; 0 and a reversed range are errors.
pub fn parse_procs(text: &str) -> Result<Vec<u32>, String> {
    parse_list(text, parse_rank_count, |low, high| (low..=high).collect())
}

/// Reads a number of ranks.
///
/// # Errors
/// Says what would be right.
pub fn parse_rank_count(text: &str) -> Result<u32, String> {
    let known = text.trim().parse().ok().filter(|count| check_procs(*count).is_ok());
    known.ok_or_else(|| format!("{}: expected {}, e.g. 8", quoted(text), expected_procs()))
}

fn parse_list<T: Copy + Ord + std::fmt::Display>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
    expand: impl Fn(T, T) -> Vec<T>,
) -> Result<Vec<T>, String> {
    let mut values = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => values.push(parse(part)?),
            Some((low, high)) => {
                let (low, high) = (parse(low)?, parse(high)?);
                if low > high {
                    return Err(format!(
                        "the range '{part}' is reversed; the lower end comes first: {high}..{low}"
                    ));
                }
                values.extend(expand(low, high));
            }
        }
    }
    values.sort_unstable();
    values.dedup();
    Ok(values)
}

/// Reads a share: `5%`, or the same as a number, `0.05`.
///
/// # Errors
/// Says what would be right, with the bounds.
pub fn parse_share(text: &str, bounds: impl RangeBounds<f64>) -> Result<f64, String> {
    let share = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.trim().parse().ok(),
    };
    share.filter(|share| share.is_finite() && bounds.contains(share)).ok_or_else(|| {
        let percent = |share: &f64| format!("{}%", share * 100.0);
        let bounds = match (bounds.start_bound(), bounds.end_bound()) {
            (Bound::Included(least), Bound::Included(most)) => {
                format!("from {} to {}", percent(least), percent(most))
            }
            (Bound::Included(least), Bound::Excluded(most)) => {
                format!("from {} to below {}", percent(least), percent(most))
            }
            (Bound::Excluded(least), Bound::Included(most)) => {
                format!("above {} and up to {}", percent(least), percent(most))
            }
            (Bound::Excluded(least), Bound::Excluded(most)) => {
                format!("above {} and below {}", percent(least), percent(most))
            }
            (Bound::Included(least), Bound::Unbounded) => format!("of {} or more", percent(least)),
            (Bound::Excluded(least), Bound::Unbounded) => format!("above {}", percent(least)),
            (Bound::Unbounded, _) => "of any size".into(),
        };
        format!("{}: expected a share {bounds}, as 5% or 0.05", quoted(text))
    })
}

/// Bounds of shares that are above 0.
pub const ABOVE_0: (Bound<f64>, Bound<f64>) = (Bound::Excluded(0.0), Bound::Unbounded);
pub const ABOVE_0_TO_1: (Bound<f64>, Bound<f64>) = (Bound::Excluded(0.0), Bound::Included(1.0));
pub const BETWEEN_0_AND_1: (Bound<f64>, Bound<f64>) = (Bound::Excluded(0.0), Bound::Excluded(1.0));
/// Of what more than half can't be.
pub const ABOVE_0_TO_HALF: (Bound<f64>, Bound<f64>) = (Bound::Excluded(0.0), Bound::Included(0.5));

const DURATION_UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// The shortest and the longest time that a flag takes, in seconds, as [`EXPECTED_DURATION`] says them.
const DURATIONS: std::ops::RangeInclusive<f64> = 1e-3..=10_000.0 * 3600.0;

/// What a duration may be, as every message says it.
const EXPECTED_DURATION: &str = "a duration from 1ms to 10000h, e.g. 90s, 10m or 1h30m";

/// Reads a duration: `90s`, `10m`, `1.5h`, `1h30m`, `500ms`.
///
/// # Errors
/// Says what would be right, with the bounds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let seconds = seconds_of(text.trim()).filter(|seconds| DURATIONS.contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("{}: expected {EXPECTED_DURATION}", quoted(text)))
}

/// The sum of numbers with units, from the largest unit to the smallest.
fn seconds_of(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut seconds = 0.0;
    let mut before = f64::INFINITY;
    while !rest.is_empty() {
        let is_of_number = |c: char| c.is_ascii_digit() || c == '.' || c == ' ';
        let (number, after) = rest.split_at(rest.find(|c| !is_of_number(c))?);
        let (unit, scale) = DURATION_UNITS.into_iter().find(|(unit, _)| after.starts_with(unit))?;
        if scale >= before {
            return None;
        }
        seconds += number.trim().parse::<f64>().ok()? * scale;
        before = scale;
        rest = &after[unit.len()..];
    }
    (before < f64::INFINITY).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_per_byte_has_three_digits_whatever_its_size() {
        for (seconds, told) in [
            (83.781e-9, "83.8 ns/byte"),
            (0.0234e-9, "0.0234 ns/byte"),
            (1.0e-12, "0.00100 ns/byte"),
            (12_345e-9, "12345 ns/byte"),
            (9.996e-9, "10.0 ns/byte"),
            (0.0, "0 ns/byte"),
        ] {
            assert_eq!(format_seconds_per_byte(seconds), told);
        }
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_bytes("8KiB"), Ok(8192));
        assert_eq!(parse_bytes("1 MiB"), Ok(1 << 20));
        assert_eq!(parse_bytes("0"), Ok(0));
        assert_eq!(parse_sizes("1..8"), Ok(vec![1, 2, 4, 8]));
        assert_eq!(parse_sizes("0..3"), Ok(vec![0, 1, 2, 3]));
        assert_eq!(parse_sizes("64KiB,1KiB,64KiB"), Ok(vec![1024, 65536]));
        assert_eq!(parse_procs("2..5,8"), Ok(vec![2, 3, 4, 5, 8]));
        for text in ["1.5m", "90s", "1m30s", "1m 30s", " 90 s ", "0.025h", "90000ms"] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(90)), "{text}");
        }
        let said = [0, 45, 120, 5400, 3605].map(|s| format_duration(Duration::from_secs(s)));
        assert_eq!(said, ["0s", "45s", "2m", "1h30m", "1h5s"]);
        assert_eq!(format_duration(Duration::from_millis(20)), "20ms");
    }

    #[test]
    fn wrong_quantities_say_what_would_be_right() {
        assert!(parse_sizes("8MiB..1").unwrap_err().contains("1..8388608"));
        for wrong in ["0", "-3", "16777217", "1e3", "", "8 ranks"] {
            let error = parse_procs(wrong).unwrap_err();
            assert_eq!(error, format!("'{wrong}': expected 1 to 16777216 ranks, e.g. 8"));
        }
        assert!(parse_bytes("8kb").unwrap_err().contains("4KiB"));
        assert!(parse_bytes("1TiB").unwrap_err().contains("GiB is the largest unit"));
        assert!(parse_bytes("99999999999999999999").is_err());
        assert!(parse_bytes("99999999999GiB").is_err());
        for wrong in [
            "10",
            "0s",
            "0.5ms",
            "10001h",
            "1e3s",
            "-5m",
            "",
            "m",
            "30m1h",
            "1m1m",
            "5 parsecs",
            "NaNs",
            "1h30",
        ] {
            let error = parse_duration(wrong).unwrap_err();
            let wanted = "expected a duration from 1ms to 10000h, e.g. 90s, 10m or 1h30m";
            assert_eq!(error, format!("'{wrong}': {wanted}"));
        }
    }

    #[test]
    fn shares_are_read_in_both_spellings_and_wrong_ones_named_with_the_bounds() {
        for text in ["5%", "5 %", "0.05", " 0.05 ", "5e-2", "05.0%"] {
            assert_eq!(parse_share(text, 0.0..=1.0), Ok(0.05), "{text}");
        }
        assert_eq!(parse_share("150%", 0.0..), Ok(1.5));
        assert_eq!(parse_share("7%", 0.0..), Ok(0.07));
        for (wrong, told) in [
            (parse_share("x", 0.0..=1.0), "'x': expected a share from 0% to 100%, as 5% or 0.05"),
            (
                parse_share("5", 0.0..1.0),
                "'5': expected a share from 0% to below 100%, as 5% or 0.05",
            ),
            (
                parse_share("0", ABOVE_0_TO_HALF),
                "'0': expected a share above 0% and up to 50%, as 5% or 0.05",
            ),
            (parse_share("-1%", 0.0..), "'-1%': expected a share of 0% or more, as 5% or 0.05"),
            (parse_share("", 0.0..), "'': expected a share of 0% or more, as 5% or 0.05"),
            (parse_share("%", 0.0..), "'%': expected a share of 0% or more, as 5% or 0.05"),
            (parse_share("NaN", 0.0..), "'NaN': expected a share of 0% or more, as 5% or 0.05"),
            (parse_share("inf", 0.0..), "'inf': expected a share of 0% or more, as 5% or 0.05"),
        ] {
            assert_eq!(wrong.unwrap_err(), told);
        }
    }

    #[test]
    fn durations_are_written_for_people() {
        assert_eq!(format_seconds(0.307), "307 ms");
        assert_eq!(format_seconds(0.00806), "8.06 ms");
        assert_eq!(format_seconds(1.5), "1.50 s");
        assert_eq!(format_seconds(9.996e-6), "10.0 us");
        assert_eq!(format_seconds(0.9996e-3), "1.00 ms");
        assert_eq!(format_seconds(71.4e-6), "71.4 us");
    }

    proptest! {
        #[test]
        fn a_written_size_reads_back(bytes in any::<u64>()) {
            prop_assert_eq!(parse_bytes(&compact_bytes(bytes)), Ok(bytes));
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn a_written_duration_reads_back(seconds in 1_u64..36_000_000) {
            let duration = Duration::from_secs(seconds);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,24}") {
            let _ = parse_bytes(&text);
            let _ = parse_sizes(&text);
            let _ = parse_duration(&text);
            let _ = parse_share(&text, 0.0..=1.0);
        }
    }
}
