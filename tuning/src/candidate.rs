//! What was chosen, as it can be loaded in one way.

use std::collections::{BTreeMap, BTreeSet};

use records::{
    Collective, Layout, Method, Point,
    quantity::format_bytes,
    summary::{Gain, LoadWay, Loading, NotLoaded, RemovedPoint},
    usage::Usage,
};
use statistics::{PairedJobs, geometric_mean};
use verification::selection::TimedChoice;

use crate::{
    belief::octaves, bench::Load, confirmation::Confirmation, constants::constants,
    round::ConfirmingRound,
};

/// A way to load what is chosen.
#[derive(Clone, Copy)]
pub struct WayToLoad<'a> {
    /// Which.
    pub way: LoadWay,
    /// The file or directory to load, relative to the run's directory.
    pub file: &'a str,
    /// What is loaded for a method that was chosen at a point; else why it cannot be loaded.
    pub loaded: &'a dyn Fn(Point, &Method) -> Result<Method, String>,
    /// What was chosen for it at every point, ascending.
    pub choices: &'a [TimedChoice],
    /// Standard deviations of the logarithms of what that is believed to gain.
    pub doubts: &'a BTreeMap<Point, f64>,
    /// What was chosen at sizes between these that were not measured.
    pub between: &'a [TimedChoice],
    /// Collectives of which what is loaded runs one method at all sizes.
    pub one_for_all_sizes: &'a BTreeSet<Collective>,
    /// Points at which what is loaded runs what was chosen for another layout, which it does not tell apart.
    pub elsewhere: &'a BTreeSet<Point>,
}

/// How many times as fast as the default a choice is believed to be.
fn believed(choice: &TimedChoice) -> f64 {
    choice.default_seconds / choice.seconds
}

/// One way to load what was chosen, with what is left of the choices.
#[derive(Debug, Clone)]
pub struct LoadCandidate {
    /// At every point that was measured.
    pub choices: Vec<TimedChoice>,
    /// At sizes between these; loaded, but neither timed nor told as a gain.
    pub between: Vec<TimedChoice>,
    /// Both.
    loaded: Vec<TimedChoice>,
    /// What is told of it.
    pub loading: Loading,
    /// What is believed of its gains.
    confirmation: Confirmation,
    /// Collectives of which it runs one method at all sizes.
    one_for_all_sizes: BTreeSet<Collective>,
    /// Points at which it runs what was chosen for another layout. What that takes is not timed.
    elsewhere: BTreeSet<Point>,
}

impl LoadCandidate {
    /// The choices, as far as they can be loaded in this way.
    pub fn new(to_load: &WayToLoad<'_>) -> Self {
        let way = to_load.way;
        let mut choices = to_load.choices.to_vec();
        let mut unexpressed = Vec::new();
        for choice in &mut choices {
            let Point { collective, layout, bytes } = choice.point;
            if to_load.elsewhere.contains(&choice.point) {
                choice.method = Method::Default;
            }
            let loaded = (to_load.loaded)(choice.point, &choice.method);
            choice.method = loaded.unwrap_or_else(|reason| {
                let method = choice.method.clone();
                unexpressed.push(NotLoaded { collective, layout, bytes, method, reason });
                Method::Default
            });
        }
        let loading = Loading {
            way,
            file: to_load.file.into(),
            gains: Vec::new(),
            taken_out: Vec::new(),
            unexpressed,
            mean_speed_up: 1.0,
            calls_observed: 0,
            calls_as_told: 0,
            between: 0,
            unconfirmed: 0,
            elsewhere: to_load.elsewhere.len() as u32,
            harm: None,
            application_seconds: None,
            roots: Vec::new(),
        };
        let between = to_load.between.iter().map(|choice| {
            let loaded = (to_load.loaded)(choice.point, &choice.method);
            TimedChoice { method: loaded.unwrap_or(Method::Default), ..choice.clone() }
        });
        let other = match way {
            LoadWay::Rules => constants().same_implementation,
            LoadWay::Preload | LoadWay::Both => constants().other_implementation,
        };
        let confirmation = Confirmation::new(&choices, to_load.doubts, other);
        let (between, loaded) = (between.collect(), Vec::new());
        let mut candidate = LoadCandidate {
            choices,
            between,
            loaded,
            loading,
            confirmation,
            one_for_all_sizes: to_load.one_for_all_sizes.clone(),
            elsewhere: to_load.elsewhere.clone(),
        };
        candidate.drop_if_not_at_all_sizes();
        candidate.merge_measured_and_between();
        candidate
    }

