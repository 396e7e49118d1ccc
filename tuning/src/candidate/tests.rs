use std::ops::Range;

use records::{
    Collective,
    observation::{CollectiveCall, ObservationStatus},
    plan::Cell,
};
use verification::samples::Samples;

use super::*;
use crate::round::LoadedTimes;

const POINT: Point = Point::flat(Collective::Bcast, 8, 64);

/// Ten visits of the default, every second of which took twice as long as those between.
fn samples(seconds: f64) -> Samples {
    visits(10, |visit| seconds * f64::from(1 + visit % 2))
}

fn visits(count: u32, seconds: impl Fn(u32) -> f64) -> Samples {
    Samples::gather(&rows(POINT, 0..count, seconds))
}

fn rows(point: Point, visits: Range<u32>, seconds: impl Fn(u32) -> f64) -> Vec<CollectiveCall> {
    let Point { collective, layout, bytes } = point;
    let cell = Cell { collective, method: Method::Default, layout, bytes };
    let row = |visit: u32| CollectiveCall { visit, ..CollectiveCall::timed(&cell, seconds(visit)) };
    visits.map(row).collect()
}

/// As [`samples`] at several points.
fn samples_at(points: impl Iterator<Item = (Point, f64)>) -> Samples {
    let of = |((point, seconds), index): ((Point, f64), u32)| {
        rows(point, 10 * index..10 * index + 10, move |visit| seconds * f64::from(1 + visit % 2))
    };
    Samples::gather(&points.zip(0..).flat_map(of).collect::<Vec<_>>())
}

/// Four turns; each sample of which stands for what a turn's visits show.
fn round(loaded: f64) -> ConfirmingRound {
    rounds(samples(1.0), samples(loaded))
}

fn rounds(default: Samples, samples: Samples) -> ConfirmingRound {
    let turns = [default.clone(), samples.clone()].map(|samples| vec![samples; 4]);
    let [of_default, turns] = turns;
    let loaded = vec![LoadedTimes { way: LoadWay::Rules, samples, turns, rows: Vec::new() }];
    ConfirmingRound { default, turns: of_default, loaded }
}

/// Believed to be ten times as fast.
fn candidate() -> LoadCandidate {
    candidate_with(&[])
}

fn candidate_with(between: &[TimedChoice]) -> LoadCandidate {
    let method = "native:openmpi:pipeline".parse().unwrap();
    let choice = TimedChoice { point: POINT, method, seconds: 0.1, default_seconds: 1.0 };
    let way = WayToLoad {
        way: LoadWay::Rules,
        file: "openmpi.rules",
        loaded: &|_, method| Ok(method.clone()),
        choices: &[choice],
        doubts: &BTreeMap::from([(POINT, 0.02)]),
        between,
        one_for_all_sizes: &BTreeSet::new(),
        elsewhere: &BTreeSet::new(),
    };
    LoadCandidate::new(&way)
}

/// A rules file has one layout of each number of processes: on the others it runs what was chosen for
/// that one. So nothing is replaced there, no gain is told, and the default is no control.
#[test]
fn where_another_layouts_choice_runs_nothing_is_loaded_or_told() {
    let nodes = Point { layout: "4x2".parse().unwrap(), ..POINT };
    let choice = |point| TimedChoice {
        point,
        method: "native:openmpi:pipeline".parse().unwrap(),
        seconds: 0.1,
        default_seconds: 1.0,
    };
    let mut candidate = LoadCandidate::new(&WayToLoad {
        way: LoadWay::Rules,
        file: "openmpi.rules",
        loaded: &|_, method| Ok(method.clone()),
        choices: &[choice(nodes), choice(POINT)],
        doubts: &[nodes, POINT].map(|point| (point, 0.02)).into(),
        between: &[],
        one_for_all_sizes: &BTreeSet::new(),
        elsewhere: &BTreeSet::from([POINT]),
    });
    assert_eq!(candidate.replaced().map(|one| one.point).collect::<Vec<_>>(), [nodes]);
    assert!(candidate.loading.unexpressed.is_empty());
    assert!(!candidate.leaves_alone(POINT));
    let shown = |seconds: f64| samples_at([(nodes, seconds), (POINT, seconds)].into_iter());
    let round = rounds(shown(1.0), shown(0.5));
    candidate.take_out(&round, true);
    assert_eq!(candidate.record_gains(&round, None), Vec::<String>::new());
    let gained: Vec<Point> = candidate.loading.gains.iter().map(Gain::point).collect();
    assert_eq!(gained, [nodes]);
    assert_eq!(candidate.loading.elsewhere, 1);
    assert!((candidate.loading.mean_speed_up - 2.0).abs() < 1e-9);
}

/// It is loaded with the rest, and not told as a gain; where the method does harm it goes, too.
#[test]
fn what_is_predicted_between_sizes_is_loaded_unless_its_method_was_taken_out() {
    let of = |bytes, method: &str| TimedChoice {
        point: Point { bytes, ..POINT },
        method: method.parse().unwrap(),
        seconds: 0.1,
        default_seconds: 1.0,
    };
    let between = [of(16, "native:openmpi:pipeline"), of(32, "native:openmpi:linear")];
    let mut candidate = candidate_with(&between);
    let loaded = |candidate: &LoadCandidate| -> Vec<(u64, bool)> {
        let choices = candidate.load().choices.iter();
        choices.map(|choice| (choice.point.bytes, choice.method != Method::Default)).collect()
    };
    assert_eq!(loaded(&candidate), [(16, true), (32, true), (64, true)]);
    assert_eq!((candidate.replaced().count(), candidate.loading.between), (1, 2));
    candidate.take_out(&round(2.0), true);
    assert_eq!(loaded(&candidate), [(16, false), (32, true), (64, false)]);
    assert_eq!(candidate.loading.between, 1);

    // Taken out at 64 B, kept at 4 KiB: the nearest one tells.
    let pipeline = |bytes| of(bytes, "native:openmpi:pipeline");
    let mut candidate = candidate_with(&[pipeline(128), pipeline(2048)]);
    candidate.choices.push(pipeline(4096));
    candidate.take_out(&round(2.0), true);
    assert_eq!(loaded(&candidate), [(64, false), (128, false), (2048, true), (4096, true)]);
}

