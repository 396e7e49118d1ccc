//! Choosing by expected times: of what is believed of every method at every point after all visits, the least.
//!
//! The strategy of `tune`, whose visits are few and uneven: they are made where they could change a decision. What
//! was seen at one point tells something of its neighbours ([`Belief`]), so that also a method seen once, or not at
//! all, has an expected time and a doubt. A choice by these has to be confirmed ([`evidence`](crate::evidence)).

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use records::{
    Collective, Layout, Method, Point,
    choices::{Chosen, TimedMethod},
};

use crate::{
    belief::Belief,
    constants::constants,
    harm,
    samples::Samples,
    visit_noise::VisitNoise,
    visits::{self, NoisyVisit},
};

/// What is believed of all methods at all points.
pub struct Beliefs {
    tracks: Vec<MethodTrack>,
    /// The methods of each point.
    points: BTreeMap<Point, Vec<TrackIndex>>,
    noise: VisitNoise,
}

/// A method at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrackIndex {
    /// Index of the method of one collective.
    pub track: usize,
    /// Index of the point among that method's.
    pub index: usize,
}

/// One method of one collective, before any observation.
#[derive(Debug, Clone)]
pub struct MethodPrior {
    pub method: Method,
    /// Of its times, at the points at which it is known.
    pub belief: Belief,
}

struct MethodTrack {
    method: Method,
    belief: Belief,
    /// How often each point was visited.
    visits: Vec<usize>,
    /// Where it was seen that the default runs the very same.
    is_default: Vec<bool>,
}

/// Which methods can be had at a point.
pub type Among<'a> = dyn Fn(Point, &Method) -> bool + 'a;

/// What can be loaded at a point, the default, and what is decided for.
struct Decided {
    point: Point,
    can_be_had: Vec<TrackIndex>,
    default: TrackIndex,
    decided: TrackIndex,
}

impl Beliefs {
    /// What is believed after `samples`. Of methods that are alike the first in `priors` is chosen: if noise chose,
    /// two runs would differ. `is_run_of` says whether what was seen to run at a point is this very method.
    pub fn new(
        priors: impl IntoIterator<Item = MethodPrior>,
        samples: &Samples,
        is_run_of: impl Fn(Point, &Method, &str) -> bool,
    ) -> Self {
        let noise = VisitNoise::new([samples]);
        let track = |prior| MethodTrack::new(prior, samples, &noise, &is_run_of);
        let tracks: Vec<MethodTrack> = priors.into_iter().map(track).collect();
        let mut points: BTreeMap<Point, Vec<TrackIndex>> = BTreeMap::new();
        for (track, of) in tracks.iter().enumerate() {
            for (index, &point) in of.belief.points().iter().enumerate() {
                points.entry(point).or_default().push(TrackIndex { track, index });
            }
        }
        Beliefs { tracks, points, noise }
    }

    /// All points, ascending, with the methods known there.
    pub fn points(&self) -> impl Iterator<Item = (Point, &[TrackIndex])> {
        self.points.iter().map(|(&point, candidates)| (point, candidates.as_slice()))
    }

    /// The points of each method, by the index of its track.
    pub fn tracks(&self) -> impl Iterator<Item = (usize, &[Point])> {
        self.tracks.iter().map(|track| track.belief.points()).enumerate()
    }

    /// Where the method is looked at.
    pub fn point(&self, one: TrackIndex) -> Point {
        self.tracks[one.track].belief.points()[one.index]
    }

    /// The default where that is the very same.
    pub fn method(&self, one: TrackIndex) -> &Method {
        if self.is_default(one) { &Method::Default } else { self.nominal_method(one) }
    }

    /// What was asked for, be it what the default runs.
    pub fn nominal_method(&self, one: TrackIndex) -> &Method {
        &self.tracks[one.track].method
    }

    /// Whether it was seen that the default runs the very same.
    pub fn is_default(&self, one: TrackIndex) -> bool {
        self.tracks[one.track].is_default[one.index]
    }

    /// The expected logarithm of its time in seconds.
    pub fn mean(&self, one: TrackIndex) -> f64 {
        self.tracks[one.track].belief.mean(one.index)
    }

    /// Variance of that logarithm.
    pub fn variance(&self, one: TrackIndex) -> f64 {
        self.tracks[one.track].belief.variance(one.index)
    }

    /// The expected time in seconds.
    pub fn seconds(&self, one: TrackIndex) -> f64 {
        self.mean(one).exp()
    }

    /// How often it was visited, or will have been.
    pub fn visits(&self, one: TrackIndex) -> usize {
        self.tracks[one.track].visits[one.index]
    }

    /// Whether it was visited.
    pub fn is_seen(&self, one: TrackIndex) -> bool {
        self.visits(one) > 0
    }

    /// Takes in that it will be visited once more: what is not known yet becomes less uncertain.
    pub fn expect_visit(&mut self, one: TrackIndex) {
        let noise = self.noise.variance(self.point(one).procs(), self.seconds(one), 1);
        let track = &mut self.tracks[one.track];
        track.belief.expect(one.index, noise);
        track.visits[one.index] += 1;
    }

