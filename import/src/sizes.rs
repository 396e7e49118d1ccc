use records::{Collective, Held};

/// What a tool's message size is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeMeaning {
    /// As Colibri has it; see [`Collective::message_size`].
    AsOurs,
    /// The blocks of all ranks together; a vector where there are no blocks.
    Total,
}

impl SizeMeaning {
    /// Bytes as Colibri counts them, for elements that are not divided. Where a vector cannot be dealt
    /// evenly the block is the whole elements that each rank surely has.
    pub fn ours(self, collective: Collective, procs: u32, bytes: u64, element_bytes: u64) -> u64 {
        match self {
            SizeMeaning::Total if is_by_block(collective) => {
                let element_bytes = element_bytes.max(1);
                bytes / element_bytes / u64::from(procs.max(1)) * element_bytes
            }
            _ => bytes,
        }
    }
}

/// Whether our size is the block between one pair of ranks.
fn is_by_block(collective: Collective) -> bool {
    let is_of_all = |held| matches!(held, Held::All | Held::AllAtRoot);
    is_of_all(collective.sends()) || is_of_all(collective.receives())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_is_dealt_to_the_ranks_where_ours_is_a_block() {
        let ours = |collective, bytes| SizeMeaning::Total.ours(collective, 60, bytes, 4);
        for collective in [
            Collective::Allgather,
            Collective::Alltoall,
            Collective::Gather,
            Collective::ReduceScatter,
            Collective::Scatter,
        ] {
            assert_eq!(ours(collective, 2400), 40, "{collective}");
            assert_eq!(ours(collective, 2048), 32, "{collective}: 512 elements, 8 for each");
            assert_eq!(SizeMeaning::AsOurs.ours(collective, 60, 2048, 4), 2048);
        }
        for collective in [Collective::Allreduce, Collective::Bcast, Collective::Reduce] {
            assert_eq!(ours(collective, 2048), 2048, "{collective}");
        }
    }
}
