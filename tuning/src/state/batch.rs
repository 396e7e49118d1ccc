//! What to measure next: what takes away most regret for its cost, then what is to be exported.

use std::collections::{BTreeMap, BTreeSet};

use choosing::expected::TrackIndex;
use rand::{SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;
use records::{
    Layout, Method,
    plan::{Cell, Plan, Visit},
    summary::Regret,
};

use super::TuningState;
use crate::{constants::constants, costs::calls};

/// What to measure next.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// In order of their worth; empty where nothing is left to measure.
    pub visits: Vec<Visit>,
    /// How long they should take.
    pub expected_seconds: f64,
    /// Before they are made.
    pub regret: Regret,
}

impl Batch {
    /// The plan that makes these visits to `cells`, in an order that is random, fixed by the seed. In
    /// the order of their worth the defaults would come first, and how fast the machine was then would
    /// be taken for how fast the default is.
    pub fn plan(mut self, cells: Vec<Cell>, ranks: u32, seed: u64) -> Plan {
        self.visits.shuffle(&mut Pcg64::seed_from_u64(seed));
        Plan { seed, ranks, cells, visits: self.visits }
    }
}

impl TuningState {
    /// What to measure next, if `seconds` are left for all that is still to be measured.
    ///
    /// A share of what is left after confirming today's decisions goes into one batch, since what it
    /// shows makes the next one better.
    pub fn next(mut self, seconds: f64) -> Batch {
        let regret = self.regret();
        let slow_defaults = self.surely_slow_defaults();
        let settling =
            self.unsettled(&slow_defaults).into_iter().map(|one| self.cost(one)).sum::<f64>();
        let mut batch = Batch { visits: Vec::new(), expected_seconds: 0.0, regret };
        let share = (constants().batch_share * (seconds - constants().spare * settling))
            .min(self.longest_batch_seconds());
        while share >= constants().min_batch_seconds && batch.expected_seconds < share {
            let worthy = self.worthiest(&slow_defaults);
            if worthy.is_empty() {
                break;
            }
            for one in worthy {
                if batch.expected_seconds < share {
                    self.visit(&mut batch, one);
                }
            }
        }
        if batch.visits.is_empty() {
            // Nothing is in doubt, or there is no time for it: what is to be exported is settled. In the latter case
            // the cheapest come first, and show which of the others need no look.
            let share = match share >= constants().min_batch_seconds {
                true => seconds,
                false => (constants().batch_share * seconds).max(2.0 * constants().start_seconds),
            };
            for one in self.unsettled(&slow_defaults) {
                if batch.expected_seconds < share.min(seconds) {
                    self.visit(&mut batch, one);
                }
            }
        }
        batch
    }

    /// What one batch takes at most, however much time is left: as much as all before it together, and the first
    /// some starts of a job. What is planned from the models alone is planned without what batches show. Where
    /// cells are counted no job is started.
    fn longest_batch_seconds(&self) -> f64 {
        if self.counts_cells {
            return f64::INFINITY;
        }
        self.spent.max(constants().first_batch_starts * self.costs.start_seconds())
    }

    fn visit(&mut self, batch: &mut Batch, one: TrackIndex) {
        batch.expected_seconds += self.cost(one);
        let (warmups, repetitions) = calls(self.beliefs.seconds(one));
        batch.visits.push(Visit { cell: self.cell(one), warmups, repetitions, calls: 1 });
        self.beliefs.expect_visit(one);
    }

    fn cell(&self, one: TrackIndex) -> u32 {
        self.cells[one.track][one.index]
    }

    /// Whether it was visited as often as a method at a point is at least, if it matters.
    fn is_visited(&self, one: TrackIndex) -> bool {
        let wanted = match self.beliefs.seconds(one) {
            seconds if seconds < constants().very_short_seconds => 3,
            seconds if seconds < constants().short_seconds => 2,
            _ => 1,
        };
        self.beliefs.visits(one) >= wanted
    }

    /// What a visit costs, in seconds; 1 where cells are counted.
    fn cost(&self, one: TrackIndex) -> f64 {
        if self.counts_cells {
            return 1.0;
        }
        let seconds = self.beliefs.seconds(one);
        self.costs.visit_seconds(self.beliefs.point(one).procs(), seconds, calls(seconds))
    }

