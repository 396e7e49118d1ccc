//! Message sizes that are measured besides those asked for: where g(m) leaves the line through its
//! neighbours.

use records::calibration::Estimate;
use statistics::median_interval;

use super::{
    cells::{Experiment, SizedExperiment},
    series_store::SeriesStore,
};

/// A departure that is looked into (logp_mpi's `max_diff`).
const DEPARTURE: f64 = 0.2;
/// Sizes added at a time, and in all: refining shall not eat the budget.
const AT_A_TIME: usize = 3;
const IN_ALL: usize = 9;
/// Neighbours are not taken apart further than this, nor than a part of the size.
const NEAREST: u64 = 32;
const NEAREST_PART: u64 = 16;

/// g at one size, in seconds, with its median's interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MeasuredGap {
    bytes: u64,
    gap: Estimate,
}

/// The sizes to measure next; none where the measured g(m) is known well enough.
///
/// A departure counts only where the intervals of all three medians do not explain it, so that
/// outliers, which do not move a median, add no sizes. `asked` are the sizes to begin with.
pub fn sizes(store: &SeriesStore, asked: &[u64]) -> Vec<u64> {
    let measured = store.sizes();
    let added = measured.iter().filter(|bytes| !asked.contains(bytes)).count();
    let gaps: Vec<MeasuredGap> = measured.iter().filter_map(|&bytes| gap(store, bytes)).collect();
    let mut sizes = between(&gaps);
    sizes.retain(|bytes| !measured.contains(bytes));
    sizes.truncate(AT_A_TIME.min(IN_ALL.saturating_sub(added)));
    sizes
}

fn gap(store: &SeriesStore, bytes: u64) -> Option<MeasuredGap> {
    let trains = SizedExperiment::of_pair(Experiment::Trains, bytes);
    let mut medians =
        trains.series().map(|(kind, part)| median_interval(&store.medians(kind, &part), 0.95));
    let (short, long) = (medians.next()??, medians.next()??);
    let further = f64::from(trains.messages);
    let gap = Estimate {
        value: (long.value - short.value) / further,
        low: (long.low - short.high) / further,
        high: (long.high - short.low) / further,
    };
    Some(MeasuredGap { bytes, gap })
}

/// Middles between the sizes that depart and their neighbours, the greatest departures first.
fn between(gaps: &[MeasuredGap]) -> Vec<u64> {
    let mut departures: Vec<(f64, [u64; 3])> = Vec::new();
    for window in gaps.windows(3) {
        let [left, middle, right] = window else { continue };
        let part = (middle.bytes - left.bytes) as f64 / (right.bytes - left.bytes) as f64;
        let on_line = |left: f64, right: f64| left + part * (right - left);
        let line = on_line(left.gap.value, right.gap.value);
        let departure = (middle.gap.value - line).abs() / line.abs().max(f64::MIN_POSITIVE);
        let explained = middle.gap.low <= on_line(left.gap.high, right.gap.high)
            && middle.gap.high >= on_line(left.gap.low, right.gap.low);
        if departure > DEPARTURE && !explained {
            departures.push((departure, [left.bytes, middle.bytes, right.bytes]));
        }
    }
    departures.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut sizes = Vec::new();
    for (_, [left, middle, right]) in departures {
        for (low, high) in [(left, middle), (middle, right)] {
            // As logp_mpi, whole words.
            let size = low.midpoint(high) / 4 * 4;
            let far = high - low > NEAREST.max(high / NEAREST_PART);
            if far && size > low && !sizes.contains(&size) {
                sizes.push(size);
            }
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(of: impl Fn(f64) -> f64, error: f64) -> Vec<MeasuredGap> {
        let sizes = std::iter::once(0).chain((0..=20).map(|shift| 1_u64 << shift));
        let gap = |bytes: u64| {
            let value = of(bytes as f64);
            let (low, high) = (value * (1.0 - error), value * (1.0 + error));
            MeasuredGap { bytes, gap: Estimate { value, low, high } }
        };
        sizes.map(gap).collect()
    }

    #[test]
    fn a_line_needs_no_further_sizes_and_a_jump_is_closed_in_on() {
        assert_eq!(between(&gaps(|m| 24e-6 + 84e-9 * m, 0.01)), [0; 0]);
        let jump = |m: f64| 24e-6 + 84e-9 * m + if m > 65_536.0 { 50e-3 } else { 0.0 };
        let mut sizes = between(&gaps(jump, 0.01));
        sizes.sort_unstable();
        assert!(sizes.contains(&(96 << 10)), "{sizes:?}");
        assert!(sizes.iter().all(|bytes| (32 << 10..=512 << 10).contains(bytes)), "{sizes:?}");
    }

    #[test]
    fn one_outlier_among_its_observations_is_not_followed() {
        let mut gaps = gaps(|m| 24e-6 + 84e-9 * m, 0.01);
        gaps[9].gap.value *= 3.0;
        gaps[9].gap.high *= 4.0;
        assert_eq!(between(&gaps), [0; 0], "its interval reaches down to the line");
        gaps[9].gap.low *= 2.5;
        assert!(!between(&gaps).is_empty(), "now it does not");
    }

    #[test]
    fn the_sizes_added_are_few() {
        let wild = |m: f64| 1e-5 * (1.0 + (m + 2.0).log2() % 2.0 * 9.0);
        assert!(between(&gaps(wild, 0.0)).len() > IN_ALL);
        let store = SeriesStore::default();
        assert_eq!(sizes(&store, &[0, 1]), [0; 0]);
    }
}
