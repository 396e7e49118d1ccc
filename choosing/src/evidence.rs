//! What pairs of jobs show: at which sizes a method that they loaded is confirmed to be faster than the default.
//!
//! The sample is a pair of jobs, one as it is and one with the file loaded. What is tested is a *run*: all
//! neighbouring sizes of a layout at which one method was loaded, together; and each size by itself. A run shows a
//! gain of short calls long before one of its sizes does; a size shows one that the noise of the others hides.
//!
//! Of what all tests together call faster, no greater share than half of [`LEVEL`] is expected to be wrong (Benjamini
//! and Hochberg 1995); where nothing is faster, that is also the probability that anything is called so. Runs have
//! four fifths of it, as most gains are theirs, sizes by themselves the rest. Intervals are widened as much (Benjamini
//! and Yekutieli 2005), so that what is confirmed is exactly that whose interval lies above 1.
//!
//! One method holds over a range unless a change is proven: what lies between confirmed sizes of one method belongs to
//! them, unless it was shown to be slower there.

use std::{collections::BTreeMap, ops::Range};

use records::{
    Method, Point,
    calibration::Estimate,
    choices::Chosen,
    confirmed::{MIN_PAIRS, PairedSpeedUp},
};
use statistics::{PairedJobs, false_discovery_control, mean};

use crate::pairs::PairedTimes;

/// Share of the intervals that may not hold the truth, half of it on either side.
pub const LEVEL: f64 = 0.05;
/// Of it, what runs have. With three pairs of jobs a run must be 4.8 standard errors above 1, by half of it 6.2.
const SHARE_OF_RUNS: f64 = 0.8;

/// What the jobs show of a point.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// What was loaded is faster, by the evidence of its range.
    Faster(PairedSpeedUp),
    /// It lies between confirmed sizes of this method, and does not seem faster by itself, or was timed too seldom.
    Between(Method, PairedSpeedUp),
    /// It is slower: how many times as fast as the default.
    Slower(f64),
    /// Neither, though there were pairs of jobs enough: how many times as fast as the default it seems.
    Open(f64),
    /// There were too few pairs of jobs.
    TooFewPairs,
}

impl PairedTimes {
    fn is_timed(&self) -> bool {
        is_enough(&self.speed_ups())
    }

    fn seems_faster(&self) -> bool {
        let jobs = self.speed_ups();
        is_enough(&jobs) && jobs.ratio().is_some_and(|ratio| ratio > 1.0)
    }

    /// Whether it is slower than the default, surely by itself.
    fn is_slower(&self) -> bool {
        let jobs = self.speed_ups();
        let speed_up = jobs.estimate(1.0 - 2.0 * LEVEL);
        is_enough(&jobs) && speed_up.is_some_and(|speed_up| speed_up.high < 1.0)
    }

    /// Whether sizes of one layout have the same method.
    fn goes_on_with(&self, next: &Self) -> bool {
        let of = |one: &Self| (one.point.line(), one.method.clone());
        of(self) == of(next)
    }
}

/// How much faster jobs are, with its interval at a confidence; nothing of too few pairs of jobs.
fn speed_up(jobs: &PairedJobs, confidence: f64) -> Option<PairedSpeedUp> {
    let Estimate { value, low, high } = jobs.estimate(confidence).filter(|_| is_enough(jobs))?;
    let pairs = jobs.count() as u32;
    Some(PairedSpeedUp { pairs, speed_up: value, interval: [low, high] })
}

/// A point's speed-up by itself, with its interval (95 %); nothing of too few pairs of jobs.
pub fn speed_up_alone(point: &PairedTimes) -> Option<PairedSpeedUp> {
    speed_up(&point.speed_ups(), 1.0 - LEVEL)
}

/// The geometric mean over points of their speed-ups, as one ratio for each turn of jobs. A turn that lacks some of
/// the points counts by how much it differs from the others at those that it has; one that lacks most does not count.
fn together<'a>(points: impl Iterator<Item = &'a PairedTimes>) -> PairedJobs {
    let timed: Vec<(&PairedTimes, f64)> = points
        .filter(|point| point.is_timed())
        .filter_map(|point| {
            Some((point, mean(&point.gains().map(|(_, gain)| gain).collect::<Vec<_>>())?))
        })
        .collect();
    let means: Vec<f64> = timed.iter().map(|(_, mean)| *mean).collect();
    let Some(whole) = mean(&means) else { return PairedJobs::default() };
    let mut turns: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (point, mean) in &timed {
        for (turn, gain) in point.gains() {
            turns.entry(turn).or_default().push(gain - mean);
        }
    }
    let complete = turns.into_values().filter(|here| 2 * here.len() >= timed.len());
    let ratios = complete.filter_map(|here| Some(whole + mean(&here)?));
    PairedJobs::from_logarithms(ratios.collect())
}

