//! Tuning replayed against the short part of a record: broadcasts on three numbers of processes.

use records::{Collective, Layout};
use tuning::plan::Grid;

use crate::{
    replayed::{Reference, grid},
    tuned::Tuned,
};

/// Of the time of measuring everything; with every method seen a few times that is short itself.
const SHARE: f64 = 0.25;
const CONFIRMING_SHARE: f64 = 0.2;

pub fn reference() -> Reference {
    let grid = Grid {
        collectives: vec![Collective::Bcast],
        layouts: [4, 8, 16].map(Layout::flat).into(),
        ..grid()
    };
    let names = ["measurements.csv.gz", "measurements-2.csv.gz", "measurements-5.csv.gz"];
    Reference::read(&names, &grid)
}

/// From some time of the record on.
pub fn tuned(reference: &Reference, seed: u64) -> Tuned {
    reference.tune(SHARE * reference.seconds, CONFIRMING_SHARE * reference.seconds, seed)
}

#[test]
fn a_quarter_of_a_short_record_decides_nearly_as_well() {
    let reference = reference();
    for seed in 1..=2 {
        let tuned = tuned(&reference, seed);
        let chosen = tuned.chosen();
        assert_eq!(chosen.len(), 3 * 21, "every point is decided");
        // Gains of short calls that few pairs of jobs don't show are left.
        for (choices, most) in [(&chosen, 0.16), (&tuned.confirmed.choices, 0.22)] {
            let (mean, high) = reference.penalty(choices, 0..u64::MAX);
            assert!(mean < 0.03 && high < most, "seed {seed}: mean {mean}, 95th {high}");
        }
    }
}
