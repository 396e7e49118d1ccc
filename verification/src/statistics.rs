//! Robust summaries: medians and quantiles, never means of raw times.

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

/// The geometric mean of positive values; nothing of nothing.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
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
    fn the_geometric_mean_of_a_ratio_and_its_inverse_is_one() {
        assert!((geometric_mean(&[4.0, 0.25]).unwrap() - 1.0).abs() < 1e-12);
    }
}
