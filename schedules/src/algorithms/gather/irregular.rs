//! Trees for blocks of unequal size: every rank collects the blocks of its subtree and hands them
//! on together. The root unpacks what comes from subtrees of several ranks, and receives a block
//! that travels alone where it belongs.

use std::marker::PhantomData;

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    algorithms::{
        blocks::{block, own_block},
        irregular::{
            BinomialAscending, BinomialDescending, Irregular, Sorted, Traff, Upward,
            receives_counts, view,
        },
    },
    arrangement::{Arrangement, Edge},
    program::Header,
};

pub(in super::super) const BINOMIAL: Entry = Entry::new::<Gatherv<Upward>>(
    Collective::Gatherv,
    Algorithm::Binomial,
    "blocks of whole subtrees up a binomial tree",
);

pub(in super::super) const ASCENDING: Entry = Entry::new::<Gatherv<Sorted<BinomialAscending>>>(
    Collective::Gatherv,
    Algorithm::BinomialAscending,
    "a binomial tree of the ranks by their counts, the largest last",
);

pub(in super::super) const DESCENDING: Entry = Entry::new::<Gatherv<Sorted<BinomialDescending>>>(
    Collective::Gatherv,
    Algorithm::BinomialDescending,
    "a binomial tree of the ranks by their counts, the largest first",
);

pub(in super::super) const TRAFF: Entry = Entry::new::<Gatherv<Sorted<Traff>>>(
    Collective::Gatherv,
    Algorithm::Traff,
    "a tree whose subtrees double in size: large blocks go alone, small ones together",
);

#[derive(Debug, Clone, Copy)]
struct Gatherv<T> {
    ranks: u32,
    rank: u32,
    root: u32,
    header: Header,
    tree: PhantomData<T>,
}

impl<T: Irregular> Gatherv<T> {
    fn collect(&self, call: &Call<'_>, tree: &Arrangement, out: &mut Round) {
        let own = own_block(true, call, Buffer::Send, self.rank);
        let is_root = self.rank == self.root;
        let collects = tree.through > tree.own;
        let what = |edge: &Edge| match is_root && edge.end == edge.first + 1 {
            true => block(true, call, Buffer::Receive, edge.rank),
            false => Range::new(Buffer::Temporary, edge.offset, edge.count),
        };
        let served = |(_, edge): &(usize, &Edge)| edge.count > 0;
        for (slot, edge) in tree.edges.iter().enumerate().filter(served) {
            out.receive(edge.rank, slot as u32, what(edge));
        }
        if is_root && !call.in_place {
            out.copy(own, block(true, call, Buffer::Receive, self.rank));
        } else if !is_root && collects {
            out.copy(own, Range::new(Buffer::Temporary, 0, tree.own));
        }
        tree.edges.iter().enumerate().filter(served).for_each(|(slot, _)| out.wait(slot as u32));
        if let Some(parent) = tree.parent.filter(|_| tree.through > 0) {
            let all = Range::new(Buffer::Temporary, 0, tree.through);
            out.send(parent, 0, if collects { all } else { own });
            out.wait(0);
        }
    }

    /// The root copies the blocks of subtrees to where the user wants them.
    fn unpack(call: &Call<'_>, tree: &Arrangement, out: &mut Round) {
        for edge in tree.edges.iter().filter(|edge| edge.end > edge.first + 1) {
            let mut source = Range::new(Buffer::Temporary, edge.offset, 0);
            for place in edge.first..edge.end {
                let (rank, count) = tree.at(place);
                source.count = count;
                out.copy(source, block(true, call, Buffer::Receive, rank));
                source.start += count;
            }
        }
    }
}

impl<T: Irregular> Program for Gatherv<T> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Gatherv {
            ranks: call.ranks,
            rank,
            root: call.root,
            header: T::header(call, rank),
            tree: PhantomData,
        }
    }

    /// Getting to know the tree, collecting, unpacking.
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
            match index {
                1 => self.collect(call, tree, out),
                _ if self.rank == self.root => Self::unpack(call, tree, out),
                _ => {}
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
        // What is only the rank's own is sent from where it lies.
        if known && (self.rank == self.root || through > own) { through } else { 0 }
    }

    fn header(&self) -> Header {
        self.header
    }
}
