//! Ports that all messages under way share, as connections share a link.
//!
//! A message takes up to four ports: its sender's, its receiver's, and those of their two nodes. Inside
//! a node ranks have ports of their own, which what comes from other nodes does not pass. Each
//! port gives all its messages the same bytes per second, so that they take it for the sum of their gaps
//! in all; a message goes on as fast as the slowest of its ports lets it. Messages of one pair of ranks
//! follow each other.
//!
//! That is how TCP connections and the queue pairs of an adapter share a link: who sends to three
//! others at once serves none of them before the others. Only the ports where something begins or ends
//! are looked at, so a message that is held up at one of its ports keeps its part of the others.
//!
//! A link sends whole frames, each message's in its turn. So the bytes of a message but its last frame
//! pass as above, and its last frame as if it were a message by itself: when it is at the head of its
//! sender's port, that passes nothing else, nor does its receiver's port then. Of k equal messages at once
//! the i-th has passed when all but k - i frames have, as in round robin by frames; messages of one frame
//! pass in turn. With frames of no bytes all pass together to their ends.

use std::collections::{VecDeque, hash_map::Entry};

use rustc_hash::FxHashMap;

use super::ROUNDING;

const NONE: u32 = u32::MAX;

/// Ports of one message.
const PORTS: usize = 4;

/// One message that passes its ports.
#[derive(Debug, Clone, Copy)]
struct Passing {
    /// Its number in [`Arrivals`](super::arrivals::Arrivals).
    message: u32,
    pair: (u32, u32),
    ports: [u32; PORTS],
    /// How long it takes each of them alone, in seconds.
    gaps: [f64; PORTS],
    /// Bytes, and one, so that a message of none goes on too.
    bytes: f64,
    /// Part of it that is left before its last frame, from 1 to 0, at the time `since`, which is later than
    /// now while last frames of others hold it up.
    left: f64,
    since: f64,
    /// Part of it that is its last frame; 0 where all messages pass together to their ends.
    last_frame: f64,
    stage: PassageStage,
    /// Seconds for all of it, as its ports let it now.
    takes: f64,
    /// The earliest time at which it is looked at again: what was planned for later counts for nothing.
    due: f64,
    /// Among those looked at at one time: whose last frame goes first. 0 without frames.
    order: u64,
    alive: bool,
}

impl Passing {
    /// What has passed until now, at the rate until now.
    fn go_on_until(&mut self, now: f64) {
        if now > self.since {
            if self.takes > 0.0 {
                self.left = (self.left - (now - self.since) / self.takes).max(0.0);
            }
            self.since = now;
        }
    }
}

/// How far a message is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PassageStage {
    /// It passes together with others.
    Shares,
    /// Its last frame waits for its sender's port.
    Waits,
    /// Its last frame passes both ports.
    Ends,
}

/// A port that passes more messages at once leaves their rates as they are while its load changes by less
/// than [`CHANGE`]: else each of some thousands that come or go would have all others looked at.
const FEW: usize = 64;
/// Part of a load. Rates are passed on this much too low then, so that a port never passes more than it can.
const CHANGE: f64 = 1.0 / 64.0;

#[derive(Debug, Default)]
struct SharedPort {
    /// Seconds that it takes for one byte of each of its messages.
    seconds_per_byte: f64,
    /// By what its messages' rates are made: the same, or somewhat more.
    announced_load: f64,
    passing: Vec<u32>,
    /// When the last frames are through for which all others wait.
    free: f64,
}

/// What describes a message when it comes to its ports.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedPortMessage {
    pub message: u32,
    pub pair: (u32, u32),
    /// Whose ports it takes: the pair's, or those of ranks that do the same.
    pub ends: (u32, u32),
    pub bytes: u64,
    /// Of the sender's port and the receiver's.
    pub gaps: [f64; 2],
    /// The ports of the two nodes, where several ranks share them, and how long it takes them.
    pub nodes: [Option<(u32, f64)>; 2],
    /// Whether it stays inside a node of several.
    pub is_inside: bool,
}

/// What came of looking at a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PassageCheck {
    /// It has passed; alone it would have taken so many seconds.
    Passed { message: u32, alone: f64 },
    /// It is to be looked at again then.
    Later { at: f64 },
    /// There is none.
    Nothing,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct SharedPorts {
    ranks: u32,
    nodes: u32,
    /// Bytes of a frame.
    frame: f64,
    ports: Vec<SharedPort>,
    pool: Vec<Passing>,
    unused: Vec<u32>,
    /// Those behind the one that passes, by pair of ranks.
    pairs: FxHashMap<(u32, u32), VecDeque<SharedPortMessage>>,
    /// When to look at which message.
    looks: VecDeque<(f64, u32)>,
    /// Messages that came, where there are frames.
    came: u64,
}

