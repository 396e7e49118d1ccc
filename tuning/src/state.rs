//! Which measurements could still change a decision.
//!
//! Of every method at every point it is believed something (`Belief`): first what the models
//! predict, then what was observed there and nearby. From that follows the *expected regret* of a
//! decision: how much slower it is expected to be than what might turn out better. Measured next
//! is what takes away most regret for its cost; a method that has no chance any more is not
//! measured again, a switching point is closed in on from both sides, and the measuring ends when
//! the regret left is small or the time is used up.

mod batch;
mod interpolated;
mod islands;
mod models;
mod prior;
mod visits;

use std::collections::{BTreeMap, BTreeSet};

pub use self::batch::Batch;
use self::{islands::Decided, prior::Priors, visits::NoisyVisit};
pub use crate::costs::spent_seconds;
use records::{Collective, Method, Point, choices::Chosen, plan::Cell, summary::Regret};
use statrs::distribution::{Continuous, ContinuousCDF, Normal};
use verification::samples::Samples;

use crate::{
    Weights, belief::Belief, constants::constants, costs::JobCosts, plan::Expectation,
    visit_noise::VisitNoise,
};

/// The state of the knowledge about a grid of cells.
pub struct TuningState {
    tracks: Vec<MethodTrack>,
    /// The methods of each point.
    points: BTreeMap<Point, Vec<TrackIndex>>,
    noise: VisitNoise,
    /// Cells that are to be seen at least once, if there is time.
    wanted: BTreeSet<u32>,
    weights: Weights,
    costs: JobCosts,
    /// A cell costs as much as any other, whatever it takes.
    counts_cells: bool,
    /// What no method takes less than, as the logarithm of the seconds.
    limits: BTreeMap<Point, f64>,
    /// What was measured so far took so many seconds.
    spent: f64,
}

/// A method at a point: one of a track's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TrackIndex {
    /// Index of the method's track in [`TuningState`].
    track: usize,
    /// Index of the point in the track's belief, cells and visits.
    index: usize,
}

/// One method of one collective.
struct MethodTrack {
    method: Method,
    belief: Belief,
    /// Index of each point's cell, and how often it was visited.
    cells: Vec<u32>,
    visits: Vec<usize>,
    /// Where it was seen that the default runs the very same.
    is_default: Vec<bool>,
}

impl TuningState {
    /// What is known of `cells` after `samples`.
    pub fn new(cells: &[Cell], expected: Expectation<'_>, samples: &Samples) -> Self {
        let priors = Priors::new(cells, expected, samples);
        let mut by_method: BTreeMap<(Collective, &Method), Vec<u32>> = BTreeMap::new();
        for (cell, index) in cells.iter().zip(0..) {
            by_method.entry((cell.point.collective, &cell.method)).or_default().push(index);
        }
        let mut state = TuningState {
            tracks: Vec::new(),
            points: BTreeMap::new(),
            noise: VisitNoise::new([samples]),
            wanted: BTreeSet::new(),
            weights: Weights::default(),
            costs: JobCosts::expected(0.0),
            counts_cells: false,
            limits: BTreeMap::new(),
            spent: 0.0,
        };
        for indices in by_method.into_values() {
            let track = state.track(cells, indices, &priors, samples);
            for (index, &point) in track.belief.points().iter().enumerate() {
                state
                    .points
                    .entry(point)
                    .or_default()
                    .push(TrackIndex { track: state.tracks.len(), index });
            }
            state.tracks.push(track);
        }
        state
    }

    /// One method of one collective: the cells at these indices.
    fn track(
        &self,
        cells: &[Cell],
        indices: Vec<u32>,
        priors: &Priors,
        samples: &Samples,
    ) -> MethodTrack {
        let of_track = indices.iter().map(|&index| &cells[index as usize]);
        let method = cells[indices[0] as usize].method.clone();
        let points: Vec<Point> = of_track.map(|cell| cell.point).collect();
        let mut belief = priors.belief(&indices, points.clone());
        let ran = points.iter().filter_map(|&point| samples.get(point, &method)?.ran());
        let runs: BTreeSet<&str> = ran.collect();
        let mut seen = Vec::new();
        let mut visits = vec![0; points.len()];
        let mut is_default = vec![method == Method::Default; points.len()];
        for (index, &point) in points.iter().enumerate() {
            let default = samples.get(point, &Method::Default);
            // What a method ran at one point it would run at any other.
            let is_run = |ran| runs.contains(ran) || libraries::is_run_of(point, &method, ran);
            let same = default.filter(|times| times.ran().is_some_and(is_run));
            is_default[index] |= same.is_some();
            let Some(times) = same.or_else(|| samples.get(point, &method)) else { continue };
            let medians = times.medians().filter(|seconds| *seconds > 0.0);
            let noise = |seconds| {
                (self.noise.variance(point.procs(), seconds, 1), self.noise.stray_share(seconds))
            };
            let of_point = NoisyVisit::of_point(index, medians, noise);
            visits[index] = of_point.len();
            seen.extend(of_point);
        }
        visits::take_in(&mut belief, &mut seen);
        MethodTrack { method, belief, cells: indices, visits, is_default }
    }

