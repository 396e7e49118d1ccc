//! Messages by number, and those that have come to each rank's port.

use super::port::is_before;

const NONE: u32 = u32::MAX;

/// A message that has its place among those on their way to its receiver.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrivingMessage {
    pub from: u32,
    pub to: u32,
    /// When it left the sender's processor.
    pub left: f64,
    pub bytes: u64,
    /// Number of ranks that its sender keeps sending to.
    pub destinations: u32,
    /// The sender's slot, where that waits until the message has left.
    sender_slot: u32,
    /// The receiver's slot, once its receive is posted.
    slot: u32,
    /// Behind it at the port.
    next: u32,
    /// When it began to pass the port; none: it hasn't.
    passes: Option<f64>,
    has_come: bool,
    /// Whether it stands in the port's queue.
    in_queue: bool,
    taken: bool,
}

/// Those that have come to a port: the first and the last one.
#[derive(Debug, Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
}

/// All of them. A port lets them through only when somebody asks when one of them passes: those
/// before it go first. So those that have come at once pass in the order of asking.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// By receiver; none at all until something comes.
    queues: Vec<Queue>,
    pool: Vec<ArrivingMessage>,
    unused: u32,
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals { queues: Vec::new(), pool: Vec::new(), unused: NONE }
    }
}

impl Arrivals {
    /// Forgets everything; the memory is kept.
    pub fn clear(&mut self) {
        self.queues.clear();
        self.pool.clear();
        self.unused = NONE;
    }

    /// A message on its way; the number by which it is known until it is taken. None if there are
    /// too many.
    #[inline]
    pub fn add(
        &mut self,
        (from, to): (u32, u32),
        left: f64,
        (bytes, destinations): (u64, u32),
    ) -> Option<u32> {
        let parcel = ArrivingMessage {
            from,
            to,
            left,
            bytes,
            destinations,
            sender_slot: NONE,
            slot: NONE,
            next: NONE,
            passes: None,
            has_come: false,
            in_queue: false,
            taken: false,
        };
        match self.unused {
            NONE => {
                let number = u32::try_from(self.pool.len()).ok().filter(|number| *number != NONE);
                self.pool.push(parcel);
                number
            }
            number => {
                let unused = &mut self.pool[number as usize];
                self.unused = unused.next;
                *unused = parcel;
                Some(number)
            }
        }
    }

    /// It is on its way.
    #[inline]
    pub fn get(&self, number: u32) -> &ArrivingMessage {
        &self.pool[number as usize]
    }

    /// Its sender waits with a slot until it has left.
    #[inline]
    pub fn keep_sender(&mut self, number: u32, slot: u32) {
        self.pool[number as usize].sender_slot = slot;
    }

    /// The sender's slot that waits until it has left, if one does.
    #[inline]
    pub fn sender_slot(&self, number: u32) -> Option<u32> {
        Some(self.pool[number as usize].sender_slot).filter(|slot| *slot != NONE)
    }

    /// A port on its way has held it up: it is as if it had left at that time.
    #[inline]
    pub fn delay(&mut self, number: u32, left: f64) {
        self.pool[number as usize].left = left;
    }

    /// Its receive is posted.
    #[inline]
    pub fn expect(&mut self, number: u32, slot: u32) {
        self.pool[number as usize].slot = slot;
    }

    /// It comes to the port, after all that came before; its receiver and that one's slot, if its
    /// receive is posted.
    #[inline]
    pub fn come(&mut self, ranks: u32, number: u32) -> (u32, Option<u32>) {
        if self.queues.is_empty() {
            self.queues.resize(ranks as usize, Queue { head: NONE, tail: NONE });
        }
        let parcel = &mut self.pool[number as usize];
        (parcel.has_come, parcel.in_queue) = (true, true);
        let (to, slot) = (parcel.to, parcel.slot);
        let queue = &mut self.queues[to as usize];
        match queue.tail {
            NONE => queue.head = number,
            tail => self.pool[tail as usize].next = number,
        }
        queue.tail = number;
        (to, (slot != NONE).then_some(slot))
    }

    /// Whether it has come: then all that pass before it have, too.
    #[inline]
    pub fn has_come(&self, number: u32) -> bool {
        self.pool[number as usize].has_come
    }

    /// The next one that has to be let through before it is known when `number` passes, when it
    /// left; that one itself is the last.
    #[inline]
    pub fn next(&mut self, number: u32) -> Option<(u32, ArrivingMessage)> {
        let message = self.pool[number as usize];
        let ArrivingMessage { to, left, passes, .. } = message;
        if passes.is_some() {
            return None;
        }
        loop {
            let head = self.queues[to as usize].head;
            let first = self.pool[head as usize];
            if first.passes.is_none() {
                return Some(match is_before(first.left, left) {
                    true => (head, first),
                    false => (number, message),
                });
            }
            self.leave_queue(to);
        }
    }

    /// It begins to pass at that time.
    #[inline]
    pub fn let_through(&mut self, number: u32, time: f64) {
        self.pool[number as usize].passes = Some(time);
    }

    /// Takes it, and when it has begun to pass.
    #[inline]
    pub fn take(&mut self, number: u32) -> (ArrivingMessage, f64) {
        let parcel = self.pool[number as usize];
        self.pool[number as usize].taken = true;
        // Behind others, it is given back when it leaves the queue.
        if !parcel.in_queue {
            self.give_back(number);
        } else if self.queues[parcel.to as usize].head == number {
            self.leave_queue(parcel.to);
        }
        (parcel, parcel.passes.unwrap_or(parcel.left))
    }

    /// The first one, which has passed, leaves the queue.
    #[inline]
    fn leave_queue(&mut self, to: u32) {
        let queue = &mut self.queues[to as usize];
        let head = queue.head;
        let parcel = &mut self.pool[head as usize];
        parcel.in_queue = false;
        queue.head = parcel.next;
        if queue.head == NONE {
            queue.tail = NONE;
        }
        if parcel.taken {
            self.give_back(head);
        }
    }

    #[inline]
    fn give_back(&mut self, number: u32) {
        self.pool[number as usize].next = self.unused;
        self.unused = number;
    }
}
