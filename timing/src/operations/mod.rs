//! The collectives that can be timed: one entry each.

mod buffers;
mod combining;
mod moving;
mod operation;
mod uneven;

use records::Collective;

pub use buffers::Buffers;
pub use operation::{CallingRank, MeasuredOperation};
pub use uneven::UnevenBlocks;

/// The entry of a collective.
pub fn operation_of(collective: Collective) -> &'static MeasuredOperation {
    match collective {
        Collective::Allgather => &moving::ALLGATHER,
        Collective::Allgatherv => &moving::ALLGATHERV,
        Collective::Allreduce => &combining::ALLREDUCE,
        Collective::Alltoall => &moving::ALLTOALL,
        Collective::Alltoallv => &moving::ALLTOALLV,
        Collective::Barrier => &moving::BARRIER,
        Collective::Bcast => &moving::BCAST,
        Collective::Exscan => &combining::EXSCAN,
        Collective::Gather => &moving::GATHER,
        Collective::Gatherv => &moving::GATHERV,
        Collective::Reduce => &combining::REDUCE,
        Collective::ReduceScatter => &combining::REDUCE_SCATTER,
        Collective::ReduceScatterBlock => &combining::REDUCE_SCATTER_BLOCK,
        Collective::Scan => &combining::SCAN,
        Collective::Scatter => &moving::SCATTER,
        Collective::Scatterv => &moving::SCATTERV,
    }
}

/// Whether the collective has a displacement, an int, for every rank's block.
pub fn has_displacements(collective: Collective) -> bool {
    // What is combined lies without gaps.
    collective.has_counts() && !collective.combines()
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner::{AbiFamily, MpiConstants};

    fn buffers(out: usize, into: usize) -> Buffers {
        let constants = MpiConstants::new(AbiFamily::Mpich, |_| std::ptr::null()).unwrap();
        Buffers::new(out, into, constants)
    }

    /// What every rank sends, and what all should then have.
    fn sent(
        operation: &MeasuredOperation,
        bytes: usize,
        (procs, root): (u32, u32),
    ) -> Vec<Vec<u8>> {
        let (out, into) = operation.room(bytes, procs);
        let fill = |rank| {
            let mut buffers = buffers(out, into);
            operation.prepare(&mut buffers, bytes, CallingRank { rank, procs, root });
            buffers.outgoing_mut()[..out].to_vec()
        };
        (0..procs).map(fill).collect()
    }

    fn doubles(bytes: &[u8]) -> impl Iterator<Item = f64> {
        bytes.as_chunks().0.iter().map(|double| f64::from_ne_bytes(*double))
    }

    /// A collective as it should be, by other means: on what all ranks have sent, together.
    fn result(
        collective: Collective,
        bytes: usize,
        place: CallingRank,
        all: &[Vec<u8>],
    ) -> Vec<u8> {
        let (rank, procs) = (place.rank as usize, place.procs as usize);
        let own = rank * bytes..(rank + 1) * bytes;
        let combined = |ranks: &[Vec<u8>]| -> Vec<u8> {
            let length = ranks[0].len();
            if bytes >= 8 && bytes.is_multiple_of(8) {
                let mut sums = vec![0.0; length / 8];
                for contribution in ranks {
                    sums.iter_mut()
                        .zip(doubles(contribution))
                        .for_each(|(sum, value)| *sum += value);
                }
                sums.into_iter().flat_map(f64::to_ne_bytes).collect()
            } else {
                let mut bits = vec![0; length];
                for contribution in ranks {
                    bits.iter_mut().zip(contribution).for_each(|(bit, value)| *bit ^= value);
                }
                bits
            }
        };
        match collective {
            Collective::Gather | Collective::Gatherv | Collective::Reduce
                if place.rank != place.root =>
            {
                Vec::new()
            }
            Collective::Allgather
            | Collective::Allgatherv
            | Collective::Gather
            | Collective::Gatherv => all.concat(),
            Collective::Scatter | Collective::Scatterv => all[place.root as usize][own].to_vec(),
            Collective::Alltoall | Collective::Alltoallv => {
                all.iter().flat_map(|sent| sent[own.clone()].to_vec()).collect()
            }
            Collective::Reduce | Collective::Allreduce => combined(all),
            Collective::Scan => combined(&all[..=rank]),
            Collective::Exscan if rank == 0 => Vec::new(),
            Collective::Exscan => combined(&all[..rank]),
            Collective::ReduceScatter | Collective::ReduceScatterBlock => {
                assert_eq!(all.len(), procs);
                combined(all)[own].to_vec()
            }
            Collective::Barrier | Collective::Bcast => panic!("nothing is sent from there"),
        }
    }

    #[test]
    fn a_right_result_passes_and_a_wrong_byte_is_named() {
        let others = |collective: &Collective| {
            !matches!(collective, Collective::Barrier | Collective::Bcast)
        };
        for collective in Collective::ALL.into_iter().filter(others) {
            let operation = operation_of(collective);
            for bytes in [0, 1, 7, 8, 12, 64, 1027] {
                for (procs, root) in [(1, 0), (2, 1), (5, 0), (5, 2), (40, 39)] {
                    let all = sent(operation, bytes, (procs, root));
                    for rank in [0, procs / 2, procs - 1] {
                        let place = CallingRank { rank, procs, root };
                        let (out, into) = operation.room(bytes, procs);
                        let mut buffers = buffers(out, into);
                        operation.prepare(&mut buffers, bytes, place);
                        let right = result(collective, bytes, place, &all);
                        if !right.is_empty() {
                            let missing = operation.check(&buffers, bytes, place);
                            assert!(missing.is_err(), "{collective} of {bytes} without a result");
                        }
                        buffers.incoming_mut()[..right.len()].copy_from_slice(&right);
                        operation.check(&buffers, bytes, place).unwrap();
                        let Some(last) = right.len().checked_sub(1) else { continue };
                        buffers.incoming_mut()[last] ^= 1;
                        let error = operation.check(&buffers, bytes, place).unwrap_err();
                        let named = format!("byte {last} on rank {rank}");
                        assert!(error.to_string().contains(&named), "{collective}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_broadcast_that_did_not_arrive_is_caught() {
        let bcast = operation_of(Collective::Bcast);
        for bytes in [1, 5, 4096] {
            let mut buffers = buffers(0, bytes);
            for (rank, root, is_right) in [(0, 0, true), (3, 0, false), (3, 3, true), (0, 3, false)]
            {
                let place = CallingRank { rank, procs: 4, root };
                bcast.prepare(&mut buffers, bytes, place);
                assert_eq!(bcast.check(&buffers, bytes, place).is_ok(), is_right);
            }
        }
    }
}
