//! Allreduce: all contributions combined, in everybody's receive buffer.

pub(super) mod bine;
pub(super) mod binomial;
pub(super) mod circulant;
pub(super) mod linear;
pub(super) mod rabenseifner;
pub(super) mod recursive_doubling;
pub(super) mod recursive_multiplying;
pub(super) mod ring;
pub(super) mod two_trees;
