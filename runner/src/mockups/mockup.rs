//! What a mock-up is.

use std::fmt;

use records::Collective;

use super::{
    calls::MockupWork,
    facts::{Facts, MockupNeeds},
};
use crate::{Arguments, Error, Result};

/// A collective as a composition of others.
#[derive(Debug)]
pub struct Mockup {
    /// `A_as_B_C`, with MPI's own names.
    pub name: &'static str,
    /// The performance guideline that compares A with it: `GL1` to `GL22`, `P9`, `P17`.
    pub guideline: &'static str,
    /// What it carries out.
    pub collective: Collective,
    /// Memory that it may need on a rank: p processes, n bytes of a block (of a message, for
    /// bcast, reduce, allreduce, scan; of all blocks for reduce_scatter) as they lie in memory,
    /// I the size of an `int`.
    pub memory: &'static str,
    pub(super) needs: fn(&Facts) -> MockupNeeds,
    pub(super) run: unsafe fn(&mut MockupWork<'_>, &Arguments) -> Result<()>,
}

impl Mockup {
    /// What a mock-up says to arguments of another collective.
    pub(super) fn other(arguments: &Arguments) -> Error {
        Error::Refused(format!("no mock-up of {}", arguments.collective()))
    }
}

/// `mockup:bcast_as_scatter_allgather`: what is recorded as having run.
impl fmt::Display for Mockup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mockup:{}", self.name)
    }
}
