use std::{cell::RefCell, cmp::Reverse, collections::BinaryHeap, rc::Rc};

use records::TreePace;

use super::{ChildOrder, RelativeRanks, Tree, TreeShape};
use crate::Call;

/// The tree in which the last rank hears as soon as it can, where messages take a trip and a rank sends
/// one every gap: whoever has heard sends to a new rank whenever it can (Karp, Sahay, Santos, Schauser,
/// "Optimal broadcast and summation in the LogP model", SPAA'93). Nobody has more children than the
/// fan-out, where that is not 0.
///
/// Ranks are numbered, from the root on, in the order in which they hear; of those that can send at the
/// same time the lower one comes first. So all ranks make the same tree.
#[derive(Debug, Clone, Copy)]
pub struct FittedTree {
    relative: RelativeRanks,
    key: TreeKey,
}

/// What a tree is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TreeKey {
    ranks: u32,
    pace: TreePace,
    most: u32,
}

/// By rank, relative to the root.
#[derive(Debug)]
struct GrownTree {
    parents: Vec<u32>,
    subtrees: Vec<u32>,
    /// All children, those of one parent together, the one served last first.
    children: Vec<u32>,
    /// Where those of each parent end; they begin where those of the rank before end.
    ends: Vec<u32>,
}

thread_local! {
    /// The last trees that were asked for, rank by rank: one takes O(p log p).
    static KEPT: RefCell<Vec<(TreeKey, Rc<GrownTree>)>> = const { RefCell::new(Vec::new()) };
}

/// Groups of ranks take turns where collectives are composed of others.
const KEPT_AT_ONCE: usize = 4;

impl GrownTree {
    fn new(key: TreeKey) -> Self {
        let TreeKey { ranks, pace, most } = key;
        let (trip, gap) = (u64::from(pace.trip), u64::from(pace.gap));
        let mut free = BinaryHeap::from([Reverse((0_u64, 0_u32))]);
        let (mut parents, mut numbers) = (vec![0; ranks as usize], vec![0_u32; ranks as usize]);
        for rank in 1..ranks {
            let Some(Reverse((time, parent))) = free.pop() else { break };
            parents[rank as usize] = parent;
            numbers[parent as usize] += 1;
            if most == 0 || numbers[parent as usize] < most {
                free.push(Reverse((time + gap, parent)));
            }
            free.push(Reverse((time + trip, rank)));
        }
        let mut subtrees = vec![1; ranks as usize];
        for rank in (1..ranks as usize).rev() {
            subtrees[parents[rank] as usize] += subtrees[rank];
        }
        let mut end = 0;
        let mut ends = Vec::with_capacity(ranks as usize);
        for number in &numbers {
            end += number;
            ends.push(end);
        }
        let mut children = vec![0; end as usize];
        let mut places = ends.clone();
        for rank in 1..ranks {
            let place = &mut places[parents[rank as usize] as usize];
            *place -= 1;
            children[*place as usize] = rank;
        }
        GrownTree { parents, subtrees, children, ends }
    }

    fn kept(key: TreeKey) -> Rc<GrownTree> {
        KEPT.with_borrow_mut(|kept| {
            if let Some((_, tree)) = kept.iter().find(|(of, _)| *of == key) {
                return Rc::clone(tree);
            }
            kept.truncate(KEPT_AT_ONCE - 1);
            let tree = Rc::new(GrownTree::new(key));
            kept.insert(0, (key, Rc::clone(&tree)));
            tree
        })
    }

    /// The places of a rank's children.
    fn span(&self, rank: u32) -> std::ops::Range<u32> {
        let begin = rank.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        begin..self.ends[rank as usize]
    }
}

impl FittedTree {
    fn made_for(shape: TreeShape, pace: TreePace) -> Self {
        let key = TreeKey { ranks: shape.ranks, pace, most: shape.fan_out };
        FittedTree { relative: RelativeRanks::new(shape), key }
    }
}

impl Tree for FittedTree {
    const DOWNWARD: ChildOrder = ChildOrder::Descending;

    fn new(shape: TreeShape) -> Self {
        FittedTree::made_for(shape, TreePace::EVEN)
    }

    fn of_call(call: &Call<'_>, root: u32) -> Self {
        let shape = TreeShape { ranks: call.ranks, root, fan_out: call.fan_out };
        FittedTree::made_for(shape, call.pace)
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        let relative = self.relative.relative(rank);
        let tree = GrownTree::kept(self.key);
        (relative > 0).then(|| self.relative.rank(tree.parents[relative as usize]))
    }

    fn child_count(&self, rank: u32) -> u32 {
        GrownTree::kept(self.key).span(self.relative.relative(rank)).len() as u32
    }

    fn child(&self, rank: u32, index: u32) -> u32 {
        let tree = GrownTree::kept(self.key);
        let place = tree.span(self.relative.relative(rank)).start + index;
        self.relative.rank(tree.children[place as usize])
    }

    fn subtree(&self, rank: u32) -> u32 {
        GrownTree::kept(self.key).subtrees[self.relative.relative(rank) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::children;

    /// When the last rank hears.
    fn last(ranks: u32, pace: TreePace, fan_out: u32) -> u64 {
        let root = ranks / 3;
        let tree = FittedTree::made_for(TreeShape { ranks, root, fan_out }, pace);
        let (mut next, mut last, mut met) = (vec![(root, 0_u64)], 0, 0);
        while let Some((rank, heard)) = next.pop() {
            (last, met) = (last.max(heard), met + 1);
            let mut begin = heard;
            for child in children(tree, rank, FittedTree::DOWNWARD) {
                assert_eq!(tree.parent(child), Some(rank));
                next.push((child, begin + u64::from(pace.trip)));
                begin += u64::from(pace.gap);
            }
            assert!(fan_out == 0 || tree.child_count(rank) <= fan_out);
        }
        assert_eq!((met, tree.subtree(root)), (ranks, ranks));
        last
    }

    /// How many can have heard by then, if nobody has more children than `left`.
    fn informed(time: i64, pace: TreePace, most: u32) -> u64 {
        let (trip, gap) = (i64::from(pace.trip), i64::from(pace.gap));
        let most = if most == 0 { u32::MAX } else { most };
        let sends = (0..most).map(|send| time - i64::from(send) * gap - trip);
        1 + sends.take_while(|left| *left >= 0).map(|left| informed(left, pace, most)).sum::<u64>()
    }

    /// A nanosecond earlier not all can have heard.
    #[test]
    fn nobody_could_hear_sooner() {
        for (trip, gap) in [(1, 1), (2, 1), (5, 2), (7, 1), (1, 3), (40, 9), (57, 24)] {
            let pace = TreePace { trip, gap };
            for (ranks, most) in (2..=70).flat_map(|ranks| [0, 1, 2, 3].map(|most| (ranks, most))) {
                let heard = last(ranks, pace, most) as i64;
                let all = u64::from(ranks);
                let case = format!("{ranks} ranks, {trip}:{gap}, {most} children");
                assert!(informed(heard, pace, most) >= all, "{case}");
                assert!(informed(heard - 1, pace, most) < all, "{case}");
            }
        }
    }
}
