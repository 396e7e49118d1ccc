//! The best segment size of one algorithm, over all sizes from 1 byte to the whole message.
//!
//! # Why the search is exact
//! The cost is a sawtooth in the segment size m_s, since n_s = ceil(m / m_s) jumps. The m_s with
//! the same n_s form a *piece*, an interval of integers; there are at most 2 sqrt(m) of them. A
//! closed form is a sum and maximum of costs of one segment with factors that are not negative
//! and rise with n_s. So, for sizes from `low` to `high` (n_s from n(high) to n(low) segments),
//! - where no cost falls between the two (Hockney, LogGP, and PLogP between most knots), nothing
//!   there is cheaper than n(high) segments of `low` bytes would be, and the left end of a piece
//!   is its minimum;
//! - where noise makes a cost of PLogP fall between two knots, all costs are still linear there.
//!   With the number of segments held the form is convex, so that a binary search finds the least
//!   of it: for n(high) a bound of all, and in a piece, where it may lie inside, the minimum.
//!
//! Sizes are searched in halves (of n_s, by its logarithm), and a half whose bound is not below
//! what is known is left out: some hundred evaluations instead of thousands. Where several
//! algorithms are to be compared, what is known of one limits the search of the others: see
//! [`best_of_all`].
//!
//! # Elements
//! What is combined is combined element by element, so that a segment holds whole ones: sizes are
//! searched in elements then ([`records::Collective::element_bytes`]).

use records::{Algorithm, Method};

use super::error::{AUTO_LIMIT, DecideError};
use crate::{
    Point, Predictor,
    closed_forms::{CallShape, ClosedForm},
    parameters::Network,
    predict::{CostSource, Evaluation, equal},
};

/// The segment size in bytes at which `algorithm` is cheapest, 0 where that is the whole message;
/// `None` where the algorithm is no candidate at any size.
///
/// Of equal times the one with the fewest segments is taken.
///
/// # Errors
/// There is no closed form, the algorithm is simulated, or the message is larger than [`AUTO_LIMIT`].
pub fn best_segment(
    predictor: &Predictor,
    point: Point,
    algorithm: Algorithm,
) -> Result<Option<u64>, DecideError> {
    best_segment_of(predictor, point, &Method::Own { algorithm, segment_bytes: 0 })
}

/// As [`best_segment`], of a method, which is given without segments.
///
/// # Errors
/// As [`best_segment`]; the default and mock-ups have no closed form.
pub fn best_segment_of(
    predictor: &Predictor,
    point: Point,
    method: &Method,
) -> Result<Option<u64>, DecideError> {
    let mut search = Search::new(predictor, point, method)?;
    if search.cuts() {
        search.look_around();
        search.all();
    }
    Ok(search.best.map(|(segment, _)| segment))
}

/// The best segment size of each of several methods, which are given without segments and have
/// closed forms; `None` where the method is no candidate, or surely so much more expensive than
/// another of them that it is no tie.
///
/// # Errors
/// As [`best_segment_of`].
pub(super) fn best_of_all(
    predictor: &Predictor,
    point: Point,
    methods: &[Method],
) -> Result<Vec<Option<u64>>, DecideError> {
    let searches = methods.iter().map(|method| Search::new(predictor, point, method));
    let mut searches = searches.collect::<Result<Vec<_>, _>>()?;
    for search in &mut searches {
        search.glance();
    }
    let mut order: Vec<usize> = (0..searches.len()).collect();
    order.sort_by(|a, b| searches[*a].least().total_cmp(&searches[*b].least()));
    let mut known = f64::INFINITY;
    for (rank, &index) in order.iter().enumerate() {
        let search = &mut searches[index];
        search.limit = search.limit.min(predictor.tie_limit(known));
        if search.cuts() {
            // The one that looks cheapest limits all others, many of which end at once.
            if rank == 0 {
                search.look_around();
            }
            search.all();
        }
        known = known.min(search.least());
    }
    let limit = predictor.tie_limit(known);
    let kept = |search: &Search| search.best.filter(|(_, seconds)| *seconds <= limit);
    Ok(searches.iter().map(|search| kept(search).map(|(segment, _)| segment)).collect())
}

/// A search under way.
struct Search<'a> {
    predictor: &'a Predictor,
    network: &'a Network,
    form: &'static ClosedForm,
    whole: CallShape,
    /// Bytes of what a segment holds whole ones of; the message does, too.
    element: u64,
    /// Segment size and time.
    best: Option<(u64, f64)>,
    /// A time that some candidate has, met out of turn: it only says what can be left out.
    known: f64,
    /// Above it no time is of interest.
    limit: f64,
    /// Whether [`Search::look_around`] has been.
    looked_around: bool,
    /// Halves met.
    halves: u32,
}

/// A search that has met so many halves may have to meet thousands: a good size ends it sooner.
const MANY_HALVES: u32 = 100;

