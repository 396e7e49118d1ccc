//! What a mock-up is.

use std::fmt;

use records::Collective;

use super::{
    calls::MockupWork,
    facts::{Facts, MockupNeeds},
};
use crate::Result;

/// A collective as a composition of others.
#[derive(Debug)]
pub struct Mockup {
    /// `A_as_B_C`, with MPI's own names.
    pub name: &'static str,
    /// The performance guideline that compares A with it: `GL1` to `GL22`, `P9`, `P17`.
    pub guideline: &'static str,
    /// What it carries out.
    pub collective: Collective,
    /// Memory that it may need on a rank, to which the limits apply: p processes, n bytes of a block
    /// (of a message, for bcast, reduce, allreduce, scan; of all blocks for reduce_scatter) as they lie
    /// in memory, I the size of an `int`.
    pub memory: &'static str,
    pub(super) needs: fn(&Facts) -> MockupNeeds,
    pub(super) run: unsafe fn(&mut MockupWork<'_>) -> Result<()>,
}

impl Mockup {
    /// The MPI functions that it is made of, as its name tells them, in lower case without `mpi_`.
    pub fn functions(&self) -> Vec<String> {
        let (_, composition) = self.name.split_once("_as_").unwrap_or_default();
        composition.split("_then_").flat_map(functions_of).collect()
    }
}

/// `reduce_scatter_block_allgather` as `reduce_scatter_block` and `allgather`.
fn functions_of(composition: &str) -> Vec<String> {
    let mut rest: Vec<&str> = composition.split('_').collect();
    let mut functions = Vec::new();
    while !rest.is_empty() {
        let is_function = |words: &usize| {
            let name = rest[..*words].join("_");
            name == "reduce_local" || name.parse::<Collective>().is_ok()
        };
        let words = (1..=rest.len()).rev().find(is_function).unwrap_or(rest.len());
        functions.push(rest.drain(..words).collect::<Vec<&str>>().join("_"));
    }
    functions
}

/// `mockup:bcast_as_scatter_allgather`: what is recorded as having run.
impl fmt::Display for Mockup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mockup:{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use records::Collective;

    use crate::mockups::{ALL, find, made_of};

    #[test]
    fn a_name_tells_the_functions_and_they_the_mock_up() {
        for (name, functions) in [
            ("bcast_as_scatter_allgather", &["scatter", "allgather"][..]),
            ("reduce_scatter_block_as_reduce_then_scatter", &["reduce", "scatter"]),
            ("reduce_scatter_block_as_reduce_scatter", &["reduce_scatter"]),
            ("reduce_scatter_as_reduce_scatterv", &["reduce", "scatterv"]),
            ("scan_as_exscan_reduce_local", &["exscan", "reduce_local"]),
            ("allreduce_as_reduce_scatter_block_allgather", &["reduce_scatter_block", "allgather"]),
        ] {
            assert_eq!(find(name).unwrap().functions(), functions);
        }
        for mockup in ALL {
            let mut functions = mockup.functions();
            functions.reverse();
            let found = made_of(mockup.collective, &functions).unwrap();
            assert_eq!(found.name, mockup.name);
        }
        assert!(made_of(Collective::Bcast, &["reduce".into()]).is_none());
    }
}
