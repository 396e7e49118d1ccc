//! What is measured next, of what is known.

use std::collections::BTreeMap;

use choosing::samples::Samples;
use records::{
    Collective, Method, Point,
    observation::CollectiveCall,
    plan::{Cell, Visit},
};
use tuning::{
    Weights,
    state::{Batch, TuningState},
};

use crate::{synthetic::SyntheticCluster, truth};

/// A machine that is fast for some seconds must not make the default fast.
#[test]
fn a_batch_is_measured_in_random_order() {
    let world = SyntheticCluster::new(1);
    let batch = TuningState::new(
        &world.cells,
        &truth::expected,
        &Samples::gather(&[], libraries::ran_as_asked),
    )
    .next(60.0);
    let is_default = |visit: &Visit| world.cells[visit.cell as usize].method == Method::Default;
    let place_of_defaults = |visits: &[Visit]| {
        let places = visits.iter().enumerate().filter(|(_, visit)| is_default(visit));
        let places: Vec<f64> = places.map(|(place, _)| place as f64).collect();
        places.iter().sum::<f64>() / places.len() as f64 / visits.len() as f64
    };
    assert!(place_of_defaults(&batch.visits) < 0.3, "first by their worth");
    let plan = |seed| batch.clone().plan(world.cells.clone(), 16, seed);
    for seed in 1..=4 {
        let place = place_of_defaults(&plan(seed).visits);
        assert!((0.4..0.6).contains(&place), "{place}");
    }
    assert_eq!(plan(1), plan(1));
    let sorted = |mut visits: Vec<Visit>| {
        visits.sort_by_key(|visit| visit.cell);
        visits
    };
    assert_eq!(sorted(plan(1).visits), sorted(batch.visits.clone()));
}

/// Where all the time is spent at a few points, these get the observations, and their regret is
/// what is told.
#[test]
fn what_an_application_uses_is_measured_first() {
    let is_used = |point: Point| point.procs() == 16 && (4096..=65536).contains(&point.bytes);
    let world = SyntheticCluster::new(5);
    let defaults = |cell: &Cell| cell.method == Method::Default;
    let indexed = world.cells.iter().zip(0..).filter(|(cell, _)| defaults(cell));
    let visit = |(_, cell)| Visit { cell, warmups: 0, repetitions: 2, calls: 1 };
    let visits: Vec<Visit> = indexed.map(visit).collect();
    // As often as is wanted of the shortest default.
    let rows = world.measure(&vec![visits; 3].concat(), 1);
    let samples = Samples::gather(&rows, libraries::ran_as_asked);
    let used: BTreeMap<Point, f64> =
        world.cells.iter().map(|cell| cell.point).map(|at| (at, f64::from(is_used(at)))).collect();
    let state = || TuningState::new(&world.cells, &truth::expected, &samples);
    let weighed = || state().with_weights(Weights::from_seconds(&used));
    let seconds = 20.0;
    let visits = |batch: Batch| -> (usize, usize) {
        let here = |visit: &&Visit| is_used(world.cells[visit.cell as usize].point);
        (batch.visits.iter().filter(here).count(), batch.visits.len())
    };
    let (here, all) = visits(weighed().next(seconds));
    assert!(here == all && all > 10, "{here} of {all} visits are where the time is spent");
    let (here, all) = visits(state().next(seconds));
    assert!(here < all / 2, "{here} of {all} visits without weights");
    assert_ne!(weighed().regret().mean, state().regret().mean);
    assert_eq!(weighed().regret().greatest, state().regret().greatest);
}

/// A broadcast on 8 processes.
fn cell(method: &Method, bytes: u64) -> Cell {
    Cell { point: Point::flat(Collective::Bcast, 8, bytes), method: method.clone() }
}

