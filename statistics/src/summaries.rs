//! Values summarised by one number, so that outliers do little harm.

/// Standard deviations of a normal distribution in one median of the absolute deviations from its middle.
pub const DEVIATIONS_PER_MEDIAN: f64 = 1.4826;

/// The q-quantile (0 to 1) of the values, linearly interpolated between order statistics
/// (Hyndman and Fan's type 7); nothing of nothing.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let sorted = sorted(values);
    let position = q.clamp(0.0, 1.0) * (sorted.len().checked_sub(1)?) as f64;
    let (below, above) = (position.floor() as usize, position.ceil() as usize);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The median; nothing of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted(values))
}

/// The median of ascending values.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let (below, above) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some(f64::midpoint(sorted[below], sorted[above]))
}

/// The median, of an even number of values the greater of the two in the middle; nothing of nothing. Found
/// in linear time and without memory of its own, for what is asked many thousand times; puts the
/// values into another order.
pub fn upper_median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// The mean; nothing of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of what the values were drawn from; nothing of fewer than two.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    variance(values).map(f64::sqrt)
}

/// The variance of what the values were drawn from; nothing of fewer than two.
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(squares / (values.len() - 1) as f64)
}

/// The midmean, the mean of the middle half (what lies across an end of that counts in part); nothing of
/// nothing. As safe from outliers as quartiles are; where a call has two modes, one as often as the other,
/// it lies between them, while the median falls into either by chance.
pub fn midmean(values: &[f64]) -> Option<f64> {
    trimmed_mean(&sorted(values), values.len() as f64 / 4.0)
}

/// The mean of ascending values without `cut` of them at either end; what is partly cut counts in part.
/// Nothing where all are cut.
pub fn trimmed_mean(sorted: &[f64], cut: f64) -> Option<f64> {
    trimmed_mean_of_counts(sorted, |_| 1.0, |_| cut)
}

/// The trimmed mean of ascending values each of which stands there `count(index)` times; `cut` is asked with
/// the sum of the counts.
pub fn trimmed_mean_of_counts(
    sorted: &[f64],
    count: impl Fn(usize) -> f64,
    cut: impl Fn(f64) -> f64,
) -> Option<f64> {
    let whole: f64 = (0..sorted.len()).map(&count).sum();
    let (from, to) = (cut(whole), whole - cut(whole));
    let (mut passed, mut sum) = (0.0_f64, 0.0);
    for (index, value) in sorted.iter().enumerate() {
        let next = passed + count(index);
        sum += (next.min(to) - passed.max(from)).max(0.0) * value;
        passed = next;
    }
    (to > from).then(|| sum / (to - from))
}

/// The squared standard error of the mean of ascending values without `cut` of them at either end, from
/// their winsorised variance (Tukey and McLaughlin 1963); nothing of fewer than two, or where all are cut.
pub fn trimmed_mean_squared_error(sorted: &[f64], cut: usize) -> Option<f64> {
    let count = sorted.len();
    if count < 2 || 2 * cut >= count {
        return None;
    }
    let (low, high) = (sorted[cut], sorted[count - 1 - cut]);
    let winsorised: Vec<f64> = sorted.iter().map(|value| value.clamp(low, high)).collect();
    let variance = variance(&winsorised)?;
    let share = 1.0 - 2.0 * cut as f64 / count as f64;
    Some(variance / (share.powi(2) * count as f64))
}

/// Which share of the variance of the values a fit with these residuals explains; 1 where they do not vary.
pub fn r_squared(values: &[f64], residuals: &[f64]) -> f64 {
    let mean = mean(values).unwrap_or_default();
    let left: f64 = residuals.iter().map(|residual| residual.powi(2)).sum();
    let whole: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if whole > 0.0 { 1.0 - left / whole } else { 1.0 }
}

/// The geometric mean of positive values; nothing of nothing.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

