//! Runs ranks whose messages inside a node are copies through the memory that they share.
//!
//! A message inside a node is copied in by its sender's processor and copied out by its receiver's ([`MemoryCosts`]). Where these
//! two take no longer than the whole message does, one is after the other. Longer messages go in pieces: both copy
//! at the same time, and a processor that copies for several messages, in and out, has a part for each. Whoever is
//! busy while others are is slower: how much follows from how many are busy at that time. Messages between ranks
//! that share a cache stay in it: they are slowed down by nobody, and slow nobody down. Each node has a memory of its
//! own. Messages between nodes pass their ports: see [`between`].
//!
//! Algorithms of shared memory raise flags, and read what others have written. A flag is seen some time after it is raised
//! ([`MemoryCosts::flag`]), and what lies in its line comes with it, to be copied. Of several reads one after the other,
//! with no flag awaited between, the first alone waits for the data to come: a processor fetches them ahead. A byte
//! takes as long as in one piece of all that the call moves, where that is longer: all of it passes the caches. What
//! was used in earlier calls is taken to be free, and what others have read in them comes back as slowly as it is read
//! when it is written again.

mod alike;
mod between;
mod busy;
mod costs;
mod flags;
mod messages;
mod work;

use std::collections::VecDeque;

use records::{BufferContent, Collective};
use rustc_hash::FxHashMap;

use super::{
    Activity, ActivityKind, LevelledCosts, Outcome, SimulationError,
    event_queue::{Event, EventQueue},
    machine::{call_in_part, knows_all},
    shared_ports::SharedPorts,
};
use crate::{Buffer, Call, Entry, Range, Round, Step};
use between::NetworkRates;
use flags::{FlagKey, RaisedFlag};
use messages::{Message, MessageCosts, SlotState};
use work::{Task, Work};

pub use costs::MemoryCosts;

/// Relatively; by more than what times of two ways of adding up differ by.
const ROUNDING: f64 = 1e-9;

/// What is between two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// A cache that they share: what goes through it slows nobody down.
    Cache,
    /// The memory of their node.
    Memory,
    /// The ports of their nodes.
    Network,
}

#[derive(Debug, Default)]
struct Rank {
    round: Round,
    index: u64,
    place: usize,
    has_round: bool,
    ended: bool,
    /// Since it last awaited a flag, it has read what others share.
    reads: bool,
    /// Its last step awaited flags.
    looks: bool,
    work: Option<Work>,
    waits_for: Option<u32>,
    slots: Vec<SlotState>,
    /// Messages in pieces that it copies.
    streams: Vec<u32>,
    /// What these would take of its processor if nothing were in their way.
    load: f64,
    /// What they take.
    taken: f64,
    finish: f64,
}

impl Rank {
    /// The part of its processor that is busy in a way that slows others down.
    fn busy(&self) -> f64 {
        match self.work {
            Some(work) => f64::from(u8::from(work.task.link == Link::Memory)),
            None => self.taken.min(1.0),
        }
    }
}

/// Ranks that share one memory.
#[derive(Debug)]
struct Node {
    ranks: Vec<u32>,
    /// Messages in pieces that are copied.
    streams: Vec<u32>,
    /// How many of its ranks are busy.
    busy: f64,
    /// Of all of them together, until `since`.
    busy_seconds: f64,
    since: f64,
    /// The number of busy ranks by which all that is under way is slowed down.
    slowed_by: f64,
    /// Whether that is to be compared with how many are.
    is_changed: bool,
}

impl Node {
    const NEW: Node = Node {
        ranks: Vec::new(),
        streams: Vec::new(),
        busy: 0.0,
        busy_seconds: 0.0,
        since: 0.0,
        slowed_by: 2.0,
        is_changed: false,
    };
}

