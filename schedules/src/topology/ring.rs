/// All ranks in a circle, in rank order.
#[derive(Debug, Clone, Copy)]
pub struct Ring {
    ranks: u32,
}

impl Ring {
    /// A ring of `ranks`, at least 1.
    pub const fn new(ranks: u32) -> Self {
        Ring { ranks }
    }

    /// The rank after `rank`.
    pub const fn next(self, rank: u32) -> u32 {
        if rank + 1 == self.ranks { 0 } else { rank + 1 }
    }

    /// The rank before `rank`.
    pub const fn previous(self, rank: u32) -> u32 {
        if rank == 0 { self.ranks - 1 } else { rank - 1 }
    }
}
