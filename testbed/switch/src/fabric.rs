//! When frames are due, by all wires together.

use std::{cmp::Reverse, collections::BinaryHeap};

use rand::RngExt;
use rand_pcg::Pcg64;
use rustc_hash::FxHashMap;

use crate::{
    Jitter, JitterDistribution, Nanoseconds, PortIndex, PortWires, Wiring,
    wire::{FrameInTransit, PortPair, Wire},
};

/// A frame that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery<T> {
    /// The port that sent it.
    pub source: PortIndex,
    /// The port that it is for.
    pub destination: PortIndex,
    /// When it came into the network.
    pub came: Nanoseconds,
    /// When it is due.
    pub due: Nanoseconds,
    /// On the wire.
    pub bytes: u32,
    /// What it came with.
    pub content: T,
}

/// All wires, and the frames on them.
///
/// Its time is what it is told: [`Fabric::send`] and [`Fabric::until`] are to be called with times
/// that never decrease. What happens in between, it works out in order, each at its own time.
#[derive(Debug)]
pub struct Fabric<T> {
    wires: Vec<Wire<RoutedFrame<T>>>,
    routes: Routes,
    /// What happens next on top.
    events: BinaryHeap<FabricEvent<T>>,
    happened: u64,
    /// The earliest time at which a frame can be due after an event, and that event, the earliest on top;
    /// also of events that have happened.
    bounds: BinaryHeap<Reverse<(Nanoseconds, EventOrder)>>,
    /// Of each wire: the least latency from its begin to a port.
    min_latencies: Vec<Nanoseconds>,
    chance: FrameRandomness,
    pairs: FxHashMap<PortPair, PairState>,
    /// Bytes in the network, by the port that sent them.
    held: Vec<u64>,
    lost: u64,
}

/// A frame, where it goes, and how far it has come.
#[derive(Debug)]
struct RoutedFrame<T> {
    came: Nanoseconds,
    route: Route,
    /// How many wires of its route it has left behind.
    crossed: u8,
    content: T,
}

impl<T> RoutedFrame<T> {
    fn has_crossed_all(&self) -> bool {
        self.crossed == self.route.length
    }

    fn wires_left(&self) -> impl Iterator<Item = u16> {
        self.route.wires().skip(self.crossed.into())
    }
}

/// When, and among what happens at one time.
type EventOrder = (Nanoseconds, u64);

#[derive(Debug)]
struct FabricEvent<T> {
    order: Reverse<EventOrder>,
    what: FrameEvent<T>,
}

#[derive(Debug)]
enum FrameEvent<T> {
    /// A wire has sent what it was sending.
    Sent(u16),
    /// A frame has come to the end of a wire.
    Come(FrameInTransit<RoutedFrame<T>>),
}

impl<T> PartialEq for FabricEvent<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<T> Eq for FabricEvent<T> {}

impl<T> PartialOrd for FabricEvent<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for FabricEvent<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

impl<T> Fabric<T> {
    /// With nothing in it.
    pub fn new(wiring: &Wiring) -> Fabric<T> {
        let ports = &wiring.ports;
        let out = ports.iter().map(|port| (port.out_bits_per_second, port.latency));
        let into = ports.iter().map(|port| (port.in_bits_per_second, port.latency));
        let groups = &wiring.groups;
        let up = groups.iter().map(|group| (group.up_bits_per_second, group.latency));
        let down = groups.iter().map(|group| (group.down_bits_per_second, group.latency));
        let wires = out.chain(into).chain(up).chain(down);
        let wires: Vec<Wire<_>> =
            wires.map(|(rate, latency)| Wire::new(rate, latency.nanoseconds())).collect();
        let latencies: Vec<Nanoseconds> = wires.iter().map(|wire| wire.latency).collect();
        let routes = Routes::new(wiring);
        Fabric {
            min_latencies: routes.min_latencies(&latencies),
            wires,
            routes,
            events: BinaryHeap::new(),
            happened: 0,
            bounds: BinaryHeap::new(),
            chance: FrameRandomness {
                jitter: wiring.jitter,
                loss: f64::from(wiring.lost_per_billion) / 1e9,
                seed: wiring.seed,
            },
            pairs: FxHashMap::default(),
            held: vec![0; ports.len()],
            lost: 0,
        }
    }

