//! Flat tree: every rank sends its block to the root, which has receives posted ahead.

use std::marker::PhantomData;

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, Entry, Program, Range, Round,
    algorithms::{
        blocks::{block, own_block},
        flat::{
            Ascending, Blocking, Descending, FlatAlgorithm, Plain, Ready, Vector, VectorBlocking,
            VectorReady, served,
        },
    },
};

pub(in super::super) const ENTRY: Entry = Entry::new::<Linear<Plain>>(
    Collective::Gather,
    Algorithm::Linear,
    "every rank sends its block to the root",
);

pub(in super::super) const BLOCKING: Entry = Entry::new::<Linear<Blocking>>(
    Collective::Gather,
    Algorithm::LinearBlocking,
    "the root receives the ranks' blocks, one after the other",
);

pub(in super::super) const READY: Entry = Entry::new::<Linear<Ready>>(
    Collective::Gather,
    Algorithm::LinearReady,
    "every rank sends its block in ready mode when the root has said that it waits",
);

pub(in super::super) const VECTOR: Entry = Entry::new::<Linear<Vector>>(
    Collective::Gatherv,
    Algorithm::Linear,
    "every rank sends its block to the root",
);

pub(in super::super) const VECTOR_BLOCKING: Entry = Entry::new::<Linear<VectorBlocking>>(
    Collective::Gatherv,
    Algorithm::LinearBlocking,
    "the root receives the ranks' blocks, one after the other",
);

pub(in super::super) const VECTOR_READY: Entry = Entry::new::<Linear<VectorReady>>(
    Collective::Gatherv,
    Algorithm::LinearReady,
    "every rank sends its block in ready mode when the root has said that it waits",
);

pub(in super::super) const ASCENDING: Entry = Entry::new::<Linear<Ascending>>(
    Collective::Gatherv,
    Algorithm::LinearAscending,
    "every rank sends its block to the root, which receives the smallest first",
);

pub(in super::super) const DESCENDING: Entry = Entry::new::<Linear<Descending>>(
    Collective::Gatherv,
    Algorithm::LinearDescending,
    "every rank sends its block to the root, which receives the largest first",
);

#[derive(Debug, Clone, Copy)]
struct Linear<F> {
    rank: u32,
    root: u32,
    others: u64,
    form: PhantomData<F>,
}

impl<F: FlatAlgorithm> Linear<F> {
    /// From this slot of the root on: the signs that it waits.
    const SIGNS: u32 = F::WINDOW as u32;

    fn collect(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        served::<F>(call, out, |rank, out| {
            let block = |message| {
                let from = rank(message)?;
                let block = block(F::VECTOR, call, Buffer::Receive, from);
                (block.count > 0).then_some((from, (message % F::WINDOW) as u32, block))
            };
            let first = if index == 0 { 0 } else { index + F::WINDOW - 1 };
            let ahead = first..(index + F::WINDOW).min(self.others);
            for (from, slot, block) in ahead.filter_map(block) {
                out.receive(from, slot, block);
                if F::READY {
                    out.send(from, Self::SIGNS + slot, Range { count: 0, ..block });
                }
            }
            if let Some((_, slot, _)) = block(index) {
                if F::READY {
                    out.wait(Self::SIGNS + slot);
                }
                out.wait(slot);
            }
        });
    }
}

impl<F: FlatAlgorithm> Program for Linear<F> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let others = u64::from(call.ranks) - 1;
        Linear { rank, root: call.root, others, form: PhantomData }
    }

    fn rounds(&self) -> u64 {
        if self.rank == self.root { self.others + 1 } else { 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let own = own_block(F::VECTOR, call, Buffer::Send, self.rank);
        if self.rank != self.root {
            match own.count {
                0 => {}
                _ if F::READY => {
                    out.receive(self.root, 1, Range::new(Buffer::Receive, 0, 0));
                    out.wait(1);
                    out.send_ready(self.root, 0, own);
                    out.wait(0);
                }
                _ => {
                    out.send(self.root, 0, own);
                    out.wait(0);
                }
            }
        } else if index < self.others {
            self.collect(call, index, out);
        } else if !call.in_place {
            out.copy(own, block(F::VECTOR, call, Buffer::Receive, self.root));
        }
    }

    fn slots(&self) -> u32 {
        let signs = if F::READY { 2 } else { 1 };
        if self.rank == self.root { signs * F::WINDOW as u32 } else { signs }
    }
}
