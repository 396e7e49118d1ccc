//! Where the centres of a parameter stand, and what lies between them.

use std::collections::BTreeMap;

use records::{observation::PointToPointKind, quantity::format_bytes};

use super::{
    samples::{Centres, LONGEST_LESS_SHORTEST},
    words::list_sizes,
};

/// Beyond the last size a line goes on that begins at this part of it.
const TAIL_BASE: u64 = 16;

/// The shortest and the longest train of one size: (messages, place); and the place of what the one
/// took longer than the other, where the same visits timed both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Train {
    pub(super) difference: Option<usize>,
    pub(super) short: (u32, usize),
    pub(super) long: (u32, usize),
}

/// A value on the line through two places; beyond them where `part` is above 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Between {
    low: usize,
    high: usize,
    part: f64,
}

impl Between {
    /// `places` are (bytes, place), ascending and not empty: the first holds below it, beyond the
    /// last the line goes on that leads to it from a [`TAIL_BASE`]th of its size: neighbours are too
    /// near each other to tell a slope.
    pub(super) fn new(places: &[(u64, usize)], bytes: u64) -> Self {
        let above = places.partition_point(|(size, _)| *size <= bytes);
        let high = above.clamp(1, places.len()).min(places.len() - 1);
        let (last, _) = places[places.len() - 1];
        let low = if bytes > last {
            places.partition_point(|(size, _)| *size < last / TAIL_BASE).min(high.saturating_sub(1))
        } else {
            high.saturating_sub(1)
        };
        let ((low_bytes, low), (high_bytes, high)) = (places[low], places[high]);
        let part = if bytes <= low_bytes || low == high {
            0.0
        } else {
            (bytes - low_bytes) as f64 / (high_bytes - low_bytes) as f64
        };
        Between { low, high, part }
    }

    pub(super) fn interpolate(&self, value: impl Fn(usize) -> f64) -> f64 {
        let (low, high) = (value(self.low), value(self.high));
        // Beyond the last, a line that falls is noise.
        let rise = if self.part > 1.0 { (high - low).max(0.0) } else { high - low };
        let from = if self.part > 1.0 { high } else { low };
        let part = if self.part > 1.0 { self.part - 1.0 } else { self.part };
        from + part * rise
    }
}

/// An overhead that grows by this much more than the message does has begun to contain waiting.
const RENDEZVOUS_JUMP: f64 = 4.0;
/// Below this size every library sends eagerly, and a jump is noise.
const MIN_EAGER_LIMIT: u64 = 512;

/// The overheads up to the size from which the call waits for the other side: the transfer is not
/// an overhead of the processor. `places` are (bytes, place), ascending and not empty.
pub(super) fn without_waiting<'a>(
    name: &str,
    places: &'a [(u64, usize)],
    centres: &Centres,
    warnings: &mut Vec<String>,
) -> &'a [(u64, usize)] {
    let jumps = |pair: &[(u64, usize)]| {
        let [(below, below_place), (above, above_place)] = *pair else { return false };
        let growth = centres.seconds[above_place] / centres.seconds[below_place];
        below >= MIN_EAGER_LIMIT && growth > RENDEZVOUS_JUMP * (above as f64 / below as f64)
    };
    match places.windows(2).position(jumps) {
        None => places,
        Some(last) => {
            let (from, _) = places[last + 1];
            warnings.push(format!(
                "{name}(m) contains waiting for the other side (rendezvous) from {} on: \
                 extrapolated from the smaller sizes",
                format_bytes(from)
            ));
            &places[..=last]
        }
    }
}

/// The trains of the sizes at which two lengths were timed.
pub(super) fn trains(centres: &Centres, warnings: &mut Vec<String>) -> BTreeMap<u64, Train> {
    let mut trains: BTreeMap<u64, Train> = BTreeMap::new();
    let timed = centres.keys().filter(|((kind, ..), _)| *kind == PointToPointKind::Train);
    let mut differences: BTreeMap<u64, usize> = BTreeMap::new();
    // The keys ascend by length within a size, the difference first.
    for ((_, bytes, messages), place) in timed {
        if messages == LONGEST_LESS_SHORTEST {
            differences.insert(bytes, place);
            continue;
        }
        let (end, difference) = ((messages, place), differences.get(&bytes).copied());
        trains.entry(bytes).or_insert(Train { difference, short: end, long: end }).long = end;
    }
    let (both, single): (BTreeMap<_, _>, BTreeMap<_, _>) =
        trains.into_iter().partition(|(_, train)| train.short.0 < train.long.0);
    if !single.is_empty() {
        let sizes: Vec<u64> = single.into_keys().collect();
        warnings.push(format!(
            "trains of only one length give no gap and were excluded: at {}",
            list_sizes(&sizes)
        ));
    }
    both
}

pub(super) fn warn_of_gaps_between(
    name: &str,
    measured: &[(u64, usize)],
    knots: impl Iterator<Item = u64>,
    warnings: &mut Vec<String>,
) {
    let is_measured = |bytes| measured.iter().any(|(size, _)| *size == bytes);
    let sizes: Vec<u64> = knots.filter(|bytes| !is_measured(*bytes)).collect();
    if !sizes.is_empty() {
        warnings.push(format!(
            "{name}(m) was not measured at {}: taken from the line through the nearest sizes",
            list_sizes(&sizes)
        ));
    }
}
