//! Prefix reductions: rank r gets the contributions of ranks 0 to r combined (scan), or of ranks 0
//! to r - 1 (exscan; rank 0 gets nothing).

pub(super) mod exclusive;
pub(super) mod inclusive;
mod linear;
mod recursive_doubling;
mod two_trees;
