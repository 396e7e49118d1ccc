//! `violations.json`: where an MPI library breaks the performance guidelines.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    Collective, Layout, Method, Point, document::Document, platform::Platform,
    quantity::format_bytes,
};

/// A kind of guideline: what a collective must not be slower than.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A(n) <= B(n): other collectives that do the same work.
    Pattern,
    /// A(n) <= A(n + k): the same call with more data.
    Monotony,
    /// A(n) <= k A(n/k): the same data in k calls.
    SplitRobustness,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 3] = [Class::Pattern, Class::Monotony, Class::SplitRobustness];

    /// The name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Pattern => "pattern",
            Class::Monotony => "monotony",
            Class::SplitRobustness => "split-robustness",
        }
    }
}

/// Everything found, and how it was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Violations {
    /// What was measured on.
    pub platform: Platform,
    /// How a call was timed.
    pub timing: String,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// How a violation is distinguished from noise.
    pub verdict: ViolationCriteria,
    /// How many there are, per class and collective.
    pub counts: Vec<Count>,
    /// At which sizes each guideline was judged.
    pub judged: Vec<JudgedGuideline>,
    /// Ascending by class, collective, processes and size.
    pub violations: Vec<Violation>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

impl Document for Violations {
    const SCHEMA: &'static str = "colibri/violations/1";
}

/// How a violation is distinguished from noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViolationCriteria {
    /// What is compared: the median of one job's observations.
    pub unit: String,
    /// Jobs, and so values in each sample; the most, where jobs measured different cells.
    pub jobs: u32,
    /// The test: `rank-sum` or `kolmogorov-smirnov`, one-sided.
    pub test: String,
    /// Greatest share of false ones among the violations, over all comparisons of pattern and
    /// monotony (Benjamini and Hochberg); split-robustness is judged by its tolerance.
    pub level: f64,
    /// Least relative gain for a violation of pattern and monotony.
    pub least_gain: f64,
    /// Relative gain from which k calls on a part violate split-robustness.
    pub split_tolerance: f64,
    pub comparisons: u32,
    /// The least p-value that the compared samples can give.
    pub least_p_value: f64,
}

/// Violations of one class by one collective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Count {
    pub class: Class,
    pub collective: Collective,
    /// Points (processes and size) at which the class was judged.
    pub points: u32,
    /// Of these, points with a violation.
    pub violated: u32,
}

/// One guideline on one communicator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedGuideline {
    pub class: Class,
    pub collective: Collective,
    /// The communicator's ranks and nodes.
    #[serde(rename = "procs")]
    pub layout: Layout,
    /// The right side of a pattern, in words.
    pub right: String,
    /// Message sizes at which it was judged, ascending.
    pub sizes: Vec<u64>,
    /// Of these, the sizes at which it is violated.
    pub violated: Vec<u64>,
}

/// What is faster than the collective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FasterAlternative {
    /// Another method for the same call.
    Method(Method),
    /// Other collectives one after the other; the sum of their times.
    Sum(Vec<Collective>),
    /// The same collective with more data: this size.
    Bytes(u64),
    /// The same collective in several calls.
    Calls {
        calls: u32,
        /// Size of each; together they move at least as much.
        bytes: u64,
    },
}

/// In words, for tables: `bcast_as_allgatherv`, `64 KiB`, `4 calls of 16 KiB`.
impl fmt::Display for FasterAlternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FasterAlternative::Method(method) => f.write_str(&method.short()),
            FasterAlternative::Sum(terms) => {
                let names: Vec<&str> = terms.iter().map(|term| term.name()).collect();
                f.write_str(&names.join(" + "))
            }
            FasterAlternative::Bytes(bytes) => f.write_str(&format_bytes(*bytes)),
            FasterAlternative::Calls { calls, bytes } => {
                write!(f, "{calls} calls of {}", format_bytes(*bytes))
            }
        }
    }
}

/// One guideline broken at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// The class of the guideline.
    pub class: Class,
    #[serde(flatten)]
    pub point: Point,
    /// What is faster.
    pub better: FasterAlternative,
    /// Time of the library's default: the median of the jobs' medians.
    pub seconds: f64,
    /// Time of what is faster; for split-robustness, of all calls, predicted as k times one.
    pub better_seconds: f64,
    /// seconds / better_seconds - 1.
    pub gain: f64,
    /// Of the test, where the class has one.
    pub p_value: Option<f64>,
    /// The p-value, corrected for the number of comparisons.
    pub corrected_p_value: Option<f64>,
    /// What k calls in a row took, where they were run.
    pub calls_seconds: Option<f64>,
    /// What these gained against one call on all the data in the same job, relatively.
    pub calls_gain: Option<f64>,
    /// Whether less is gained than a barrier costs on these processes: real, but hard to use.
    pub gains_less_than_a_barrier: Option<bool>,
}
