//! What a machine's state of the moment did to all calls alike, taken out of their times.
//!
//! For a second or for minutes, all calls of a shared machine take longer than at other times, short ones
//! by a tenth. Where a method was looked at in other moments than what it is compared with, as it is
//! when one of them is dropped early, that is taken for a difference of the two. What was
//! visited more than once tells of each of its visits how far it was off; visits that were made
//! at nearly the same time, of whatever methods, are off by some of it together.

use std::{collections::BTreeMap, ops::Range};

use records::{
    Collective, Method, Point,
    observation::{CollectiveCall, ObservationStatus},
};
use statistics::{median, midmean};

use crate::{
    constants::constants,
    samples::{Samples, follows},
    visit_noise::VisitNoise,
};

/// The calls of a record, in the order in which they were made, without what the machine's state of the
/// moment added to each visit, as far as the visits around it tell. `ran_as_asked` is that of [`Samples::gather`],
/// `spent_seconds` what a visit took with all that is not a call.
pub fn without_drift(
    mut rows: Vec<CollectiveCall>,
    ran_as_asked: impl Fn(Collective, &Method, &str) -> bool,
    spent_seconds: impl Fn(&[CollectiveCall]) -> f64,
) -> Vec<CollectiveCall> {
    let visits = visits(&rows, &Samples::gather(&rows, ran_as_asked), spent_seconds);
    // In standard deviations of the noise.
    let mut added = vec![0.0; visits.len()];
    for _ in 0..constants().drift_sweeps {
        let usual = typical_logarithms(&visits, &added);
        let off = |(of, added): (&RecordedVisit, &f64)| {
            let beside = (of.logarithm - usual[of.cell]) / of.noise - added;
            added + beside.clamp(-constants().max_noise, constants().max_noise)
        };
        let off: Vec<f64> = visits.iter().zip(&added).map(off).collect();
        added = local_drift(&visits, &off);
    }
    for (visit, added) in visits.iter().zip(&added) {
        let factor = (-added * visit.noise).exp();
        rows[visit.rows.clone()].iter_mut().for_each(|row| row.seconds *= factor);
    }
    rows
}

/// One visit of a record.
struct RecordedVisit {
    rows: Range<usize>,
    /// Number of the cell, from 0.
    cell: usize,
    /// Logarithm of the median of its times in seconds, and the standard deviation of its noise.
    logarithm: f64,
    noise: f64,
    /// When it was over, in seconds of measuring.
    moment: f64,
}

fn visits(
    rows: &[CollectiveCall],
    samples: &Samples,
    spent_seconds: impl Fn(&[CollectiveCall]) -> f64,
) -> Vec<RecordedVisit> {
    let noise = VisitNoise::new([samples]);
    let mut cells: BTreeMap<(Point, &Method), usize> = BTreeMap::new();
    let (mut visits, mut first, mut moment) = (Vec::new(), 0, 0.0);
    for of_visit in rows.chunk_by(follows) {
        let rows = first..first + of_visit.len();
        first = rows.end;
        moment += spent_seconds(of_visit);
        let counts = |row: &&CollectiveCall| {
            !matches!(row.status, ObservationStatus::Warmup | ObservationStatus::Disturbed)
        };
        let timed = of_visit.iter().filter(counts);
        let seconds: Vec<f64> = timed.map(|row| row.seconds).collect();
        let Some(seconds) = median(&seconds).filter(|seconds| *seconds > 0.0) else { continue };
        let CollectiveCall { point, ref method, .. } = of_visit[0];
        let count = cells.len();
        let cell = *cells.entry((point, method)).or_insert(count);
        let noise = noise.variance(point.procs(), seconds, 1).sqrt();
        visits.push(RecordedVisit { rows, cell, logarithm: seconds.ln(), noise, moment });
    }
    visits
}

/// What each cell takes when nothing is the matter, as the logarithm of its time.
fn typical_logarithms(visits: &[RecordedVisit], added: &[f64]) -> Vec<f64> {
    let count = visits.iter().map(|visit| visit.cell + 1).max().unwrap_or_default();
    let mut cells = vec![Vec::new(); count];
    for (visit, added) in visits.iter().zip(added) {
        cells[visit.cell].push(visit.logarithm - added * visit.noise);
    }
    let usual = |of: &Vec<f64>| midmean(of).expect("a cell is numbered with its first visit");
    cells.iter().map(usual).collect()
}

