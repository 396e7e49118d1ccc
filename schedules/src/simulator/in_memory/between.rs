//! Messages between nodes: their processors' overheads, and the ports that they share.
//!
//! A processor that sends to another node, or receives from there, slows nobody down, and nobody slows it down. What
//! the network writes into memory is not counted.

use super::{Machine, MemoryCosts};
use crate::simulator::{
    Activity, Costs as _, LevelledCosts,
    event_queue::Event,
    shared_ports::{PassageCheck, SharedPortMessage},
};

/// The level of messages between nodes.
const BETWEEN: usize = 1;

/// The costs of messages of one size between nodes, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct NetworkRates {
    bytes: u64,
    destinations: u32,
    send_overhead: f64,
    receive_overhead: f64,
    flight: f64,
    /// Of the sender's port and the receiver's.
    gaps: [f64; 2],
    /// Of those of their nodes.
    node_gaps: [f64; 2],
}

impl NetworkRates {
    pub fn of(network: &impl LevelledCosts, bytes: u64, destinations: u32) -> Self {
        let costs = network.of_level(BETWEEN);
        NetworkRates {
            bytes,
            destinations,
            send_overhead: costs.send_overhead(bytes),
            receive_overhead: costs.receive_overhead(bytes),
            flight: costs.flight(bytes),
            gaps: [costs.gap(bytes, destinations), costs.receive_gap(bytes)],
            node_gaps: [network.port_gap(bytes, destinations), network.port_receive_gap(bytes)],
        }
    }
}

impl<M: MemoryCosts, C: LevelledCosts, O: FnMut(Activity)> Machine<'_, M, C, O> {
    fn rates(&mut self, bytes: u64, destinations: u32) -> NetworkRates {
        if (self.rates.bytes, self.rates.destinations) != (bytes, destinations) {
            self.rates = NetworkRates::of(self.network, bytes, destinations);
        }
        self.rates
    }

    /// Those of the last number of destinations: no overhead depends on it.
    fn overheads(&mut self, bytes: u64) -> NetworkRates {
        self.rates(bytes, self.rates.destinations)
    }

    pub(super) fn send_overhead(&mut self, bytes: u64) -> f64 {
        self.overheads(bytes).send_overhead
    }

    pub(super) fn receive_overhead(&mut self, bytes: u64) -> f64 {
        self.overheads(bytes).receive_overhead
    }

    /// A message whose sender keeps sending to so many destinations comes to all its ports, which it shares with
    /// others.
    pub(super) fn enter_ports(&mut self, number: u32, destinations: u32) {
        let super::Message { from, to, bytes, .. } = self.messages[number as usize];
        let NetworkRates { gaps, node_gaps, .. } = self.rates(bytes, destinations);
        let port = |rank, gap| self.network.shared_port(rank).map(|node| (node, gap));
        let ends = (self.simulated_like(from), to);
        let nodes = [port(ends.0, node_gaps[0]), port(ends.1, node_gaps[1])];
        let entering = SharedPortMessage {
            message: number,
            pair: (from, to),
            ends,
            bytes,
            gaps,
            nodes,
            is_inside: false,
        };
        self.ports.enter(self.events.now(), entering);
        self.look_when_due();
    }

    /// A message that has passed its ports flies on to its receiver, as much later than its last byte has passed as if
    /// it were alone.
    pub(super) fn look_at_ports(&mut self, number: u32) {
        let now = self.events.now();
        match self.ports.look(now, number) {
            PassageCheck::Passed { message, alone } => {
                let super::Message { to, bytes, .. } = self.messages[message as usize];
                let NetworkRates { send_overhead, flight, .. } = self.overheads(bytes);
                let left = now - alone + send_overhead;
                self.messages[message as usize].begun = left;
                self.events.put(left + flight, u64::from(to), Event::Arrival(message));
            }
            PassageCheck::Later { at } => {
                self.events.put(at, self.ports.order(number), Event::Passage(number));
            }
            PassageCheck::Nothing => {}
        }
        self.look_when_due();
    }

    fn look_when_due(&mut self) {
        while let Some((at, number)) = self.ports.next_look() {
            self.events.put(at, self.ports.order(number), Event::Passage(number));
        }
    }
}
