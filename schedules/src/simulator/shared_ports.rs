//! Ports that all messages under way share, as connections share a link.
//!
//! A message takes up to four ports: its sender's, its receiver's, and those of their two nodes. Each
//! port gives all its messages the same bytes per second, so that they take it for the sum of their gaps
//! in all; a message goes on as fast as the slowest of its ports lets it. Messages of one pair of ranks
//! follow each other.
//!
//! That is how TCP connections and the queue pairs of an adapter share a link: who sends to three
//! others at once serves none of them before the others. Only the ports where something begins or ends
//! are looked at, so a message that is held up at one of its ports keeps its part of the others.

use std::collections::{VecDeque, hash_map::Entry};

use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

/// Ports of one message.
const PORTS: usize = 4;

/// How much of a time its rounding may be: see [`is_before`](super::port::is_before).
const ROUNDING: f64 = 1e-12;

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
    /// Part of it that is left, from 1 to 0, at the time `since`.
    left: f64,
    since: f64,
    /// Seconds for all of it, as its ports let it now.
    takes: f64,
    /// The earliest time at which it is looked at again: what was told for later ones counts for nothing.
    due: f64,
    alive: bool,
}

/// A port that passes more messages at once leaves their rates as they are while its load changes by less
/// than [`CHANGE`]: else each of some thousands that come or go would have all others looked at.
const FEW: usize = 64;
/// Part of a load. Rates are told this much too low then, so that a port never passes more than it can.
const CHANGE: f64 = 1.0 / 64.0;

/// One port.
#[derive(Debug, Default)]
struct SharedPort {
    /// Seconds that it takes for one byte of each of its messages.
    seconds_per_byte: f64,
    /// By what its messages' rates are made: the same, or somewhat more.
    told: f64,
    /// Who passes.
    passing: Vec<u32>,
}

/// What a message is told by when it comes to its ports.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedPortMessage {
    pub message: u32,
    pub pair: (u32, u32),
    pub bytes: u64,
    /// Of the sender's port and the receiver's.
    pub gaps: [f64; 2],
    /// The ports of the two nodes, where several ranks share them, and how long it takes them.
    pub nodes: [Option<(u32, f64)>; 2],
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
    ports: Vec<SharedPort>,
    pool: Vec<Passing>,
    unused: Vec<u32>,
    /// Those behind the one that passes, by pair of ranks.
    pairs: FxHashMap<(u32, u32), VecDeque<SharedPortMessage>>,
    /// When to look at which message.
    looks: Vec<(f64, u32)>,
}

impl SharedPorts {
    /// Forgets everything.
    pub fn begin(&mut self, ranks: u32, nodes: u32) {
        (self.ranks, self.nodes) = (ranks, nodes);
        self.ports.clear();
        self.pool.clear();
        self.unused.clear();
        self.pairs.clear();
        self.looks.clear();
    }

    /// A message comes to its ports.
    pub fn enter(&mut self, now: f64, entering: SharedPortMessage) {
        if self.ports.is_empty() {
            let count = 2 * (self.ranks as usize + self.nodes as usize);
            self.ports.resize_with(count, SharedPort::default);
        }
        match self.pairs.entry(entering.pair) {
            Entry::Occupied(mut behind) => return behind.get_mut().push_back(entering),
            Entry::Vacant(free) => {
                free.insert(VecDeque::new());
            }
        }
        self.pass(now, entering);
    }

    /// Messages that are to be looked at, and when: all that were told before stay.
    pub fn looks(&mut self) -> impl Iterator<Item = (f64, u32)> {
        self.looks.drain(..)
    }

    /// Whether a message has passed.
    pub fn look(&mut self, now: f64, number: u32) -> PassageCheck {
        let Passing { message, pair, gaps, left, since, takes, due, alive, .. } =
            self.pool[number as usize];
        // Told before something earlier was, or for the message that had this number before: it is looked
        // at when due. Else what is told would never become less.
        if !alive || now < due {
            return PassageCheck::Nothing;
        }
        let at = since + left * takes;
        if at > now * (1.0 + ROUNDING) {
            self.pool[number as usize].due = at;
            return PassageCheck::Later { at };
        }
        self.leave(now, number);
        let next = self.pairs.get_mut(&pair).and_then(VecDeque::pop_front);
        match next {
            Some(next) => self.pass(now, next),
            None => drop(self.pairs.remove(&pair)),
        }
        PassageCheck::Passed { message, alone: gaps.into_iter().fold(0.0, f64::max) }
    }

