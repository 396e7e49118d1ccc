//! Blocks put into another order.

use super::site::{CallSite, MemoryPlace};
use crate::{Range, Round};

/// Copies of one round.
const AT_ONCE: u64 = 16;

/// Blocks of equal length from one place to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copies {
    pub order: BlockOrder,
    pub from: MemoryPlace,
    pub into: MemoryPlace,
    /// Elements of a block.
    pub block: u64,
}

/// Which block goes where. Node n of N has k ranks, the fullest node K of them.
#[derive(Debug, Clone, Copy)]
pub(super) enum BlockOrder {
    /// One block.
    Whole,
    /// Block 0 into places `filled..slots`: others expect something there.
    Filler { filled: u32, slots: u32 },
    /// From the order of ranks to K places for each node; places without a rank hold another's.
    ToNodes,
    /// Back from there.
    FromNodes,
    /// From the order of ranks to that by nodes, without gaps, or back.
    Listed { back: bool },
    /// From the order of ranks to lane by lane, N places each.
    ToLanes,
    /// Back from there.
    FromLanes,
    /// Rows become columns.
    Transposed { rows: u32, columns: u32 },
    /// What the k ranks of this node send, p blocks each in the order of ranks, to K * K places for
    /// each node: by sender, then by receiver.
    ToPairs,
    /// What has come from each node (K * K places by sender, then by receiver) to each rank of this
    /// node, p blocks each in the order of ranks.
    FromPairs,
}

impl Copies {
    /// Number of copies.
    fn number(&self, site: &CallSite<'_>) -> u64 {
        let nodes = site.nodes;
        let most = u64::from(nodes.most());
        match self.order {
            _ if self.block == 0 => 0,
            BlockOrder::Whole => 1,
            BlockOrder::Filler { filled, slots } => u64::from(slots - filled),
            BlockOrder::ToNodes => u64::from(nodes.count()) * most,
            BlockOrder::ToPairs => u64::from(nodes.count()) * most * most,
            BlockOrder::FromNodes
            | BlockOrder::Listed { .. }
            | BlockOrder::ToLanes
            | BlockOrder::FromLanes => u64::from(nodes.ranks()),
            BlockOrder::Transposed { rows, columns } => u64::from(rows) * u64::from(columns),
            BlockOrder::FromPairs => u64::from(nodes.ranks()) * site.members(),
        }
    }

    /// From which block to which.
    fn pair(&self, site: &CallSite<'_>, index: u64) -> (u64, u64) {
        let nodes = site.nodes;
        let (count, most, all) =
            (u64::from(nodes.count()), u64::from(nodes.most()), u64::from(nodes.ranks()));
        let (node_of, local_of) = (
            |rank: u64| u64::from(nodes.node_of(rank as u32)),
            |rank: u64| u64::from(nodes.local(rank as u32)),
        );
        let member = |node: u64, local: u64| {
            let members = nodes.members(node as u32);
            u64::from(*members.get(local as usize).unwrap_or(&members[0]))
        };
        match self.order {
            BlockOrder::Whole => (0, 0),
            BlockOrder::Filler { filled, .. } => (0, u64::from(filled) + index),
            BlockOrder::ToNodes => (member(index / most, index % most), index),
            BlockOrder::FromNodes => (node_of(index) * most + local_of(index), index),
            BlockOrder::Listed { back } => {
                let place = u64::from(nodes.place(index as u32));
                if back { (place, index) } else { (index, place) }
            }
            BlockOrder::ToLanes => (member(index % count, index / count), index),
            BlockOrder::FromLanes => (local_of(index) * count + node_of(index), index),
            BlockOrder::Transposed { rows, columns } => {
                let (row, column) = (index / u64::from(columns), index % u64::from(columns));
                (index, column * u64::from(rows) + row)
            }
            BlockOrder::ToPairs => {
                let (node, pair) = (index / (most * most), index % (most * most));
                let sender = (pair / most).min(site.members() - 1);
                (sender * all + member(node, pair % most), index)
            }
            BlockOrder::FromPairs => {
                let (receiver, sender) = (index / all, index % all);
                ((node_of(sender) * most + local_of(sender)) * most + receiver, index)
            }
        }
    }

    pub fn rounds(&self, site: &CallSite<'_>) -> u64 {
        self.number(site).div_ceil(AT_ONCE)
    }

    pub fn round(&self, site: &CallSite<'_>, index: u64, out: &mut Round) {
        let block = |place: MemoryPlace, number: u64| {
            Range::new(place.buffer, place.start + number * self.block, self.block)
        };
        let end = self.number(site).min((index + 1) * AT_ONCE);
        for copy in index * AT_ONCE..end {
            let (from, into) = self.pair(site, copy);
            out.copy(block(self.from, from), block(self.into, into));
        }
    }
}
