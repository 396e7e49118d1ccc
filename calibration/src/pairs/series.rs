//! What is observed of each link, and which links look slow.

use std::collections::HashMap;

use statistics::median;

/// Observations of one visit: with the first, a warm-up, taken off, enough for an estimate.
pub(super) const VISIT: u32 = 4;
/// A link looks slow by so many times the median of all; what is named stands out by more.
const LOOKS_SLOW: f64 = 1.2;
/// So many observations, five visits, are believed.
const ENOUGH_OBSERVATIONS: usize = 5 * VISIT as usize - 1;

/// What is observed of a link at one size: how often, and what counts.
#[derive(Debug, Default)]
pub(super) struct LinkSeries {
    pub rows: u32,
    pub judged: Vec<f64>,
}

/// By sender, receiver and bytes.
pub(super) type AllSeries = HashMap<(u32, u32, u64), LinkSeries>;

/// The links that look slow at a size, and were not looked at often enough for that to be believed.
pub(super) fn slow(series: &AllSeries, bytes: u64) -> Vec<(u32, u32)> {
    let of_size = series.iter().filter(|((.., of), _)| *of == bytes);
    let medians: Vec<((u32, u32), f64, usize)> = of_size
        .filter_map(|(&(sender, receiver, _), LinkSeries { judged, .. })| {
            Some(((sender, receiver), median(judged)?, judged.len()))
        })
        .collect();
    let Some(usual) = median(&medians.iter().map(|(_, time, _)| *time).collect::<Vec<_>>()) else {
        return Vec::new();
    };
    let looks_slow = |(_, time, count): &&((u32, u32), f64, usize)| {
        *time > LOOKS_SLOW * usual && *count < ENOUGH_OBSERVATIONS
    };
    let mut slow: Vec<(u32, u32)> =
        medians.iter().filter(looks_slow).map(|(link, ..)| *link).collect();
    // The order of a hash map is no seed's.
    slow.sort_unstable();
    slow
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_slow_is_looked_at_until_it_is_believed() {
        let of = |time: f64, count| LinkSeries { rows: 0, judged: vec![time; count] };
        let mut series: AllSeries = (0..6).map(|to| ((9, to, 0), of(1.0, 3))).collect();
        series.extend([((9, 7, 0), of(1.3, 3)), ((9, 6, 0), of(5.0, 18))]);
        series.extend([((9, 8, 0), of(5.0, 19)), ((9, 1, 64), of(5.0, 3))]);
        assert_eq!(slow(&series, 0), [(9, 6), (9, 7)]);
        assert!(slow(&series, 64).is_empty() && slow(&series, 1).is_empty());
    }
}
