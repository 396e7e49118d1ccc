//! Circulant: middle and long messages on any number of ranks. The segments of the message go round
//! by round, each to half of the ranks ahead, then a quarter, and so on: as few rounds as there can
//! be, in each of which every rank sends one segment and receives one.
//!
//! A segment is waited for when it is handed on, not in the round in which it comes: so what is on
//! its way holds up nothing else. The fan-out is the number of streams that take turns: more of them
//! where a message's latency is far above its gap (`circulant/blocks.rs`).

use records::{Algorithm, Collective};

use crate::{
    Buffer, Call, ElementSpan, Entry, Program, Range, Round, algorithms::circulant::BlockSchedule,
};

pub(in super::super) const ENTRY: Entry = Entry::new::<CirculantBcast>(
    Collective::Bcast,
    Algorithm::Circulant,
    "a segment out and one in per round, in the fewest rounds that there can be",
)
.segmented()
.fanned();

/// Sends under way at once.
const SENDS: u64 = 4;

#[derive(Debug, Clone, Copy)]
struct CirculantBcast {
    schedule: BlockSchedule,
    whole: ElementSpan,
}

impl CirculantBcast {
    fn segment(&self, call: &Call<'_>, block: u64) -> Range {
        self.whole.segment(block, call.segment).in_buffer(Buffer::Receive)
    }

    fn receive_slot(&self, round: u64) -> u32 {
        (round % self.schedule.window()) as u32
    }

    fn send_slot(&self, round: u64) -> u32 {
        (self.schedule.window() + round % SENDS) as u32
    }

    /// Posts the receive of a round.
    fn post(&self, call: &Call<'_>, round: u64, out: &mut Round) {
        if let Some((from, block)) = self.schedule.received(round) {
            let from = call.after(call.root, from);
            out.receive(from, self.receive_slot(round), self.segment(call, block));
        }
    }

    /// Waits for what came in a round, unless that was waited for when it was handed on, before `now`.
    fn wait_unless_sent(&self, round: u64, now: u64, out: &mut Round) {
        let Some((_, block)) = self.schedule.received(round) else { return };
        let is_it = |round| self.schedule.sent(round).is_some_and(|(_, sent)| sent == block);
        if !self.schedule.between(round, now).any(is_it) {
            out.wait(self.receive_slot(round));
        }
    }

    fn send(&self, call: &Call<'_>, round: u64, out: &mut Round) {
        let Some((to, block)) = self.schedule.sent(round) else { return };
        let is_it =
            |round: &u64| self.schedule.received(*round).is_some_and(|(_, got)| got == block);
        if let Some(came) = self.schedule.before(round).find(is_it) {
            self.wait_unless_sent(came, round, out);
        }
        let to = call.after(call.root, to);
        out.send(to, self.send_slot(round), self.segment(call, block));
    }

    fn wait_for_send(&self, round: Option<u64>, out: &mut Round) {
        if let Some(round) = round.filter(|round| self.schedule.sent(*round).is_some()) {
            out.wait(self.send_slot(round));
        }
    }
}

impl Program for CirculantBcast {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        let segments = whole.segments(call.segment);
        CirculantBcast {
            schedule: BlockSchedule::new(call.ranks, call.relative(rank), segments, call.fan_out),
            whole,
        }
    }

    fn rounds(&self) -> u64 {
        self.schedule.rounds()
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let (rounds, window) = (self.rounds(), self.schedule.window());
        if index == 0 {
            self.post(call, 0, out);
        }
        if let Some(round) = (index + 1).checked_sub(window) {
            self.wait_unless_sent(round, index, out);
        }
        if index + 1 < rounds {
            self.post(call, index + 1, out);
        }
        self.wait_for_send(index.checked_sub(SENDS), out);
        self.send(call, index, out);
        if index + 1 == rounds {
            let left = (rounds + 1).saturating_sub(window)..rounds;
            left.for_each(|round| self.wait_unless_sent(round, rounds, out));
            let under_way = rounds.saturating_sub(SENDS)..rounds;
            under_way.for_each(|round| self.wait_for_send(Some(round), out));
        }
    }

    fn slots(&self) -> u32 {
        (self.schedule.window() + SENDS) as u32
    }

    fn destinations(&self) -> u32 {
        self.schedule.length()
    }

    fn sent_before(&self, index: u64) -> Option<u64> {
        Some(self.schedule.sent_before(index))
    }
}
