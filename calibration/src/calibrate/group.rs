//! The exchanges among several ranks: the root times, the members answer.
//!
//! The ranks stand in an order of their own: the root first, then the mirror, then the others; a
//! group of p is the first p of them. Ranks outside sleep.

use std::{ffi::c_int, mem::MaybeUninit};

use mpi::ffi;
use records::group_observation::GroupKind;

use super::{
    cells::{Experiment, ObservedKind, SizedExperiment},
    command::PairCommand,
    pair::{Observed, touched},
};
use crate::{
    Error, Result,
    clock::{now, seconds},
    exchange::{Communicator, Tag, check},
};

/// The ranks in the groups' order.
pub fn order(pair: (u32, u32), ranks: u32) -> Vec<u32> {
    let others = (0..ranks).filter(|rank| ![pair.0, pair.1].contains(rank));
    [pair.0, pair.1].into_iter().chain(others).collect()
}

/// One rank's hands in a group.
#[derive(Debug)]
pub struct GroupMember {
    comm: Communicator,
    /// World ranks, the root first.
    order: Vec<u32>,
    /// This rank's place in it.
    place: usize,
    outgoing: Vec<u8>,
    /// At the root a message from each of the others.
    incoming: Vec<u8>,
    requests: Vec<ffi::MPI_Request>,
}

impl GroupMember {
    /// For the cells in which this rank takes part.
    pub fn new(comm: Communicator, order: Vec<u32>, cells: &[SizedExperiment]) -> Self {
        let place = order.iter().position(|rank| *rank == comm.rank()).unwrap_or_default();
        let of_several = || cells.iter().filter(|cell| cell.procs as usize > place.max(1));
        let largest = of_several().map(|cell| cell.bytes as usize).max().unwrap_or_default();
        let gathered = of_several()
            .filter(|cell| place == 0 && cell.experiment == Experiment::FanIn)
            .map(|cell| (cell.procs as usize - 1) * cell.bytes as usize);
        let gathered = gathered.max().unwrap_or_default();
        GroupMember {
            comm,
            place,
            outgoing: touched(largest),
            incoming: touched(largest.max(gathered)),
            requests: Vec::with_capacity(order.len()),
            order,
        }
    }

    fn members(&self, cell: &SizedExperiment) -> &[u32] {
        &self.order[1..cell.procs as usize]
    }

    /// At the root: tells the members and waits until all are there.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn begin(&mut self, cell: SizedExperiment, count: u32) -> Result<()> {
        for &rank in self.members(&cell) {
            self.comm.tell(&PairCommand::Measure(cell, count), rank, Tag::Command)?;
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
            Experiment::ChainBcast => (GroupKind::ChainBcast, self.chain(&cell)?),
            Experiment::FanOut => (GroupKind::FanOut, self.fan_out(&cell, bytes)?),
            Experiment::FanIn => (GroupKind::FanIn, self.fan_in(&cell, bytes)?),
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

    fn barrier(&self, cell: &SizedExperiment) -> Result<()> {
        let members = self.members(cell);
        members.iter().try_for_each(|&rank| self.comm.receive(&mut [], rank, Tag::Signal))?;
        members.iter().try_for_each(|&rank| self.comm.send(&[], rank, Tag::Signal))
    }

    fn chain(&self, cell: &SizedExperiment) -> Result<f64> {
        let last = self.order[cell.procs as usize - 1];
        let begun = now();
        self.comm.send(&self.outgoing[..cell.bytes as usize], self.order[1], Tag::Data)?;
        self.comm.receive(&mut [], last, Tag::Signal)?;
        Ok(seconds(now() - begun))
    }

    fn fan_out(&mut self, cell: &SizedExperiment, bytes: usize) -> Result<f64> {
        let begun = now();
        for _ in 0..cell.messages {
            for &rank in &self.order[1..cell.procs as usize] {
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

    fn fan_in(&mut self, cell: &SizedExperiment, bytes: usize) -> Result<f64> {
        let begun = now();
        self.members(cell).iter().try_for_each(|&rank| self.comm.send(&[], rank, Tag::Signal))?;
        for _ in 0..cell.messages {
            let ranks = &self.order[1..cell.procs as usize];
            for (index, &rank) in ranks.iter().enumerate() {
                let buffer = &mut self.incoming[index * bytes..(index + 1) * bytes];
                let request = start_receive(&self.comm, buffer, rank)?;
                self.requests.push(request);
            }
            wait_for_all(&mut self.requests)?;
        }
        Ok(seconds(now() - begun))
    }

    /// At a member: answers what one [`PairCommand::Measure`] asked for.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn answer(&mut self, cell: SizedExperiment, count: u32) -> Result<()> {
        let (root, bytes) = (self.order[0], cell.bytes as usize);
        self.comm.send(&[], root, Tag::Signal)?;
        for _ in 0..count {
            match cell.experiment {
                Experiment::FlatBarrier => {
                    for _ in 0..=cell.messages {
                        self.comm.send(&[], root, Tag::Signal)?;
                        self.comm.receive(&mut [], root, Tag::Signal)?;
                    }
                }
                Experiment::ChainBcast => {
                    let before = self.order[self.place - 1];
                    self.comm.receive(&mut self.incoming[..bytes], before, Tag::Data)?;
                    match self.order[..cell.procs as usize].get(self.place + 1) {
                        Some(&next) => self.comm.send(&self.incoming[..bytes], next, Tag::Data)?,
                        None => self.comm.send(&[], root, Tag::Signal)?,
                    }
                }
                Experiment::FanOut => {
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
                _ => return Err(not_of_a_group(&cell)),
            }
        }
        Ok(())
    }
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