impl SharedPorts {
    /// Forgets everything. Frames are of so many bytes; 0 where nodes share ports.
    pub fn begin(&mut self, ranks: u32, nodes: u32, frame: u64) {
        (self.ranks, self.nodes) = (ranks, nodes);
        self.frame = if nodes == 0 { frame as f64 } else { 0.0 };
        self.ports.clear();
        self.pool.clear();
        self.unused.clear();
        self.pairs.clear();
        self.looks.clear();
        self.came = 0;
    }

    /// The order in which messages are looked at at one time.
    pub fn order(&self, number: u32) -> u64 {
        self.pool[number as usize].order
    }

    /// A message comes to its ports.
    pub fn enter(&mut self, now: f64, entering: SharedPortMessage) {
        if self.ports.is_empty() {
            let levels = if self.nodes > 0 { 2 } else { 1 };
            let count = 2 * (levels * self.ranks as usize + self.nodes as usize);
            self.ports.resize_with(count, SharedPort::default);
        }
        match self.pairs.entry(entering.pair) {
            Entry::Occupied(mut behind) => behind.get_mut().push_back(entering),
            Entry::Vacant(free) => {
                free.insert(VecDeque::new());
                if !self.pass(now, entering) {
                    self.pairs.remove(&entering.pair);
                }
            }
        }
    }

    /// A message that is to be looked at, and when: all that were planned before stay.
    pub fn next_look(&mut self) -> Option<(f64, u32)> {
        self.looks.pop_front()
    }

    /// Whether a message has passed.
    pub fn look(&mut self, now: f64, number: u32) -> PassageCheck {
        let Passing { message, gaps, left, since, takes, due, alive, stage, last_frame, .. } =
            self.pool[number as usize];
        // Planned before something earlier was, or for the message that had this number before: it is looked
        // at when due. Else the looks would never become fewer.
        if !alive || now < due {
            return PassageCheck::Nothing;
        }
        match stage {
            PassageStage::Shares => {
                let at = since + left * takes;
                if at > now * (1.0 + ROUNDING) {
                    self.pool[number as usize].due = at;
                    return PassageCheck::Later { at };
                }
                self.leave(now, number);
                if last_frame > 0.0 {
                    self.queue_last_frame(now, number);
                    self.let_next_pass(now, number);
                    return PassageCheck::Nothing;
                }
            }
            PassageStage::Waits => {
                self.pass_last_frame(now, number);
                return PassageCheck::Nothing;
            }
            PassageStage::Ends => {}
        }
        self.pool[number as usize].alive = false;
        self.unused.push(number);
        if last_frame == 0.0 {
            self.let_next_pass(now, number);
        }
        PassageCheck::Passed { message, alone: gaps.into_iter().fold(0.0, f64::max) }
    }

    /// Of this message's pair, nobody passes together with others any more.
    fn let_next_pass(&mut self, now: f64, number: u32) {
        let pair = self.pool[number as usize].pair;
        while let Some(next) = self.pairs.get_mut(&pair).and_then(VecDeque::pop_front) {
            if self.pass(now, next) {
                return;
            }
        }
        self.pairs.remove(&pair);
    }

    /// The last frame of a message passes its sender's port behind those that came before.
    fn queue_last_frame(&mut self, now: f64, number: u32) {
        let Passing { ports: [out, ..], gaps, last_frame, .. } = self.pool[number as usize];
        let begin = self.hold_up(now, out, last_frame * gaps[0]);
        let passing = &mut self.pool[number as usize];
        (passing.stage, passing.due) = (PassageStage::Waits, begin);
        if begin > now {
            self.looks.push_back((begin, number));
        } else {
            self.pass_last_frame(now, number);
        }
    }

    /// It begins to leave, and passes its receiver's port behind those that came before.
    fn pass_last_frame(&mut self, now: f64, number: u32) {
        let Passing { ports: [_, into, ..], gaps, last_frame, .. } = self.pool[number as usize];
        let begin = self.hold_up(now, into, last_frame * gaps[1]);
        let passing = &mut self.pool[number as usize];
        passing.due = begin + last_frame * gaps[0].max(gaps[1]);
        passing.stage = PassageStage::Ends;
        self.looks.push_back((passing.due, number));
    }

