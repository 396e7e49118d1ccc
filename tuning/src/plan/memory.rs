//! What calls take of a rank's memory, and the points that are left out for it.

use records::{Collective, Layout, Point};

use super::{Grid, point_sizes};

/// Bytes that a rank needs at most for this call and all that need no more.
///
/// A rank keeps buffers for the largest call of a plan to send and to receive, which may be two different
/// ones; a method and the MPI library may copy both. So it is twice the sum of the two, and as the
/// greater of them stands for each, four times that.
pub fn rank_bytes(Point { collective, layout, bytes }: Point) -> u64 {
    let held = |held: records::BufferContent| held.bytes(bytes, layout.procs());
    4_u64.saturating_mul(held(collective.sends()).max(held(collective.receives())))
}

/// Whether a rank's memory allows the call; all where that is not known.
pub fn has_memory_for(point: Point, most: Option<u64>) -> bool {
    most.is_none_or(|most| rank_bytes(point) <= most)
}

/// A collective on a communicator whose greatest sizes a grid leaves out for its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutSizes {
    pub collective: Collective,
    /// The communicator's ranks and nodes.
    pub layout: Layout,
    /// The greatest size that is left; nothing where none is.
    pub greatest: Option<u64>,
    /// The greatest that was asked for.
    pub asked: u64,
}

/// What a grid leaves out for its memory.
pub fn cut(grid: &Grid) -> Vec<CutSizes> {
    let mut all = Vec::new();
    for &collective in &grid.collectives {
        for &layout in &grid.layouts {
            let point = |bytes| Point { collective, layout, bytes };
            let asked = point_sizes(grid, &grid.sizes, collective, layout);
            let left =
                asked.clone().filter(|&bytes| has_memory_for(point(bytes), grid.rank_bytes)).max();
            if let Some(asked) = asked.max()
                && left != Some(asked)
            {
                all.push(CutSizes { collective, layout, greatest: left, asked });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::JobCosts;
    use crate::plan::MethodsOf;
    use crate::{
        Weights,
        plan::{Extent, cells, make},
    };

    fn point(collective: Collective, procs: u32, bytes: u64) -> Point {
        Point { collective, layout: Layout::flat(procs), bytes }
    }

    #[test]
    fn a_rank_needs_what_it_sends_and_receives_twice() {
        assert_eq!(rank_bytes(point(Collective::Bcast, 64, 1000)), 4000);
        assert_eq!(rank_bytes(point(Collective::Allgather, 64, 1000)), 256_000);
        assert_eq!(rank_bytes(point(Collective::Gather, 64, 1000)), 256_000);
        assert_eq!(rank_bytes(point(Collective::ReduceScatterBlock, 64, 1000)), 256_000);
        assert_eq!(rank_bytes(point(Collective::Barrier, 64, 0)), 0);
        // What would be 3 GiB to send and 3 GiB to receive.
        assert_eq!(rank_bytes(point(Collective::Alltoall, 3072, 1 << 20)), 12 << 30);
        assert_eq!(rank_bytes(point(Collective::Alltoall, u32::MAX, u64::MAX)), u64::MAX);
    }

    /// Whatever is planned, all buffers of a rank and copies of them fit.
    #[test]
    fn no_plan_needs_more_than_a_rank_may_use() {
        let collectives = Collective::ALL.to_vec();
        for most in [0, 1 << 16, 1 << 24, 1 << 30] {
            let grid = Grid {
                ranks: 3072,
                collectives: collectives.clone(),
                layouts: [2, 48, 3072].map(Layout::flat).into(),
                sizes: (0..=20).map(|power| 1 << power).collect(),
                segments: vec![0],
                methods: MethodsOf::new(|_, _| Vec::new()),
                weights: Weights::default(),
                others: Vec::new(),
                rank_bytes: Some(most),
            };
            let plan = make(
                &grid,
                Extent::Exhaustive { rounds: 1 },
                1,
                &|_| Vec::new(),
                JobCosts::expected(0.0),
            )
            .plan;
            let greatest = |of: fn(Collective) -> records::BufferContent| {
                let held = |it: &records::plan::Cell| {
                    of(it.point.collective).bytes(it.point.bytes, it.point.layout.procs())
                };
                let needs = plan.cells.iter().map(held);
                needs.max().unwrap_or_default()
            };
            let buffers = greatest(Collective::sends) + greatest(Collective::receives);
            assert!(2 * buffers <= most, "{buffers} of {most}");
            // A barrier is always left.
            assert!(plan.cells.iter().any(|cell| cell.point.collective == Collective::Barrier));
            let left = |cut: &CutSizes| {
                let at = |cell: &&records::plan::Cell| {
                    cell.point.collective == cut.collective && cell.point.layout == cut.layout
                };
                plan.cells.iter().filter(at).map(|cell| cell.point.bytes).max()
            };
            let cut = cut(&grid);
            assert!(cut.iter().all(|cut| left(cut) == cut.greatest), "{cut:?}");
            let largest = (Collective::Alltoall, Layout::flat(3072));
            let alltoall = cut.iter().find(|it| (it.collective, it.layout) == largest);
            let greatest = alltoall.map(|cut| cut.greatest);
            match most {
                1073741824 => assert_eq!(greatest, Some(Some(64 << 10))),
                0 => assert_eq!(greatest, Some(None)),
                _ => assert!(greatest.is_some()),
            }
            let whole = Grid { rank_bytes: None, ..grid };
            assert_eq!(cells(&whole, &whole.sizes).len(), 15 * 3 * 21 + 3);
            assert_eq!(super::cut(&whole), []);
        }
    }
}
