//! What was chosen, as it can be loaded in one way.

use std::collections::{BTreeMap, BTreeSet};

use choosing::{
    constants::constants as believing,
    evidence::{self, Shown},
    gains::Gains,
    pairs::PairedTimes,
};
use records::{
    Collective, Layout, Method, Point,
    choices::Chosen,
    confirmed::MIN_PAIRS,
    quantity::format_bytes,
    ranges::held,
    summary::{Gain, LoadWay, Loading, NotLoaded, RemovedPoint},
    usage::Usage,
};
use statistics::PairedJobs;

use crate::{bench::Load, round::RoundTimes, verdict::Unshown};

/// What was chosen for one way to load it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WayChoices {
    /// At every point, ascending: also where nothing was measured.
    pub choices: Vec<Chosen>,
    /// Collectives of which what is loaded runs one method at all sizes.
    pub one_for_all_sizes: BTreeSet<Collective>,
    /// Points at which rules run what was chosen for another layout, which they do not tell apart, and that layout. The
    /// choices there are kept for whoever exports their layout.
    pub shadowed_points: BTreeMap<Point, Layout>,
}

/// One way to load what was chosen: what jobs with it loaded have left of the choices, and what they showed.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadCandidate {
    /// As it was chosen.
    pub chosen: WayChoices,
    /// What is left of it, at the same points.
    pub choices: Vec<Chosen>,
    /// What the jobs of the last round showed of what was chosen: together with those that have the same.
    pub shown: BTreeMap<Point, Shown>,
    /// At how many points nothing was confirmed, and why.
    pub unshown: Unshown,
    /// What it gains, and what was taken out.
    pub loading: Loading,
    /// In each turn of the last round, the default's time without over that with it loaded, where it replaces
    /// the default.
    pub turns: Vec<BTreeMap<Point, f64>>,
    pub warnings: Vec<String>,
    /// What is believed of its gains.
    gains: Gains,
    /// Methods of a layout that must not be loaded at some of its points.
    ruled_out: BTreeSet<(Point, Method)>,
}

impl LoadCandidate {
    /// The choices, as far as they can be loaded in this way. `file` is what is loaded, a file or directory relative to the
    /// run's directory. `loaded` gives what is loaded for a method that was chosen
    /// at a point, else why it cannot be loaded; `is_ruled_out` says whether a method cannot be loaded at a point, or is
    /// surely slower there than the default by what was measured.
    pub fn new(
        way: LoadWay,
        file: String,
        chosen: WayChoices,
        loaded: &dyn Fn(Point, &Method) -> Result<Method, String>,
        is_ruled_out: &dyn Fn(Point, &Method) -> bool,
    ) -> Self {
        let mut choices = chosen.choices.clone();
        let mut unexpressed = Vec::new();
        for choice in &mut choices {
            if chosen.shadowed_points.contains_key(&choice.point) {
                choice.method = Method::Default;
            }
            choice.method = loaded(choice.point, &choice.method).unwrap_or_else(|reason| {
                let method = choice.method.clone();
                unexpressed.push(NotLoaded { point: choice.point, method, reason });
                Method::Default
            });
        }
        let loading = Loading { way, file, unexpressed, mean_speed_up: 1.0, ..Loading::default() };
        let other = match way {
            LoadWay::Rules => believing().same_implementation,
            LoadWay::Preload | LoadWay::Both => believing().other_implementation,
        };
        let mut candidate = LoadCandidate {
            gains: Gains::new(&choices, other),
            ruled_out: ruled_out(&choices, is_ruled_out),
            chosen,
            choices,
            shown: BTreeMap::new(),
            unshown: Unshown::default(),
            loading,
            turns: Vec::new(),
            warnings: Vec::new(),
        };
        candidate.drop_if_not_at_all_sizes();
        candidate
    }

    /// Where a library can be given one method for all sizes only, the default replaces it at all of them if
    /// at any.
    fn drop_if_not_at_all_sizes(&mut self) {
        let is_one = |choice: &&Chosen| {
            self.chosen.one_for_all_sizes.contains(&choice.point.collective)
                && choice.method == Method::Default
        };
        let left: BTreeMap<(Collective, Layout), u64> = self
            .choices
            .iter()
            .filter(is_one)
            .map(|choice| (choice.point.line(), choice.point.bytes))
            .collect();
        for choice in self.choices.iter_mut().filter(|choice| choice.method != Method::Default) {
            let Point { collective, layout, .. } = choice.point;
            let Some(at) = left.get(&(collective, layout)) else { continue };
            let method = std::mem::replace(&mut choice.method, Method::Default);
            let reason = format!(
                "the library would run it at all sizes, and it does not gain at {}",
                format_bytes(*at)
            );
            let unexpressed = NotLoaded { point: choice.point, method, reason };
            self.loading.unexpressed.push(unexpressed);
        }
    }

