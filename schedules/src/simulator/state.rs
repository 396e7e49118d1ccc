//! What ranks hold, and the memory of all of them.

use std::collections::VecDeque;

use super::{
    Costs,
    mail::{Box, Mail},
    port::Port,
    rendezvous::Rendezvous,
};

/// No slot, or none yet.
pub(super) const NOWHERE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) enum Slot {
    Idle,
    /// A receive without its message.
    Open,
    /// A rendezvous send that has not left.
    Offers,
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
pub(super) struct Rank {
    /// The processor's time.
    pub clock: f64,
    /// When the outgoing port is free.
    pub port_free: f64,
    pub mail: Box,
    pub round: u64,
    pub first_slot: u32,
    pub place: u32,
    pub waits_for: u32,
}

impl Rank {
    pub const NEW: Rank = Rank {
        clock: 0.0,
        port_free: 0.0,
        mail: Box::EMPTY,
        round: 0,
        first_slot: NOWHERE,
        place: 0,
        waits_for: NOWHERE,
    };
}

/// The costs of messages of one size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    pub bytes: u64,
    pub send_overhead: f64,
    pub receive_overhead: f64,
    pub receive_gap: f64,
    pub flight: f64,
    /// To so many destinations.
    pub gap: f64,
    pub destinations: u32,
}

impl Rates {
    pub fn of(costs: &impl Costs, bytes: u64, destinations: u32) -> Self {
        Rates {
            bytes,
            send_overhead: costs.send_overhead(bytes),
            receive_overhead: costs.receive_overhead(bytes),
            receive_gap: costs.receive_gap(bytes),
            flight: costs.flight(bytes),
            gap: costs.gap(bytes, destinations),
            destinations,
        }
    }
}

/// What all ranks hold. Fresh memory costs more than what is done with it, so it is kept.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub ranks: Vec<Rank>,
    /// The ranks' incoming ports.
    pub ports: Vec<Port>,
    /// A stretch for each rank.
    pub slots: Vec<Slot>,
    pub mail: Mail,
    pub rendezvous: Rendezvous,
    /// Who can go on with its round, and who with its next one, when nobody is left there.
    pub ready: VecDeque<u32>,
    pub next: VecDeque<u32>,
}

impl Memory {
    /// As before the first step of a call.
    pub fn begin(&mut self, ranks: u32) {
        self.ranks.clear();
        self.ranks.resize(ranks as usize, Rank::NEW);
        self.ports.clear();
        self.ports.resize(ranks as usize, Port::default());
        self.slots.clear();
        self.mail.clear();
        self.rendezvous.clear();
        self.ready.clear();
        self.next.clear();
    }

    /// Gives a rank its slots, when its first round is there; false if they are too many.
    #[inline]
    pub fn give_slots(&mut self, rank: u32, slots: u32) -> bool {
        let first = self.slots.len();
        self.ranks[rank as usize].first_slot = first as u32;
        self.slots.extend(std::iter::repeat_n(Slot::Idle, slots as usize));
        self.slots.len() < NOWHERE as usize
    }
}
