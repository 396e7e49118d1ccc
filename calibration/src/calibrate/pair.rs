//! The exchanges between the two ranks: the sender times, the mirror answers.

use records::observation::{PointToPoint, PointToPointKind};
use serde::{Deserialize, Serialize};

use super::cells::{Cell, Experiment};
use crate::{
    Result,
    clock::{Nanos, now, seconds},
    exchange::{Communicator, Tag},
    sleep::{Patience, sleep_until},
};

/// What the sender tells other ranks.
#[derive(Debug, Serialize, Deserialize)]
pub enum Command {
    /// To the mirror: answer this many repetitions.
    Measure(Cell, u32),
    /// To rank 0, where it is not the sender: observations for the record.
    Record(Vec<PointToPoint>),
    /// To rank 0: seconds of the budget that are spent.
    Spent(f64),
    /// To all: the end.
    Stop,
}

/// Times one repetition after another at the sender; the mirror has been told.
#[derive(Debug)]
pub struct Sender {
    comm: Communicator,
    mirror: u32,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

/// The seconds of one repetition, by kind of observation.
pub type Observed = Vec<(PointToPointKind, f64)>;

impl Sender {
    /// For messages of at most `largest` bytes.
    pub fn new(comm: Communicator, mirror: u32, largest: usize) -> Self {
        Sender { comm, mirror, outgoing: touched(largest), incoming: touched(largest) }
    }

    /// Tells the mirror and waits until it is there. Both have then just sent and received.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn begin(&mut self, cell: Cell, count: u32) -> Result<()> {
        self.comm.tell(&Command::Measure(cell, count), self.mirror, Tag::Command)?;
        self.comm.receive(&mut [], self.mirror, Tag::Signal)?;
        self.comm.exchange_signals(self.mirror, self.mirror)
    }

    /// One repetition. `wait` is how long a message surely takes to arrive.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn repeat(&mut self, cell: Cell, wait: Nanos) -> Result<Observed> {
        let bytes = cell.bytes as usize;
        match cell.experiment {
            Experiment::RoundTrip => self.round_trip(bytes),
            Experiment::ReceiveOverhead => self.receive_overhead(bytes, wait),
            Experiment::ShortTrain | Experiment::LongTrain => self.train(bytes, cell.messages),
        }
    }

    fn round_trip(&mut self, bytes: usize) -> Result<Observed> {
        let begun = now();
        self.comm.send(&self.outgoing[..bytes], self.mirror, Tag::Data)?;
        let sent = now();
        self.comm.receive(&mut [], self.mirror, Tag::Signal)?;
        let ended = now();
        Ok(vec![
            (PointToPointKind::RoundTrip, seconds(ended - begun)),
            (PointToPointKind::SendOverhead, seconds(sent - begun)),
        ])
    }

    fn receive_overhead(&mut self, bytes: usize, wait: Nanos) -> Result<Observed> {
        self.comm.send(&[], self.mirror, Tag::Signal)?;
        sleep_until(now() + wait);
        let begun = now();
        self.comm.receive(&mut self.incoming[..bytes], self.mirror, Tag::Data)?;
        let ended = now();
        Ok(vec![(PointToPointKind::ReceiveOverhead, seconds(ended - begun))])
    }

    fn train(&mut self, bytes: usize, messages: u32) -> Result<Observed> {
        let begun = now();
        for _ in 0..messages {
            self.comm.send(&self.outgoing[..bytes], self.mirror, Tag::Data)?;
        }
        self.comm.receive(&mut [], self.mirror, Tag::Signal)?;
        let ended = now();
        Ok(vec![(PointToPointKind::Train, seconds(ended - begun))])
    }
}

/// Answers the sender's repetitions.
#[derive(Debug)]
pub struct Mirror {
    comm: Communicator,
    sender: u32,
    buffer: Vec<u8>,
}

impl Mirror {
    /// For messages of at most `largest` bytes.
    pub fn new(comm: Communicator, sender: u32, largest: usize) -> Self {
        Mirror { comm, sender, buffer: touched(largest) }
    }

    /// Answers what one [`Command::Measure`] asked for.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn answer(&mut self, cell: Cell, count: u32) -> Result<()> {
        self.comm.send(&[], self.sender, Tag::Signal)?;
        self.comm.exchange_signals(self.sender, self.sender)?;
        let message = &mut self.buffer[..cell.bytes as usize];
        for _ in 0..count {
            match cell.experiment {
                Experiment::ReceiveOverhead => {
                    self.comm.receive(&mut [], self.sender, Tag::Signal)?;
                    self.comm.send(message, self.sender, Tag::Data)?;
                }
                Experiment::RoundTrip | Experiment::ShortTrain | Experiment::LongTrain => {
                    for _ in 0..cell.messages {
                        self.comm.receive(message, self.sender, Tag::Data)?;
                    }
                    self.comm.send(&[], self.sender, Tag::Signal)?;
                }
            }
        }
        Ok(())
    }
}

/// Waits for the sender's next command: the mirror inside MPI, as it is about to be timed; a
/// bystander asleep.
///
/// # Errors
/// The MPI library refuses.
pub fn next_command(comm: &Communicator, sender: u32, is_mirror: bool) -> Result<Command> {
    if is_mirror {
        comm.hear(sender, Tag::Command)
    } else {
        comm.hear_asleep(sender, Tag::Command, Patience::of_bystander())
    }
}

/// A buffer whose pages are there.
fn touched(bytes: usize) -> Vec<u8> {
    vec![0x5A; bytes]
}
