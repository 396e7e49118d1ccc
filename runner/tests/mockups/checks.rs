//! What is looked at on every number of ranks.

use std::{collections::BTreeSet, ptr, sync::atomic::Ordering};

use colibri_runner::{
    Arguments, Counts, Error, Session, Side,
    mockups::{self, Limits, Mockup, Mockups},
};
use records::Collective;

use super::{
    broken::{self, CallDamage},
    cases::{Case, CaseSelection, Cases, Outcome, Ranks},
    definition::Combine,
    faults::can_be_right,
    launched::aside,
    library::check,
};

/// Everything; that tests fail by a fault, where all cases are tried.
pub fn all(session: &'static Session, ranks: &mut Ranks<'_>, extent: CaseSelection) {
    // Without those that cost many calls and depend little on the number of ranks.
    let is_aside = aside::is_in(|_| true);
    if is_aside || aside::is_native() {
        // What follows tells of the mock-ups that were left out, or wants them all.
        agree_everywhere(ranks, extent);
        return agree_on_long_messages(ranks, extent);
    }
    let less =
        if extent == CaseSelection::All { CaseSelection::All } else { CaseSelection::Values };
    agree_everywhere(ranks, extent);
    agree_on_long_messages(ranks, extent);
    agree_with_long_counts(session, ranks, less);
    agree_on_parts(session, ranks, less);
    refuse_inter_communicators(ranks);
    let enough =
        if extent == CaseSelection::All { CaseSelection::All } else { CaseSelection::Pairs };
    refuse_what_needs_too_much(session, ranks, enough);
    if extent == CaseSelection::All {
        give_errors_back(ranks);
        faults_are_found(ranks);
    }
}

const COUNTS: [usize; 4] = [0, 1, 5, 151];

/// Mock-ups by reduce_scatter deal data to the ranks in chunks of so many bytes.
const CHUNK_BYTES: usize = 256;

/// Whether a mock-up leaves a call to the library: those made of reduce_scatter what is not commutative, those that
/// pad elements that reach beyond their extent, and those that may have the program's own operation called without
/// elements.
fn is_left(case: &Case, mockup: &Mockup, size: usize) -> bool {
    let (_, composition) = mockup.name.split_once("_as_").unwrap();
    let Some(operation) = &case.operation else { return false };
    let scatters = composition.starts_with("reduce_scatter") && composition != "reduce_scatterv";
    // Of padded elements some could overlap, as far as bounds tell.
    let pads = composition.starts_with("reduce_scatter_block_") && !case.count.is_multiple_of(size);
    let is_own = matches!(operation.combine, Combine::Compose | Combine::AddMultiply);
    let chunk = (CHUNK_BYTES / operation.kind.size()).max(1);
    let may_combine_none = composition.starts_with("reduce_scatter_block_")
        || (composition.starts_with("reduce_scatter_") && case.count.div_ceil(chunk) < size);
    (scatters && !operation.combine.is_commutative())
        || (is_own && may_combine_none)
        || (pads && operation.kind.name == "interleaved")
}

fn must_agree(case: &Case, mockup: &Mockup, size: usize, outcome: Outcome) {
    if is_left(case, mockup, size) {
        assert!(matches!(outcome, Err(Error::Refused(_))), "{mockup}: {case}");
        return;
    }
    let fault = outcome.unwrap_or_else(|error| panic!("{mockup}: {case}: {error}"));
    assert_eq!(fault, Ok(()), "{mockup}: {case}");
}

/// The library and every mock-up with what MPI defines, and so with each other.
fn agree(cases: &Cases, ranks: &mut Ranks<'_>) {
    for case in &cases.list {
        let (native, mockups) = can_be_right(case, ranks);
        if !aside::begins(&case.name()) {
            continue;
        }
        if native {
            assert_eq!(case.run_native(ranks), Ok(()), "the library's own: {case}");
        }
        if mockups && !aside::is_native() {
            let size = ranks.size;
            case.run(ranks, |mockup, outcome| must_agree(case, mockup, size, outcome));
        }
    }
}

fn agree_everywhere(ranks: &mut Ranks<'_>, extent: CaseSelection) {
    let mut cases = Cases::new(ranks, 8, &COUNTS);
    cases.thin_out(extent);
    agree(&cases, ranks);
}

/// Messages that libraries cut.
fn agree_on_long_messages(ranks: &mut Ranks<'_>, extent: CaseSelection) {
    let mut cases = Cases::new(ranks, 2, &[3001]);
    cases.thin_out(extent);
    agree(&cases, ranks);
}