    /// What a job loads.
    pub fn load(&self) -> Load<'_> {
        Load { way: self.loading.way, choices: &self.choices }
    }

    /// The points at which the default is replaced.
    pub fn replaced(&self) -> impl Iterator<Item = &Chosen> {
        self.choices.iter().filter(|choice| choice.method != Method::Default)
    }

    /// What it runs where another layout's choice holds: the index of that choice, and the method at the point.
    fn at_shadowed_points(&self) -> impl Iterator<Item = (usize, Chosen)> {
        let (choices, way) = (&self.choices, self.loading.way);
        let held = held(choices.iter().enumerate().map(|(index, one)| (one.point, index)));
        let runs = move |(&point, &layout): (&Point, &Layout)| {
            let index = *held.get(&(point.collective, layout))?.at(point.bytes)?;
            let leading = &choices[index];
            // Beyond the greatest size that was chosen for, rules claim nothing.
            let of_leading = choices.iter().filter(|one| one.point.line() == leading.point.line());
            if of_leading.map(|one| one.point.bytes).max() < Some(point.bytes) {
                return None;
            }
            let here = choices.iter().find(|one| one.point == point)?;
            let is_run =
                leading.method != Method::Default && way.loads_by(LoadWay::Rules, &leading.method);
            let seconds = here.without_seconds();
            let method = leading.method.clone();
            is_run.then(|| (index, Chosen { method, seconds, ..here.clone() }))
        };
        self.chosen.shadowed_points.iter().filter_map(runs)
    }

    /// Where jobs time it, with what calls take without and with it, in seconds, and what not to confirm that costs,
    /// relatively: where it replaces the default, and where rules run another layout's choice.
    pub(crate) fn timed(&self) -> Vec<(Point, [f64; 2], f64)> {
        let times = |one: &Chosen| [one.without_seconds(), one.seconds];
        let replaced = self.replaced().map(|one| (one.point, times(one), gain_of(one)));
        let shadowed = self.at_shadowed_points();
        let shadowed =
            shadowed.map(|(index, one)| (one.point, times(&one), gain_of(&self.choices[index])));
        replaced.chain(shadowed).collect()
    }

    /// Whether calls of a point run the same with it loaded as without.
    pub fn leaves_alone(&self, point: Point) -> bool {
        !self.chosen.shadowed_points.contains_key(&point)
            && self.replaced().all(|choice| choice.point != point)
    }

    /// Leaves to the default what a first round lets expect to be no faster: inside a range of sizes with one
    /// method, where the neighbours support it, only what surely is slower.
    pub(crate) fn reject(&mut self, round: &RoundTimes) {
        let way = self.loading.way;
        let Some(loaded) = round.loaded(way) else { return };
        let replaced = self.replaced().map(|choice| choice.point).collect();
        let turns = |point: Point| {
            PairedJobs::new(&round.turns_at(way, point).into_values().collect::<Vec<_>>())
        };
        // Where rules run another layout's method the jobs differ by more than themselves.
        let is_alike = |point, _: &Method| !self.chosen.shadowed_points.contains_key(&point);
        self.gains.observe(&round.default.among(is_alike), loaded, &replaced, &turns);
        let of = |choice: &Chosen| (choice.point.line(), choice.method.clone());
        let mut rejected = Vec::new();
        for run in self.choices.chunk_by_mut(|one, next| of(one) == of(next)) {
            let posteriors: Vec<_> =
                run.iter().map(|choice| self.gains.posterior(choice.point)).collect();
            let is_faster = |at: usize| posteriors[at].is_some_and(|one| one.is_faster());
            for (at, choice) in run.iter_mut().enumerate() {
                let Some(here) = posteriors[at].filter(|_| choice.method != Method::Default) else {
                    continue;
                };
                let is_inside = (0..at).any(is_faster) && (at + 1..posteriors.len()).any(is_faster);
                if !(here.is_faster() || is_inside && !here.is_surely_slower) {
                    rejected.push(removed(choice, here.speed_up));
                }
            }
        }
        self.loading.rejected.extend(rejected);
        self.drop_if_not_at_all_sizes();
    }

    /// What pairs of jobs observed at every point; nothing where the default is left.
    fn paired(&self, round: &RoundTimes) -> Vec<PairedTimes> {
        let paired = |choice: &Chosen| match choice.method {
            Method::Default => PairedTimes {
                point: choice.point,
                method: Method::Default,
                turns: BTreeMap::new(),
                made: 0,
            },
            _ => round.paired(self.loading.way, choice),
        };
        self.choices.iter().map(paired).collect()
    }

    /// What these observations show at every point.
    fn shown_by(&self, points: &[PairedTimes]) -> Vec<Shown> {
        let is_ruled_out = |point, method: &Method| {
            self.chosen.shadowed_points.contains_key(&point)
                || self.ruled_out.contains(&(point, method.clone()))
        };
        evidence::shown(points, &is_ruled_out)
    }

    /// The points at which a round leaves it open whether what was loaded is faster. Only what is confirmed, or shown to be
    /// slower, is not looked at again: what is stopped because it looks good so far would flatter itself.
    pub(crate) fn open(&self, round: &RoundTimes) -> impl Iterator<Item = Point> {
        let found = self.shown_by(&self.paired(round));
        let all = self.choices.iter().zip(found);
        let open = all.filter(|(choice, found)| {
            choice.method != Method::Default && matches!(found, Shown::Open(_) | Shown::TooFewPairs)
        });
        open.map(|(choice, _)| choice.point)
    }

    /// Keeps what the last round confirms, and nothing else. `usage` is what the preload library saw.
    pub(crate) fn conclude(mut self, round: Option<&RoundTimes>, usage: Option<&Usage>) -> Self {
        let nothing = RoundTimes::default();
        let round = round.unwrap_or(&nothing);
        let way = self.loading.way;
        // The rounds before took part in choosing.
        let shadowed: Vec<(usize, Chosen)> = self.at_shadowed_points().collect();
        let all = self.replaced().chain(shadowed.iter().map(|(_, one)| one));
        self.loading.harm = round.harm(way, all);
        let points = self.paired(round);
        let mut found = self.shown_by(&points);
        // What makes calls slower on a layout that the rules do not tell apart must not be in them.
        for (index, one) in shadowed {
            let slower = self.loading.harm.as_ref().and_then(|harm| harm.speed_up(one.point));
            if let Some(speed_up) = slower {
                found[index] = Shown::Slower(speed_up);
            }
        }
        let mut shown = BTreeMap::new();
        let unshown = &mut self.unshown;
        for ((choice, timed), found) in self.choices.iter_mut().zip(&points).zip(found) {
            let point = choice.point;
            match (&found, found.apply_to(choice)) {
                (Shown::Faster(_) | Shown::Between(..), _) => {}
                (_, None) => continue,
                (&Shown::Slower(speed_up), Some(method)) => {
                    self.loading.rejected.push(RemovedPoint { point, method, speed_up });
                    unshown.slower += 1;
                }
                (Shown::Open(_), Some(_)) => unshown.open += 1,
                (Shown::TooFewPairs, Some(_)) => match timed.made >= MIN_PAIRS as usize {
                    true => unshown.disturbed += 1,
                    false => unshown.unreached += 1,
                },
            }
            shown.insert(point, found);
        }
        self.drop_if_not_at_all_sizes();
        let is_replaced: BTreeSet<Point> = self.replaced().map(|choice| choice.point).collect();
        let is_left = |found: &Shown| matches!(found, Shown::Faster(_) | Shown::Between(..));
        shown.retain(|point, found| is_replaced.contains(point) || !is_left(found));
        self.shown = shown;
        self.book_gains(round, &points);
        let (observed, as_selected) = match way {
            LoadWay::Rules | LoadWay::Both => self.ran_by_rules(round),
            LoadWay::Preload => usage.map_or((0, 0), |usage| self.ran_by_profiles(usage)),
        };
        (self.loading.calls_observed, self.loading.calls_as_selected) = (observed, as_selected);
        if as_selected < observed {
            self.warnings.push(format!(
                "with {} loaded, {} of {observed} calls ran a method other than the selected one",
                self.loading.file,
                observed - as_selected,
            ));
        }
        self.turns = vec![BTreeMap::new(); round.turns.len()];
        let gained: BTreeSet<Point> = self.loading.gains.iter().map(|gain| gain.point).collect();
        for timed in points.iter().filter(|timed| gained.contains(&timed.point)) {
            for (turn, gain) in timed.gains() {
                self.turns[turn].insert(timed.point, gain.exp());
            }
        }
        self
    }

    /// Books what the last round shows to be gained, at each point and on average.
    fn book_gains(&mut self, round: &RoundTimes, points: &[PairedTimes]) {
        let way = self.loading.way;
        for (choice, timed) in self.choices.iter_mut().zip(points) {
            let Some(Shown::Faster(_)) = self.shown.get(&choice.point) else { continue };
            let times = round.times(way, choice.point).zip(evidence::speed_up_alone(timed));
            let Some(((default_seconds, tuned_seconds), alone)) = times else { continue };
            (choice.default_seconds, choice.seconds) = (Some(default_seconds), tuned_seconds);
            self.loading.gains.push(Gain {
                point: choice.point,
                method: choice.method.clone(),
                default_seconds,
                tuned_seconds,
                alone,
            });
        }
        // Of a point that was loaded between confirmed ones what was seen counts, be it a loss.
        let is_loaded = |(choice, timed): &(&Chosen, &PairedTimes)| {
            choice.method != Method::Default && choice.method == timed.method
        };
        let loaded = self.choices.iter().zip(points).filter(is_loaded).map(|(_, timed)| timed);
        let Some((mean, count)) = evidence::mean_speed_up(loaded) else { return };
        let share = count as f64 / (self.choices.len() - self.chosen.shadowed_points.len()) as f64;
        self.loading.mean_speed_up = mean.speed_up.powf(share);
        self.loading.mean_interval = Some(mean.interval.map(|ratio| ratio.powf(share)));
    }

    /// Calls of which the tracer saw what ran, and those that ran what the rules say.
    pub(crate) fn ran_by_rules(&self, round: &RoundTimes) -> (u64, u64) {
        let (mut observed, mut as_selected) = (0, 0);
        let way = self.loading.way;
        let by_rules = |of: &&Chosen| way.loads_by(LoadWay::Rules, &of.method);
        for choice in self.replaced().filter(by_rules) {
            let collective = choice.point.collective;
            let here = round.rows(way).filter(|row| row.point == choice.point);
            let rows = here.filter(|row| !row.ran.is_empty());
            for row in rows {
                observed += 1;
                as_selected +=
                    u64::from(libraries::ran_as_asked(collective, &choice.method, &row.ran));
            }
        }
        (observed, as_selected)
    }

    /// Calls that the preload library saw at replaced points, and those that it says ran what the profiles say.
    pub(crate) fn ran_by_profiles(&self, usage: &Usage) -> (u64, u64) {
        let (mut observed, mut as_selected) = (0, 0);
        for choice in self.replaced() {
            let here = usage.calls.iter().filter(|calls| calls.point == choice.point);
            for calls in here {
                observed += calls.calls;
                as_selected += if calls.method == choice.method { calls.calls } else { 0 };
            }
        }
        (observed, as_selected)
    }
}

