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
//!   of it in a piece, where it may lie inside. A bound of several pieces is given by costs that
//!   are nowhere higher and never fall.
//!
//! That bound is low by as much of the whole time as `high` exceeds `low`, although most of a long
//! message's time is the same whatever the segments. A flow takes A + (n_s - 1) B. By costs that are nowhere
//! higher, and shrink per byte, B / m_s is least at `high`; so no size takes less than A of `low` and
//! (m / `high` - 1) B of `high`, which is low by the start-up alone.
//! Up a tree dearer messages may come to a port in a better order: that is not thought of, so that a
//! reduction's size may take some 1e-4 more than the best.
//!
//! Sizes are searched in halves (of n_s, by its logarithm), and a half whose bound is not below
//! what is known is left out: some hundred evaluations instead of thousands. Where several
//! algorithms are to be compared, what is known of one limits the search of the others.
//!
//! # Elements
//! What is combined is combined element by element, so that a segment holds whole ones: sizes are
//! searched in elements then ([`records::Collective::element_bytes`]).

use records::Method;

use super::{
    convex::convex_minimum,
    error::{AUTO_LIMIT, DecideError},
};
use crate::{
    Point, Predictor,
    closed_forms::{CallShape, ClosedForm},
    parameters::Network,
    predict::{CostSource, Evaluation, PredictError, Spread, equal},
};

/// The segment size in bytes at which `method`, given without segments, is cheapest, 0 where that is the whole message;
/// `None` where it is no candidate at any size.
///
/// Of equal times the one with the fewest segments is taken.
///
/// # Errors
/// There is no closed form, as of the default and mock-ups, the algorithm is simulated, or the message is larger than [`AUTO_LIMIT`].
pub fn best_segment(
    predictor: &Predictor,
    point: Point,
    method: &Method,
) -> Result<Option<u64>, DecideError> {
    let predictor = predictor.at(point.layout);
    let evaluation = predictor.look_up_method(point, method)?;
    let form = match evaluation.source {
        CostSource::Form(form) => form,
        CostSource::Simulated(entry) => {
            let (collective, algorithm) = (point.collective, entry.algorithm);
            return Err(DecideError::Simulated { collective, algorithm });
        }
    };
    let mut search = Search::new(point, evaluation, form)?;
    search.look_around();
    search.search(f64::INFINITY);
    Ok(search.best.map(|(segment, _)| segment))
}

/// How far a search is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The best size may be wanted.
    Open,
    /// The method is surely no tie with the cheapest, whatever its segments.
    Apart,
    /// The best size is known.
    Done,
}

/// A search under way.
pub(super) struct Search<'a> {
    evaluation: Evaluation<'a>,
    form: &'static ClosedForm,
    /// Bytes of what a segment holds whole ones of; the message does, too.
    element: u64,
    pub(super) stage: Stage,
    /// Segment size and time.
    best: Option<(u64, f64)>,
    /// A time that some candidate has, found out of turn: it only says what can be left out.
    known: f64,
    /// Above it no time is of interest.
    limit: f64,
    /// Whether [`Search::look_around`] has been.
    looked_around: bool,
    /// Halves visited.
    halves: u32,
}

/// A search that has visited so many halves may have to visit thousands: a good size ends it sooner.
const MANY_HALVES: u32 = 100;

/// What is not decided by so many halves is as well searched.
const HALVES_TO_DECIDE: u32 = 60;

impl<'a> Search<'a> {
    /// Of a method that is found from a closed form.
    pub(super) fn new(
        point: Point,
        evaluation: Evaluation<'a>,
        form: &'static ClosedForm,
    ) -> Result<Self, DecideError> {
        if form.segmented && point.bytes > AUTO_LIMIT {
            return Err(DecideError::TooLarge { bytes: point.bytes });
        }
        let mut search = Search {
            evaluation,
            form,
            element: point.collective.element_bytes(point.bytes),
            stage: Stage::Open,
            best: None,
            known: f64::INFINITY,
            limit: f64::INFINITY,
            looked_around: false,
            halves: 0,
        };
        if evaluation.is_candidate() {
            search.best = Some((0, search.cost(0)));
        }
        Ok(search)
    }

