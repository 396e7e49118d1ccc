use std::{cell::RefCell, rc::Rc};

use super::{ChildOrder, RelativeRanks, Tree, TreeShape};

/// The partner of a rank in a step, among an even number of ranks: 1, -1, 3, -5, 11, ... away, in
/// the one direction from even ranks and in the other from odd ones.
pub fn bine_peer(ranks: u32, rank: u32, step: u32) -> u32 {
    let power = (-2_i64).pow(step + 1);
    let distance = (1 - power) / 3;
    let away = if rank.is_multiple_of(2) { distance } else { -distance };
    (i64::from(rank) + away).rem_euclid(i64::from(ranks)) as u32
}

/// A binomial tree whose ranks are nearer to each other: in step after step, the farthest first, whoever
/// has the message sends it to the partner of that step, if that one hasn't (De Sensi et al., "Bine
/// Trees", SC'25, arXiv 2508.17311).
///
/// Where the number of ranks is odd, the last one hears from the first rank that has nothing to send
/// in some step.
#[derive(Debug, Clone, Copy)]
pub struct Bine {
    relative: RelativeRanks,
    ranks: u32,
}

/// When a rank hears, counted from the last step on, and from whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reception {
    late: u32,
    from: u32,
}

/// Of all ranks, relative to the root: when they hear, and how many are below each, with itself.
#[derive(Debug)]
struct Found {
    hearings: Vec<Reception>,
    subtrees: Vec<u32>,
}

thread_local! {
    /// The last trees that were asked for: to find one takes O(p log p), and it is asked for rank by
    /// rank.
    static KEPT: RefCell<Vec<(u32, Rc<Found>)>> = const { RefCell::new(Vec::new()) };
}

/// Groups of ranks take turns where collectives are composed of others.
const KEPT_AT_ONCE: usize = 4;

fn kept(ranks: u32) -> Rc<Found> {
    KEPT.with_borrow_mut(|kept| {
        if let Some((_, tree)) = kept.iter().find(|(of, _)| *of == ranks) {
            return Rc::clone(tree);
        }
        kept.truncate(KEPT_AT_ONCE - 1);
        let hearings = found(ranks);
        let subtrees = subtrees(&hearings);
        let tree = Rc::new(Found { hearings, subtrees });
        kept.insert(0, (ranks, Rc::clone(&tree)));
        tree
    })
}

/// Who hears later is below who hears before.
fn subtrees(hearings: &[Reception]) -> Vec<u32> {
    let mut subtrees = vec![1; hearings.len()];
    let mut order: Vec<usize> = (1..hearings.len()).collect();
    order.sort_by_key(|rank| hearings[*rank].late);
    for rank in order {
        subtrees[hearings[rank].from as usize] += subtrees[rank];
    }
    subtrees
}

/// By rank; the root hears from itself.
fn found(ranks: u32) -> Vec<Reception> {
    let even = (ranks - ranks % 2).max(1);
    let steps = u32::BITS - (even - 1).leading_zeros();
    let mut hearings = vec![None; ranks as usize];
    hearings[0] = Some(Reception { late: 0, from: 0 });
    let mut spare = None;
    for step in (0..steps).rev() {
        let known: Vec<bool> = hearings.iter().map(Option::is_some).collect();
        let late = step + 1;
        for rank in (0..even).filter(|rank| known[*rank as usize]) {
            let peer = bine_peer(even, rank, step);
            if !known[peer as usize] {
                hearings[peer as usize] = Some(Reception { late, from: rank });
            } else if spare.is_none() {
                spare = Some(Reception { late, from: rank });
            }
        }
    }
    let last = spare.unwrap_or(Reception { late: 0, from: 0 });
    hearings.into_iter().map(|hearing| hearing.unwrap_or(last)).collect()
}

impl Bine {
    /// The children, relative to the root, the last served first.
    fn children_of(&self, relative: u32) -> impl Iterator<Item = u32> {
        let (found, ranks) = (kept(self.ranks), self.ranks);
        let even = (ranks - ranks % 2).max(1);
        let steps = u32::BITS - (ranks - 1).leading_zeros();
        let odd = (even < ranks).then_some(even);
        (0..=steps).flat_map(move |late| {
            let is_partner = late > 0 && relative < even;
            let peer = is_partner.then(|| bine_peer(even, relative, late - 1));
            let found = Rc::clone(&found);
            [peer, odd].into_iter().flatten().filter(move |&child| {
                child != 0 && found.hearings[child as usize] == Reception { late, from: relative }
            })
        })
    }
}

impl Tree for Bine {
    const DOWNWARD: ChildOrder = ChildOrder::Descending;

    fn new(shape: TreeShape) -> Self {
        Bine { relative: RelativeRanks::new(shape), ranks: shape.ranks }
    }

    fn parent(&self, rank: u32) -> Option<u32> {
        let relative = self.relative.relative(rank);
        (relative > 0)
            .then(|| self.relative.rank(kept(self.ranks).hearings[relative as usize].from))
    }

    fn child_count(&self, rank: u32) -> u32 {
        self.children_of(self.relative.relative(rank)).count() as u32
    }

    fn child(&self, rank: u32, index: u32) -> u32 {
        let relative = self.relative.relative(rank);
        let child = self.children_of(relative).nth(index as usize);
        self.relative.rank(child.unwrap_or(relative))
    }

    fn subtree(&self, rank: u32) -> u32 {
        kept(self.ranks).subtrees[self.relative.relative(rank) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::children;

    /// The partners of the paper: eight ranks, three steps.
    #[test]
    fn partners_are_a_matching() {
        let of = |step| (0..8).map(|rank| bine_peer(8, rank, step)).collect::<Vec<_>>();
        assert_eq!(of(0), [1, 0, 3, 2, 5, 4, 7, 6]);
        assert_eq!(of(1), [7, 2, 1, 4, 3, 6, 5, 0]);
        assert_eq!(of(2), [3, 6, 5, 0, 7, 2, 1, 4]);
        for ranks in (2..=100).step_by(2) {
            for (rank, step) in (0..ranks).flat_map(|rank| (0..8).map(move |step| (rank, step))) {
                let peer = bine_peer(ranks, rank, step);
                assert_eq!(bine_peer(ranks, peer, step), rank, "{ranks} ranks, step {step}");
            }
        }
    }

    /// Everybody hears within ceil(log2 p) rounds, if a rank sends one message in each.
    #[test]
    fn it_takes_the_fewest_rounds() {
        for ranks in 1..=160_u32 {
            let tree = Bine::new(TreeShape { ranks, root: ranks / 3, fan_out: 2 });
            let mut rounds = vec![0; ranks as usize];
            let mut begun = vec![ranks / 3];
            while let Some(rank) = begun.pop() {
                for (place, child) in children(tree, rank, Bine::DOWNWARD).enumerate() {
                    rounds[child as usize] = rounds[rank as usize] + place as u32 + 1;
                    begun.push(child);
                }
            }
            let most = rounds.into_iter().max().unwrap();
            let fewest = u32::BITS - (ranks - 1).leading_zeros();
            assert!(most <= fewest, "{ranks} ranks: {most} rounds, not {fewest}");
        }
    }
}
