use records::{BufferContent, Collective};

/// What a tool's message size is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeMeaning {
    /// As Colibri has it; see [`Collective::message_size`].
    AsOurs,
    /// The blocks of all ranks together; a vector where there are no blocks.
    Total,
}

/// What is told where [`SizeMeaning::ours`] gives no size.
pub const FEWER_THAN_RANKS: &str = "vectors of fewer elements than ranks are left out: their block is less than an element, and sizes \
     would be taken for each other";

impl SizeMeaning {
    /// Bytes as Colibri counts them, for elements that are not divided. Where a vector cannot be dealt
    /// evenly the block is the whole elements that each rank surely has. None where there are fewer elements
    /// than ranks, but some: all such vectors would be blocks of 0 bytes.
    pub fn ours(
        self,
        collective: Collective,
        procs: u32,
        bytes: u64,
        element_bytes: u64,
    ) -> Option<u64> {
        match self {
            SizeMeaning::Total if is_by_block(collective) => {
                let element_bytes = element_bytes.max(1);
                let block = bytes / element_bytes / u64::from(procs.max(1)) * element_bytes;
                (block > 0 || bytes == 0).then_some(block)
            }
            _ => Some(bytes),
        }
    }
}

/// Whether our size is the block between one pair of ranks.
fn is_by_block(collective: Collective) -> bool {
    let is_of_all = |held| matches!(held, BufferContent::All | BufferContent::AllAtRoot);
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
            assert_eq!(ours(collective, 2400), Some(40), "{collective}");
            assert_eq!(ours(collective, 2048), Some(32), "{collective}: 512 elements, 8 for each");
            assert_eq!(ours(collective, 236), None, "{collective}: 59 elements");
            assert_eq!(ours(collective, 0), Some(0), "{collective}");
            assert_eq!(SizeMeaning::AsOurs.ours(collective, 60, 2048, 4), Some(2048));
        }
        for collective in [Collective::Allreduce, Collective::Bcast, Collective::Reduce] {
            assert_eq!(ours(collective, 2048), Some(2048), "{collective}");
            assert_eq!(ours(collective, 4), Some(4), "{collective}");
        }
    }
}
