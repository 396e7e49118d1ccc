//! What has been observed so far, for deciding what to observe next.

use std::collections::HashMap;

use records::observation::{PointToPoint, PointToPointKind, Status};
use verification::stopping::Rule;

use super::cells::Cell;

/// One series of observations: the same thing again and again.
#[derive(Debug, Clone, Default)]
struct Series {
    rows: u32,
    judged: Vec<f64>,
}

type Key = (PointToPointKind, u64, u32);

/// All series, those of earlier runs included.
#[derive(Debug, Default)]
pub struct Book {
    series: HashMap<Key, Series>,
}

impl Book {
    /// From the observations of a record.
    pub fn new(rows: &[PointToPoint]) -> Self {
        let mut book = Book::default();
        rows.iter().for_each(|row| book.enter(row));
        book
    }

    /// Adds one observation; warm-ups are counted but not judged.
    pub fn enter(&mut self, row: &PointToPoint) {
        let series = self.series.entry((row.kind, row.bytes, row.messages)).or_default();
        series.rows = series.rows.max(row.repetition.saturating_add(1));
        if row.status != Status::Warmup {
            series.judged.push(row.seconds);
        }
    }

    /// The number of the next observation of a series.
    pub fn next_repetition(&self, kind: PointToPointKind, bytes: u64, messages: u32) -> u32 {
        self.series.get(&(kind, bytes, messages)).map_or(0, |series| series.rows)
    }

    /// The judged observations of a series, in the order in which they were made.
    pub fn judged(&self, kind: PointToPointKind, bytes: u64, messages: u32) -> &[f64] {
        self.series.get(&(kind, bytes, messages)).map_or(&[], |series| &series.judged)
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
        let kinds = cell.experiment.kinds().iter();
        kinds.map(|kind| self.judged(*kind, cell.bytes, cell.messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::cells::Experiment;

    #[test]
    fn warm_ups_are_counted_but_not_judged_and_the_scarcest_kind_counts() {
        let row = |kind, repetition, status| PointToPoint {
            kind,
            sender: 0,
            receiver: 1,
            bytes: 8,
            messages: 1,
            repetition,
            seconds: 1.0,
            status,
        };
        let book = Book::new(&[
            row(PointToPointKind::RoundTrip, 0, Status::Warmup),
            row(PointToPointKind::SendOverhead, 0, Status::Warmup),
            row(PointToPointKind::RoundTrip, 1, Status::Ok),
        ]);
        assert_eq!(book.next_repetition(PointToPointKind::RoundTrip, 8, 1), 2);
        assert_eq!(book.next_repetition(PointToPointKind::Train, 8, 1), 0);
        assert_eq!(book.judged(PointToPointKind::RoundTrip, 8, 1), [1.0]);
        assert_eq!(book.observations(&Cell::new(Experiment::RoundTrip, 8)), 0);
    }
}
