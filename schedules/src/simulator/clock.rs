//! Runs all ranks by the clock: messages come to the ports in the order of time.
//!
//! Only that has an order. A rank that has the message for which it waits goes on as far as it can,
//! ahead of the clock: what it sends then is due later. So there is one event in the queue for
//! each message, one for each rendezvous, and none for what only one rank sees.

use super::{
    Activity, ActivityKind, LevelledCosts, Outcome, SimulationError,
    arrivals::ArrivingMessage,
    event_queue::Event,
    machine::{NoMemory, Running, SimulatedMachine, StepProgress},
    port::later,
    shared_ports::{PassageCheck, SharedPortMessage},
    state::{NO_SLOT, Rates, SimulatedSlot, SimulatorMemory},
};

impl<C: LevelledCosts, O: FnMut(Activity)> SimulatedMachine<'_, C, O, true> {
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
            match self.memory.events.take() {
                Some(Event::Departure(message)) if self.shares_ports() => self.enter_ports(message),
                Some(Event::Passage(number)) => self.look_at(number),
                Some(Event::Departure(message)) => self.depart(message),
                Some(Event::Entrance(message)) => self.enter(message),
                Some(Event::Arrival(message)) => self.come(message),
                Some(Event::Transfer(offer)) => self
                    .transfer(offer)
                    .map_err(|NoMemory| SimulationError::Memory { ranks: self.call.ranks })?,
                Some(Event::Turn(rank)) => self.memory.ready.push_back(rank),
                // Of ranks that share memory.
                Some(Event::Copied(_)) => {}
                None => return self.outcome(unfinished),
            }
        }
    }

    /// A rank goes on when the clock has come to its time.
    fn take_a_turn(&mut self, rank: u32) {
        let clock = self.memory.ranks[rank as usize].own.clock;
        self.memory.events.put(clock, 0, Event::Turn(rank));
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
        let ((sender, slot), (receiver, into)) = (offer.sender, offer.receiver);
        let level = self.costs.level(sender, receiver);
        let gap = self.rates_to(level, offer.bytes, offer.destinations).gap;
        let own = &mut self.memory.ranks[sender as usize].own;
        let left = later(self.memory.events.now(), own.port_free);
        own.port_free = left + gap;
        let size = (offer.bytes, offer.destinations);
        let message = self.put_on_its_way((sender, receiver), (left, left), size)?;
        self.expect(receiver, into, message);
        match self.costs.shared_port(sender) {
            Some(_) if level > 0 => {
                let first = self.memory.ranks[sender as usize].own.first_slot;
                let kept = &mut self.memory.slots[first as usize + slot as usize];
                *kept = SimulatedSlot::Leaves { takes: gap };
                self.memory.arrivals.keep_sender(message, slot);
            }
            _ => self.settle(sender, slot, SimulatedSlot::Left { at: left + gap }),
        }
        Ok(())
    }

    /// A message leaves by the port of its sender's node, which one message takes at a time. Only a
    /// rendezvous keeps its sender's own port until then.
    fn depart(&mut self, message: u32) {
        let ArrivingMessage { from, left, bytes, destinations, .. } =
            *self.memory.arrivals.get(message);
        let Some(node) = self.costs.shared_port(from) else { return };
        let asked = self.memory.events.now();
        let gap = self.costs.port_gap(bytes, destinations);
        let begin = self.memory.node_ports[node as usize].outgoing.pass(asked, gap);
        let left = if begin > asked { left + (begin - asked) } else { left };
        self.memory.arrivals.delay(message, left);
        let own = &mut self.memory.ranks[from as usize].own;
        if let Some(slot) = self.memory.arrivals.sender_slot(message)
            && let SimulatedSlot::Leaves { takes } =
                self.memory.slots[own.first_slot as usize + slot as usize]
        {
            let at = begin + takes;
            own.port_free = later(own.port_free, at);
            self.settle(from, slot, SimulatedSlot::Left { at });
        }
        self.approach(message, left);
    }

    /// A message comes to all its ports, which it shares with others.
    fn enter_ports(&mut self, message: u32) {
        let ArrivingMessage { from, to, bytes, destinations, .. } =
            *self.memory.arrivals.get(message);
        let level = self.costs.level(from, to);
        let &Rates { gap, receive_gap, .. } = self.rates_to(level, bytes, destinations);
        let port = |rank, gap: f64| {
            self.costs.shared_port(rank).filter(|_| level > 0).map(|node| (node, gap))
        };
        let nodes = [
            port(from, self.costs.port_gap(bytes, destinations)),
            port(to, self.costs.port_receive_gap(bytes)),
        ];
        let (gaps, pair) = ([gap, receive_gap], (from, to));
        let is_inside = level == 0 && self.costs.nodes() > 0;
        let entering =
            SharedPortMessage { message, pair, ends: pair, bytes, gaps, nodes, is_inside };
        let now = self.memory.events.now();
        self.memory.shared_ports.enter(now, entering);
        self.look_when_due();
    }

    /// A message that has passed its ports comes to its receiver: as much later than its last byte
    /// has passed as if it were alone.
    fn look_at(&mut self, number: u32) {
        let now = self.memory.events.now();
        match self.memory.shared_ports.look(now, number) {
            PassageCheck::Passed { message, alone } => {
                let ArrivingMessage { from, to, bytes, .. } = *self.memory.arrivals.get(message);
                let overhead = self.rates(self.costs.level(from, to), bytes).send_overhead;
                self.memory.arrivals.delay(message, now - alone + overhead);
                self.memory.events.put(now, 0, Event::Arrival(message));
            }
            PassageCheck::Later { at } => {
                let order = self.memory.shared_ports.order(number);
                self.memory.events.put(at, order, Event::Passage(number));
            }
            PassageCheck::Nothing => {}
        }
        self.look_when_due();
    }

    fn look_when_due(&mut self) {
        let SimulatorMemory { shared_ports, events, .. } = self.memory;
        while let Some((at, number)) = shared_ports.next_look() {
            events.put(at, shared_ports.order(number), Event::Passage(number));
        }
    }

    /// A message passes the port of its receiver's node on its way to the receiver's own.
    fn enter(&mut self, message: u32) {
        let ArrivingMessage { to, left, bytes, .. } = *self.memory.arrivals.get(message);
        let Some(node) = self.costs.shared_port(to) else { return };
        let gap = self.costs.port_receive_gap(bytes);
        let passes = self.memory.node_ports[node as usize].incoming.pass(left, gap);
        self.memory.arrivals.delay(message, passes);
        self.memory.events.put(passes, 0, Event::Arrival(message));
    }
}