/// What the default is believed to take longer than a choice, relatively: what it costs not to confirm it.
pub(crate) fn gain_of(choice: &Chosen) -> f64 {
    (choice.without_seconds() / choice.seconds - 1.0).max(0.0)
}

/// What must not be loaded of the methods that were chosen anywhere on the same layout.
fn ruled_out(
    choices: &[Chosen],
    is_ruled_out: &dyn Fn(Point, &Method) -> bool,
) -> BTreeSet<(Point, Method)> {
    let of_line = |one: &Chosen, next: &Chosen| one.point.line() == next.point.line();
    let of_all = choices.chunk_by(of_line).flat_map(|all| {
        let methods: BTreeSet<&Method> = all.iter().map(|choice| &choice.method).collect();
        all.iter().flat_map(move |choice| {
            methods.clone().into_iter().map(|method| (choice.point, method.clone()))
        })
    });
    let is_out = |(point, method): &(Point, Method)| {
        *method != Method::Default && is_ruled_out(*point, method)
    };
    of_all.filter(is_out).collect()
}

/// Leaves a choice to the default, by which it is so many times as fast.
fn removed(choice: &mut Chosen, speed_up: f64) -> RemovedPoint {
    let method = std::mem::replace(&mut choice.method, Method::Default);
    RemovedPoint { point: choice.point, method, speed_up }
}

#[cfg(test)]
mod tests;
