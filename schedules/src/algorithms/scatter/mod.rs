//! Scatter: block r of the root's send buffer, to rank r's receive buffer.

pub(super) mod irregular;
pub(super) mod linear;
pub(super) mod synchronised;
pub(super) mod trees;