impl<C: LevelledCosts, O: FnMut(Activity), const BY_CLOCK: bool>
    SimulatedMachine<'_, C, O, BY_CLOCK>
{
    /// A message that begins to leave, and has left its sender's processor, at these times (begin,
    /// left) comes to its receiver's port when it has left; between nodes it passes their ports.
    #[inline]
    pub fn put_on_its_way(
        &mut self,
        (from, to): (u32, u32),
        (begin, left): (f64, f64),
        size: (u64, u32),
    ) -> Result<u32, NoMemory> {
        let message = self.memory.arrivals.add((from, to), left, size).ok_or(NoMemory)?;
        let through_a_port =
            self.costs.level(from, to) > 0 && self.costs.shared_port(from).is_some();
        if self.shares_ports() || through_a_port {
            self.memory.events.put(begin, 0, Event::Departure(message));
        } else {
            self.approach(message, left);
        }
        Ok(message)
    }

    /// It is at the other side when it has left.
    #[inline]
    fn approach(&mut self, message: u32, left: f64) {
        let ArrivingMessage { from, to, .. } = *self.memory.arrivals.get(message);
        let is_between = self.costs.level(from, to) > 0;
        let due = match is_between && self.costs.shared_port(to).is_some() {
            true => Event::Entrance(message),
            false => Event::Arrival(message),
        };
        self.memory.events.put(left, 0, due);
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
        while let Some((number, ArrivingMessage { from, to, left, bytes, .. })) =
            self.memory.arrivals.next(message)
        {
            let gap = self.rates(self.costs.level(from, to), bytes).receive_gap;
            let passes = match self.shares_ports() {
                true => left,
                false => self.memory.ports[running.rank as usize].pass(left, gap),
            };
            self.memory.arrivals.let_through(number, passes);
        }
        let (parcel, passes) = self.memory.arrivals.take(message);
        let level = self.costs.level(parcel.from, parcel.to);
        let &Rates { flight, receive_overhead, .. } = self.rates(level, parcel.bytes);
        let kind = ActivityKind::Receive { from: parcel.from, left: parcel.left };
        self.busy_from(running, passes + flight, receive_overhead, kind, parcel.bytes);
    }

    /// Both sides of a rendezvous are known: the offer flies, and the answer flies back.
    pub fn agree(&mut self, (offer, offered): (u32, f64), receiver: (u32, u32), expected: f64) {
        let sender = self.memory.offers.sender(offer);
        let handshake = self.handshake[self.costs.level(sender, receiver.0)];
        let agreed = later(offered + handshake, expected) + handshake;
        let order = self.memory.offers.agree(offer, receiver);
        self.memory.events.put(agreed, order, Event::Transfer(offer));
    }

    /// Whether the rank has offers that may take its outgoing port before the time to which it has
    /// come: then it has its turn when the clock has come there, too.
    #[inline]
    pub fn has_to_let_offers_go(&mut self, running: &Running) -> bool {
        let Running { rank, ref own, .. } = *running;
        let has_to = self.memory.offers.has_open(rank) && own.clock > self.memory.events.now();
        if has_to {
            self.memory.events.put(own.clock, u64::MAX, Event::Turn(rank));
        }
        has_to
    }
}