    /// Whose observations take away most regret for their cost, most first; none where none is
    /// worth it. Where the default was never seen it comes first, since everything is compared with
    /// it, the cheapest first, unless it is surely slow; then what is [unexplored](TuningState::unexplored); what is [wanted](TuningState::with_wanted_cells) comes last.
    ///
    /// At most one of each track, since what it shows changes the worth of its neighbours, and
    /// none that is worth less than half of the worthiest.
    fn worthiest(&self, slow_defaults: &BTreeSet<TrackIndex>) -> Vec<TrackIndex> {
        let of = &self.beliefs;
        let all = || of.points().flat_map(|(_, candidates)| candidates.iter().copied());
        let is_awaited = |one: &TrackIndex| {
            *of.nominal_method(*one) == Method::Default
                && !self.is_visited(*one)
                && !slow_defaults.contains(one)
        };
        let mut defaults: Vec<TrackIndex> = all().filter(is_awaited).collect();
        if !defaults.is_empty() {
            defaults.sort_by(|a, b| self.cost(*a).total_cmp(&self.cost(*b)));
            return defaults;
        }
        let unexplored = self.unexplored();
        if !unexplored.is_empty() {
            return unexplored;
        }
        let mut of_track: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
        for (point, candidates) in of.points() {
            for (TrackIndex { track, index }, worth) in
                self.worths(candidates, self.weights.at(point))
            {
                let most = of_track.entry(track).or_insert((index, worth));
                if worth > most.1 {
                    *most = (index, worth);
                }
            }
        }
        if of_track.is_empty() {
            let is_wanted =
                |one: &TrackIndex| !of.is_seen(*one) && self.wanted.contains(&self.cell(*one));
            return all().filter(is_wanted).collect();
        }
        let most = of_track.values().map(|(_, worth)| *worth).fold(0.0, f64::max);
        let mut worthy: Vec<(usize, (usize, f64))> =
            of_track.into_iter().filter(|(_, (_, worth))| *worth >= most / 2.0).collect();
        worthy.sort_by(|(_, (_, a)), (_, (_, b))| b.total_cmp(a));
        worthy.into_iter().map(|(track, (index, _))| TrackIndex { track, index }).collect()
    }

    /// Defaults that are surely slower than what is decided for, by what was seen of them at other points. A call
    /// of one may take as long as all else that is worth a look; where cells are counted it costs no more.
    fn surely_slow_defaults(&self) -> BTreeSet<TrackIndex> {
        if self.counts_cells {
            return BTreeSet::new();
        }
        let slow = self.beliefs.points().filter_map(|(_, candidates)| {
            let default = self.beliefs.default(candidates)?;
            let decided = self.beliefs.decided(candidates);
            self.beliefs.surely_faster(default, &[decided]).map(|_| default)
        });
        slow.collect()
    }

    /// Where each method is seen at least once, if it was not, at each number of processes: at the least
    /// and the greatest size at which its calls are very short. There the models err most, each method
    /// in its own way at all sizes alike, and a visit costs next to nothing.
    fn unexplored(&self) -> Vec<TrackIndex> {
        let mut unexplored = Vec::new();
        for (track, points) in self.beliefs.tracks() {
            let mut ends: BTreeMap<Layout, (usize, usize)> = BTreeMap::new();
            for (index, point) in points.iter().enumerate() {
                if self.beliefs.seconds(TrackIndex { track, index })
                    < constants().very_short_seconds
                    && self.weights.at(*point) > 0.0
                {
                    let ends = ends.entry(point.layout).or_insert((index, index));
                    let bytes = |index: usize| points[index].bytes;
                    *ends = (
                        std::cmp::min_by_key(ends.0, index, |&index| bytes(index)),
                        std::cmp::max_by_key(ends.1, index, |&index| bytes(index)),
                    );
                }
            }
            let ends: BTreeSet<usize> = ends.into_values().flat_map(<[usize; 2]>::from).collect();
            unexplored.extend(
                ends.into_iter()
                    .map(|index| TrackIndex { track, index })
                    .filter(|&end| !self.beliefs.is_seen(end)),
            );
        }
        unexplored
    }

    /// What an observation of the decided method or of one that might be better would take away,
    /// per second: the share of the weighted regret that is its uncertainty's.
    fn worths(&self, candidates: &[TrackIndex], weight: f64) -> Vec<(TrackIndex, f64)> {
        let decided = self.beliefs.decided(candidates);
        let variance = |one: TrackIndex| self.beliefs.variance(one);
        let mut worths = Vec::new();
        for (other, regret) in self.challengers(candidates) {
            let regret = weight * regret;
            if regret >= constants().tolerance {
                let both = variance(decided) + variance(other);
                worths.extend(
                    [decided, other]
                        .map(|one| (one, regret * variance(one) / both / self.cost(one))),
                );
            }
        }
        worths
    }

    /// Decided methods, and the defaults that they are compared with (but those surely slow), that were visited too
    /// seldom to be exported; the cheapest first.
    fn unsettled(&self, slow_defaults: &BTreeSet<TrackIndex>) -> Vec<TrackIndex> {
        let mut unsettled = Vec::new();
        for (_, candidates) in self.beliefs.points() {
            let decided = self.beliefs.decided(candidates);
            if self.beliefs.is_default(decided) {
                continue;
            }
            let both = [Some(decided), self.beliefs.default(candidates)].into_iter().flatten();
            unsettled
                .extend(both.filter(|one| !slow_defaults.contains(one) && !self.is_visited(*one)));
        }
        unsettled.sort_by(|a: &TrackIndex, b| self.cost(*a).total_cmp(&self.cost(*b)));
        unsettled
    }
}
