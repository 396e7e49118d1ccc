//! Which message sizes are left where there are too many.

/// Every second size, the first and the last kept.
pub fn every_second(sizes: &[u64]) -> Vec<u64> {
    let last = sizes.len().saturating_sub(1);
    sizes
        .iter()
        .enumerate()
        .filter(|(index, _)| (last - index).is_multiple_of(2) || *index == 0)
        .map(|(_, &size)| size)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_ends() {
        assert_eq!(every_second(&[1, 2, 4, 8]), [1, 2, 8]);
        assert_eq!(every_second(&[1, 2, 4]), [1, 4]);
        assert_eq!(every_second(&[1, 2]), [1, 2]);
        assert_eq!(every_second(&[1]), [1]);
    }
}
