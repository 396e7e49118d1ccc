//! Barrier: messages of no elements. Nobody leaves before everybody has come.

pub(super) mod bruck;
pub(super) mod double_ring;
pub(super) mod linear;
pub(super) mod recursive_doubling;

use crate::{Buffer, Range};

/// What a barrier sends.
const EMPTY_MESSAGE: Range = Range::new(Buffer::Receive, 0, 0);
