//! The collectives that can be timed: one entry each.

use std::ffi::c_int;

use mpi::ffi;
use records::Collective;
use runner::{Arguments, Block, Executor, Method, Reduction};

use crate::{
    Error, Result,
    exchange::{Communicator, check},
};

/// How a collective is called, filled and checked. Root is rank 0 where there is one.
#[derive(Debug)]
pub struct Operation {
    /// Which collective.
    pub collective: Collective,
    /// What is called, for the record.
    pub description: &'static str,
    /// Bytes of the outgoing and the incoming buffer for a message size and a number of processes.
    pub room: fn(bytes: usize, procs: usize) -> (usize, usize),
    /// The call alone.
    pub call: fn(&mut Buffers, bytes: usize, comm: &Communicator) -> Result<()>,
    /// The same call, carried out by one of our algorithms.
    pub own: fn(&mut Own, &mut Buffers, bytes: usize, comm: &Communicator) -> Result<()>,
    /// Fills the buffers so that the result can be checked.
    fill: fn(&mut Buffers, bytes: usize, rank: u32),
    /// What stands at a byte of the result on this rank; nothing where the rank has no result.
    expected: fn(index: usize, bytes: usize, rank: u32, procs: u32) -> Option<u8>,
    /// Where the result lies.
    result: fn(&Buffers) -> &[u8],
}

/// One of our algorithms, and what carries it out.
#[derive(Debug)]
pub struct Own {
    /// Keeps its memory from call to call.
    pub executor: Executor,
    /// The algorithm with its parameters.
    pub method: Method,
}

impl Own {
    /// # Safety
    /// As [`Executor::run`].
    unsafe fn run(&mut self, arguments: &Arguments, comm: &Communicator) -> Result<()> {
        // SAFETY: the caller vouches for the arguments.
        unsafe { self.executor.run(&self.method, arguments, comm.raw().0 as usize)? };
        Ok(())
    }
}

/// Every collective that can be timed.
pub const OPERATIONS: &[Operation] = &[BCAST, REDUCE];

/// The entry of a collective, if it has one.
pub fn find(collective: Collective) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.collective == collective)
}

impl Operation {
    /// Fills the buffers so that [`check`](Self::check) can tell a right result from a wrong or a
    /// missing one.
    pub fn prepare(&self, buffers: &mut Buffers, bytes: usize, rank: u32) {
        (self.fill)(buffers, bytes, rank);
    }

