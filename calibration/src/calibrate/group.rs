//! The exchanges among several ranks: the root times, the members answer.
//!
//! The ranks stand in an order of their own: the root first, then the mirror, then the others; a
//! group of p is the first p of them. Those that share ports stand in [another](LevelRanks::sharing).
//! Ranks outside sleep.

use std::{ffi::c_int, mem::MaybeUninit};

use mpi::ffi;
use records::group_observation::GroupKind;

use super::{
    cells::{Experiment, ObservedKind, SizedExperiment},
    command::PairCommand,
    levels::LevelRanks,
    pair::{Observed, touched},
    shared_memory::SharedMember,
};
use crate::{
    Error, Result,
    clock::{now, seconds},
    exchange::{Communicator, Tag, check},
};

/// One rank's hands in a group.
#[derive(Debug)]
pub struct GroupMember {
    comm: Communicator,
    ranks: LevelRanks,
    takes_part: bool,
    outgoing: Vec<u8>,
    /// All that may be on the way to this rank at once.
    incoming: Vec<u8>,
    requests: Vec<ffi::MPI_Request>,
    /// None where no memory is shared.
    shared: Option<SharedMember>,
}

impl GroupMember {
    /// For the cells in which this rank takes part; all ranks must call this.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn new(comm: Communicator, ranks: LevelRanks, cells: &[SizedExperiment]) -> Result<Self> {
        let place = |cell: &SizedExperiment| place(&ranks, cell, comm.rank());
        let own = || cells.iter().filter(|cell| !cell.is_alone() && place(cell).is_some());
        let shared = SharedMember::new(&comm, &ranks.sharing, cells)?;
        let at_once = |cell: &SizedExperiment| match cell.experiment {
            Experiment::FanIn if place(cell) == Some(0) => cell.procs as usize - 1,
            Experiment::PairStreams | Experiment::PairExchanges => cell.messages as usize,
            _ => 1,
        };
        let outgoing = own().map(|cell| cell.bytes as usize).max().unwrap_or_default();
        let incoming = own().map(|cell| at_once(cell) * cell.bytes as usize).max();
        let requests = own().map(|cell| at_once(cell).max(cell.procs as usize)).max();
        Ok(GroupMember {
            shared,
            comm,
            takes_part: requests.is_some(),
            outgoing: touched(outgoing),
            incoming: touched(incoming.unwrap_or_default()),
            // An exchange has as many each way.
            requests: Vec::with_capacity(2 * requests.unwrap_or_default()),
            ranks,
        })
    }

    /// Whether a cell can be measured: all but those of shared memory, where there is none.
    pub fn can_measure(&self, cell: &SizedExperiment) -> bool {
        self.shared.is_some() || !cell.experiment.is_in_shared_memory()
    }

    /// Whether this rank is in any group.
    pub fn takes_part(&self) -> bool {
        self.takes_part
    }

    fn members(&self, cell: &SizedExperiment) -> &[u32] {
        &order(&self.ranks, cell)[1..]
    }

    /// At the root: tells the members and waits until all are there.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn begin(&mut self, cell: SizedExperiment, count: u32) -> Result<()> {
        for &rank in self.members(&cell) {
            self.comm.send_value(&PairCommand::Measure(cell, count), rank, Tag::Command)?;
        }
        self.members(&cell)
            .iter()
            .try_for_each(|&rank| self.comm.receive(&mut [], rank, Tag::Signal))
    }

    /// At the root: one repetition.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn repeat(&mut self, cell: SizedExperiment) -> Result<Observed> {
        let bytes = cell.bytes as usize;
        let (kind, seconds) = match cell.experiment {
            Experiment::FlatBarrier => (GroupKind::FlatBarrier, self.barriers(&cell)?),
            Experiment::PostedBarrier => (GroupKind::PostedBarrier, self.barriers(&cell)?),
            Experiment::ChainBcast => (GroupKind::ChainBcast, self.chain(&cell)?),
            Experiment::FanOut => (GroupKind::FanOut, self.fan_out(&cell, bytes)?),
            Experiment::FanIn => (GroupKind::FanIn, self.fan_in(&cell, bytes)?),
            Experiment::FirstServed => (GroupKind::FirstServed, self.first_served(&cell)?),
            Experiment::PairStreams => (GroupKind::PairStreams, self.sharing(&cell)?),
            Experiment::PairExchanges => (GroupKind::PairExchanges, self.sharing(&cell)?),
            Experiment::Shifts => (GroupKind::Shifts, self.sharing(&cell)?),
            Experiment::Copies => (GroupKind::Copies, self.sharing(&cell)?),
            Experiment::SharedFlags => (GroupKind::SharedFlags, self.sharing(&cell)?),
            Experiment::SharedReads => (GroupKind::SharedReads, self.sharing(&cell)?),
            _ => return Err(not_of_a_group(&cell)),
        };
        Ok(vec![(ObservedKind::Group(kind, None), seconds)])
    }

    /// The first barrier is not timed: after it everybody is as far as after any other.
    fn barriers(&mut self, cell: &SizedExperiment) -> Result<f64> {
        self.barrier(cell)?;
        let begun = now();
        for _ in 0..cell.messages {
            self.barrier(cell)?;
        }
        Ok(seconds(now() - begun))
    }

    fn barrier(&mut self, cell: &SizedExperiment) -> Result<()> {
        if cell.experiment == Experiment::PostedBarrier {
            for &rank in &order(&self.ranks, cell)[1..] {
                self.requests.push(start_receive(&self.comm, &mut [], rank)?);
            }
            wait_for_all(&mut self.requests)?;
        } else {
            let members = self.members(cell).iter();
            members.copied().try_for_each(|rank| self.comm.receive(&mut [], rank, Tag::Signal))?;
        }
        self.members(cell).iter().try_for_each(|&rank| self.comm.send(&[], rank, Tag::Signal))
    }

    fn chain(&self, cell: &SizedExperiment) -> Result<f64> {
        let ranks = order(&self.ranks, cell);
        let (next, last) = (ranks[1], ranks[ranks.len() - 1]);
        let begun = now();
        self.comm.send(&self.outgoing[..cell.bytes as usize], next, Tag::Data)?;
        self.comm.receive(&mut [], last, Tag::Signal)?;
        Ok(seconds(now() - begun))
    }

    fn fan_out(&mut self, cell: &SizedExperiment, bytes: usize) -> Result<f64> {
        let begun = now();
        for _ in 0..cell.messages {
            for &rank in &order(&self.ranks, cell)[1..] {
                let request = start_send(&self.comm, &self.outgoing[..bytes], rank)?;
                self.requests.push(request);
            }
            wait_for_all(&mut self.requests)?;
        }
        self.members(cell)
            .iter()
            .try_for_each(|&rank| self.comm.receive(&mut [], rank, Tag::Signal))?;
        Ok(seconds(now() - begun))
    }

    /// Everybody answers, so that nothing of one repetition is left in the next; the first one's is timed.
    fn first_served(&mut self, cell: &SizedExperiment) -> Result<f64> {
        let begun = now();
        for &rank in &order(&self.ranks, cell)[1..] {
            let bytes = cell.bytes as usize;
            self.requests.push(start_send(&self.comm, &self.outgoing[..bytes], rank)?);
        }
        self.comm.receive(&mut [], order(&self.ranks, cell)[1], Tag::Signal)?;
        let elapsed = seconds(now() - begun);
        wait_for_all(&mut self.requests)?;
        let others = &self.members(cell)[1..];
        others.iter().try_for_each(|&rank| self.comm.receive(&mut [], rank, Tag::Signal))?;
        Ok(elapsed)
    }

    fn fan_in(&mut self, cell: &SizedExperiment, bytes: usize) -> Result<f64> {
        let begun = now();
        self.members(cell).iter().try_for_each(|&rank| self.comm.send(&[], rank, Tag::Signal))?;
        for _ in 0..cell.messages {
            for (index, &rank) in order(&self.ranks, cell)[1..].iter().enumerate() {
                let buffer = &mut self.incoming[index * bytes..(index + 1) * bytes];
                let request = start_receive(&self.comm, buffer, rank)?;
                self.requests.push(request);
            }
            wait_for_all(&mut self.requests)?;
        }
        Ok(seconds(now() - begun))
    }

    fn sharing(&mut self, cell: &SizedExperiment) -> Result<f64> {
        let begun = now();
        self.members(cell).iter().try_for_each(|&rank| self.comm.send(&[], rank, Tag::Signal))?;
        self.share(cell, 0)?;
        self.members(cell)
            .iter()
            .try_for_each(|&rank| self.comm.receive(&mut [], rank, Tag::Signal))?;
        Ok(seconds(now() - begun))
    }

    /// One rank's part in what ranks do that share ports or memory.
    fn share(&mut self, cell: &SizedExperiment, place: usize) -> Result<()> {
        match cell.experiment {
            Experiment::Copies => {
                self.copy(cell);
                Ok(())
            }
            Experiment::Shifts => self.shift(cell, place),
            Experiment::SharedFlags | Experiment::SharedReads => match &mut self.shared {
                Some(shared) => shared.take_part(cell),
                None => Err(not_of_a_group(cell)),
            },
            _ => self.stream(cell, place),
        }
    }

    fn shift(&mut self, cell: &SizedExperiment, place: usize) -> Result<()> {
        let (ranks, bytes) = (order(&self.ranks, cell), cell.bytes as usize);
        for round in 0..cell.messages as usize {
            let (to, from) = partners_of_shift(round, place, ranks.len());
            let incoming = &mut self.incoming[..bytes];
            self.requests.push(start_receive(&self.comm, incoming, ranks[from])?);
            self.requests.push(start_send(&self.comm, &self.outgoing[..bytes], ranks[to])?);
            wait_for_all(&mut self.requests)?;
        }
        Ok(())
    }

    /// All messages are under way at once, so that no rank waits for another.
    fn stream(&mut self, cell: &SizedExperiment, place: usize) -> Result<()> {
        // Neighbours in the order are a pair; the first of them sends in any case.
        let (partner, bytes) = (order(&self.ranks, cell)[place ^ 1], cell.bytes as usize);
        let both_ways = cell.experiment == Experiment::PairExchanges;
        for message in 0..cell.messages as usize {
            if both_ways || !place.is_multiple_of(2) {
                let buffer = &mut self.incoming[message * bytes..(message + 1) * bytes];
                self.requests.push(start_receive(&self.comm, buffer, partner)?);
            }
        }
        for _ in 0..cell.messages {
            if both_ways || place.is_multiple_of(2) {
                self.requests.push(start_send(&self.comm, &self.outgoing[..bytes], partner)?);
            }
        }
        wait_for_all(&mut self.requests)
    }

    /// Copies to and fro, so that what is copied has just been written.
    fn copy(&mut self, cell: &SizedExperiment) {
        let bytes = cell.bytes as usize;
        let (outgoing, incoming) = (&mut self.outgoing[..bytes], &mut self.incoming[..bytes]);
        for message in 0..cell.messages {
            match message.is_multiple_of(2) {
                true => incoming.copy_from_slice(outgoing),
                false => outgoing.copy_from_slice(incoming),
            }
            std::hint::black_box((&mut *outgoing, &mut *incoming));
        }
    }

    /// At a member: answers what one [`PairCommand::Measure`] asked for.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn answer(&mut self, cell: SizedExperiment, count: u32) -> Result<()> {
        let (root, bytes) = (self.ranks.pair.0, cell.bytes as usize);
        let place = place(&self.ranks, &cell, self.comm.rank());
        let place = place.ok_or_else(|| not_of_a_group(&cell))?;
        self.comm.send(&[], root, Tag::Signal)?;
        for _ in 0..count {
            match cell.experiment {
                Experiment::FlatBarrier | Experiment::PostedBarrier => {
                    // As the root receives it.
                    let tag = match cell.experiment {
                        Experiment::PostedBarrier => Tag::Data,
                        _ => Tag::Signal,
                    };
                    for _ in 0..=cell.messages {
                        self.comm.send(&[], root, tag)?;
                        self.comm.receive(&mut [], root, Tag::Signal)?;
                    }
                }
                Experiment::ChainBcast => {
                    let ranks = order(&self.ranks, &cell);
                    self.comm.receive(&mut self.incoming[..bytes], ranks[place - 1], Tag::Data)?;
                    match ranks.get(place + 1) {
                        Some(&next) => self.comm.send(&self.incoming[..bytes], next, Tag::Data)?,
                        None => self.comm.send(&[], root, Tag::Signal)?,
                    }
                }
                Experiment::FirstServed | Experiment::FanOut => {
                    for _ in 0..cell.messages {
                        self.comm.receive(&mut self.incoming[..bytes], root, Tag::Data)?;
                    }
                    self.comm.send(&[], root, Tag::Signal)?;
                }
                Experiment::FanIn => {
                    self.comm.receive(&mut [], root, Tag::Signal)?;
                    for _ in 0..cell.messages {
                        self.comm.send(&self.outgoing[..bytes], root, Tag::Data)?;
                    }
                }
                shared if shared.is_of_sharing() => {
                    self.comm.receive(&mut [], root, Tag::Signal)?;
                    self.share(&cell, place)?;
                    self.comm.send(&[], root, Tag::Signal)?;
                }
                _ => return Err(not_of_a_group(&cell)),
            }
        }
        Ok(())
    }
}

