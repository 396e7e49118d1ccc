//! What holds inside a node that has several ranks.

use serde::{Deserialize, Serialize};

use super::{
    line_fit::LineFit,
    parameters::{GapKnot, Parameters},
};

/// What ranks of one node are to each other, where nodes hold several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InsideNode {
    /// Taken from messages between two ranks of one node; gamma is the platform's.
    pub measured: Parameters,
    /// Fitted to collectives of the ranks of one node, where these were enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted: Option<Parameters>,
    /// The lines behind the fitted parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fits: Vec<LineFit>,
    /// What they get of their node's port when several send at once, by ascending number of ranks,
    /// one way before both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<PortGap>,
}

/// The least time between rounds in which each of k ranks of a node sends a message of m bytes to a
/// rank of its own on another node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortGap {
    /// k.
    pub ranks: u32,
    /// Whether each of them receives a message at the same time.
    pub both_ways: bool,
    /// At measured sizes, ascending.
    pub knots: Vec<GapKnot>,
}