    /// Compares the result with what it should be.
    ///
    /// # Errors
    /// It is another; the error names the first wrong byte.
    pub fn check(&self, buffers: &Buffers, bytes: usize, rank: u32, procs: u32) -> Result<()> {
        let result = &(self.result)(buffers)[..bytes];
        for (index, &found) in result.iter().enumerate() {
            match (self.expected)(index, bytes, rank, procs) {
                Some(wanted) if wanted != found => {
                    return Err(Error::WrongResult(format!(
                        "{} of {bytes} bytes on {procs} processes gave a wrong result: byte \
                         {index} on rank {rank} is {found}, wanted {wanted}",
                        self.collective
                    )));
                }
                Some(_) => {}
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

/// Memory for the largest call of a plan, allocated and touched once.
#[derive(Debug)]
pub struct Buffers {
    outgoing: Vec<f64>,
    incoming: Vec<f64>,
}

impl Buffers {
    /// Room for so many bytes each, aligned for doubles.
    pub fn new(outgoing: usize, incoming: usize) -> Self {
        let touched = |bytes: usize| vec![1.0; bytes.div_ceil(size_of::<f64>())];
        Buffers { outgoing: touched(outgoing), incoming: touched(incoming) }
    }

    fn outgoing(&self) -> &[u8] {
        as_bytes(&self.outgoing)
    }

    fn incoming(&self) -> &[u8] {
        as_bytes(&self.incoming)
    }

    fn outgoing_mut(&mut self) -> &mut [u8] {
        as_bytes_mut(&mut self.outgoing)
    }

    fn incoming_mut(&mut self) -> &mut [u8] {
        as_bytes_mut(&mut self.incoming)
    }
}

fn as_bytes(doubles: &[f64]) -> &[u8] {
    // SAFETY: the bytes of a double may be read as bytes; the length is that of the same memory.
    unsafe { std::slice::from_raw_parts(doubles.as_ptr().cast(), size_of_val(doubles)) }
}

fn as_bytes_mut(doubles: &mut [f64]) -> &mut [u8] {
    let bytes = size_of_val(doubles);
    // SAFETY: as above; any bytes make doubles.
    unsafe { std::slice::from_raw_parts_mut(doubles.as_mut_ptr().cast(), bytes) }
}

/// A pattern whose period is no power of two, so that a segment in a wrong place shows.
fn pattern(index: usize, rank: u32) -> u8 {
    ((index * 31 + 7) % 251) as u8 ^ (rank as u8).wrapping_mul(37)
}

const ROOT: c_int = 0;

const BCAST: Operation = Operation {
    collective: Collective::Bcast,
    description: "MPI_Bcast of bytes from rank 0",
    room: |bytes, _| (bytes, 0),
    call: |buffers, bytes, comm| {
        let buffer = buffers.outgoing_mut()[..bytes].as_mut_ptr().cast();
        let count = bytes as c_int;
        // SAFETY: the slice shows that the buffer holds `count` bytes.
        let code = unsafe { ffi::MPI_Bcast(buffer, count, ffi::RSMPI_UINT8_T, ROOT, comm.raw()) };
        check("MPI_Bcast", code)
    },
    own: |own, buffers, bytes, comm| {
        let buffer = buffers.outgoing_mut()[..bytes].as_mut_ptr().cast();
        // SAFETY: as above; all ranks of the visit call by the same method.
        unsafe {
            let datatype = ffi::RSMPI_UINT8_T.0 as usize;
            let data = Block { buffer, count: bytes as i64, datatype };
            own.run(&Arguments::Bcast { data, root: ROOT }, comm)
        }
    },
    fill: |buffers, bytes, rank| {
        let flip = if rank == 0 { 0 } else { 0xFF };
        for (index, byte) in buffers.outgoing_mut()[..bytes].iter_mut().enumerate() {
            *byte = pattern(index, 0) ^ flip;
        }
    },
    expected: |index, _, _, _| Some(pattern(index, 0)),
    result: Buffers::outgoing,
};

/// Whole doubles are summed; what is not a number of whole doubles is combined byte by byte.
fn is_doubles(bytes: usize) -> bool {
    let element = records::openmpi::element_bytes(Collective::Reduce, bytes as u64);
    element == size_of::<f64>() as u64
}

/// Type, operation and number of elements of a reduction of so many bytes.
fn reduction(bytes: usize) -> (ffi::MPI_Datatype, ffi::MPI_Op, usize) {
    // SAFETY: constants of the MPI library.
    unsafe {
        match is_doubles(bytes) {
            true => (ffi::RSMPI_DOUBLE, ffi::RSMPI_SUM, bytes / size_of::<f64>()),
            false => (ffi::RSMPI_UINT8_T, ffi::RSMPI_BXOR, bytes),
        }
    }
}

/// Small whole numbers: their sums are exact in any order.
fn summand(element: usize) -> f64 {
    (element % 7 + 1) as f64
}

const REDUCE: Operation = Operation {
    collective: Collective::Reduce,
    description: "MPI_Reduce to rank 0, MPI_SUM of doubles where the bytes are whole doubles, \
                  else MPI_BXOR of bytes",
    room: |bytes, _| (bytes, bytes),
    call: |buffers, bytes, comm| {
        let (kind, operation, count) = reduction(bytes);
        let outgoing = buffers.outgoing()[..bytes].as_ptr().cast();
        let incoming = buffers.incoming_mut()[..bytes].as_mut_ptr().cast();
        // SAFETY: the slices show that both buffers hold `count` elements; they are two.
        let code = unsafe {
            ffi::MPI_Reduce(outgoing, incoming, count as c_int, kind, operation, ROOT, comm.raw())
        };
        check("MPI_Reduce", code)
    },
    own: |own, buffers, bytes, comm| {
        let (kind, operation, count) = reduction(bytes);
        let outgoing = buffers.outgoing()[..bytes].as_ptr().cast();
        let incoming = buffers.incoming_mut()[..bytes].as_mut_ptr().cast();
        let (datatype, operation) = (kind.0 as usize, operation.0 as usize);
        let data = Reduction { send: outgoing, receive: incoming, datatype, operation };
        // SAFETY: as above; all ranks of the visit call by the same method.
        unsafe { own.run(&Arguments::Reduce { data, count: count as i64, root: ROOT }, comm) }
    },
    fill: |buffers, bytes, rank| {
        buffers.incoming_mut()[..bytes].fill(0xFF);
        if is_doubles(bytes) {
            let doubles = &mut buffers.outgoing[..bytes / size_of::<f64>()];
            for (element, double) in doubles.iter_mut().enumerate() {
                *double = f64::from(rank + 1) * summand(element);
            }
        } else {
            for (index, byte) in buffers.outgoing_mut()[..bytes].iter_mut().enumerate() {
                *byte = pattern(index, rank);
            }
        }
    },
    expected: |index, bytes, rank, procs| {
        if rank != 0 {
            return None;
        }
        if is_doubles(bytes) {
            let ranks = f64::from(procs) * f64::from(procs + 1) / 2.0;
            let sum = ranks * summand(index / size_of::<f64>());
            Some(sum.to_ne_bytes()[index % size_of::<f64>()])
        } else {
            Some((0..procs).fold(0, |all, rank| all ^ pattern(index, rank)))
        }
    },
    result: Buffers::incoming,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The reduction as it should be, by other means: element by element over all ranks.
    fn reduced(bytes: usize, procs: u32) -> Buffers {
        let mut root = Buffers::new(bytes, bytes);
        REDUCE.prepare(&mut root, bytes, 0);
        let mut sums = root.outgoing.clone();
        let mut bits = root.outgoing().to_vec();
        for rank in 1..procs {
            let mut other = Buffers::new(bytes, bytes);
            REDUCE.prepare(&mut other, bytes, rank);
            sums.iter_mut().zip(&other.outgoing).for_each(|(sum, value)| *sum += value);
            bits.iter_mut().zip(other.outgoing()).for_each(|(bit, value)| *bit ^= value);
        }
        match is_doubles(bytes) {
            true => root.incoming.copy_from_slice(&sums),
            false => root.incoming_mut()[..bytes].copy_from_slice(&bits[..bytes]),
        }
        root
    }

    #[test]
    fn a_right_reduction_passes_and_a_wrong_byte_is_named() {
        for bytes in [0, 1, 7, 8, 12, 1024, 1027] {
            for procs in [1, 2, 5, 300] {
                let mut root = reduced(bytes, procs);
                REDUCE.check(&root, bytes, 0, procs).unwrap();
                if bytes > 0 {
                    root.incoming_mut()[bytes - 1] ^= 1;
                    let error = REDUCE.check(&root, bytes, 0, procs).unwrap_err().to_string();
                    assert!(error.contains(&format!("byte {} on rank 0", bytes - 1)), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_broadcast_that_did_not_arrive_is_caught() {
        for bytes in [1, 5, 4096] {
            let mut buffers = Buffers::new(bytes, 0);
            BCAST.prepare(&mut buffers, bytes, 0);
            BCAST.check(&buffers, bytes, 0, 4).unwrap();
            BCAST.prepare(&mut buffers, bytes, 3);
            assert!(BCAST.check(&buffers, bytes, 3, 4).is_err());
        }
    }

    #[test]
    fn a_reduction_that_forgot_a_rank_is_caught() {
        for bytes in [5, 64] {
            let root = reduced(bytes, 4);
            assert!(REDUCE.check(&root, bytes, 0, 5).is_err());
            REDUCE.check(&root, bytes, 3, 4).unwrap(); // no result there
        }
    }
}
