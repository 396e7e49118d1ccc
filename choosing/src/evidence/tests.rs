use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};
use rand_pcg::Pcg64;
use records::Collective;

use super::*;

const CHAIN: &str = "native:openmpi:k-chain";
const PIPELINE: &str = "native:openmpi:pipeline";

/// A point at which pairs of jobs showed these logarithms of speed-ups, turn after turn.
fn paired(point: Point, method: &str, gains: impl IntoIterator<Item = f64>) -> PairedTimes {
    let turns: BTreeMap<usize, [f64; 2]> =
        gains.into_iter().map(|gain| [gain.exp(), 1.0]).enumerate().collect();
    PairedTimes { point, method: method.parse().unwrap(), made: turns.len(), turns }
}

/// At sizes 1, 2, 4, ...; the turns' ratios.
fn points(all: &[(&str, &[f64])]) -> Vec<PairedTimes> {
    let one = |((method, ratios), power): (&(&str, &[f64]), u32)| {
        let point = Point::flat(Collective::Bcast, 8, 1 << power);
        paired(point, method, ratios.iter().map(|ratio| ratio.ln()))
    };
    all.iter().zip(0..).map(one).collect()
}

fn never(_: Point, _: &Method) -> bool {
    false
}

/// `F` faster, `B` between, `S` slower, `o` open, `-` too few.
fn letters(shown: &[Shown]) -> String {
    let letter = |one: &Shown| match one {
        Shown::Faster(_) => 'F',
        Shown::Between(..) => 'B',
        Shown::Slower(_) => 'S',
        Shown::Open(_) => 'o',
        Shown::TooFewPairs => '-',
    };
    shown.iter().map(letter).collect()
}

fn judged(all: &[(&str, &[f64])]) -> String {
    letters(&shown(&points(all), &never))
}

const FAST: &[f64] = &[1.5, 1.52, 1.48];
const SLOW: &[f64] = &[0.8, 0.81, 0.79];
const OPEN: &[f64] = &[0.9, 1.3, 0.85];

#[test]
fn two_pairs_of_jobs_confirm_nothing_however_great_the_gain() {
    assert_eq!(judged(&[(CHAIN, &[20.0]), (CHAIN, &[10.0, 10.1])]), "--");
    assert_eq!(judged(&[(CHAIN, &[10.0, 10.1, 10.2])]), "F");
}

#[test]
fn a_size_between_confirmed_ones_belongs_to_them_unless_it_is_slower() {
    assert_eq!(judged(&[(CHAIN, FAST), (CHAIN, OPEN), (CHAIN, FAST)]), "FBF");
    assert_eq!(judged(&[(CHAIN, FAST), (CHAIN, &[]), (CHAIN, FAST)]), "FBF");
    assert_eq!(judged(&[(CHAIN, FAST), (CHAIN, SLOW), (CHAIN, FAST)]), "FSF");
    // What lies outside has nobody beyond it.
    assert_eq!(judged(&[(CHAIN, &[]), (CHAIN, FAST), (CHAIN, FAST), (CHAIN, OPEN)]), "-FFo");
}

/// As was seen: k-chain at 2 B, the default at 4 B, k-chain at 8 B.
#[test]
fn what_was_left_between_two_ranges_of_one_method_does_not_part_them() {
    let all = [(CHAIN, FAST), ("default", &[][..]), (CHAIN, FAST)];
    assert_eq!(judged(&all), "FBF");
    assert_eq!(letters(&shown(&points(&all), &|point, _| point.bytes == 2)), "F-F");
    assert_eq!(judged(&[(CHAIN, FAST), (PIPELINE, OPEN), (CHAIN, FAST)]), "FBF");
    assert_eq!(judged(&[(CHAIN, FAST), (PIPELINE, FAST), (CHAIN, FAST)]), "FFF");
}

/// Over a range of sizes a gain shows that none of them shows by itself.
#[test]
fn sizes_that_gain_little_are_confirmed_together() {
    let mut random = Pcg64::seed_from_u64(1);
    let noise = Normal::new(1.2_f64.ln(), 0.12).unwrap();
    let of_point = |index: u32| {
        let point = Point::flat(Collective::Bcast, 8, 1 << index);
        paired(point, CHAIN, (0..4).map(|_| noise.sample(&mut random)))
    };
    let all: Vec<PairedTimes> = (0..10).map(of_point).collect();
    let shown = shown(&all, &never);
    assert!(letters(&shown).matches('F').count() >= 8, "{}", letters(&shown));
    let Some(Shown::Faster(PairedSpeedUp { pairs: 4, speed_up, interval: [low, high] })) =
        shown.iter().find(|one| matches!(one, Shown::Faster(_)))
    else {
        panic!("{shown:?}")
    };
    assert!(1.0 < *low && low < speed_up && speed_up < high, "{low} {speed_up} {high}");
}

