//! The collectives that combine data: doubles are summed; what is not a number of whole doubles is
//! combined byte by byte.

use records::Collective;

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
    fill: |buffers, bytes, place| contribute(buffers, bytes, bytes, place.rank),
    length: |bytes, _| bytes,
    expected: of_all,
};

pub(super) const REDUCE: MeasuredOperation = MeasuredOperation {
    collective: Collective::Reduce,
    description: "MPI_Reduce to the root, MPI_SUM of doubles where the bytes are whole doubles, \
                  else MPI_BXOR of bytes",
    length: |bytes, place| if place.is_root() { bytes } else { 0 },
    ..ALLREDUCE
};

pub(super) const SCAN: MeasuredOperation = MeasuredOperation {
    collective: Collective::Scan,
    description: "MPI_Scan, MPI_SUM of doubles where the bytes are whole doubles, else MPI_BXOR \
                  of bytes",
    expected: |index, bytes, place| combined(index, bytes, place.rank + 1),
    ..ALLREDUCE
};

pub(super) const EXSCAN: MeasuredOperation = MeasuredOperation {
    collective: Collective::Exscan,
    description: "MPI_Exscan, MPI_SUM of doubles where the bytes are whole doubles, else MPI_BXOR \
                  of bytes",
    length: |bytes, place| if place.rank == 0 { 0 } else { bytes },
    expected: |index, bytes, place| combined(index, bytes, place.rank),
    ..ALLREDUCE
};

pub(super) const REDUCE_SCATTER_BLOCK: MeasuredOperation = MeasuredOperation {
    collective: Collective::ReduceScatterBlock,
    description: "MPI_Reduce_scatter_block, MPI_SUM of doubles where the bytes are whole doubles, \
                  else MPI_BXOR of bytes",
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
    ..REDUCE_SCATTER_BLOCK
};