    /// Where a library can be told one method for all sizes only, the default replaces it at all of them if
    /// at any.
    fn drop_if_not_at_all_sizes(&mut self) {
        let is_one = |choice: &&TimedChoice| {
            self.one_for_all_sizes.contains(&choice.point.collective)
                && choice.method == Method::Default
        };
        let left: BTreeMap<(Collective, Layout), u64> = self
            .choices
            .iter()
            .filter(is_one)
            .map(|choice| ((choice.point.collective, choice.point.layout), choice.point.bytes))
            .collect();
        for choice in self.choices.iter_mut().filter(|choice| choice.method != Method::Default) {
            let Point { collective, layout, bytes } = choice.point;
            let Some(at) = left.get(&(collective, layout)) else { continue };
            let method = std::mem::replace(&mut choice.method, Method::Default);
            self.loading.gains.retain(|gain| gain.point() != choice.point);
            let reason = format!(
                "the library would run it at all sizes, and it does not gain at {}",
                format_bytes(*at)
            );
            let unexpressed = NotLoaded { collective, layout, bytes, method, reason };
            self.loading.unexpressed.push(unexpressed);
        }
    }

    /// What is loaded: the choices at measured sizes and those between them, ascending. A method taken out
    /// at the nearest measured size gained less there than was believed. It is taken to gain less by the
    /// same factor between sizes, and stays only if that is a gain still.
    fn merge_measured_and_between(&mut self) {
        let LoadCandidate { choices, between, loading, .. } = self;
        for choice in between.iter_mut() {
            let distance = |point: Point| octaves(point.bytes as f64, choice.point.bytes as f64);
            let on_layout = choices.iter().filter(|one| {
                (one.point.collective, one.point.layout)
                    == (choice.point.collective, choice.point.layout)
            });
            let tried = on_layout.filter_map(|one| {
                let is_it =
                    |out: &&RemovedPoint| out.point() == one.point && out.method == choice.method;
                match loading.taken_out.iter().find(is_it) {
                    Some(out) => Some((one.point, out.speed_up / believed(one))),
                    None => (one.method == choice.method).then_some((one.point, 1.0)),
                }
            });
            let nearest = tried.min_by(|(a, _), (b, _)| distance(*a).total_cmp(&distance(*b)));
            let least = 1.0 + constants().alike;
            if nearest.is_some_and(|(_, held)| held < 1.0 && believed(choice) * held < least) {
                choice.method = Method::Default;
            }
        }
        let replaced = self.between.iter().filter(|choice| choice.method != Method::Default);
        self.loading.between = replaced.count() as u32;
        self.loaded = [self.choices.clone(), self.between.clone()].concat();
        self.loaded.sort_by_key(|choice| choice.point);
    }

