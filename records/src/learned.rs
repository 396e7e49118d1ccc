//! `learned/*.json`: what applications have shown of methods while they ran.
//!
//! The preload library writes it where `COLIBRI_ADAPT` names a directory; the next job begins with it, and `report`
//! and `export` read it. One file is of one MPI library on one kind of processor.

use serde::{Deserialize, Serialize, de::IgnoredAny};

use crate::{Method, Point, document::Document};

/// What applications have shown of the calls of one MPI library on one kind of processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    /// Checked and written by [`document`](crate::document); named here since no other field may
    /// stand in the file.
    #[serde(default, skip_serializing)]
    schema: IgnoredAny,
    /// The MPI library and its version, such as `Open MPI 4.1.4`.
    pub library: String,
    /// The processor's name as the system tells it.
    pub processor: String,
    /// Jobs that this is of.
    pub jobs: u64,
    /// One entry for each layout, collective and class of sizes.
    pub classes: Vec<LearnedClass>,
}

/// Calls of one collective, on communicators of one layout, with messages of one class of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnedClass {
    /// `bytes` is the least message of the class; see `choosing::exploring::SizeClass`.
    #[serde(flatten)]
    pub point: Point,
    /// The largest message of the class, in bytes.
    pub last_bytes: u64,
    /// How often it was called; a call of all ranks of a communicator counts once.
    pub calls: u64,
    /// The time of one call by the library's default, the mean of the ranks, in seconds.
    pub default_seconds: f64,
    /// What is used: [`Method::Default`] where nothing is known to be faster.
    pub chosen: Method,
    /// The methods that were tried.
    pub tried: Vec<LearnedMethod>,
}

/// How a method compares with the default, in runs of calls by turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnedMethod {
    pub method: Method,
    /// Comparisons: runs of calls by the method and by the default next to each other.
    pub trials: u64,
    /// The mean over the trials of ln(time of the method / time of the default).
    pub log_ratio: f64,
    /// The sum of the squared deviations from that mean.
    pub squares: f64,
}

impl Document for Learned {
    const SCHEMA: &'static str = "colibri/learned/1";
}

impl Learned {
    /// Nothing yet.
    pub fn new(library: String, processor: String) -> Self {
        Learned { schema: IgnoredAny, library, processor, jobs: 0, classes: Vec::new() }
    }
}
