//! In which order cells are first looked at, and what a look may cost.

use std::collections::HashMap;

use crate::calibrate::cells::{Experiment, SizedExperiment};

/// The cells in groups that are looked at together: those of every third size of their kind, the first
/// two sizes among them, and the others; each from small sizes up.
pub(super) fn every_third_size(cells: &[SizedExperiment]) -> [Vec<&[SizedExperiment]>; 2] {
    let mut sizes: HashMap<Experiment, usize> = HashMap::new();
    let groups = cells.chunk_by(SizedExperiment::is_looked_at_with);
    let (thirds, between) = groups.partition(|group| {
        let before = sizes.entry(group[0].experiment).or_default();
        *before += 1;
        *before == 1 || *before % 3 == 2
    });
    [thirds, between]
}

/// What a repetition may cost, from the same experiment at the next smaller size: as much more as the
/// messages hold more bytes, a KiB per message being taken for what a message costs by itself.
pub(super) fn expected_seconds<'a>(
    cell: &SizedExperiment,
    known: impl Iterator<Item = (&'a SizedExperiment, f64)>,
) -> f64 {
    let weight = |cell: &SizedExperiment| {
        (cell.bytes as f64 + 1024.0) * f64::from(cell.messages) * f64::from(cell.procs)
    };
    let is_no_larger = |(known, _): &(&SizedExperiment, f64)| {
        known.experiment == cell.experiment && known.bytes <= cell.bytes
    };
    // The last one of these: among several numbers of processes the greatest.
    let smaller = known.filter(is_no_larger).max_by_key(|(known, _)| known.bytes);
    smaller.map_or(0.0, |(known, seconds)| seconds * (weight(cell) / weight(known)).max(1.0))
}
