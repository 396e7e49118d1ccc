//! Whether the machine under a virtual cluster carries all its links at once.
//!
//! Every node sends a message to the next and receives one from the one before, all at once. On
//! links of their own that takes as long among many nodes as among few; what it takes longer is
//! the machine's doing, and what is measured there says less of a real cluster.

use std::collections::BTreeMap;

use records::{
    Point,
    group_observation::{GroupKind, GroupObservation},
    observation::ObservationStatus,
    penalty::BusyLinks,
};
use statistics::median;

/// The nodes among which the machine is taken to carry all links: the fewest in a ring of which
/// every link has a connection of its own.
pub const FEWEST_NODES: u32 = 3;
/// A greater relative slowdown than this limits what is measured.
pub const TOLERANCE: f64 = 0.1;

/// The times of all numbers of nodes that were measured, ascending by these and by size; those of
/// the fewest, at least [`FEWEST_NODES`], are what the others are compared with.
pub fn busy_links(rows: &[GroupObservation]) -> Vec<BusyLinks> {
    let mut times: BTreeMap<(u32, u64), Vec<f64>> = BTreeMap::new();
    let counts = |row: &&GroupObservation| {
        row.kind == GroupKind::Ring
            && row.procs >= FEWEST_NODES
            && row.status != ObservationStatus::Warmup
    };
    for row in rows.iter().filter(counts) {
        times.entry((row.procs, row.bytes)).or_default().push(row.seconds);
    }
    let medians: BTreeMap<(u32, u64), f64> =
        times.iter().filter_map(|(&at, seconds)| Some((at, median(seconds)?))).collect();
    let Some(&(few, _)) = medians.keys().next() else { return Vec::new() };
    let links = |(&(procs, bytes), &seconds): (&(u32, u64), &f64)| {
        let slowdown = seconds / medians.get(&(few, bytes))?;
        Some(BusyLinks { procs, bytes, seconds, slowdown })
    };
    medians.iter().filter_map(links).collect()
}

/// Whether the machine's limit shows at a point: all links of that many nodes, or of the next
/// greater number measured, are slower by more than [`TOLERANCE`] with messages of that size.
///
/// Between two sizes measured the slowdown is interpolated over the logarithm of the size; outside
/// it is that of the nearest.
pub fn is_limited(links: &[BusyLinks], point: Point) -> bool {
    let Some(procs) =
        links.iter().map(|link| link.procs).find(|&nodes| nodes >= point.layout.nodes())
    else {
        return false;
    };
    let of_procs: Vec<&BusyLinks> = links.iter().filter(|link| link.procs == procs).collect();
    let after = of_procs.partition_point(|link| link.bytes < point.bytes);
    let slowdown = match (of_procs.get(after.wrapping_sub(1)), of_procs.get(after)) {
        (Some(below), Some(above)) => {
            let octaves = |bytes: u64| (bytes.max(1) as f64).log2();
            let share = (octaves(point.bytes) - octaves(below.bytes))
                / (octaves(above.bytes) - octaves(below.bytes));
            below.slowdown + share * (above.slowdown - below.slowdown)
        }
        (one, other) => one.or(other).map_or(1.0, |link| link.slowdown),
    };
    slowdown > 1.0 + TOLERANCE
}

#[cfg(test)]
mod tests {
    use records::Collective;

    use super::*;

    fn row(procs: u32, bytes: u64, seconds: f64, repetition: u32) -> GroupObservation {
        GroupObservation {
            kind: GroupKind::Ring,
            operation: None,
            procs,
            bytes,
            messages: 1,
            job: 0,
            visit: repetition,
            repetition,
            seconds,
            status: if repetition == 0 { ObservationStatus::Warmup } else { ObservationStatus::Ok },
        }
    }

    fn links() -> Vec<BusyLinks> {
        let mut rows = Vec::new();
        for repetition in 0..4 {
            let first = if repetition == 0 { 50.0 } else { 1.0 };
            rows.push(row(2, 1024, 0.1 * first, repetition));
            for (procs, bytes, seconds) in [
                (3, 1024, 1.0),
                (3, 1 << 20, 80.0),
                (8, 1024, 1.05),
                (8, 1 << 20, 80.0),
                (16, 1024, 3.0),
                (16, 1 << 20, 84.0),
            ] {
                rows.push(row(procs, bytes, seconds * first, repetition));
            }
        }
        busy_links(&rows)
    }

    #[test]
    fn all_links_are_compared_with_those_of_few_nodes() {
        let slowdowns: Vec<f64> = links().iter().map(|link| link.slowdown).collect();
        assert_eq!(slowdowns, [1.0, 1.0, 1.05, 1.0, 3.0, 1.05]);
        assert!(busy_links(&[row(2, 8, 1.0, 1)]).is_empty());
    }

    #[test]
    fn what_is_slower_by_more_than_a_tenth_is_the_machines_limit() {
        let limited =
            |procs, bytes| is_limited(&links(), Point::flat(Collective::Bcast, procs, bytes));
        assert!(!limited(2, 1) && !limited(8, 1024));
        assert!(limited(16, 1) && limited(16, 1024) && limited(11, 64));
        assert!(limited(16, 64 << 10), "6 of 10 octaves from 3 to 1.05");
        assert!(!limited(16, 1 << 20) && !limited(16, 1 << 22) && limited(16, 512 << 10));
        assert!(!limited(17, 1), "more than was measured");
        assert!(!is_limited(&[], Point::flat(Collective::Bcast, 4, 1)));
        let of_four =
            Point { layout: "4x4".parse().unwrap(), ..Point::flat(Collective::Bcast, 16, 1024) };
        assert!(!is_limited(&links(), of_four), "16 ranks on 4 nodes");
    }
}
