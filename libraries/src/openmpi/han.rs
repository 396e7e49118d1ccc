//! Open MPI's component coll/han: two levels, inside nodes and between them.
//!
//! In 5.0 it stands before coll/tuned wherever nodes hold several ranks. Where they hold unequal numbers, and
//! on one node, it hands all calls on. (In 4.1 it is off, and stays so: its allreduce and its types with gaps
//! were wrong before 5.0, issues 11441 and 11510 of open-mpi/ompi.)

use records::{Algorithm, Collective, Layout, Method, Native, Point, observation::traced_function};

use super::algorithms::LIBRARY;
use crate::library::Variable;

/// The version from which on it comes first.
pub const COMES_FIRST: (u32, u32) = (5, 0);

/// The parameter that puts it before coll/tuned, whose own is 30, or behind.
const PRIORITY: &str = "coll_han_priority";
const BEFORE_ALL: i32 = 100;
const BEHIND_ALL: i32 = 0;

/// One algorithm of coll/han.
pub struct HanAlgorithm {
    /// Value of `coll_han_use_<collective>_algorithm`.
    id: i32,
    /// As its file names it, behind `@`.
    pub name: &'static str,
    /// The end of the function that runs it: `han_bcast_intra_simple`.
    function: &'static str,
}

/// Messages in segments, so that the levels overlap.
const SEGMENTED: HanAlgorithm = HanAlgorithm { id: 1, name: "intra", function: "intra" };
/// One level after the other.
const SIMPLE: HanAlgorithm = HanAlgorithm { id: 2, name: "simple", function: "intra_simple" };
/// A barrier has nothing to segment.
const SIMPLE_BARRIER: HanAlgorithm = HanAlgorithm { id: 1, ..SIMPLE };

/// The algorithm by our name for it (`coll_han_algorithms.c`).
pub fn find(collective: Collective, algorithm: Algorithm) -> Option<&'static HanAlgorithm> {
    use Collective as C;
    match (collective, algorithm) {
        (
            C::Allgather | C::Allreduce | C::Bcast | C::Gather | C::Reduce | C::Scatter,
            Algorithm::Han,
        ) => Some(&SEGMENTED),
        (
            C::Allgather | C::Allreduce | C::Bcast | C::Gather | C::Reduce | C::Scatter,
            Algorithm::HanSimple,
        ) => Some(&SIMPLE),
        (C::Barrier, Algorithm::HanSimple) => Some(&SIMPLE_BARRIER),
        _ => None,
    }
}

/// Whether it has a collective at all.
pub fn has(collective: Collective) -> bool {
    find(collective, Algorithm::HanSimple).is_some()
}

/// Whether a method is one that it runs, the default of what it takes included.
pub fn keeps(collective: Collective, method: &Method) -> bool {
    match method {
        Method::Default => has(collective),
        Method::Native(native) => find(collective, native.algorithm).is_some(),
        _ => false,
    }
}

/// Whether it takes the calls of a communicator, and does not hand them on to what stands behind.
pub fn takes(version: (u32, u32), layout: Layout) -> bool {
    let (nodes, per_node) = (layout.nodes(), layout.per_node().unwrap_or(1));
    version >= COMES_FIRST && nodes > 1 && per_node > 1
}

/// What can be forced at a point.
pub fn methods(version: (u32, u32), point: Point) -> Vec<Method> {
    if !takes(version, point.layout) {
        return Vec::new();
    }
    let named = [Algorithm::Han, Algorithm::HanSimple].into_iter();
    let there = named.filter(|algorithm| find(point.collective, *algorithm).is_some());
    let native = |algorithm| Native { library: LIBRARY, algorithm, segment_bytes: 0 };
    there.map(|algorithm| Method::Native(native(algorithm))).collect()
}

/// What forces an algorithm: the first is read when a communicator is made, the second at each call.
pub fn forced(collective: Collective, algorithm: &HanAlgorithm) -> Vec<Variable> {
    let name = format!("coll_han_use_{collective}_algorithm");
    let first = Variable { name: PRIORITY.into(), value: BEFORE_ALL, optional: false };
    vec![first, Variable { name, value: algorithm.id, optional: false }]
}

/// What puts it behind coll/tuned, where it is not already.
pub fn set_aside(version: (u32, u32)) -> Option<Variable> {
    let behind = Variable { name: PRIORITY.into(), value: BEHIND_ALL, optional: true };
    (version >= COMES_FIRST).then_some(behind)
}

/// The function that runs it, without the prefix `mca_coll_`.
pub fn function(collective: Collective, algorithm: &HanAlgorithm) -> String {
    format!("han_{collective}_{}", algorithm.function)
}

/// Whether what was seen are calls of this algorithm. It makes the communicators of its levels in the first
/// one, so that calls need not be alike inside.
pub fn ran_as_asked(collective: Collective, algorithm: &HanAlgorithm, ran: &str) -> bool {
    let function = function(collective, algorithm);
    ran.is_empty() || ran.split(';').all(|call| traced_function(call) == function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{library::MpiLibrary, openmpi::OpenMpiLibrary};

    fn names(version: (u32, u32), collective: Collective, layout: &str) -> Vec<String> {
        let point = Point { collective, layout: layout.parse().unwrap(), bytes: 64 };
        methods(version, point).iter().map(Method::to_string).collect()
    }

    #[test]
    fn it_is_a_method_where_it_takes_calls() {
        let both = ["native:openmpi:han", "native:openmpi:han-simple"];
        assert_eq!(names((5, 0), Collective::Bcast, "4x2"), both);
        assert_eq!(names((5, 0), Collective::Barrier, "4x2:cyclic"), both[1..]);
        for layout in ["8x1", "1x8", "2+2+1"] {
            assert_eq!(names((5, 0), Collective::Bcast, layout), [""; 0], "{layout}");
        }
        assert_eq!(names((5, 0), Collective::Alltoall, "4x2"), [""; 0]);
        assert_eq!(names((4, 1), Collective::Bcast, "4x2"), [""; 0]);
    }

    /// A version is not asked for here, but whether there are levels is.
    #[test]
    fn without_levels_it_runs_nothing() {
        let native = Native { library: LIBRARY, algorithm: Algorithm::Han, segment_bytes: 0 };
        let runs = |layout: &str| {
            let layout = layout.parse().unwrap();
            OpenMpiLibrary.runs(Point { collective: Collective::Bcast, layout, bytes: 64 }, &native)
        };
        assert!(runs("4x2") && !runs("8x1") && !runs("1x8"));
    }

    #[test]
    fn what_it_hands_on_is_no_call_of_it() {
        let simple = find(Collective::Bcast, Algorithm::HanSimple).unwrap();
        let check = |ran| ran_as_asked(Collective::Bcast, simple, ran);
        assert!(check("") && check("han_bcast_intra_simple>bcast_intra_binomial"));
        assert!(check("han_bcast_intra_simple>allgather_intra_ring;han_bcast_intra_simple"));
        assert!(!check("bcast_intra_binomial"));
        assert!(!check("han_bcast_intra>bcast_intra_binomial"));
        assert!(!check("han_bcast_intra_simple;bcast_intra_binomial"));
    }
}
