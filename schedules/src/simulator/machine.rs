//! The ranks, each run round by round until it has to wait for what is not known yet.

use std::collections::VecDeque;

use records::Collective;

use super::{
    Activity, ActivityKind, Costs, Options, Outcome, SimulationError,
    mail::{Box, Half, Mail},
    port::Port,
};
use crate::{Buffer, Call, Entry, Range, Round, Step, program::Header, registry::known_to};

const NOWHERE: u32 = u32::MAX;

/// Most rounds that a rank runs without a message: a root may have thousands of them.
const ROUNDS_AT_ONCE: u32 = 64;

/// Messages after which a rank lets others go on: more than one, so that who has a parent only
/// serves all its children at once.
const MESSAGES_AT_ONCE: u32 = 2;

#[derive(Debug, Clone, Copy)]
enum Slot {
    Idle,
    /// A rendezvous send without its receive, or a receive without its message.
    Open,
    /// A send that has left the memory.
    Left {
        at: f64,
    },
    /// A message that left its sender's processor.
    Comes {
        from: u32,
        left: f64,
        bytes: u64,
    },
}

/// What a message touches of both its ranks, in one line of the cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Rank {
    /// The processor's time.
    clock: f64,
    /// When the outgoing port is free.
    port_free: f64,
    mail: Box,
    round: u64,
    first_slot: u64,
    place: u32,
    waits_for: u32,
}

/// The costs of messages of one size to one number of destinations.
#[derive(Debug, Clone, Copy)]
struct Rates {
    bytes: u64,
    destinations: u32,
    send_overhead: f64,
    receive_overhead: f64,
    gap: f64,
    receive_gap: f64,
    flight: f64,
}

impl Rates {
    fn of(costs: &impl Costs, bytes: u64, destinations: u32) -> Self {
        Rates {
            bytes,
            destinations,
            send_overhead: costs.send_overhead(bytes),
            receive_overhead: costs.receive_overhead(bytes),
            gap: costs.gap(bytes, destinations),
            receive_gap: costs.receive_gap(bytes),
            flight: costs.flight(bytes),
        }
    }
}

/// What all ranks hold. Fresh memory costs more than what is done with it, so it is kept.
#[derive(Debug, Default)]
pub(super) struct Memory {
    ranks: Vec<Rank>,
    /// The ranks' incoming ports.
    ports: Vec<Port>,
    /// A stretch for each rank.
    slots: Vec<Slot>,
    mail: Mail,
    /// Who can go on with its round, and who with its next one, when nobody is left there.
    ready: VecDeque<u32>,
    next: VecDeque<u32>,
}

impl Memory {
    /// As before the first step of a call.
    fn begin(&mut self, entry: &Entry, call: &Call<'_>) {
        let Memory { ranks, ports, slots, mail, ready, next } = self;
        ranks.clear();
        let mut slot_count = 0;
        for rank in 0..call.ranks {
            let known = known_to(entry.collective, call, rank);
            let (slots_of_rank, _) = entry.normal_sizes(&known, rank);
            ranks.push(Rank {
                clock: 0.0,
                port_free: 0.0,
                mail: Box::EMPTY,
                round: 0,
                first_slot: slot_count,
                place: 0,
                waits_for: NOWHERE,
            });
            slot_count += u64::from(slots_of_rank);
        }
        ports.clear();
        ports.resize(call.ranks as usize, Port::default());
        slots.clear();
        slots.resize(slot_count as usize, Slot::Idle);
        mail.clear();
        ready.clear();
        next.clear();
    }
}

/// Whether the data flow from the leaves to the root.
const fn goes_to_the_root(collective: Collective) -> bool {
    matches!(collective, Collective::Gather | Collective::Gatherv | Collective::Reduce)
}

/// Whether round 0 of a program may bring counts.
const fn has_header(collective: Collective) -> bool {
    matches!(collective, Collective::Gatherv | Collective::Scatterv)
}

pub(super) struct Machine<'a, C, O> {
    entry: &'a Entry,
    call: Call<'a>,
    costs: &'a C,
    options: Options,
    observe: O,
    memory: &'a mut Memory,
    /// Messages that the rank under way has taken in.
    took_in: u32,
    /// Of the last size that was asked for: most messages have the size of the one before.
    rates: Rates,
    handshake: f64,
    messages: u64,
    bytes: u64,
}

impl<'a, C: Costs, O: FnMut(Activity)> Machine<'a, C, O> {
    pub fn new(
        memory: &'a mut Memory,
        entry: &'a Entry,
        call: &Call<'a>,
        costs: &'a C,
        options: Options,
        observe: O,
    ) -> Result<Self, SimulationError> {
        entry.check_everywhere(call)?;
        let call = entry.normal(call);
        memory.begin(entry, &call);
        let ranks = 0..call.ranks;
        // Whoever is heard from should have spoken before. (The order of rendezvous transfers is
        // that of the list, so there it is the same for all.)
        match goes_to_the_root(entry.collective) && options.rendezvous_bytes.is_none() {
            true => memory.ready.extend(ranks.rev()),
            false => memory.ready.extend(ranks),
        }
        Ok(Machine {
            entry,
            call,
            costs,
            options,
            observe,
            memory,
            took_in: 0,
            rates: Rates::of(costs, 0, 1),
            handshake: costs.flight(0),
            messages: 0,
            bytes: 0,
        })
    }

