//! What is left of the p-values of many tests.

/// P-values of many tests, corrected so that of those called significant at a level no greater
/// share is expected to be false (Benjamini and Hochberg 1995). In the order given.
pub fn false_discovery_control(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[b].total_cmp(&p_values[a]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut least: f64 = 1.0;
    for (above, index) in order.into_iter().enumerate() {
        let rank = p_values.len() - above;
        least = least.min(p_values[index] * p_values.len() as f64 / rank as f64);
        corrected[index] = least;
    }
    corrected
}

/// P-values of many tests, corrected so that none of those called significant at a level is false
/// but with a probability of at most that level (Holm 1979). In the order given.
pub fn family_wise_control(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut greatest: f64 = 0.0;
    for (below, index) in order.into_iter().enumerate() {
        let left = (p_values.len() - below) as f64;
        greatest = greatest.max((p_values[index] * left).min(1.0));
        corrected[index] = greatest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1, stats.false_discovery_control of the example of Benjamini and Hochberg.
    #[test]
    fn false_discoveries_are_controlled_as_by_the_reference() {
        let p = [0.041, 0.008, 0.039, 0.001, 0.042, 0.06, 0.074, 0.205, 0.34];
        let wanted = [0.0756, 0.036, 0.0756, 0.009, 0.0756, 0.09, 0.095_142_857, 0.230_625, 0.34];
        for (found, wanted) in false_discovery_control(&p).into_iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-6, "{found}, not {wanted}");
        }
        assert!(false_discovery_control(&[]).is_empty());
    }

    /// Worked by hand: each times the number of those that are
    /// not smaller, never less than the one before.
    #[test]
    fn the_family_wise_error_is_controlled_as_by_the_reference() {
        let p = [0.01, 0.02, 0.03, 0.04, 0.05, 0.001];
        let wanted = [0.05, 0.08, 0.09, 0.09, 0.09, 0.006];
        for (found, wanted) in family_wise_control(&p).into_iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-12, "{found}, not {wanted}");
        }
        assert!(family_wise_control(&[]).is_empty());
    }
}
