//! Nodes that all do the same, of which one is simulated.
//!
//! Where each node has as many ranks, one node after the other, and every rank does what the rank with its place on the
//! first node does, with all peers as many nodes further (round the end), all nodes are in the same state at all times. So
//! what a rank of the first node sends to another node comes to the first node, too: from a node as far before it. The
//! first node's two ports pass what they would.
//!
//! Whether that is so is looked at of some ranks of some nodes, in all rounds: of all algorithms there are it is
//! then so of all.

use super::{Machine, MemoryCosts, knows_all};
use crate::{
    Call, Entry, Round, Step,
    simulator::{Activity, LevelledCosts},
};

/// The ranks of a node, where all of several nodes do the same.
pub(super) fn ranks_of_one_node(
    entry: &Entry,
    call: &Call<'_>,
    network: &impl LevelledCosts,
) -> Option<u32> {
    let ranks = call.ranks;
    let first = (0..ranks).take_while(|rank| network.node(*rank) == network.node(0)).count() as u32;
    let are_blocks = || (0..ranks).all(|rank| network.node(rank) == rank / first);
    if first == 0 || first == ranks || !ranks.is_multiple_of(first) || !are_blocks() {
        return None;
    }
    let nodes = ranks / first;
    let knows = |rank| knows_all(entry.collective, call, rank);
    let mut rounds = [Round::of_one_call(), Round::of_one_call()];
    let mut is_alike = |local: u32, node: u32| {
        let shift = node * first;
        knows(local)
            && knows(local + shift)
            && do_the_same(entry, call, (local, shift), &mut rounds)
    };
    let places = [0, 1, first / 2, first - 1];
    let all = places.into_iter().filter(|local| *local < first);
    let mut pairs = all.flat_map(|local| [1, nodes / 2, nodes - 1].map(|node| (local, node)));
    pairs.all(|(local, node)| is_alike(local, node)).then_some(first)
}

/// Whether the rank that is so many further does what this one does, with peers that are as many further.
fn do_the_same(
    entry: &Entry,
    call: &Call<'_>,
    (rank, shift): (u32, u32),
    [one, other]: &mut [Round; 2],
) -> bool {
    let further = |peer: u32| (peer + shift) % call.ranks;
    let is_same = |pair: (&Step, &Step)| match pair {
        (
            &Step::Send { peer, slot, range },
            &Step::Send { peer: other_peer, slot: other_slot, range: other_range },
        )
        | (
            &Step::SendReady { peer, slot, range },
            &Step::SendReady { peer: other_peer, slot: other_slot, range: other_range },
        )
        | (
            &Step::Receive { peer, slot, range },
            &Step::Receive { peer: other_peer, slot: other_slot, range: other_range },
        ) => {
            (further(peer), slot, range.count) == (other_peer, other_slot, other_range.count)
                && range.buffer == other_range.buffer
        }
        (Step::Wait { slot }, Step::Wait { slot: other }) => slot == other,
        (Step::Combine { into, .. }, Step::Combine { into: other, .. })
        | (Step::Copy { into, .. }, Step::Copy { into: other, .. }) => into.count == other.count,
        _ => false,
    };
    for index in 0.. {
        let is_there = entry.normal_round(call, rank, index, one);
        let other_is = entry.normal_round(call, rank + shift, index, other);
        let is_like = (is_there, one.is_last(), one.destinations(), one.slots())
            == (other_is, other.is_last(), other.destinations(), other.slots());
        let (steps, others) = (one.steps(), other.steps());
        if !is_like || steps.len() != others.len() || !steps.iter().zip(others).all(is_same) {
            return false;
        }
        if !is_there || one.is_last() {
            return true;
        }
    }
    true
}

impl<M: MemoryCosts, C: LevelledCosts, O: FnMut(Activity)> Machine<'_, M, C, O> {
    /// The two ranks of a message as the simulated rank that receives it, or the one in its place, sees them.
    pub(super) fn seen_by_simulated(&self, from: u32, to: u32) -> (u32, u32) {
        let first_of_node = to / self.simulated * self.simulated;
        ((from + self.call.ranks - first_of_node) % self.call.ranks, to - first_of_node)
    }

    /// The rank itself, or the simulated one that does the same.
    pub(super) fn simulated_like(&self, rank: u32) -> u32 {
        rank % self.simulated
    }
}
