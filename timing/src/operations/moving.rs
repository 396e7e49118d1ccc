//! The collectives that move data, as bytes: every rank's data are a pattern of its own.

use records::Collective;

use super::{
    buffers::{Buffers, pattern},
    operation::{CallingRank, MeasuredOperation},
};

/// What a rank sends: the pattern that is its own.
fn fill_sent(buffers: &mut Buffers, sent: usize, rank: u32) {
    for (index, byte) in buffers.outgoing_mut()[..sent].iter_mut().enumerate() {
        *byte = pattern(index, rank);
    }
}

fn fill_block(buffers: &mut Buffers, bytes: usize, place: CallingRank) {
    fill_sent(buffers, bytes, place.rank);
    buffers.set_blocks(bytes, place.procs);
}

fn fill_blocks(buffers: &mut Buffers, bytes: usize, place: CallingRank) {
    fill_sent(buffers, bytes * place.procs as usize, place.rank);
    buffers.set_blocks(bytes, place.procs);
}

/// The block of every rank, one after the other.
fn gathered(index: usize, bytes: usize, _: CallingRank) -> u8 {
    pattern(index % bytes, (index / bytes) as u32)
}

/// This rank's part of what the root has.
fn scattered(index: usize, bytes: usize, place: CallingRank) -> u8 {
    pattern(place.rank as usize * bytes + index, place.root)
}

/// This rank's part of what every rank has.
fn exchanged(index: usize, bytes: usize, place: CallingRank) -> u8 {
    pattern(place.rank as usize * bytes + index % bytes, (index / bytes) as u32)
}

fn at_root(bytes: usize, place: CallingRank) -> usize {
    if place.is_root() { bytes * place.procs as usize } else { 0 }
}

pub(super) const BARRIER: MeasuredOperation = MeasuredOperation {
    collective: Collective::Barrier,
    description: "MPI_Barrier",
    fill: |_, _, _| {},
    length: |_, _| 0,
    expected: |_, _, _| 0,
};

pub(super) const BCAST: MeasuredOperation = MeasuredOperation {
    collective: Collective::Bcast,
    description: "MPI_Bcast of bytes from the root",
    fill: |buffers, bytes, place| {
        if place.is_root() {
            for (index, byte) in buffers.incoming_mut()[..bytes].iter_mut().enumerate() {
                *byte = pattern(index, 0);
            }
        }
    },
    length: |bytes, _| bytes,
    expected: |index, _, _| pattern(index, 0),
};

pub(super) const ALLGATHER: MeasuredOperation = MeasuredOperation {
    collective: Collective::Allgather,
    description: "MPI_Allgather of bytes",
    fill: fill_block,
    length: |bytes, place| bytes * place.procs as usize,
    expected: gathered,
};

pub(super) const ALLGATHERV: MeasuredOperation = MeasuredOperation {
    collective: Collective::Allgatherv,
    description: "MPI_Allgatherv of bytes in equal blocks",
    ..ALLGATHER
};

pub(super) const GATHER: MeasuredOperation = MeasuredOperation {
    collective: Collective::Gather,
    description: "MPI_Gather of bytes to the root",
    length: at_root,
    ..ALLGATHER
};

pub(super) const GATHERV: MeasuredOperation = MeasuredOperation {
    collective: Collective::Gatherv,
    description: "MPI_Gatherv of bytes in equal blocks to the root",
    ..GATHER
};

pub(super) const SCATTER: MeasuredOperation = MeasuredOperation {
    collective: Collective::Scatter,
    description: "MPI_Scatter of bytes from the root",
    fill: fill_blocks,
    length: |bytes, _| bytes,
    expected: scattered,
};

pub(super) const SCATTERV: MeasuredOperation = MeasuredOperation {
    collective: Collective::Scatterv,
    description: "MPI_Scatterv of bytes in equal blocks from the root",
    ..SCATTER
};

pub(super) const ALLTOALL: MeasuredOperation = MeasuredOperation {
    collective: Collective::Alltoall,
    description: "MPI_Alltoall of bytes",
    fill: fill_blocks,
    length: |bytes, place| bytes * place.procs as usize,
    expected: exchanged,
};

pub(super) const ALLTOALLV: MeasuredOperation = MeasuredOperation {
    collective: Collective::Alltoallv,
    description: "MPI_Alltoallv of bytes in equal blocks",
    ..ALLTOALL
};