    /// The methods that are known of at a point, the default among them.
    pub fn methods_at(&self, point: Point) -> impl Iterator<Item = &Method> {
        self.points.get(&point).into_iter().flatten().map(|&one| self.method(one))
    }

    /// What to load at every point at which the default was seen, ascending: of the methods seen there, what is
    /// decided for among these, unless one that was not seen is surely faster.
    pub fn choices(&self) -> Vec<Chosen> {
        self.choices_among(&|_, _| true)
    }

    /// What to load at every point at which the default was seen, ascending, where only the methods of `among` can be had
    /// beside it.
    pub fn choices_among(&self, among: &Among<'_>) -> Vec<Chosen> {
        self.to_load(among).into_iter().map(|one| self.choice(&one)).collect()
    }

    /// What to load at the points at which the default was not seen, above the least size at which it was, ascending:
    /// what is decided for by what is believed there, among the methods that can be had. What was seen there is not given
    /// up for what is only believed to be a little faster.
    pub fn interpolated_choices(&self, among: &Among<'_>) -> Vec<Chosen> {
        let mut least: BTreeMap<(Collective, Layout), u64> = BTreeMap::new();
        for Decided { point, .. } in self.to_load(&|_, _| false) {
            let least = least.entry(point.line()).or_insert(point.bytes);
            *least = point.bytes.min(*least);
        }
        let is_above =
            |point: Point| least.get(&point.line()).is_some_and(|least| *least < point.bytes);
        let unseen = self.points().filter(|(point, candidates)| {
            is_above(*point)
                && !candidates.iter().any(|&one| self.is_default(one) && self.is_seen(one))
        });
        let choice = |(point, candidates): (Point, &[TrackIndex])| {
            let can_be_had = self.can_be_had(point, candidates, among);
            let default = self.default(&can_be_had)?;
            let decided =
                self.decided_by_seen(&can_be_had).unwrap_or_else(|| self.decided(&can_be_had));
            Some(self.choice(&Decided { point, can_be_had, default, decided }))
        };
        unseen.filter_map(choice).collect()
    }

    fn choice(&self, &Decided { point, default, decided, .. }: &Decided) -> Chosen {
        let others = self.points[&point]
            .iter()
            .copied()
            .filter(|&one| self.method(one) != self.method(decided) && self.is_seen(one));
        let timed = others.map(|one| (one, self.seconds(one)));
        let next = timed.min_by(|(_, a), (_, b)| a.total_cmp(b));
        let next = next.map(|(one, seconds)| TimedMethod::new(self.method(one).clone(), seconds));
        let doubt = (self.variance(default) + self.variance(decided)).sqrt();
        let (seconds, default_seconds) = (self.seconds(decided), self.seconds(default));
        let method = self.method(decided).clone();
        let doubt = Some(doubt);
        Chosen { doubt, next, ..Chosen::measured(point, method, seconds, default_seconds) }
    }

    fn can_be_had(
        &self,
        point: Point,
        candidates: &[TrackIndex],
        among: &Among<'_>,
    ) -> Vec<TrackIndex> {
        let can_be = |one: &TrackIndex| self.is_default(*one) || among(point, self.method(*one));
        candidates.iter().copied().filter(can_be).collect()
    }

    /// The default and what is decided for, among the methods that can be had at a point at which the default was
    /// seen. What was measured is not given up for what is only believed to be a little faster, nor one method for another at some
    /// sizes amid others unless that is proven.
    fn to_load(&self, among: &Among<'_>) -> Vec<Decided> {
        let at = |(point, candidates): (Point, &[TrackIndex])| {
            let can_be_had = self.can_be_had(point, candidates, among);
            let seen: Vec<_> =
                can_be_had.iter().copied().filter(|&one| self.is_seen(one)).collect();
            let default = self.default(&seen)?;
            let decided = self.decided_by_seen(&can_be_had)?;
            Some(Decided { point, can_be_had, default, decided })
        };
        let mut all: Vec<Decided> = self.points().filter_map(at).collect();
        self.join_over_islands(&mut all);
        all
    }

