//! Reduce: all contributions combined, in the root's receive buffer.

pub(super) mod binary;
pub(super) mod bine;
pub(super) mod binomial;
pub(super) mod circulant;
pub(super) mod fitted;
pub(super) mod in_order_binary;
pub(super) mod k_chain;
pub(super) mod k_nomial;
pub(super) mod linear;
pub(super) mod pipeline;
pub(super) mod rabenseifner;
pub(super) mod tree;
pub(super) mod two_trees;
