//! What a run says of a cluster that strangers may read: no host names, no paths, no settings.

use serde::{Deserialize, Serialize};

use crate::{
    Layout,
    calibration::{InsideNode, Parameters},
    document::Document,
    penalty::PenaltySummary,
    summary::LoadWay,
};

/// A cluster by a name that its user has given it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedCluster {
    pub name: String,
    /// Name and version alone: `Open MPI 5.0.11`.
    pub mpi_library: String,
    /// Model of rank 0's processor.
    pub processor: String,
    /// Kernel release of rank 0, its numbers alone.
    pub kernel: String,
    /// How many ranks were on how many nodes.
    pub layout: Layout,
    /// Its rate and latency, where it is a virtual one; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub virtual_cluster: String,
    /// Measured point to point; between nodes where nodes hold several ranks.
    pub measured: Parameters,
    /// Inside a node, where nodes hold several ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<InsideNode>,
    /// What following the models and the library's default costs, per collective.
    pub penalties: Vec<PenaltySummary>,
    /// What was confirmed, per way of loading; empty where nothing was tuned.
    pub gains: Vec<SharedGain>,
}

/// What one way of loading gains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedGain {
    pub way: LoadWay,
    /// Points decided on.
    pub points: u32,
    /// Of these, replaced and confirmed to be faster.
    pub confirmed: u32,
    /// Geometric mean over all points, those left to the default counting 1.
    pub mean_speed_up: f64,
    /// Its interval (95 %).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_interval: Option<[f64; 2]>,
}

impl Document for SharedCluster {
    const SCHEMA: &'static str = "colibri/cluster/1";
}
