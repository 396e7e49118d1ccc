//! Rendezvous sends that have not left.

const NONE: u32 = u32::MAX;

/// A rendezvous send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    /// The sender and its slot.
    pub sender: (u32, u32),
    /// The receiver and its slot, once they are known.
    pub receiver: (u32, u32),
    pub bytes: u64,
    /// As the gap asks for.
    pub destinations: u32,
    /// Those that are agreed at one time leave in the order of posting.
    pub order: u64,
    next_unused: u32,
}

/// What all ranks offer.
#[derive(Debug)]
pub(super) struct Offers {
    /// How many each rank has; none at all until something is offered.
    open: Vec<u32>,
    pool: Vec<Offer>,
    unused: u32,
    posted: u64,
}

impl Default for Offers {
    fn default() -> Self {
        Offers { open: Vec::new(), pool: Vec::new(), unused: NONE, posted: 0 }
    }
}

impl Offers {
    /// Forgets everything; the memory is kept.
    pub fn clear(&mut self) {
        self.open.clear();
        self.pool.clear();
        (self.unused, self.posted) = (NONE, 0);
    }

    /// Takes an offer in; the number by which it is known until it leaves.
    pub fn add(&mut self, ranks: u32, sender: (u32, u32), bytes: u64, destinations: u32) -> u32 {
        if self.open.is_empty() {
            self.open.resize(ranks as usize, 0);
        }
        self.open[sender.0 as usize] += 1;
        self.posted += 1;
        let receiver = (NONE, NONE);
        let order = self.posted;
        let offer = Offer { sender, receiver, bytes, destinations, order, next_unused: NONE };
        match self.unused {
            NONE => {
                self.pool.push(offer);
                self.pool.len() as u32 - 1
            }
            number => {
                let unused = &mut self.pool[number as usize];
                self.unused = unused.next_unused;
                *unused = offer;
                number
            }
        }
    }

    /// The receive of an offer is known; its order.
    pub fn agree(&mut self, number: u32, receiver: (u32, u32)) -> u64 {
        let offer = &mut self.pool[number as usize];
        offer.receiver = receiver;
        offer.order
    }

    /// Who makes an offer.
    pub fn sender(&self, number: u32) -> u32 {
        self.pool[number as usize].sender.0
    }

    /// Whether a rank has any.
    pub fn has_open(&self, rank: u32) -> bool {
        self.open.get(rank as usize).is_some_and(|open| *open > 0)
    }

    pub fn take(&mut self, number: u32) -> Offer {
        let offer = self.pool[number as usize];
        self.open[offer.sender.0 as usize] -= 1;
        self.pool[number as usize].next_unused = self.unused;
        self.unused = number;
        offer
    }
}
