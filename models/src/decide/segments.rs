//! The best segment size of one algorithm, over all sizes from 1 byte to the whole message.
//!
//! # Why the search is exact
//! The cost is a sawtooth in the segment size m_s, since n_s = ceil(m / m_s) jumps. There are at
//! most 2 sqrt(m) distinct n_s; the m_s with the same n_s form a *piece*, an interval of integers.
//! In a piece n_s is fixed, and a closed form is a sum and maximum of costs of one segment with
//! factors that are not negative. So
//! - where the costs rise with m_s or stay (Hockney, LogGP, and PLogP between most knots), the
//!   left end of the piece is its minimum;
//! - where noise makes a cost of PLogP fall between two knots, all costs are still linear there,
//!   so the form is convex, and a ternary search over the integers between the two knots finds
//!   its minimum. It may lie inside: a maximum of a falling and a rising line has it where they
//!   cross.
//!
//! A piece that begins at a falling range's end is begun by that range's own search, so the left
//! ends of pieces and the falling ranges cover every candidate for the minimum.

use records::Algorithm;

use super::DecideError;
use crate::{
    Point, Predictor,
    closed_forms::Shape,
    predict::{equal, look_up},
};

/// Largest message whose every segment size is tried: 2 million pieces, well below a second.
pub const AUTO_LIMIT: u64 = 1 << 40;

/// The segment size in bytes at which `algorithm` is cheapest, 0 where that is the whole message;
/// `None` where the algorithm is no candidate at any size.
///
/// Of equal times the one with the fewest segments is taken.
///
/// # Errors
/// There is no closed form, or the message is larger than [`AUTO_LIMIT`].
pub fn best_segment(
    predictor: &Predictor,
    point: Point,
    algorithm: Algorithm,
) -> Result<Option<u64>, DecideError> {
    let Point { procs, bytes, .. } = point;
    let (form, whole) = look_up(point, algorithm, 0)?;
    if bytes > AUTO_LIMIT {
        return Err(DecideError::TooLarge { bytes });
    }
    let network = predictor.network();
    let cost = |segment: u64| {
        let shape = Shape::new(procs, bytes, segment);
        form.seconds(network, &shape, predictor.forms())
    };
    let mut best: Option<(u64, f64)> = form.is_candidate(&whole).then(|| (0, cost(0)));
    let mut offer = |segment: u64| {
        let seconds = cost(segment);
        let better = best.is_none_or(|(_, least)| seconds < least && !equal(seconds, least));
        if better && form.is_candidate(&Shape::new(procs, bytes, segment)) {
            best = Some((segment, seconds));
        }
    };
    if form.segmented {
        for (first, last) in pieces(bytes) {
            offer(first);
            // The ranges ascend; those before this piece are skipped.
            let falling = network.falling();
            let from = falling.partition_point(|(_, end)| *end <= first);
            for &(start, end) in falling[from..].iter().take_while(|(start, _)| *start <= last) {
                offer(convex_minimum(start.max(first), end.min(last), cost));
            }
        }
    }
    Ok(best.map(|(segment, _)| segment))
}

/// The maximal intervals of segment sizes below `bytes` with the same number of segments, from
/// few segments to many.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let below = move |last: u64| (last > 0).then(|| (bytes.div_ceil(bytes.div_ceil(last)), last));
    let first = below(bytes.saturating_sub(1));
    std::iter::successors(first, move |(first, _)| below(first - 1))
}

/// An integer of `low..=high` at which a convex function is least.
fn convex_minimum(mut low: u64, mut high: u64, cost: impl Fn(u64) -> f64) -> u64 {
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
    use proptest::prelude::*;

    #[test]
    fn a_convex_minimum_is_found_at_the_ends_and_inside() {
        for wanted in 10..=30_u64 {
            let cost = |x: u64| (x as f64 - wanted as f64).abs();
            assert_eq!(convex_minimum(10, 30, cost), wanted);
        }
        assert_eq!(convex_minimum(7, 7, |_| 0.0), 7);
    }

    proptest! {
        #[test]
        fn pieces_cover_every_size_once_and_are_maximal(bytes in 0_u64..5000) {
            let mut next = bytes.saturating_sub(1);
            for (first, last) in pieces(bytes) {
                prop_assert_eq!(last, next);
                prop_assert!(first >= 1 && first <= last);
                let count = |size: u64| bytes.div_ceil(size);
                prop_assert_eq!(count(first), count(last));
                prop_assert!(first == 1 || count(first - 1) > count(first));
                next = first - 1;
            }
            prop_assert_eq!(next, 0);
            let root = (bytes as f64).sqrt();
            prop_assert!(pieces(bytes).count() as f64 <= 2.0 * root + 1.0);
        }
    }
}