struct Machine<'a, M, C, O> {
    entry: &'a Entry,
    call: Call<'a>,
    element_bytes: u64,
    memory: &'a M,
    network: &'a C,
    /// Where all nodes do the same, the ranks of one, which alone is simulated; else all.
    simulated: u32,
    observe: O,
    ranks: Vec<Rank>,
    nodes: Vec<Node>,
    /// The node of each rank, and its place there.
    places: Vec<(u32, u32)>,
    messages: Vec<Message>,
    unused: Vec<u32>,
    /// Messages of a pair of ranks that lack a half, all of them the same: the first and the last one.
    halves: FxHashMap<(u32, u32), (u32, u32)>,
    /// Nodes on which the number of busy ranks has changed.
    changed: Vec<u32>,
    /// Bytes of its application's memory that a rank moves in the call, at most.
    volume: u64,
    /// The values of flags that were raised, ascending, and when each is seen.
    raised: FxHashMap<FlagKey, Vec<RaisedFlag>>,
    /// What the step at hand awaits: kept for its memory.
    awaited: Vec<ActivityKind>,
    /// The ranks that wait for a flag.
    watchers: FxHashMap<FlagKey, Vec<u32>>,
    /// Of the last sizes that were asked for: most messages have the size of the one before.
    message_costs: MessageCosts,
    /// Bytes, busy ranks, and by what factor the first are slowed down by the latter: of those asked for last.
    slowdown: (u64, f64, f64),
    rates: NetworkRates,
    ports: SharedPorts,
    /// Of an empty message.
    handshake: f64,
    events: EventQueue,
    ready: VecDeque<u32>,
    counts: Vec<u64>,
    sent: u64,
    sent_bytes: u64,
}

/// Executes one call; all ranks start at 0. Ranks at level 0 of the network share the memory of their node, and what is
/// between them costs what `memory` says; of the network's costs those of level 1 and of the ports count. Ports share
/// messages ([`Ports::Shared`](super::Ports::Shared)). Shows every activity.
///
/// # Errors
/// The call can't be served, it takes shared memory itself and what flags cost is not known, it has other ranks than the
/// network, or the schedule is wrong.
pub fn simulate_in_memory(
    entry: &Entry,
    call: &Call<'_>,
    (memory, network): (&impl MemoryCosts, &impl LevelledCosts),
    element_bytes: u64,
    observe: impl FnMut(Activity),
) -> Result<Outcome, SimulationError> {
    run(entry, call, (memory, network), element_bytes, observe, Asked::Everything)
}

/// Simulates without activities, and quicker where all nodes do the same: one of them is simulated, as `alike` says. It ends
/// at `until` (seconds), if the call lasts longer.
///
/// # Errors
/// As [`simulate_in_memory`], or the call lasts longer ([`SimulationError::Longer`]).
pub fn simulate_alike_nodes(
    entry: &Entry,
    call: &Call<'_>,
    (memory, network): (&impl MemoryCosts, &impl LevelledCosts),
    element_bytes: u64,
    until: f64,
) -> Result<Outcome, SimulationError> {
    run(entry, call, (memory, network), element_bytes, |_| {}, Asked::Time { until })
}

/// What of a call is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    /// Every activity.
    Everything,
    /// When it ends, if not after this time, in seconds.
    Time { until: f64 },
}