    /// Whether there is anything to search.
    fn cuts(&self) -> bool {
        self.form.segmented && self.elements() > 1
    }

    /// The least time that is known of this method itself.
    pub(super) fn least(&self) -> f64 {
        self.best.map_or(f64::INFINITY, |(_, seconds)| seconds).min(self.known)
    }

    /// The time with the best size; infinite where that is not known, or there is none.
    pub(super) fn found(&self) -> f64 {
        match (self.stage, self.best) {
            (Stage::Done, Some((_, seconds))) => seconds,
            _ => f64::INFINITY,
        }
    }

    /// The best size, if its time is at most the limit; none where the method is surely no tie.
    pub(super) fn kept(&self, limit: f64) -> Option<u64> {
        let best = self.best.filter(|(_, seconds)| *seconds <= limit);
        best.filter(|_| self.stage != Stage::Apart).map(|(segment, _)| segment)
    }

    /// With the best size that is known.
    ///
    /// # Errors
    /// As [`Evaluation::spread`].
    pub(super) fn spread(&self) -> Result<Spread, PredictError> {
        let (segment, seconds) = self.best.unwrap_or((0, f64::INFINITY));
        let shape = self.evaluation.shape.cut(segment);
        Evaluation { shape, ..self.evaluation }.spread(seconds)
    }

    pub(super) fn elements(&self) -> u64 {
        self.evaluation.shape.whole_bytes() / self.element
    }

    pub(super) fn seconds_on(&self, network: &Network, shape: &CallShape) -> f64 {
        self.form.seconds(network, shape, self.evaluation.forms)
    }

    /// Of segments of so many elements.
    pub(super) fn cut(&self, segment: u64) -> CallShape {
        self.evaluation.shape.cut(segment * self.element)
    }

    fn cost(&self, segment: u64) -> f64 {
        self.seconds_on(&self.evaluation.set.network, &self.cut(segment))
    }

    /// Finds the best size, if that is not done; what takes longer than the limit may be left out.
    pub(super) fn search(&mut self, limit: f64) {
        if self.stage != Stage::Done && self.cuts() {
            self.limit = limit;
            self.all();
        }
        self.stage = Stage::Done;
    }

    /// Whether a few evaluations show that the method is no tie with the best one, whatever its
    /// segments; then it is [`Stage::Apart`].
    pub(super) fn is_surely_apart(&mut self, best: &Spread) -> bool {
        loop {
            let wanted = best.surely_apart_from(self.least(), self.evaluation.set);
            if wanted.is_finite() && self.surely_takes(wanted) {
                self.stage = Stage::Apart;
                return true;
            }
            if wanted.is_infinite() || self.looked_around || !self.cuts() {
                return false;
            }
            // More may be shown if a good size is known.
            self.look_around();
        }
    }

    /// Whether a few evaluations show that no size takes less, with all parameters at the cheaper ends of
    /// their intervals.
    fn surely_takes(&self, seconds: f64) -> bool {
        let whole = &self.evaluation.shape;
        let is_less = self.seconds_on(&self.evaluation.set.least, whole) < seconds;
        if self.evaluation.is_candidate() && is_less {
            return false;
        }
        !self.cuts() || self.halves_take((1, self.elements() - 1), seconds, &mut 0)
    }

