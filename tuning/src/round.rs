//! What the jobs of a round show.

use std::collections::BTreeMap;

use choosing::{
    harm,
    pairs::PairedTimes,
    samples::{MethodTimes, Samples},
};
use records::{
    Method, Point,
    choices::Chosen,
    observation::CollectiveCall,
    summary::{Harm, LoadWay},
};
use statistics::midmean;

/// What the default took in the jobs of a round, without anything loaded and with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoundTimes {
    /// The default's times without anything loaded.
    pub default: Samples,
    /// The default's times without anything loaded, turn by turn: in each of them every job runs once, one right
    /// after the other.
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

/// The calls that each job of a round made in one turn.
pub(crate) type CallsByJob = Vec<Vec<CollectiveCall>>;

/// Adds the rows of a job's next turn, as later visits.
fn append(rows: &mut Vec<CollectiveCall>, turn: Vec<CollectiveCall>) {
    let before = rows.iter().map(|row| row.visit + 1).max().unwrap_or(0);
    rows.extend(turn.into_iter().map(|row| CollectiveCall { visit: before + row.visit, ..row }));
}

impl RoundTimes {
    /// What all turns show together, of which each has a job for each way: without anything loaded, or with it loaded in
    /// that way.
    pub fn of_turns(ways: &[Option<LoadWay>], turns: &[CallsByJob]) -> Self {
        let mut round = RoundTimes::default();
        for (index, way) in ways.iter().enumerate() {
            let mut rows = Vec::new();
            turns.iter().for_each(|turn| append(&mut rows, turn[index].clone()));
            let turns = turns
                .iter()
                .map(|turn| Samples::gather(&turn[index], libraries::ran_as_asked))
                .collect();
            let samples = Samples::gather(&rows, libraries::ran_as_asked);
            match *way {
                None => (round.default, round.turns) = (samples, turns),
                Some(way) => round.loaded.push(LoadedTimes { way, samples, turns, rows }),
            }
        }
        round
    }

    /// What the default takes without and with something loaded, in seconds: midmeans, since a call may
    /// have two modes, and a program meets both. Over the turns, so that each job counts once; nothing where others
    /// disturbed each of them.
    pub fn times(&self, way: LoadWay, point: Point) -> Option<(f64, f64)> {
        let turns = self.turns_at(way, point);
        let over_turns =
            |which: usize| midmean(&turns.values().map(|turn| turn[which]).collect::<Vec<_>>());
        over_turns(0).zip(over_turns(1))
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
        replaced: impl Iterator<Item = &'c Chosen>,
    ) -> Option<Harm> {
        self.loaded(way)?;
        let compared = replaced.map(|choice| self.paired(way, choice));
        let compared = compared.filter(|paired| !paired.turns.is_empty());
        Some(harm::test(&compared.collect::<Vec<_>>()))
    }

    /// What pairs of jobs observed at a point with this choice loaded.
    pub fn paired(&self, way: LoadWay, choice: &Chosen) -> PairedTimes {
        PairedTimes {
            point: choice.point,
            method: choice.method.clone(),
            turns: self.turns_at(way, choice.point),
            made: self.both_at(way, choice.point).count(),
        }
    }

    /// What the default takes without and with something loaded, in seconds, by turn: in those in which both jobs
    /// called it and others left both alone.
    pub fn turns_at(&self, way: LoadWay, point: Point) -> BTreeMap<usize, [f64; 2]> {
        let calm = self
            .both_at(way, point)
            .filter(|(_, both)| both.iter().all(|times| !times.is_disturbed()));
        let seconds = |(turn, [without, with]): (usize, [&MethodTimes; 2])| {
            Some((turn, [without.midmean()?, with.midmean()?]))
        };
        calm.filter_map(seconds).collect()
    }

    /// The default's times at a point, without and with something loaded, in each turn in which both jobs called
    /// it.
    fn both_at(
        &self,
        way: LoadWay,
        point: Point,
    ) -> impl Iterator<Item = (usize, [&MethodTimes; 2])> {
        self.turns_of(way).enumerate().filter_map(move |(turn, (without, with))| {
            let [without, with] = [without, with].map(|of| of.get(point, &Method::Default));
            Some((turn, [without?, with?]))
        })
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
