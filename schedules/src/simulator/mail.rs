//! What is posted and has not met its other half, by receiving rank.

use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

/// Longest list that is searched; what is beyond goes into a table, so that a rank to which
/// everybody sends costs no more per message than others.
const LONGEST: u32 = 8;

/// Half of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Half {
    /// A message on its way.
    Sent {
        /// When it left the sender's processor.
        left: f64,
        /// Its size.
        bytes: u64,
    },
    /// A rendezvous send: it waits for its receive.
    Offered {
        /// The sender's slot.
        slot: u32,
        /// When it was posted.
        posted: f64,
        /// Its size.
        bytes: u64,
        /// As the gap asks for.
        destinations: u32,
    },
    /// A posted receive.
    Expected {
        /// The receiver's slot.
        slot: u32,
        /// When it was posted.
        posted: f64,
    },
}

impl Half {
    #[inline]
    const fn is_expected(&self) -> bool {
        matches!(self, Half::Expected { .. })
    }
}

#[derive(Debug, Clone, Copy)]
struct Node {
    peer: u32,
    next: u32,
    half: Half,
}

/// A first-in first-out list in the pool.
#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

/// One rank's part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Box {
    list: List,
    length: u32,
    /// Entries in the table.
    spilled: u32,
}

impl Box {
    pub const EMPTY: Box = Box { list: List { head: NONE, tail: NONE }, length: 0, spilled: 0 };
}

/// The memory of all boxes.
#[derive(Debug)]
pub(super) struct Mail {
    pool: Vec<Node>,
    unused: u32,
    /// By receiver and sender.
    table: FxHashMap<(u32, u32), List>,
}

impl Default for Mail {
    fn default() -> Self {
        Mail { pool: Vec::new(), unused: NONE, table: FxHashMap::default() }
    }
}

impl Mail {
    /// Empties all boxes; their memory is kept.
    pub fn clear(&mut self) {
        self.pool.clear();
        self.unused = NONE;
        self.table.clear();
    }

    /// Takes the oldest entry of `peer` that is the other half of `half`, or puts `half` there.
    ///
    /// All entries of one pair lack the same half, so the first of the peer's decides.
    #[inline]
    pub fn meet(&mut self, boxed: &mut Box, rank: u32, peer: u32, half: Half) -> Option<Half> {
        // Nearly always the box is empty, or what lies first in it is what is looked for.
        let head = boxed.list.head;
        if head == NONE && boxed.spilled == 0 {
            let number = self.add(Node { peer, next: NONE, half });
            boxed.list = List { head: number, tail: number };
            boxed.length = 1;
            return None;
        }
        if head != NONE {
            let first = &self.pool[head as usize];
            if first.peer == peer && first.half.is_expected() != half.is_expected() {
                boxed.length -= 1;
                return Some(self.unlink(&mut boxed.list, NONE, head));
            }
        }
        self.meet_in(boxed, rank, peer, half)
    }

    /// [`Mail::meet`] in a box that has to be searched.
    #[inline(never)]
    fn meet_in(&mut self, boxed: &mut Box, rank: u32, peer: u32, half: Half) -> Option<Half> {
        let (mut before, mut at) = (NONE, boxed.list.head);
        while at != NONE && self.pool[at as usize].peer != peer {
            (before, at) = (at, self.pool[at as usize].next);
        }
        if at != NONE {
            if self.pool[at as usize].half.is_expected() != half.is_expected() {
                boxed.length -= 1;
                return Some(self.unlink(&mut boxed.list, before, at));
            }
        } else if boxed.spilled > 0
            && let Some(mut list) = self.table.get(&(rank, peer)).copied()
            && self.pool[list.head as usize].half.is_expected() != half.is_expected()
        {
            boxed.spilled -= 1;
            let head = list.head;
            let half = self.unlink(&mut list, NONE, head);
            match list.head {
                NONE => self.table.remove(&(rank, peer)),
                _ => self.table.insert((rank, peer), list),
            };
            return Some(half);
        }
        self.put(boxed, rank, peer, half);
        None
    }

    #[inline]
    fn put(&mut self, boxed: &mut Box, rank: u32, peer: u32, half: Half) {
        let number = self.add(Node { peer, next: NONE, half });
        // While the table holds anything of this rank, everything goes there: what is in the list
        // is older.
        if boxed.spilled == 0 && boxed.length < LONGEST {
            boxed.length += 1;
            append(&mut self.pool, &mut boxed.list, number);
        } else {
            boxed.spilled += 1;
            let list = self.table.entry((rank, peer)).or_insert(Box::EMPTY.list);
            append(&mut self.pool, list, number);
        }
    }

    /// Takes a node of the pool.
    #[inline]
    fn add(&mut self, node: Node) -> u32 {
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

    #[inline]
    fn unlink(&mut self, list: &mut List, before: u32, at: u32) -> Half {
        let Node { next, half, .. } = self.pool[at as usize];
        match before {
            NONE => list.head = next,
            before => self.pool[before as usize].next = next,
        }
        if next == NONE {
            list.tail = before;
        }
        self.pool[at as usize].next = self.unused;
        self.unused = at;
        half
    }
}

#[inline]
fn append(pool: &mut [Node], list: &mut List, number: u32) {
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
            let mut boxed = Box::EMPTY;
            let mut open = vec![VecDeque::<Half>::new(); 20];
            for (number, (peer, sends)) in posts.into_iter().enumerate() {
                let half = match sends {
                    true => Half::Sent { left: number as f64, bytes: 0 },
                    false => Half::Expected { slot: number as u32, posted: 0.0 },
                };
                let queue = &mut open[peer as usize];
                let wanted = match queue.front() {
                    Some(first) if first.is_expected() == sends => queue.pop_front(),
                    _ => {
                        queue.push_back(half);
                        None
                    }
                };
                prop_assert_eq!(mail.meet(&mut boxed, 3, peer, half), wanted);
            }
        }
    }
}
