//! The paper's linear alltoall (Table 4): rank i sends to everybody else once the message of rank
//! i - 1 has completely arrived; so one rank sends at a time. It sends segment by segment, each to
//! all others in rank order. Not the basic linear algorithm of MPI libraries.

use records::{Algorithm, Collective};

use super::{begin, input, temporary};
use crate::{Buffer, Call, ElementSpan, Entry, Program, Range, Round};

pub(in super::super) const ENTRY: Entry = Entry::new::<Linear>(
    Collective::Alltoall,
    Algorithm::Linear,
    "rank after rank sends to all others",
)
.segmented();

/// Sends under way at once; the receives' slots follow.
const SENDS: u64 = 8;

#[derive(Debug, Clone, Copy)]
struct Linear {
    rank: u32,
    others: u64,
    segments: u64,
    temporary: u64,
}

impl Linear {
    /// A message of this rank's turn, or from a rank other than itself.
    fn other(&self, index: u64) -> u32 {
        let index = index as u32;
        if index < self.rank { index } else { index + 1 }
    }

    fn piece(&self, call: &Call<'_>, buffer: Buffer, rank: u32, segment: u64) -> Range {
        let block = call.block(buffer, rank);
        ElementSpan { start: block.start, count: block.count }
            .segment(segment, call.segment)
            .in_buffer(buffer)
    }

    fn receive(&self, call: &Call<'_>, message: u64, out: &mut Round) {
        if message < self.others * self.segments {
            let from = self.other(message / self.segments);
            let range = self.piece(call, Buffer::Receive, from, message % self.segments);
            out.receive(from, (SENDS + message % 2) as u32, range);
        }
    }

    /// One message in; the next one's receive is posted before this one is waited for.
    fn take(&self, call: &Call<'_>, message: u64, out: &mut Round) {
        if message == 0 {
            self.receive(call, 0, out);
        }
        self.receive(call, message + 1, out);
        out.wait((SENDS + message % 2) as u32);
    }

    fn give(&self, call: &Call<'_>, message: u64, out: &mut Round) {
        let slot = (message % SENDS) as u32;
        if message >= SENDS {
            out.wait(slot);
        }
        let to = self.other(message % self.others);
        out.send(to, slot, self.piece(call, input(call), to, message / self.others));
    }
}

impl Program for Linear {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Linear {
            rank,
            others: u64::from(call.ranks) - 1,
            segments: ElementSpan { start: 0, count: call.count }.segments(call.segment),
            temporary: temporary(call),
        }
    }

    fn rounds(&self) -> u64 {
        // The own block, all messages in and out, the waits for those that went out.
        if self.segments == 0 { 0 } else { 2 + 2 * self.others * self.segments }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let Some(index) = index.checked_sub(1) else { return begin(call, self.rank, out) };
        let messages = self.others * self.segments;
        let before = u64::from(self.rank) * self.segments;
        if index < before {
            self.take(call, index, out);
        } else if index < before + messages {
            self.give(call, index - before, out);
        } else if index == before + messages {
            let first = messages.saturating_sub(SENDS);
            (first..messages).for_each(|message| out.wait((message % SENDS) as u32));
        } else {
            self.take(call, index - messages - 1, out);
        }
    }

    fn slots(&self) -> u32 {
        SENDS as u32 + 2
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.temporary
    }

    fn destinations(&self) -> u32 {
        self.others as u32
    }

    fn sent_before(&self, index: u64) -> Option<u64> {
        let message = index.checked_sub(1 + u64::from(self.rank) * self.segments)?;
        message.checked_div(self.others)
    }
}
