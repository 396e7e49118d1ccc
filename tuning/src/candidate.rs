//! What was chosen, as it can be loaded in one way.

use std::collections::BTreeMap;

use records::{
    Method, Point,
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
}

impl LoadCandidate {
    /// The choices, as far as they can be loaded in this way.
    pub fn new(to_load: &WayToLoad<'_>) -> Self {
        let way = to_load.way;
        let mut choices = to_load.choices.to_vec();
        let mut unexpressed = Vec::new();
        for choice in &mut choices {
            let Point { collective, layout, bytes } = choice.point;
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
        let mut candidate = LoadCandidate { choices, between, loaded, loading, confirmation };
        candidate.join();
        candidate
    }

    /// Joins what is loaded. What a method gained at the nearest measured size, over what it was believed
    /// to gain there, is taken to hold between sizes, too: where it was taken out there, it stays only if
    /// it would gain even so.
    fn join(&mut self) {
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
        self.join();
    }

    /// Books what a round shows to be gained, and whether what was loaded was obeyed; gives what a
    /// reader must know. `usage` is what the preload library saw.
    pub(crate) fn record_gains(
        &mut self,
        round: &ConfirmingRound,
        usage: Option<&Usage>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        let way = self.loading.way;
        for choice in self.choices.iter_mut().filter(|choice| choice.method != Method::Default) {
            let Point { collective, layout, bytes } = choice.point;
            let Some((default_seconds, tuned_seconds)) = round.times(way, choice.point) else {
                warnings.push(format!(
                    "{collective} of {bytes} bytes on {}: the budget ended before {} was confirmed \
                     there, so it is left to the default",
                    layout.in_words(),
                    self.loading.file
                ));
                choice.method = Method::Default;
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
        self.join();
        let gains = self.loading.gains.iter().map(|gain| gain.speed_up);
        let left_alone = self.choices.len() - self.loading.gains.len();
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
mod tests {
    use records::{Collective, observation::CollectiveCall, plan::Cell};
    use verification::samples::Samples;

    use super::*;
    use crate::round::LoadedTimes;

    const POINT: Point = Point::flat(Collective::Bcast, 8, 64);

    /// Ten visits of the default, every second of which took twice as long as those between.
    fn samples(seconds: f64) -> Samples {
        visits(10, |visit| seconds * f64::from(1 + visit % 2))
    }

    fn visits(count: u32, seconds: impl Fn(u32) -> f64) -> Samples {
        let cell = Cell {
            collective: POINT.collective,
            method: Method::Default,
            layout: POINT.layout,
            bytes: POINT.bytes,
        };
        let row =
            |visit: u32| CollectiveCall { visit, ..CollectiveCall::timed(&cell, seconds(visit)) };
        Samples::gather(&(0..count).map(row).collect::<Vec<_>>())
    }

    /// Four turns; each sample of which stands for what a turn's visits show.
    fn round(loaded: f64) -> ConfirmingRound {
        rounds(samples(1.0), samples(loaded))
    }

    fn rounds(default: Samples, samples: Samples) -> ConfirmingRound {
        let turns = [default.clone(), samples.clone()].map(|samples| vec![samples; 4]);
        let [of_default, turns] = turns;
        let loaded = vec![LoadedTimes { way: LoadWay::Rules, samples, turns, rows: Vec::new() }];
        ConfirmingRound { default, turns: of_default, loaded, spent: 2.0 }
    }

    /// Believed to be ten times as fast.
    fn candidate() -> LoadCandidate {
        candidate_with(&[])
    }

    fn candidate_with(between: &[TimedChoice]) -> LoadCandidate {
        let method = "native:openmpi:pipeline".parse().unwrap();
        let choice = TimedChoice { point: POINT, method, seconds: 0.1, default_seconds: 1.0 };
        let way = WayToLoad {
            way: LoadWay::Rules,
            file: "openmpi.rules",
            loaded: &|_, method| Ok(method.clone()),
            choices: &[choice],
            doubts: &BTreeMap::from([(POINT, 0.02)]),
            between,
        };
        LoadCandidate::new(&way)
    }

    /// It is loaded with the rest, and not told as a gain; where the method does harm it goes, too.
    #[test]
    fn what_is_predicted_between_sizes_is_loaded_unless_its_method_was_taken_out() {
        let of = |bytes, method: &str| TimedChoice {
            point: Point { bytes, ..POINT },
            method: method.parse().unwrap(),
            seconds: 0.1,
            default_seconds: 1.0,
        };
        let between = [of(16, "native:openmpi:pipeline"), of(32, "native:openmpi:linear")];
        let mut candidate = candidate_with(&between);
        let loaded = |candidate: &LoadCandidate| -> Vec<(u64, bool)> {
            let choices = candidate.load().choices.iter();
            choices.map(|choice| (choice.point.bytes, choice.method != Method::Default)).collect()
        };
        assert_eq!(loaded(&candidate), [(16, true), (32, true), (64, true)]);
        assert_eq!((candidate.replaced().count(), candidate.loading.between), (1, 2));
        candidate.take_out(&round(2.0), true);
        assert_eq!(loaded(&candidate), [(16, false), (32, true), (64, false)]);
        assert_eq!(candidate.loading.between, 1);

        // Taken out at 64 B, kept at 4 KiB: the nearest one tells.
        let pipeline = |bytes| of(bytes, "native:openmpi:pipeline");
        let mut candidate = candidate_with(&[pipeline(128), pipeline(2048)]);
        candidate.choices.push(pipeline(4096));
        candidate.take_out(&round(2.0), true);
        assert_eq!(loaded(&candidate), [(64, false), (128, false), (2048, true), (4096, true)]);
    }

    #[test]
    fn what_the_last_round_shows_to_do_harm_is_taken_out_whatever_was_believed() {
        let left = |loaded, is_last| {
            let mut candidate = candidate();
            candidate.take_out(&round(loaded), is_last);
            (candidate.replaced().count(), candidate.loading.taken_out)
        };
        assert_eq!(left(2.0, false).0, 1, "one round as noisy as that does not overthrow it");
        let (replaced, taken_out) = left(2.0, true);
        assert_eq!((replaced, taken_out.len()), (0, 1));
        assert!((taken_out[0].speed_up - 0.5).abs() < 1e-9);
        assert_eq!(left(1.05, true), (1, Vec::new()), "that is no harm");
    }

    /// So little slower that jobs may differ as much: what is believed would let it stay.
    #[test]
    fn what_is_told_to_be_significantly_slower_is_not_loaded() {
        let steady = |seconds: f64| visits(200, move |visit| seconds + 1e-4 * f64::from(visit));
        let mut candidate = candidate();
        candidate.take_out(&rounds(steady(1.0), steady(1.07)), true);
        let harm = candidate.loading.harm.clone().unwrap();
        assert_eq!(harm.slower.len(), 1, "{harm:?}");
        assert_eq!(candidate.replaced().count(), 0);
        assert_eq!(candidate.loading.taken_out[0].method, harm.slower[0].method);
    }
}
