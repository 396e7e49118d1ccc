//! What halving and doubling each constant does, on both benches, as a table.

use choosing::constants as believing;
use statistics::mean;
use tuning::constants;

use crate::{
    on_synthetic::{penalties, tuned},
    replayed::Reference,
    short_replay,
    synthetic::SyntheticCluster,
};

const WORLDS: u64 = 4;
const REPLAYS: u64 = 3;

/// Penalties in per cent of what is exported, each the mean over all points: one of each world, one of each
/// replay.
fn exported(reference: &Reference) -> [Vec<f64>; 2] {
    let of_world = |seed| {
        let world = SyntheticCluster::new(seed);
        100.0 * mean(&penalties(&world, &tuned(&world).confirmed.choices)).unwrap()
    };
    let of_replay = |seed| {
        let tuned = short_replay::tuned(reference, seed);
        100.0 * reference.penalty(&tuned.confirmed.choices, 0..u64::MAX).0
    };
    [(0..WORLDS).map(of_world).collect(), (1..=REPLAYS).map(of_replay).collect()]
}

fn means(reference: &Reference) -> [f64; 2] {
    exported(reference).map(|all| mean(&all).unwrap())
}

fn row(name: &str, value: f64, [half, double]: [[f64; 2]; 2]) {
    println!(
        "| `{name}` | {value} | {:.2} | {:.2} | {:.2} | {:.2} |",
        half[0], double[0], half[1], double[1]
    );
}

#[test]
#[ignore = "takes minutes: make bench"]
fn what_halving_and_doubling_each_constant_does() {
    let reference = short_replay::reference();
    let each = exported(&reference);
    println!("Each world and each replay: {each:.2?}\n");
    let usual = each.map(|all| mean(&all).unwrap());
    assert!(usual[0] < 1.5 && usual[1] < 2.0, "{usual:?}");
    println!("| constant | value | synthetic, halved | doubled | replayed, halved | doubled |");
    println!("|---|---:|---:|---:|---:|---:|");
    println!("| as they are | | {:.2} | {0:.2} | {:.2} | {1:.2} |", usual[0], usual[1]);
    macro_rules! each_of {
        ($of:ident) => {
            for name in $of::Constants::NAMES {
                let usual = $of::Constants::USUAL;
                let scaled = |factor| {
                    let scaled = Box::leak(Box::new(usual.scaled(name, factor)));
                    $of::with(scaled, || means(&reference))
                };
                row(name, usual.get(name).unwrap(), [0.5, 2.0].map(scaled));
            }
        };
    }
    each_of!(constants);
    each_of!(believing);
}
