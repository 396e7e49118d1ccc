//! Allreduce: all contributions combined, in everybody's receive buffer.

pub(super) mod binomial;
pub(super) mod linear;
pub(super) mod rabenseifner;
pub(super) mod recursive_doubling;
pub(super) mod ring;