    /// Whether a method is surely slower than the default at a point, by what is believed of both; also where nothing is
    /// known of it.
    pub fn is_surely_slower(&self, point: Point, method: &Method) -> bool {
        let Some(candidates) = self.points.get(&point) else { return true };
        let of_method = candidates.iter().copied().find(|&one| self.method(one) == method);
        let Some((default, one)) = self.default(candidates).zip(of_method) else { return true };
        let doubt = (self.variance(default) + self.variance(one)).sqrt();
        self.mean(one) - self.mean(default) > constants().surely * doubt
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
    pub fn surely_faster(&self, than: TrackIndex, others: &[TrackIndex]) -> Option<TrackIndex> {
        let is_surely_faster = |&one: &TrackIndex| {
            let doubt = (self.variance(than) + self.variance(one)).sqrt();
            let lead = self.mean(than) - self.mean(one) - constants().alike.ln_1p();
            lead > constants().surely * doubt
        };
        let faster = others.iter().copied().filter(is_surely_faster);
        faster.min_by(|&a, &b| self.mean(a).total_cmp(&self.mean(b)))
    }

    /// The default, under the name under which most is known of it.
    pub fn default(&self, candidates: &[TrackIndex]) -> Option<TrackIndex> {
        let named = candidates.iter().copied().filter(|&one| self.is_default(one));
        named.min_by(|&a, &b| self.variance(a).total_cmp(&self.variance(b)))
    }

    /// The fastest by what is believed; the default, unless others are faster by more than what counts as alike.
    /// Not of nothing.
    pub fn decided(&self, candidates: &[TrackIndex]) -> TrackIndex {
        let default = self.default(candidates);
        let is_faster = |&one: &TrackIndex| {
            default.is_none_or(|default| {
                !self.is_default(one)
                    && self.mean(default) - self.mean(one) > constants().alike.ln_1p()
            })
        };
        let faster = || candidates.iter().copied().filter(is_faster);
        let least = faster().map(|one| self.mean(one)).fold(f64::INFINITY, f64::min);
        let alike = faster().find(|&one| self.mean(one) <= least + constants().alike.ln_1p());
        alike.or(default).expect("a point is made with its first candidate")
    }

    /// One method over a range of sizes unless a change is proven: where the choices of a layout leave a method for a
    /// few sizes and come back to it, it holds there, too, unless it is surely slower or by more than what is no harm.
    /// `decided` is ascending.
    fn join_over_islands(&self, decided: &mut [Decided]) {
        for sizes in decided.chunk_by_mut(|one, next| one.point.line() == next.point.line()) {
            // What costs least first: each of these makes the islands fewer.
            while let Some((island, method)) = self.least_proven(sizes) {
                for one in &mut sizes[island] {
                    if let Some(other) = self.with(one, &method) {
                        one.decided = other;
                    }
                }
            }
        }
    }

    /// The island that costs least to give up among those that nothing proves, with the method around it.
    fn least_proven(&self, sizes: &[Decided]) -> Option<(Range<usize>, Method)> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        let same = |a: &Decided, b: &Decided| self.method(a.decided) == self.method(b.decided);
        for run in sizes.chunk_by(same) {
            let first = runs.last().map_or(0, |last| last.end);
            runs.push(first..first + run.len());
        }
        let method = |run: &Range<usize>| self.method(sizes[run.start].decided);
        let islands = runs.windows(3).filter_map(|three| {
            let [before, island, after] = three else { return None };
            let around = method(before);
            if around != method(after) || *around == Method::Default {
                return None;
            }
            let lost = self.lost(&sizes[island.clone()], around)?;
            Some((lost, island.clone(), around.clone()))
        });
        let (_, island, around) = islands.min_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
        Some((island, around))
    }

    /// What is expected to be lost, as a logarithm on average, by taking a method at these sizes; nothing where it cannot
    /// be had at all of them, or loses surely, or so much that it would do harm.
    fn lost(&self, sizes: &[Decided], method: &Method) -> Option<f64> {
        let (mut sum, mut variances) = (0.0, 0.0);
        for one in sizes {
            let other = self.with(one, method)?;
            sum += self.mean(other) - self.mean(one.decided);
            variances += self.variance(other) + self.variance(one.decided);
        }
        let lost = sum / sizes.len() as f64;
        let is_proven = sum > constants().surely * f64::sqrt(variances);
        (!is_proven && lost <= harm::TOLERANCE.ln_1p()).then_some(lost)
    }

    /// A method at a point, where it can be had there.
    fn with(&self, at: &Decided, method: &Method) -> Option<TrackIndex> {
        at.can_be_had.iter().copied().find(|&one| self.method(one) == method)
    }
}

impl MethodTrack {
    fn new(
        MethodPrior { method, mut belief }: MethodPrior,
        samples: &Samples,
        noise: &VisitNoise,
        is_run_of: impl Fn(Point, &Method, &str) -> bool,
    ) -> Self {
        let points = belief.points().to_vec();
        let ran = points.iter().filter_map(|&point| samples.get(point, &method)?.ran());
        let runs: BTreeSet<&str> = ran.collect();
        let mut seen = Vec::new();
        let mut visits = vec![0; points.len()];
        let mut is_default = vec![method == Method::Default; points.len()];
        for (index, &point) in points.iter().enumerate() {
            let default = samples.get(point, &Method::Default);
            // What a method ran at one point it would run at any other.
            let is_run = |ran| runs.contains(ran) || is_run_of(point, &method, ran);
            let same = default.filter(|times| times.ran().is_some_and(is_run));
            is_default[index] |= same.is_some();
            let Some(times) = same.or_else(|| samples.get(point, &method)) else { continue };
            let medians = times.medians().filter(|seconds| *seconds > 0.0);
            let of_visit =
                |seconds| (noise.variance(point.procs(), seconds, 1), noise.stray_share(seconds));
            let of_point = NoisyVisit::of_point(index, medians, of_visit);
            visits[index] = of_point.len();
            seen.extend(of_point);
        }
        visits::take_in(&mut belief, &mut seen);
        MethodTrack { method, belief, visits, is_default }
    }
}