#[test]
fn what_the_last_round_shows_to_do_harm_is_taken_out_whatever_was_believed() {
    let left = |loaded, is_last| {
        let mut candidate = candidate();
        candidate.take_out(&round(loaded), is_last);
        (candidate.replaced().count(), candidate.loading.taken_out)
    };
    assert_eq!(left(2.0, false).0, 1, "one round as noisy as that does not overthrow it");
    let (replaced, taken_out) = left(2.0, true);
    assert_eq!((replaced, taken_out.len()), (0, 1));
    assert!((taken_out[0].speed_up - 0.5).abs() < 1e-9);
    assert_eq!(left(1.05, true), (1, Vec::new()), "that is no harm");
}

/// So little slower that jobs may differ as much: what is believed would let it stay.
#[test]
fn what_is_told_to_be_significantly_slower_is_not_loaded() {
    let steady = |seconds: f64| visits(200, move |visit| seconds + 1e-4 * f64::from(visit));
    let mut candidate = candidate();
    candidate.take_out(&rounds(steady(1.0), steady(1.07)), true);
    let harm = candidate.loading.harm.clone().unwrap();
    assert_eq!(harm.slower.len(), 1, "{harm:?}");
    assert_eq!(candidate.replaced().count(), 0);
    assert_eq!(candidate.loading.taken_out[0].method, harm.slower[0].method);
}

const TWO_SIZES: [Point; 2] = [POINT, Point { bytes: 4096, ..POINT }];

/// At two sizes one method, believed to take 0.1 s.
fn at_two_sizes(default_seconds: f64, one_for_all_sizes: &BTreeSet<Collective>) -> LoadCandidate {
    let choices = TWO_SIZES.map(|point| TimedChoice {
        point,
        method: "native:openmpi:pipeline".parse().unwrap(),
        seconds: 0.1,
        default_seconds,
    });
    LoadCandidate::new(&WayToLoad {
        way: LoadWay::Rules,
        file: "openmpi.rules",
        loaded: &|_, method| Ok(method.clone()),
        choices: &choices,
        doubts: &TWO_SIZES.map(|point| (point, 0.02)).into(),
        between: &[],
        one_for_all_sizes,
        elsewhere: &BTreeSet::new(),
    })
}

/// Two sizes of a collective of which one method is loaded for all, the loaded times at both given.
fn whole(loaded: [f64; 2]) -> LoadCandidate {
    let mut candidate = at_two_sizes(1.0, &BTreeSet::from([POINT.collective]));
    assert_eq!(candidate.replaced().count(), 2);
    let of = |seconds: [f64; 2]| samples_at(TWO_SIZES.into_iter().zip(seconds));
    let round = rounds(of([1.0; 2]), of(loaded));
    candidate.take_out(&round, true);
    candidate.record_gains(&round, None);
    candidate
}

#[test]
fn one_method_for_all_sizes_is_loaded_at_all_or_at_none() {
    let kept = whole([0.1, 0.5]);
    assert_eq!((kept.replaced().count(), kept.loading.gains.len()), (2, 2));
    let left = whole([0.1, 2.0]);
    assert_eq!((left.replaced().count(), left.loading.gains.len()), (0, 0));
    assert_eq!((left.loading.taken_out.len(), left.loading.unexpressed.len()), (1, 1));
    let reason = &left.loading.unexpressed[0].reason;
    assert!(reason.contains("does not gain at 4 KiB"), "{reason}");
    assert_eq!(left.loading.mean_speed_up, 1.0);
}

/// While others had the processors the default took a thousand times as long at one of two points.
#[test]
fn a_gain_that_others_made_is_not_told() {
    let of = |[here, there]: [f64; 2], disturbed: &[Point]| {
        let mut all = rows(TWO_SIZES[0], 0..4, |_| here);
        all.extend(rows(TWO_SIZES[1], 4..8, |_| there));
        for row in &mut all {
            if disturbed.iter().any(|point| point.bytes == row.bytes) {
                row.status = ObservationStatus::Disturbed;
            }
        }
        Samples::gather(&all)
    };
    let told = |disturbed: &[Point]| {
        let round = rounds(of([0.2, 200.0], disturbed), of([0.1; 2], &[]));
        let mut candidate = at_two_sizes(0.2, &BTreeSet::new());
        candidate.take_out(&round, true);
        candidate.record_gains(&round, None);
        let Loading { gains, unconfirmed, .. } = candidate.loading;
        (gains.iter().map(|gain| gain.speed_up.round()).collect::<Vec<_>>(), unconfirmed)
    };
    assert_eq!(told(&TWO_SIZES[1..]), (vec![2.0], 1), "believed to be twice as fast, and loaded");
    assert_eq!(told(&[]), (vec![2.0, 2000.0], 0), "nobody disturbed it");
    assert_eq!(told(&TWO_SIZES), (vec![2.0, 2000.0], 0), "there is nothing else");
}
