//! What ranks hold, and the memory of all of them.

use std::collections::VecDeque;

use super::{
    Costs,
    arrivals::Arrivals,
    event_queue::EventQueue,
    mail::{Mail, Mailbox},
    port::{NodePort, SimulatedPort},
    rendezvous::Offers,
    shared_ports::SharedPorts,
};

/// No slot, or none yet.
pub(super) const NO_SLOT: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) enum SimulatedSlot {
    Idle,
    /// A receive without its message.
    Open,
    /// A rendezvous send that has not left.
    Offers,
    /// A rendezvous send that asks for the port of its node, and will take its rank's for so long.
    Leaves {
        takes: f64,
    },
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
    /// The same, where messages come by the clock.
    Numbered {
        message: u32,
    },
}

/// What a message touches of both its ranks, in one line of the cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct SimulatedRank {
    pub own: RankProgress,
    pub mail: Mailbox,
}

impl SimulatedRank {
    pub const NEW: SimulatedRank = SimulatedRank { own: RankProgress::NEW, mail: Mailbox::EMPTY };
}

/// How far a rank has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankProgress {
    /// The processor's time.
    pub clock: f64,
    /// When the outgoing port is free.
    pub port_free: f64,
    pub round: u64,
    /// Within the round.
    pub place: u32,
    pub first_slot: u32,
    pub waits_for: u32,
}

impl RankProgress {
    const NEW: RankProgress = RankProgress {
        clock: 0.0,
        port_free: 0.0,
        round: 0,
        place: 0,
        first_slot: NO_SLOT,
        waits_for: NO_SLOT,
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
    pub fn from_costs(costs: &impl Costs, bytes: u64, destinations: u32) -> Self {
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
pub(super) struct SimulatorMemory {
    pub ranks: Vec<SimulatedRank>,
    /// The ranks' incoming ports.
    pub ports: Vec<SimulatedPort>,
    /// The ports that ranks of a node share, by node.
    pub node_ports: Vec<NodePort>,
    /// All of them where messages share them.
    pub shared_ports: SharedPorts,
    /// A stretch for each rank that needs any.
    pub slots: Vec<SimulatedSlot>,
    pub mail: Mail,
    pub offers: Offers,
    pub arrivals: Arrivals,
    pub events: EventQueue,
    /// Who can go on with its round, and who with its next one, when nobody is left there.
    pub ready: VecDeque<u32>,
    pub next: VecDeque<u32>,
}

impl SimulatorMemory {
    /// As before the first step of a call.
    pub fn begin(&mut self, ranks: u32, nodes: u32, frame: u64) {
        self.ranks.clear();
        self.ranks.resize(ranks as usize, SimulatedRank::NEW);
        self.ports.clear();
        self.ports.resize(ranks as usize, SimulatedPort::default());
        self.node_ports.clear();
        self.node_ports.resize(nodes as usize, NodePort::default());
        self.shared_ports.begin(ranks, nodes, frame);
        self.slots.clear();
        self.mail.clear();
        self.offers.clear();
        self.arrivals.clear();
        self.events.clear();
        self.ready.clear();
        self.next.clear();
    }

    /// A stretch of idle slots; none if they are too many.
    #[inline]
    pub fn give_slots(&mut self, slots: u32) -> Option<u32> {
        let first = self.slots.len();
        self.slots.extend(std::iter::repeat_n(SimulatedSlot::Idle, slots as usize));
        (self.slots.len() < NO_SLOT as usize).then_some(first as u32)
    }
}
