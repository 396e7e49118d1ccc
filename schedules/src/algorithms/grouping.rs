//! How many children a round of a tree serves.

/// Children that one round of a tree algorithm serves where there is one segment only: enough for
/// nearly all ranks of a binomial tree, few enough for a round to be made again after a wait.
pub(super) const GROUP: u32 = 8;
