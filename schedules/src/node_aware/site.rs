//! A rank's place in a call, and places in its memory.

use super::group::leader;
use crate::{Buffer, Call, ElementSpan, NodesOfRanks};

/// Where elements begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryPlace {
    pub buffer: Buffer,
    pub start: u64,
}

impl MemoryPlace {
    pub const fn new(buffer: Buffer, start: u64) -> Self {
        MemoryPlace { buffer, start }
    }

    /// So many elements further.
    pub const fn plus(self, elements: u64) -> Self {
        MemoryPlace { start: self.start + elements, ..self }
    }
}

pub(super) const SEND: MemoryPlace = MemoryPlace::new(Buffer::Send, 0);
pub(super) const RECEIVE: MemoryPlace = MemoryPlace::new(Buffer::Receive, 0);
pub(super) const SCRATCH: MemoryPlace = MemoryPlace::new(Buffer::Temporary, 0);

/// A rank's view of a call, and the segment at hand.
pub(super) struct CallSite<'a> {
    pub call: &'a Call<'a>,
    pub nodes: &'a NodesOfRanks,
    pub rank: u32,
    pub span: ElementSpan,
}

impl<'a> CallSite<'a> {
    /// Of a call whose vector is not cut.
    pub fn new(call: &'a Call<'a>, nodes: &'a NodesOfRanks, rank: u32) -> Self {
        CallSite { call, nodes, rank, span: ElementSpan { start: 0, count: call.count } }
    }

    pub fn node(&self) -> u32 {
        self.nodes.node_of(self.rank)
    }

    pub fn local(&self) -> u32 {
        self.nodes.local(self.rank)
    }

    /// Ranks of this node.
    pub fn members(&self) -> u64 {
        self.nodes.members(self.node()).len() as u64
    }

    pub fn all(&self) -> u64 {
        u64::from(self.call.ranks)
    }

    /// Of this node.
    pub fn leader(&self) -> u32 {
        leader(self.call, self.nodes, self.node())
    }

    pub fn is_leader(&self) -> bool {
        self.rank == self.leader()
    }

    pub fn root_node(&self) -> u32 {
        self.nodes.node_of(self.call.root)
    }

    pub fn is_root(&self) -> bool {
        self.rank == self.call.root
    }

    /// This rank's contribution, where it has one of its own.
    pub fn input(&self) -> MemoryPlace {
        MemoryPlace::new(self.call.input(), 0)
    }

    /// This rank's block of a gather's or an allgather's contribution.
    pub fn own_block(&self) -> MemoryPlace {
        match self.call.in_place {
            true => RECEIVE.plus(u64::from(self.rank) * self.call.count),
            false => SEND,
        }
    }
}