impl<'a> Search<'a> {
    fn new(predictor: &'a Predictor, point: Point, method: &Method) -> Result<Self, DecideError> {
        let Evaluation { way, shape: whole, set, .. } = predictor.look_up_method(point, method)?;
        let form = match way {
            CostSource::Form(form) => form,
            CostSource::Simulated(entry) => {
                let (collective, algorithm) = (point.collective, entry.algorithm);
                return Err(DecideError::Simulated { collective, algorithm });
            }
        };
        if point.bytes > AUTO_LIMIT {
            return Err(DecideError::TooLarge { bytes: point.bytes });
        }
        let (network, known, limit) = (&set.network, f64::INFINITY, f64::INFINITY);
        let element = point.collective.element_bytes(point.bytes);
        let (looked_around, halves, best) = (false, 0, None);
        let mut search = Search {
            predictor,
            network,
            form,
            whole,
            element,
            best,
            known,
            limit,
            looked_around,
            halves,
        };
        if form.is_candidate(&whole) {
            search.best = Some((0, search.cost(0)));
        }
        Ok(search)
    }

    /// Whether there is anything to search.
    fn cuts(&self) -> bool {
        self.form.segmented && self.elements() > 1
    }

    /// The least time that is known of this method itself.
    fn least(&self) -> f64 {
        self.best.map_or(f64::INFINITY, |(_, seconds)| seconds).min(self.known)
    }

    fn elements(&self) -> u64 {
        self.whole.whole_bytes() / self.element
    }

    fn seconds(&self, shape: &CallShape) -> f64 {
        self.form.seconds(self.network, shape, self.predictor.forms())
    }

    /// Of segments of so many elements.
    fn cost(&self, segment: u64) -> f64 {
        self.seconds(&self.whole.cut(segment * self.element))
    }

    /// The best of a few sizes: which method to begin with.
    fn glance(&mut self) {
        if self.cuts() {
            let most = self.elements();
            for segment in (0..u64::BITS / 3).map(|place| 1 << (3 * place)) {
                if segment < most {
                    self.note(segment);
                }
            }
        }
    }

    /// A good size, for the search to begin with: the best power of two, and what is around it.
    fn look_around(&mut self) {
        self.looked_around = true;
        let (elements, mut near) = (self.elements(), 1);
        let mut least = f64::INFINITY;
        for segment in (0..u64::BITS).map(|bit| 1 << bit).take_while(|size| *size < elements) {
            let seconds = self.note(segment);
            if seconds < least {
                (near, least) = (segment, seconds);
            }
        }
        let (low, high) = (near.div_ceil(2), (2 * near).min(elements - 1));
        let segment = convex_minimum(low, high, |segment| self.cost(segment));
        self.note(segment);
        // The sizes that just suffice for their number of segments are the cheap ones.
        self.note(elements.div_ceil(elements.div_ceil(segment)));
    }

    fn note(&mut self, segment: u64) -> f64 {
        let shape = self.whole.cut(segment * self.element);
        let seconds = self.seconds(&shape);
        match self.form.is_candidate(&shape) {
            true => {
                self.known = self.known.min(seconds);
                seconds
            }
            false => f64::INFINITY,
        }
    }

    /// All sizes below the whole message, from few segments to many.
    fn all(&mut self) {
        let network = self.network;
        let mut high = self.elements() - 1;
        for &(start, end) in network.falling().iter().rev() {
            // The sizes in elements that lie in it; there may be none.
            let (first, last) = (start.div_ceil(self.element).max(1), end / self.element);
            if first > high {
                continue;
            }
            if last < high {
                self.halves(last + 1, high, false);
            }
            if first <= last.min(high) {
                self.halves(first, last.min(high), true);
            }
            high = first - 1;
        }
        if high > 0 {
            self.halves(1, high, false);
        }
    }

    /// Searches the sizes from `low` to `high` elements, over which all costs rise (or, `falling`,
    /// are linear).
    fn halves(&mut self, low: u64, high: u64, falling: bool) {
        self.halves += 1;
        if self.halves > MANY_HALVES && !self.looked_around {
            self.look_around();
        }
        let fewest = self.elements().div_ceil(high);
        let most = self.elements().div_ceil(low);
        let with_fewest =
            |segment| self.seconds(&self.whole.with_segments(fewest, segment * self.element));
        let segment = if falling { convex_minimum(low, high, with_fewest) } else { low };
        let bound = with_fewest(segment);
        if fewest == most {
            self.offer(segment, bound);
        } else if bound <= self.known.min(self.limit)
            && self.best.is_none_or(|(_, least)| bound < least && !equal(bound, least))
        {
            let middle = (fewest as f64 * most as f64).sqrt() as u64;
            let middle = middle.clamp(fewest, most - 1);
            let border = self.elements().div_ceil(middle);
            self.halves(border, high, falling);
            self.halves(low, border - 1, falling);
        }
    }

    fn offer(&mut self, segment: u64, seconds: f64) {
        let better = self.best.is_none_or(|(_, least)| seconds < least && !equal(seconds, least));
        let segment = segment * self.element;
        if better && self.form.is_candidate(&self.whole.cut(segment)) {
            self.best = Some((segment, seconds));
        }
    }
}

/// An integer of `low..=high` at which a convex function is least.
fn convex_minimum(mut low: u64, mut high: u64, cost: impl Fn(u64) -> f64) -> u64 {
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
