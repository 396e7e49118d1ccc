//! Flat tree: the root sends each rank its block.

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
    Collective::Scatter,
    Algorithm::Linear,
    "the root sends each rank its block",
);

pub(in super::super) const BLOCKING: Entry = Entry::new::<Linear<Blocking>>(
    Collective::Scatter,
    Algorithm::LinearBlocking,
    "the root sends each rank its block, one after the other",
);

pub(in super::super) const READY: Entry = Entry::new::<Linear<Ready>>(
    Collective::Scatter,
    Algorithm::LinearReady,
    "the root sends each rank its block in ready mode when it has said that it waits",
);

pub(in super::super) const VECTOR: Entry = Entry::new::<Linear<Vector>>(
    Collective::Scatterv,
    Algorithm::Linear,
    "the root sends each rank its block",
);

pub(in super::super) const VECTOR_BLOCKING: Entry = Entry::new::<Linear<VectorBlocking>>(
    Collective::Scatterv,
    Algorithm::LinearBlocking,
    "the root sends each rank its block, one after the other",
);

pub(in super::super) const VECTOR_READY: Entry = Entry::new::<Linear<VectorReady>>(
    Collective::Scatterv,
    Algorithm::LinearReady,
    "the root sends each rank its block in ready mode when it has said that it waits",
);

pub(in super::super) const ASCENDING: Entry = Entry::new::<Linear<Ascending>>(
    Collective::Scatterv,
    Algorithm::LinearAscending,
    "the root sends each rank its block, the smallest first",
);

pub(in super::super) const DESCENDING: Entry = Entry::new::<Linear<Descending>>(
    Collective::Scatterv,
    Algorithm::LinearDescending,
    "the root sends each rank its block, the largest first",
);

#[derive(Debug, Clone, Copy)]
struct Linear<F> {
    rank: u32,
    root: u32,
    others: u64,
    form: PhantomData<F>,
}

impl<F: FlatAlgorithm> Linear<F> {
    /// The root's slot for the sign that a rank waits.
    const SIGN: u32 = F::WINDOW as u32;

    fn send(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        served::<F>(call, out, |rank, out| {
            let block = |message| {
                let to = rank(message)?;
                let block = block(F::VECTOR, call, Buffer::Send, to);
                (block.count > 0).then_some((to, (message % F::WINDOW) as u32, block))
            };
            if let Some((_, slot, _)) = index.checked_sub(F::WINDOW).and_then(block) {
                out.wait(slot);
            }
            if let Some((to, slot, block)) =
                Some(index).filter(|i| *i < self.others).and_then(block)
            {
                if F::READY {
                    out.receive(to, Self::SIGN, Range::new(Buffer::Receive, 0, 0));
                    out.wait(Self::SIGN);
                    out.send_ready(to, slot, block);
                } else {
                    out.send(to, slot, block);
                }
            }
        });
    }
}

impl<F: FlatAlgorithm> Program for Linear<F> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let others = u64::from(call.ranks) - 1;
        Linear { rank, root: call.root, others, form: PhantomData }
    }

    /// At the root one for each message to post, then some for the last ones to wait for.
    fn rounds(&self) -> u64 {
        if self.rank == self.root { self.others + 1 + self.others.min(F::WINDOW) } else { 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let own = own_block(F::VECTOR, call, Buffer::Receive, self.rank);
        if self.rank != self.root {
            if own.count > 0 {
                out.receive(self.root, 0, own);
                if F::READY {
                    out.send(self.root, 1, Range { count: 0, ..own });
                    out.wait(1);
                }
                out.wait(0);
            }
        } else if index < self.others {
            self.send(call, index, out);
        } else if index > self.others {
            // The copy has a round of its own.
            let first = self.others.saturating_sub(F::WINDOW);
            self.send(call, first + F::WINDOW + index - self.others - 1, out);
        } else if !call.in_place {
            out.copy(block(F::VECTOR, call, Buffer::Send, self.root), own);
        }
    }

    fn slots(&self) -> u32 {
        if self.rank == self.root { Self::SIGN + 1 } else { 2 }
    }

    fn destinations(&self) -> u32 {
        if self.rank == self.root { self.others as u32 } else { 1 }
    }
}
