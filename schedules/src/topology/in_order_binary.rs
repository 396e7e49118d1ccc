use super::{ChildOrder, Tree, TreeShape};

/// A binary tree that lists the ranks when it is read in order (left, self, right).
///
/// Everything before the root is its left side and everything after it its right side; within a
/// side, the middle rank heads it. So a reduction keeps the order of operands with any root, and
/// from a root in the middle the tree is as low as a binary tree can be.
#[derive(Debug, Clone, Copy)]
pub struct InOrderBinary {
    ranks: u32,
    root: u32,
}

/// Where a rank stands: the ranks below it are `first..rank` and `rank + 1..end`.
struct RankSpan {
    parent: Option<u32>,
    first: u32,
    end: u32,
}

const fn middle(first: u32, end: u32) -> u32 {
    first + (end - first) / 2
}

impl InOrderBinary {
    fn find(&self, rank: u32) -> RankSpan {
        let mut place = RankSpan { parent: None, first: 0, end: self.ranks };
        let mut head = self.root;
        while head != rank {
            place.parent = Some(head);
            if rank < head {
                place.end = head;
            } else {
                place.first = head + 1;
            }
            head = middle(place.first, place.end);
        }
        place
    }
}

impl Tree for InOrderBinary {
    const DOWNWARD: ChildOrder = ChildOrder::Ascending;

    fn new(shape: TreeShape) -> Self {
        InOrderBinary { ranks: shape.ranks, root: shape.root }
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        self.find(rank).parent
    }

    fn child_count(&self, rank: u32) -> u32 {
        let place = self.find(rank);
        u32::from(place.first < rank) + u32::from(rank + 1 < place.end)
    }

    fn child(&self, rank: u32, index: u32) -> u32 {
        let place = self.find(rank);
        if index == 0 && place.first < rank {
            middle(place.first, rank)
        } else {
            middle(rank + 1, place.end)
        }
    }

    fn stands_before(&self, rank: u32, child: u32) -> bool {
        child < rank
    }

    fn ordered_root(wanted: u32) -> Option<u32> {
        Some(wanted)
    }
}
