//! What has been observed so far, for deciding what to observe next.

use std::collections::HashMap;

use records::{
    group_observation::GroupObservation,
    observation::{ObservationStatus, PointToPoint, PointToPointKind},
};
use serde::{Deserialize, Serialize};
use statistics::{median, stopping::Rule};

use super::cells::{Experiment, ObservedKind, SizedExperiment};

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
struct ObservationSeries {
    rows: u32,
    visits: Vec<JudgedVisit>,
}

/// The judged observations of one visit; what is observed at one go shares the machine's state
/// and is worth hardly more than a single observation.
#[derive(Debug, Clone)]
struct JudgedVisit {
    job: u32,
    number: u32,
    judged: Vec<f64>,
}

/// Kind, processes, bytes, messages.
type SeriesKey = (ObservedKind, u32, u64, u32);

/// What a row says beside its key.
struct RowOutcome {
    job: u32,
    visit: u32,
    repetition: u32,
    seconds: f64,
    status: ObservationStatus,
}

impl Observation {
    fn key(&self) -> SeriesKey {
        match self {
            Observation::Pair(row) => (ObservedKind::Pair(row.kind), 2, row.bytes, row.messages),
            Observation::Group(row) => {
                (ObservedKind::Group(row.kind, row.operation), row.procs, row.bytes, row.messages)
            }
        }
    }

    fn outcome(&self) -> RowOutcome {
        match *self {
            Observation::Pair(PointToPoint { job, visit, repetition, seconds, status, .. })
            | Observation::Group(GroupObservation {
                job,
                visit,
                repetition,
                seconds,
                status,
                ..
            }) => RowOutcome { job, visit, repetition, seconds, status },
        }
    }
}

/// All series, those of earlier runs included.
#[derive(Debug, Default)]
pub struct SeriesStore {
    series: HashMap<SeriesKey, ObservationSeries>,
    next_visit: u32,
    /// The first visit of the stretch under way, at whose end it is known whether others disturbed it.
    stretch: u32,
}

impl SeriesStore {
    /// From the observations of a record.
    pub fn new(rows: &[Observation]) -> Self {
        let mut store = SeriesStore::default();
        rows.iter().for_each(|row| store.enter(row));
        store.close_stretch(false);
        store
    }

    /// The number of the next visit.
    pub fn next_visit(&self) -> u32 {
        self.next_visit
    }

    /// Ends a stretch; if it is lost, nothing of it counts.
    pub fn close_stretch(&mut self, is_lost: bool) {
        if is_lost {
            let first = self.stretch;
            let all = self.series.values_mut();
            all.for_each(|series| series.visits.retain(|visit| visit.number < first));
        }
        self.stretch = self.next_visit;
    }

    /// Adds one observation; warm-ups and disturbed ones are counted but not judged.
    pub fn enter(&mut self, row: &Observation) {
        let RowOutcome { job, visit, repetition, seconds, status } = row.outcome();
        self.next_visit = self.next_visit.max(visit.saturating_add(1));
        let series = self.series.entry(row.key()).or_default();
        series.rows = series.rows.max(repetition.saturating_add(1));
        if matches!(status, ObservationStatus::Warmup | ObservationStatus::Disturbed) {
            return;
        }
        match series.visits.last_mut() {
            Some(last) if last.number == visit => last.judged.push(seconds),
            _ => series.visits.push(JudgedVisit { job, number: visit, judged: vec![seconds] }),
        }
    }

    /// The number of the next observation of a kind at a cell.
    pub fn next_repetition(&self, kind: ObservedKind, cell: &SizedExperiment) -> u32 {
        self.series.get(&key(kind, cell)).map_or(0, |series| series.rows)
    }

    fn visits_of(&self, kind: ObservedKind, cell: &SizedExperiment) -> &[JudgedVisit] {
        self.series.get(&key(kind, cell)).map_or(&[], |series| &series.visits)
    }

    /// The judged observations of a kind at a cell, in the order in which they were made.
    pub fn judged(&self, kind: ObservedKind, cell: &SizedExperiment) -> Vec<f64> {
        self.visits_of(kind, cell).iter().flat_map(|visit| &visit.judged).copied().collect()
    }

    /// The medians of the visits of a kind at a cell.
    pub fn medians(&self, kind: ObservedKind, cell: &SizedExperiment) -> Vec<f64> {
        self.visits_of(kind, cell).iter().filter_map(|visit| median(&visit.judged)).collect()
    }