/// The geometric mean over points of their speed-ups with its interval (95 %), and how many points were timed often
/// enough to tell; nothing of too few pairs of jobs.
pub fn mean_speed_up<'a>(
    points: impl Iterator<Item = &'a PairedTimes> + Clone,
) -> Option<(PairedSpeedUp, usize)> {
    let mean = speed_up(&together(points.clone()), 1.0 - LEVEL)?;
    Some((mean, points.filter(|point| point.is_timed()).count()))
}

/// What the jobs show of each point; `points` ascending, all that were decided on. `is_ruled_out` says whether a method
/// cannot be loaded at a point: it is surely slower than the default by what was measured before, or nothing loads it there.
pub fn shown(points: &[PairedTimes], is_ruled_out: &dyn Fn(Point, &Method) -> bool) -> Vec<Shown> {
    let mut shown: Vec<Shown> = points.iter().map(alone).collect();
    let runs = runs(points);
    let tested = Tested::new(points, &runs);
    let mut found: Vec<FoundRange> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let parts = run.clone().filter(|&index| !points[index].is_slower()).collect::<Vec<_>>();
        for part in parts.chunk_by(|one, next| one + 1 == *next) {
            found.extend(tested.confirmed(number, part));
        }
    }
    for range in join(points, &tested, found, is_ruled_out) {
        for index in range.first..=range.last {
            let is_loaded = points[index].method == points[range.first].method;
            shown[index] = match is_loaded && points[index].seems_faster() {
                true => Shown::Faster(range.speed_up),
                false => Shown::Between(points[range.first].method.clone(), range.speed_up),
            };
        }
    }
    shown
}

impl Shown {
    /// Leaves of a choice what the jobs show of it: what they confirm, and else the default. Gives the method that was
    /// given up for the default.
    pub fn apply_to(&self, choice: &mut Chosen) -> Option<Method> {
        let kept = match self {
            Shown::Faster(_) => return None,
            Shown::Between(method, of_range) => {
                if choice.method != *method {
                    choice.seconds = choice.without_seconds() / of_range.speed_up;
                }
                method.clone()
            }
            Shown::Slower(_) | Shown::Open(_) | Shown::TooFewPairs => Method::Default,
        };
        let before = std::mem::replace(&mut choice.method, kept);
        (choice.method == Method::Default && before != Method::Default).then_some(before)
    }
}

/// Before points support each other.
fn alone(point: &PairedTimes) -> Shown {
    let jobs = point.speed_ups();
    match jobs.ratio().filter(|_| is_enough(&jobs)) {
        Some(ratio) if point.is_slower() => Shown::Slower(ratio),
        Some(ratio) => Shown::Open(ratio),
        None => Shown::TooFewPairs,
    }
}

/// Neighbouring sizes of a layout at which one method was loaded, as indices.
fn runs(points: &[PairedTimes]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut first = 0;
    for run in points.chunk_by(PairedTimes::goes_on_with) {
        if run[0].method != Method::Default {
            runs.push(first..first + run.len());
        }
        first += run.len();
    }
    runs
}

/// Tests of one kind, all together.
struct Family {
    /// What is faster.
    faster: Vec<bool>,
    /// Of the intervals of what is.
    confidence: f64,
}

impl Family {
    /// Of p-values; nothing where too little was timed for a test. `level` is of both sides together.
    fn new(p_values: &[Option<f64>], level: f64) -> Self {
        let made: Vec<f64> = p_values.iter().copied().flatten().collect();
        let mut corrected = false_discovery_control(&made).into_iter();
        let is_faster = |p: &Option<f64>| {
            p.and_then(|_| corrected.next()).is_some_and(|corrected| corrected <= level / 2.0)
        };
        let faster: Vec<bool> = p_values.iter().map(is_faster).collect();
        let found = faster.iter().filter(|is_faster| **is_faster).count();
        let confidence = 1.0 - level * found as f64 / made.len().max(1) as f64;
        Family { faster, confidence }
    }
}

