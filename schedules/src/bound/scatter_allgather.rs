//! A lower bound of scatter-allgather: the schedule followed rank by rank, but that no incoming
//! port holds up a message.
//!
//! A port only delays, and what is delayed only delays what comes after it, so that all is later
//! in truth. One step is a few additions on plain arrays: some hundred times quicker than the
//! simulator, which makes every round of every rank anew.

use crate::{
    Call, ElementSpan,
    simulator::{Costs, Options, later},
    topology::{Binomial, Tree, TreeShape},
};

/// Seconds that a broadcast by [`scatter_allgather`](crate::algorithms) surely takes; once that is
/// known to be more than `enough`, the rest is not looked at.
pub(super) fn at_least(call: &Call<'_>, costs: &impl Costs, options: Options, enough: f64) -> f64 {
    if call.ranks < 2 {
        return 0.0;
    }
    let alone = levels_alone(call, costs, options);
    if alone > enough {
        return alone;
    }
    follow(FollowedRanks::<_, false>::new(call, costs, options), enough)
}

/// The most that any chain of messages costs, those included that go on where an incoming port is
/// free of the message before.
pub(super) fn longest_chain(call: &Call<'_>, costs: &impl Costs, options: Options) -> f64 {
    if call.ranks < 2 {
        return 0.0;
    }
    follow(FollowedRanks::<_, true>::new(call, costs, options), f64::INFINITY)
}

fn follow<C: Costs, const PORTS: bool>(mut ranks: FollowedRanks<'_, C, PORTS>, enough: f64) -> f64 {
    ranks.scatter();
    let mut latest = 0.0;
    for level in groups(ranks.ranks.len() as u32).iter().rev() {
        latest = ranks.exchange(level);
        if latest > enough {
            break;
        }
    }
    latest
}

/// What the levels take, had all ranks begun them at once: on each but the first one, that of pairs,
/// every rank waits for a message of half a group, whose sender has done the level before.
fn levels_alone(call: &Call<'_>, costs: &impl Costs, options: Options) -> f64 {
    let smallest_part = call.count / u64::from(call.ranks);
    let levels = u32::BITS - (call.ranks - 1).leading_zeros();
    // The smaller half of the smallest group of a level has ranks / 2^level, rounded down.
    let halves = (1..levels).map(|level| u64::from(call.ranks >> level) * smallest_part);
    let message = |count: u64| {
        let bytes = count * options.element_bytes;
        costs.send_overhead(bytes) + costs.flight(bytes) + costs.receive_overhead(bytes)
    };
    halves.filter(|count| *count > 0).map(message).sum()
}

/// Where the groups of each level begin, from everybody to pairs, each with its end behind the last
/// one; see `Halves`, which tells it rank by rank.
fn groups(ranks: u32) -> Vec<Vec<u32>> {
    let mut levels = vec![vec![0, ranks]];
    while levels.last().is_some_and(|last| last.windows(2).any(|group| group[1] - group[0] > 2)) {
        let finer = levels.last().into_iter().flat_map(|last| last.windows(2)).flat_map(|group| {
            let middle = middle(group[0], group[1]);
            [Some(group[0]), (middle < group[1]).then_some(middle)]
        });
        let finer = finer.flatten().chain([ranks]).collect();
        levels.push(finer);
    }
    levels
}

const fn middle(first: u32, end: u32) -> u32 {
    first + (end - first).div_ceil(2)
}

/// How far each rank is, by its number relative to the root; with `PORTS`, messages pass its incoming
/// port one after the other, as it waits for them.
struct FollowedRanks<'a, C, const PORTS: bool> {
    ranks: Vec<FollowedRank>,
    /// Where each rank's part begins, in elements; one more than ranks.
    starts: Vec<u64>,
    costs: &'a C,
    element_bytes: u64,
    known: Vec<SizeCosts>,
}

#[derive(Clone, Copy, Default)]
struct FollowedRank {
    clock: f64,
    /// When the outgoing port is free.
    free: f64,
    /// When the incoming port is free.
    passed: f64,
    /// To how many the rank keeps sending, as the gap asks for.
    destinations: u32,
}

impl FollowedRank {
    /// When a message has left the processor.
    #[inline]
    fn send(&mut self, rates: &SizeCosts) -> f64 {
        let begin = later(self.clock, self.free);
        self.free = begin + rates.gaps[self.destinations as usize];
        self.clock = begin + rates.send;
        self.clock
    }

    #[inline]
    fn receive<const PORTS: bool>(&mut self, left: f64, rates: &SizeCosts) {
        let passes = if PORTS { later(left, self.passed) } else { left };
        self.passed = passes + rates.receive_gap;
        self.clock = later(self.clock, passes + rates.flight) + rates.receive;
    }
}

