//! Runs all ranks by the clock: messages come to the ports in the order of time.
//!
//! Only that has an order. A rank that has the message for which it waits goes on as far as it can,
//! ahead of the clock: what it sends then is due later. So there is one entry in the agenda for
//! each message, one for each rendezvous, and none for what only one rank sees.

use super::{
    Activity, ActivityKind, Costs, Outcome, SimulationError,
    agenda::Due,
    machine::{NoMemory, Running, SimulatedMachine, StepProgress},
    port::later,
    state::{NO_SLOT, Rates, SimulatedSlot},
};

impl<C: Costs, O: FnMut(Activity)> SimulatedMachine<'_, C, O, true> {
    /// # Errors
    /// The schedule is wrong, or more is under way than can be numbered.
    pub fn run(mut self) -> Result<Outcome, SimulationError> {
        let mut scratch = self.scratch();
        let mut unfinished = self.call.ranks;
        let mut fresh = self.fresh();
        loop {
            while let Some(rank) = fresh.next().or_else(|| self.memory.ready.pop_front()) {
                match self.go_on(rank, &mut scratch)? {
                    StepProgress::Waits => {}
                    StepProgress::LetsOthers => self.take_a_turn(rank),
                    StepProgress::Ended => unfinished -= 1,
                }
            }
            match self.memory.agenda.take() {
                Some(Due::Arrival(message)) => self.come(message),
                Some(Due::Transfer(offer)) => self
                    .transfer(offer)
                    .map_err(|NoMemory| SimulationError::Memory { ranks: self.call.ranks })?,
                Some(Due::Turn(rank)) => self.memory.ready.push_back(rank),
                None => return self.outcome(unfinished),
            }
        }
    }

    /// A rank goes on when the clock has come to its time.
    fn take_a_turn(&mut self, rank: u32) {
        let clock = self.memory.ranks[rank as usize].own.clock;
        self.memory.agenda.put(clock, 0, Due::Turn(rank));
    }

    /// A message comes to the port; its receiver goes on if it waits for it.
    #[inline]
    fn come(&mut self, message: u32) {
        let (to, slot) = self.memory.arrivals.come(self.call.ranks, message);
        let own = &mut self.memory.ranks[to as usize].own;
        if slot.is_some_and(|slot| own.waits_for == slot) {
            own.waits_for = NO_SLOT;
            self.memory.ready.push_back(to);
        }
    }

    /// A rendezvous leaves as soon as the port is free.
    fn transfer(&mut self, offer: u32) -> Result<(), NoMemory> {
        let offer = self.memory.offers.take(offer);
        let gap = self.rates_to(offer.bytes, offer.destinations).gap;
        let (sender, slot) = offer.sender;
        let own = &mut self.memory.ranks[sender as usize].own;
        let left = later(self.memory.agenda.now(), own.port_free);
        own.port_free = left + gap;
        self.settle(sender, slot, SimulatedSlot::Left { at: left + gap });
        let (receiver, into) = offer.receiver;
        let message = self.put_on_its_way((sender, receiver), left, offer.bytes)?;
        self.expect(receiver, into, message);
        Ok(())
    }
}

impl<C: Costs, O: FnMut(Activity), const BY_CLOCK: bool> SimulatedMachine<'_, C, O, BY_CLOCK> {
    /// A message comes to its receiver's port when it has left.
    #[inline]
    pub fn put_on_its_way(
        &mut self,
        pair: (u32, u32),
        left: f64,
        bytes: u64,
    ) -> Result<u32, NoMemory> {
        let message = self.memory.arrivals.add(pair, left, bytes).ok_or(NoMemory)?;
        self.memory.agenda.put(left, 0, Due::Arrival(message));
        Ok(message)
    }

    /// A message is on its way whose receive is posted: the receiver waits until it has come.
    #[inline]
    pub fn expect(&mut self, receiver: u32, slot: u32, message: u32) {
        self.memory.arrivals.expect(message, slot);
        let first = self.memory.ranks[receiver as usize].own.first_slot;
        self.memory.slots[first as usize + slot as usize] = SimulatedSlot::Numbered { message };
    }

    #[inline]
    pub fn has_come(&self, message: u32) -> bool {
        self.memory.arrivals.has_come(message)
    }

    /// The port lets it through, after those that came before it.
    #[inline]
    pub fn take_numbered_in(&mut self, running: &mut Running, message: u32) {
        running.took_in += 1;
        while let Some((number, left, bytes)) = self.memory.arrivals.next(message) {
            let gap = self.rates(bytes).receive_gap;
            let passes = self.memory.ports[running.rank as usize].pass(left, gap);
            self.memory.arrivals.let_through(number, passes);
        }
        let (parcel, passes) = self.memory.arrivals.take(message);
        let &Rates { flight, receive_overhead, .. } = self.rates(parcel.bytes);
        let kind = ActivityKind::Receive { from: parcel.from, left: parcel.left };
        self.busy_from(running, passes + flight, receive_overhead, kind, parcel.bytes);
    }

    /// Both sides of a rendezvous are known: the offer flies, and the answer flies back.
    pub fn agree(&mut self, (offer, offered): (u32, f64), receiver: (u32, u32), expected: f64) {
        let agreed = later(offered + self.handshake, expected) + self.handshake;
        let order = self.memory.offers.agree(offer, receiver);
        self.memory.agenda.put(agreed, order, Due::Transfer(offer));
    }

    /// Whether the rank has offers that may take its outgoing port before the time to which it has
    /// come: then it has its turn when the clock has come there, too.
    #[inline]
    pub fn has_to_let_offers_go(&mut self, running: &Running) -> bool {
        let Running { rank, ref own, .. } = *running;
        let has_to = self.memory.offers.has_open(rank) && own.clock > self.memory.agenda.now();
        if has_to {
            self.memory.agenda.put(own.clock, u64::MAX, Due::Turn(rank));
        }
        has_to
    }
}
