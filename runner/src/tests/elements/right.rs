//! Every method against a plain loop, byte for byte, with all that lies around.

use std::{cell::RefCell, collections::BTreeSet};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use records::Collective;

use super::{
    methods::{COLLECTIVES, Tried, methods, shared_methods},
    shape::{LONGEST_BUFFER, Memory, Shape, arguments},
};
use crate::{
    Error, Executor, Session,
    fake::{self, FakeType},
    mockups::{Limits, Mockups},
};

/// Carries out a call by a method; whether it was carried out.
fn call(shape: &Shape, collective: Collective, method: &Tried) -> bool {
    let session = Session::open(fake::table()).unwrap();
    // Each rank is a thread of one process, which has the areas of all, and other tests' beside.
    session.set_shared_memory(1 << 40, true);
    let before: Vec<Memory> = (0..shape.ranks).map(|rank| shape.before(collective, rank)).collect();
    let datatype = fake::new_type(shape.element.clone());
    let outcomes = fake::run(shape.ranks, |rank| {
        let mut memory = before[rank as usize].clone();
        let counts: Vec<i32> = shape.counts(collective).iter().map(|count| *count as i32).collect();
        let arguments = arguments(shape, collective, rank, (&mut memory, datatype), &counts);
        // SAFETY: the buffers are as the arguments say.
        let outcome = unsafe {
            match method {
                Tried::Own(method) => {
                    let mut executor = Executor::new(session);
                    let outcome = executor.run(method, &arguments, 9);
                    assert_eq!(executor.ran(), outcome.is_ok().then_some(method));
                    outcome
                }
                Tried::Mockup(mockup) => {
                    Mockups::new(session, Limits::default()).run(mockup, &arguments, 9)
                }
            }
        };
        (memory, outcome)
    });
    let mut datatype = datatype;
    // SAFETY: made above.
    unsafe { (session.mpi().type_free)(&mut datatype) };
    let is_refused = matches!(outcomes[0].1, Err(Error::Refused(_)));
    for (rank, (found, outcome)) in (0..).zip(outcomes) {
        match &outcome {
            Err(Error::Refused(_)) if is_refused => assert!(found == before[rank as usize]),
            Ok(()) if !is_refused => {
                let wanted = shape.after(collective, rank, &before);
                assert!(found.send == wanted.send, "{method} on rank {rank}: what is sent changed");
                let (found, wanted) = (&found.receive.memory, &wanted.receive.memory);
                assert_eq!(found, wanted, "{method} on rank {rank}");
            }
            _ => panic!("{method} on rank {rank}: {outcome:?}"),
        }
    }
    !is_refused
}

/// Elements of two to six bytes.
fn elements() -> impl Strategy<Value = FakeType> {
    // Parts as far from each other as other elements find room between, or nearly so.
    let places = prop::collection::btree_set(-4_isize..5, 2..=6);
    let places = (places, prop_oneof![Just(1_isize), Just(3), Just(17)], -40_isize..40);
    let places = places.prop_map(|(steps, stride, shift)| {
        let mut places: Vec<isize> = steps.into_iter().map(|step| step * stride + shift).collect();
        places.truncate(places.len() / 2 * 2);
        places
    });
    let places = places.prop_shuffle();
    let extent = prop_oneof![
        4 => -9_isize..10,
        2 => -60_isize..60,
        1 => Just(0_isize),
        1 => Just(1_isize << 33),
        1 => Just(-1_isize << 33),
    ];
    (places, extent, -50_isize..50).prop_map(|(places, extent, lower)| FakeType {
        places,
        lower,
        extent,
    })
}

/// Calls that MPI allows, at least where data is combined without being scattered.
fn shapes() -> impl Strategy<Value = Shape> {
    (elements(), 1_u32..9, any::<u32>(), 1_usize..12, any::<bool>(), any::<bool>()).prop_map(
        |(element, ranks, root, most, in_place, commutative)| {
            let is_near = element.extent.abs() < LONGEST_BUFFER / 100;
            let most = if is_near { most } else { 1 };
            let count = (1..=most).take_while(|count| !element.overlap(*count)).last();
            let count = count.unwrap_or(1);
            // Often without padding.
            let whole = count / ranks as usize * ranks as usize;
            let count = if whole > 0 && root % 2 == 0 { whole } else { count };
            Shape { element, ranks, root: root % ranks, count, in_place, commutative }
        },
    )
}

/// Every method of every collective in each case. Each has to be carried out in some case, with elements that reach
/// beyond their extent and with others.
#[test]
fn every_method_is_right_however_elements_lie() {
    let usual = Config { source_file: Some(file!()), ..Config::default() };
    let is_chosen = std::env::var_os("PROPTEST_CASES").is_some();
    let cases = if is_chosen { usual.cases } else { 100 };
    let mut runner = TestRunner::new(Config { cases, ..usual });
    // By whether elements reach beyond their extent.
    let carried_out = RefCell::new([BTreeSet::new(), BTreeSet::new()]);
    let outcome = runner.run(&shapes(), |shape| {
        let (first, end) = shape.element.true_bounds();
        let reaches = shape.element.extent.abs() < end - first;
        for collective in COLLECTIVES.into_iter().filter(|one| shape.is_legal(*one)) {
            for method in methods(collective) {
                let is_carried_out = call(&shape, collective, &method);
                prop_assert_eq!(is_carried_out, !shape.is_refused(&method), "{}", method);
                if is_carried_out && shape.ranks > 1 {
                    carried_out.borrow_mut()[usize::from(reaches)].insert(method.to_string());
                }
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failed| panic!("{failed}"));
    let [within, beyond] = carried_out.into_inner();
    let all: Vec<String> =
        COLLECTIVES.into_iter().flat_map(methods).map(|method| method.to_string()).collect();
    let never = |seen: &BTreeSet<String>| -> Vec<&str> {
        all.iter().filter(|method| !seen.contains(*method)).map(|method| &**method).collect()
    };
    assert_eq!([never(&within), never(&beyond)], [[""; 0]; 2]);
}

/// The same through memory that ranks share, of elements with gaps and without.
#[test]
fn shared_memory_is_right_however_elements_lie() {
    let dense = (1_isize..6).prop_map(|bytes| FakeType {
        places: (0..2 * bytes).collect(),
        lower: 0,
        extent: 2 * bytes,
    });
    let shapes = (shapes(), dense, any::<bool>()).prop_map(|(shape, dense, is_dense)| {
        let element = if is_dense { dense } else { shape.element.clone() };
        Shape { element, ..shape }
    });
    let usual = Config { source_file: Some(file!()), ..Config::default() };
    let is_chosen = std::env::var_os("PROPTEST_CASES").is_some();
    let cases = if is_chosen { usual.cases } else { 60 };
    let mut runner = TestRunner::new(Config { cases, ..usual });
    let carried_out = RefCell::new(BTreeSet::new());
    let outcome = runner.run(&shapes, |shape| {
        for collective in COLLECTIVES.into_iter().filter(|one| shape.is_legal(*one)) {
            for method in shared_methods(collective) {
                let is_carried_out = call(&shape, collective, &method);
                prop_assert_eq!(is_carried_out, !shape.is_refused(&method), "{}", method);
                if is_carried_out && shape.ranks > 1 {
                    carried_out.borrow_mut().insert(method.to_string());
                }
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failed| panic!("{failed}"));
    let all = COLLECTIVES.into_iter().flat_map(shared_methods).map(|method| method.to_string());
    assert_eq!(all.collect::<BTreeSet<_>>(), carried_out.into_inner());
}
