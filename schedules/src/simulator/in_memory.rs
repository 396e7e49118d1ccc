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

use std::collections::{VecDeque, hash_map};

use records::{BufferContent, Collective};
use rustc_hash::FxHashMap;

use super::{
    Activity, ActivityKind, LevelledCosts, Outcome, SimulationError,
    event_queue::{Event, EventQueue},
    machine::{call_in_part, knows_all},
    shared_ports::SharedPorts,
};
use crate::{Buffer, Call, Entry, Flag, Range, Round, Step};
use between::NetworkRates;

/// What messages and copies cost ranks that share the memory of one node. All times are seconds; `busy` is how many
/// ranks of the node are at it at the same time.
pub trait MemoryCosts {
    /// From the start of a send to the end of its receive, while the other ranks are idle.
    fn trip(&self, bytes: u64) -> f64;

    /// What of that the sender's processor is busy.
    fn send(&self, bytes: u64) -> f64;

    /// What of that the receiver's processor is busy.
    fn receive(&self, bytes: u64) -> f64;

    /// By what factor all of these grow; 1 for the two of one message.
    fn slowdown(&self, bytes: u64, busy: f64) -> f64;

    /// Whether two ranks share a cache through which their messages go, by their places on the node.
    fn is_near(&self, from: u32, to: u32) -> bool;

    /// Copying within the memory of one rank.
    fn copy(&self, bytes: u64, busy: f64) -> f64;

    /// Combining two operands of so many bytes.
    fn combine(&self, bytes: u64, busy: f64) -> f64;

    /// From raising a flag until another rank sees it, and what each further flag takes that a rank looks at; none: not
    /// known, and calls that share memory themselves are refused.
    fn flag(&self) -> Option<[f64; 2]> {
        None
    }

    /// Copying what another rank has just written.
    fn read(&self, bytes: u64, busy: f64) -> f64 {
        self.copy(bytes, busy)
    }

    /// What of that is until the first bytes are there.
    fn read_start(&self, _busy: f64) -> f64 {
        0.0
    }

    /// Combining two operands that are at hand.
    fn combine_at_hand(&self, bytes: u64) -> f64 {
        self.combine(bytes, 1.0)
    }
}

/// The number of busy ranks may change by this part before all that is under way is slowed down anew: times change
/// by less.
const CHANGE: f64 = 0.03;

/// Relatively; by more than what times of two ways of adding up differ by.
const ROUNDING: f64 = 1e-9;

/// No message.
const NONE: u32 = u32::MAX;

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

/// Where the operand lies that a processor works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operand {
    /// In the rank's own memory.
    Own,
    /// In what this rank writes for all to read.
    Written,
    /// In what another rank has written for all to read.
    Shared,
    /// There, too, and it has been read from just before.
    Further,
    /// Beside a flag of this rank.
    Line,
    /// Beside a flag of another rank, which has come with it.
    OtherLine,
}

/// A flag of a rank, in a turn.
type FlagKey = (u32, Flag, u32);