    /// A port sends a frame, after [`Fabric::until`] has told all that was due by then. Neither port
    /// may be beyond the last.
    pub fn send(
        &mut self,
        now: Nanoseconds,
        (source, destination): (PortIndex, PortIndex),
        bytes: u32,
        content: T,
    ) {
        debug_assert!(self.next().is_none_or(|time| time >= now), "something is due before {now}");
        self.held[usize::from(source)] += u64::from(bytes);
        let route = self.routes.between(source, destination);
        let content = RoutedFrame { came: now, route, crossed: 0, content };
        self.enter(now, FrameInTransit { pair: (source, destination), bytes, content });
    }

    /// When something happens next; none if no frame is in the network.
    pub fn next(&self) -> Option<Nanoseconds> {
        self.events.peek().map(|event| event.order.0.0)
    }

    /// Before this no frame is due, whatever is sent until then; none if no frame is in the network. What
    /// happens on the way need not be looked at earlier.
    pub fn nothing_due_before(&mut self) -> Option<Nanoseconds> {
        let Reverse(next) = self.events.peek()?.order;
        while let Some(&Reverse((bound, event))) = self.bounds.peek() {
            if event >= next {
                return Some(bound);
            }
            self.bounds.pop();
        }
        None
    }

    /// The first frame that is due by `now`, if there is one.
    pub fn until(&mut self, now: Nanoseconds) -> Option<Delivery<T>> {
        while self.next().is_some_and(|time| time <= now) {
            let FabricEvent { order: Reverse((time, _)), what } = self.events.pop()?;
            match what {
                FrameEvent::Sent(wire) => self.leave(time, wire),
                FrameEvent::Come(parcel) => {
                    if parcel.content.has_crossed_all() {
                        return Some(self.deliver(time, parcel));
                    }
                    self.enter(time, parcel);
                }
            }
        }
        None
    }

    /// Bytes in the network that this port has sent.
    pub fn held(&self, port: PortIndex) -> u64 {
        self.held[usize::from(port)]
    }

    /// Frames that were lost, as the wiring asks for.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn enter(&mut self, now: Nanoseconds, parcel: FrameInTransit<RoutedFrame<T>>) {
        let RoutedFrame { route, crossed, .. } = parcel.content;
        let wire = route.wires[usize::from(crossed)];
        if let Some(end) = self.wires[usize::from(wire)].accept(now, parcel) {
            self.schedule(end, FrameEvent::Sent(wire));
        }
    }

    fn leave(&mut self, now: Nanoseconds, index: u16) {
        let wire = &mut self.wires[usize::from(index)];
        let latency = wire.latency;
        let (sent, end) = wire.left(now);
        if let Some(end) = end {
            self.schedule(end, FrameEvent::Sent(index));
        }
        let Some(mut parcel) = sent else { return };
        parcel.content.crossed += 1;
        let mut arrival = now + latency;
        if parcel.content.crossed == 1 {
            let pair = self.pairs.entry(parcel.pair);
            let pair = pair.or_insert_with_key(|pair| PairState::new(*pair, &self.chance));
            let Some(late) = pair.draw(&self.chance) else {
                self.lost += 1;
                self.forget(&parcel);
                return;
            };
            arrival = (arrival + late).max(pair.last);
            pair.last = arrival;
        }
        self.schedule(arrival, FrameEvent::Come(parcel));
    }

    fn deliver(&mut self, due: Nanoseconds, parcel: FrameInTransit<RoutedFrame<T>>) -> Delivery<T> {
        self.forget(&parcel);
        let (source, destination) = parcel.pair;
        let RoutedFrame { came, content, .. } = parcel.content;
        Delivery { source, destination, came, due, bytes: parcel.bytes, content }
    }

    fn forget(&mut self, parcel: &FrameInTransit<RoutedFrame<T>>) {
        self.held[usize::from(parcel.pair.0)] -= u64::from(parcel.bytes);
    }

    fn schedule(&mut self, time: Nanoseconds, what: FrameEvent<T>) {
        let order = (time, self.happened);
        self.bounds.push(Reverse((time + self.least_way(&what), order)));
        self.events.push(FabricEvent { order: Reverse(order), what });
        self.happened += 1;
    }

    /// How long it takes at least until a frame is due that depends on an event.
    fn least_way(&self, what: &FrameEvent<T>) -> Nanoseconds {
        match what {
            // The next one that waits for the wire may have another way.
            FrameEvent::Sent(wire) => self.min_latencies[usize::from(*wire)],
            FrameEvent::Come(parcel) => {
                let wires = parcel.content.wires_left().map(|wire| &self.wires[usize::from(wire)]);
                wires.map(|wire| wire.time_of(parcel.bytes) + wire.latency).sum()
            }
        }
    }
}