    /// For so many seconds a port passes one frame alone, from when it gives; all others wait.
    fn hold_up(&mut self, now: f64, place: u32, seconds: f64) -> f64 {
        let port = &mut self.ports[place as usize];
        let begin = port.free.max(now);
        port.free = begin + seconds;
        for &other in &port.passing {
            let other = &mut self.pool[other as usize];
            other.go_on_until(now);
            other.since = other.since.max(port.free);
        }
        begin
    }

    /// Numbers of its ports: by direction and rank, then by direction and node, then those of ranks inside nodes.
    fn ports_of(&self, entering: &SharedPortMessage) -> [u32; PORTS] {
        let of_node = |direction: u32| {
            let first = 2 * self.ranks + direction * self.nodes;
            entering.nodes[direction as usize].map_or(NONE, |(node, _)| first + node)
        };
        let first = if entering.is_inside { 2 * (self.ranks + self.nodes) } else { 0 };
        let (from, to) = entering.ends;
        [first + from, first + self.ranks + to, of_node(0), of_node(1)]
    }

    /// A message begins to pass; whether those of its pair have to wait behind it.
    fn pass(&mut self, now: f64, entering: SharedPortMessage) -> bool {
        let gap_of = |direction: usize| entering.nodes[direction].map_or(0.0, |(_, gap)| gap);
        let [out, into] = entering.gaps;
        let ports = self.ports_of(&entering);
        self.came += u64::from(self.frame > 0.0);
        let bytes = entering.bytes as f64;
        let left = if self.frame > 0.0 { (1.0 - self.frame / bytes).max(0.0) } else { 1.0 };
        let free = |port: u32| self.ports.get(port as usize).map_or(0.0, |port| port.free);
        let passing = Passing {
            message: entering.message,
            pair: entering.pair,
            ports,
            gaps: [out, into, gap_of(0), gap_of(1)],
            bytes: bytes + 1.0,
            left,
            since: ports.into_iter().map(free).fold(now, f64::max),
            last_frame: 1.0 - left,
            stage: PassageStage::Shares,
            takes: f64::INFINITY,
            due: f64::INFINITY,
            order: self.came,
            alive: true,
        };
        let number = match self.unused.pop() {
            Some(number) => {
                self.pool[number as usize] = passing;
                number
            }
            None => {
                self.pool.push(passing);
                self.pool.len() as u32 - 1
            }
        };
        if left == 0.0 {
            self.queue_last_frame(now, number);
            return false;
        }
        for (port, gap) in passing.ports.into_iter().zip(passing.gaps) {
            if let Some(port) = self.ports.get_mut(port as usize) {
                port.seconds_per_byte += gap / passing.bytes;
                port.passing.push(number);
            }
        }
        self.share_anew(now, passing.ports);
        self.set_rate(now, number);
        true
    }

    fn leave(&mut self, now: f64, number: u32) {
        let Passing { ports, gaps, bytes, .. } = self.pool[number as usize];
        for (port, gap) in ports.into_iter().zip(gaps) {
            if let Some(port) = self.ports.get_mut(port as usize) {
                port.passing.retain(|other| *other != number);
                let rest = port.seconds_per_byte - gap / bytes;
                // Nothing of rounding stays behind.
                port.seconds_per_byte = if port.passing.is_empty() { 0.0 } else { rest };
            }
        }
        self.share_anew(now, ports);
    }

    /// New rates for all that pass these ports, where the ports' loads have changed.
    fn share_anew(&mut self, now: f64, ports: [u32; PORTS]) {
        for place in ports {
            let Some(port) = self.ports.get_mut(place as usize) else { continue };
            let (load, announced) = (port.seconds_per_byte, port.announced_load);
            port.announced_load = match port.passing.len() {
                ..=FEW => load,
                _ if (announced * (1.0 - 2.0 * CHANGE)..=announced).contains(&load) => continue,
                _ => load * (1.0 + CHANGE),
            };
            for index in 0..port.passing.len() {
                let number = self.ports[place as usize].passing[index];
                self.set_rate(now, number);
            }
        }
    }

    /// A message goes on as its ports let it now.
    fn set_rate(&mut self, now: f64, number: u32) {
        let passing = &mut self.pool[number as usize];
        let loads = passing
            .ports
            .iter()
            .map(|port| self.ports.get(*port as usize).map_or(0.0, |port| port.announced_load));
        let slowest = loads.fold(0.0, f64::max) * passing.bytes;
        passing.go_on_until(now);
        passing.takes = slowest;
        let at = passing.since + passing.left * passing.takes;
        // Later than planned, it is found out then.
        if at < passing.due {
            passing.due = at;
            self.looks.push_back((at, number));
        }
    }
}

#[cfg(test)]
mod tests;