    /// The judged readings of the clock.
    pub fn clock(&self) -> Vec<f64> {
        self.judged(
            ObservedKind::Pair(PointToPointKind::Clock),
            &SizedExperiment::of_pair(Experiment::RoundTrip, 0),
        )
    }

    /// The message sizes of round trips, ascending.
    pub fn sizes(&self) -> Vec<u64> {
        let of_round_trips = |&(kind, _, bytes, _): &SeriesKey| {
            (kind == ObservedKind::Pair(PointToPointKind::RoundTrip)).then_some(bytes)
        };
        let mut sizes: Vec<u64> = self.series.keys().filter_map(of_round_trips).collect();
        sizes.sort_unstable();
        sizes
    }

    /// Visits to a cell that count: those of its scarcest kind.
    pub fn visits(&self, cell: &SizedExperiment) -> usize {
        cell.series()
            .map(|(kind, part)| self.visits_of(kind, &part).len())
            .min()
            .unwrap_or_default()
    }

    /// How often a cell was visited in one job: by the series of it that has the fewest visits.
    pub fn visits_of_job(&self, cell: &SizedExperiment, job: u32) -> usize {
        let of_job = |(kind, part): (ObservedKind, SizedExperiment)| {
            self.visits_of(kind, &part).iter().filter(|visit| visit.job == job).count()
        };
        cell.series().map(of_job).min().unwrap_or_default()
    }

    /// Seconds of the last judged repetition of a cell, its parts together; 0 before the first.
    pub fn call_seconds(&self, cell: &SizedExperiment) -> f64 {
        let last = |(kind, part): (ObservedKind, SizedExperiment)| {
            self.visits_of(kind, &part).last()?.judged.last().copied()
        };
        cell.series().filter_map(last).sum()
    }

    /// How uncertain a cell is: its least certain kind, by the rule for its visits' medians.
    pub fn uncertainty(&self, cell: &SizedExperiment, rule: &Rule) -> f64 {
        let series = cell.series();
        series.map(|(kind, part)| rule.uncertainty(&self.medians(kind, &part))).fold(0.0, f64::max)
    }
}

fn key(kind: ObservedKind, cell: &SizedExperiment) -> SeriesKey {
    (kind, cell.procs, cell.bytes, cell.messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_ups_are_counted_but_not_judged_and_the_scarcest_kind_counts() {
        let row = |kind, (job, visit), repetition, status| {
            Observation::Pair(PointToPoint {
                kind,
                sender: 0,
                receiver: 1,
                bytes: 8,
                messages: 1,
                job,
                visit,
                repetition,
                seconds: f64::from(repetition),
                status,
            })
        };
        let cell = SizedExperiment::of_pair(Experiment::RoundTrip, 8);
        let [round_trip, train] =
            [PointToPointKind::RoundTrip, PointToPointKind::Train].map(ObservedKind::Pair);
        let (back, send) = (PointToPointKind::RoundTrip, PointToPointKind::SendOverhead);
        let mut store = SeriesStore::new(&[
            row(back, (0, 4), 0, ObservationStatus::Warmup),
            row(send, (0, 4), 0, ObservationStatus::Warmup),
            row(back, (0, 4), 1, ObservationStatus::Ok),
            row(back, (0, 4), 2, ObservationStatus::Ok),
            row(back, (1, 6), 3, ObservationStatus::Ok),
        ]);
        assert_eq!(store.next_repetition(round_trip, &cell), 4);
        assert_eq!(store.next_repetition(train, &cell), 0);
        assert_eq!(store.next_visit(), 7);
        assert_eq!(store.judged(round_trip, &cell), [1.0, 2.0, 3.0]);
        assert_eq!(store.medians(round_trip, &cell), [1.5, 3.0], "a visit counts once");
        assert_eq!(store.visits(&cell), 0, "no send has been judged");
        assert_eq!(store.sizes(), [8]);
        store.enter(&row(back, (1, 7), 4, ObservationStatus::Disturbed));
        assert_eq!((store.medians(round_trip, &cell).len(), store.next_visit()), (2, 8));
        store.close_stretch(false);
        store.enter(&row(back, (1, 8), 5, ObservationStatus::Ok));
        store.close_stretch(true);
        assert_eq!(store.medians(round_trip, &cell), [1.5, 3.0], "the lost stretch's is gone");
        assert_eq!(store.next_repetition(round_trip, &cell), 6, "and its number is not used again");
        store.enter(&row(send, (1, 6), 1, ObservationStatus::Ok));
        assert_eq!((store.visits(&cell), store.visits_of_job(&cell, 1)), (1, 1));
        assert_eq!(store.visits_of_job(&cell, 0), 0);
    }
}