/// The tests of all runs and sizes together.
struct Tested<'a> {
    points: &'a [PairedTimes],
    runs: Family,
    alone: Family,
}

/// Sizes that are confirmed together, from the first to the last.
struct FoundRange {
    first: usize,
    last: usize,
    /// Those by which they are.
    timed: Vec<usize>,
    speed_up: PairedSpeedUp,
    confidence: f64,
}

impl<'a> Tested<'a> {
    fn new(points: &'a [PairedTimes], runs: &[Range<usize>]) -> Self {
        let of_run = |run: &Range<usize>| {
            let jobs = together(points[run.clone()].iter());
            is_enough(&jobs).then(|| jobs.p_value_above(1.0))
        };
        // What is alone in its run is tested as that.
        let is_alone = |index: usize| {
            let run = runs.iter().find(|run| run.contains(&index));
            let timed = run.map(|run| points[run.clone()].iter().filter(|point| point.is_timed()));
            timed.is_none_or(|timed| timed.count() < 2)
        };
        let of_point = |(index, point): (usize, &PairedTimes)| {
            let jobs = point.speed_ups();
            let is_tested = is_enough(&jobs) && !is_alone(index);
            is_tested.then(|| jobs.p_value_above(1.0))
        };
        let [of_runs, of_sizes] = [SHARE_OF_RUNS, 1.0 - SHARE_OF_RUNS].map(|share| share * LEVEL);
        let runs = Family::new(&runs.iter().map(of_run).collect::<Vec<_>>(), of_runs);
        let alone =
            Family::new(&points.iter().enumerate().map(of_point).collect::<Vec<_>>(), of_sizes);
        Tested { points, runs, alone }
    }

    /// What of a part of a run is confirmed: all of it together, else between those that are by themselves.
    fn confirmed(&self, run: usize, part: &[usize]) -> Option<FoundRange> {
        let timed = part.iter().copied().filter(|&index| self.points[index].is_timed());
        let confidence = self.runs.confidence;
        let whole = self.runs.faster[run].then(|| self.range(timed.collect(), confidence));
        let alone = part.iter().copied().filter(|&index| self.alone.faster[index]);
        whole.flatten().or_else(|| self.range(alone.collect(), self.alone.confidence))
    }

    /// The range of these points, if they are faster together; its ends must seem so themselves.
    fn range(&self, mut timed: Vec<usize>, confidence: f64) -> Option<FoundRange> {
        let seems_faster = |index: &usize| self.points[*index].seems_faster();
        let first = timed.iter().position(seems_faster)?;
        let last = timed.iter().rposition(seems_faster)?;
        timed = timed[first..=last].to_vec();
        let speed_up = self.speed_up(&timed, confidence)?;
        Some(FoundRange { first: timed[0], last: *timed.last()?, timed, speed_up, confidence })
    }

    fn speed_up(&self, timed: &[usize], confidence: f64) -> Option<PairedSpeedUp> {
        let jobs = together(timed.iter().map(|&index| &self.points[index]));
        speed_up(&jobs, confidence).filter(|found| found.interval[0] > 1.0)
    }
}

/// Whether so many pairs of jobs can show anything.
pub(crate) fn is_enough(jobs: &PairedJobs) -> bool {
    jobs.count() >= MIN_PAIRS as usize
}

/// Ranges of one method with nothing confirmed between them are one, unless the method was shown to be slower
/// there.
fn join(
    points: &[PairedTimes],
    tested: &Tested<'_>,
    found: Vec<FoundRange>,
    is_slower: &dyn Fn(Point, &Method) -> bool,
) -> Vec<FoundRange> {
    let mut joined: Vec<FoundRange> = Vec::new();
    for next in found {
        let Some(last) = joined.last_mut() else {
            joined.push(next);
            continue;
        };
        let (before, after) = (&points[last.last], &points[next.first]);
        let is_ruled_out = |between: &PairedTimes| {
            let was_loaded = between.method == before.method;
            is_slower(between.point, &before.method) || was_loaded && between.is_slower()
        };
        let timed = [last.timed.clone(), next.timed.clone()].concat();
        let is_one = before.goes_on_with(after)
            && !points[last.last + 1..next.first].iter().any(is_ruled_out);
        let confidence = last.confidence.max(next.confidence);
        match tested.speed_up(&timed, confidence).filter(|_| is_one) {
            Some(speed_up) => {
                *last =
                    FoundRange { first: last.first, last: next.last, timed, speed_up, confidence };
            }
            None => joined.push(next),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
