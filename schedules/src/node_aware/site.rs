//! A rank's place in a call, and places in its memory.

use super::group::leader;
use crate::{Buffer, Call, ElementSpan, Nodes};

/// Where elements begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub buffer: Buffer,
    pub start: u64,
}

impl Place {
    pub const fn new(buffer: Buffer, start: u64) -> Self {
        Place { buffer, start }
    }

    /// So many elements further.
    pub const fn plus(self, elements: u64) -> Self {
        Place { start: self.start + elements, ..self }
    }
}

pub(super) const SEND: Place = Place::new(Buffer::Send, 0);
pub(super) const RECEIVE: Place = Place::new(Buffer::Receive, 0);
pub(super) const SCRATCH: Place = Place::new(Buffer::Temporary, 0);

/// A rank's view of a call, and the segment at hand.
pub(super) struct Site<'a> {
    pub call: &'a Call<'a>,
    pub nodes: &'a Nodes,
    pub rank: u32,
    pub span: ElementSpan,
}

impl<'a> Site<'a> {
    /// Of a call whose vector is not cut.
    pub fn new(call: &'a Call<'a>, nodes: &'a Nodes, rank: u32) -> Self {
        Site { call, nodes, rank, span: ElementSpan { start: 0, count: call.count } }
    }

    pub fn node(&self) -> u32 {
        self.nodes.of(self.rank)
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
        self.nodes.of(self.call.root)
    }

    pub fn is_root(&self) -> bool {
        self.rank == self.call.root
    }

    /// This rank's contribution, where it has one of its own.
    pub fn input(&self) -> Place {
        Place::new(self.call.input(), 0)
    }

    /// This rank's block of a gather's or an allgather's contribution.
    pub fn own_block(&self) -> Place {
        match self.call.in_place {
            true => RECEIVE.plus(u64::from(self.rank) * self.call.count),
            false => SEND,
        }
    }
}
