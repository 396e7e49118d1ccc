//! The ranks, each run round by round until it has to wait for what is not known yet.

use records::Collective;

use super::{
    Activity, ActivityKind, Costs, Options, Outcome, SimulationError,
    mail::Half,
    port::later,
    rendezvous::Transfer,
    state::{Memory, NOWHERE, Rank, Rates, Slot},
};
use crate::{
    Buffer, Call, Entry, Range, Round, Step, is_rooted, program::Header, registry::known_to,
};

/// Most rounds that a rank runs without a message: a root may have thousands of them.
const ROUNDS_AT_ONCE: u32 = 64;

/// Messages after which a rank lets others go on: more than one, so that who has a parent only
/// serves all its children at once.
const MESSAGES_AT_ONCE: u32 = 2;

/// How far a rank has come.
enum Progress {
    /// It waits, or lets others go on.
    Stopped,
    Ended,
    /// It has got no slots.
    NoMemory,
}

/// Whether the data flow from the leaves to the root.
const fn goes_to_the_root(collective: Collective) -> bool {
    matches!(collective, Collective::Gather | Collective::Gatherv | Collective::Reduce)
}

/// Whether round 0 of a program may bring counts.
const fn has_header(collective: Collective) -> bool {
    matches!(collective, Collective::Gatherv | Collective::Scatterv)
}