/// By how many standard deviations the visits made at about the time of each were off, itself left
/// out; the longer before or after it, the less they say.
fn local_drift(visits: &[RecordedVisit], off: &[f64]) -> Vec<f64> {
    let count = visits.len();
    let mut around = vec![(0.0, constants().calm_weight); count];
    let mut pass = |order: &mut dyn Iterator<Item = usize>| {
        let (mut sum, mut weight, mut last) = (0.0, 0.0, None::<f64>);
        for one in order {
            let moment = visits[one].moment;
            let left =
                last.map_or(0.0, |last| (-(moment - last).abs() / constants().state_seconds).exp());
            (sum, weight) = (sum * left, weight * left);
            around[one].0 += sum;
            around[one].1 += weight;
            (sum, weight, last) = (sum + off[one], weight + 1.0, Some(moment));
        }
    };
    pass(&mut (0..count));
    pass(&mut (0..count).rev());
    around.into_iter().map(|(sum, weight)| sum / weight).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_distr::{Distribution, LogNormal};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::testing::{any, call};

    const EARLY: &str = "native:openmpi:linear";
    const LATE: &str = "native:openmpi:binomial";

    /// The default at all times, one method in the first and another one in the second half of them; all
    /// take a millisecond, by a noise of a tenth. In the first half the machine is slower.
    fn record(slower: f64) -> Vec<CollectiveCall> {
        let noise = LogNormal::new(0.0, 0.1).unwrap();
        let mut random = Pcg64::seed_from_u64(7);
        let visit = |visit: u32| {
            let (method, state) = match (visit % 2, visit < 2000) {
                (0, true) => ("default", slower),
                (0, false) => ("default", 1.0),
                (_, true) => (EARLY, slower),
                (_, false) => (LATE, 1.0),
            };
            let seconds = 1e-3 * state * noise.sample(&mut random);
            [ObservationStatus::Warmup, ObservationStatus::Ok].map(|status| CollectiveCall {
                visit,
                repetition: u32::from(status == ObservationStatus::Ok),
                status,
                ..call(method, "", 64, seconds)
            })
        };
        (0..4000).flat_map(visit).collect()
    }

    /// Of visits that take no more than their calls, and a little.
    fn steadied(rows: Vec<CollectiveCall>) -> Vec<CollectiveCall> {
        without_drift(rows, any, |visit| visit.iter().map(|row| row.seconds + 2e-3).sum())
    }

    fn middle(rows: &[CollectiveCall], method: &str) -> f64 {
        let samples = Samples::gather(rows, any);
        let point = samples.points().next().unwrap();
        samples.get(point, &method.parse().unwrap()).unwrap().midmean().unwrap()
    }

    #[test]
    fn methods_seen_in_different_states_of_the_machine_are_compared_as_in_one() {
        let rows = record(1.2);
        assert!(middle(&rows, EARLY) / middle(&rows, LATE) > 1.15);
        let steadied = steadied(rows);
        let ratio = middle(&steadied, EARLY) / middle(&steadied, LATE);
        assert!((ratio - 1.0).abs() < 0.04, "{ratio}");
    }

    #[test]
    fn what_is_noise_stays() {
        let rows = record(1.0);
        for (row, steadied) in rows.iter().zip(steadied(rows.clone())) {
            assert!((row.seconds / steadied.seconds).ln().abs() < 0.05, "{row:?} {steadied:?}");
            assert_eq!(CollectiveCall { seconds: row.seconds, ..steadied }, *row);
        }
    }

    #[test]
    fn a_method_seen_once_is_told_by_the_visits_around_it() {
        let mut rows = record(1.2);
        let one = CollectiveCall { visit: 4000, ..call("native:openmpi:binary", "", 64, 1.2e-3) };
        rows.insert(400, one);
        let one = vec![rows[0].clone()];
        let rows = steadied(rows);
        let seconds = middle(&rows, "native:openmpi:binary");
        let default = middle(&rows, "default");
        assert!((seconds / default - 1.0).abs() < 0.05, "{seconds} {default}");
        assert_eq!(steadied(one.clone()), one);
        assert!(steadied(Vec::new()).is_empty());
    }
}