/// Where the tracer saw that the default runs an algorithm itself, that one is not taken for a better
/// one because its few observations were lucky.
#[test]
fn what_the_default_runs_itself_does_not_replace_it() {
    let binomial: Method = "native:openmpi:binomial".parse().unwrap();
    let sizes = || (0..8).map(|power| 1 << power);
    let cells: Vec<Cell> =
        sizes().flat_map(|bytes| [&Method::Default, &binomial].map(|of| cell(of, bytes))).collect();
    let replaced = |ran: &str| {
        let row = |(visit, (cell, seconds)): (u32, (Cell, f64))| CollectiveCall {
            visit,
            ran: ran.into(),
            ..CollectiveCall::timed(&cell, seconds)
        };
        let defaults =
            sizes().flat_map(|bytes| [1.0, 1.1].map(|s| (cell(&Method::Default, bytes), s)));
        let lucky =
            [16, 32].into_iter().flat_map(|bytes| [0.5, 0.55].map(|s| (cell(&binomial, bytes), s)));
        let rows: Vec<CollectiveCall> = (0..).zip(defaults.chain(lucky)).map(row).collect();
        let state = TuningState::new(
            &cells,
            &|cell| [0.9, 1.1].map(|of| cell.method.algorithm().map(|_| of)).to_vec(),
            &Samples::gather(&rows, libraries::ran_as_asked),
        );
        let choices = state.beliefs.choices();
        assert_eq!(choices.len(), 8);
        choices.iter().filter(|choice| choice.method != Method::Default).count()
    };
    assert!(replaced("") >= 2, "it is not known that they are the same");
    assert_eq!(replaced("bcast_intra_binomial"), 0);
}

/// However much time there is, little is planned from the models alone, and no batch takes longer than all
/// before it: what a batch shows spares much of what seemed worth measuring.
#[test]
fn batches_grow_with_what_is_known() {
    let world = SyntheticCluster::new(1);
    let seconds = |spent: f64| {
        let state = TuningState::new(
            &world.cells,
            &truth::expected,
            &Samples::gather(&[], libraries::ran_as_asked),
        );
        state.with_spent(spent).next(1e6).expected_seconds
    };
    let [first, later, all] = [0.0, 30.0, 1e6].map(seconds);
    assert!((14.0..18.0).contains(&first), "{first}");
    assert!((28.0..34.0).contains(&later), "{later}");
    assert!(all > 40.0, "{all}");
}

/// A method as fast as the limit has no rivals; where something was faster than the limit, that says
/// nothing.
#[test]
fn what_is_at_the_limit_is_not_challenged() {
    let binomial: Method = "native:openmpi:binomial".parse().unwrap();
    let sizes = || (4..8).map(|power| 1_u64 << power);
    let cells: Vec<Cell> =
        sizes().flat_map(|bytes| [&Method::Default, &binomial].map(|of| cell(of, bytes))).collect();
    let times =
        sizes().flat_map(|bytes| [1.0, 1.001, 0.999].map(|s| (cell(&Method::Default, bytes), s)));
    let row = |(visit, (cell, seconds)): (u32, (Cell, f64))| CollectiveCall {
        visit,
        ..CollectiveCall::timed(&cell, seconds)
    };
    let rows: Vec<CollectiveCall> = (0..).zip(times).map(row).collect();
    let samples = Samples::gather(&rows, libraries::ran_as_asked);
    let left = |limit: Option<f64>| {
        let state = TuningState::new(&cells, &|_| vec![Some(0.9), Some(1.1)], &samples);
        let limits: BTreeMap<Point, f64> =
            cells.iter().filter_map(|cell| Some((cell.point, limit?))).collect();
        let state = state.with_limits(&limits);
        (state.regret().greatest, state.next(1000.0).visits.len())
    };
    let without = left(None);
    assert!(without.0 > 0.01 && without.1 > 0, "{without:?}");
    assert_eq!(left(Some(0.99)), (0.0, 0));
    assert_eq!(left(Some(0.5)), without, "there is room enough");
    assert_eq!(left(Some(1.1)), without, "the limit is wrong");
}