/// With 7 in place of the greatest `int`, and types of blocks that are all freed.
fn agree_with_long_counts(session: &'static Session, ranks: &mut Ranks<'_>, extent: CaseSelection) {
    let short = Mockups::new(session, Limits::default()).with_longest(7);
    let before = std::mem::replace(&mut ranks.mockups, short);
    let mut cases = Cases::new(ranks, 2, &[0, 1, 6, 50]);
    cases.thin_out(extent);
    let types = broken::TYPES.load(Ordering::Relaxed);
    let (library, comm, size) = (ranks.library, ranks.comm, ranks.size);
    let mut refused = BTreeSet::new();
    for case in &cases.list {
        case.run(ranks, |mockup, outcome| {
            let is_refused = matches!(outcome, Err(Error::Refused(_)));
            // Not from zeros of what cannot be refused on one rank alone.
            let (most, least) = library.spread(comm, u32::from(is_refused));
            assert_eq!(most, least, "{mockup}: {case}: not refused by all");
            match is_refused {
                true if is_left(case, mockup, size) => {}
                true => _ = refused.insert(mockup.name),
                false => must_agree(case, mockup, size, outcome),
            }
        });
    }
    let wanted = [
        "allreduce_as_reduce_scatter_allgatherv",
        "allreduce_as_reduce_scatter_block_allgather",
        "reduce_as_reduce_scatter_block_gather",
        "reduce_as_reduce_scatter_gatherv",
        "reduce_scatter_as_reduce_scatterv",
        "reduce_scatter_block_as_reduce_scatter",
    ];
    assert!(refused.iter().all(|name| wanted.contains(name)), "{refused:?}");
    // With every case there is each of them; where cases are left out some may be missing.
    assert!(extent != CaseSelection::All || refused.into_iter().eq(wanted));
    assert_eq!(broken::TYPES.load(Ordering::Relaxed), types, "types that are not freed");
    ranks.mockups = before;
}

/// Every other rank, in reverse order.
fn agree_on_parts(session: &'static Session, ranks: &mut Ranks<'_>, extent: CaseSelection) {
    let library = ranks.library;
    let color = (ranks.rank % 2) as i32;
    for _ in 0..2 {
        let comm = library.split(ranks.comm, color, -(ranks.rank as i32));
        let (rank, size) = library.rank_and_size(comm);
        let mockups = Mockups::new(session, Limits::default());
        let mut part = Ranks { library, mockups, comm, rank, size };
        let mut cases = Cases::new(&part, 1, &[5]);
        cases.thin_out(extent);
        agree(&cases, &mut part);
        library.free(comm);
    }
}

fn refuse_inter_communicators(ranks: &mut Ranks<'_>) {
    if ranks.size < 2 {
        return;
    }
    let library = ranks.library;
    let half = (ranks.rank >= ranks.size / 2) as i32;
    let local = library.split(ranks.comm, half, 0);
    let mut inter = 0;
    let other = if half == 0 { ranks.size as i32 / 2 } else { 0 };
    // SAFETY: both halves call it, each with the other's first rank.
    check(unsafe { (library.intercomm_create)(local, 0, ranks.comm, other, 9, &mut inter) });
    let mut number = 7_u32;
    let buffer = ptr::from_mut(&mut number).cast();
    let arguments = Arguments::bcast(Side::uniform(buffer, 1, library.number), 0);
    for mockup in mockups::of_collective(arguments.collective) {
        // SAFETY: refused before the arguments, which are no inter-communicator's, are used.
        let outcome = unsafe { ranks.mockups.run(mockup, &arguments, inter) };
        assert!(matches!(outcome, Err(Error::Refused(_))), "{outcome:?}");
    }
    library.free(inter);
    library.free(local);
}

/// What is above a limit is refused on all ranks, and what is below goes on as before.
fn refuse_what_needs_too_much(
    session: &'static Session,
    ranks: &mut Ranks<'_>,
    extent: CaseSelection,
) {
    let limits = Limits { message_bytes: 512, integer_bytes: 2 * 4 * ranks.size - 1 };
    let small = Mockups::new(session, limits);
    let before = std::mem::replace(&mut ranks.mockups, small);
    let (library, comm) = (ranks.library, ranks.comm);
    let mut refused = BTreeSet::new();
    let mut done = BTreeSet::new();
    let mut cases = Cases::new(ranks, 1, &[1, 151, 1]);
    cases.thin_out(extent);
    let size = ranks.size;
    for case in &cases.list {
        case.run(ranks, |mockup, outcome| {
            let is_refused = matches!(outcome, Err(Error::Refused(_)));
            let (most, least) = library.spread(comm, u32::from(is_refused));
            assert_eq!(most, least, "{mockup}: {case}: not refused by all");
            if is_left(case, mockup, size) {
                must_agree(case, mockup, size, outcome);
            } else if is_refused {
                refused.insert(mockup.name);
            } else {
                must_agree(case, mockup, size, outcome);
                done.insert(mockup.name);
            }
        });
    }
    let needs = |word| mockups::ALL.iter().filter(move |mockup| mockup.memory.contains(word));
    for mockup in needs("2pI") {
        assert!(!done.contains(mockup.name), "{mockup}");
    }
    for mockup in mockups::ALL.iter().filter(|mockup| mockup.memory == "none") {
        assert!(!refused.contains(mockup.name), "{mockup}");
    }
    for mockup in needs("n") {
        let needs_none = ["none", "pI"].contains(&mockup.memory)
            || mockup.memory.contains("where p does not divide");
        assert!(needs_none || refused.contains(mockup.name), "{mockup}");
    }
    ranks.mockups = before;
}