fn run(
    entry: &Entry,
    call: &Call<'_>,
    (memory, network): (&impl MemoryCosts, &impl LevelledCosts),
    element_bytes: u64,
    observe: impl FnMut(Activity),
    asked: Asked,
) -> Result<Outcome, SimulationError> {
    entry.check_everywhere(call)?;
    if entry.uses_shared_memory(call) && memory.flag().is_none() {
        return Err(SimulationError::SharedMemory);
    }
    let call = entry.normal(call);
    if let Some(ranks) = network.ranks().filter(|ranks| *ranks != call.ranks) {
        return Err(SimulationError::OtherRanks { ranks, call: call.ranks });
    }
    let alike = || alike::ranks_of_one_node(entry, &call, network);
    let (alike, until) = match asked {
        Asked::Everything => (None, f64::INFINITY),
        Asked::Time { until } => (alike(), until),
    };
    let simulated = alike.unwrap_or(call.ranks);
    let mut nodes: Vec<Node> = Vec::new();
    let mut places = Vec::with_capacity(simulated as usize);
    for rank in 0..simulated {
        let node = network.node(rank);
        if nodes.len() <= node as usize {
            nodes.resize_with(node as usize + 1, || Node::NEW);
        }
        let ranks = &mut nodes[node as usize].ranks;
        places.push((node, ranks.len() as u32));
        ranks.push(rank);
    }
    let mut ports = SharedPorts::default();
    ports.begin(simulated, network.nodes(), 0);
    let empty = MessageCosts::of(memory, 0);
    Machine {
        entry,
        call,
        element_bytes,
        memory,
        network,
        simulated,
        observe,
        ready: (0..simulated).collect(),
        ranks: (0..simulated).map(|_| Rank::default()).collect(),
        nodes,
        places,
        messages: Vec::new(),
        unused: Vec::new(),
        halves: FxHashMap::default(),
        changed: Vec::new(),
        volume: volume(entry.collective, &call, element_bytes),
        raised: FxHashMap::default(),
        awaited: Vec::new(),
        watchers: FxHashMap::default(),
        message_costs: empty,
        slowdown: (0, 1.0, memory.slowdown(0, 1.0)),
        rates: NetworkRates::of(network, 0, 1),
        ports,
        handshake: empty.flight(),
        events: EventQueue::default(),
        counts: [call.counts, call.counts].concat(),
        sent: 0,
        sent_bytes: 0,
    }
    .run(until)
}

