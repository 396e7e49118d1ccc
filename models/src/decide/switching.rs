//! Switching points: the message sizes, to the byte, at which the decision changes.
//!
//! # Why none is missed
//! Costs over the message size are sawtooths where messages are cut into segments of a given size:
//! the number of segments jumps one byte behind every multiple of it. Between these jumps, and
//! between the knots of the parameters (at m and, for splitted-binary, at m / 2), a closed form of
//! the paper is a sum and maximum of lines, so it is convex. In such a stretch a method that is the
//! cheapest at both ends stays it if all others are lines there, and a convex function is a line
//! if its middle lies on the chord. A stretch that this does not settle is halved, down to
//! neighbouring bytes.

use std::ops::RangeInclusive;

use records::{Algorithm, Collective, Method};

use super::{DecideError, seconds_of};
use crate::{Point, Predictor, predict::equal};

/// Most jumps of a number of segments over the range of sizes.
const MAX_JUMPS: u64 = 1 << 20;

/// A range of message sizes with one decision; it ends where the next begins.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchingRange {
    /// Its first message size.
    pub from_bytes: u64,
    /// The cheapest method. A segment of at least the message is none.
    pub method: Method,
}

/// All switching points of the decision among `methods` over the sizes `bytes`, as the ranges
/// between them, ascending; what is decided at a size is what
/// [`decide_among`](super::decide_among) decides, but for the segment sizes that exceed it.
///
/// # Errors
/// The model is none of the paper's (the refined forms have other pieces), a method has no closed
/// form, none is a candidate somewhere, or segments are so small that there are more than 2^20.
pub fn switching_points(
    predictor: &Predictor,
    (collective, procs): (Collective, u32),
    methods: &[Method],
    bytes: RangeInclusive<u64>,
) -> Result<Vec<SwitchingRange>, DecideError> {
    if predictor.model().evaluator().follows_schedules() {
        return Err(DecideError::Pieces { model: predictor.model() });
    }
    let finder = Finder { predictor, collective, procs, methods };
    let (first, last) = (*bytes.start(), *bytes.end());
    let mut stretches: Vec<(u64, usize)> = Vec::new();
    let starts = finder.breaks(first, last)?;
    let ends = starts.iter().skip(1).map(|start| start - 1).chain([last]);
    for ends in starts.iter().zip(ends).map(|(&start, end)| [start, end]) {
        let [low, high] = [finder.costs(ends[0])?, finder.costs(ends[1])?];
        finder.settle((ends[0], &low), (ends[1], &high), &mut stretches)?;
    }
    stretches.dedup_by_key(|(_, winner)| *winner);
    let stretch = |(from_bytes, winner): (u64, usize)| SwitchingRange {
        from_bytes,
        method: methods[winner].clone(),
    };
    Ok(stretches.into_iter().map(stretch).collect())
}

struct Finder<'a> {
    predictor: &'a Predictor,
    collective: Collective,
    procs: u32,
    methods: &'a [Method],
}

impl Finder<'_> {
    /// Where convex stretches may begin: ascending, `first` among them.
    fn breaks(&self, first: u64, last: u64) -> Result<Vec<u64>, DecideError> {
        let mut breaks = vec![first, 1, 2, 3];
        for knot in self.predictor.knots() {
            // A knot ends one stretch and begins the next; as half of an odd message, too.
            let twice = knot.saturating_mul(2);
            breaks.extend([knot, knot.saturating_add(1), twice, twice.saturating_add(1)]);
        }
        for method in self.methods {
            let segment = method.segment_bytes();
            if segment == 0 {
                continue;
            }
            if last / segment > MAX_JUMPS {
                return Err(DecideError::SmallSegments { segment_bytes: segment, bytes: last });
            }
            breaks.extend((1..=last / segment).map(|count| (count * segment).saturating_add(1)));
        }
        breaks.retain(|at| (first..=last).contains(at));
        breaks.sort_unstable();
        breaks.dedup();
        Ok(breaks)
    }

    fn costs(&self, bytes: u64) -> Result<Vec<f64>, DecideError> {
        let point = Point::flat(self.collective, self.procs, bytes);
        seconds_of(self.predictor, point, self.methods)
    }

    fn winner(&self, bytes: u64, costs: &[f64]) -> Result<usize, DecideError> {
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let point = Point::flat(self.collective, self.procs, bytes);
        costs
            .iter()
            .position(|seconds| seconds.is_finite() && equal(*seconds, least))
            .ok_or(DecideError::NoCandidate { point, reason: "none of the methods is one there" })
    }

    /// Appends the changes in a convex stretch with these ends.
    fn settle(
        &self,
        (first, low): (u64, &[f64]),
        (last, high): (u64, &[f64]),
        found: &mut Vec<(u64, usize)>,
    ) -> Result<(), DecideError> {
        let winners = [self.winner(first, low)?, self.winner(last, high)?];
        if last - first <= 1 {
            found.extend([(first, winners[0]), (last, winners[1])]);
            return Ok(());
        }
        let middle = first + (last - first) / 2;
        let between = self.costs(middle)?;
        let part = (middle - first) as f64 / (last - first) as f64;
        let on_chord = |index: usize| {
            let chord = low[index] + part * (high[index] - low[index]);
            let never = low[index].is_infinite() && between[index].is_infinite();
            index == winners[0] || never || equal(between[index], chord)
        };
        if winners[0] == winners[1] && (0..low.len()).all(on_chord) {
            found.push((first, winners[0]));
            return Ok(());
        }
        self.settle((first, low), (middle, &between), found)?;
        self.settle((middle, &between), (last, high), found)
    }
}

/// The methods of these algorithms ([`Predictor::methods`]) with these segment sizes, a method once;
/// unsegmented ones first.
///
/// # Errors
/// The model does not know an algorithm.
pub fn methods(
    predictor: &Predictor,
    collective: Collective,
    algorithms: &[Algorithm],
    segments: &[u64],
) -> Result<Vec<Method>, DecideError> {
    let mut methods = Vec::new();
    let kinds = algorithms.iter().flat_map(|&one| predictor.methods(collective, one));
    for method in kinds {
        let segmented = predictor.segmented(collective, &method)?;
        let sizes = if segmented { segments } else { &[0] };
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable_by_key(|size| (*size != 0, std::cmp::Reverse(*size)));
        sizes.dedup();
        methods.extend(sizes.into_iter().map(|size| method.clone().with_segment(size)));
    }
    Ok(methods)
}