    /// Numbers of its ports: by direction and rank, then by direction and node.
    fn ports_of(&self, entering: &SharedPortMessage) -> [u32; PORTS] {
        let of_node = |direction: u32| {
            let first = 2 * self.ranks + direction * self.nodes;
            entering.nodes[direction as usize].map_or(NONE, |(node, _)| first + node)
        };
        let (from, to) = entering.pair;
        [from, self.ranks + to, of_node(0), of_node(1)]
    }

    fn pass(&mut self, now: f64, entering: SharedPortMessage) {
        let gap_of = |direction: usize| entering.nodes[direction].map_or(0.0, |(_, gap)| gap);
        let [out, into] = entering.gaps;
        let passing = Passing {
            message: entering.message,
            pair: entering.pair,
            ports: self.ports_of(&entering),
            gaps: [out, into, gap_of(0), gap_of(1)],
            bytes: entering.bytes as f64 + 1.0,
            left: 1.0,
            since: now,
            takes: f64::INFINITY,
            due: f64::INFINITY,
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
        for (port, gap) in passing.ports.into_iter().zip(passing.gaps) {
            if let Some(port) = self.ports.get_mut(port as usize) {
                port.seconds_per_byte += gap / passing.bytes;
                port.passing.push(number);
            }
        }
        self.share_anew(now, passing.ports);
        self.set_rate(now, number);
    }

    fn leave(&mut self, now: f64, number: u32) {
        let Passing { ports, gaps, bytes, .. } = self.pool[number as usize];
        self.pool[number as usize].alive = false;
        self.unused.push(number);
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
            let (load, told) = (port.seconds_per_byte, port.told);
            port.told = match port.passing.len() {
                ..=FEW => load,
                _ if (told * (1.0 - 2.0 * CHANGE)..=told).contains(&load) => continue,
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
            .map(|port| self.ports.get(*port as usize).map_or(0.0, |port| port.told));
        let slowest = loads.fold(0.0, f64::max) * passing.bytes;
        if passing.takes > 0.0 {
            let passed = (now - passing.since) / passing.takes;
            passing.left = (passing.left - passed).max(0.0);
        }
        (passing.since, passing.takes) = (now, slowest);
        let at = now + passing.left * passing.takes;
        // Later than told, it is found out then.
        if at < passing.due {
            passing.due = at;
            self.looks.push((at, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each of some messages has passed; they come at these times.
    fn passes(messages: &[(f64, SharedPortMessage)]) -> Vec<f64> {
        passes_and_looks(messages).0
    }

    /// The same, and how often one was looked at.
    fn passes_and_looks(messages: &[(f64, SharedPortMessage)]) -> (Vec<f64>, usize) {
        let mut ports = SharedPorts::default();
        ports.begin(2000, 2);
        let mut looked = 0;
        let mut passed = vec![0.0; messages.len()];
        let mut open: Vec<(f64, u32)> = Vec::new();
        let mut coming = messages.iter().peekable();
        loop {
            open.extend(ports.looks());
            open.sort_by(|a, b| b.0.total_cmp(&a.0));
            let next = open.last().map_or(f64::INFINITY, |(at, _)| *at);
            if let Some((at, entering)) = coming.next_if(|(at, _)| *at <= next) {
                ports.enter(*at, *entering);
            } else if let Some((now, number)) = open.pop() {
                looked += 1;
                match ports.look(now, number) {
                    PassageCheck::Passed { message, .. } => passed[message as usize] = now,
                    PassageCheck::Later { at } => open.push((at, number)),
                    PassageCheck::Nothing => {}
                }
            } else {
                return (passed, looked);
            }
        }
    }

    fn entering(message: u32, pair: (u32, u32), bytes: u64, gap: f64) -> SharedPortMessage {
        let (gaps, nodes) = ([gap; 2], [None; 2]);
        SharedPortMessage { message, pair, bytes, gaps, nodes }
    }

    #[track_caller]
    fn assert_close(times: &[f64], wanted: &[f64]) {
        let close = |(time, wanted): (&f64, &f64)| (time - wanted).abs() < 1e-9;
        assert!(times.len() == wanted.len() && times.iter().zip(wanted).all(close), "{times:?}");
    }

    #[test]
    fn messages_to_several_ranks_leave_together_and_those_to_one_follow_each_other() {
        let apart = [entering(0, (0, 1), 999, 10.0), entering(1, (0, 2), 999, 10.0)];
        assert_close(&passes(&apart.map(|message| (0.0, message))), &[20.0, 20.0]);
        let alike = [entering(0, (0, 1), 999, 10.0), entering(1, (0, 1), 999, 10.0)];
        assert_close(&passes(&alike.map(|message| (0.0, message))), &[10.0, 20.0]);
        // Half of the first has left when the second comes.
        assert_close(&passes(&[(0.0, apart[0]), (5.0, apart[1])]), &[15.0, 20.0]);
        // A short one is soon through; the long one goes on.
        let short = entering(1, (0, 2), 99, 1.0);
        assert_close(&passes(&[(0.0, apart[0]), (2.0, short)]), &[11.0, 4.0]);
    }

    #[test]
    fn the_port_of_a_node_is_shared_by_its_ranks() {
        let by_node = |message, pair| SharedPortMessage {
            nodes: [Some((0, 6.0)), Some((1, 6.0))],
            ..entering(message, pair, 999, 10.0)
        };
        // Two ranks take 12 of the node's port, a third one 18; alone each would take 10.
        let two = [by_node(0, (0, 4)), by_node(1, (1, 5))];
        assert_close(&passes(&two.map(|message| (0.0, message))), &[12.0, 12.0]);
        let three = [two[0], two[1], by_node(2, (2, 6))];
        assert_close(&passes(&three.map(|message| (0.0, message))), &[18.0; 3]);
    }

    /// With very many at once a port is a little slower, and never faster than it can be.
    #[test]
    fn very_many_messages_take_as_long_as_their_port_does() {
        let many = (0..1000).map(|index| (0.0, entering(index, (0, 1 + index % 7), 999, 10.0)));
        let apart = (0..1000).map(|index| {
            let one = entering(index, (index, index + 1000), 999, 1.0);
            (0.0, SharedPortMessage { nodes: [Some((0, 10.0)), None], ..one })
        });
        let last = |times: Vec<f64>| times.into_iter().fold(0.0, f64::max);
        let of_seven = last(passes(&many.collect::<Vec<_>>()));
        assert!((of_seven / 10_000.0 - 1.0).abs() < 1e-6, "{of_seven}");
        let of_all = last(passes(&apart.collect::<Vec<_>>()));
        assert!((1.0 - 1e-9..1.0 + 3.0 * CHANGE).contains(&(of_all / 10_000.0)), "{of_all}");
    }

    /// What one message was to be looked at for is not looked for again with all that follow it.
    #[test]
    fn messages_in_a_row_are_looked_at_a_few_times_each() {
        let looks = |count: u32| {
            let rows = (0..count).map(|index| {
                // Four ranks hand them on to four others; every other message is a short one.
                let bytes = if index % 8 < 4 { 999 } else { 99 };
                (f64::from(index / 4), entering(index, (index % 4, 4 + index % 3), bytes, 10.0))
            });
            let (passed, looked) = passes_and_looks(&rows.collect::<Vec<_>>());
            assert!(passed.iter().all(|at| *at > 0.0));
            looked as f64 / f64::from(count)
        };
        let [few, many] = [looks(100), looks(3000)];
        assert!(many < 1.5 * few && many < 10.0, "{few} {many}");
    }

    #[test]
    fn a_receiver_hears_all_its_senders_at_once() {
        let apart = [entering(0, (1, 0), 999, 10.0), entering(1, (2, 0), 999, 10.0)];
        assert_close(&passes(&apart.map(|message| (0.0, message))), &[20.0, 20.0]);
    }
}
