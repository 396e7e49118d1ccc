//! n blocks of one rank.
//!
//! Ranks are counted from the root. In round i, with k = i mod q, a rank sends to the one `skip(k)`
//! after it and hears from the one as far before it. Which block comes in round k is told by the
//! rank's *schedule*: a number for each of the q = ceil(log2 p) rounds, one of them the block that
//! the rank gets first of all, the others of blocks that come q rounds later.
//!
//! A block is handed on as soon as in the next round. Where a message is under way for longer than
//! a round takes, every rank waits for another one in every round, and these waits go round in
//! circles: a round then takes most of a latency. So the blocks may be dealt to several *streams*
//! that take turns, round by round, each a broadcast of its own: what comes in a round is handed on
//! as many rounds later as there are streams, at the cost of q - 1 more rounds for each.

use std::cell::RefCell;

/// Most rounds of a schedule: there are at most 2^30 ranks.
const MOST: usize = 32;

/// Of no more ranks are schedules kept.
const MAX_KEPT: u32 = 1 << 16;

/// The schedules that were asked for, of one number of ranks: to find one takes O(log^2 p).
struct ScheduleCache {
    ranks: u32,
    /// By rank; [`UNKNOWN`] where it was not asked for.
    schedules: Vec<[i8; MOST]>,
}

const UNKNOWN: [i8; MOST] = [i8::MAX; MOST];

thread_local! {
    /// Of the last numbers of ranks.
    static KEPT: RefCell<Vec<ScheduleCache>> = const { RefCell::new(Vec::new()) };
}

/// Groups of ranks take turns where collectives are composed of others.
const KEPT_AT_ONCE: usize = 4;

/// q: rounds of a schedule.
const fn length(ranks: u32) -> u32 {
    u32::BITS - (ranks - 1).leading_zeros()
}

/// What every rank sends and receives when.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct BlockSchedule {
    ranks: u32,
    /// Relative to the root.
    rank: u32,
    blocks: u64,
    /// At least 1, and no more than there are blocks.
    streams: u64,
}

/// With which rank, counted from the root, and which block.
pub(in super::super) type BlockMessage = (u32, u64);

impl BlockSchedule {
    pub fn new(ranks: u32, rank: u32, blocks: u64, streams: u32) -> Self {
        BlockSchedule { ranks, rank, blocks, streams: u64::from(streams).clamp(1, blocks.max(1)) }
    }

    /// q.
    pub const fn length(&self) -> u32 {
        length(self.ranks)
    }

    /// Number of rounds.
    pub const fn rounds(&self) -> u64 {
        if self.ranks < 2 || self.blocks == 0 {
            return 0;
        }
        self.blocks + self.streams * (self.length() as u64 - 1)
    }

    /// Rounds that a message may be waited for late: a block is mostly handed on within so many.
    pub const fn window(&self) -> u64 {
        self.length() as u64 * self.streams + 1
    }

    /// The rounds of the same stream before a round that are within the window, the latest first.
    pub fn before(&self, round: u64) -> impl DoubleEndedIterator<Item = u64> + use<> {
        let streams = self.streams;
        (1..u64::from(self.length())).filter_map(move |turns| round.checked_sub(turns * streams))
    }

    /// The rounds of the same stream after a round and before another one.
    pub fn between(&self, round: u64, end: u64) -> impl Iterator<Item = u64> + use<> {
        (round + self.streams..end).step_by(self.streams as usize)
    }

    /// What comes in a round.
    pub fn received(&self, index: u64) -> Option<BlockMessage> {
        let (stream, turn) = self.stream(index);
        let (from, block) = stream.received(turn)?;
        Some((from, self.dealt(index, block)))
    }

    /// What goes in a round.
    pub fn sent(&self, index: u64) -> Option<BlockMessage> {
        let (stream, turn) = self.stream(index);
        let (to, block) = stream.sent(turn)?;
        Some((to, self.dealt(index, block)))
    }

    /// Whose turn a round is, and which of that stream's rounds. The first streams have the blocks
    /// that are left over.
    fn stream(&self, index: u64) -> (Stream, u64) {
        let (number, turn) = (index % self.streams, index / self.streams);
        let left_over = number < self.blocks % self.streams;
        let blocks = self.blocks / self.streams + u64::from(left_over);
        (Stream { ranks: self.ranks, rank: self.rank, blocks }, turn)
    }

