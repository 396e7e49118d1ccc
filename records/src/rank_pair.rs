//! Which two ranks a calibration measures between.

use std::{fmt, str::FromStr};

/// Two ranks of a job, as the command is given them and hands on to the MPI program: `0,5`, `between-nodes`, `inside-node`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankPair {
    /// Two different ranks.
    These(u32, u32),
    /// The first ranks of two nodes.
    BetweenNodes,
    /// Two ranks of one node.
    InsideNode,
}

impl RankPair {
    /// How many ranks there must be.
    pub fn ranks(self) -> u32 {
        match self {
            RankPair::These(one, other) => one.max(other).saturating_add(1),
            RankPair::BetweenNodes | RankPair::InsideNode => 2,
        }
    }
}

impl fmt::Display for RankPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankPair::These(one, other) => write!(f, "{one},{other}"),
            RankPair::BetweenNodes => f.write_str("between-nodes"),
            RankPair::InsideNode => f.write_str("inside-node"),
        }
    }
}

impl FromStr for RankPair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ranks = text
            .split_once(',')
            .and_then(|(one, other)| Some((one.trim().parse().ok()?, other.trim().parse().ok()?)));
        match (text, ranks) {
            ("between-nodes", _) => Ok(RankPair::BetweenNodes),
            ("inside-node", _) => Ok(RankPair::InsideNode),
            (_, Some((one, other))) if one != other => Ok(RankPair::These(one, other)),
            _ => Err(format!(
                "'{text}' is not a pair; write two different ranks, such as 0,1, or between-nodes or \
                 inside-node"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_needs_one_rank_more_than_its_last() {
        let pair = |text: &str| text.parse::<RankPair>();
        assert_eq!(pair("0,5").unwrap().ranks(), 6);
        assert_eq!(pair("4294967295,0").unwrap().ranks(), u32::MAX, "more than any job has");
        assert!(pair("1,1").unwrap_err().contains("two different ranks"));
        for text in ["0,5", "between-nodes", "inside-node"] {
            assert_eq!(pair(text).unwrap().to_string(), text);
        }
    }
}
