//! Messages from their halves to their end, in one piece or in pieces.

use std::collections::hash_map;

use super::{Link, Machine, MemoryCosts, ROUNDING, work::Task};
use crate::simulator::{Activity, ActivityKind, LevelledCosts, event_queue::Event};

/// No message.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SlotState {
    Idle,
    Sends(u32),
    Receives(u32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Progress {
    /// A half of it is not posted yet, or it is on its way in one piece.
    Open,
    /// Both processors copy.
    Streams,
    /// In one piece, it lies ready for the receiver; in pieces, all have been copied.
    Done,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
    pub is_sent: bool,
    pub is_expected: bool,
    pub in_pieces: bool,
    pub link: Link,
    pub progress: Progress,
    /// Until both slots are done with it.
    pub readers: u8,
    /// When it began to be copied.
    pub begun: f64,
    /// What is left of it, 1 at first, at this time.
    pub left: f64,
    pub since: f64,
    /// What is copied of it per second.
    pub rate: f64,
    /// Of its ranks' processors, what it takes if nothing is in its way.
    pub loads: [f64; 2],
    /// What it takes of them now.
    pub takes: [f64; 2],
    /// When it is to be looked at.
    pub due: f64,
    /// The next one of its pair that lacks a half.
    pub next: u32,
}

/// What a message inside a node takes of its size, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageCosts {
    pub bytes: u64,
    pub trip: f64,
    pub send: f64,
    pub receive: f64,
}

impl MessageCosts {
    pub(super) fn of(costs: &impl MemoryCosts, bytes: u64) -> Self {
        let (trip, send, receive) = (costs.trip(bytes), costs.send(bytes), costs.receive(bytes));
        MessageCosts { bytes, trip, send, receive }
    }

    /// What it takes beside what the processors do.
    pub(super) fn flight(&self) -> f64 {
        (self.trip - self.send - self.receive).max(0.0)
    }
}

impl<M: MemoryCosts, C: LevelledCosts, O: FnMut(Activity)> Machine<'_, M, C, O> {
    pub(super) fn message_costs(&mut self, bytes: u64) -> MessageCosts {
        if self.message_costs.bytes != bytes {
            self.message_costs = MessageCosts::of(self.memory, bytes);
        }
        self.message_costs
    }

    pub(super) fn send(&mut self, rank: u32, peer: u32, slot: u32, bytes: u64) {
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
    pub(super) fn wait(&mut self, rank: u32, slot: u32) -> bool {
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
    pub(super) fn half(&mut self, from: u32, to: u32, bytes: u64, is_send: bool) -> u32 {
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

    pub(super) fn set_slot(&mut self, rank: u32, slot: u32, state: SlotState) {
        self.ranks[rank as usize].slots[slot as usize] = state;
    }

    /// A message in pieces whose halves are both there begins when the sender knows it.
    pub(super) fn offer(&mut self, number: u32) {
        let message = &self.messages[number as usize];
        if message.in_pieces && message.is_sent && message.is_expected {
            let at = self.events.now() + self.handshake;
            self.events.put(at, u64::from(number), Event::Transfer(number));
        }
    }

    pub(super) fn begin_stream(&mut self, number: u32) {
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
    pub(super) fn look_at(&mut self, number: u32) {
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
    pub(super) fn is_done(&mut self, number: u32) {
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
    pub(super) fn set_rate(&mut self, number: u32) {
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
}