/// Errors of the calls inside come back, and the next call goes well.
fn give_errors_back(ranks: &mut Ranks<'_>) {
    let library = ranks.library;
    let mut cases = Cases::new(ranks, 1, &[5]);
    cases.list.retain(|case| case.root == 1 || !case.is_rooted());
    let size = ranks.size;
    for function in broken::FUNCTIONS {
        let mut failed = 0;
        for case in &cases.list {
            broken::set(Some((function, CallDamage::Fails)));
            case.run(ranks, |mockup, outcome| match outcome {
                Err(Error::Mpi { call, code }) => {
                    assert_eq!((call, code), (*function, broken::CODE), "{mockup}: {case}");
                    failed += 1;
                }
                other => must_agree(case, mockup, size, other),
            });
            broken::set(None);
        }
        // On one rank nothing is combined.
        let is_idle = *function == "MPI_Reduce_local" && ranks.rank == 0;
        assert!(failed > 0 || is_idle, "{function}");
    }
    for case in &cases.list {
        case.run(ranks, |mockup, outcome| must_agree(case, mockup, size, outcome));
    }
    // A sum of pairs: the library has no such thing.
    let datatype = library.pair([0, 8], 0, 16);
    let (send, mut receive) = ([0_u64; 8], [0_u64; 8]);
    let (from, into) = (send.as_ptr().cast(), receive.as_mut_ptr().cast());
    let (collective, counts) = (Collective::Allreduce, Counts::Uniform(3));
    let arguments = Arguments::combining(collective, from, into, counts, datatype, library.sum, 0);
    for mockup in mockups::of_collective(arguments.collective) {
        // SAFETY: room for three pairs.
        let outcome = unsafe { ranks.mockups.run(mockup, &arguments, ranks.comm) };
        assert!(matches!(outcome, Err(Error::Mpi { code, .. }) if code != 0), "{outcome:?}");
    }
    library.free_type(datatype);
}

/// A mock-up with a fault is found by the cases above: one for each call inside, and one that
/// takes operands in the wrong order.
fn faults_are_found(ranks: &mut Ranks<'_>) {
    let mut everything = Cases::new(ranks, 2, &[5]);
    everything.list.retain(|case| case.root == 0);
    let is_dense = |case: &Case| {
        let operation = case.operation.filter(|operation| operation.combine == Combine::Compose);
        operation.is_some_and(|operation| operation.kind.name == "dense")
    };
    for function in broken::FUNCTIONS {
        // What calls it fails where it fails.
        let callers = differing(ranks, &everything, |_| true, (function, CallDamage::Fails));
        assert!(!callers.is_empty());
        let call = function.trim_start_matches("MPI_").to_lowercase();
        for name in &callers {
            let (_, composition) = name.split_once("_as_").unwrap();
            assert!(composition.contains(&call), "{name} calls {function}");
        }
        let found = differing(ranks, &everything, |_| true, (function, CallDamage::Bit));
        assert_eq!(found, callers, "with a fault in {function}");
    }
    let swapped = ("MPI_Reduce_local", CallDamage::Swapped);
    let found = differing(ranks, &everything, is_dense, swapped);
    assert!(found.into_iter().eq(["scan_as_exscan_reduce_local"]));
}

/// The mock-ups that on any rank don't agree with the library while there is a fault.
fn differing(
    ranks: &mut Ranks<'_>,
    cases: &Cases,
    chosen: impl Fn(&Case) -> bool,
    fault: (&str, CallDamage),
) -> BTreeSet<&'static str> {
    let (mut found, size) = (BTreeSet::new(), ranks.size);
    for case in cases.list.iter().filter(|case| chosen(case)) {
        broken::set(Some(fault));
        case.run(ranks, |mockup, outcome| {
            if !is_left(case, mockup, size) && !matches!(outcome, Ok(Ok(()))) {
                found.insert(mockup.name);
            }
        });
        broken::set(None);
    }
    let (library, comm) = (ranks.library, ranks.comm);
    let anywhere = |name: &str| library.spread(comm, u32::from(found.contains(name))).0 == 1;
    mockups::ALL.map(|mockup| mockup.name).into_iter().filter(|name| anywhere(name)).collect()
}
