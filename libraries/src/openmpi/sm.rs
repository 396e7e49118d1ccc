//! Open MPI's component coll/sm: collectives through memory that the ranks of a node share, in 4.0, 4.1 and 5.0.
//!
//! Its priority is 0, so that nothing runs by it unless it is asked for, and then all its collectives do. It takes
//! communicators of two ranks or more that are all on one node. The priority is read-only once a job runs (`ompi_info`
//! of 4.1.4), and no rules file can name it.

use records::{Algorithm, Collective, Native, observation::traced_function};

use super::{algorithms::LIBRARY, forcing::as_variable};

/// The parameter that puts it before coll/tuned and coll/han.
pub const PRIORITY: &str = "coll_sm_priority";
const BEFORE_ALL: &str = "100";

/// Whether it has a collective.
pub const fn has(collective: Collective) -> bool {
    use Collective::{Allreduce, Barrier, Bcast, Reduce};
    matches!(collective, Allreduce | Barrier | Bcast | Reduce)
}

/// Whether a method of a collective is its.
pub fn is(collective: Collective, native: &Native) -> bool {
    native.algorithm == Algorithm::Sm && has(collective)
}

/// What it runs, where a job's ranks share a node.
pub fn method(collective: Collective) -> Option<Native> {
    let native = Native { library: LIBRARY, algorithm: Algorithm::Sm, segment_bytes: 0 };
    has(collective).then_some(native)
}

/// What forces it for a whole job.
pub fn environment() -> Vec<(String, String)> {
    vec![(as_variable(PRIORITY), BEFORE_ALL.to_owned())]
}

/// The function that runs it, without the prefix `mca_coll_`.
pub fn function(collective: Collective) -> String {
    format!("sm_{collective}_intra")
}

/// Whether what was seen are calls of it.
pub fn ran_as_asked(collective: Collective, ran: &str) -> bool {
    let function = function(collective);
    ran.is_empty() || ran.split(';').all(|call| traced_function(call) == function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{library::MpiLibrary, openmpi::OpenMpiLibrary};

    #[test]
    fn it_is_forced_for_a_whole_job_alone() {
        let native = method(Collective::Bcast).unwrap();
        for version in [(4, 1), (5, 0)] {
            let forced = OpenMpiLibrary.forced_by(version, Collective::Bcast, &native);
            let wanted = ("OMPI_MCA_coll_sm_priority".to_owned(), "100".to_owned());
            assert_eq!(forced, Some(vec![wanted]));
            let within = OpenMpiLibrary.within_job().unwrap();
            let why = (within.variables)(version, Collective::Bcast, &native).unwrap_err();
            assert!(why.contains("coll_sm_priority can't be changed within a job"), "{why}");
        }
        assert_eq!(method(Collective::Alltoall), None);
        let within = OpenMpiLibrary.within_job().unwrap();
        assert!((within.variables)((4, 1), Collective::Alltoall, &native).is_err());
        let cut = Native { segment_bytes: 8192, ..native };
        assert_eq!(OpenMpiLibrary.forced_by((4, 1), Collective::Bcast, &cut), None);
    }

    #[test]
    fn what_another_component_runs_is_no_call_of_it() {
        let check = |ran| ran_as_asked(Collective::Allreduce, ran);
        assert!(check("") && check("sm_allreduce_intra"));
        assert!(check("sm_allreduce_intra>sm_reduce_intra>sm_bcast_intra;sm_allreduce_intra"));
        assert!(!check("allreduce_intra_recursivedoubling"));
        assert!(!check("sm_reduce_intra"));
    }
}