/// How much a value tells of the next one: the correlation of their ranks, which outliers leave alone.
/// Nothing of fewer than two values.
pub fn serial_rank_correlation(values: &[f64]) -> Option<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|one, other| values[*one].total_cmp(&values[*other]));
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    for (rank, index) in order.into_iter().enumerate() {
        ranks[index] = rank as f64 - middle;
    }
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let products: f64 = ranks.windows(2).map(|pair| pair[0] * pair[1]).sum();
    (values.len() > 1).then(|| products / squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[3.0, 1.0, 10.0]), Some(3.0));
        assert_eq!(quantile(&[0.0, 1.0, 2.0, 3.0, 4.0], 0.95), Some(3.8));
    }

    #[test]
    fn a_median_of_an_even_number_is_between_the_two_or_the_greater() {
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
        assert_eq!(upper_median(&mut [4.0, 1.0, 2.0, 9.0]), Some(4.0));
        assert_eq!(upper_median(&mut [4.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(upper_median(&mut []), None);
    }

    /// Mean 1, squares 4 of 0.01: 0.04 / 3.
    #[test]
    fn the_deviation_is_that_of_what_was_drawn_from() {
        assert_eq!((mean(&[]), standard_deviation(&[1.0])), (None, None));
        let deviation = standard_deviation(&[0.9, 1.1, 0.9, 1.1]).unwrap();
        assert!((deviation - (0.04_f64 / 3.0).sqrt()).abs() < 1e-12, "{deviation}");
    }

    #[test]
    fn of_a_trimmed_mean_single_values_are_cut_in_part() {
        assert_eq!(trimmed_mean(&[1.0, 2.0, 3.0, 100.0], 1.0), Some(2.5));
        // Of three the middle one counts whole, the others a quarter each.
        let three = trimmed_mean(&[0.0, 1.0, 4.0], 0.75).unwrap();
        assert!((three - (0.25 * 0.0 + 1.0 + 0.25 * 4.0) / 1.5).abs() < 1e-12);
        let counted = |index: usize| [0.0, 4.0, 0.0][index];
        assert_eq!(trimmed_mean_of_counts(&[1.0, 2.0, 9.0], counted, |_| 1.0), Some(2.0));
        assert_eq!(trimmed_mean(&[1.0, 2.0], 1.0), None);
    }

    /// Winsorised: 2 2 3 4 4, of variance 1; three fifths of five values are left.
    #[test]
    fn the_error_of_a_trimmed_mean_is_from_its_winsorised_variance() {
        let squared = trimmed_mean_squared_error(&[-90.0, 2.0, 3.0, 4.0, 99.0], 1).unwrap();
        assert!((squared - 1.0 / (0.36 * 5.0)).abs() < 1e-12, "{squared}");
        let plain = trimmed_mean_squared_error(&[1.0, 3.0], 0).unwrap();
        assert!((plain - 1.0).abs() < 1e-12, "as of a mean: 2 / 2");
        assert_eq!(trimmed_mean_squared_error(&[1.0, 2.0], 1), None);
    }

    #[test]
    fn a_fit_explains_what_its_residuals_do_not() {
        assert_eq!(r_squared(&[1.0, 2.0, 3.0], &[0.0; 3]), 1.0);
        assert_eq!(r_squared(&[1.0, 2.0, 3.0], &[-1.0, 0.0, 1.0]), 0.0);
        assert_eq!(r_squared(&[1.0, 3.0], &[0.5, 0.5]), 0.75);
        assert_eq!(r_squared(&[2.0, 2.0], &[0.5, 0.5]), 1.0);
    }

    #[test]
    fn what_rises_tells_of_the_next_and_what_alternates_too() {
        let rising: Vec<f64> = (0..100).map(|i| f64::from(i).exp()).collect();
        assert!(serial_rank_correlation(&rising).unwrap() > 0.9);
        let alternating: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        assert!(serial_rank_correlation(&alternating).unwrap() < -0.5);
        assert_eq!(serial_rank_correlation(&[1.0]), None);
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
