//! Profiles: which replacement beats the library's default, and for which messages.

use std::collections::BTreeMap;

use records::{
    Collective, Layout, Method, Point, RangeMethod, Ranges,
    choices::{Chosen, TimedMethod},
    profile::{Profile, REPLACED},
    ranges::by_line,
};
use statistics::{false_discovery_control, median};

use crate::guidelines::{JobMedians, ViolationTest};

/// One profile for each collective and layout at which something wins: the fastest of
/// the methods that are faster than the default by [`ViolationTest::replacement_gain`] and significantly
/// so, after correction for all that was compared.
///
/// Collectives that the preload library does not replace have none.
///
/// Measured sizes that follow each other and agree are one range; nothing is claimed between sizes
/// that don't, nor beyond those measured.
pub fn profiles(jobs: &JobMedians, settings: &ViolationTest) -> Vec<Profile> {
    let choices = choices(jobs, settings).into_iter();
    let winners: BTreeMap<Point, Chosen> = choices
        .filter(|choice| choice.method != Method::Default)
        .map(|choice| (choice.point, choice))
        .collect();
    let points = jobs.points().filter(|point| REPLACED.contains(&point.collective));
    let measured = by_line(points.map(|point| (point, winners.get(&point))));
    // Where each node held one rank, the number of processes tells everything.
    let is_flat = measured.keys().all(|(_, layout)| layout.is_flat());
    let profile = |((collective, layout), sizes): ((Collective, Layout), BTreeMap<_, _>)| {
        let ranges = ranges(&sizes.into_iter().collect::<Vec<_>>());
        let profile = match is_flat {
            true => Profile::new(collective, layout.procs(), ranges),
            false => Profile::of_layout(collective, layout, ranges),
        };
        (!profile.ranges.is_empty()).then_some(profile)
    };
    measured.into_iter().filter_map(profile).collect()
}

/// What a method that can replace the default gains at a point, and whether that is significant.
struct Contender {
    point: Point,
    method: Method,
    /// The default's time over its own.
    gain: f64,
    seconds: f64,
    wins: bool,
}

fn compared(jobs: &JobMedians, settings: &ViolationTest) -> Vec<Contender> {
    let (mut all, mut p_values) = (Vec::new(), Vec::new());
    for point in jobs.points() {
        let default = jobs.medians_of(point, &Method::Default);
        for (method, medians) in jobs.at(point).filter(|(method, _)| method.is_ours()) {
            let Some((slow, fast)) = median(default).zip(median(medians)) else { continue };
            let gain = slow / fast;
            let wins = gain >= 1.0 + settings.replacement_gain;
            all.push(Contender { point, method: method.clone(), gain, seconds: fast, wins });
            p_values.push(settings.test.p_value(medians, default));
        }
    }
    for (one, corrected) in all.iter_mut().zip(false_discovery_control(&p_values)) {
        one.wins = one.wins && corrected <= settings.level;
    }
    all
}

/// What replaces the default at each point at which it was measured: the method of
/// [`profiles`], or the default; beside it the other methods that could.
pub fn choices(jobs: &JobMedians, settings: &ViolationTest) -> Vec<Chosen> {
    let mut all: BTreeMap<Point, Vec<Contender>> = BTreeMap::new();
    for one in compared(jobs, settings) {
        all.entry(one.point).or_default().push(one);
    }
    let of_point = |point: Point| {
        let default = jobs.median(point, &Method::Default)?;
        let mut others = all.remove(&point).unwrap_or_default();
        others.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        let winner = others.iter().position(|one| one.wins).map(|index| others.remove(index));
        let (method, seconds) = match &winner {
            Some(one) => (one.method.clone(), one.seconds),
            None => (Method::Default, default),
        };
        let alternative = |one: &Contender| TimedMethod {
            beats_default: Some(one.wins),
            ..TimedMethod::new(one.method.clone(), one.seconds)
        };
        Some(Chosen {
            alternatives: others.iter().map(alternative).collect(),
            default_because: winner.is_none().then(|| NO_WINNER.into()),
            ..Chosen::measured(point, method, seconds, default)
        })
    };
    jobs.points().filter_map(of_point).collect()
}

/// Why a point is left to the default.
const NO_WINNER: &str = "no method that could replace it is significantly faster over all jobs";