/// The ranks that take part, the root first.
fn order<'a>(ranks: &'a LevelRanks, cell: &SizedExperiment) -> &'a [u32] {
    let all = if cell.experiment.is_of_sharing() { &ranks.sharing } else { &ranks.group };
    &all[..all.len().min(cell.procs as usize)]
}

/// A rank's place among them.
fn place(ranks: &LevelRanks, cell: &SizedExperiment, rank: u32) -> Option<usize> {
    order(ranks, cell).iter().position(|one| *one == rank)
}

/// To which place a place sends in a round of shifts, and from which it receives: every distance in turn.
fn partners_of_shift(round: usize, place: usize, ranks: usize) -> (usize, usize) {
    let distance = 1 + round % (ranks - 1);
    ((place + distance) % ranks, (place + ranks - distance) % ranks)
}

fn not_of_a_group(cell: &SizedExperiment) -> Error {
    Error::Usage(format!("{} is not measured among several ranks", cell.describe()))
}

pub(crate) fn start_send(comm: &Communicator, bytes: &[u8], to: u32) -> Result<ffi::MPI_Request> {
    let mut request = MaybeUninit::uninit();
    // SAFETY: the buffer holds `bytes.len()` bytes, and is neither changed nor freed before the
    // request is waited for: all callers wait before they return. A success writes the request.
    unsafe {
        let code = ffi::MPI_Isend(
            bytes.as_ptr().cast(),
            bytes.len() as c_int,
            ffi::RSMPI_UINT8_T,
            to as c_int,
            Tag::Data as c_int,
            comm.raw(),
            request.as_mut_ptr(),
        );
        check("MPI_Isend", code)?;
        Ok(request.assume_init())
    }
}