/// Each turn has an effect of its own on all points, each point its noise; `gain` is the truth.
fn drawn(seed: u64, turns: usize, gain: f64, noise: (f64, f64)) -> Vec<PairedTimes> {
    let mut random = Pcg64::seed_from_u64(seed);
    let [job, of_point] = [noise.0, noise.1].map(|deviation| Normal::new(0.0, deviation).unwrap());
    let effects: Vec<f64> = (0..turns).map(|_| job.sample(&mut random)).collect();
    let methods = [CHAIN, PIPELINE, "native:openmpi:binomial"];
    let one = |index: usize| {
        let point = Point::flat(Collective::Bcast, 2 << (index / 20), 1 << (index % 20));
        let method = methods[random.random_range(0..3)];
        let of_turn = |effect: &f64| gain.ln() + effect + of_point.sample(&mut random);
        paired(point, method, effects.iter().map(of_turn))
    };
    (0..60).map(one).collect()
}

/// Where nothing is faster, in at least 95 of 100 tunings nothing is confirmed, however much jobs differ from
/// one another, or points by themselves.
#[test]
fn nothing_is_confirmed_where_nothing_is_faster() {
    for noise in [(0.0, 0.1), (0.02, 0.05), (0.3, 0.05)] {
        for turns in [3, 4, 6] {
            let is_any = |&seed: &u64| {
                letters(&shown(&drawn(seed, turns, 1.0, noise), &never)).contains(['F', 'B'])
            };
            let wrong = (0..400).filter(is_any).count();
            assert!(wrong <= 20, "{wrong} of 400 with {turns} pairs and noise of {noise:?}");
        }
    }
}

/// What is 1.3 times as fast is confirmed nearly everywhere by three pairs of jobs that are as calm as usual.
#[test]
fn what_is_faster_is_confirmed_by_three_pairs() {
    let confirmed = |seed| {
        let shown = letters(&shown(&drawn(seed, 3, 1.3, (0.02, 0.03)), &never));
        shown.matches(['F', 'B']).count()
    };
    let all: usize = (0..50).map(confirmed).sum();
    assert!(all >= 50 * 57, "{all} of {}", 50 * 60);
}

proptest! {
    /// What is confirmed has three pairs and an interval above 1, is never what was shown to be slower, and ends in what seems
    /// faster. Evidence joins ranges and parts none: there are no more than runs, and points shown to be slower.
    #[test]
    fn what_is_confirmed_was_shown(
        all in prop::collection::vec(
            (0_usize..3, prop::collection::vec(-0.3..0.6_f64, 0..6)),
            1..30,
        ),
    ) {
        let methods = ["default", CHAIN, PIPELINE];
        let points: Vec<PairedTimes> = all.iter().zip(0..).map(|((method, turns), power)| {
            let turns = if *method == 0 { &[] } else { &turns[..] };
            paired(Point::flat(Collective::Bcast, 8, 1 << power), methods[*method], turns.iter().copied())
        }).collect();
        let shown = shown(&points, &never);
        prop_assert_eq!(shown.len(), points.len());
        let evidence = |one: &Shown| match one {
            Shown::Faster(evidence) | Shown::Between(_, evidence) => Some(*evidence),
            _ => None,
        };
        let mut ranges = 0;
        let mut before = None;
        for (point, shown) in points.iter().zip(&shown) {
            let here = evidence(shown);
            if let Some(PairedSpeedUp { pairs, speed_up, interval: [low, high] }) = here {
                prop_assert!(pairs >= 3 && 1.0 < low && low <= speed_up && speed_up <= high);
            }
            if let Shown::Faster(_) = shown {
                prop_assert!(point.turns.len() >= 3);
            }
            ranges += usize::from(here.is_some() && here != before);
            before = here;
        }
        let slower = shown.iter().filter(|one| matches!(one, Shown::Slower(_))).count();
        prop_assert!(ranges <= runs(&points).len() + slower);
        for (index, one) in shown.iter().enumerate() {
            if let Shown::Between(_, evidence) = one {
                let same = |other: &Shown| matches!(other, Shown::Faster(of) if of == evidence);
                prop_assert!(shown[..index].iter().any(same) && shown[index..].iter().any(same));
            }
        }
    }
}