/// Of sizes, each with what wins there. The gain reported for a range is the least in it.
fn ranges(series: &[(u64, Option<&Chosen>)]) -> Ranges<RangeMethod> {
    let method = |of: &Option<&Chosen>| of.map(|choice| choice.method.clone());
    let mut starts = BTreeMap::new();
    for run in series.chunk_by(|(_, a), (_, b)| method(a) == method(b)) {
        let [(first, winner), ..] = run else { continue };
        let gains = run.iter().filter_map(|(_, winner)| winner.as_ref()?.speed_up());
        let gain = gains.reduce(f64::min);
        starts.insert(*first, method(winner).map(|method| RangeMethod { method, gain }));
        let next = run.last().and_then(|(last, _)| last.checked_add(1));
        starts.extend(next.map(|next| (next, None)));
    }
    Ranges::from_starts(starts, u64::MAX).filter_map(Option::clone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use choosing::samples::Samples;

    use crate::testing::call;
    use records::observation::CollectiveCall;

    fn jobs(cells: &[(&str, u64, f64)]) -> JobMedians {
        let job = |job: u32| {
            let noise = 1.0 + 0.001 * f64::from(job);
            let row = |&(method, bytes, seconds): &(&str, u64, f64)| {
                call(method, "", bytes, seconds * noise)
            };
            Samples::gather(&cells.iter().map(row).collect::<Vec<_>>(), libraries::ran_as_asked)
        };
        JobMedians::new(&(0..6).map(job).collect::<Vec<_>>())
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
        let profiles = profiles(&jobs(&cells), &ViolationTest::default());
        assert_eq!(profiles.len(), 1);
        let told: Vec<(u64, u64, String)> = profiles[0]
            .ranges
            .iter()
            .map(|range| (range.first_bytes, range.last_bytes, range.choice.method.to_string()))
            .collect();
        assert_eq!(
            told,
            [(8, 8, linear.into()), (32, 64, split.into()), (128, 128, linear.to_string())],
            "16 bytes gain too little"
        );
        assert!(
            (profiles[0].ranges[1].choice.gain.unwrap() - 1.25).abs() < 1e-9,
            "the least of a range"
        );
        records::document::Document::validate(&profiles[0]).unwrap();
    }

    #[test]
    fn choices_are_the_winners_and_the_others_follow_them() {
        let cells = [
            ("default", 8, 1.0),
            ("own:linear", 8, 0.5),
            ("own:binomial", 8, 0.7),
            ("own:binary", 8, 0.98),
            ("default", 16, 1.0),
            ("own:linear", 16, 0.99),
        ];
        let chosen = choices(&jobs(&cells), &ViolationTest::default());
        let told: Vec<(String, bool, usize)> = chosen
            .iter()
            .map(|one| {
                let beating = one
                    .alternatives
                    .iter()
                    .filter(|other| other.beats_default == Some(true))
                    .count();
                (one.method.to_string(), one.default_because.is_some(), beating)
            })
            .collect();
        assert_eq!(told, [("own:linear".into(), false, 1), ("default".to_string(), true, 0)]);
        assert!((chosen[0].speed_up().unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(chosen[0].alternatives[0].method.to_string(), "own:binomial");
    }

    #[test]
    fn the_least_gain_is_the_users() {
        let cells = [("default", 8, 1.0), ("own:linear", 8, 0.8), ("own:binomial", 8, 0.9)];
        let with = |replacement_gain| {
            let settings = ViolationTest { replacement_gain, ..ViolationTest::default() };
            profiles(&jobs(&cells), &settings).len()
        };
        assert_eq!([0.0, 0.24, 0.26, 2.0].map(with), [1, 1, 0, 0]);
    }

    /// One such profile cost an application all profiles of the directory.
    #[test]
    fn a_collective_that_the_preload_library_does_not_replace_has_no_profile() {
        let of = |collective| {
            let cells = [("default", 1.0), ("own:linear", 0.5)];
            let row = |(method, seconds)| CollectiveCall {
                point: Point { collective, ..call(method, "", 8, seconds).point },
                ..call(method, "", 8, seconds)
            };
            let samples = Samples::gather(&cells.map(row), libraries::ran_as_asked);
            let samples: Vec<Samples> = (0..6).map(|_| samples.clone()).collect();
            profiles(&JobMedians::new(&samples), &ViolationTest::default()).len()
        };
        assert_eq!([Collective::Scatter, Collective::Scatterv].map(of), [1, 0]);
    }

    #[test]
    fn a_collective_that_nothing_beats_has_no_profile() {
        let cells = [("default", 8, 1.0), ("own:linear", 8, 1.1)];
        assert!(profiles(&jobs(&cells), &ViolationTest::default()).is_empty());
    }
}