/// A value of a flag.
#[derive(Debug, Clone, Copy)]
struct RaisedFlag {
    value: u32,
    /// When its rank raised it, in seconds.
    raised: f64,
    /// When others see it.
    seen: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum SlotState {
    Idle,
    Sends(u32),
    Receives(u32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Progress {
    /// A half of it is not posted yet, or it is on its way in one piece.
    Open,
    /// Both processors copy.
    Streams,
    /// In one piece, it lies ready for the receiver; in pieces, all have been copied.
    Done,
}

#[derive(Debug, Clone, Copy)]
struct Message {
    from: u32,
    to: u32,
    bytes: u64,
    is_sent: bool,
    is_expected: bool,
    in_pieces: bool,
    link: Link,
    progress: Progress,
    /// Until both slots are done with it.
    readers: u8,
    /// When it began to be copied.
    begun: f64,
    /// What is left of it, 1 at first, at this time.
    left: f64,
    since: f64,
    /// What is copied of it per second.
    rate: f64,
    /// Of its ranks' processors, what it takes if nothing is in its way.
    loads: [f64; 2],
    /// What it takes of them now.
    takes: [f64; 2],
    /// When it is to be looked at.
    due: f64,
    /// The next one of its pair that lacks a half.
    next: u32,
}

/// What a processor has to do alone.
#[derive(Debug, Clone, Copy)]
struct Task {
    kind: ActivityKind,
    bytes: u64,
    /// Whether others slow it down, and it them.
    link: Link,
    operand: Operand,
    /// That it sends, in one piece.
    sends: Option<u32>,
}

impl Task {
    /// A message in one piece, sent or received.
    fn message(kind: ActivityKind, bytes: u64, link: Link) -> Self {
        Task { kind, bytes, link, operand: Operand::Own, sends: None }
    }

    /// A copy or a combination.
    fn on(operand: Operand, kind: ActivityKind, bytes: u64) -> Self {
        let in_line = matches!(operand, Operand::Line | Operand::OtherLine);
        let link = if in_line { Link::Cache } else { Link::Memory };
        Task { kind, bytes, link, operand, sends: None }
    }
}

/// A task under way.
#[derive(Debug, Clone, Copy)]
struct Work {
    task: Task,
    begun: f64,
    /// What is left of it, 1 at first, at this time.
    left: f64,
    since: f64,
    /// What it takes altogether as many as are busy now.
    seconds: f64,
    /// When it is to be looked at.
    due: f64,
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

/// What a message inside a node takes of its size, in seconds.
#[derive(Debug, Clone, Copy)]
struct MessageCosts {
    bytes: u64,
    trip: f64,
    send: f64,
    receive: f64,
}

impl MessageCosts {
    fn of(costs: &impl MemoryCosts, bytes: u64) -> Self {
        let (trip, send, receive) = (costs.trip(bytes), costs.send(bytes), costs.receive(bytes));
        MessageCosts { bytes, trip, send, receive }
    }

    /// What it takes beside what the processors do.
    fn flight(&self) -> f64 {
        (self.trip - self.send - self.receive).max(0.0)
    }
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

    fn message_costs(&mut self, bytes: u64) -> MessageCosts {
        if self.message_costs.bytes != bytes {
            self.message_costs = MessageCosts::of(self.memory, bytes);
        }
        self.message_costs
    }

    /// Most that is slowed down anew is as large as what was before, beside as many busy ranks.
    fn slowdown(&mut self, bytes: u64, busy: f64) -> f64 {
        if (self.slowdown.0, self.slowdown.1) != (bytes, busy) {
            self.slowdown = (bytes, busy, self.memory.slowdown(bytes, busy));
        }
        self.slowdown.2
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

    fn signal(&mut self, key: FlagKey, value: u32) {
        let [flag, _] = self.memory.flag().unwrap_or_default();
        let raised = self.events.now();
        self.raised.entry(key).or_default().push(RaisedFlag { value, raised, seen: raised + flag });
        self.ready.extend(self.watchers.remove(&key).unwrap_or_default());
    }

    /// Whether all of these flags have been raised; then the processor waits until it sees them, one after the other, as
    /// those that its last step awaited.
    fn await_flags(
        &mut self,
        rank: u32,
        flags: impl IntoIterator<Item = FlagKey>,
        value: u32,
    ) -> bool {
        let now = self.events.now();
        let [_, further] = self.memory.flag().unwrap_or_default();
        let own = &mut self.ranks[rank as usize];
        let begun = now + if own.looks { further } else { 0.0 };
        let (mut seen, mut looked_at) = (begun, 0_u32);
        own.reads = false;
        self.awaited.clear();
        for key in flags {
            looked_at += 1;
            let raised = self.raised.get(&key).map(Vec::as_slice).unwrap_or_default();
            match raised.get(raised.partition_point(|flag| flag.value < value)) {
                Some(flag) => {
                    seen = seen.max(flag.seen);
                    self.awaited.push(ActivityKind::Flag { of: key.0, raised: flag.raised });
                }
                None => {
                    self.watchers.entry(key).or_default().push(rank);
                    return false;
                }
            }
        }
        self.ranks[rank as usize].looks = looked_at > 0;
        let seen = seen + f64::from(looked_at.saturating_sub(1)) * further;
        for kind in self.awaited.drain(..) {
            (self.observe)(Activity { rank, kind, begin: seen, end: seen, bytes: 0 });
        }
        if seen > now {
            let wait = Task::message(ActivityKind::Wait, 0, Link::Cache);
            self.begin(rank, wait, seen - now);
        }
        true
    }

    /// Its processor is busy from now on.
    fn work(&mut self, rank: u32, task: Task) {
        let seconds = self.seconds_of(rank, task);
        self.begin(rank, task, seconds);
    }

    fn begin(&mut self, rank: u32, task: Task, seconds: f64) {
        let now = self.events.now();
        let due = now + seconds;
        let work = Work { task, begun: now, left: 1.0, since: now, seconds, due };
        self.count_busy_of(rank, |own| own.work = Some(work));
        self.events.put(due, u64::from(rank), Event::Turn(rank));
    }

    /// What a processor takes while as many are busy as are now.
    fn seconds_of(&mut self, rank: u32, task: Task) -> f64 {
        let Task { kind, bytes, link, operand, .. } = task;
        let (memory, busy) = (self.memory, self.node_of(rank).slowed_by);
        let slowed = link == Link::Memory;
        match kind {
            ActivityKind::Flag { .. } => 0.0,
            ActivityKind::Send { .. } if link == Link::Network => self.send_overhead(bytes),
            ActivityKind::Receive { .. } if link == Link::Network => self.receive_overhead(bytes),
            ActivityKind::Send { .. } | ActivityKind::Receive { .. } => {
                let costs = self.message_costs(bytes);
                let is_send = matches!(kind, ActivityKind::Send { .. });
                let seconds = if is_send { costs.send } else { costs.receive };
                seconds * if slowed { self.slowdown(bytes, busy) } else { 1.0 }
            }
            ActivityKind::Combine => match operand {
                Operand::Own | Operand::Written => memory.combine(bytes, busy),
                Operand::Shared | Operand::Further => {
                    self.read(bytes, busy, operand) + memory.combine_at_hand(bytes)
                }
                Operand::Line | Operand::OtherLine => memory.combine_at_hand(bytes),
            },
            ActivityKind::Copy => match operand {
                Operand::Own => memory.copy(bytes, busy),
                Operand::Written => self.write(bytes, busy),
                Operand::Shared | Operand::Further => self.read(bytes, busy, operand),
                Operand::Line => 0.0,
                Operand::OtherLine => memory.copy(bytes, 1.0),
            },
            ActivityKind::Wait => 0.0,
        }
    }

    /// Copying into what others have read in an earlier call: from their caches each line comes back as if it were read,
    /// but nothing waits for the first.
    fn write(&self, bytes: u64, busy: f64) -> f64 {
        let copied = at_rate_of(bytes, self.volume, |bytes| self.memory.copy(bytes, busy));
        copied.max(self.read(bytes, busy, Operand::Further))
    }

    /// Copying what others have written.
    fn read(&self, bytes: u64, busy: f64, operand: Operand) -> f64 {
        let memory = self.memory;
        let start = memory.read_start(busy);
        let moved = at_rate_of(bytes, self.volume, |bytes| memory.read(bytes, busy) - start);
        if operand == Operand::Further { moved } else { start + moved }
    }

    /// Where what a rank copies or combines lies.
    fn operand(&mut self, rank: u32, ranges: [Range; 2]) -> Operand {
        let shared = ranges.iter().filter_map(|range| match range.buffer {
            Buffer::Line { owner, .. } if owner == rank => Some(Operand::Line),
            Buffer::Line { .. } => Some(Operand::OtherLine),
            Buffer::Shared { owner, .. } if owner == rank => Some(Operand::Written),
            Buffer::Shared { .. } => Some(Operand::Shared),
            _ => None,
        });
        let found = shared.max().unwrap_or(Operand::Own);
        let own = &mut self.ranks[rank as usize];
        match found {
            Operand::Shared if std::mem::replace(&mut own.reads, true) => Operand::Further,
            found => found,
        }
    }

    /// A processor may have done what it does alone.
    fn look_at_work(&mut self, rank: u32) {
        let now = self.events.now();
        let Some(work) = &mut self.ranks[rank as usize].work else { return };
        if now < work.due {
            return;
        }
        let end = work.since + work.left * work.seconds;
        if end > now * (1.0 + ROUNDING) {
            work.due = end;
            self.events.put(end, u64::from(rank), Event::Turn(rank));
            return;
        }
        let Work { task: Task { kind, bytes, sends, .. }, begun, .. } = *work;
        (self.observe)(Activity { rank, kind, begin: begun, end: now, bytes });
        if let Some(message) = sends {
            self.messages[message as usize].begun = now;
            let at = now + self.message_costs(bytes).flight();
            self.events.put(at, u64::from(rank), Event::Arrival(message));
        }
        self.count_busy_of(rank, |own| own.work = None);
        self.ready.push_back(rank);
    }

    fn send(&mut self, rank: u32, peer: u32, slot: u32, bytes: u64) {
        let (from, to) = self.seen_by_simulated(rank, peer);
        let message = self.half(from, to, bytes, true);
        self.sent += 1;
        self.sent_bytes += bytes;
        if self.messages[message as usize].in_pieces {
            self.set_slot(rank, slot, SlotState::Sends(message));
            self.offer(message);
            return;
        }
        // The memory is the application's again when the processor goes on.
        let kept = &mut self.messages[message as usize];
        kept.readers -= 1;
        let by_ports = kept.link == Link::Network;
        if by_ports {
            self.enter_ports(message, self.ranks[rank as usize].round.destinations());
        }
        let sends = (!by_ports).then_some(message);
        let kind = ActivityKind::Send { to: peer };
        let link = self.link(rank, peer);
        self.work(rank, Task { sends, ..Task::message(kind, bytes, link) });
    }

    /// Whether what the slot holds is there; then the slot is idle, and the processor at it if there is
    /// anything to do.
    fn wait(&mut self, rank: u32, slot: u32) -> bool {
        let state = self.ranks[rank as usize].slots[slot as usize];
        let (SlotState::Sends(number) | SlotState::Receives(number)) = state else { return true };
        let message = self.messages[number as usize];
        if message.progress != Progress::Done {
            self.ranks[rank as usize].waits_for = Some(slot);
            return false;
        }
        self.set_slot(rank, slot, SlotState::Idle);
        let (from, left) = (message.from, message.begun);
        let kind = ActivityKind::Receive { from, left };
        if message.in_pieces {
            let (begin, end) = (message.begun, self.events.now());
            let kind = if rank == from { ActivityKind::Send { to: message.to } } else { kind };
            (self.observe)(Activity { rank, kind, begin, end, bytes: message.bytes });
        } else {
            let link = self.link(rank, from);
            self.work(rank, Task::message(kind, message.bytes, link));
        }
        let kept = &mut self.messages[number as usize];
        kept.readers -= 1;
        if kept.readers == 0 {
            self.unused.push(number);
        }
        true
    }

    /// The message of a half that is posted: the oldest of the pair that lacks it, or a new one.
    fn half(&mut self, from: u32, to: u32, bytes: u64, is_send: bool) -> u32 {
        if let hash_map::Entry::Occupied(mut open) = self.halves.entry((from, to)) {
            let first = open.get().0;
            let message = &mut self.messages[first as usize];
            if if is_send { !message.is_sent } else { !message.is_expected } {
                (message.is_sent, message.is_expected) = (true, true);
                match message.next {
                    NONE => drop(open.remove()),
                    next => open.get_mut().0 = next,
                }
                return first;
            }
        }
        let link = self.link(from, to);
        let MessageCosts { trip, send, receive, .. } = self.message_costs(bytes);
        let loads = [send, receive].map(|seconds| if trip > 0.0 { seconds / trip } else { 0.0 });
        let is_long = trip > 0.0 && send + receive > trip * (1.0 + ROUNDING);
        let message = Message {
            from,
            to,
            bytes,
            is_sent: is_send,
            is_expected: !is_send,
            in_pieces: is_long && link != Link::Network,
            link,
            progress: Progress::Open,
            readers: 2,
            begun: 0.0,
            left: 1.0,
            since: 0.0,
            rate: 0.0,
            loads,
            takes: [0.0; 2],
            due: f64::INFINITY,
            next: NONE,
        };
        let number = match self.unused.pop() {
            Some(number) => {
                self.messages[number as usize] = message;
                number
            }
            None => {
                self.messages.push(message);
                self.messages.len() as u32 - 1
            }
        };
        match self.halves.entry((from, to)) {
            hash_map::Entry::Occupied(mut open) => {
                let (_, last) = open.get_mut();
                self.messages[*last as usize].next = number;
                *last = number;
            }
            hash_map::Entry::Vacant(free) => drop(free.insert((number, number))),
        }
        number
    }

    fn set_slot(&mut self, rank: u32, slot: u32, state: SlotState) {
        self.ranks[rank as usize].slots[slot as usize] = state;
    }

    /// A message in pieces whose halves are both there begins when the sender knows it.
    fn offer(&mut self, number: u32) {
        let message = &self.messages[number as usize];
        if message.in_pieces && message.is_sent && message.is_expected {
            let at = self.events.now() + self.handshake;
            self.events.put(at, u64::from(number), Event::Transfer(number));
        }
    }

    fn begin_stream(&mut self, number: u32) {
        let now = self.events.now();
        let message = &mut self.messages[number as usize];
        (message.progress, message.begun, message.since) = (Progress::Streams, now, now);
        let (ends, loads) = ([message.from, message.to], message.loads);
        self.node_of(ends[0]).streams.push(number);
        for (rank, load) in ends.into_iter().zip(loads) {
            let own = &mut self.ranks[rank as usize];
            own.streams.push(number);
            own.load += load;
        }
        self.share_anew(ends);
    }

    /// A message in pieces may have been copied.
    fn look_at(&mut self, number: u32) {
        let now = self.events.now();
        let message = &mut self.messages[number as usize];
        if message.progress != Progress::Streams || now < message.due {
            return;
        }
        let at = message.since + message.left / message.rate;
        if at > now * (1.0 + ROUNDING) {
            message.due = at;
            self.events.put(at, u64::from(number), Event::Copied(number));
            return;
        }
        let (ends, loads, takes) = ([message.from, message.to], message.loads, message.takes);
        self.node_of(ends[0]).streams.retain(|other| *other != number);
        for ((rank, load), takes) in ends.into_iter().zip(loads).zip(takes) {
            self.count_busy_of(rank, |own| {
                own.streams.retain(|other| *other != number);
                // Nothing of rounding stays behind.
                let idle = own.streams.is_empty();
                own.load = if idle { 0.0 } else { own.load - load };
                own.taken = if idle { 0.0 } else { own.taken - takes };
            });
        }
        self.is_done(number);
        self.share_anew(ends);
    }

    /// What waits for a message goes on.
    fn is_done(&mut self, number: u32) {
        let message = &mut self.messages[number as usize];
        message.progress = Progress::Done;
        let Message { from, to, .. } = *message;
        let ends = [self.simulated_like(from), to];
        let own_state = [SlotState::Sends(number), SlotState::Receives(number)];
        for (rank, state) in ends.into_iter().zip(own_state) {
            let own = &mut self.ranks[rank as usize];
            if own.waits_for.is_some_and(|slot| own.slots[slot as usize] == state) {
                own.waits_for = None;
                self.ready.push_back(rank);
            }
        }
    }

    /// New rates for all messages in pieces that these ranks copy.
    fn share_anew(&mut self, ends: [u32; 2]) {
        for rank in ends {
            for index in 0..self.ranks[rank as usize].streams.len() {
                self.set_rate(self.ranks[rank as usize].streams[index]);
            }
        }
    }

    /// A message in pieces goes on as its ranks' processors let it now.
    fn set_rate(&mut self, number: u32) {
        let now = self.events.now();
        let Message { from, to, bytes, loads, takes, link, .. } = self.messages[number as usize];
        let crowd = self.ranks[from as usize].load.max(self.ranks[to as usize].load).max(1.0);
        let slowed_by = self.node_of(from).slowed_by;
        let is_near = link == Link::Cache;
        let slowdown = if is_near { 1.0 } else { self.slowdown(bytes, slowed_by) };
        let seconds = self.message_costs(bytes).trip * crowd * slowdown;
        let new_takes = loads.map(|load| if is_near { 0.0 } else { load / crowd });
        for ((rank, new), old) in [from, to].into_iter().zip(new_takes).zip(takes) {
            self.count_busy_of(rank, |own| own.taken += new - old);
        }
        let message = &mut self.messages[number as usize];
        message.left -= message.rate * (now - message.since);
        (message.rate, message.since, message.takes) = (1.0 / seconds, now, new_takes);
        let at = now + message.left.max(0.0) * seconds;
        // Later than planned, it is found out then.
        if at < message.due {
            message.due = at;
            self.events.put(at, u64::from(number), Event::Copied(number));
        }
    }

    /// What changes with a rank changes the number of busy ones.
    fn count_busy_of(&mut self, rank: u32, change: impl FnOnce(&mut Rank)) {
        let own = &mut self.ranks[rank as usize];
        let before = own.busy();
        change(own);
        let more = own.busy() - before;
        if more == 0.0 {
            return;
        }
        let (now, place) = (self.events.now(), self.places[rank as usize].0);
        let node = &mut self.nodes[place as usize];
        node.busy_seconds += node.busy * (now - node.since);
        (node.since, node.busy) = (now, node.busy + more);
        if !node.is_changed {
            node.is_changed = true;
            self.changed.push(place);
        }
    }

    /// Everything goes on as so many busy ranks of its node let it.
    fn count_busy(&mut self) {
        while let Some(place) = self.changed.pop() {
            let node = &mut self.nodes[place as usize];
            node.is_changed = false;
            let busy = node.busy.max(1.0);
            if (busy - node.slowed_by).abs() > CHANGE * node.slowed_by {
                node.slowed_by = busy;
                self.slow_anew(place);
            }
        }
    }

    fn slow_anew(&mut self, place: u32) {
        for index in 0..self.nodes[place as usize].streams.len() {
            self.set_rate(self.nodes[place as usize].streams[index]);
        }
        let now = self.events.now();
        for index in 0..self.nodes[place as usize].ranks.len() {
            let rank = self.nodes[place as usize].ranks[index];
            let Some(Work { task, .. }) = self.ranks[rank as usize].work else { continue };
            if task.link != Link::Memory {
                continue;
            }
            let seconds = self.seconds_of(rank, task);
            let Some(work) = &mut self.ranks[rank as usize].work else { continue };
            let done = if work.seconds > 0.0 { (now - work.since) / work.seconds } else { 1.0 };
            work.left = (work.left - done).max(0.0);
            (work.since, work.seconds) = (now, seconds);
            let end = now + work.left * seconds;
            if end < work.due {
                work.due = end;
                self.events.put(end, u64::from(rank), Event::Turn(rank));
            }
        }
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

/// What some bytes take; no less than their part of what the whole takes in one piece.
fn at_rate_of(bytes: u64, whole: u64, seconds: impl Fn(u64) -> f64) -> f64 {
    let alone = seconds(bytes);
    match whole > bytes {
        true => alone.max(seconds(whole) * bytes as f64 / whole as f64),
        false => alone,
    }
}
