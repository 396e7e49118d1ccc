use std::ops::Range;

use choosing::samples::Samples;
use records::{
    Collective,
    observation::{CollectiveCall, ObservationStatus},
    plan::Cell,
};

use super::*;
use crate::round::LoadedTimes;

const POINT: Point = Point::flat(Collective::Bcast, 8, 64);

/// Ten visits of the default, every second of which took twice as long as those between.
fn samples(seconds: f64) -> Samples {
    visits(10, |visit| seconds * f64::from(1 + visit % 2))
}

fn visits(count: u32, seconds: impl Fn(u32) -> f64) -> Samples {
    Samples::gather(&rows(POINT, 0..count, seconds), libraries::ran_as_asked)
}

fn rows(point: Point, visits: Range<u32>, seconds: impl Fn(u32) -> f64) -> Vec<CollectiveCall> {
    let cell = Cell { point, method: Method::Default };
    let row = |visit: u32| CollectiveCall { visit, ..CollectiveCall::timed(&cell, seconds(visit)) };
    visits.map(row).collect()
}

/// As [`samples`] at several points.
fn samples_at(points: impl Iterator<Item = (Point, f64)>) -> Samples {
    let of = |((point, seconds), index): ((Point, f64), u32)| {
        rows(point, 10 * index..10 * index + 10, move |visit| seconds * f64::from(1 + visit % 2))
    };
    Samples::gather(&points.zip(0..).flat_map(of).collect::<Vec<_>>(), libraries::ran_as_asked)
}

/// Four turns; each sample of which stands for what a turn's visits show.
fn round(loaded: f64) -> RoundTimes {
    rounds(samples(1.0), samples(loaded))
}

fn rounds(default: Samples, samples: Samples) -> RoundTimes {
    let turns = [default.clone(), samples.clone()].map(|samples| vec![samples; 4]);
    let [of_default, turns] = turns;
    let loaded = vec![LoadedTimes { way: LoadWay::Rules, samples, turns, rows: Vec::new() }];
    RoundTimes { default, turns: of_default, loaded }
}

/// Believed to be ten times as fast at all of these points.
fn candidate_at(points: &[Point]) -> LoadCandidate {
    candidate(chosen_at(points))
}

fn chosen_at(points: &[Point]) -> WayChoices {
    let choices = points.iter().map(|&point| choice(point)).collect();
    WayChoices { choices, ..WayChoices::default() }
}

/// All of it can be loaded.
fn candidate(chosen: WayChoices) -> LoadCandidate {
    let loaded = |_: Point, method: &Method| Ok(method.clone());
    LoadCandidate::new(LoadWay::Rules, "openmpi.rules".into(), chosen, &loaded, &|_, _| false)
}

fn choice(point: Point) -> Chosen {
    let method = "native:openmpi:pipeline".parse().unwrap();
    Chosen { doubt: Some(0.02), ..Chosen::measured(point, method, 0.1, 1.0) }
}

fn at(bytes: u64) -> Point {
    Point { bytes, ..POINT }
}

fn gained(settled: &LoadCandidate) -> Vec<Point> {
    settled.loading.gains.iter().map(|gain| gain.point).collect()
}

/// What is replaced, by its size.
fn replaced(choices: &[Chosen]) -> Vec<u64> {
    let all = choices.iter().filter(|choice| choice.method != Method::Default);
    all.map(|choice| choice.point.bytes).collect()
}

/// A rules file has one layout of each number of processes: on the others it runs what was chosen for
/// that one. So nothing is replaced there, no gain is told, and the default is no control; but it is timed, and
/// what makes it slower there is taken out of the file.
#[test]
fn where_another_layouts_choice_runs_it_is_timed_for_harm_alone() {
    let nodes = Point { layout: "4x2".parse().unwrap(), ..POINT };
    let candidate = || {
        let shadowed_points = BTreeMap::from([(POINT, nodes.layout)]);
        candidate(WayChoices { shadowed_points, ..chosen_at(&[POINT, nodes]) })
    };
    assert_eq!(candidate().replaced().map(|one| one.point).collect::<Vec<_>>(), [nodes]);
    assert!(candidate().loading.unexpressed.is_empty());
    assert!(!candidate().leaves_alone(POINT));
    let timed: Vec<Point> = candidate().timed().into_iter().map(|(point, ..)| point).collect();
    assert_eq!(timed, [nodes, POINT]);
    let shown = |there, here| samples_at([(nodes, there), (POINT, here)].into_iter());
    let settled =
        |here| candidate().conclude(Some(&rounds(shown(1.0, 1.0), shown(0.5, here))), None);
    let kept = settled(0.5);
    assert_eq!((gained(&kept), kept.warnings), (vec![nodes], vec![]));
    assert!((kept.loading.mean_speed_up - 2.0).abs() < 1e-9);
    assert_eq!(kept.loading.harm.unwrap().points, 2);
    let left = settled(2.0);
    assert_eq!((gained(&left), replaced(&left.choices)), (vec![], vec![]));
    assert_eq!(left.loading.rejected[0].point, nodes);
    assert_eq!(left.loading.harm.unwrap().slower[0].point, POINT);
}

