//! Cases that a library gets wrong by itself: its own collective is not compared there, and mock-ups
//! are by MPI's definition alone. That it is the library's fault is seen where nothing of ours is
//! called.

use colibri_runner::AbiFamily;
use records::Collective;

use super::cases::{Case, Cases, Ranks};

/// A fault of a library.
pub struct Fault {
    pub name: &'static str,
    pub family: AbiFamily,
    /// What the library of which it is known says that it is.
    pub version: &'static str,
    /// On how many ranks it is shown.
    pub ranks: usize,
    /// Whether mock-ups of the collective, which call what is like it, have it too.
    in_mockups: bool,
    /// Whether a case on so many ranks has it.
    hits: fn(&Case, usize) -> bool,
}

/// Those that are known.
pub const FAULTS: [Fault; 4] = [
    // It takes `MPI_IN_PLACE` for the address of its operand: github.com/pmodels/mpich/issues/6540,
    // mended in 4.1.2.
    Fault {
        name: "long reduce in place away from rank 0",
        family: AbiFamily::Mpich,
        version: "4.0.2",
        ranks: 2,
        in_mockups: false,
        hits: |case, _| {
            let is_long = case.bytes() > 2048;
            is_long && case.collective == Collective::Reduce && case.in_place && case.root > 0
        },
    },
    // Where the ranks are a power of two and the operation is not commutative, blocks are taken to
    // lie a true extent of the type apart for each element, instead of an extent.
    Fault {
        name: "reduce_scatter of types with gaps by an operation that is not commutative",
        family: AbiFamily::Mpich,
        version: "4.0.2",
        ranks: 2,
        in_mockups: false,
        hits: |case, size| {
            use Collective::{ReduceScatter, ReduceScatterBlock};
            let is_cut = matches!(case.collective, ReduceScatter | ReduceScatterBlock);
            let is_ordered = case.operation.is_some_and(|one| !one.combine.is_commutative());
            let is_split = size > 1 && size.is_power_of_two() && case.count > 0;
            is_cut && is_ordered && is_split && !case.receive.is_packed()
        },
    },
    // Where ranks hand on what others send, that is bytes, and long messages of bytes are said to be
    // truncated when they are received as elements that mix types.
    Fault {
        name: "long gather and scatter of elements like MPI_DOUBLE_INT",
        family: AbiFamily::Mpich,
        version: "4.0.2",
        ranks: 4,
        in_mockups: false,
        hits: |case, size| {
            let is_handed_on = match case.collective {
                Collective::Gather => size > 3,
                Collective::Scatter => size > 1,
                _ => false,
            };
            is_handed_on && case.bytes() > 4096 && case.receive.is_mixed()
        },
    },
    // The same, of what is sent and replaced.
    Fault {
        name: "long alltoall in place of elements like MPI_DOUBLE_INT",
        family: AbiFamily::Mpich,
        version: "4.0.2",
        ranks: 2,
        in_mockups: true,
        hits: |case, size| {
            let is_replaced = case.collective == Collective::Alltoall && case.in_place;
            is_replaced && size > 1 && case.bytes() > 4096 && case.receive.is_mixed()
        },
    },
];

impl Fault {
    pub fn hits(&self, case: &Case, ranks: &Ranks<'_>) -> bool {
        self.family == ranks.library.family && (self.hits)(case, ranks.size)
    }
}

/// Whether the library's own collective, and whether mock-ups can do a case right.
pub fn can_be_right(case: &Case, ranks: &Ranks<'_>) -> (bool, bool) {
    let mut hits = FAULTS.iter().filter(|fault| fault.hits(case, ranks));
    hits.next().map_or((true, true), |fault| (false, !fault.in_mockups))
}

/// What is said before the library is called, ...
pub const BEGUN: &str = "the library alone has begun";
/// ... if it does all cases right after all, ...
pub const RIGHT: &str = "the library alone does it right";
/// ... and if it is another one.
pub const OTHER: &str = "another library than that of which it is known";

/// Calls nothing but the library's own collective in the cases of a fault, and ends the job, if the
/// library does not: by what it has done, in words.
pub fn show(fault: &Fault, ranks: &mut Ranks<'_>) -> ! {
    let mut verdict = RIGHT.to_owned();
    if !ranks.library.version_in_words().contains(fault.version) {
        verdict = OTHER.into();
    } else {
        let mut cases = Cases::new(ranks, 2, &[5, 3001]);
        cases.list.retain(|case| fault.hits(case, ranks));
        assert!(!cases.list.is_empty());
        eprintln!("{BEGUN}");
        for case in &cases.list {
            let problem = case.run_native(ranks).err();
            let (most, _) = ranks.library.spread(ranks.comm, u32::from(problem.is_some()));
            if most > 0 {
                verdict = format!("{case}: {problem:?}");
                break;
            }
        }
    }
    panic!("{verdict}");
}
