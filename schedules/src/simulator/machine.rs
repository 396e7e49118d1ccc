//! The ranks, each run round by round until it has to wait for what is not known yet.

use records::Collective;

use super::{
    Activity, ActivityKind, Costs, Options, Outcome, SimulationError,
    mail::Half,
    port::later,
    rendezvous::Transfer,
    state::{Memory, NOWHERE, Own, Rates, Slot},
};
use crate::{
    Buffer, Call, Entry, Range, Round, Step, is_rooted, program::Header, registry::known_to,
};

/// Most rounds that a rank runs without a message: a root may have thousands of them.
const ROUNDS_AT_ONCE: u32 = 64;

/// Messages after which a rank lets others go on: more than one, so that who has a parent only
/// serves all its children at once.
const MESSAGES_AT_ONCE: u32 = 2;

/// Chains of comparisons at once: a single one would wait for itself.
const LANES: usize = 4;

/// How far a rank has come.
enum Progress {
    /// It waits for what is not known yet.
    Waits,
    /// It lets others go on.
    LetsOthers,
    Ended,
}

/// There are more slots than can be numbered.
struct NoMemory;

/// The rank under way. What is its own is put back where others see it when it stops.
struct Running {
    rank: u32,
    own: Own,
    /// Messages that it has taken in.
    took_in: u32,
    /// Of the round: see [`Round::destinations`].
    destinations: u32,
    /// Of its program.
    slots: u32,
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
        Ok(Machine {
            entry,
            call,
            costs,
            options,
            observe,
            memory,
            rates: Rates::of(costs, 0, 1),
            handshake: costs.handshake(),
            messages: 0,
            bytes: 0,
        })
    }

    pub fn run(mut self) -> Result<Outcome, SimulationError> {
        let mut round = Round::of_one_call();
        let call = self.call;
        let collective = self.entry.collective;
        let mut unfinished = call.ranks;
        // What headers hold lies side by side here.
        let counts = [call.counts, call.counts].concat();
        // Whoever is heard from should have spoken before.
        let backwards = goes_to_the_root(collective);
        let mut fresh = (0..call.ranks).map(|place| match backwards {
            true => call.after(call.root, call.ranks - 1 - place),
            false => call.after(call.root, place),
        });
        loop {
            while let Some(rank) = fresh.next().or_else(|| self.memory.ready.pop_front()) {
                let in_part;
                let known = match knows_all(collective, &call, rank) {
                    true => &call,
                    false => {
                        in_part = self.call_in_part(rank, &counts);
                        &in_part
                    }
                };
                match self.advance(rank, known, &mut round) {
                    Ok(Progress::Waits) => {}
                    Ok(Progress::LetsOthers) => self.memory.next.push_back(rank),
                    Ok(Progress::Ended) => unfinished -= 1,
                    Err(NoMemory) => return Err(SimulationError::Memory { ranks: call.ranks }),
                }
            }
            let Memory { ready, next, .. } = self.memory;
            std::mem::swap(ready, next);
            if ready.is_empty() && !self.pass_over() {
                break;
            }
        }
        if unfinished > 0 {
            let first = self.memory.ranks.iter().position(|rank| rank.own.waits_for != NOWHERE);
            let first = first.unwrap_or_default() as u32;
            return Err(SimulationError::Deadlock { blocked: unfinished, first });
        }
        let finish: Vec<f64> = self.memory.ranks.iter().map(|rank| rank.own.clock).collect();
        let mut latest = [0.0; LANES];
        for times in finish.chunks(LANES) {
            latest.iter_mut().zip(times).for_each(|(latest, time)| *latest = later(*latest, *time));
        }
        let seconds = latest.into_iter().fold(0.0, later);
        Ok(Outcome { seconds, finish, messages: self.messages, bytes: self.bytes })
    }

    /// The call as a rank knows it that doesn't know all of it.
    #[inline(never)]
    fn call_in_part<'b>(&self, rank: u32, counts: &'b [u64]) -> Call<'b>
    where
        'a: 'b,
    {
        let known = known_to(self.entry.collective, &self.call, rank);
        if self.memory.ranks[rank as usize].own.round == 0 {
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
    fn advance(
        &mut self,
        rank: u32,
        call: &Call<'_>,
        round: &mut Round,
    ) -> Result<Progress, NoMemory> {
        let own = self.memory.ranks[rank as usize].own;
        let mut running = Running { rank, own, took_in: 0, destinations: 1, slots: 0 };
        let most = if has_header(self.entry.collective) { 1 } else { ROUNDS_AT_ONCE };
        let mut progress = Progress::LetsOthers;
        for _ in 0..most {
            if !self.entry.normal_round(call, rank, running.own.round, round) {
                progress = Progress::Ended;
                break;
            }
            if !self.finish_round(&mut running, round)? {
                progress = Progress::Waits;
                break;
            }
            running.own.round += 1;
            running.own.place = 0;
            if round.is_last() {
                progress = Progress::Ended;
                break;
            }
            if running.took_in >= MESSAGES_AT_ONCE {
                break;
            }
        }
        self.memory.ranks[rank as usize].own = running.own;
        Ok(progress)
    }

    /// Does what is left of the round; false if the rank has to wait.
    #[inline]
    fn finish_round(&mut self, running: &mut Running, round: &Round) -> Result<bool, NoMemory> {
        running.destinations = round.destinations();
        running.slots = round.slots();
        let steps = round.steps();
        let mut place = running.own.place as usize;
        while let Some(step) = steps.get(place) {
            match *step {
                Step::Send { peer, slot, range } => {
                    let bytes = self.bytes_of(range);
                    match self.options.rendezvous_bytes {
                        Some(least) if bytes >= least => self.offer(running, peer, slot, bytes)?,
                        _ => self.send(running, peer, bytes),
                    }
                }
                Step::SendReady { peer, range, .. } => {
                    self.send(running, peer, self.bytes_of(range));
                }
                Step::Receive { peer, slot, .. } => {
                    let at_once = steps.get(place + 1) == Some(&Step::Wait { slot });
                    place += usize::from(self.receive(running, peer, slot, at_once)?);
                }
                Step::Wait { slot } => {
                    if !self.wait(running, slot) {
                        running.own.place = place as u32;
                        return Ok(false);
                    }
                }
                Step::Combine { into, .. } => {
                    let bytes = self.bytes_of(into);
                    let seconds = self.costs.combine(bytes);
                    self.busy_from(running, 0.0, seconds, ActivityKind::Combine, bytes);
                }
                Step::Copy { into, .. } => {
                    let bytes = self.bytes_of(into);
                    let seconds = self.costs.copy(bytes);
                    self.busy_from(running, 0.0, seconds, ActivityKind::Copy, bytes);
                }
            }
            place += 1;
        }
        Ok(true)
    }

    /// A message that leaves as soon as it can. Its slot stays idle: when the processor goes on,
    /// the message has left.
    #[inline]
    fn send(&mut self, running: &mut Running, peer: u32, bytes: u64) {
        let &Rates { send_overhead, gap, .. } = self.rates_to(bytes, running.destinations);
        self.messages += 1;
        self.bytes += bytes;
        let port_free = running.own.port_free;
        running.own.port_free = later(running.own.clock, port_free) + gap;
        let kind = ActivityKind::Send { to: peer };
        self.busy_from(running, port_free, send_overhead, kind, bytes);
        let (from, left) = (running.rank, running.own.clock);
        if let Some(Half::Expected { slot: into, .. }) =
            self.meet(peer, from, Half::Sent { left, bytes })
        {
            self.settle(peer, into, Slot::Comes { from, left, bytes });
        }
    }

    /// A message that needs its receive to be posted before it leaves.
    #[inline(never)]
    fn offer(
        &mut self,
        running: &mut Running,
        peer: u32,
        slot: u32,
        bytes: u64,
    ) -> Result<(), NoMemory> {
        let (rank, destinations) = (running.rank, running.destinations);
        let overhead = self.rates_to(bytes, destinations).send_overhead;
        let number = self.slot(running, slot)?;
        self.messages += 1;
        self.bytes += bytes;
        self.busy_from(running, 0.0, overhead, ActivityKind::Send { to: peer }, bytes);
        let posted = running.own.clock;
        self.memory.slots[number] = Slot::Offers;
        let offer = self.memory.rendezvous.offer(self.call.ranks, (rank, slot), destinations);
        let half = Half::Offered { offer, posted, bytes };
        if let Some(Half::Expected { slot: into, posted: expected }) = self.meet(peer, rank, half) {
            self.memory.ranks[rank as usize].own = running.own;
            self.agree((offer, posted, bytes), (peer, into, expected));
            running.own = self.memory.ranks[rank as usize].own;
        }
        Ok(())
    }

    /// Posts a receive. If it is waited for at once and its message is there, takes that in: true.
    #[inline]
    fn receive(
        &mut self,
        running: &mut Running,
        peer: u32,
        slot: u32,
        at_once: bool,
    ) -> Result<bool, NoMemory> {
        let (rank, posted) = (running.rank, running.own.clock);
        let found = self.meet(rank, peer, Half::Expected { slot, posted });
        if let (true, Some(Half::Sent { left, bytes })) = (at_once, found) {
            self.take_in(running, peer, left, bytes);
            return Ok(true);
        }
        let number = self.slot(running, slot)?;
        self.memory.slots[number] = match found {
            Some(Half::Sent { left, bytes }) => Slot::Comes { from: peer, left, bytes },
            _ => Slot::Open,
        };
        if let Some(Half::Offered { offer, posted: offered, bytes }) = found {
            self.memory.ranks[rank as usize].own = running.own;
            self.agree((offer, offered, bytes), (rank, slot, posted));
            running.own = self.memory.ranks[rank as usize].own;
        }
        Ok(false)
    }

    /// Whether what the slot holds is known; then it is taken in, and the slot idle.
    #[inline]
    fn wait(&mut self, running: &mut Running, slot: u32) -> bool {
        if running.own.first_slot == NOWHERE {
            return true;
        }
        let number = running.own.first_slot as usize + slot as usize;
        match self.memory.slots[number] {
            Slot::Idle => return true,
            Slot::Open | Slot::Offers => {
                running.own.waits_for = slot;
                return false;
            }
            Slot::Left { at } => {
                let begin = running.own.clock;
                running.own.clock = later(begin, at);
                self.observe_wait(running.rank, begin, at);
            }
            Slot::Comes { from, left, bytes } => self.take_in(running, from, left, bytes),
        }
        self.memory.slots[number] = Slot::Idle;
        true
    }

    #[inline]
    fn take_in(&mut self, running: &mut Running, from: u32, left: f64, bytes: u64) {
        running.took_in += 1;
        let &Rates { receive_gap, flight, receive_overhead, .. } = self.rates(bytes);
        let passes = self.memory.ports[running.rank as usize].pass(left, receive_gap);
        let kind = ActivityKind::Receive { from, left };
        self.busy_from(running, passes + flight, receive_overhead, kind, bytes);
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
        let own = &mut self.memory.ranks[sender.0 as usize].own;
        let left = later(agreed, own.port_free);
        own.port_free = left + gap;
        self.settle(sender.0, sender.1, Slot::Left { at: left + gap });
        self.settle(receiver.0, receiver.1, Slot::Comes { from: sender.0, left, bytes });
    }

    /// What became of an open slot; its rank goes on if it waits for that.
    #[inline]
    fn settle(&mut self, rank: u32, slot: u32, state: Slot) {
        let own = &mut self.memory.ranks[rank as usize].own;
        self.memory.slots[own.first_slot as usize + slot as usize] = state;
        if own.waits_for == slot {
            own.waits_for = NOWHERE;
            self.memory.ready.push_back(rank);
        }
    }

    #[inline]
    fn meet(&mut self, receiver: u32, other: u32, half: Half) -> Option<Half> {
        // The box of a pair is the receiver's, whoever posts.
        let Memory { ranks, mail, .. } = self.memory;
        let boxed = &mut ranks[receiver as usize].mail;
        mail.meet(boxed, (receiver, self.call.ranks), other, half)
    }

    /// From that time on, or when the processor is free, if that is later.
    #[inline]
    fn busy_from(
        &mut self,
        running: &mut Running,
        from: f64,
        seconds: f64,
        kind: ActivityKind,
        bytes: u64,
    ) {
        let (rank, waits) = (running.rank, running.own.clock);
        let begin = later(waits, from);
        let end = begin + seconds;
        running.own.clock = end;
        self.observe_wait(rank, waits, begin);
        (self.observe)(Activity { rank, kind, begin, end, bytes });
    }

    #[inline]
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

    /// Where a slot of the running rank lies; it gets them all when it needs the first.
    #[inline]
    fn slot(&mut self, running: &mut Running, slot: u32) -> Result<usize, NoMemory> {
        if running.own.first_slot == NOWHERE {
            running.own.first_slot = self.memory.give_slots(running.slots).ok_or(NoMemory)?;
        }
        Ok(running.own.first_slot as usize + slot as usize)
    }

    #[inline]
    fn bytes_of(&self, range: Range) -> u64 {
        match range.buffer {
            Buffer::Counts | Buffer::Header => range.count * size_of::<u64>() as u64,
            _ => range.count * self.options.element_bytes,
        }
    }
}
