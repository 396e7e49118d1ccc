//! The least of a convex function of integers.

/// An integer of `low..=high` at which a convex function is least.
pub(super) fn convex_minimum(mut low: u64, mut high: u64, cost: impl Fn(u64) -> f64) -> u64 {
    // As a rule it only rises, or only falls.
    if low < high && cost(low) <= cost(low + 1) {
        return low;
    }
    if low < high && cost(high - 1) > cost(high) {
        return high;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if cost(middle) <= cost(middle + 1) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convex_minimum_is_found_at_the_ends_and_inside() {
        for wanted in 10..=30_u64 {
            let cost = |x: u64| (x as f64 - wanted as f64).abs();
            assert_eq!(convex_minimum(10, 30, cost), wanted);
        }
        assert_eq!(convex_minimum(7, 7, |_| 0.0), 7);
    }
}
