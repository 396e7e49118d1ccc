//! Ranks in the order in which a v-form serves them, and the trees that are made of that order.
//!
//! A tree is a way to cut a run of ranks: the first one is the parent of all, the others fall into
//! runs that are its children's. So the data of a subtree lie side by side, and a rank finds its
//! place by walking down from the root.

use crate::Call;

/// Which rank comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sorting {
    /// The smallest count; of equal ones the lower rank.
    Ascending,
    /// The largest count; of equal ones the lower rank.
    Descending,
}

/// How the ranks after the first one of a run fall into runs: the end of the one that begins at
/// `child`, in a run `parent..end`. `ends[i]` is the number of elements of the places before i.
pub(crate) type SplitRule = fn(ends: &[u64], parent: usize, child: usize, end: usize) -> usize;

/// Runs of 1, 2, 4, ... ranks: a binomial tree.
pub(crate) fn binomial(_ends: &[u64], parent: usize, child: usize, end: usize) -> usize {
    end.min(child + (child - parent))
}

/// Runs that hold at least as much as all those before them together: what arrives at the parent
/// at once is never more than what it has got meanwhile.
pub(crate) fn doubling(ends: &[u64], parent: usize, child: usize, end: usize) -> usize {
    let before = ends[child] - ends[parent + 1];
    let enough = ends[child..end].partition_point(|sum| sum - ends[child] < before);
    end.min(child + enough.max(1))
}

/// A child, with its whole subtree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub rank: u32,
    /// The places of its subtree.
    pub first: usize,
    pub end: usize,
    /// Where the blocks of the subtree lie, one after the other, in the parent's scratch memory.
    pub offset: u64,
    /// Their elements.
    pub count: u64,
}

/// Scratch memory for one rank's view of a tree, to be used again and again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrangement {
    /// What `ranks` was sorted by: the counts, the root and the sorting.
    counts: Vec<u64>,
    by: Option<(u32, Sorting)>,
    /// Whether all counts that come are the same.
    same_counts: bool,
    /// The largest of them, once it was asked for.
    largest: Option<u64>,
    /// The root, then the others.
    ranks: Vec<u32>,
    ends: Vec<u64>,
    /// Parent of the first of the ranks, where that is not the root.
    above: Option<u32>,
    /// The children of the rank that was asked for last, in the order of their places.
    pub edges: Vec<Edge>,
    pub parent: Option<u32>,
    /// Elements of its own block, and of all that passes through its scratch memory.
    pub own: u64,
    pub through: u64,
}

impl Arrangement {
    /// From now on for one call: all who know its counts know the same.
    pub fn begin_call(&mut self) {
        (self.same_counts, self.by, self.largest) = (true, None, None);
    }

    /// The largest of the counts of all ranks; 0 where there are none.
    pub fn largest(&mut self, counts: &[u64]) -> u64 {
        let known = self.largest.filter(|_| self.same_counts);
        let largest = known.unwrap_or_else(|| counts.iter().copied().max().unwrap_or(0));
        self.largest = Some(largest);
        largest
    }

    /// The ranks other than the root that have anything, sorted by their counts; `counts` are those
    /// of all ranks.
    pub fn sort(&mut self, counts: &[u64], root: u32, sorting: Sorting) {
        if self.by == Some((root, sorting)) && (self.same_counts || self.counts == counts) {
            return;
        }
        self.by = Some((root, sorting));
        self.above = None;
        self.counts.clear();
        self.counts.extend_from_slice(counts);
        self.ranks.clear();
        self.ranks.push(root);
        let all = 0..counts.len() as u32;
        self.ranks.extend(all.filter(|rank| *rank != root && counts[*rank as usize] > 0));
        self.ranks[1..].sort_unstable_by_key(|rank| key(counts, sorting, *rank));
        self.sum(|rank, _| counts[rank as usize]);
    }

    /// The ranks from `first` on, cyclically, with their counts in this order.
    pub fn follow(
        &mut self,
        call: &Call<'_>,
        first: u32,
        counts: impl ExactSizeIterator<Item = u64>,
    ) {
        self.by = None;
        self.above = None;
        self.ranks.clear();
        self.counts.clear();
        self.counts.extend(counts);
        self.ranks.extend((0..self.counts.len() as u32).map(|place| call.after(first, place)));
        let counts = std::mem::take(&mut self.counts);
        self.sum(|_, place| counts[place]);
        self.counts = counts;
    }

    fn sum(&mut self, count: impl Fn(u32, usize) -> u64) {
        let mut end = 0;
        self.ends.clear();
        self.ends.push(0);
        for (place, rank) in self.ranks.iter().enumerate() {
            end += count(*rank, place);
            self.ends.push(end);
        }
    }

    /// The ranks in order, without the root.
    pub fn others(&self) -> &[u32] {
        &self.ranks[1..]
    }

    /// The first of the ranks is not the root: it has this parent.
    pub fn hang_on(&mut self, parent: Option<u32>) {
        self.above = parent;
    }

    /// The rank and the number of elements at a place.
    pub fn at(&self, place: usize) -> (u32, u64) {
        (self.ranks[place], self.ends[place + 1] - self.ends[place])
    }

    /// The place of a rank after [`Arrangement::sort`]; none if it has nothing.
    pub fn place_of(&self, rank: u32) -> Option<usize> {
        let (root, sorting) = self.by?;
        if rank == root {
            return Some(0);
        }
        let wanted = key(&self.counts, sorting, rank);
        let found = self.others().binary_search_by_key(&wanted, |r| key(&self.counts, sorting, *r));
        found.ok().map(|index| index + 1)
    }

    /// Walks down to a place: sets the parent, the children and what passes through.
    ///
    /// The root keeps its own block where the user has it, and those of children without children
    /// too; everybody else has its own block first, then those of the children.
    pub fn walk(&mut self, cut: SplitRule, place: usize) {
        let (mut at, mut end) = (0, self.ranks.len());
        self.parent = self.above;
        while at != place {
            let mut child = at + 1;
            let mut child_end = cut(&self.ends, at, child, end);
            while child_end <= place {
                child = child_end;
                child_end = cut(&self.ends, at, child, end);
            }
            self.parent = Some(self.ranks[at]);
            (at, end) = (child, child_end);
        }
        self.spread(cut, at, end);
    }

    fn spread(&mut self, cut: SplitRule, at: usize, end: usize) {
        let is_root = self.parent.is_none();
        self.own = self.at(at).1;
        self.through = if is_root { 0 } else { self.own };
        self.edges.clear();
        let mut first = at + 1;
        while first < end {
            let end = cut(&self.ends, at, first, end);
            let count = self.ends[end] - self.ends[first];
            self.edges.push(Edge {
                rank: self.ranks[first],
                first,
                end,
                offset: self.through,
                count,
            });
            if !(is_root && end == first + 1) {
                self.through += count;
            }
            first = end;
        }
    }
}

/// Sorts as wanted, with no two ranks equal.
fn key(counts: &[u64], sorting: Sorting, rank: u32) -> (u64, u32) {
    let count = counts[rank as usize];
    match sorting {
        Sorting::Ascending => (count, rank),
        Sorting::Descending => (u64::MAX - count, rank),
    }
}
