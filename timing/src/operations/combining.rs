//! The collectives that combine data: doubles are summed; what is not a number of whole doubles is
//! combined byte by byte.

use std::ffi::c_int;

use records::Collective;
use runner::{Arguments, Counts, Reduction};

use super::{
    buffers::{Buffers, pattern, sum, summand},
    operation::{CallingRank, MeasuredOperation},
};

const DOUBLE: usize = size_of::<f64>();

/// All of these collectives combine the same elements.
fn is_doubles(bytes: usize) -> bool {
    Collective::Reduce.element_bytes(bytes as u64) == DOUBLE as u64
}

fn elements(bytes: usize) -> usize {
    if is_doubles(bytes) { bytes / DOUBLE } else { bytes }
}

/// The operands of a call whose vectors are `sent` and `received` bytes long, of elements that
/// make up `bytes`.
fn operands(buffers: &mut Buffers, bytes: usize, sent: usize, received: usize) -> Reduction {
    let (datatype, operation) = match is_doubles(bytes) {
        true => (buffers.constants.double, buffers.constants.sum),
        false => (buffers.constants.byte, buffers.constants.bitwise_xor),
    };
    let send = buffers.outgoing_mut()[..sent].as_ptr().cast();
    let receive = buffers.incoming_mut()[..received].as_mut_ptr().cast();
    Reduction { send, receive, datatype, operation }
}

/// The contribution of a rank, `length` bytes of elements that make up `bytes`.
fn contribute(buffers: &mut Buffers, bytes: usize, length: usize, rank: u32) {
    if is_doubles(bytes) {
        let doubles = &mut buffers.outgoing_doubles()[..length / DOUBLE];
        for (element, double) in doubles.iter_mut().enumerate() {
            *double = summand(element, rank);
        }
    } else {
        for (index, byte) in buffers.outgoing_mut()[..length].iter_mut().enumerate() {
            *byte = pattern(index, rank);
        }
    }
}

/// A byte of the contributions of the ranks before `end` together.
fn combined(index: usize, bytes: usize, end: u32) -> u8 {
    match is_doubles(bytes) {
        true => sum(index / DOUBLE, end).to_ne_bytes()[index % DOUBLE],
        false => (0..end).fold(0, |all, rank| all ^ pattern(index, rank)),
    }
}

fn of_all(index: usize, bytes: usize, place: CallingRank) -> u8 {
    combined(index, bytes, place.procs)
}

/// This rank's block of what all have together.
fn own_block(index: usize, bytes: usize, place: CallingRank) -> u8 {
    combined(place.rank as usize * bytes + index, bytes, place.procs)
}

fn all_bytes(bytes: usize, place: CallingRank) -> usize {
    bytes * place.procs as usize
}

pub(super) const ALLREDUCE: MeasuredOperation = MeasuredOperation {
    collective: Collective::Allreduce,
    description: "MPI_Allreduce, MPI_SUM of doubles where the bytes are whole doubles, else \
                  MPI_BXOR of bytes",
    room: |bytes, _| (bytes, bytes),
    arguments: |buffers, bytes, _| Arguments::Allreduce {
        data: operands(buffers, bytes, bytes, bytes),
        count: elements(bytes) as i64,
    },
    fill: |buffers, bytes, place| contribute(buffers, bytes, bytes, place.rank),
    length: |bytes, _| bytes,
    expected: of_all,
};

pub(super) const REDUCE: MeasuredOperation = MeasuredOperation {
    collective: Collective::Reduce,
    description: "MPI_Reduce to the root, MPI_SUM of doubles where the bytes are whole doubles, \
                  else MPI_BXOR of bytes",
    arguments: |buffers, bytes, place| Arguments::Reduce {
        data: operands(buffers, bytes, bytes, bytes),
        count: elements(bytes) as i64,
        root: place.root as c_int,
    },
    length: |bytes, place| if place.is_root() { bytes } else { 0 },
    ..ALLREDUCE
};

pub(super) const SCAN: MeasuredOperation = MeasuredOperation {
    collective: Collective::Scan,
    description: "MPI_Scan, MPI_SUM of doubles where the bytes are whole doubles, else MPI_BXOR \
                  of bytes",
    arguments: |buffers, bytes, _| Arguments::Scan {
        data: operands(buffers, bytes, bytes, bytes),
        count: elements(bytes) as i64,
    },
    expected: |index, bytes, place| combined(index, bytes, place.rank + 1),
    ..ALLREDUCE
};

pub(super) const EXSCAN: MeasuredOperation = MeasuredOperation {
    collective: Collective::Exscan,
    description: "MPI_Exscan, MPI_SUM of doubles where the bytes are whole doubles, else MPI_BXOR \
                  of bytes",
    arguments: |buffers, bytes, _| Arguments::Exscan {
        data: operands(buffers, bytes, bytes, bytes),
        count: elements(bytes) as i64,
    },
    length: |bytes, place| if place.rank == 0 { 0 } else { bytes },
    expected: |index, bytes, place| combined(index, bytes, place.rank),
    ..ALLREDUCE
};

pub(super) const REDUCE_SCATTER_BLOCK: MeasuredOperation = MeasuredOperation {
    collective: Collective::ReduceScatterBlock,
    description: "MPI_Reduce_scatter_block, MPI_SUM of doubles where the bytes are whole doubles, \
                  else MPI_BXOR of bytes",
    room: |bytes, procs| (bytes * procs, bytes),
    arguments: |buffers, bytes, place| Arguments::ReduceScatterBlock {
        data: operands(buffers, bytes, all_bytes(bytes, place), bytes),
        count: elements(bytes) as i64,
    },
    fill: |buffers, bytes, place| {
        contribute(buffers, bytes, all_bytes(bytes, place), place.rank);
        buffers.set_blocks(elements(bytes), place.procs);
    },
    expected: own_block,
    ..ALLREDUCE
};

pub(super) const REDUCE_SCATTER: MeasuredOperation = MeasuredOperation {
    collective: Collective::ReduceScatter,
    description: "MPI_Reduce_scatter in equal blocks, MPI_SUM of doubles where the bytes are \
                  whole doubles, else MPI_BXOR of bytes",
    arguments: |buffers, bytes, place| Arguments::ReduceScatter {
        data: operands(buffers, bytes, all_bytes(bytes, place), bytes),
        counts: Counts::Int(buffers.counts().as_ptr()),
    },
    ..REDUCE_SCATTER_BLOCK
};
