//! The exchanges between the two ranks: the sender times, the mirror answers.

use records::observation::PointToPointKind;

use super::{
    cells::{Experiment, ObservedKind, SizedExperiment},
    command::PairCommand,
};
use crate::{
    Error, Result,
    clock::{Nanos, now, seconds},
    exchange::{Communicator, Tag},
    sleep::sleep_until,
};

/// Times one repetition after another at the sender; the mirror has the command.
#[derive(Debug)]
pub struct Sender {
    comm: Communicator,
    mirror: u32,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

/// The seconds of one repetition, by kind of observation.
pub type Observed = Vec<(ObservedKind, f64)>;

impl Sender {
    /// For messages of at most `largest` bytes.
    pub fn new(comm: Communicator, mirror: u32, largest: usize) -> Self {
        Sender { comm, mirror, outgoing: touched(largest), incoming: touched(largest) }
    }

    /// Tells the mirror and waits until it is there. Both have then just sent and received.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn begin(&mut self, cell: SizedExperiment, count: u32) -> Result<()> {
        self.comm.send_value(&PairCommand::Measure(cell, count), self.mirror, Tag::Command)?;
        self.comm.receive(&mut [], self.mirror, Tag::Signal)?;
        self.comm.exchange_signals(self.mirror, self.mirror)
    }

    /// One repetition. `wait` is how long a message surely takes to arrive.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn repeat(&mut self, cell: SizedExperiment, wait: Nanos) -> Result<Observed> {
        let bytes = cell.bytes as usize;
        match cell.experiment {
            Experiment::RoundTrip => self.round_trip(bytes),
            Experiment::ReceiveOverhead => self.receive_overhead(bytes, wait),
            Experiment::Trains => self.train(bytes, cell.messages),
            Experiment::SpacedOne | Experiment::SpacedTrain => {
                self.spaced_train(bytes, cell.messages, wait)
            }
            _ => Err(not_of_a_pair(&cell)),
        }
    }

    fn round_trip(&mut self, bytes: usize) -> Result<Observed> {
        let begun = now();
        self.comm.send(&self.outgoing[..bytes], self.mirror, Tag::Data)?;
        let sent = now();
        self.comm.receive(&mut [], self.mirror, Tag::Signal)?;
        let ended = now();
        Ok(vec![
            (ObservedKind::Pair(PointToPointKind::RoundTrip), seconds(ended - begun)),
            (ObservedKind::Pair(PointToPointKind::SendOverhead), seconds(sent - begun)),
        ])
    }

    fn receive_overhead(&mut self, bytes: usize, wait: Nanos) -> Result<Observed> {
        self.comm.send(&[], self.mirror, Tag::Signal)?;
        sleep_until(now() + wait);
        let begun = now();
        self.comm.receive(&mut self.incoming[..bytes], self.mirror, Tag::Data)?;
        let ended = now();
        Ok(vec![(ObservedKind::Pair(PointToPointKind::ReceiveOverhead), seconds(ended - begun))])
    }

    fn train(&mut self, bytes: usize, messages: u32) -> Result<Observed> {
        let begun = now();
        for _ in 0..messages {
            self.comm.send(&self.outgoing[..bytes], self.mirror, Tag::Data)?;
        }
        self.comm.receive(&mut [], self.mirror, Tag::Signal)?;
        let ended = now();
        Ok(vec![(ObservedKind::Pair(PointToPointKind::Train), seconds(ended - begun))])
    }

    /// Waits by watching the clock: a sleeper wakes late, and what it then sends is not what a
    /// busy processor sends. What each wait really took is left out of the time.
    fn spaced_train(&mut self, bytes: usize, messages: u32, wait: Nanos) -> Result<Observed> {
        let mut waited = 0;
        let begun = now();
        for message in 0..messages {
            if message > 0 {
                let from = now();
                let mut until = from;
                while until < from + wait {
                    std::hint::spin_loop();
                    until = now();
                }
                waited += until - from;
            }
            self.comm.send(&self.outgoing[..bytes], self.mirror, Tag::Data)?;
        }
        self.comm.receive(&mut self.incoming[..bytes], self.mirror, Tag::Data)?;
        let ended = now();
        Ok(vec![(
            ObservedKind::Pair(PointToPointKind::SpacedTrain),
            seconds(ended - begun - waited),
        )])
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

    /// Answers what one `PairCommand::Measure` asked for.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn answer(&mut self, cell: SizedExperiment, count: u32) -> Result<()> {
        self.comm.send(&[], self.sender, Tag::Signal)?;
        self.comm.exchange_signals(self.sender, self.sender)?;
        let message = &mut self.buffer[..cell.bytes as usize];
        for _ in 0..count {
            match cell.experiment {
                Experiment::ReceiveOverhead => {
                    self.comm.receive(&mut [], self.sender, Tag::Signal)?;
                    self.comm.send(message, self.sender, Tag::Data)?;
                }
                Experiment::RoundTrip | Experiment::Trains => {
                    for _ in 0..cell.messages {
                        self.comm.receive(message, self.sender, Tag::Data)?;
                    }
                    self.comm.send(&[], self.sender, Tag::Signal)?;
                }
                Experiment::SpacedOne | Experiment::SpacedTrain => {
                    for _ in 0..cell.messages {
                        self.comm.receive(message, self.sender, Tag::Data)?;
                    }
                    self.comm.send(message, self.sender, Tag::Data)?;
                }
                _ => return Err(not_of_a_pair(&cell)),
            }
        }
        Ok(())
    }
}

fn not_of_a_pair(cell: &SizedExperiment) -> Error {
    Error::Usage(format!("{} is not measured between two ranks", cell.describe()))
}

/// A buffer whose pages are there.
pub(super) fn touched(bytes: usize) -> Vec<u8> {
    vec![0x5A; bytes]
}
