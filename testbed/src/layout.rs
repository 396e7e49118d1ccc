//! Which ranks are on which node.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::TestbedError;

const MOST: u32 = 64;

/// How many ranks each node holds: the same number, `4`, or one for each node, `4,4,3`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RanksPerNode {
    /// On every node.
    Same(u32),
    /// On each node, in order.
    Each(Vec<u32>),
}

impl RanksPerNode {
    /// Of a node, from 0; none beyond the last.
    pub fn on(&self, node: u32) -> u32 {
        match self {
            RanksPerNode::Same(ranks) => *ranks,
            RanksPerNode::Each(ranks) => ranks.get(node as usize).copied().unwrap_or(0),
        }
    }

    /// Of how many nodes it is told, if of each.
    pub fn nodes(&self) -> Option<u32> {
        match self {
            RanksPerNode::Same(_) => None,
            RanksPerNode::Each(ranks) => Some(ranks.len() as u32),
        }
    }

    /// Whether no node holds more than one.
    pub fn is_one(&self) -> bool {
        match self {
            RanksPerNode::Same(ranks) => *ranks <= 1,
            RanksPerNode::Each(ranks) => ranks.iter().all(|ranks| *ranks <= 1),
        }
    }

    pub(crate) fn check(&self, nodes: u32) -> Result<(), TestbedError> {
        if let RanksPerNode::Each(ranks) = self
            && ranks.len() != nodes as usize
        {
            let given = ranks.len();
            let problem = format!("ranks of {given} nodes ({self}) are given for {nodes} nodes");
            return Err(TestbedError::Spec(problem));
        }
        match (0..nodes).map(|node| self.on(node)).find(|ranks| !(1..=MOST).contains(ranks)) {
            None => Ok(()),
            Some(ranks) => {
                let problem = format!("{ranks} ranks per node; a testbed has 1 to {MOST}");
                Err(TestbedError::Spec(problem))
            }
        }
    }
}

impl FromStr for RanksPerNode {
    type Err = TestbedError;

    fn from_str(text: &str) -> Result<RanksPerNode, TestbedError> {
        let numbers: Result<Vec<u32>, _> =
            text.split(',').map(|part| part.trim().parse()).collect();
        match numbers.as_deref() {
            Ok([ranks]) => Ok(RanksPerNode::Same(*ranks)),
            Ok(ranks) => Ok(RanksPerNode::Each(ranks.to_vec())),
            Err(_) => Err(TestbedError::Spec(format!(
                "'{text}' is not a number of ranks per node; write 4, or one for each node as 4,4,3"
            ))),
        }
    }
}

impl fmt::Display for RanksPerNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RanksPerNode::Same(ranks) => write!(f, "{ranks}"),
            RanksPerNode::Each(ranks) => {
                let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
                f.write_str(&ranks.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ranks_are_read_and_fit_the_nodes() {
        for text in ["4", "4,4,3"] {
            let ranks: RanksPerNode = text.parse().unwrap();
            assert_eq!(ranks.to_string(), text);
            assert!(ranks.check(3).is_ok());
            assert_eq!((ranks.on(1), ranks.is_one()), (4, false));
        }
        assert_eq!("4,4,3".parse::<RanksPerNode>().unwrap().on(2), 3);
        for text in ["", "4,", "four", "-1", "4;4"] {
            let error = text.parse::<RanksPerNode>().unwrap_err().to_string();
            assert!(error.contains("4,4,3"), "{error}");
        }
        for (text, part) in [
            ("4,4", "ranks of 2 nodes (4,4) are given for 3 nodes"),
            ("0", "0 ranks per node"),
            ("65", "65 ranks per node"),
            ("4,0,4", "0 ranks per node"),
        ] {
            let error = text.parse::<RanksPerNode>().unwrap().check(3).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_number_is_stored_as_a_number() {
        for (ranks, text) in [("2", "2"), ("2,1", "[2,1]")] {
            let ranks: RanksPerNode = ranks.parse().unwrap();
            assert_eq!(serde_json::to_string(&ranks).unwrap(), text);
            assert_eq!(serde_json::from_str::<RanksPerNode>(text).unwrap(), ranks);
        }
    }
}