    pub fn run(mut self) -> Result<Outcome, SimulationError> {
        let mut round = Round::default();
        let mut unfinished = self.call.ranks;
        // What headers hold lies side by side here.
        let counts = [self.call.counts, self.call.counts].concat();
        while !self.memory.ready.is_empty() {
            while let Some(rank) = self.memory.ready.pop_front() {
                unfinished -= u32::from(self.advance(rank, &counts, &mut round));
            }
            let Memory { ready, next, .. } = self.memory;
            std::mem::swap(ready, next);
        }
        if unfinished > 0 {
            let first = self.memory.ranks.iter().position(|rank| rank.waits_for != NOWHERE);
            let first = first.unwrap_or_default() as u32;
            return Err(SimulationError::Deadlock { blocked: unfinished, first });
        }
        let finish: Vec<f64> = self.memory.ranks.iter().map(|rank| rank.clock).collect();
        let seconds = finish.iter().copied().fold(0.0, f64::max);
        Ok(Outcome { seconds, finish, messages: self.messages, bytes: self.bytes })
    }

    /// Runs a rank until it has to wait, or has done [`ROUNDS_AT_ONCE`] or those in which it took
    /// in [`MESSAGES_AT_ONCE`]; true if there is no round left.
    ///
    /// That keeps the ranks abreast: if one ran ahead, what it sends would pile up with ranks that
    /// lag behind, and finding messages there is what costs most.
    fn advance(&mut self, rank: u32, counts: &[u64], round: &mut Round) -> bool {
        let mut known = known_to(self.entry.collective, &self.call, rank);
        let header = match has_header(self.entry.collective) {
            true => self.entry.normal_sizes(&known, rank).1,
            false => Header::default(),
        };
        let header = &counts[header.first as usize..][..header.words as usize];
        self.took_in = 0;
        for _ in 0..ROUNDS_AT_ONCE {
            let Rank { round: index, place, .. } = self.memory.ranks[rank as usize];
            known.header = if index > 0 { header } else { &[] };
            if !self.entry.normal_round(&known, rank, index, round) {
                return true;
            }
            let mut place = place as usize;
            while let Some(step) = round.steps().get(place) {
                if !self.step(rank, *step, round.destinations()) {
                    self.memory.ranks[rank as usize].place = place as u32;
                    return false;
                }
                place += 1;
            }
            let own = &mut self.memory.ranks[rank as usize];
            own.round += 1;
            own.place = 0;
            if round.is_last() {
                return true;
            }
            if self.took_in >= MESSAGES_AT_ONCE {
                break;
            }
        }
        self.memory.next.push_back(rank);
        false
    }

    /// Does one step; false if it has to wait for what is not known yet.
    fn step(&mut self, rank: u32, step: Step, destinations: u32) -> bool {
        match step {
            Step::Send { peer, slot, range } => {
                let bytes = self.bytes_of(range);
                match self.options.rendezvous_bytes {
                    Some(least) if bytes >= least => {
                        self.offer(rank, peer, slot, bytes, destinations);
                    }
                    _ => self.send(rank, peer, slot, bytes, destinations),
                }
            }
            Step::SendReady { peer, slot, range } => {
                self.send(rank, peer, slot, self.bytes_of(range), destinations);
            }
            Step::Receive { peer, slot, .. } => self.receive(rank, peer, slot),
            Step::Wait { slot } => return self.wait(rank, slot),
            Step::Combine { into, .. } => {
                let bytes = self.bytes_of(into);
                self.busy(rank, self.costs.combine(bytes), ActivityKind::Combine, bytes);
            }
            Step::Copy { into, .. } => {
                let bytes = self.bytes_of(into);
                self.busy(rank, self.costs.copy(bytes), ActivityKind::Copy, bytes);
            }
        }
        true
    }

    /// A message that needs its receive to be posted before it leaves.
    fn offer(&mut self, rank: u32, peer: u32, slot: u32, bytes: u64, destinations: u32) {
        let rates = self.rates(bytes, destinations);
        let number = self.slot(rank, slot);
        self.messages += 1;
        self.bytes += bytes;
        self.busy(rank, rates.send_overhead, ActivityKind::Send { to: peer }, bytes);
        let posted = self.memory.ranks[rank as usize].clock;
        self.memory.slots[number] = Slot::Open;
        let half = Half::Offered { slot, posted, bytes, destinations };
        if let Some(Half::Expected { slot: into, posted: expected }) = self.meet(peer, rank, half) {
            self.transfer((rank, slot, posted), (peer, into, expected), rates);
        }
    }