    /// A block of a round's stream, among all.
    const fn dealt(&self, index: u64, block: u64) -> u64 {
        block * self.streams + index % self.streams
    }
}

/// One of the streams.
#[derive(Debug, Clone, Copy)]
struct Stream {
    ranks: u32,
    /// Relative to the root.
    rank: u32,
    blocks: u64,
}

impl Stream {
    /// q.
    const fn length(&self) -> u32 {
        length(self.ranks)
    }

    /// The distance in a round of the schedule; for q, the number of ranks.
    const fn skip(&self, round: u32) -> u32 {
        (self.ranks as u64).div_ceil(1 << (self.length() - round)) as u32
    }

    /// What comes in a round.
    fn received(&self, index: u64) -> Option<BlockMessage> {
        let ranks = u64::from(self.ranks);
        let from = (u64::from(self.rank) + ranks - self.distance(index)) % ranks;
        Some((from as u32, self.block(self.rank, index)?))
    }

    /// What goes in a round.
    fn sent(&self, index: u64) -> Option<BlockMessage> {
        let to = (u64::from(self.rank) + self.distance(index)) % u64::from(self.ranks);
        Some((to as u32, self.block(to as u32, index)?))
    }

    /// Rounds of the schedule that have passed, and of its next turn: the last block goes in the last
    /// round of one.
    fn turn(&self, index: u64) -> (u64, u32) {
        let length = u64::from(self.length());
        let at = index + self.idle();
        (at / length, (at % length) as u32)
    }

    fn idle(&self) -> u64 {
        let length = u64::from(self.length());
        (length - (self.blocks - 1) % length) % length
    }

    fn distance(&self, index: u64) -> u64 {
        u64::from(self.skip(self.turn(index).1))
    }

    /// The block that a rank receives in a round; the root none.
    fn block(&self, receiver: u32, index: u64) -> Option<u64> {
        if receiver == 0 {
            return None;
        }
        let (turns, k) = self.turn(index);
        let later = (u64::from(self.length()) * turns) as i64 - self.idle() as i64;
        let number = u64::try_from(self.entry(receiver, k) + later).ok()?;
        Some(number.min(self.blocks - 1))
    }

    /// One number of a rank's schedule.
    fn entry(&self, rank: u32, k: u32) -> i64 {
        let found = match self.ranks > MAX_KEPT {
            true => self.schedule_of(rank),
            false => KEPT.with_borrow_mut(|kept| self.kept(kept, rank)),
        };
        i64::from(found[k as usize])
    }

    fn kept(&self, all: &mut Vec<ScheduleCache>, rank: u32) -> [i8; MOST] {
        let place = all.iter().position(|kept| kept.ranks == self.ranks).unwrap_or_else(|| {
            all.truncate(KEPT_AT_ONCE - 1);
            let schedules = vec![UNKNOWN; self.ranks as usize];
            all.insert(0, ScheduleCache { ranks: self.ranks, schedules });
            0
        });
        let schedule = &mut all[place].schedules[rank as usize];
        if *schedule == UNKNOWN {
            *schedule = self.schedule_of(rank);
        }
        *schedule
    }

    /// The index of the skip that takes a rank to its place at last, when the greatest that fit are
    /// taken.
    fn base_block(&self, rank: u32) -> u32 {
        let mut left = rank;
        for index in (0..self.length()).rev() {
            let skip = self.skip(index);
            if skip <= left {
                left -= skip;
                if left == 0 {
                    return index;
                }
            }
        }
        self.length()
    }

    /// The schedule of a rank: by round, its block, or that less q where it comes a turn later.
    fn schedule_of(&self, rank: u32) -> [i8; MOST] {
        let mut search = ScheduleSearch::new(self, rank);
        search.visit(0, 2 * u64::from(self.ranks), search.first());
        let (length, base) = (self.length(), self.base_block(rank));
        let mut schedule = [0; MOST];
        for (place, &entry) in schedule.iter_mut().zip(&search.found[..search.rounds]) {
            let late = entry as i8 - length as i8;
            *place = if late == 0 && rank > 0 { base as i8 } else { late };
        }
        schedule
    }
}

/// The search for a rank's schedule, depth first: ways from the root by skips, each but one of them
/// once.
struct ScheduleSearch<'a> {
    of: &'a Stream,
    rank: u32,
    /// The numbers that are left, descending: a list.
    next: [u8; MOST + 1],
    before: [u8; MOST + 1],
    found: [u8; MOST],
    rounds: usize,
}

