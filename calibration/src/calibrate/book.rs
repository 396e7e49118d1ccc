//! What has been observed so far, for deciding what to observe next.

use std::collections::HashMap;

use records::{
    group_observation::GroupObservation,
    observation::{PointToPoint, PointToPointKind, Status},
};
use serde::{Deserialize, Serialize};
use verification::stopping::Rule;

use super::cells::{Cell, Experiment, Kind};

/// An observation for one of the two records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Observation {
    /// Between two ranks.
    Pair(PointToPoint),
    /// Among more, or on one.
    Group(GroupObservation),
}

/// One series of observations: the same thing again and again.
#[derive(Debug, Clone, Default)]
struct Series {
    rows: u32,
    judged: Vec<f64>,
}

/// Kind, processes, bytes, messages.
type Key = (Kind, u32, u64, u32);

impl Observation {
    fn key(&self) -> Key {
        match self {
            Observation::Pair(row) => (Kind::Pair(row.kind), 2, row.bytes, row.messages),
            Observation::Group(row) => {
                (Kind::Group(row.kind, row.operation), row.procs, row.bytes, row.messages)
            }
        }
    }

    fn outcome(&self) -> (u32, f64, Status) {
        match self {
            Observation::Pair(row) => (row.repetition, row.seconds, row.status),
            Observation::Group(row) => (row.repetition, row.seconds, row.status),
        }
    }
}

/// All series, those of earlier runs included.
#[derive(Debug, Default)]
pub struct Book {
    series: HashMap<Key, Series>,
}

impl Book {
    /// From the observations of a record.
    pub fn new(rows: &[Observation]) -> Self {
        let mut book = Book::default();
        rows.iter().for_each(|row| book.enter(row));
        book
    }

    /// Adds one observation; warm-ups are counted but not judged.
    pub fn enter(&mut self, row: &Observation) {
        let series = self.series.entry(row.key()).or_default();
        let (repetition, seconds, status) = row.outcome();
        series.rows = series.rows.max(repetition.saturating_add(1));
        if status != Status::Warmup {
            series.judged.push(seconds);
        }
    }

    /// The number of the next observation of a kind at a cell.
    pub fn next_repetition(&self, kind: Kind, cell: &Cell) -> u32 {
        self.series.get(&key(kind, cell)).map_or(0, |series| series.rows)
    }

    /// The judged observations of a kind at a cell, in the order in which they were made.
    pub fn judged(&self, kind: Kind, cell: &Cell) -> &[f64] {
        self.series.get(&key(kind, cell)).map_or(&[], |series| &series.judged)
    }

    /// The judged readings of the clock.
    pub fn clock(&self) -> &[f64] {
        self.judged(Kind::Pair(PointToPointKind::Clock), &Cell::of_pair(Experiment::RoundTrip, 0))
    }

    /// The message sizes of round trips, ascending.
    pub fn sizes(&self) -> Vec<u64> {
        let of_round_trips = |&(kind, _, bytes, _): &Key| {
            (kind == Kind::Pair(PointToPointKind::RoundTrip)).then_some(bytes)
        };
        let mut sizes: Vec<u64> = self.series.keys().filter_map(of_round_trips).collect();
        sizes.sort_unstable();
        sizes
    }

    /// Observations of a cell that count: those of its scarcest kind.
    pub fn observations(&self, cell: &Cell) -> usize {
        self.kinds(cell).map(<[f64]>::len).min().unwrap_or_default()
    }

    /// How uncertain a cell is: its least certain kind, by the rule.
    pub fn uncertainty(&self, cell: &Cell, rule: &Rule) -> f64 {
        self.kinds(cell).map(|judged| rule.uncertainty(judged)).fold(0.0, f64::max)
    }

    fn kinds<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a [f64]> {
        cell.experiment.kinds().map(|kind| self.judged(kind, cell))
    }
}

fn key(kind: Kind, cell: &Cell) -> Key {
    (kind, cell.procs, cell.bytes, cell.messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_ups_are_counted_but_not_judged_and_the_scarcest_kind_counts() {
        let row = |kind, repetition, status| {
            Observation::Pair(PointToPoint {
                kind,
                sender: 0,
                receiver: 1,
                bytes: 8,
                messages: 1,
                repetition,
                seconds: 1.0,
                status,
            })
        };
        let cell = Cell::of_pair(Experiment::RoundTrip, 8);
        let [round_trip, train] =
            [PointToPointKind::RoundTrip, PointToPointKind::Train].map(Kind::Pair);
        let book = Book::new(&[
            row(PointToPointKind::RoundTrip, 0, Status::Warmup),
            row(PointToPointKind::SendOverhead, 0, Status::Warmup),
            row(PointToPointKind::RoundTrip, 1, Status::Ok),
        ]);
        assert_eq!(book.next_repetition(round_trip, &cell), 2);
        assert_eq!(book.next_repetition(train, &cell), 0);
        assert_eq!(book.judged(round_trip, &cell), [1.0]);
        assert_eq!(book.observations(&cell), 0);
        assert_eq!(book.sizes(), [8]);
    }
}