impl<M: MemoryCosts, C: LevelledCosts, O: FnMut(Activity)> Machine<'_, M, C, O> {
    fn run(mut self, until: f64) -> Result<Outcome, SimulationError> {
        loop {
            while let Some(rank) = self.ready.pop_front() {
                self.go_on(rank);
            }
            // What happens at one time is seen together.
            if !self.events.has_present() {
                self.count_busy();
            }
            let due = self.events.take();
            // What no rank waits for may be looked at later.
            let is_late = due.is_some() && self.events.now() > until;
            if is_late && self.ranks.iter().any(|rank| !rank.ended) {
                return Err(SimulationError::Longer);
            }
            match due {
                Some(Event::Turn(rank)) => self.look_at_work(rank),
                Some(Event::Arrival(message)) => self.is_done(message),
                Some(Event::Transfer(message)) => self.begin_stream(message),
                Some(Event::Copied(message)) => self.look_at(message),
                Some(Event::Passage(number)) => self.look_at_ports(number),
                Some(Event::Departure(_) | Event::Entrance(_)) => {}
                None => return self.outcome(),
            }
        }
    }

    fn outcome(&self) -> Result<Outcome, SimulationError> {
        let blocked = self.ranks.iter().filter(|rank| !rank.ended).count() as u32;
        if let Some(first) = self.ranks.iter().position(|rank| !rank.ended) {
            return Err(SimulationError::Deadlock { blocked, first: first as u32 });
        }
        // What is not simulated does the same.
        let alike = self.call.ranks / self.simulated;
        let of_one = self.ranks.iter().map(|rank| rank.finish);
        let finish: Vec<f64> = of_one.cycle().take(self.call.ranks as usize).collect();
        let seconds = finish.iter().copied().fold(0.0, f64::max);
        let (messages, bytes) = (u64::from(alike) * self.sent, u64::from(alike) * self.sent_bytes);
        let most = self.nodes.iter().map(|node| node.busy_seconds).fold(0.0, f64::max);
        let busy = Some(if seconds > 0.0 { most / seconds } else { 0.0 });
        Ok(Outcome { seconds, finish, messages, bytes, busy })
    }

    fn link(&self, from: u32, to: u32) -> Link {
        if self.network.level(from, to) > 0 {
            return Link::Network;
        }
        let [(_, from), (_, to)] = [from, to].map(|rank| self.places[rank as usize]);
        if self.memory.is_near(from, to) { Link::Cache } else { Link::Memory }
    }

    fn node_of(&mut self, rank: u32) -> &mut Node {
        &mut self.nodes[self.places[rank as usize].0 as usize]
    }

    /// Runs a rank until its processor is busy, or it has to wait.
    fn go_on(&mut self, rank: u32) {
        while self.ranks[rank as usize].work.is_none() {
            let own = &self.ranks[rank as usize];
            if own.has_round && own.place < own.round.steps().len() {
                let step = own.round.steps()[own.place];
                if !self.step(rank, step) {
                    break;
                }
                self.ranks[rank as usize].place += 1;
            } else if !self.next_round(rank) {
                let now = self.events.now();
                let own = &mut self.ranks[rank as usize];
                (own.ended, own.finish) = (true, now);
                break;
            }
        }
    }

    /// Whether there is one.
    fn next_round(&mut self, rank: u32) -> bool {
        let (entry, call) = (self.entry, self.call);
        let own = &mut self.ranks[rank as usize];
        if own.has_round {
            if own.round.is_last() {
                return false;
            }
            own.index += 1;
        } else {
            own.round = Round::of_one_call();
        }
        (own.has_round, own.place) = (true, 0);
        let known = match knows_all(entry.collective, &call, rank) {
            true => call,
            false => call_in_part(entry, &call, rank, own.index, &self.counts),
        };
        let is_there = entry.normal_round(&known, rank, own.index, &mut own.round);
        own.slots.resize(own.round.slots() as usize, SlotState::Idle);
        is_there
    }

    /// Whether the rank has done it, or its processor is at it.
    fn step(&mut self, rank: u32, step: Step) -> bool {
        if !matches!(step, Step::Await { .. } | Step::AwaitAll { .. }) {
            self.ranks[rank as usize].looks = false;
        }
        match step {
            Step::Send { peer, slot, range } | Step::SendReady { peer, slot, range } => {
                self.send(rank, peer, slot, self.bytes_of(range));
            }
            Step::Receive { peer, slot, range } => {
                let message = self.half(peer, rank, self.bytes_of(range), false);
                self.set_slot(rank, slot, SlotState::Receives(message));
                self.offer(message);
            }
            Step::Wait { slot } => return self.wait(rank, slot),
            Step::Combine { source, into, .. } => {
                let operand = self.operand(rank, [source, into]);
                self.work(rank, Task::on(operand, ActivityKind::Combine, self.bytes_of(into)));
            }
            Step::Copy { source, into } => {
                let operand = self.operand(rank, [source, into]);
                self.work(rank, Task::on(operand, ActivityKind::Copy, self.bytes_of(into)));
            }
            Step::Signal { flag, turn, value } => self.signal((rank, flag, turn), value),
            Step::Await { rank: of, flag, turn, value } => {
                return self.await_flags(rank, [(of, flag, turn)], value);
            }
            Step::AwaitAll { flag, turn, value } => {
                let ranks = self.node_of(rank).ranks.clone();
                let others = ranks.into_iter().filter(|other| *other != rank);
                return self.await_flags(rank, others.map(|other| (other, flag, turn)), value);
            }
            // Earlier calls have ended long before.
            Step::AwaitFinished { .. } | Step::Finish { .. } => {}
        }
        true
    }

    fn bytes_of(&self, range: Range) -> u64 {
        match range.buffer {
            Buffer::Counts | Buffer::Header => range.count * size_of::<u64>() as u64,
            _ => range.count * self.element_bytes,
        }
    }
}

/// What a rank of a call moves of the application's memory, at most.
fn volume(collective: Collective, call: &Call<'_>, element_bytes: u64) -> u64 {
    let is_of_all = |held| matches!(held, BufferContent::All | BufferContent::AllAtRoot);
    let blocks = match is_of_all(collective.sends()) || is_of_all(collective.receives()) {
        true => u64::from(call.ranks),
        false => 1,
    };
    call.count.saturating_mul(element_bytes).saturating_mul(blocks)
}
