//! Gather: everybody's send buffer, as block r of the root's receive buffer.

pub(super) mod irregular;
pub(super) mod linear;
pub(super) mod synchronised;
pub(super) mod trees;