/// The end of the list, and what comes before its first number.
const END: u8 = MOST as u8;

impl<'a> ScheduleSearch<'a> {
    fn new(of: &'a Stream, rank: u32) -> Self {
        let (mut next, mut before) = ([END; MOST + 1], [END; MOST + 1]);
        for number in 0..=of.length() as u8 {
            before[usize::from(number)] = number + 1;
            next[usize::from(number)] = number.checked_sub(1).unwrap_or(END);
        }
        let top = of.length() as u8;
        before[usize::from(top)] = END;
        // The list is a ring through its end.
        next[usize::from(END)] = top;
        before[usize::from(END)] = 0;
        let mut search = ScheduleSearch { of, rank, next, before, found: [0; MOST], rounds: 0 };
        search.remove(of.base_block(rank) as u8);
        search
    }

    fn first(&self) -> u8 {
        self.next[usize::from(END)]
    }

    /// Its link onwards stays.
    fn remove(&mut self, number: u8) {
        let (before, next) = (self.before[usize::from(number)], self.next[usize::from(number)]);
        self.next[usize::from(before)] = next;
        self.before[usize::from(next)] = before;
    }

    fn done(&self) -> bool {
        self.rounds == self.of.length() as usize
    }

    /// How far a way may lead that is to come in a round of the schedule.
    fn reach(&self, round: usize) -> u64 {
        u64::from(self.rank) + u64::from(self.of.ranks) - u64::from(self.of.skip(round as u32))
    }

    fn visit(&mut self, at: u64, limit: u64, first: u8) {
        let (mut limit, mut number) = (limit, first);
        while number != END && !self.done() {
            let further = at + u64::from(self.of.skip(u32::from(number)));
            if further <= self.reach(self.rounds) && further < limit {
                if further <= self.reach(self.rounds + 1) {
                    self.visit(further, limit, number);
                    if self.done() {
                        return;
                    }
                }
                if at > self.reach(self.rounds + 1) {
                    return;
                }
                limit = further;
                self.found[self.rounds] = number;
                self.rounds += 1;
                self.remove(number);
            }
            number = self.next[usize::from(number)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a right table is, by the paper: a rank receives each of the last q blocks once, one of them
    /// its base block, and sends only what it has received before, or its base block of the turn
    /// before.
    #[test]
    fn schedules_are_right_for_many_numbers_of_ranks() {
        let many = [1000, 1023, 1025, 2049, 4097];
        for ranks in (2..=160).chain(many) {
            let all = Stream { ranks, rank: 0, blocks: 1 };
            let length = all.length();
            let q = length as i8;
            let received: Vec<_> = (0..ranks).map(|rank| all.schedule_of(rank)).collect();
            for rank in 0..ranks {
                let own = &received[rank as usize][..length as usize];
                let base = all.base_block(rank) as i8;
                let mut wanted: Vec<i8> = (-q..0).collect();
                if rank > 0 {
                    wanted[base as usize] = base;
                }
                let mut sorted = own.to_vec();
                sorted.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(sorted, wanted, "{ranks} ranks, rank {rank}");
                for k in 0..length {
                    let to = (rank + all.skip(k)) % ranks;
                    let sent = received[to as usize][k as usize];
                    let known = &own[..k as usize];
                    let right = match rank {
                        0 => to == 0 || sent == k as i8,
                        _ => to == 0 || sent == base - q || known.contains(&sent),
                    };
                    assert!(right, "{ranks} ranks, rank {rank} sends {sent} in round {k}");
                }
            }
        }
    }

    #[test]
    fn the_rounds_are_the_fewest() {
        for (ranks, blocks, rounds) in [(1, 5, 0), (2, 5, 5), (9, 1, 4), (9, 10, 13), (64, 0, 0)] {
            assert_eq!(BlockSchedule::new(ranks, 0, blocks, 1).rounds(), rounds);
        }
        // Each stream has q - 1 rounds beside its blocks; there are no more streams than blocks.
        for (blocks, streams, rounds) in [(10, 2, 16), (10, 3, 19), (2, 8, 8), (0, 3, 0)] {
            assert_eq!(BlockSchedule::new(9, 0, blocks, streams).rounds(), rounds);
        }
    }
}
