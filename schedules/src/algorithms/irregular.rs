//! Trees for blocks of unequal size (scatterv, gatherv), and how the ranks get to know them.
//!
//! Only the root is told all counts. In the fixed binomial tree a rank needs those of its subtree,
//! in the others (Träff 2004, "Hierarchical gather/scatter algorithms with graceful degradation")
//! the place of every rank depends on all of them. So round 0 spreads what is needed, in messages
//! of words ([`Buffer::Header`]): known beforehand are, everywhere, the ranks, the root and the own
//! count, and thus who sends how many words to whom. Round 0 comes even if there is nothing to
//! move, which most ranks can't know.

use crate::{
    Buffer, Call, Range, Round,
    arrangement::{Arrangement, Sorting, SplitRule, binomial, doubling},
    program::Header,
    topology::{Binomial, Tree, TreeShape},
};

/// A tree over the ranks, known to each after round 0.
pub(super) trait Irregular {
    /// How runs of ranks fall into subtrees.
    const CUT: SplitRule;

    /// Most children of a rank, at least 1.
    fn slots(ranks: u32) -> u32 {
        u32::BITS - ranks.leading_zeros()
    }

    /// The words that a rank is told.
    fn header(call: &Call<'_>, rank: u32) -> Header;

    /// Appends round 0.
    fn tell(call: &Call<'_>, rank: u32, out: &mut Round);

    /// Puts the ranks in order; the place of `rank`, if it is in the tree.
    fn arrange(call: &Call<'_>, rank: u32, into: &mut Arrangement) -> Option<usize>;
}

/// Whether a rank knows what [`Irregular::arrange`] needs.
pub(super) fn receives_counts<T: Irregular>(call: &Call<'_>, rank: u32) -> bool {
    T::header(call, rank).words == call.header.len() as u64
}

/// Sets the scratch memory to the rank's view of the tree; false if it is not in the tree.
pub(super) fn view<T: Irregular>(call: &Call<'_>, rank: u32, into: &mut Arrangement) -> bool {
    let place = T::arrange(call, rank, into);
    if let Some(place) = place {
        into.walk(T::CUT, place);
    }
    place.is_some()
}

fn tree(call: &Call<'_>) -> Binomial {
    Binomial::new(TreeShape { ranks: call.ranks, root: call.root, fan_out: 2 })
}

fn words(start: u32, count: u32) -> Range {
    Range::new(Buffer::Header, u64::from(start), u64::from(count))
}

/// The binomial tree of `MPI_Scatter`, by ranks after the root, told on the way down.
#[derive(Debug, Clone, Copy)]
pub(super) struct Downward;

/// The binomial tree of `MPI_Gather`, by ranks after the root, told on the way up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Upward;

/// The counts of a rank's subtree; leaves and whoever has them otherwise are told nothing.
fn of_subtree(call: &Call<'_>, rank: u32) -> Header {
    let subtree = tree(call).subtree(rank);
    Header { first: rank, words: if subtree > 1 { u64::from(subtree) } else { 0 } }
}

fn arrange_subtree(call: &Call<'_>, rank: u32, into: &mut Arrangement) -> Option<usize> {
    if rank == call.root {
        let ranks = 0..call.ranks;
        let counts = ranks.map(|place| call.counts[call.after(rank, place) as usize]);
        into.follow(call, rank, counts);
    } else {
        let known = if call.header.is_empty() { call.counts } else { call.header };
        into.follow(call, rank, known.iter().copied());
        into.hang_on(tree(call).parent(rank));
    }
    Some(0)
}

impl Irregular for Downward {
    const CUT: SplitRule = binomial;

    fn header(call: &Call<'_>, rank: u32) -> Header {
        of_subtree(call, rank)
    }

    fn tell(call: &Call<'_>, rank: u32, out: &mut Round) {
        let subtree = tree(call).subtree(rank);
        if subtree == 1 {
            return;
        }
        match tree(call).parent(rank) {
            Some(parent) => {
                out.receive(parent, 0, words(0, subtree));
                out.wait(0);
            }
            None => {
                let behind = call.ranks - call.root;
                let counts = |start: u32, count: u32| Range {
                    buffer: Buffer::Counts,
                    ..words(start, count)
                };
                out.copy(counts(call.root, behind), words(0, behind));
                out.copy(counts(0, call.root), words(behind, call.root));
            }
        }
        // Leaves know their own count. They are the first of the children.
        let children = 1..tree(call).child_count(rank);
        let child = |index: u32| tree(call).child(rank, index);
        let inner = children.filter(|index| tree(call).subtree(child(*index)) > 1);
        for index in inner.clone().rev() {
            out.send(child(index), index, words(1 << index, tree(call).subtree(child(index))));
        }
        inner.for_each(|index| out.wait(index));
    }

    fn arrange(call: &Call<'_>, rank: u32, into: &mut Arrangement) -> Option<usize> {
        arrange_subtree(call, rank, into)
    }
}

impl Irregular for Upward {
    const CUT: SplitRule = binomial;

    fn header(call: &Call<'_>, rank: u32) -> Header {
        let header = of_subtree(call, rank);
        Header { words: if rank == call.root { 0 } else { header.words }, ..header }
    }

    fn tell(call: &Call<'_>, rank: u32, out: &mut Round) {
        let Some(parent) = tree(call).parent(rank) else { return };
        let subtree = tree(call).subtree(rank);
        let own = Range { buffer: Buffer::Counts, ..words(0, 1) };
        if subtree > 1 {
            let children = 0..tree(call).child_count(rank);
            for index in children.clone() {
                let child = tree(call).child(rank, index);
                out.receive(child, index, words(1 << index, tree(call).subtree(child)));
            }
            out.copy(own, words(0, 1));
            children.for_each(|index| out.wait(index));
        }
        if parent != call.root {
            out.send(parent, 0, if subtree > 1 { words(0, subtree) } else { own });
            out.wait(0);
        }
    }

    fn arrange(call: &Call<'_>, rank: u32, into: &mut Arrangement) -> Option<usize> {
        arrange_subtree(call, rank, into)
    }
}

/// Trees over the ranks that have anything, sorted; all are told all counts, from the root, by a
/// binomial tree over all ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sorted<K>(std::marker::PhantomData<K>);

/// What is made of sorted ranks.
pub(super) trait SortedTree {
    const CUT: SplitRule;
    const SORTING: Sorting;

    fn slots(ranks: u32) -> u32 {
        u32::BITS - ranks.leading_zeros()
    }
}

/// A binomial tree whose large subtrees hold the large blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct BinomialAscending;

/// A binomial tree whose large subtrees hold the small blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct BinomialDescending;

/// Träff's: the largest blocks travel alone, the small ones in subtrees that are as large
/// together as what the parent has received before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traff;

impl SortedTree for BinomialAscending {
    const CUT: SplitRule = binomial;
    const SORTING: Sorting = Sorting::Ascending;
}

impl SortedTree for BinomialDescending {
    const CUT: SplitRule = binomial;
    const SORTING: Sorting = Sorting::Descending;
}

impl SortedTree for Traff {
    const CUT: SplitRule = doubling;
    const SORTING: Sorting = Sorting::Descending;

    /// Every run holds as much as all before it together.
    fn slots(ranks: u32) -> u32 {
        ranks.min(u64::BITS + 1)
    }
}

impl<K: SortedTree> Irregular for Sorted<K> {
    const CUT: SplitRule = K::CUT;

    fn slots(ranks: u32) -> u32 {
        K::slots(ranks)
    }

    fn header(call: &Call<'_>, rank: u32) -> Header {
        Header { first: 0, words: if rank == call.root { 0 } else { u64::from(call.ranks) } }
    }

    fn tell(call: &Call<'_>, rank: u32, out: &mut Round) {
        let mut all = words(0, call.ranks);
        match tree(call).parent(rank) {
            Some(parent) => {
                out.receive(parent, 0, all);
                out.wait(0);
            }
            None => all.buffer = Buffer::Counts,
        }
        let children = 0..tree(call).child_count(rank);
        for index in children.clone().rev() {
            out.send(tree(call).child(rank, index), index, all);
        }
        children.for_each(|index| out.wait(index));
    }

    fn arrange(call: &Call<'_>, rank: u32, into: &mut Arrangement) -> Option<usize> {
        let counts = if rank == call.root { call.counts } else { call.header };
        into.sort(counts, call.root, K::SORTING);
        into.place_of(rank)
    }
}