    /// A message that leaves as soon as it can.
    fn send(&mut self, rank: u32, peer: u32, slot: u32, bytes: u64, destinations: u32) {
        let rates = self.rates(bytes, destinations);
        let number = self.slot(rank, slot);
        self.messages += 1;
        self.bytes += bytes;
        let own = &mut self.memory.ranks[rank as usize];
        let begin = own.clock.max(own.port_free);
        own.port_free = begin + rates.gap;
        let waited = own.clock;
        own.clock = begin;
        self.observe_wait(rank, waited, begin);
        self.busy(rank, rates.send_overhead, ActivityKind::Send { to: peer }, bytes);
        let left = begin + rates.send_overhead;
        self.memory.slots[number] = Slot::Left { at: left };
        if let Some(Half::Expected { slot: into, .. }) =
            self.meet(peer, rank, Half::Sent { left, bytes })
        {
            self.settle(peer, into, Slot::Comes { from: rank, left, bytes });
        }
    }

    fn receive(&mut self, rank: u32, peer: u32, slot: u32) {
        let posted = self.memory.ranks[rank as usize].clock;
        let number = self.slot(rank, slot);
        self.memory.slots[number] = Slot::Open;
        match self.meet(rank, peer, Half::Expected { slot, posted }) {
            Some(Half::Sent { left, bytes }) => {
                self.memory.slots[number] = Slot::Comes { from: peer, left, bytes };
            }
            Some(Half::Offered { slot: from, posted: offered, bytes, destinations }) => {
                let rates = self.rates(bytes, destinations);
                self.transfer((peer, from, offered), (rank, slot, posted), rates);
            }
            _ => {}
        }
    }

    /// A rendezvous whose two sides are known: the offer flies, the answer flies back, and the
    /// message leaves when the port is free.
    fn transfer(&mut self, sender: (u32, u32, f64), receiver: (u32, u32, f64), rates: Rates) {
        let agreed = (sender.2 + self.handshake).max(receiver.2) + self.handshake;
        let own = &mut self.memory.ranks[sender.0 as usize];
        let left = agreed.max(own.port_free);
        own.port_free = left + rates.gap;
        self.settle(sender.0, sender.1, Slot::Left { at: left + rates.gap });
        let comes = Slot::Comes { from: sender.0, left, bytes: rates.bytes };
        self.settle(receiver.0, receiver.1, comes);
    }

    /// What became of an open slot; its rank goes on if it waits for that.
    fn settle(&mut self, rank: u32, slot: u32, state: Slot) {
        let number = self.slot(rank, slot);
        self.memory.slots[number] = state;
        let own = &mut self.memory.ranks[rank as usize];
        if own.waits_for == slot {
            own.waits_for = NOWHERE;
            self.memory.ready.push_back(rank);
        }
    }

    fn wait(&mut self, rank: u32, slot: u32) -> bool {
        let number = self.slot(rank, slot);
        match self.memory.slots[number] {
            Slot::Open => {
                self.memory.ranks[rank as usize].waits_for = slot;
                return false;
            }
            Slot::Idle => {}
            Slot::Left { at } => self.idle_until(rank, at),
            Slot::Comes { from, left, bytes } => {
                self.took_in += 1;
                let rates = self.rates(bytes, 1);
                let passes = self.memory.ports[rank as usize].pass(left, rates.receive_gap);
                self.idle_until(rank, passes + rates.flight);
                let kind = ActivityKind::Receive { from, left };
                self.busy(rank, rates.receive_overhead, kind, bytes);
            }
        }
        self.memory.slots[number] = Slot::Idle;
        true
    }

    #[inline]
    fn meet(&mut self, receiver: u32, other: u32, half: Half) -> Option<Half> {
        // The box of a pair is the receiver's, whoever posts.
        let (rank, peer) = (receiver, other);
        let Memory { ranks, mail, .. } = self.memory;
        mail.meet(&mut ranks[rank as usize].mail, rank, peer, half)
    }

    fn busy(&mut self, rank: u32, seconds: f64, kind: ActivityKind, bytes: u64) {
        let own = &mut self.memory.ranks[rank as usize];
        let begin = own.clock;
        own.clock += seconds;
        (self.observe)(Activity { rank, kind, begin, end: own.clock, bytes });
    }

    fn idle_until(&mut self, rank: u32, time: f64) {
        let own = &mut self.memory.ranks[rank as usize];
        let begin = own.clock;
        own.clock = begin.max(time);
        self.observe_wait(rank, begin, time);
    }

    fn observe_wait(&mut self, rank: u32, begin: f64, end: f64) {
        if end > begin {
            (self.observe)(Activity { rank, kind: ActivityKind::Wait, begin, end, bytes: 0 });
        }
    }

    fn rates(&mut self, bytes: u64, destinations: u32) -> Rates {
        if (self.rates.bytes, self.rates.destinations) != (bytes, destinations) {
            self.rates = Rates::of(self.costs, bytes, destinations);
        }
        self.rates
    }

    fn slot(&self, rank: u32, slot: u32) -> usize {
        self.memory.ranks[rank as usize].first_slot as usize + slot as usize
    }

    fn bytes_of(&self, range: Range) -> u64 {
        match range.buffer {
            Buffer::Counts | Buffer::Header => range.count * size_of::<u64>() as u64,
            _ => range.count * self.options.element_bytes,
        }
    }
}