pub(crate) fn start_receive(
    comm: &Communicator,
    buffer: &mut [u8],
    from: u32,
) -> Result<ffi::MPI_Request> {
    let mut request = MaybeUninit::uninit();
    // SAFETY: as in `start_send`; the caller's buffers do not overlap.
    unsafe {
        let code = ffi::MPI_Irecv(
            buffer.as_mut_ptr().cast(),
            buffer.len() as c_int,
            ffi::RSMPI_UINT8_T,
            from as c_int,
            Tag::Data as c_int,
            comm.raw(),
            request.as_mut_ptr(),
        );
        check("MPI_Irecv", code)?;
        Ok(request.assume_init())
    }
}

/// Waits for the requests, and forgets them.
pub(crate) fn wait_for_all(requests: &mut Vec<ffi::MPI_Request>) -> Result<()> {
    let count = requests.len() as c_int;
    // SAFETY: the array holds `count` requests that were started and not waited for.
    let code =
        unsafe { ffi::MPI_Waitall(count, requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE) };
    requests.clear();
    check("MPI_Waitall", code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_a_shift_is_expected_and_all_partners_come_in_turn() {
        for ranks in 2..=16 {
            let mut partners = vec![Vec::new(); ranks];
            for round in 0..ranks - 1 {
                for (place, partners) in partners.iter_mut().enumerate() {
                    let (to, from) = partners_of_shift(round, place, ranks);
                    assert_eq!(partners_of_shift(round, to, ranks).1, place, "of {ranks}");
                    assert_eq!(partners_of_shift(round, from, ranks).0, place, "of {ranks}");
                    partners.push(to);
                }
            }
            for (place, mut partners) in partners.into_iter().enumerate() {
                partners.sort_unstable();
                let others: Vec<usize> = (0..ranks).filter(|other| *other != place).collect();
                assert_eq!(partners, others, "of {ranks}");
            }
        }
    }
}