/// Of messages of one size.
#[derive(Clone, Copy)]
struct SizeCosts {
    bytes: u64,
    send: f64,
    receive: f64,
    flight: f64,
    receive_gap: f64,
    /// By the number of destinations; those of a binomial tree.
    gaps: [f64; MAX_CHILDREN + 1],
}

const MAX_CHILDREN: usize = u32::BITS as usize;

impl<'a, C: Costs, const PORTS: bool> FollowedRanks<'a, C, PORTS> {
    fn new(call: &Call<'_>, costs: &'a C, options: Options) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        let parts = u64::from(call.ranks);
        let starts = (0..parts).map(|part| whole.part(part, parts).start);
        FollowedRanks {
            ranks: vec![FollowedRank::default(); call.ranks as usize],
            starts: starts.chain([call.count]).collect(),
            costs,
            element_bytes: options.element_bytes,
            known: Vec::new(),
        }
    }

    /// The costs of sending the parts of some ranks; none if they are empty.
    #[inline]
    fn rates(&mut self, first: u32, end: u32) -> Option<usize> {
        let count = self.starts[end as usize] - self.starts[first as usize];
        if count == 0 {
            return None;
        }
        let bytes = count * self.element_bytes;
        // A level has few sizes, and neighbours mostly the same one.
        let known = self.known.iter().rposition(|rates| rates.bytes == bytes);
        Some(known.unwrap_or_else(|| self.learn(bytes)))
    }

    #[cold]
    fn learn(&mut self, bytes: u64) -> usize {
        let most = u32::BITS - (self.ranks.len() as u32 - 1).leading_zeros();
        let mut gaps = [0.0; MAX_CHILDREN + 1];
        for (destinations, gap) in (0..=most).zip(&mut gaps) {
            *gap = self.costs.gap(bytes, destinations.max(1));
        }
        self.known.push(SizeCosts {
            bytes,
            send: self.costs.send_overhead(bytes),
            receive: self.costs.receive_overhead(bytes),
            flight: self.costs.flight(bytes),
            receive_gap: self.costs.receive_gap(bytes),
            gaps,
        });
        self.known.len() - 1
    }

    /// Every rank hands its children the parts of their subtrees, the largest first.
    fn scatter(&mut self) {
        let ranks = self.ranks.len() as u32;
        let tree = Binomial::new(TreeShape { ranks, root: 0, fan_out: 2 });
        // A parent has a lower number.
        for rank in 0..ranks {
            let children = tree.child_count(rank);
            self.ranks[rank as usize].destinations = children.max(1);
            for child in (0..children).map(|index| tree.child_in(rank, index, Binomial::DOWNWARD)) {
                let Some(rates) = self.rates(child, child + tree.subtree(child)) else { continue };
                let rates = &self.known[rates];
                let left = self.ranks[rank as usize].send(rates);
                self.ranks[child as usize].receive::<PORTS>(left, rates);
            }
        }
    }

    /// One level: both halves of each group exchange what they hold. When the last of all is done.
    fn exchange(&mut self, groups: &[u32]) -> f64 {
        for group in groups.windows(2) {
            let [first, end] = [group[0], group[1]];
            if end - first > 1 {
                self.exchange_halves(first, middle(first, end), end);
            }
        }
        self.ranks.iter().map(|rank| rank.clock).fold(0.0, later)
    }

    fn exchange_halves(&mut self, first: u32, middle: u32, end: u32) {
        let [of_lower, of_upper] = [self.rates(first, middle), self.rates(middle, end)]
            .map(|rates| rates.map(|number| &self.known[number]));
        let group = &mut self.ranks[first as usize..end as usize];
        let (lower, upper) = group.split_at_mut((middle - first) as usize);
        let last = upper.len() - 1;
        let (paired, surplus) = lower.split_at_mut(last + 1);
        for (place, (low, up)) in paired.iter_mut().zip(upper).enumerate() {
            let from_low = of_lower.map(|rates| (low.send(rates), rates));
            let from_up = of_upper.map(|rates| (up.send(rates), rates));
            // The rank that is left over hears from the last one, and nobody from it.
            if let (true, [surplus], Some(rates)) = (place == last, &mut *surplus, of_upper) {
                surplus.receive::<PORTS>(up.send(rates), rates);
            }
            if let Some((left, rates)) = from_up {
                low.receive::<PORTS>(left, rates);
            }
            if let Some((left, rates)) = from_low {
                up.receive::<PORTS>(left, rates);
            }
        }
    }
}
