use records::{BufferContent, Collective, unknown};

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

/// Bytes of an element where a tool does not name its datatype: a float or an int.
pub const ELEMENT_BYTES: u64 = 4;

/// Bytes of an element, by MPI's name of its datatype, as the tools' options can choose it.
const DATATYPES: [(&str, u64); 9] = [
    ("MPI_BYTE", 1),
    ("MPI_CHAR", 1),
    ("MPI_SHORT", 2),
    ("MPI_INT", 4),
    ("MPI_LONG", 8),
    ("MPI_FLOAT", 4),
    ("MPI_DOUBLE", 8),
    ("MPI_INT32_T", 4),
    ("MPI_INT64_T", 8),
];

/// Bytes of an element of a datatype of MPI's.
///
/// # Errors
/// It is none of those that the tools use; which they are.
pub fn element_bytes(datatype: &str) -> Result<u64, String> {
    let known = DATATYPES.iter().find(|(name, _)| *name == datatype);
    known
        .map(|(_, bytes)| *bytes)
        .ok_or_else(|| unknown("datatype", datatype, &DATATYPES.map(|(name, _)| name)))
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
