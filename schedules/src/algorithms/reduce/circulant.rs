//! Circulant: the rounds of the circulant broadcast from the last to the first, with every message
//! the other way round. What comes for a segment is combined before that is sent on, or when the
//! place in which it came is needed: so what is on its way holds up nothing else.

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, Program, Range, Round, algorithms::circulant::BlockSchedule,
};

pub(in super::super) const ENTRY: Entry = Entry::new::<CirculantReduce>(
    Collective::Reduce,
    Algorithm::Circulant,
    "a segment out and one in per round, in the fewest rounds that there can be",
)
.commutative()
.segmented()
.fanned();

/// Sends under way at once.
const SENDS: u64 = 4;

#[derive(Debug, Clone, Copy)]
struct CirculantReduce {
    schedule: BlockSchedule,
    whole: ElementSpan,
    /// Where the vector is combined: away from the root there is no receive buffer.
    buffer: Buffer,
    /// Elements of the longest segment.
    longest: u64,
}

impl CirculantReduce {
    fn segment(&self, call: &Call<'_>, block: u64) -> Range {
        self.whole.segment(block, call.segment).in_buffer(self.buffer)
    }

    /// What comes in a round: the broadcast's sends from the last to the first.
    fn received(&self, round: u64) -> Option<(u32, u64)> {
        self.schedule.sent(self.schedule.rounds() - 1 - round)
    }

    fn sent(&self, round: u64) -> Option<(u32, u64)> {
        self.schedule.received(self.schedule.rounds() - 1 - round)
    }

    fn receive_slot(&self, round: u64) -> u32 {
        (round % self.schedule.window()) as u32
    }

    fn send_slot(&self, round: u64) -> u32 {
        (self.schedule.window() + round % SENDS) as u32
    }

    /// Where a round's message comes.
    fn arrival(&self, round: u64, count: u64) -> Range {
        let combined = if self.buffer == Buffer::Temporary { self.whole.count } else { 0 };
        let start = combined + round % self.schedule.window() * self.longest;
        Range::new(Buffer::Temporary, start, count)
    }

    /// Posts the receive of a round.
    fn post(&self, call: &Call<'_>, round: u64, out: &mut Round) {
        if let Some((from, block)) = self.received(round) {
            let from = call.after(call.root, from);
            let arrival = self.arrival(round, self.segment(call, block).count);
            out.receive(from, self.receive_slot(round), arrival);
        }
    }

    /// Waits for what comes in a round, and combines it.
    fn combine(&self, call: &Call<'_>, round: u64, block: u64, out: &mut Round) {
        let into = self.segment(call, block);
        out.wait(self.receive_slot(round));
        out.combine_left(self.arrival(round, into.count), into);
    }

    /// Combines what came in a round, unless that was done when its segment was sent, before `now`.
    fn combine_unless_sent(&self, call: &Call<'_>, round: u64, now: u64, out: &mut Round) {
        let Some((_, block)) = self.received(round) else { return };
        let is_it = |round| self.sent(round).is_some_and(|(_, sent)| sent == block);
        if !self.schedule.between(round, now).any(is_it) {
            self.combine(call, round, block, out);
        }
    }

    fn send(&self, call: &Call<'_>, round: u64, out: &mut Round) {
        let Some((to, block)) = self.sent(round) else { return };
        for came in self.schedule.before(round).rev() {
            if self.received(came).is_some_and(|(_, got)| got == block) {
                self.combine(call, came, block, out);
            }
        }
        let to = call.after(call.root, to);
        out.send(to, self.send_slot(round), self.segment(call, block));
    }

    fn wait_for_send(&self, round: Option<u64>, out: &mut Round) {
        if let Some(round) = round.filter(|round| self.sent(*round).is_some()) {
            out.wait(self.send_slot(round));
        }
    }
}

impl Program for CirculantReduce {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        let segments = whole.segments(call.segment);
        let relative = call.relative(rank);
        let schedule = BlockSchedule::new(call.ranks, relative, segments, call.fan_out);
        let buffer = if rank == call.root { Buffer::Receive } else { Buffer::Temporary };
        let longest = whole.segment(0, call.segment).count;
        CirculantReduce { schedule, whole, buffer, longest }
    }

    fn rounds(&self) -> u64 {
        if self.whole.count == 0 { 0 } else { 1 + self.schedule.rounds() }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let (rounds, window) = (self.schedule.rounds(), self.schedule.window());
        let Some(index) = index.checked_sub(1) else {
            let whole = |buffer| self.whole.in_buffer(buffer);
            out.copy(whole(call.input()), whole(self.buffer));
            return if rounds > 0 {
                self.post(call, 0, out)
            };
        };
        if let Some(round) = (index + 1).checked_sub(window) {
            self.combine_unless_sent(call, round, index, out);
        }
        if index + 1 < rounds {
            self.post(call, index + 1, out);
        }
        self.wait_for_send(index.checked_sub(SENDS), out);
        self.send(call, index, out);
        if index + 1 == rounds {
            for round in (rounds + 1).saturating_sub(window)..rounds {
                self.combine_unless_sent(call, round, rounds, out);
            }
            let under_way = rounds.saturating_sub(SENDS)..rounds;
            under_way.for_each(|round| self.wait_for_send(Some(round), out));
        }
    }

    fn slots(&self) -> u32 {
        (self.schedule.window() + SENDS) as u32
    }

    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        self.arrival(0, 0).start + self.schedule.window() * self.longest
    }

    fn destinations(&self) -> u32 {
        self.schedule.length()
    }

    fn sent_before(&self, index: u64) -> Option<u64> {
        Some(self.schedule.sent_before(index.checked_sub(1)?))
    }
}
