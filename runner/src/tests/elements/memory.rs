//! What memory is taken for elements far apart.

use std::collections::BTreeSet;

use records::Collective;

use super::{
    methods::{Tried, methods},
    shape::{Shape, arguments},
};
use crate::{
    Arguments, Counts, Error, Executor, ScheduledMethod, Session,
    fake::{self, FakeType},
};

/// Ints of 4 bytes so far apart.
fn far_apart(extent: isize) -> FakeType {
    FakeType { places: vec![0, 1, 2, 3], lower: 0, extent }
}

/// Carries out a call by an own method with this executor on every rank, on operands that lie so that nothing
/// is there between elements; what came of it, and what was allocated.
fn allocated(
    shape: &Shape,
    method: &ScheduledMethod,
    executor: impl Fn(&'static Session) -> Executor + Sync,
) -> Vec<(Result<(), Error>, usize)> {
    let session = Session::open(fake::table()).unwrap();
    let mut datatype = fake::new_type(shape.element.clone());
    let outcomes = fake::run(shape.ranks, |rank| {
        let collective = method.collective();
        let mut memory = shape.before(collective, rank);
        let counts: Vec<i32> = shape.counts(collective).iter().map(|count| *count as i32).collect();
        let arguments = arguments(shape, collective, rank, (&mut memory, datatype), &counts);
        let mut executor = executor(session);
        // SAFETY: the buffers are as the arguments say.
        let outcome = unsafe { executor.run(method, &arguments, 9) };
        (outcome, executor.resources.temporary.bytes())
    });
    // SAFETY: made above.
    unsafe { (session.mpi().type_free)(&mut datatype) };
    outcomes
}

fn own_reductions() -> impl Iterator<Item = ScheduledMethod> {
    Collective::ALL.into_iter().filter(|one| one.combines()).flat_map(methods).filter_map(
        |method| match method {
            Tried::Own(method) => Some(method),
            Tried::Mockup(_) => None,
        },
    )
}

/// One element's data is all that is held of it, however far the next would be.
#[test]
fn one_element_takes_no_more_memory_than_its_data() {
    let shape = Shape {
        element: far_apart(100 << 20),
        ranks: 6,
        root: 2,
        count: 1,
        in_place: false,
        commutative: true,
    };
    // No rank has memory for the operands of a reduce-scatter.
    let has_memory = |method: &ScheduledMethod| shape.is_legal(method.collective());
    for method in own_reductions().filter(has_memory) {
        for (outcome, bytes) in allocated(&shape, &method, Executor::new) {
            assert_eq!(outcome, Ok(()), "{method}");
            assert!(bytes < 1024, "{method}: {bytes}");
        }
    }
}

/// Without any limit set: on all ranks either what is taken is below the usual one, or nothing is taken.
#[test]
fn elements_far_apart_take_no_more_memory_than_usual() {
    const APART: usize = 40 << 20;
    let ranks = 6;
    let session = Session::open(fake::table()).unwrap();
    let mut refused = BTreeSet::new();
    for method in own_reductions() {
        let collective = method.collective();
        if collective.to_string().starts_with("reduce_scatter") {
            continue;
        }
        let mut datatype = fake::new_type(far_apart(APART as isize));
        let outcomes = fake::run(ranks, |rank| {
            // Pages that nobody touches are not there.
            let [mut send, mut receive] = [vec![0_u8; APART + 4], vec![0_u8; APART + 4]];
            (send[0], send[APART]) = (rank as u8 + 1, 7);
            let arguments = Arguments::combining(
                collective,
                send.as_ptr().cast(),
                receive.as_mut_ptr().cast(),
                Counts::Uniform(2),
                datatype,
                fake::XOR,
                0,
            );
            let mut executor = Executor::new(session);
            // SAFETY: both buffers hold two elements.
            let outcome = unsafe { executor.run(&method, &arguments, 9) };
            (outcome, executor.resources.temporary.bytes(), receive[0])
        });
        // SAFETY: made above.
        unsafe { (session.mpi().type_free)(&mut datatype) };
        let is_refused = matches!(outcomes[0].0, Err(Error::Refused(_)));
        if is_refused {
            refused.insert(format!("{collective} {method}"));
        }
        for (rank, (outcome, bytes, first)) in (0..).zip(outcomes) {
            assert_eq!(outcome.is_err(), is_refused, "{collective} {method}: {outcome:?}");
            assert!(bytes <= if is_refused { 0 } else { 64 << 20 }, "{method}: {bytes}");
            let up_to = match collective {
                Collective::Scan => rank + 1,
                Collective::Exscan => rank,
                Collective::Reduce if rank > 0 => 0,
                _ => ranks as u8,
            };
            let wanted = if is_refused { 0 } else { (1..=up_to).fold(0, |sum, part| sum ^ part) };
            assert_eq!(first, wanted, "{collective} {method} on rank {rank}");
        }
    }
    for method in ["reduce own:binomial", "allreduce own:circulant", "reduce own:two-level"] {
        assert!(refused.contains(method), "{method}: {refused:?}");
    }
    assert!(!refused.contains("allreduce own:ring"));
}

/// What is compared with the limit is what is allocated on the rank that needs most.
#[test]
fn the_limit_counts_what_is_allocated() {
    for (element, count) in [
        (far_apart(1000), 3),
        (far_apart(-100), 4),
        (far_apart(2), 1),
        (FakeType { places: vec![0, 12, 24, 36], lower: 0, extent: 1 }, 9),
        (far_apart(4), 7),
    ] {
        for method in own_reductions().filter(|method| !method.is_node_aware()) {
            let shape = |in_place| Shape {
                element: element.clone(),
                ranks: 6,
                root: 2,
                count,
                in_place,
                commutative: true,
            };
            let most = |in_place| {
                let needs = allocated(&shape(in_place), &method, Executor::new);
                needs.into_iter().map(|(outcome, bytes)| outcome.map(|()| bytes).unwrap()).max()
            };
            let most = most(false).max(most(true)).unwrap() as u64;
            let by = |limit| {
                let limited = |session| Executor::new(session).with_scratch_limit(limit);
                allocated(&shape(false), &method, limited).into_iter().all(|(ran, _)| ran.is_ok())
            };
            assert!(by(most), "{} {method}, {element:?}: {most} bytes", method.collective());
            let has_any = most >= 16;
            assert!(!has_any || !by(most - 16), "{} {method}, {element:?}", method.collective());
        }
    }
}
