//! Means and medians of the first one, two, three, ... values.

use crate::summaries::{mean, median_of_sorted, standard_deviation};

/// The mean after each value.
pub fn means(values: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let after = |(index, value): (usize, &f64)| {
        sum += value;
        sum / (index + 1) as f64
    };
    values.iter().enumerate().map(after).collect()
}

/// The median after each value.
pub fn medians(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = Vec::with_capacity(values.len());
    let after = |value: &f64| {
        let place = sorted.partition_point(|other| other.total_cmp(value).is_lt());
        sorted.insert(place, *value);
        median_of_sorted(&sorted)
    };
    values.iter().filter_map(after).collect()
}

/// The standard deviation over the mean; infinite of fewer than two values.
pub fn variation(values: &[f64]) -> f64 {
    match standard_deviation(values).zip(mean(values)) {
        Some((deviation, mean)) => deviation / mean,
        None => f64::INFINITY,
    }
}
