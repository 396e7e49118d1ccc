use std::{fmt, str::FromStr};

use crate::names::unknown;

macro_rules! algorithms {
    ($($variant:ident $name:literal,)*) => {
        /// The scheme by which a collective is carried out, apart from its parameters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the names are the field's own")]
        pub enum Algorithm { $($variant,)* }

        impl Algorithm {
            /// All of them.
            pub const ALL: &'static [Algorithm] = &[$(Algorithm::$variant,)*];

            /// The name used in files and flags.
            pub const fn name(self) -> &'static str {
                match self { $(Algorithm::$variant => $name,)* }
            }
        }
    };
}

algorithms! {
    Linear "linear",
    Pipeline "pipeline",
    KChain "k-chain",
    Binomial "binomial",
    KNomial "k-nomial",
    Binary "binary",
    InOrderBinary "in-order-binary",
    SplittedBinary "splitted-binary",
    ScatterAllgather "scatter-allgather",
    ScatterAllgatherRing "scatter-allgather-ring",
    DoubleRing "double-ring",
    Ring "ring",
    RecursiveDoubling "recursive-doubling",
    Bruck "bruck",
    Pairwise "pairwise",
    Rabenseifner "rabenseifner",
    SegmentedRing "segmented-ring",
    NeighborExchange "neighbor-exchange",
    RecursiveHalving "recursive-halving",
    TwoProcs "two-procs",
    Traff "traff",
    LinearAscending "linear-ascending",
    LinearBlocking "linear-blocking",
    LinearConcurrent "linear-concurrent",
    LinearDescending "linear-descending",
    LinearReady "linear-ready",
    LinearSynchronised "linear-synchronised",
    BinomialAscending "binomial-ascending",
    BinomialDescending "binomial-descending",
    TwoLevel "two-level",
    MultiLane "multi-lane",
    NodeOrder "node-order",
    Circulant "circulant",
    TwoTrees "two-trees",
    Bine "bine",
    RecursiveMultiplying "recursive-multiplying",
    KBruck "k-bruck",
    KRing "k-ring",
    Sparbit "sparbit",
    Fitted "fitted",
    SharedFlags "shared-flags",
    SharedCells "shared-cells",
    SharedSlices "shared-slices",
    SharedSlots "shared-slots",
    Han "han",
    HanSimple "han-simple",
    Sm "sm",
}

impl Algorithm {
    /// Whether it is a way to compose other algorithms by the nodes of the ranks, between nodes and inside them.
    pub const fn is_node_aware(self) -> bool {
        matches!(self, Algorithm::TwoLevel | Algorithm::MultiLane | Algorithm::NodeOrder)
    }

    /// Whether the ranks of a node carry it out through memory that they share, without messages.
    pub const fn shares_memory(self) -> bool {
        matches!(
            self,
            Algorithm::SharedFlags
                | Algorithm::SharedCells
                | Algorithm::SharedSlices
                | Algorithm::SharedSlots
        )
    }

    /// The algorithm of which this is a second form; none where it is the plain one. Forms differ
    /// in how a message is sent or in which order ranks are served.
    pub const fn plain(self) -> Option<Algorithm> {
        match self {
            Algorithm::LinearAscending
            | Algorithm::LinearBlocking
            | Algorithm::LinearDescending
            | Algorithm::LinearReady
            | Algorithm::LinearSynchronised => Some(Algorithm::Linear),
            Algorithm::BinomialAscending | Algorithm::BinomialDescending => {
                Some(Algorithm::Binomial)
            }
            Algorithm::HanSimple => Some(Algorithm::Han),
            _ => None,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The order of ranks is a parameter of others, as in own:ring,order=node.
        let named = Self::ALL.iter().filter(|algorithm| **algorithm != Algorithm::NodeOrder);
        let found = named.clone().copied().find(|algorithm| algorithm.name() == text);
        found.ok_or_else(|| {
            let names: Vec<&str> = named.map(|algorithm| algorithm.name()).collect();
            unknown("algorithm", text, &names)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_form_is_named_after_its_algorithm() {
        for algorithm in Algorithm::ALL {
            if let Some(plain) = algorithm.plain() {
                assert!(algorithm.name().starts_with(&format!("{plain}-")), "{algorithm}");
                assert_eq!(plain.plain(), None);
            }
        }
    }
}
