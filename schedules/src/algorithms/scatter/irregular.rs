//! Trees for blocks of unequal size: every rank receives the blocks of its subtree and hands each
//! child those of the child's. The root packs what belongs to subtrees of several ranks, and sends
//! a block that travels alone from where it lies.

use std::marker::PhantomData;

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    algorithms::{
        blocks::{block, own_block},
        irregular::{
            BinomialAscending, BinomialDescending, Downward, Irregular, Sorted, Traff,
            receives_counts, view,
        },
    },
    arrangement::{Arrangement, Edge},
    program::Header,
};

pub(in super::super) const BINOMIAL: Entry = Entry::new::<Scatterv<Downward>>(
    Collective::Scatterv,
    Algorithm::Binomial,
    "blocks of whole subtrees down a binomial tree",
);

pub(in super::super) const ASCENDING: Entry = Entry::new::<Scatterv<Sorted<BinomialAscending>>>(
    Collective::Scatterv,
    Algorithm::BinomialAscending,
    "a binomial tree of the ranks by their counts, the largest last",
);

pub(in super::super) const DESCENDING: Entry = Entry::new::<Scatterv<Sorted<BinomialDescending>>>(
    Collective::Scatterv,
    Algorithm::BinomialDescending,
    "a binomial tree of the ranks by their counts, the largest first",
);

pub(in super::super) const TRAFF: Entry = Entry::new::<Scatterv<Sorted<Traff>>>(
    Collective::Scatterv,
    Algorithm::Traff,
    "a tree whose subtrees double in size: large blocks go alone, small ones together",
);

#[derive(Debug, Clone, Copy)]
struct Scatterv<T> {
    ranks: u32,
    rank: u32,
    root: u32,
    header: Header,
    tree: PhantomData<T>,
}

impl<T: Irregular> Scatterv<T> {
    /// The root copies the blocks of subtrees to where they lie side by side.
    fn pack(call: &Call<'_>, tree: &Arrangement, out: &mut Round) {
        for edge in tree.edges.iter().filter(|edge| edge.end > edge.first + 1) {
            let mut into = Range::new(Buffer::Temporary, edge.offset, 0);
            for place in edge.first..edge.end {
                let (rank, count) = tree.at(place);
                into.count = count;
                out.copy(block(true, call, Buffer::Send, rank), into);
                into.start += count;
            }
        }
    }

    fn hand_on(&self, call: &Call<'_>, tree: &Arrangement, out: &mut Round) {
        let result = own_block(true, call, Buffer::Receive, self.rank);
        let is_root = self.rank == self.root;
        let passes_on = tree.through > tree.own;
        if let Some(parent) = tree.parent.filter(|_| tree.through > 0) {
            let all = Range::new(Buffer::Temporary, 0, tree.through);
            out.receive(parent, 0, if passes_on { all } else { result });
            out.wait(0);
        }
        let what = |edge: &Edge| match is_root && edge.end == edge.first + 1 {
            true => block(true, call, Buffer::Send, edge.rank),
            false => Range::new(Buffer::Temporary, edge.offset, edge.count),
        };
        let served = |(_, edge): &(usize, &Edge)| edge.count > 0;
        // The subtree with most ranks has the longest way to go.
        for (slot, edge) in tree.edges.iter().enumerate().rev().filter(served) {
            out.send(edge.rank, slot as u32, what(edge));
        }
        if is_root && !call.in_place {
            out.copy(block(true, call, Buffer::Send, self.rank), result);
        } else if !is_root && passes_on {
            out.copy(Range::new(Buffer::Temporary, 0, tree.own), result);
        }
        tree.edges.iter().enumerate().filter(served).for_each(|(slot, _)| out.wait(slot as u32));
    }
}

impl<T: Irregular> Program for Scatterv<T> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Scatterv {
            ranks: call.ranks,
            rank,
            root: call.root,
            header: T::header(call, rank),
            tree: PhantomData,
        }
    }

    /// Getting to know the tree, packing, sending.
    fn rounds(&self) -> u64 {
        3
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        if index == 0 {
            return T::tell(call, self.rank, out);
        }
        out.with_arrangement(|tree, out| {
            if !view::<T>(call, self.rank, tree) {
                return;
            }
            out.set_destinations(tree.edges.len());
            match index {
                1 if self.rank == self.root => Self::pack(call, tree, out),
                1 => {}
                _ => self.hand_on(call, tree, out),
            }
        });
    }

    fn slots(&self) -> u32 {
        T::slots(self.ranks)
    }

    fn temporary(&self, call: &Call<'_>, scratch: &mut Round) -> u64 {
        let (known, through, own) = scratch.with_arrangement(|tree, _| {
            let known = receives_counts::<T>(call, self.rank) && view::<T>(call, self.rank, tree);
            (known, tree.through, tree.own)
        });
        // What is only the rank's own is received where it belongs.
        if known && (self.rank == self.root || through > own) { through } else { 0 }
    }

    fn header(&self) -> Header {
        self.header
    }
}