/// Of four sizes the first and the third are measured. By what was seen there the models are right about a
/// method that is twice as fast as the default: so they are believed of one that was never tried.
#[test]
fn sizes_that_were_not_measured_take_what_is_believed_to_be_faster_there() {
    let fast: Method = "native:openmpi:pipeline".parse().unwrap();
    let untried: Method = "native:openmpi:binomial".parse().unwrap();
    let sizes = [64, 256, 1024, 4096];
    let methods = [&Method::Default, &fast, &untried];
    let cells: Vec<Cell> =
        sizes.into_iter().flat_map(|bytes| methods.map(|method| cell(method, bytes))).collect();
    let between = |gain: f64, of_untried: f64| {
        let expected = |cell: &Cell| {
            let of = |seconds: f64| vec![Some(0.95 * seconds), Some(1.05 * seconds)];
            match &cell.method {
                method if *method == untried => of(of_untried),
                Method::Default => of(1.0),
                _ => of(0.5),
            }
        };
        let timed = |bytes: u64| {
            let default = [1.0, 1.01, 0.99].map(|s| (cell(&Method::Default, bytes), s));
            default.into_iter().chain([1.0, 1.01, 0.99].map(|s| (cell(&fast, bytes), s / gain)))
        };
        let row = |(visit, (cell, seconds)): (u32, (Cell, f64))| CollectiveCall {
            visit,
            ..CollectiveCall::timed(&cell, seconds)
        };
        let rows: Vec<CollectiveCall> =
            (0..).zip([64, 1024].into_iter().flat_map(timed)).map(row).collect();
        let state =
            TuningState::new(&cells, &expected, &Samples::gather(&rows, libraries::ran_as_asked));
        state.beliefs.interpolated_choices(&|_, _| true)
    };
    let choices = between(2.0, 0.6);
    let chosen: Vec<_> = choices.iter().map(|one| (one.point.bytes, &one.method)).collect();
    assert_eq!(chosen, [(256, &fast), (4096, &fast)]);
    let believed = choices[0].speed_up().unwrap();
    assert!((1.7..2.3).contains(&believed), "{believed}");
    assert_ne!(between(0.9, 0.6)[0].method, fast, "it was slower where it was seen");
    assert_eq!(between(2.0, 0.4)[0].method, untried, "the models were right so far");
}

/// Two sizes were measured, of which the default takes `ratio` times as long as another method: whether it is to be called
/// once more at a third one, where a call of it takes minutes.
fn calls_long_default(ratio: f64, counts_cells: bool) -> bool {
    let fast: Method = "native:openmpi:pipeline".parse().unwrap();
    let sizes = [1024, 4096, 16384];
    let cells: Vec<Cell> = sizes
        .into_iter()
        .flat_map(|bytes| [&Method::Default, &fast].map(|of| cell(of, bytes)))
        .collect();
    let expected = |cell: &Cell| {
        let gain = if cell.method == fast { ratio } else { 1.0 };
        [0.95, 1.05].map(|off| Some(off * cell.point.bytes as f64 * 0.01 / gain)).to_vec()
    };
    let timed = cells.iter().filter(|cell| cell.point.bytes < 16384).flat_map(|cell| {
        let seconds = expected(cell)[0].unwrap();
        [1.0, 1.01, 0.99].map(|off| CollectiveCall::timed(cell, off * seconds))
    });
    let rows: Vec<_> =
        (0..).zip(timed).map(|(visit, call)| CollectiveCall { visit, ..call }).collect();
    let state =
        TuningState::new(&cells, &expected, &Samples::gather(&rows, libraries::ran_as_asked));
    let batch = if counts_cells { state.with_cells_counted() } else { state }.next(10_000.0);
    let is_long = |visit: &Visit| cells[visit.cell as usize] == cell(&Method::Default, 16384);
    batch.visits.iter().any(is_long)
}

#[test]
fn a_default_that_is_surely_slow_is_not_waited_for() {
    assert!(calls_long_default(1.05, false));
    assert!(!calls_long_default(10.0, false));
    assert!(calls_long_default(10.0, true), "where cells are counted it costs as much as others");
}