    /// What a job loads.
    pub fn load(&self) -> Load<'_> {
        Load { way: self.loading.way, choices: &self.loaded }
    }

    /// The points at which the default is replaced.
    pub fn replaced(&self) -> impl Iterator<Item = &TimedChoice> {
        self.choices.iter().filter(|choice| choice.method != Method::Default)
    }

    /// Whether calls of a point run the same with it loaded as without.
    pub fn leaves_alone(&self, point: Point) -> bool {
        !self.elsewhere.contains(&point) && self.replaced().all(|choice| choice.point != point)
    }

    /// Leaves to the default what [a round](Confirmation::taken_out) does not confirm, and what the
    /// last one shows to be significantly slower.
    pub(crate) fn take_out(&mut self, round: &ConfirmingRound, is_last: bool) {
        let Some(loaded) = round.loaded(self.loading.way) else { return };
        let replaced = self.replaced().map(|choice| choice.point).collect();
        let way = self.loading.way;
        let turns = |point: Point| PairedJobs::new(&round.turns_at(way, point));
        self.confirmation.observe(&round.default, loaded, &replaced, &turns);
        if is_last {
            // The rounds before took part in choosing.
            self.loading.harm = round.harm(self.loading.way, self.replaced());
        }
        for choice in self.choices.iter_mut().filter(|choice| choice.method != Method::Default) {
            let harm = self.loading.harm.as_ref().and_then(|harm| harm.speed_up(choice.point));
            let taken_out = || self.confirmation.taken_out(choice.point, is_last);
            let Some(speed_up) = harm.or_else(taken_out) else { continue };
            self.loading.taken_out.push(RemovedPoint {
                collective: choice.point.collective,
                layout: choice.point.layout,
                bytes: choice.point.bytes,
                method: std::mem::replace(&mut choice.method, Method::Default),
                speed_up,
            });
        }
        self.drop_if_not_at_all_sizes();
        self.merge_measured_and_between();
    }

    /// Books what a round shows to be gained, and whether what was loaded was obeyed; gives what a
    /// reader must know. `usage` is what the preload library saw.
    pub(crate) fn record_gains(
        &mut self,
        round: &ConfirmingRound,
        usage: Option<&Usage>,
    ) -> Vec<String> {
        let way = self.loading.way;
        let unreached = self.book_gains(round);
        let mut warnings = Vec::new();
        if unreached > 0 {
            warnings.push(format!(
                "{}: {unreached} points are left to the default, as the budget ended before a gain was \
                 confirmed there",
                self.loading.file
            ));
        }
        self.drop_if_not_at_all_sizes();
        self.merge_measured_and_between();
        self.loading.unconfirmed =
            self.replaced().count().saturating_sub(self.loading.gains.len()) as u32;
        let gains = self.loading.gains.iter().map(|gain| gain.speed_up);
        let told = self.choices.len() - self.elsewhere.len();
        let left_alone = told - self.loading.gains.len();
        let all: Vec<f64> = gains.chain(std::iter::repeat_n(1.0, left_alone)).collect();
        self.loading.mean_speed_up = geometric_mean(&all).unwrap_or(1.0);
        let (observed, as_told) = match way {
            LoadWay::Rules | LoadWay::Both => self.ran_by_rules(round),
            LoadWay::Preload => usage.map_or((0, 0), |usage| self.ran_by_profiles(usage)),
        };
        (self.loading.calls_observed, self.loading.calls_as_told) = (observed, as_told);
        if as_told < observed {
            warnings.push(format!(
                "with {} loaded, {} of {observed} calls ran a method other than the selected one",
                self.loading.file,
                observed - as_told,
            ));
        }
        warnings
    }

    /// Books what a round shows to be gained at each point; gives at how many the default is left because the
    /// round did not reach them. A gain that others may have made, as they disturbed the point whenever it was timed, is
    /// as if it had not been reached, unless that is so everywhere.
    fn book_gains(&mut self, round: &ConfirmingRound) -> usize {
        let mut unreached = 0;
        let way = self.loading.way;
        let is_calm = |point: Point| !round.is_disturbed(way, point);
        let is_timed = |point: Point| round.times(way, point).is_some();
        let some_calm = self.replaced().any(|one| is_timed(one.point) && is_calm(one.point));
        let is_told = |point: Point, (default_seconds, tuned_seconds): (f64, f64)| {
            !some_calm || is_calm(point) || default_seconds <= tuned_seconds
        };
        for choice in self.choices.iter_mut().filter(|choice| choice.method != Method::Default) {
            let Point { collective, layout, bytes } = choice.point;
            let times =
                round.times(way, choice.point).filter(|times| is_told(choice.point, *times));
            let Some((default_seconds, tuned_seconds)) = times else {
                let believed = self.confirmation.believed(choice.point);
                if believed.is_none_or(|believed| !believed.is_surely_faster) {
                    choice.method = Method::Default;
                    unreached += 1;
                }
                continue;
            };
            let speed_up = default_seconds / tuned_seconds;
            if speed_up <= 1.0 {
                self.loading.taken_out.push(RemovedPoint {
                    collective,
                    layout,
                    bytes,
                    method: std::mem::replace(&mut choice.method, Method::Default),
                    speed_up,
                });
                continue;
            }
            (choice.default_seconds, choice.seconds) = (default_seconds, tuned_seconds);
            self.loading.gains.push(Gain {
                collective,
                layout,
                bytes,
                method: choice.method.clone(),
                default_seconds,
                tuned_seconds,
                speed_up,
            });
        }
        if self.loading.gains.is_empty() {
            // What was seen to gain nowhere is not loaded for what is believed.
            let left = self.choices.iter_mut().filter(|choice| choice.method != Method::Default);
            for choice in left {
                choice.method = Method::Default;
                unreached += 1;
            }
        }
        unreached
    }

    /// Calls of which the tracer saw what ran, and those that ran what the rules say.
    fn ran_by_rules(&self, round: &ConfirmingRound) -> (u64, u64) {
        let (mut observed, mut as_told) = (0, 0);
        let way = self.loading.way;
        let by_rules = |of: &&TimedChoice| way.loads_by(LoadWay::Rules, &of.method);
        for choice in self.replaced().filter(by_rules) {
            let Point { collective, layout, bytes } = choice.point;
            let rows = round.rows(way).filter(|row| {
                (row.collective, row.layout, row.bytes) == (collective, layout, bytes)
                    && !row.ran.is_empty()
            });
            for row in rows {
                observed += 1;
                as_told += u64::from(libraries::ran_as_asked(collective, &choice.method, &row.ran));
            }
        }
        (observed, as_told)
    }

    /// The same by what the preload library says that it did.
    fn ran_by_profiles(&self, usage: &Usage) -> (u64, u64) {
        let (mut observed, mut as_told) = (0, 0);
        for choice in self.replaced() {
            let Point { collective, layout, bytes } = choice.point;
            let here = usage.calls.iter().filter(|calls| {
                (calls.collective, calls.layout, calls.bytes) == (collective, layout, bytes)
            });
            for calls in here {
                observed += calls.calls;
                as_told += if calls.method == choice.method { calls.calls } else { 0 };
            }
        }
        (observed, as_told)
    }
}

#[cfg(test)]
mod tests;
