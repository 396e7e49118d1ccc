//! Robust summaries and tests: medians, quantiles, ranks and midmeans, never means of all raw times.

use crate::significance::Test;

/// The q-quantile (0 to 1) of the values, linearly interpolated between order statistics
/// (Hyndman and Fan's type 7); nothing of nothing.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let position = q.clamp(0.0, 1.0) * (sorted.len().checked_sub(1)?) as f64;
    let (below, above) = (position.floor() as usize, position.ceil() as usize);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64))
}

/// The median; nothing of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The midmean, the mean of the middle half (what lies across an end of that counts in part); nothing of
/// nothing. As safe from outliers as quartiles are; where a call has two modes, one as often as the other,
/// it lies between them, while the median falls into either by chance.
pub fn midmean(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let (first, last) = (count / 4.0, count * 3.0 / 4.0);
    let weight = |index: usize| {
        let index = index as f64;
        ((index + 1.0).min(last) - index.max(first)).max(0.0)
    };
    let sum: f64 = sorted.iter().enumerate().map(|(index, value)| weight(index) * value).sum();
    (!values.is_empty()).then(|| sum / (last - first))
}

/// The geometric mean of positive values; nothing of nothing.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

/// Whether `low` is smaller than `high`: by the one-sided rank-sum test at the level `alpha`, or
/// because half of `low` lies below all of `high`. The latter tells large differences apart where
/// there are too few values for a test at the levels that many comparisons need, and where single
/// values went astray.
pub fn is_smaller(low: &[f64], high: &[f64], alpha: f64) -> bool {
    let least = high.iter().copied().reduce(f64::min);
    let apart = median(low).zip(least).is_some_and(|(middle, least)| middle < least);
    apart || Test::RankSum.p_value(low, high) < alpha
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_is_told_from_equal() {
        let [low, high]: [Vec<f64>; 2] =
            [1.0, 1.2].map(|base| (0..12).map(|i| base + 0.01 * f64::from(i)).collect());
        assert!(is_smaller(&low, &high, 1e-4));
        assert!(!is_smaller(&high, &low, 0.5));
        assert!(!is_smaller(&low, &low, 0.05));
        assert!(is_smaller(&[1.0, 2.0], &[3.0, 4.0], 0.01), "few, but apart");
        assert!(is_smaller(&[1.0, 9.0, 1.1], &[3.0, 4.0], 0.01), "one that went astray");
        assert!(!is_smaller(&[1.0, 5.5], &[3.0, 4.0], 0.01));
        assert!(!is_smaller(&[], &[3.0], 0.01));
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[3.0, 1.0, 10.0]), Some(3.0));
        assert_eq!(quantile(&[0.0, 1.0, 2.0, 3.0, 4.0], 0.95), Some(3.8));
    }

    #[test]
    fn the_midmean_is_that_of_the_middle_half() {
        assert_eq!(midmean(&[]), None);
        assert_eq!(midmean(&[2.0]), Some(2.0));
        assert_eq!(midmean(&[900.0, 1.0, 3.0, 2.0]), Some(2.5));
        // A quarter of 6 is one and a half of them.
        assert!((midmean(&[0.0, 1.0, 2.0, 3.0, 5.0, 90.0]).unwrap() - 8.0 / 3.0).abs() < 1e-12);
        let two_modes = [4.0, 4.0, 4.0, 7.0, 7.0];
        assert!((midmean(&two_modes).unwrap() - 4.9).abs() < 1e-12);
    }

    #[test]
    fn the_geometric_mean_of_a_ratio_and_its_inverse_is_one() {
        assert!((geometric_mean(&[4.0, 0.25]).unwrap() - 1.0).abs() < 1e-12);
    }
}