/// Out, twice up, twice down, in.
const MAX_WIRES: usize = 6;

/// The wires that a frame crosses, by number.
#[derive(Debug, Clone, Copy)]
struct Route {
    wires: [u16; MAX_WIRES],
    length: u8,
}

impl Route {
    fn new(crossed: impl IntoIterator<Item = u16>) -> Route {
        let mut route = Route { wires: [0; MAX_WIRES], length: 0 };
        for (place, wire) in route.wires.iter_mut().zip(crossed) {
            *place = wire;
            route.length += 1;
        }
        route
    }

    fn wires(self) -> impl Iterator<Item = u16> {
        self.wires.into_iter().take(self.length.into())
    }
}

/// Wires are numbered: out of each port, into each port, up from each group, down to each group.
#[derive(Debug)]
struct Routes {
    ports: u16,
    groups: u16,
    /// Of each port: its group, and the group of that.
    groups_of: Vec<[Option<u16>; 2]>,
}

impl Routes {
    fn new(wiring: &Wiring) -> Routes {
        let outer = |group: u16| wiring.groups[usize::from(group)].within;
        let groups_of = |port: &PortWires| [port.group, port.group.and_then(outer)];
        Routes {
            ports: wiring.ports.len() as u16,
            groups: wiring.groups.len() as u16,
            groups_of: wiring.ports.iter().map(groups_of).collect(),
        }
    }

    /// Of each wire the least latency from its begin to a port, of all routes.
    fn min_latencies(&self, latencies: &[Nanoseconds]) -> Vec<Nanoseconds> {
        let mut least = vec![Nanoseconds::MAX; latencies.len()];
        for source in 0..self.ports {
            for destination in 0..self.ports {
                let wires: Vec<u16> = self.between(source, destination).wires().collect();
                let mut left = 0;
                for wire in wires.into_iter().rev().map(usize::from) {
                    left += latencies[wire];
                    least[wire] = least[wire].min(left);
                }
            }
        }
        least
    }

    fn between(&self, source: PortIndex, destination: PortIndex) -> Route {
        let [from, to] = [source, destination].map(|port| self.groups_of[usize::from(port)]);
        let into = self.ports + destination;
        if from[0].is_none() || to[0].is_none() {
            return Route::new([source, into]);
        }
        let left = |own: [Option<u16>; 2], other: [Option<u16>; 2]| {
            own.into_iter().flatten().filter(move |group| !other.contains(&Some(*group)))
        };
        let up = left(from, to).map(|group| 2 * self.ports + group);
        let down = left(to, from).map(|group| 2 * self.ports + self.groups + group);
        let mut down: Vec<u16> = down.collect();
        down.reverse();
        Route::new([source].into_iter().chain(up).chain(down).chain([into]))
    }
}

/// What is drawn for each frame.
#[derive(Debug)]
struct FrameRandomness {
    jitter: Option<Jitter>,
    loss: f64,
    seed: u64,
}

/// Of a pair of ports: its own sequence of chances, so that what befalls its frames does not depend on
/// when others send.
#[derive(Debug)]
struct PairState {
    random: Pcg64,
    /// When its last frame came to the end of the first wire.
    last: Nanoseconds,
}

impl PairState {
    fn new((source, destination): PortPair, chance: &FrameRandomness) -> PairState {
        let stream = u128::from(source) << 16 | u128::from(destination);
        PairState { random: Pcg64::new(chance.seed.into(), stream), last: 0 }
    }

    /// How much later the next frame comes; none if it is lost.
    fn draw(&mut self, chance: &FrameRandomness) -> Option<Nanoseconds> {
        if chance.loss > 0.0 && self.random.random::<f64>() < chance.loss {
            return None;
        }
        let Some(Jitter { distribution, scale }) = chance.jitter else { return Some(0) };
        let drawn = self.random.random::<f64>();
        let share = match distribution {
            JitterDistribution::Uniform => drawn,
            // 1 - drawn is never 0.
            JitterDistribution::Exponential => -(1.0 - drawn).ln(),
        };
        Some((share * scale.nanoseconds() as f64) as Nanoseconds)
    }
}

#[cfg(test)]
mod tests;
