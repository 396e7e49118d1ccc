use std::fmt;

use crate::{Algorithm, quantity};

/// Algorithms of ours composed by the nodes of the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeAware {
    /// Two-level (a leader of each node works between nodes), multi-lane (every rank does, with its
    /// share) or node-order (one algorithm, `inter`, on ranks renumbered by node).
    pub scheme: Algorithm,
    /// Between nodes; none: what the scheme has as standard.
    pub inter: Option<Algorithm>,
    /// Inside a node; none: what the scheme has as standard.
    pub intra: Option<Algorithm>,
    /// Segment size in bytes; 0 is unsegmented.
    pub segment_bytes: u64,
}

impl NodeAware {
    /// Without origin and segments: `two-level pipeline/binomial`, `ring by node`.
    pub fn words(&self) -> String {
        let name = |level: Option<Algorithm>| level.map_or("standard", Algorithm::name);
        match (self.scheme, self.inter, self.intra) {
            (Algorithm::NodeOrder, inter, _) => format!("{} by node", name(inter)),
            (scheme, None, None) => scheme.to_string(),
            (scheme, inter, intra) => format!("{scheme} {}/{}", name(inter), name(intra)),
        }
    }
}

impl fmt::Display for NodeAware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.scheme, self.inter) {
            (Algorithm::NodeOrder, Some(algorithm)) => write!(f, "own:{algorithm},order=node")?,
            (scheme, inter) => {
                write!(f, "own:{scheme}")?;
                inter.map_or(Ok(()), |inter| write!(f, ",inter={inter}"))?;
                self.intra.map_or(Ok(()), |intra| write!(f, ",intra={intra}"))?;
            }
        }
        if self.segment_bytes > 0 {
            write!(f, ",segment={}", quantity::compact_bytes(self.segment_bytes))?;
        }
        Ok(())
    }
}
