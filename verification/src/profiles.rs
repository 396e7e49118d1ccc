//! Profiles: which replacement beats the library's default, and for which messages.

use std::collections::BTreeMap;

use records::{
    Collective, Method, Point,
    profile::{Profile, REPLACED, Range},
};
use statistics::{false_discovery_control, median};

use crate::guidelines::{Jobs, Settings};

/// A replacement at one point, with the default's time over its own.
#[derive(Debug, Clone, PartialEq)]
struct Winner {
    method: Method,
    gain: f64,
}

/// A measured size, and what wins there.
type Measured = (u64, Option<Winner>);

/// One profile for each collective and number of processes at which something wins: the fastest of
/// the methods that are faster than the default by [`Settings::replacement_gain`] and significantly
/// so, after correction for all that was compared.
///
/// Collectives that the preload library does not replace have none.
///
/// Measured sizes that follow each other and agree are one range; nothing is claimed between sizes
/// that don't, nor beyond those measured.
pub fn profiles(jobs: &Jobs, settings: &Settings) -> Vec<Profile> {
    let mut measured: BTreeMap<(Collective, u32), Vec<Measured>> = BTreeMap::new();
    let winners = winners(jobs, settings);
    for point in jobs.points().filter(|point| REPLACED.contains(&point.collective)) {
        let series = measured.entry((point.collective, point.procs)).or_default();
        series.push((point.bytes, winners.get(&point).cloned()));
    }
    let profile = |((collective, procs), series): (_, Vec<_>)| {
        let ranges = ranges(&series);
        (!ranges.is_empty()).then(|| Profile::new(collective, procs, ranges))
    };
    measured.into_iter().filter_map(profile).collect()
}

fn winners(jobs: &Jobs, settings: &Settings) -> BTreeMap<Point, Winner> {
    let mut candidates = Vec::new();
    for point in jobs.points() {
        let default = jobs.of(point, &Method::Default);
        let others = jobs.at(point).filter(|(method, _)| can_replace(method));
        for (method, medians) in others {
            let Some(gain) = median(default).zip(median(medians)).map(|(slow, fast)| slow / fast)
            else {
                continue;
            };
            let p_value = settings.test.p_value(medians, default);
            candidates.push((point, Winner { method: method.clone(), gain }, p_value));
        }
    }
    let p_values: Vec<f64> = candidates.iter().map(|(_, _, p_value)| *p_value).collect();
    let mut winners: BTreeMap<Point, Winner> = BTreeMap::new();
    for ((point, winner, _), corrected) in
        candidates.into_iter().zip(false_discovery_control(&p_values))
    {
        let wins = corrected <= settings.level && winner.gain >= 1.0 + settings.replacement_gain;
        if wins && winners.get(&point).is_none_or(|other| other.gain < winner.gain) {
            winners.insert(point, winner);
        }
    }
    winners
}

/// What the preload library can carry out.
fn can_replace(method: &Method) -> bool {
    matches!(method, Method::Own { .. } | Method::Mockup(_))
}

/// The gain told for a range is the least in it.
fn ranges(series: &[Measured]) -> Vec<Range> {
    let method = |entry: &Measured| entry.1.as_ref().map(|winner| winner.method.clone());
    let same = |a: &Measured, b: &Measured| method(a) == method(b);
    let range = |run: &[Measured]| {
        let gains = run.iter().filter_map(|(_, winner)| winner.as_ref().map(|winner| winner.gain));
        Some(Range {
            first_bytes: run.first()?.0,
            last_bytes: run.last()?.0,
            method: method(run.first()?)?,
            gain: gains.reduce(f64::min),
        })
    };
    series.chunk_by(same).filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{Samples, tests::call};
    use records::observation::CollectiveCall;

    fn jobs(cells: &[(&str, u64, f64)]) -> Jobs {
        let job = |job: u32| {
            let noise = 1.0 + 0.001 * f64::from(job);
            let row = |&(method, bytes, seconds): &(&str, u64, f64)| {
                call(method, "", bytes, seconds * noise)
            };
            Samples::gather(&cells.iter().map(row).collect::<Vec<_>>())
        };
        Jobs::new(&(0..6).map(job).collect::<Vec<_>>())
    }

    #[test]
    fn ranges_join_only_where_both_ends_agree() {
        let (split, linear) = ("mockup:bcast_as_scatter_allgather", "own:linear");
        let cells = [
            ("default", 8, 1.0),
            (linear, 8, 0.5),
            (split, 8, 0.7),
            ("default", 16, 1.0),
            (linear, 16, 0.95),
            (split, 16, 0.99),
            ("default", 32, 1.0),
            (split, 32, 0.5),
            ("default", 64, 1.0),
            (split, 64, 0.8),
            (linear, 64, 0.85),
            ("default", 128, 1.0),
            (linear, 128, 0.5),
        ];
        let profiles = profiles(&jobs(&cells), &Settings::default());
        assert_eq!(profiles.len(), 1);
        let told: Vec<(u64, u64, String)> = profiles[0]
            .ranges
            .iter()
            .map(|range| (range.first_bytes, range.last_bytes, range.method.to_string()))
            .collect();
        assert_eq!(
            told,
            [(8, 8, linear.into()), (32, 64, split.into()), (128, 128, linear.to_string())],
            "16 bytes gain too little"
        );
        assert!((profiles[0].ranges[1].gain.unwrap() - 1.25).abs() < 1e-9, "the least of a range");
        records::document::Document::validate(&profiles[0]).unwrap();
    }

    #[test]
    fn the_least_gain_is_the_users() {
        let cells = [("default", 8, 1.0), ("own:linear", 8, 0.8), ("own:binomial", 8, 0.9)];
        let with = |replacement_gain| {
            let settings = Settings { replacement_gain, ..Settings::default() };
            profiles(&jobs(&cells), &settings).len()
        };
        assert_eq!([0.0, 0.24, 0.26, 2.0].map(with), [1, 1, 0, 0]);
    }

    /// One such profile cost an application all profiles of the directory.
    #[test]
    fn a_collective_that_the_preload_library_does_not_replace_has_no_profile() {
        let of = |collective| {
            let cells = [("default", 1.0), ("own:linear", 0.5)];
            let row =
                |(method, seconds)| CollectiveCall { collective, ..call(method, "", 8, seconds) };
            let samples = Samples::gather(&cells.map(row));
            let samples: Vec<Samples> = (0..6).map(|_| samples.clone()).collect();
            profiles(&Jobs::new(&samples), &Settings::default()).len()
        };
        assert_eq!([Collective::Scatter, Collective::Scatterv].map(of), [1, 0]);
    }

    #[test]
    fn a_collective_that_nothing_beats_has_no_profile() {
        let cells = [("default", 8, 1.0), ("own:linear", 8, 1.1)];
        assert!(profiles(&jobs(&cells), &Settings::default()).is_empty());
    }
}
