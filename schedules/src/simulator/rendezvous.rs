//! Rendezvous sends that have not left, in the order in which their senders posted them.

use std::collections::BTreeSet;

const NONE: u32 = u32::MAX;

/// A rendezvous send whose receive is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Transfer {
    /// The sender and its slot.
    pub sender: (u32, u32),
    /// The receiver and its slot.
    pub receiver: (u32, u32),
    /// When it may leave, if the port is free.
    pub agreed: f64,
    /// Its size.
    pub bytes: u64,
    /// As the gap asks for.
    pub destinations: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Open,
    Agreed,
    Gone,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    transfer: Transfer,
    state: State,
    next: u32,
}

/// A sender's first and last node.
#[derive(Debug, Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
}

/// What all ranks offer.
///
/// A transfer that has been agreed takes the port after those that its sender posted before it:
/// [`Rendezvous::next`]. Where nothing else can go on, the first may wait for what comes of a later
/// one; then the one that was agreed earliest goes: [`Rendezvous::pass_over`]. Nothing that follows
/// from it can make an earlier one be agreed before that time.
#[derive(Debug)]
pub(super) struct Rendezvous {
    /// By sender; none at all until something is offered.
    queues: Vec<Queue>,
    pool: Vec<Node>,
    unused: u32,
    /// Agreed, but behind others: by time (the bits of a number from 0 on are in its order),
    /// sender and node.
    held: BTreeSet<(u64, u32, u32)>,
}

impl Default for Rendezvous {
    fn default() -> Self {
        Rendezvous { queues: Vec::new(), pool: Vec::new(), unused: NONE, held: BTreeSet::new() }
    }
}

impl Rendezvous {
    /// Forgets everything; the memory is kept.
    pub fn clear(&mut self) {
        self.queues.clear();
        self.pool.clear();
        self.unused = NONE;
        self.held.clear();
    }

    /// Takes an offer in; the number by which it is known until it has left.
    pub fn offer(&mut self, ranks: u32, (rank, slot): (u32, u32), destinations: u32) -> u32 {
        if self.queues.is_empty() {
            self.queues.resize(ranks as usize, Queue { head: NONE, tail: NONE });
        }
        let transfer = Transfer {
            sender: (rank, slot),
            receiver: (NONE, NONE),
            agreed: f64::INFINITY,
            bytes: 0,
            destinations,
        };
        let number = self.add(Node { transfer, state: State::Open, next: NONE });
        let queue = &mut self.queues[rank as usize];
        match queue.tail {
            NONE => queue.head = number,
            tail => self.pool[tail as usize].next = number,
        }
        queue.tail = number;
        number
    }

    /// The receive of an offer is known; its sender.
    pub fn agree(&mut self, offer: u32, receiver: (u32, u32), agreed: f64, bytes: u64) -> u32 {
        let node = &mut self.pool[offer as usize];
        node.transfer = Transfer { receiver, agreed, bytes, ..node.transfer };
        node.state = State::Agreed;
        let sender = node.transfer.sender.0;
        if self.queues[sender as usize].head != offer {
            self.held.insert((agreed.to_bits(), sender, offer));
        }
        sender
    }

    /// Takes the sender's first transfer, if that has been agreed.
    pub fn next(&mut self, sender: u32) -> Option<Transfer> {
        loop {
            let head = self.queues[sender as usize].head;
            let Node { transfer, state, next } = *self.pool.get(head as usize)?;
            if matches!(state, State::Open) {
                return None;
            }
            let queue = &mut self.queues[sender as usize];
            queue.head = next;
            if next == NONE {
                queue.tail = NONE;
            }
            self.pool[head as usize].next = self.unused;
            self.unused = head;
            if matches!(state, State::Agreed) {
                self.held.remove(&(transfer.agreed.to_bits(), sender, head));
                return Some(transfer);
            }
        }
    }

    /// Takes the transfer that was agreed earliest of those that wait for another one.
    pub fn pass_over(&mut self) -> Option<Transfer> {
        let (_, _, number) = self.held.pop_first()?;
        let node = &mut self.pool[number as usize];
        // It leaves its place when it is the first.
        node.state = State::Gone;
        Some(node.transfer)
    }

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
}