    /// Asks that these cells (by index) be seen at least once, if there is time when nothing is in
    /// doubt any more: what others decided for, so that it can be told what that costs.
    #[must_use]
    pub fn with_wanted_cells(self, cells: impl IntoIterator<Item = u32>) -> Self {
        TuningState { wanted: cells.into_iter().collect(), ..self }
    }

    /// Says what jobs cost beside their calls.
    #[must_use]
    pub fn with_costs(self, costs: JobCosts) -> Self {
        TuningState { costs, ..self }
    }

    /// Says that a cell costs as much as any other, as where a record is replayed, and not the time that it takes.
    #[must_use]
    pub fn with_cells_counted(self) -> Self {
        TuningState { counts_cells: true, ..self }
    }

    /// Says how many seconds the batches so far took.
    #[must_use]
    pub fn with_spent(self, spent: f64) -> Self {
        TuningState { spent, ..self }
    }

    /// Says below how many seconds no method can get at a point: what is as fast as that needs no rival.
    ///
    /// Limits rest on the calibration. Where a method of a collective was seen to be faster, those of
    /// this collective are not believed.
    #[must_use]
    pub fn with_limits(self, limits: &BTreeMap<Point, f64>) -> Self {
        let sound = limits.iter().filter(|(_, limit)| **limit > 0.0);
        let limits: BTreeMap<Point, f64> =
            sound.map(|(&point, limit)| (point, limit.ln())).collect();
        let is_below = |&one: &TrackIndex| {
            let TrackIndex { track, index } = one;
            let belief = &self.tracks[track].belief;
            let limit = limits.get(&belief.points()[index]);
            self.is_seen(one)
                && limit.is_some_and(|limit| belief.mean(index) < limit - constants().alike)
        };
        let points = self.points.iter();
        let passed: BTreeSet<Collective> = points
            .filter(|(_, candidates)| candidates.iter().any(is_below))
            .map(|(point, _)| point.collective)
            .collect();
        let believed = limits.into_iter().filter(|(point, _)| !passed.contains(&point.collective));
        TuningState { limits: believed.collect(), ..self }
    }

    /// Says how much each point matters: the regret is weighted by it.
    #[must_use]
    pub fn with_weights(self, weights: Weights) -> Self {
        TuningState { weights, ..self }
    }

    /// The method decided for at each point: of those that are faster than the default, and not only
    /// alike, by what was observed of both there and nearby, the one with the least expected time;
    /// else the default. How sure that is, is what confirms it to say.
    pub fn decisions(&self) -> impl Iterator<Item = (Point, &Method)> {
        self.points
            .iter()
            .map(|(&point, candidates)| (point, self.method(self.decided(candidates))))
    }

    /// The default where that is the very same.
    fn method(&self, one: TrackIndex) -> &Method {
        if self.is_default(one) { &Method::Default } else { &self.tracks[one.track].method }
    }

    /// What to load at every point at which the default was seen, ascending: of the methods seen there, what is
    /// decided for among these, unless one that was not seen is surely faster.
    pub fn choices(&self) -> Vec<Chosen> {
        self.choices_among(&|_, _| true)
    }

    /// The same where only these methods can be had beside the default.
    pub fn choices_among(&self, among: &dyn Fn(Point, &Method) -> bool) -> Vec<Chosen> {
        let choice = |(point, default, decided)| self.timed_choice(point, default, decided);
        self.to_load(among).map(choice).collect()
    }

    fn timed_choice(&self, point: Point, default: TrackIndex, decided: TrackIndex) -> Chosen {
        let method = self.method(decided).clone();
        let (seconds, default_seconds) = (self.seconds(decided), self.seconds(default));
        Chosen::measured(point, method, seconds, default_seconds)
    }