/// Whether a rank knows of the call what the caller knows: see [`known_to`].
#[inline]
fn knows_all(collective: Collective, call: &Call<'_>, rank: u32) -> bool {
    !has_header(collective) && (!call.in_place || !is_rooted(collective) || rank == call.root)
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
        memory.begin(call.ranks);
        let ranks = 0..call.ranks;
        // Whoever is heard from should have spoken before.
        match goes_to_the_root(entry.collective) {
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
            handshake: costs.handshake(),
            messages: 0,
            bytes: 0,
        })
    }

    pub fn run(mut self) -> Result<Outcome, SimulationError> {
        let mut round = Round::default();
        let call = self.call;
        let mut unfinished = call.ranks;
        // What headers hold lies side by side here.
        let counts = [call.counts, call.counts].concat();
        while !self.memory.ready.is_empty() || self.pass_over() {
            while let Some(rank) = self.memory.ready.pop_front() {
                let in_part;
                let known = match knows_all(self.entry.collective, &call, rank) {
                    true => &call,
                    false => {
                        in_part = self.call_in_part(rank, &counts);
                        &in_part
                    }
                };
                match self.advance(rank, known, &mut round) {
                    Progress::Stopped => {}
                    Progress::Ended => unfinished -= 1,
                    Progress::NoMemory => {
                        return Err(SimulationError::Memory { ranks: call.ranks });
                    }
                }
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
        let seconds = finish.iter().copied().fold(0.0, later);
        Ok(Outcome { seconds, finish, messages: self.messages, bytes: self.bytes })
    }

    /// The call as a rank knows it that doesn't know all of it.
    #[inline(never)]
    fn call_in_part<'b>(&self, rank: u32, counts: &'b [u64]) -> Call<'b>
    where
        'a: 'b,
    {
        let known = known_to(self.entry.collective, &self.call, rank);
        if self.memory.ranks[rank as usize].round == 0 {
            return known;
        }
        let Header { first, words } = self.entry.normal_header(&known, rank);
        Call { header: &counts[first as usize..][..words as usize], ..known }
    }

    /// Runs a rank until it has to wait, or has done [`ROUNDS_AT_ONCE`] or those in which it took
    /// in [`MESSAGES_AT_ONCE`], or round 0 of those that bring a header.
    ///
    /// That keeps the ranks abreast: if one ran ahead, what it sends would pile up with ranks that
    /// lag behind, and finding messages there is what costs most.
    #[inline]
    fn advance(&mut self, rank: u32, call: &Call<'_>, round: &mut Round) -> Progress {
        self.took_in = 0;
        let most = if has_header(self.entry.collective) { 1 } else { ROUNDS_AT_ONCE };
        for _ in 0..most {
            let Rank { round: index, place, first_slot, .. } = self.memory.ranks[rank as usize];
            if !self.entry.normal_round(call, rank, index, round) {
                return Progress::Ended;
            }
            if first_slot == NOWHERE && !self.memory.give_slots(rank, round.slots()) {
                return Progress::NoMemory;
            }
            let mut place = place as usize;
            while let Some(step) = round.steps().get(place) {
                if !self.step(rank, *step, round.destinations()) {
                    self.memory.ranks[rank as usize].place = place as u32;
                    return Progress::Stopped;
                }
                place += 1;
            }
            let own = &mut self.memory.ranks[rank as usize];
            own.round += 1;
            own.place = 0;
            if round.is_last() {
                return Progress::Ended;
            }
            if self.took_in >= MESSAGES_AT_ONCE {
                break;
            }
        }
        self.memory.next.push_back(rank);
        Progress::Stopped
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
        let overhead = self.rates_to(bytes, destinations).send_overhead;
        let number = self.slot(rank, slot);
        self.messages += 1;
        self.bytes += bytes;
        self.busy(rank, overhead, ActivityKind::Send { to: peer }, bytes);
        let posted = self.memory.ranks[rank as usize].clock;
        self.memory.slots[number] = Slot::Offers;
        let offer = self.memory.rendezvous.offer(self.call.ranks, (rank, slot), destinations);
        let half = Half::Offered { offer, posted, bytes };
        if let Some(Half::Expected { slot: into, posted: expected }) = self.meet(peer, rank, half) {
            self.agree((offer, posted, bytes), (peer, into, expected));
        }
    }

    /// A message that leaves as soon as it can.
    fn send(&mut self, rank: u32, peer: u32, slot: u32, bytes: u64, destinations: u32) {
        let &Rates { send_overhead, gap, .. } = self.rates_to(bytes, destinations);
        let number = self.slot(rank, slot);
        self.messages += 1;
        self.bytes += bytes;
        let own = &mut self.memory.ranks[rank as usize];
        let port_free = own.port_free;
        let begin = later(own.clock, port_free);
        own.port_free = begin + gap;
        let left = begin + send_overhead;
        let kind = ActivityKind::Send { to: peer };
        self.busy_from(rank, port_free, send_overhead, kind, bytes);
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
            Some(Half::Offered { offer, posted: offered, bytes }) => {
                self.agree((offer, offered, bytes), (rank, slot, posted));
            }
            _ => {}
        }
    }

    /// Both sides of a rendezvous are known: the offer flies, and the answer flies back. Then the
    /// port takes what is agreed, up to the first that isn't.
    fn agree(&mut self, (offer, offered, bytes): (u32, f64, u64), receiver: (u32, u32, f64)) {
        let (receiver, expected) = ((receiver.0, receiver.1), receiver.2);
        let agreed = later(offered + self.handshake, expected) + self.handshake;
        let sender = self.memory.rendezvous.agree(offer, receiver, agreed, bytes);
        while let Some(transfer) = self.memory.rendezvous.next(sender) {
            self.transfer(transfer);
        }
    }

    /// Lets one transfer go before another one that may wait for it; false if there is none.
    fn pass_over(&mut self) -> bool {
        match self.memory.rendezvous.pass_over() {
            Some(transfer) => {
                self.transfer(transfer);
                true
            }
            None => false,
        }
    }

    /// A rendezvous leaves as soon as the port is free.
    fn transfer(&mut self, transfer: Transfer) {
        let Transfer { sender, receiver, agreed, bytes, destinations } = transfer;
        let gap = self.rates_to(bytes, destinations).gap;
        let own = &mut self.memory.ranks[sender.0 as usize];
        let left = later(agreed, own.port_free);
        own.port_free = left + gap;
        self.settle(sender.0, sender.1, Slot::Left { at: left + gap });
        self.settle(receiver.0, receiver.1, Slot::Comes { from: sender.0, left, bytes });
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
            Slot::Open | Slot::Offers => {
                self.memory.ranks[rank as usize].waits_for = slot;
                return false;
            }
            Slot::Idle => {}
            Slot::Left { at } => self.idle_until(rank, at),
            Slot::Comes { from, left, bytes } => {
                self.took_in += 1;
                let &Rates { receive_gap, flight, receive_overhead, .. } = self.rates(bytes);
                let passes = self.memory.ports[rank as usize].pass(left, receive_gap);
                let kind = ActivityKind::Receive { from, left };
                self.busy_from(rank, passes + flight, receive_overhead, kind, bytes);
            }
        }
        self.memory.slots[number] = Slot::Idle;
        true
    }

    #[inline]
    fn meet(&mut self, receiver: u32, other: u32, half: Half) -> Option<Half> {
        // The box of a pair is the receiver's, whoever posts.
        let Memory { ranks, mail, .. } = self.memory;
        let boxed = &mut ranks[receiver as usize].mail;
        mail.meet(boxed, (receiver, self.call.ranks), other, half)
    }

    fn busy(&mut self, rank: u32, seconds: f64, kind: ActivityKind, bytes: u64) {
        self.busy_from(rank, 0.0, seconds, kind, bytes);
    }

    /// From that time on, or when the processor is free, if that is later.
    #[inline]
    fn busy_from(&mut self, rank: u32, from: f64, seconds: f64, kind: ActivityKind, bytes: u64) {
        let own = &mut self.memory.ranks[rank as usize];
        let waits = own.clock;
        let begin = later(waits, from);
        let end = begin + seconds;
        own.clock = end;
        self.observe_wait(rank, waits, begin);
        (self.observe)(Activity { rank, kind, begin, end, bytes });
    }

    fn idle_until(&mut self, rank: u32, time: f64) {
        let own = &mut self.memory.ranks[rank as usize];
        let begin = own.clock;
        own.clock = later(begin, time);
        self.observe_wait(rank, begin, time);
    }

    fn observe_wait(&mut self, rank: u32, begin: f64, end: f64) {
        if end > begin {
            (self.observe)(Activity { rank, kind: ActivityKind::Wait, begin, end, bytes: 0 });
        }
    }

    /// The costs of receiving so many bytes; the gap is of no concern.
    #[inline]
    fn rates(&mut self, bytes: u64) -> &Rates {
        if self.rates.bytes != bytes {
            self.rates = Rates::of(self.costs, bytes, self.rates.destinations);
        }
        &self.rates
    }

    /// The costs of sending so many bytes to one of so many destinations.
    #[inline]
    fn rates_to(&mut self, bytes: u64, destinations: u32) -> &Rates {
        if self.rates.bytes != bytes {
            self.rates = Rates::of(self.costs, bytes, destinations);
        } else if self.rates.destinations != destinations {
            self.rates.gap = self.costs.gap(bytes, destinations);
            self.rates.destinations = destinations;
        }
        &self.rates
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
