//! Which message sizes to measure: dense where the time bends, sparse where it is a line (as MPIBlib's
//! adaptive sizes).

use crate::{Error, Result};

/// Where sizes are looked for, and how densely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeRange {
    /// The least size, in bytes.
    pub first: u64,
    /// The greatest size, in bytes.
    pub last: u64,
    /// The least distance of two sizes, in bytes.
    pub stride: u64,
    /// The greatest difference between a time and the line through the two before it, as a part of that
    /// line's value.
    pub greatest_difference: f64,
    /// The most sizes.
    pub most: usize,
}

impl SizeRange {
    /// What MPIBlib takes where nothing else is asked for, beside the range itself.
    pub const USUAL: SizeRange =
        SizeRange { first: 0, last: 0, stride: 64, greatest_difference: 0.1, most: 100 };

    fn check(&self) -> Result<()> {
        let problem = if self.first > self.last {
            format!("sizes from {} to {} bytes; expected the lesser first", self.first, self.last)
        } else if self.stride == 0 {
            "sizes 0 bytes apart; expected at least 1".into()
        } else if self.greatest_difference.is_nan() || self.greatest_difference <= 0.0 {
            let given = self.greatest_difference;
            format!("a greatest difference of {given}; expected one above 0, such as 0.1")
        } else if self.most < 2 {
            format!("at most {} sizes; expected at least 2", self.most)
        } else {
            return Ok(());
        };
        Err(Error::Refused(problem))
    }
}

/// Goes from the least size to the greatest. From a size on the line through the last two is followed in
/// strides that double; where a time is off the line, the stride is halved until it is on it, or is the
/// least.
#[derive(Debug, Clone)]
pub struct AdaptiveSizes {
    range: SizeRange,
    /// All that were measured, ascending, with their seconds.
    measured: Vec<(u64, f64)>,
    /// How far we have come: places in `measured`, the last two on the line.
    reached: Vec<u64>,
    stride: u64,
}

impl AdaptiveSizes {
    /// Nothing is measured yet.
    ///
    /// # Errors
    /// There is no such range.
    pub fn new(range: SizeRange) -> Result<Self> {
        range.check()?;
        Ok(AdaptiveSizes { range, measured: Vec::new(), reached: Vec::new(), stride: range.stride })
    }

    /// The size to measure next; nothing when there are enough.
    pub fn next_size(&mut self) -> Option<u64> {
        loop {
            let size = self.candidate()?;
            match self.seconds(size) {
                Some(seconds) => self.judge(size, seconds),
                None => return (self.measured.len() < self.range.most).then_some(size),
            }
        }
    }

    /// Takes what a size's exchange took, in seconds.
    pub fn record(&mut self, size: u64, seconds: f64) {
        let place = self.measured.partition_point(|(other, _)| *other < size);
        self.measured.insert(place, (size, seconds));
    }

    fn candidate(&self) -> Option<u64> {
        let Some(&reached) = self.reached.last() else { return Some(self.range.first) };
        let next = reached.saturating_add(self.stride).min(self.range.last);
        (reached < self.range.last).then_some(next)
    }

    fn seconds(&self, size: u64) -> Option<f64> {
        let place = self.measured.binary_search_by_key(&size, |(other, _)| *other).ok()?;
        Some(self.measured[place].1)
    }

    /// Goes on from a size that is measured, or back to one that is nearer.
    fn judge(&mut self, size: u64, seconds: f64) {
        let least = self.range.stride;
        if let [.., before, last] = self.reached[..]
            && let Some((first, second)) = self.seconds(before).zip(self.seconds(last))
        {
            let slope = (second - first) / (last - before) as f64;
            let expected = second + slope * (size - last) as f64;
            let is_off =
                (seconds - expected).abs() > self.range.greatest_difference * expected.abs();
            if is_off && size - last > least {
                self.stride = ((size - last) / 2).max(least);
                return;
            }
            self.stride = if is_off { least } else { self.stride.saturating_mul(2) };
        }
        self.reached.push(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(range: SizeRange, time: impl Fn(u64) -> f64) -> Vec<u64> {
        let mut adaptive = AdaptiveSizes::new(range).unwrap();
        while let Some(size) = adaptive.next_size() {
            adaptive.record(size, time(size));
        }
        adaptive.measured.iter().map(|(size, _)| *size).collect()
    }

    const RANGE: SizeRange = SizeRange { last: 64 << 10, ..SizeRange::USUAL };

    #[test]
    fn on_a_line_strides_double() {
        let found = sizes(RANGE, |size| 1e-5 + 1e-9 * size as f64);
        assert_eq!(found[..5], [0, 64, 128, 256, 512]);
        assert_eq!(found.last(), Some(&(64 << 10)));
        assert!(found.len() < 16, "{found:?}");
    }

    /// A protocol that costs 30 us from 20,000 bytes on: its sizes are found to the least stride.
    #[test]
    fn a_step_is_found_to_the_least_stride() {
        let step = |size: u64| 1e-5 + 1e-9 * size as f64 + if size >= 20_000 { 3e-5 } else { 0.0 };
        let found = sizes(RANGE, step);
        let place = found.partition_point(|size| *size < 20_000);
        assert!(found[place] - found[place - 1] <= 64, "{found:?}");
        assert!(found.contains(&(64 << 10)) && found.len() < 60, "{found:?}");
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn no_more_sizes_than_asked_for() {
        let wild = |size: u64| if (size / 64).is_multiple_of(2) { 1.0 } else { 5.0 };
        assert_eq!(sizes(RANGE, wild).len(), 100);
        let few = SizeRange { most: 2, ..RANGE };
        assert_eq!(sizes(few, wild), [0, 64]);
        let one = SizeRange { first: 8, last: 8, ..RANGE };
        assert_eq!(sizes(one, wild), [8]);
        let near = SizeRange { first: 8, last: 9, ..RANGE };
        assert_eq!(sizes(near, wild), [8, 9]);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (range, part) in [
            (SizeRange { first: 9, last: 8, ..RANGE }, "lesser first"),
            (SizeRange { stride: 0, ..RANGE }, "apart"),
            (SizeRange { greatest_difference: 0.0, ..RANGE }, "greatest difference"),
            (SizeRange { most: 1, ..RANGE }, "at most 1"),
        ] {
            let error = AdaptiveSizes::new(range).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