    /// The standard deviation of the logarithm of what a choice is believed to gain.
    pub fn doubts(&self) -> BTreeMap<Point, f64> {
        self.doubts_among(&|_, _| true)
    }

    /// The same of [`choices_among`](Self::choices_among).
    pub fn doubts_among(&self, among: &dyn Fn(Point, &Method) -> bool) -> BTreeMap<Point, f64> {
        let doubt = |(point, default, decided)| (point, self.doubt(default, decided));
        self.to_load(among).map(doubt).collect()
    }

    fn doubt(&self, default: TrackIndex, decided: TrackIndex) -> f64 {
        let variance =
            |TrackIndex { track, index }: TrackIndex| self.tracks[track].belief.variance(index);
        (variance(default) + variance(decided)).sqrt()
    }

    /// At each of [`choices`](Self::choices) the method believed to be the next fastest of those seen
    /// there, with its time in seconds; nothing where no other was seen.
    pub fn runners_up(&self) -> BTreeMap<Point, (Method, f64)> {
        let runner_up = |(point, _, decided): (Point, TrackIndex, TrackIndex)| {
            let others = self.points[&point]
                .iter()
                .copied()
                .filter(|&one| self.method(one) != self.method(decided) && self.is_seen(one));
            let timed = others.map(|one| (one, self.seconds(one)));
            let (one, seconds) = timed.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
            Some((point, (self.method(one).clone(), seconds)))
        };
        self.to_load(&|_, _| true).filter_map(runner_up).collect()
    }

    /// The default and what is decided for, among the methods that can be had at a point at which the default was
    /// seen. What was measured is not given up for what is only believed to be a little faster, nor one method for another at some
    /// sizes amid others unless that is proven.
    fn to_load(
        &self,
        among: &dyn Fn(Point, &Method) -> bool,
    ) -> impl Iterator<Item = (Point, TrackIndex, TrackIndex)> {
        let at = |(&point, candidates): (&Point, &Vec<TrackIndex>)| {
            let of = |one: &TrackIndex| self.is_default(*one) || among(point, self.method(*one));
            let can_be_had: Vec<_> = candidates.iter().copied().filter(of).collect();
            let seen: Vec<_> =
                can_be_had.iter().copied().filter(|&one| self.is_seen(one)).collect();
            let default = self.default(&seen)?;
            let decided = self.decided_by_seen(&can_be_had)?;
            Some(Decided { point, can_be_had, default, decided })
        };
        let mut all: Vec<Decided> = self.points.iter().filter_map(at).collect();
        self.join_over_islands(&mut all);
        all.into_iter().map(|Decided { point, default, decided, .. }| (point, default, decided))
    }

    /// The methods that are known of at a point, the default among them.
    pub fn methods_at(&self, point: Point) -> impl Iterator<Item = &Method> {
        self.points.get(&point).into_iter().flatten().map(|&one| self.method(one))
    }

    /// Whether a method is surely slower than the default at a point, by what is believed of both; also where nothing is
    /// known of it.
    pub fn is_surely_slower(&self, point: Point, method: &Method) -> bool {
        let Some(candidates) = self.points.get(&point) else { return true };
        let of_method = candidates.iter().copied().find(|&one| self.method(one) == method);
        let Some((default, one)) = self.default(candidates).zip(of_method) else { return true };
        let of = |TrackIndex { track, index }: TrackIndex| {
            let belief = &self.tracks[track].belief;
            (belief.mean(index), belief.variance(index))
        };
        let ((default, doubt), (mean, variance)) = (of(default), of(one));
        mean - default > constants().surely * (doubt + variance).sqrt()
    }

    fn is_seen(&self, TrackIndex { track, index }: TrackIndex) -> bool {
        self.tracks[track].visits[index] > 0
    }

    /// What is decided for among those seen at their point, unless another is surely faster; nothing where none
    /// was seen.
    fn decided_by_seen(&self, candidates: &[TrackIndex]) -> Option<TrackIndex> {
        let (seen, unseen) =
            candidates.iter().copied().partition::<Vec<_>, _>(|&one| self.is_seen(one));
        let of_seen = (!seen.is_empty()).then(|| self.decided(&seen))?;
        Some(self.surely_faster(of_seen, &unseen).unwrap_or(of_seen))
    }

