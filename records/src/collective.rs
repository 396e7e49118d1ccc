use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::names::unknown;

/// An MPI collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are MPI's own")]
pub enum Collective {
    Allgather,
    Allgatherv,
    Allreduce,
    Alltoall,
    Alltoallv,
    Barrier,
    Bcast,
    Exscan,
    Gather,
    Gatherv,
    Reduce,
    ReduceScatter,
    ReduceScatterBlock,
    Scan,
    Scatter,
    Scatterv,
}

impl Collective {
    /// All of them, by name.
    pub const ALL: [Collective; 16] = [
        Collective::Allgather,
        Collective::Allgatherv,
        Collective::Allreduce,
        Collective::Alltoall,
        Collective::Alltoallv,
        Collective::Barrier,
        Collective::Bcast,
        Collective::Exscan,
        Collective::Gather,
        Collective::Gatherv,
        Collective::Reduce,
        Collective::ReduceScatter,
        Collective::ReduceScatterBlock,
        Collective::Scan,
        Collective::Scatter,
        Collective::Scatterv,
    ];

    /// MPI's name in lower case, without the prefix.
    pub const fn name(self) -> &'static str {
        match self {
            Collective::Allgather => "allgather",
            Collective::Allgatherv => "allgatherv",
            Collective::Allreduce => "allreduce",
            Collective::Alltoall => "alltoall",
            Collective::Alltoallv => "alltoallv",
            Collective::Barrier => "barrier",
            Collective::Bcast => "bcast",
            Collective::Exscan => "exscan",
            Collective::Gather => "gather",
            Collective::Gatherv => "gatherv",
            Collective::Reduce => "reduce",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::ReduceScatterBlock => "reduce_scatter_block",
            Collective::Scan => "scan",
            Collective::Scatter => "scatter",
            Collective::Scatterv => "scatterv",
        }
    }

    /// What "message size" means for this collective, in every file and flag of Colibri.
    ///
    /// Libraries and tools differ (per rank, per block, total); exporters convert.
    pub const fn message_size(self) -> &'static str {
        match self {
            Collective::Bcast
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::Scan
            | Collective::Exscan => "count x type size",
            Collective::Allgather
            | Collective::Gather
            | Collective::Scatter
            | Collective::Alltoall
            | Collective::ReduceScatterBlock => "the block between one pair of ranks",
            Collective::ReduceScatter
            | Collective::Allgatherv
            | Collective::Gatherv
            | Collective::Scatterv
            | Collective::Alltoallv => "the mean block between one pair of ranks",
            Collective::Barrier => "0",
        }
    }

    /// The size in bytes of the elements with which Colibri measures a message of `bytes`:
    /// libraries fall back by the number of elements. Reductions are of doubles where these fit.
    pub const fn element_bytes(self, bytes: u64) -> u64 {
        match self {
            Collective::Reduce
            | Collective::Allreduce
            | Collective::ReduceScatter
            | Collective::ReduceScatterBlock
            | Collective::Scan
            | Collective::Exscan
                if bytes >= 8 && bytes.is_multiple_of(8) =>
            {
                8
            }
            _ => 1,
        }
    }
}

/// One kind of call: what a decision function is asked about, and what is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// The collective.
    pub collective: Collective,
    /// Communicator size.
    pub procs: u32,
    /// Message size; see [`Collective::message_size`]. 0 for a barrier.
    pub bytes: u64,
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Collective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        Self::ALL
            .into_iter()
            .find(|collective| collective.name() == text)
            .ok_or_else(|| unknown("collective", text, &names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_match_the_files() {
        for collective in Collective::ALL {
            assert_eq!(collective.name().parse(), Ok(collective));
            let json = serde_json::to_string(&collective).unwrap();
            assert_eq!(json, format!("\"{}\"", collective.name()));
        }
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let error = "bcats".parse::<Collective>().unwrap_err();
        assert!(error.contains("did you mean 'bcast'?"), "{error}");
    }
}
