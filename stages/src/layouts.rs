//! Which communicators are wanted, where a job or a calibration says which there can be.

use std::collections::BTreeSet;

use records::Layout;

/// The communicators that were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedLayouts {
    /// By their ranks and nodes.
    Layouts(Vec<Layout>),
    /// By the number of their processes.
    Procs(Vec<u32>),
    /// What is usual.
    Usual,
}

impl WantedLayouts {
    /// In a job of which several nodes hold several ranks: a number of processes are the job's first ranks. Where nothing
    /// is asked for, 2, 4, 8, ... and all nodes, with one rank and with all ranks of each.
    pub fn in_job(&self, job: Layout) -> Vec<Layout> {
        match self {
            WantedLayouts::Layouts(layouts) => layouts.clone(),
            // More than there are is refused as such.
            WantedLayouts::Procs(procs) => {
                let first = |&procs: &u32| job.of_first(procs).unwrap_or(Layout::flat(procs));
                procs.iter().map(first).collect()
            }
            WantedLayouts::Usual => {
                let (most, placement) = (job.max_per_node(), job.placement().unwrap_or_default());
                let whole = |nodes: u32| match job.per_node() {
                    Some(_) => Layout::even(nodes, most, placement).unwrap_or(job),
                    None => job,
                };
                let nodes = powers_of_two_and(job.nodes());
                let layouts =
                    nodes.into_iter().flat_map(|nodes| [Layout::flat(nodes), whole(nodes)]);
                layouts.collect::<BTreeSet<_>>().into_iter().collect()
            }
        }
    }

    /// In ascending order; where none are asked for, one rank per node of each of the `usual` sizes.
    pub fn or(&self, usual: impl FnOnce() -> Vec<u32>) -> Vec<Layout> {
        match self {
            WantedLayouts::Layouts(layouts) => layouts.clone(),
            WantedLayouts::Procs(procs) => procs.iter().copied().map(Layout::flat).collect(),
            WantedLayouts::Usual => usual().into_iter().map(Layout::flat).collect(),
        }
    }
}

/// 2, 4, 8, ... below `most`, and `most`.
pub fn powers_of_two_and(most: u32) -> Vec<u32> {
    let powers = std::iter::successors(Some(2_u32), |power| power.checked_mul(2));
    powers.take_while(|&power| power < most).chain([most]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communicator_sizes_end_with_the_full_size() {
        assert_eq!(powers_of_two_and(8), [2, 4, 8]);
        assert_eq!(powers_of_two_and(11), [2, 4, 8, 11]);
        assert_eq!(powers_of_two_and(2), [2]);
        assert_eq!(powers_of_two_and(1), [1]);
    }
}
