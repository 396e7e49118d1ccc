//! What is posted and has not met its other half, by receiving rank.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

/// Longest list that is searched; what is beyond goes into a table, so that a rank to which
/// everybody sends costs no more per message than others.
const LONGEST: u32 = 8;

/// Half of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum MessageHalf {
    /// A message on its way.
    Sent {
        /// When it left the sender's processor.
        left: f64,
        bytes: u64,
    },
    /// The same, where messages come by the clock.
    Numbered {
        /// Its number in [`Arrivals`](super::arrivals::Arrivals).
        message: u32,
    },
    /// A rendezvous send: it waits for its receive.
    Offered {
        /// Its number in [`Offers`](super::rendezvous::Offers).
        offer: u32,
        /// When it was posted.
        posted: f64,
        bytes: u64,
    },
    /// A posted receive.
    Expected {
        /// The receiver's slot.
        slot: u32,
        /// When it was posted.
        posted: f64,
    },
}

impl MessageHalf {
    #[inline]
    const fn is_expected(&self) -> bool {
        matches!(self, MessageHalf::Expected { .. })
    }
}

/// One rank's part: a half without more ado, and what else there is in the [`Mail`].
///
/// Nearly always there is at most one half, so it lies with what else a message touches of its
/// rank. It takes little room: a number says that the half is not [`MessageHalf::Sent`], a size that no
/// message has what else it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mailbox {
    /// Whose half it is, or [`EMPTY`]; with [`NO_OFFER`] if there are others elsewhere.
    peer: u32,
    /// The receiver's slot, the message, or the offer.
    number: u32,
    time: f64,
    bytes: u64,
}

const NO_OFFER: u32 = 1 << 31;
const EMPTY: u32 = NO_OFFER - 1;
/// In place of a size: it is no offer.
const EXPECTED: u64 = u64::MAX;
const NUMBERED: u64 = u64::MAX - 1;

impl Mailbox {
    pub const EMPTY: Mailbox = Mailbox { peer: EMPTY, number: NONE, time: 0.0, bytes: 0 };

    #[inline]
    const fn half(&self) -> MessageHalf {
        match (self.number, self.bytes) {
            (NONE, bytes) => MessageHalf::Sent { left: self.time, bytes },
            (slot, EXPECTED) => MessageHalf::Expected { slot, posted: self.time },
            (message, NUMBERED) => MessageHalf::Numbered { message },
            (offer, bytes) => MessageHalf::Offered { offer, posted: self.time, bytes },
        }
    }

    /// Takes a half in, where there is none.
    #[inline]
    const fn fill(&mut self, peer: u32, half: MessageHalf) {
        let (number, time, bytes) = match half {
            MessageHalf::Sent { left, bytes } => (NONE, left, bytes),
            MessageHalf::Offered { offer, posted, bytes } => (offer, posted, bytes),
            MessageHalf::Numbered { message } => (message, 0.0, NUMBERED),
            MessageHalf::Expected { slot, posted } => (slot, posted, EXPECTED),
        };
        *self = Mailbox { peer: peer | (self.peer & NO_OFFER), number, time, bytes };
    }
}

#[derive(Debug, Clone, Copy)]
struct ListNode {
    peer: u32,
    next: u32,
    half: MessageHalf,
}

/// A first-in first-out list in the pool.
#[derive(Debug, Clone, Copy)]
struct FifoList {
    head: u32,
    tail: u32,
}

impl FifoList {
    const EMPTY: FifoList = FifoList { head: NONE, tail: NONE };
}

/// What a rank's box doesn't hold.
#[derive(Debug, Clone, Copy)]
struct Rest {
    list: FifoList,
    length: u32,
    /// Entries in the table.
    spilled: u32,
}

/// What the boxes don't hold.
#[derive(Debug)]
pub(super) struct Mail {
    /// By rank; none at all until something is put there.
    rests: Vec<Rest>,
    pool: Vec<ListNode>,
    unused: u32,
    /// By receiver and sender.
    table: FxHashMap<(u32, u32), FifoList>,
}

impl Default for Mail {
    fn default() -> Self {
        Mail { rests: Vec::new(), pool: Vec::new(), unused: NONE, table: FxHashMap::default() }
    }
}

impl Mail {
    /// Forgets everything; the memory is kept.
    pub fn clear(&mut self) {
        self.rests.clear();
        self.pool.clear();
        self.unused = NONE;
        self.table.clear();
    }

    /// Takes the oldest entry of `peer` that is the other half of `half`, or puts `half` there.
    ///
    /// All entries of one pair lack the same half, so the first of the peer's decides. `ranks` is
    /// the number of boxes.
    #[inline]
    pub fn match_half(
        &mut self,
        boxed: &mut Mailbox,
        (rank, ranks): (u32, u32),
        peer: u32,
        half: MessageHalf,
    ) -> Option<MessageHalf> {
        if boxed.peer == EMPTY {
            boxed.fill(peer, half);
            return None;
        }
        if boxed.peer & !NO_OFFER == peer {
            let first = boxed.half();
            if first.is_expected() != half.is_expected() {
                boxed.peer |= EMPTY;
                return Some(first);
            }
            self.put(boxed, (rank, ranks), peer, half);
            return None;
        }
        self.match_rest(boxed, (rank, ranks), peer, half)
    }

