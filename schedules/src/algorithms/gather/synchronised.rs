//! Flat tree with synchronisation: the root asks one rank after the other for its block, so that
//! it is never sent what it has no receive for, and large messages don't crowd its port. What is
//! longer than a segment is sent in two parts, of which the second may still be under way while
//! the next rank is asked (as in the linear gather with synchronisation of Open MPI).

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, Program, Range, Round,
    algorithms::{
        blocks::{block, own_block},
        flat::WINDOW,
    },
};

pub(in super::super) const ENTRY: Entry = Entry::new::<Synchronised>(
    Collective::Gatherv,
    Algorithm::LinearSynchronised,
    "the root asks one rank after the other for its block",
)
.segmented();

/// The root's slots of the request and the first part; those of second parts come before.
const REQUEST: u32 = WINDOW as u32;
const FIRST: u32 = REQUEST + 1;

#[derive(Debug, Clone, Copy)]
struct Synchronised {
    rank: u32,
    root: u32,
    others: u64,
}

/// The first segment, and what comes after it.
fn parts(block: Range, segment: u64) -> (Range, Range) {
    let first = ElementSpan { start: block.start, count: block.count }.segment(0, segment).count;
    let rest = Range { start: block.start + first, count: block.count - first, ..block };
    (Range { count: first, ..block }, rest)
}

impl Synchronised {
    fn ask(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let nothing = Range::new(Buffer::Receive, 0, 0);
        let from = |message: u64| call.after(self.root, message as u32 + 1);
        let parts =
            |message| parts(block(true, call, Buffer::Receive, from(message)), call.segment);
        let slot = |message: u64| (message % WINDOW) as u32;
        if let Some(before) = index.checked_sub(WINDOW)
            && parts(before).1.count > 0
        {
            out.wait(slot(before));
        }
        if index >= self.others || parts(index).0.count == 0 {
            return;
        }
        let (first, rest) = parts(index);
        out.receive(from(index), FIRST, first);
        out.send(from(index), REQUEST, nothing);
        if rest.count > 0 {
            out.receive(from(index), slot(index), rest);
        }
        out.wait(REQUEST);
        out.wait(FIRST);
    }

    fn answer(&self, call: &Call<'_>, own: Range, out: &mut Round) {
        let (first, rest) = parts(own, call.segment);
        if own.count > 0 {
            out.receive(self.root, 0, Range::new(Buffer::Receive, 0, 0));
            out.wait(0);
            out.send(self.root, 0, first);
            out.wait(0);
        }
        if rest.count > 0 {
            out.send(self.root, 0, rest);
            out.wait(0);
        }
    }
}

impl Program for Synchronised {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Synchronised { rank, root: call.root, others: u64::from(call.ranks) - 1 }
    }

    /// At the root one for each rank to ask, one for its own block, then some for the last second
    /// parts.
    fn rounds(&self) -> u64 {
        if self.rank == self.root { self.others + 1 + self.others.min(WINDOW) } else { 1 }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let own = own_block(true, call, Buffer::Send, self.rank);
        if self.rank != self.root {
            self.answer(call, own, out);
        } else if index < self.others {
            self.ask(call, index, out);
        } else if index > self.others {
            let first = self.others.saturating_sub(WINDOW);
            self.ask(call, first + WINDOW + index - self.others - 1, out);
        } else if !call.in_place {
            out.copy(own, block(true, call, Buffer::Receive, self.root));
        }
    }

    fn slots(&self) -> u32 {
        if self.rank == self.root { FIRST + 1 } else { 1 }
    }
}
