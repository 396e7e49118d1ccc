//! Round numbers on logarithmic axes, and how they are written.

use records::quantity;

/// What an axis counts; decides how its numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Bytes: powers of two, `1 KiB`.
    Bytes,
    /// Seconds, `10 us`.
    Seconds,
    /// Processes: powers of two.
    Processes,
    /// A plain number, such as a ratio.
    Number,
}

/// The least and the greatest of positive values.
pub(crate) fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| (low.min(value), high.max(value)))
}

/// A little more than the span, and at least a factor of `least` in all.
pub(crate) fn padded(low: f64, high: f64, least: f64) -> (f64, f64) {
    let pad = (high / low).powf(0.04).max((least / (high / low)).sqrt()).max(1.05);
    ((low / pad).max(f64::MIN_POSITIVE), (high * pad).min(f64::MAX))
}

/// Round numbers inside the range, at most `most` of them.
pub(crate) fn ticks((low, high): (f64, f64), quantity: Quantity, most: usize) -> Vec<f64> {
    let base: f64 = match quantity {
        Quantity::Bytes | Quantity::Processes => 2.0,
        Quantity::Seconds | Quantity::Number => 10.0,
    };
    let (first, last) = (low.log(base).ceil() as i32, high.log(base).floor() as i32);
    let powers = |stride: i32| {
        (first..=last).filter(move |power| power.rem_euclid(stride) == 0).map(|p| base.powi(p))
    };
    if base == 10.0 && powers(1).count() < 3 {
        for steps in [[1.0, 2.0, 5.0].as_slice(), &[1.0, 3.0]] {
            let ticks: Vec<f64> = (first - 1..=last)
                .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)))
                .filter(|tick| (low..=high).contains(tick))
                .collect();
            if ticks.len() <= most {
                return ticks;
            }
        }
    }
    [1, 2, 5, 10, 20, 50, 100, 200, 500]
        .into_iter()
        .map(|stride| powers(stride).collect::<Vec<f64>>())
        .find(|ticks| ticks.len() <= most.max(2))
        .unwrap_or_default()
}

pub(crate) fn format_tick(value: f64, quantity: Quantity) -> String {
    match quantity {
        Quantity::Bytes if value >= 1.0 && value < u64::MAX as f64 => {
            quantity::format_bytes(value.round() as u64)
        }
        Quantity::Bytes => format!("{} B", format_number(value)),
        Quantity::Number | Quantity::Processes => format_number(value),
        Quantity::Seconds => {
            let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
            let (scale, unit) =
                units.into_iter().find(|(scale, _)| value >= scale * 0.999).unwrap_or((1e-9, "ns"));
            format!("{} {unit}", format_number(value / scale))
        }
    }
}

/// A tick's number without the rounding errors of its making: `1`, `0.2`, `1e9`.
fn format_number(value: f64) -> String {
    if !(1e-3..1e5).contains(&value) {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_numbers_with_units() {
        let written = |range, quantity, most| -> Vec<String> {
            ticks(range, quantity, most).into_iter().map(|t| format_tick(t, quantity)).collect()
        };
        assert_eq!(
            written((0.8, 1.2e6), Quantity::Bytes, 9),
            ["1 B", "32 B", "1 KiB", "32 KiB", "1 MiB"]
        );
        assert_eq!(
            written((4e-5, 0.7), Quantity::Seconds, 9),
            ["100 us", "1 ms", "10 ms", "100 ms"]
        );
        assert_eq!(written((4e-5, 3e-4), Quantity::Seconds, 9), ["50 us", "100 us", "200 us"]);
        assert_eq!(written((1.9, 33.0), Quantity::Number, 9), ["2", "5", "10", "20"]);
    }

    proptest! {
        #[test]
        fn every_range_has_ticks_inside_and_not_too_many(
            exponent in -280.0_f64..280.0, decades in 0.0_f64..20.0, most in 3_usize..12,
        ) {
            let low = 10_f64.powf(exponent);
            let range = padded(low, low * 10_f64.powf(decades), 4.0);
            for quantity in [Quantity::Seconds, Quantity::Number] {
                let ticks = ticks(range, quantity, most);
                prop_assert!(!ticks.is_empty());
                prop_assert!(ticks.len() <= most);
                for tick in ticks {
                    prop_assert!(range.0 <= tick && tick <= range.1);
                }
            }
        }
    }
}
