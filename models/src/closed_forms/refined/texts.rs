//! Forms in words, where several algorithms have the same.

use super::super::text::{Texts, formula, words};

pub(super) const DOWN: Texts = words(
    "down the tree as it is, each rank to its largest subtree first, the next child e(k) later; a \
     segment per period of the slowest rank",
);

pub(super) const TWO_DOWN: Texts = words(
    "down the deeper tree, M + e(2) per level, then two segments per 2 max{e(2), g, s + r}; of segments \
     that are no longer than half of the message; on two ranks M, then a segment per max{e(1), g, r}",
);

pub(super) const TWO_UP: Texts = words(
    "up the deeper tree, M + y + max{g, r + y} per level, then two segments per 2 max{g, s + r + y}; of \
     segments that are no longer than half of the message; on two ranks M + y, then a segment per \
     max{e(1), g, r + y}",
);

pub(super) const UP: Texts = words(
    "up the tree as it is, each rank from its smallest subtree first, M + y per child that comes \
     alone; a segment per period of the slowest rank",
);

pub(super) const UP_THROUGH_PORTS: Texts = words(
    "up the tree as it is, each rank from its smallest subtree first, M + y per child that comes \
     alone; no sooner than n_s messages of each child have passed a rank's port, and M + y per level above it",
);

pub(super) const EXCHANGES: Texts = words(
    "lg P rounds of M + y (a barrier's y is 0); where P is no power of two, the ranks beyond come \
     before and after",
);

pub(super) const HALVES: Texts = words(
    "floor(lg P) rounds of M + y of m / 2^i, and as many of M back; where P is no power of two, \
     M + y before and M after",
);

pub(super) const CONCURRENT: Texts =
    formula("max{(P - 2) e(P - 1) + s + (P - 1) r, M + (P - 2) max{e(P - 1), g}, M + (P - 2) r}");
