//! What sending, receiving and waiting come to.

use super::{
    Activity, ActivityKind, LevelledCosts,
    machine::{NoMemory, Running, SimulatedMachine},
    mail::MessageHalf,
    port::later,
    state::{NO_SLOT, Rates, SimulatedSlot, SimulatorMemory},
};

impl<C: LevelledCosts, O: FnMut(Activity), const BY_CLOCK: bool>
    SimulatedMachine<'_, C, O, BY_CLOCK>
{
    /// A message that leaves as soon as it can. Its slot stays idle: when the processor goes on,
    /// the message has left.
    #[inline]
    pub fn send(&mut self, running: &mut Running, peer: u32, bytes: u64) -> Result<(), NoMemory> {
        let level = self.costs.level(running.rank, peer);
        let destinations = running.destinations;
        let &Rates { send_overhead, gap, .. } = self.rates_to(level, bytes, destinations);
        self.messages += 1;
        self.bytes += bytes;
        // Where ports are shared they hold up what passes them, not its sender.
        let shared = BY_CLOCK && self.shares_ports();
        let port_free = if shared { 0.0 } else { running.own.port_free };
        let begin = later(running.own.clock, port_free);
        running.own.port_free = begin + gap;
        let kind = ActivityKind::Send { to: peer };
        self.busy_from(running, port_free, send_overhead, kind, bytes);
        let (from, left) = (running.rank, running.own.clock);
        if BY_CLOCK {
            let size = (bytes, destinations);
            let message = self.put_on_its_way((from, peer), (begin, left), size)?;
            if let Some(MessageHalf::Expected { slot, .. }) =
                self.match_half(peer, from, MessageHalf::Numbered { message })
            {
                self.expect(peer, slot, message);
            }
        } else if let Some(MessageHalf::Expected { slot, .. }) =
            self.match_half(peer, from, MessageHalf::Sent { left, bytes })
        {
            self.settle(peer, slot, SimulatedSlot::Comes { from, left, bytes });
        }
        Ok(())
    }

    /// A message that needs its receive to be posted before it leaves.
    #[inline(never)]
    pub fn offer(
        &mut self,
        running: &mut Running,
        peer: u32,
        slot: u32,
        bytes: u64,
    ) -> Result<(), NoMemory> {
        let (rank, destinations) = (running.rank, running.destinations);
        let level = self.costs.level(rank, peer);
        let overhead = self.rates_to(level, bytes, destinations).send_overhead;
        let number = self.slot(running, slot)?;
        self.messages += 1;
        self.bytes += bytes;
        self.busy_from(running, 0.0, overhead, ActivityKind::Send { to: peer }, bytes);
        let posted = running.own.clock;
        self.memory.slots[number] = SimulatedSlot::Offers;
        let offer = self.memory.offers.add(self.call.ranks, (rank, slot), bytes, destinations);
        let half = MessageHalf::Offered { offer, posted, bytes };
        if let Some(MessageHalf::Expected { slot: into, posted: expected }) =
            self.match_half(peer, rank, half)
        {
            self.agree((offer, posted), (peer, into), expected);
        }
        Ok(())
    }

    /// Posts a receive. If it is waited for at once and its message is there, takes that in: true.
    #[inline]
    pub fn receive(
        &mut self,
        running: &mut Running,
        peer: u32,
        slot: u32,
        at_once: bool,
    ) -> Result<bool, NoMemory> {
        let (rank, posted) = (running.rank, running.own.clock);
        let found = self.match_half(rank, peer, MessageHalf::Expected { slot, posted });
        match found {
            Some(MessageHalf::Sent { left, bytes }) if at_once => {
                self.take_in(running, peer, left, bytes);
                return Ok(true);
            }
            Some(MessageHalf::Numbered { message }) if at_once && self.has_come(message) => {
                self.take_numbered_in(running, message);
                return Ok(true);
            }
            _ => {}
        }
        let number = self.slot(running, slot)?;
        self.memory.slots[number] = match found {
            Some(MessageHalf::Sent { left, bytes }) => {
                SimulatedSlot::Comes { from: peer, left, bytes }
            }
            Some(MessageHalf::Numbered { message }) => {
                self.memory.arrivals.expect(message, slot);
                SimulatedSlot::Numbered { message }
            }
            _ => SimulatedSlot::Open,
        };
        if let Some(MessageHalf::Offered { offer, posted: offered, .. }) = found {
            self.agree((offer, offered), (rank, slot), posted);
        }
        Ok(false)
    }

    /// Whether what the slot holds is known; then it is taken in, and the slot idle.
    #[inline]
    pub fn wait(&mut self, running: &mut Running, slot: u32) -> bool {
        if running.own.first_slot == NO_SLOT {
            return true;
        }
        let number = running.own.first_slot as usize + slot as usize;
        match self.memory.slots[number] {
            SimulatedSlot::Idle => return true,
            SimulatedSlot::Left { at } => {
                let begin = running.own.clock;
                running.own.clock = later(begin, at);
                self.observe_wait(running.rank, begin, at);
            }
            SimulatedSlot::Comes { from, left, bytes } => self.take_in(running, from, left, bytes),
            SimulatedSlot::Numbered { message } if self.has_come(message) => {
                self.take_numbered_in(running, message);
            }
            SimulatedSlot::Open
            | SimulatedSlot::Offers
            | SimulatedSlot::Leaves { .. }
            | SimulatedSlot::Numbered { .. } => {
                running.own.waits_for = slot;
                return false;
            }
        }
        self.memory.slots[number] = SimulatedSlot::Idle;
        true
    }

    #[inline]
    fn take_in(&mut self, running: &mut Running, from: u32, left: f64, bytes: u64) {
        running.took_in += 1;
        let level = self.costs.level(from, running.rank);
        let &Rates { receive_gap, flight, receive_overhead, .. } = self.rates(level, bytes);
        let port = &mut self.memory.ports[running.rank as usize];
        let passes = port.pass_in_turn(left, receive_gap).unwrap_or_else(|| {
            self.out_of_order = true;
            left
        });
        let kind = ActivityKind::Receive { from, left };
        self.busy_from(running, passes + flight, receive_overhead, kind, bytes);
    }

    /// What became of an open slot; its rank goes on if it waits for that.
    #[inline]
    pub fn settle(&mut self, rank: u32, slot: u32, state: SimulatedSlot) {
        let own = &mut self.memory.ranks[rank as usize].own;
        self.memory.slots[own.first_slot as usize + slot as usize] = state;
        if own.waits_for == slot {
            own.waits_for = NO_SLOT;
            self.memory.ready.push_back(rank);
        }
    }

    #[inline]
    fn match_half(&mut self, receiver: u32, other: u32, half: MessageHalf) -> Option<MessageHalf> {
        // The box of a pair is the receiver's, whoever posts.
        let SimulatorMemory { ranks, mail, .. } = self.memory;
        let boxed = &mut ranks[receiver as usize].mail;
        mail.match_half(boxed, (receiver, self.call.ranks), other, half)
    }
}