/// There was no time for them in the jobs.
#[test]
fn sizes_that_were_not_timed_are_loaded_between_confirmed_ones_alone() {
    let all = [16, 64, 128, 256, 512, 1024].map(at);
    let candidate = candidate_at(&all);
    assert_eq!(replaced(candidate.load().choices), [16, 64, 128, 256, 512, 1024]);
    let of = |seconds: [f64; 3]| samples_at([at(64), at(256), at(1024)].into_iter().zip(seconds));
    let settled = candidate.conclude(Some(&rounds(of([1.0; 3]), of([0.5, 0.4, 2.0]))), None);
    assert_eq!(gained(&settled), [at(64), at(256)]);
    assert_eq!(replaced(&settled.choices), [64, 128, 256]);
    assert!(matches!(settled.shown[&at(128)], Shown::Between(..)), "{:?}", settled.shown);
    assert_eq!((settled.loading.rejected.len(), settled.unshown.unreached), (1, 2));
}

#[test]
fn what_is_shown_to_be_slower_is_taken_out_whatever_was_believed() {
    let left = |loaded| {
        let settled = candidate_at(&[POINT]).conclude(Some(&round(loaded)), None);
        (replaced(&settled.choices), settled.loading.rejected)
    };
    let (replaced, rejected) = left(2.0);
    assert_eq!((replaced, rejected.len()), (vec![], 1));
    assert!((rejected[0].speed_up - 0.5).abs() < 1e-9);
    assert_eq!(left(0.9).0, [POINT.bytes]);
    // One round as noisy as that does not overthrow what was believed, before the last.
    let mut candidate = candidate_at(&[POINT]);
    candidate.reject(&round(2.0));
    assert_eq!(candidate.replaced().count(), 1);
}

/// Without three pairs of jobs nothing is loaded, however surely it was believed to be faster.
#[test]
fn what_no_job_showed_is_not_loaded() {
    let settled = candidate_at(&[POINT]).conclude(None, None);
    assert_eq!((replaced(&settled.choices), settled.unshown.unreached), (vec![], 1));
    let two = |round: RoundTimes| RoundTimes {
        turns: round.turns[..2].into(),
        loaded: vec![LoadedTimes {
            turns: round.loaded[0].turns[..2].into(),
            ..round.loaded[0].clone()
        }],
        ..round
    };
    let settled = candidate_at(&[POINT]).conclude(Some(&two(round(0.1))), None);
    assert_eq!((replaced(&settled.choices), settled.unshown.unreached), (vec![], 1));
    assert_eq!(settled.loading.mean_speed_up, 1.0);
}

/// So little slower that jobs may differ as much: what is believed would let it stay.
#[test]
fn what_is_told_to_be_significantly_slower_is_not_loaded() {
    let steady = |seconds: f64| visits(200, move |visit| seconds + 1e-4 * f64::from(visit));
    let settled = candidate_at(&[POINT]).conclude(Some(&rounds(steady(1.0), steady(1.07))), None);
    let harm = settled.loading.harm.clone().unwrap();
    assert_eq!(harm.slower.len(), 1, "{harm:?}");
    assert_eq!(replaced(&settled.choices), [] as [u64; 0]);
    assert_eq!(settled.loading.rejected[0].method, harm.slower[0].method);
}

const TWO_SIZES: [Point; 2] = [POINT, Point { bytes: 4096, ..POINT }];

/// Two sizes of a collective of which one method is loaded for all, the loaded times at both given.
fn whole(loaded: [f64; 2]) -> LoadCandidate {
    let one_for_all_sizes = BTreeSet::from([POINT.collective]);
    let candidate = candidate(WayChoices { one_for_all_sizes, ..chosen_at(&TWO_SIZES) });
    assert_eq!(candidate.replaced().count(), 2);
    let of = |seconds: [f64; 2]| samples_at(TWO_SIZES.into_iter().zip(seconds));
    candidate.conclude(Some(&rounds(of([1.0; 2]), of(loaded))), None)
}

#[test]
fn one_method_for_all_sizes_is_loaded_at_all_or_at_none() {
    let kept = whole([0.1, 0.5]);
    assert_eq!((replaced(&kept.choices).len(), kept.loading.gains.len()), (2, 2));
    let left = whole([0.1, 2.0]);
    assert_eq!((replaced(&left.choices).len(), left.loading.gains.len()), (0, 0));
    assert_eq!((left.loading.rejected.len(), left.loading.unexpressed.len()), (1, 1));
    let reason = &left.loading.unexpressed[0].reason;
    assert!(reason.contains("does not gain at 4 KiB"), "{reason}");
    assert_eq!(left.loading.mean_speed_up, 1.0);
}

/// While others had the processors the default took a thousand times as long: such a pair of jobs counts for nothing, not
/// even where there is no other.
#[test]
fn a_gain_that_others_made_is_neither_told_nor_loaded() {
    let of = |[here, there]: [f64; 2], disturbed: &[Point]| {
        let mut all = rows(TWO_SIZES[0], 0..4, |_| here);
        all.extend(rows(TWO_SIZES[1], 4..8, |_| there));
        for row in &mut all {
            if disturbed.iter().any(|point| point.bytes == row.point.bytes) {
                row.status = ObservationStatus::Disturbed;
            }
        }
        Samples::gather(&all, libraries::ran_as_asked)
    };
    let told = |disturbed: &[Point]| {
        let round = rounds(of([0.2, 200.0], disturbed), of([0.1; 2], &[]));
        let settled = candidate_at(&TWO_SIZES).conclude(Some(&round), None);
        let gains = settled.loading.gains.iter().map(|gain| gain.alone.speed_up.round());
        (gains.collect::<Vec<_>>(), replaced(&settled.choices).len(), settled.unshown.disturbed)
    };
    assert_eq!(told(&[]), (vec![2.0, 2000.0], 2, 0), "nobody disturbed it");
    assert_eq!(told(&TWO_SIZES[1..]), (vec![2.0], 1, 1));
    assert_eq!(told(&TWO_SIZES), (vec![], 0, 2), "there is nothing else");
}
