/// Ascending message sizes, and how many of them are at most a given one: in a few instructions
/// without a branch, since a prediction consists of little else.
///
/// The first bits of a floating point number, its exponent and a sixteenth of an octave, tell where
/// to look; what is left to search has the same length everywhere, so that the processor guesses
/// no branch wrong. It is one size where all are as far apart as the sizes of a calibration, and
/// all of them, as in any binary search, at the worst.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Starts {
    /// With `width` infinities behind them.
    starts: Vec<f64>,
    /// Per bucket, how many starts lie in buckets before it.
    before: Vec<u32>,
    /// The most starts that lie in one bucket.
    width: usize,
}

impl Starts {
    pub(super) fn new(mut starts: Vec<f64>) -> Self {
        let buckets = starts.last().map_or(0, |last| bucket(*last) + 1);
        let before: Vec<u32> = (0..=buckets)
            .map(|here| starts.partition_point(|start| bucket(*start) < here) as u32)
            .collect();
        let width = before.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) as usize;
        starts.extend(std::iter::repeat_n(f64::INFINITY, width));
        Starts { starts, before, width }
    }

    /// How many starts are at most `bytes`.
    #[inline]
    pub(super) fn up_to(&self, bytes: f64) -> usize {
        let before = self.before[bucket(bytes).min(self.before.len() - 1)] as usize;
        let near = &self.starts[before..before + self.width];
        before + near.partition_point(|start| *start <= bytes)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = f64> {
        self.starts[..self.starts.len() - self.width].iter().copied()
    }
}

/// Rises with the size. The size 0 is in the first bucket.
#[inline]
fn bucket(bytes: f64) -> usize {
    const BITS: u32 = 4;
    let first = |size: f64| size.to_bits() >> (f64::MANTISSA_DIGITS - 1 - BITS);
    first(bytes + 1.0).saturating_sub(first(1.0)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn at_the_edges() {
        assert_eq!(Starts::new(Vec::new()).up_to(1.0), 0);
        let starts = Starts::new(vec![0.0, 8.0]);
        assert_eq!([0.0, 7.9, 8.0, 1e18].map(|bytes| starts.up_to(bytes)), [1, 1, 2, 2]);
        assert_eq!(starts.all().collect::<Vec<_>>(), [0.0, 8.0]);
    }

    #[test]
    fn sizes_as_a_calibration_has_them_need_one_comparison() {
        let doubled = (0..30).map(|shift| f64::from(1 << shift));
        assert_eq!(Starts::new(std::iter::once(0.0).chain(doubled).collect()).width, 1);
    }

    proptest! {
        #[test]
        fn they_are_counted(
            sizes in proptest::collection::btree_set(
                prop_oneof![0..40_u64, 0..5_000_000_u64, 0..1_u64 << 45], 0..60
            ),
            bytes in prop_oneof![0.0..50.0_f64, 0.0..6e6, 0.0..1e15],
        ) {
            let all: Vec<f64> = sizes.iter().map(|size| *size as f64).collect();
            let starts = Starts::new(all.clone());
            for bytes in all.iter().copied().chain([bytes, bytes.floor()]) {
                let wanted = all.iter().filter(|start| **start <= bytes).count();
                prop_assert_eq!(starts.up_to(bytes), wanted);
            }
        }
    }
}
