//! Rabenseifner: reduce-scatter by recursive halving, then gather to the root; long messages.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, Program, Round,
    algorithms::{allreduce::rabenseifner::Windows, fold::Fold},
};

pub(in super::super) const ENTRY: Entry = Entry::new::<Rabenseifner>(
    Collective::Reduce,
    Algorithm::Rabenseifner,
    "reduce-scatter by recursive halving, then gather by a binomial tree",
);

/// The vector is halved level by level; then the windows join again, level by level, towards the
/// rank that stands for the root. If the root was folded away, it gets the result from its partner.
#[derive(Debug, Clone, Copy)]
struct Rabenseifner {
    windows: Windows,
    rank: u32,
    root: u32,
    /// Number, among the ranks that stay, of the one that gathers.
    head: u32,
}

impl Rabenseifner {
    fn gather(&self, number: u32, level: u32, out: &mut Round) {
        let bit = 1 << level;
        let partner = self.windows.fold.rank_of(number ^ bit);
        let (own, other) = self.windows.at(number, level);
        let buffer = self.windows.buffer;
        if (number ^ self.head) & bit != 0 {
            if own.count > 0 {
                out.send(partner, 0, own.in_buffer(buffer));
                out.wait(0);
            }
        } else if other.count > 0 {
            out.receive(partner, 0, other.in_buffer(buffer));
            out.wait(0);
        }
    }
}

impl Program for Rabenseifner {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        // Away from the root there is no receive buffer to work in.
        let buffer = if rank == call.root { Buffer::Receive } else { Buffer::Temporary };
        let windows = Windows::new(call, rank, buffer);
        let root = Fold::new(call.ranks, call.root);
        let folded_root = root.partner().map(|partner| Fold::new(call.ranks, partner));
        let head = root.number().or_else(|| folded_root.and_then(|fold| fold.number()));
        Rabenseifner { windows, rank, root: call.root, head: head.unwrap_or(0) }
    }

    fn rounds(&self) -> u64 {
        // Fold, halve, join, unfold.
        if self.windows.whole.count == 0 { 0 } else { 2 + 2 * u64::from(self.windows.fold.levels) }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let levels = u64::from(self.windows.fold.levels);
        let number = self.windows.fold.number();
        if index == 0 {
            self.windows.begin(call, out);
        } else if index <= levels {
            if let Some(number) = number {
                self.windows.halve(call, number, index as u32 - 1, out);
            }
        } else if index <= 2 * levels {
            // Join from the last level to the first; who has handed on its window is done.
            let level = (2 * levels - index) as u32;
            if let Some(number) = number
                && (number ^ self.head) >> (level + 1) == 0
            {
                self.gather(number, level, out);
            }
        } else {
            self.hand_over(out);
        }
    }

    fn slots(&self) -> u32 {
        2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.windows.temporary()
    }
}

impl Rabenseifner {
    /// The result, to a root that was folded away.
    fn hand_over(&self, out: &mut Round) {
        let fold = self.windows.fold;
        let head = fold.rank_of(self.head);
        let whole: ElementSpan = self.windows.whole;
        if head == self.root {
            return;
        }
        if self.rank == head {
            out.send(self.root, 0, whole.in_buffer(self.windows.buffer));
            out.wait(0);
        } else if self.rank == self.root {
            out.receive(head, 0, whole.in_buffer(Buffer::Receive));
            out.wait(0);
        }
    }
}