    /// The fastest of those that are surely faster than this one by what is believed of both.
    fn surely_faster(
        &self,
        TrackIndex { track, index }: TrackIndex,
        others: &[TrackIndex],
    ) -> Option<TrackIndex> {
        let belief = |track: usize| &self.tracks[track].belief;
        let (mean, variance) = (belief(track).mean(index), belief(track).variance(index));
        let is_surely_faster = |&TrackIndex { track, index }: &TrackIndex| {
            let doubt = (variance + belief(track).variance(index)).sqrt();
            let lead = mean - belief(track).mean(index) - constants().alike.ln_1p();
            lead > constants().surely * doubt
        };
        let mean = |&TrackIndex { track, index }: &TrackIndex| belief(track).mean(index);
        let faster = others.iter().copied().filter(is_surely_faster);
        faster.min_by(|a, b| mean(a).total_cmp(&mean(b)))
    }

    /// The regret of these decisions: the expected gain of what might be better, relative; its mean
    /// is weighted.
    pub fn regret(&self) -> Regret {
        let worst = |candidates: &Vec<TrackIndex>| {
            let others = self.challengers(candidates);
            others.map(|(_, regret)| regret).fold(0.0, f64::max)
        };
        let (mut sum, mut weights, mut greatest) = (0.0, 0.0, 0.0_f64);
        for (&point, candidates) in &self.points {
            let (regret, weight) = (worst(candidates), self.weights.at(point));
            sum += weight * regret;
            weights += weight;
            greatest = greatest.max(regret);
        }
        let mean = if weights > 0.0 { sum / weights } else { 0.0 };
        Regret { mean, greatest }
    }

    fn seconds(&self, one: TrackIndex) -> f64 {
        self.tracks[one.track].belief.mean(one.index).exp()
    }

    /// The default, under the name under which most is known of it.
    fn default(&self, candidates: &[TrackIndex]) -> Option<TrackIndex> {
        let variance =
            |&TrackIndex { track, index }: &TrackIndex| self.tracks[track].belief.variance(index);
        let named = candidates.iter().copied().filter(|&one| self.is_default(one));
        named.min_by(|a, b| variance(a).total_cmp(&variance(b)))
    }

    /// The fastest by what is believed; the default, unless others are faster by more than what counts as alike.
    fn decided(&self, candidates: &[TrackIndex]) -> TrackIndex {
        let mean = |TrackIndex { track, index }: TrackIndex| self.tracks[track].belief.mean(index);
        let default = self.default(candidates);
        let is_faster = |&one: &TrackIndex| {
            default.is_none_or(|default| {
                !self.is_default(one) && mean(default) - mean(one) > constants().alike.ln_1p()
            })
        };
        let faster = || candidates.iter().copied().filter(is_faster);
        let least = faster().map(mean).fold(f64::INFINITY, f64::min);
        // In the order of the methods' names.
        let alike = faster().find(|&one| mean(one) <= least + constants().alike.ln_1p());
        alike.or(default).expect("a point is made with its first candidate")
    }

    fn is_default(&self, TrackIndex { track, index }: TrackIndex) -> bool {
        self.tracks[track].is_default[index]
    }

    /// The other candidates, each with the regret of not taking it: the expected gain, where it is
    /// one, of it over the decided method, relative to that one's time, as far as it goes beyond what is
    /// alike.
    fn challengers<'s>(
        &'s self,
        candidates: &'s [TrackIndex],
    ) -> impl Iterator<Item = (TrackIndex, f64)> + 's {
        let decided = self.decided(candidates);
        let (at, best) = (decided.index, &self.tracks[decided.track].belief);
        let is_default = self.is_default(decided);
        // Nothing gains more over a method that was seen than what that is above the limit.
        let limit = self.limits.get(&best.points()[at]).filter(|_| self.is_seen(decided));
        let room = limit.map_or(f64::INFINITY, |limit| best.mean(at) - limit);
        let room = (room - constants().alike).max(0.0);
        let others = candidates
            .iter()
            .filter(move |&&other| other != decided && !(is_default && self.is_default(other)));
        others.map(move |&other| {
            let (index, belief) = (other.index, &self.tracks[other.track].belief);
            let lead = best.mean(at) - belief.mean(index) - constants().alike.ln_1p();
            let spread = (best.variance(at) + belief.variance(index)).sqrt();
            (other, expected_gain(lead, spread).min(room))
        })
    }
}

/// E[max(0, X)] for a normal X.
fn expected_gain(mean: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return mean.max(0.0);
    }
    let normal = Normal::standard();
    let z = mean / deviation;
    deviation * normal.pdf(z) + mean * normal.cdf(z)
}
