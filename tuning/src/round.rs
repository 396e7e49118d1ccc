//! What the jobs of a confirming round show.

use std::collections::{BTreeMap, BTreeSet};

use records::{
    Method, Point,
    observation::CollectiveCall,
    summary::{Harm, LoadWay},
};
use statistics::midmean;
use verification::{
    harm::{self, PairedTimes},
    samples::{MethodTimes, Samples},
    selection::TimedChoice,
};

/// The jobs of a round.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfirmingRound {
    /// The default's times without anything loaded.
    pub default: Samples,
    /// The same turn by turn: in each of them every job runs once, one right after the other.
    pub turns: Vec<Samples>,
    /// With something loaded, for each way of loading that replaces the default anywhere.
    pub loaded: Vec<LoadedTimes>,
}

/// What was seen with something loaded.
#[derive(Debug, Clone)]
pub(crate) struct LoadedTimes {
    pub way: LoadWay,
    pub samples: Samples,
    pub turns: Vec<Samples>,
    pub rows: Vec<CollectiveCall>,
}

impl ConfirmingRound {
    /// What the default takes without and with something loaded, in seconds: midmeans, since a call may
    /// have two modes, and a program meets both. Over the turns, so that each job counts once; of calls that were
    /// made in different turns alone, over all.
    pub fn times(&self, way: LoadWay, point: Point) -> Option<(f64, f64)> {
        let turns = self.turns_at(way, point);
        let over_turns =
            |which: usize| midmean(&turns.iter().map(|turn| turn[which]).collect::<Vec<_>>());
        let time = |samples: &Samples| samples.get(point, &Method::Default)?.midmean();
        let over_all = || time(&self.default).zip(time(self.loaded(way)?));
        over_turns(0).zip(over_turns(1)).or_else(over_all)
    }

    /// The default's times with something loaded.
    pub fn loaded(&self, way: LoadWay) -> Option<&Samples> {
        self.loaded.iter().find(|loaded| loaded.way == way).map(|loaded| &loaded.samples)
    }

    /// Whether what was loaded made calls slower where it replaces the default; nothing where
    /// nothing was loaded.
    pub fn harm<'c>(
        &self,
        way: LoadWay,
        replaced: impl Iterator<Item = &'c TimedChoice>,
    ) -> Option<Harm> {
        self.loaded(way)?;
        let compared = |choice: &TimedChoice| {
            let turns = self.turns_at(way, choice.point);
            let compared =
                PairedTimes { point: choice.point, method: choice.method.clone(), turns };
            (!compared.turns.is_empty()).then_some(compared)
        };
        Some(harm::judge(&replaced.filter_map(compared).collect::<Vec<_>>()))
    }

    /// What the default takes without and with something loaded, in seconds, in each turn in which both jobs
    /// called it; those in which others disturbed one of them are left out unless there are no others.
    pub fn turns_at(&self, way: LoadWay, point: Point) -> Vec<[f64; 2]> {
        let mut turns = self.both_at(way, point);
        if !self.is_disturbed(way, point) {
            turns.retain(|both| both.iter().all(|times| !times.is_disturbed()));
        }
        let seconds =
            |[without, with]: [&MethodTimes; 2]| Some([without.midmean()?, with.midmean()?]);
        turns.into_iter().filter_map(seconds).collect()
    }

    /// Whether others took too much of the processors in each turn in which both jobs called a point.
    pub fn is_disturbed(&self, way: LoadWay, point: Point) -> bool {
        let turns = self.both_at(way, point);
        !turns.is_empty() && turns.iter().all(|both| both.iter().any(|times| times.is_disturbed()))
    }

    /// The default's times at a point, without and with something loaded, in each turn in which both jobs called
    /// it.
    fn both_at(&self, way: LoadWay, point: Point) -> Vec<[&MethodTimes; 2]> {
        let both = self.turns_of(way).map(|(without, with)| {
            let [without, with] = [without, with].map(|of| of.get(point, &Method::Default));
            Some([without?, with?])
        });
        both.flatten().collect()
    }

    /// The default's time without over that with something loaded, in each turn, at those of the points that
    /// both jobs called.
    pub fn speed_ups(&self, way: LoadWay, points: &BTreeSet<Point>) -> Vec<BTreeMap<Point, f64>> {
        let time = |samples: &Samples, point| samples.get(point, &Method::Default)?.midmean();
        let of_turn = |(without, with)| {
            let at = |&point: &Point| Some((point, time(without, point)? / time(with, point)?));
            points.iter().filter_map(at).collect()
        };
        self.turns_of(way).map(of_turn).collect()
    }

    /// The default's times in each turn, without and with something loaded.
    fn turns_of(&self, way: LoadWay) -> impl Iterator<Item = (&Samples, &Samples)> {
        let loaded = self.loaded.iter().filter(move |loaded| loaded.way == way);
        self.turns.iter().zip(loaded.flat_map(|loaded| &loaded.turns))
    }

    /// Every call made with something loaded.
    pub fn rows(&self, way: LoadWay) -> impl Iterator<Item = &CollectiveCall> {
        let loaded = self.loaded.iter().filter(move |loaded| loaded.way == way);
        loaded.flat_map(|loaded| &loaded.rows)
    }
}
