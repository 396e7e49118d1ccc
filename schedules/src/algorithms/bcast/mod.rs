//! Broadcast: the root's receive buffer, to all others'.

pub(super) mod binary;
pub(super) mod bine;
pub(super) mod binomial;
pub(super) mod circulant;
pub(super) mod fitted;
pub(super) mod k_chain;
pub(super) mod k_nomial;
pub(super) mod linear;
pub(super) mod pipeline;
pub(super) mod scatter_allgather;
pub(super) mod scatter_allgather_ring;
pub(super) mod splitted_binary;
pub(super) mod tree;
pub(super) mod two_trees;
