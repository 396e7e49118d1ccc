use super::{ChildOrder, Tree, TreeShape};
use crate::Call;

/// A binary tree that keeps the order of ranks, with the last rank of every run at its head,
/// whatever the root: what comes to the last rank is handed to the root.
///
/// Of the ranks before the head of a run the first half is one child's run, and the rest the other
/// one's. It is the tree of Open MPI's in-order binary reduction
/// (`ompi_coll_base_topo_build_in_order_bintree`).
#[derive(Debug, Clone, Copy)]
pub struct LastInOrder {
    ranks: u32,
}

/// The ranks `first..=head` with their head's parent; the first child's run is `middle..head`, the
/// second's `first..middle`.
struct HeadedRun {
    parent: Option<u32>,
    first: u32,
    middle: u32,
}

impl LastInOrder {
    fn find(&self, rank: u32) -> HeadedRun {
        let (mut first, mut head, mut parent) = (0, self.ranks - 1, None);
        loop {
            let size = head + 1 - first;
            let middle = if size > 2 { first + size / 2 } else { first };
            if rank == head {
                return HeadedRun { parent, first, middle };
            }
            parent = Some(head);
            match rank < middle {
                true => head = middle - 1,
                false => (first, head) = (middle, head - 1),
            }
        }
    }
}

impl Tree for LastInOrder {
    const DOWNWARD: ChildOrder = ChildOrder::Ascending;

    fn new(shape: TreeShape) -> Self {
        LastInOrder { ranks: shape.ranks }
    }

    fn head(call: &Call<'_>) -> u32 {
        call.ranks - 1
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        self.find(rank).parent
    }

    fn child_count(&self, rank: u32) -> u32 {
        let run = self.find(rank);
        u32::from(run.middle < rank) + u32::from(run.first < run.middle)
    }

    /// The nearer one first.
    fn child(&self, rank: u32, index: u32) -> u32 {
        if index == 0 { rank - 1 } else { self.find(rank).middle - 1 }
    }

    fn stands_before(&self, _rank: u32, _child: u32) -> bool {
        true
    }
}
