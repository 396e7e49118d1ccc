//! In which order cells are first looked at, and what a look may cost.

use std::collections::HashMap;

use crate::calibrate::cells::{Experiment, SizedExperiment};

/// Bytes up to which every size has its round trip early: more than a frame of any network (9000 for jumbo
/// frames of Ethernet), beyond which half of a round trip is a straight line.
const SOME_FRAMES: u64 = 16 << 10;

/// The cells in groups that are looked at together, each part from small sizes up.
pub(super) struct FirstLooks<'a> {
    /// Of every third size of their kind, the first two sizes among them. Whether messages at once share a port
    /// is asked right after the indispensable sizes: it takes few calls, and forms of all trees turn on it.
    pub(super) thirds: Vec<&'a [SizedExperiment]>,
    /// Round trips of the sizes between, up to some frames: they take few calls, and half of one bends at a frame.
    pub(super) round_trips: Vec<&'a [SizedExperiment]>,
    pub(super) between: Vec<&'a [SizedExperiment]>,
}

impl<'a> FirstLooks<'a> {
    /// `was_seen`: by an earlier job. What the first job had no time for has its turn by size in later ones: else a
    /// third of a few seconds would leave all sizes between without trains.
    pub(super) fn new(
        cells: &'a [SizedExperiment],
        indispensable: &[u64],
        was_seen: impl Fn(&SizedExperiment) -> bool,
    ) -> Self {
        let is_asked = |group: &[SizedExperiment]| group[0].experiment == Experiment::FirstServed;
        let is_first_job = !cells.iter().any(&was_seen);
        let mut sizes: HashMap<Experiment, usize> = HashMap::new();
        let groups = cells.chunk_by(SizedExperiment::is_looked_at_with);
        let (mut thirds, between): (Vec<_>, Vec<_>) = groups.partition(|group| {
            let before = sizes.entry(group[0].experiment).or_default();
            *before += 1;
            let is_third = *before == 1 || *before % 3 == 2;
            is_third && (is_first_job || is_asked(group) || group.iter().any(&was_seen))
        });
        thirds.sort_by_key(|group| {
            if indispensable.contains(&group[0].bytes) { 0 } else { 2 - u8::from(is_asked(group)) }
        });
        let is_early = |cell: &&SizedExperiment| {
            cell.experiment == Experiment::RoundTrip && cell.bytes <= SOME_FRAMES
        };
        let apart = |group: &&'a [SizedExperiment]| {
            group.split_at(group.iter().take_while(is_early).count())
        };
        let (mut round_trips, mut between): (Vec<_>, Vec<_>) = between.iter().map(apart).unzip();
        round_trips.retain(|group| !group.is_empty());
        between.retain(|group| !group.is_empty());
        FirstLooks { thirds, round_trips, between }
    }
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