    /// See [`Search::halves`]; there no cost falls.
    fn halves_take(&self, (low, high): (u64, u64), seconds: f64, visited: &mut u32) -> bool {
        *visited += 1;
        let fewest = self.elements().div_ceil(high);
        let bound = self.evaluation.shape.with_segments(fewest, low * self.element);
        let (border, set) = (self.border(low, high), self.evaluation.set);
        let of_flow = || self.flows_at_least(&set.least, &set.least_shrinking, (low, high));
        if self.seconds_on(&set.least, &bound) >= seconds
            || (border.is_some() && of_flow() >= seconds)
        {
            return true;
        }
        match border {
            Some(border) if *visited < HALVES_TO_DECIDE => {
                self.halves_take((border, high), seconds, visited)
                    && self.halves_take((low, border - 1), seconds, visited)
            }
            _ => false,
        }
    }

    /// Seconds that a flow takes at least with segments of `low` to `high` elements, by costs that rise with
    /// the size and by costs that shrink per byte; 0 of other forms.
    pub(super) fn flows_at_least(
        &self,
        rising: &Network,
        shrinking: &Network,
        (low, high): (u64, u64),
    ) -> f64 {
        let whole = &self.evaluation.shape;
        let [first, longest] =
            [low, high].map(|segment| whole.with_segments(1, segment * self.element));
        let segments = whole.bytes() / longest.segment_bytes();
        let Some(periods) = self.form.periods(shrinking, &longest, segments) else { return 0.0 };
        self.seconds_on(rising, &first) + periods
    }

    /// Where the sizes from `low` to `high` are cut in halves: the first of the upper one; none if all have
    /// the same number of segments.
    fn border(&self, low: u64, high: u64) -> Option<u64> {
        let [fewest, most] = [high, low].map(|segment| self.elements().div_ceil(segment));
        (fewest < most).then(|| {
            let middle = (fewest as f64 * most as f64).sqrt() as u64;
            self.elements().div_ceil(middle.clamp(fewest, most - 1))
        })
    }

    /// The best of a few sizes: which method to begin with.
    pub(super) fn glance(&mut self) {
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
    pub(super) fn look_around(&mut self) {
        self.looked_around = true;
        if !self.cuts() {
            return;
        }
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
        let shape = self.cut(segment);
        let seconds = self.seconds_on(&self.evaluation.set.network, &shape);
        match shape.suits(self.form.algorithm) {
            true => {
                self.known = self.known.min(seconds);
                seconds
            }
            false => f64::INFINITY,
        }
    }

    /// All sizes below the whole message, from few segments to many.
    fn all(&mut self) {
        let network = &self.evaluation.set.network;
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
    /// are linear, and bounded by costs that rise).
    fn halves(&mut self, low: u64, high: u64, falling: bool) {
        self.halves += 1;
        if self.halves > MANY_HALVES && !self.looked_around {
            self.look_around();
        }
        let (fewest, border) = (self.elements().div_ceil(high), self.border(low, high));
        let of = |network: &Network, segment: u64| {
            let shape = self.evaluation.shape.with_segments(fewest, segment * self.element);
            self.seconds_on(network, &shape)
        };
        let set = self.evaluation.set;
        let mut bound = if falling { of(&set.rising, low) } else { of(&set.network, low) };
        let most = self.known.min(self.limit);
        let is_above = |bound: f64| {
            (bound > most && !equal(bound, most))
                || self.best.is_some_and(|(_, least)| bound >= least || equal(bound, least))
        };
        match border {
            _ if is_above(bound) => {}
            Some(_) if is_above(self.flows_at_least(&set.rising, &set.shrinking, (low, high))) => {}
            Some(border) => {
                self.halves(border, high, falling);
                self.halves(low, border - 1, falling);
            }
            None => {
                let mut segment = low;
                if falling {
                    segment = convex_minimum(low, high, |segment| of(&set.network, segment));
                    bound = of(&set.network, segment);
                }
                self.offer(segment, bound);
            }
        }
    }

    fn offer(&mut self, segment: u64, seconds: f64) {
        let better = self.best.is_none_or(|(_, least)| seconds < least && !equal(seconds, least));
        let segment = segment * self.element;
        if better && self.evaluation.shape.cut(segment).suits(self.form.algorithm) {
            self.best = Some((segment, seconds));
        }
    }
}