    /// [`Mail::match_half`] where the box holds no half of the peer's.
    #[inline(never)]
    fn match_rest(
        &mut self,
        boxed: &mut Mailbox,
        (rank, ranks): (u32, u32),
        peer: u32,
        half: MessageHalf,
    ) -> Option<MessageHalf> {
        if boxed.peer & NO_OFFER != 0 {
            let rest = self.rests[rank as usize];
            let (before, at) = self.find(&rest, peer);
            let oldest = match at {
                NONE if rest.spilled == 0 => None,
                NONE => self.table.get(&(rank, peer)).map(|list| list.head),
                at => Some(at),
            };
            if let Some(oldest) = oldest {
                let other = self.pool[oldest as usize].half;
                if other.is_expected() == half.is_expected() {
                    self.put(boxed, (rank, ranks), peer, half);
                    return None;
                }
                if at == NONE {
                    self.take_spilled(rank, peer);
                } else {
                    self.take_listed(rank, before, at);
                }
                let rest = &self.rests[rank as usize];
                if rest.length + rest.spilled == 0 {
                    boxed.peer &= !NO_OFFER;
                }
                return Some(other);
            }
        }
        match boxed.peer | NO_OFFER {
            u32::MAX => boxed.fill(peer, half),
            _ => self.put(boxed, (rank, ranks), peer, half),
        }
        None
    }

    /// The place in the list of the peer's oldest entry, and the place before.
    #[inline]
    fn find(&self, rest: &Rest, peer: u32) -> (u32, u32) {
        let (mut before, mut at) = (NONE, rest.list.head);
        while at != NONE && self.pool[at as usize].peer != peer {
            (before, at) = (at, self.pool[at as usize].next);
        }
        (before, at)
    }

    #[inline]
    fn take_listed(&mut self, rank: u32, before: u32, at: u32) {
        let rest = &mut self.rests[rank as usize];
        rest.length -= 1;
        unlink(&mut self.pool, &mut self.unused, &mut rest.list, before, at);
    }

    fn take_spilled(&mut self, rank: u32, peer: u32) {
        let Entry::Occupied(mut entry) = self.table.entry((rank, peer)) else { return };
        self.rests[rank as usize].spilled -= 1;
        let list = entry.get_mut();
        let head = list.head;
        unlink(&mut self.pool, &mut self.unused, list, NONE, head);
        if list.head == NONE {
            entry.remove();
        }
    }

    fn put(
        &mut self,
        boxed: &mut Mailbox,
        (rank, ranks): (u32, u32),
        peer: u32,
        half: MessageHalf,
    ) {
        if self.rests.is_empty() {
            self.rests
                .resize(ranks as usize, Rest { list: FifoList::EMPTY, length: 0, spilled: 0 });
        }
        boxed.peer |= NO_OFFER;
        let number = self.add(ListNode { peer, next: NONE, half });
        let rest = &mut self.rests[rank as usize];
        // While the table holds anything of this rank, everything goes there: what is in the list
        // is older.
        if rest.spilled == 0 && rest.length < LONGEST {
            rest.length += 1;
            append(&mut self.pool, &mut rest.list, number);
        } else {
            rest.spilled += 1;
            let list = self.table.entry((rank, peer)).or_insert(FifoList::EMPTY);
            append(&mut self.pool, list, number);
        }
    }

    /// Takes a node of the pool.
    #[inline]
    fn add(&mut self, node: ListNode) -> u32 {
        match self.unused {
            NONE => {
                self.pool.push(node);
                self.pool.len() as u32 - 1
            }
            number => {
                let unused = &mut self.pool[number as usize];
                self.unused = unused.next;
                *unused = node;
                number
            }
        }
    }
}

/// Takes a node out of its list, and back into the pool.
#[inline]
fn unlink(pool: &mut [ListNode], unused: &mut u32, list: &mut FifoList, before: u32, at: u32) {
    let next = pool[at as usize].next;
    match before {
        NONE => list.head = next,
        before => pool[before as usize].next = next,
    }
    if next == NONE {
        list.tail = before;
    }
    pool[at as usize].next = *unused;
    *unused = at;
}

#[inline]
fn append(pool: &mut [ListNode], list: &mut FifoList, number: u32) {
    match list.tail {
        NONE => list.head = number,
        tail => pool[tail as usize].next = number,
    }
    list.tail = number;
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against plain queues, one per peer, through the spilling and back.
        #[test]
        fn halves_meet_in_the_order_of_posting(posts in prop::collection::vec((0_u32..20, any::<bool>()), 0..300)) {
            let mut mail = Mail::default();
            let mut boxed = Mailbox::EMPTY;
            let mut open = vec![VecDeque::<MessageHalf>::new(); 20];
            for (number, (peer, sends)) in posts.into_iter().enumerate() {
                let half = match sends {
                    true => MessageHalf::Sent { left: number as f64, bytes: 0 },
                    false => MessageHalf::Expected { slot: number as u32, posted: 0.0 },
                };
                let queue = &mut open[peer as usize];
                let wanted = match queue.front() {
                    Some(first) if first.is_expected() == sends => queue.pop_front(),
                    _ => {
                        queue.push_back(half);
                        None
                    }
                };
                prop_assert_eq!(mail.match_half(&mut boxed, (3, 20), peer, half), wanted);
            }
        }
    }
}
