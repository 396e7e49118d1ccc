//! One link: a message there, an empty one back.

use serde::{Deserialize, Serialize};

use crate::{
    Result,
    clock::{now, seconds},
    exchange::{Communicator, Tag},
};

/// What rank 0 tells the others: one side of some round trips, whose seconds the sender reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The other side.
    pub peer: u32,
    /// Whether this side sends the bytes.
    pub sends: bool,
    /// Size of the message.
    pub bytes: u64,
    /// Round trips.
    pub count: u32,
}

/// A rank's end of its links.
#[derive(Debug)]
pub struct RankLinks {
    comm: Communicator,
    buffer: Vec<u8>,
}

impl RankLinks {
    /// For messages of at most `largest` bytes.
    pub fn new(comm: Communicator, largest: usize) -> Self {
        // Not zeros: those need not be there in memory.
        RankLinks { comm, buffer: vec![0x5A; largest] }
    }

    /// This rank's side of an exchange; the seconds of each round trip at the sender.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn exchange(&mut self, exchange: Exchange) -> Result<Vec<f64>> {
        let Exchange { peer, sends, bytes, count } = exchange;
        let message = &mut self.buffer[..bytes as usize];
        // Both are there, and awake, before anything is timed.
        self.comm.exchange_signals(peer, peer)?;
        let mut times = Vec::new();
        for _ in 0..count {
            if sends {
                let begun = now();
                self.comm.send(message, peer, Tag::Data)?;
                self.comm.receive(&mut [], peer, Tag::Signal)?;
                times.push(seconds(now() - begun));
            } else {
                self.comm.receive(message, peer, Tag::Data)?;
                self.comm.send(&[], peer, Tag::Signal)?;
            }
        }
        Ok(times)
    }
}
