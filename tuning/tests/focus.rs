//! Focused measuring against a world whose true times are known.

use std::collections::BTreeMap;

use colibri_verification::{
    Weights,
    focus::{Batch, Focus},
    plan::{Grid, cells},
    samples::Samples,
    selection::Choice,
};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};
use rand_pcg::Pcg64;
use records::{
    Algorithm, Collective, Method, Point,
    observation::{CollectiveCall, Status},
    plan::{Cell, Visit},
};

/// A cluster whose models are wrong by a factor of its own for each method, changing with the
/// size, and whose library's default is bad in the middle.
struct World {
    cells: Vec<Cell>,
    random: Pcg64,
    rows: Vec<CollectiveCall>,
    spent_seconds: f64,
    visits: u32,
}

fn cell_seconds(cell: &Cell) -> f64 {
    let (p, m) = (f64::from(cell.procs), cell.bytes as f64);
    let message = |bytes: f64| 60e-6 + 0.084e-6 * bytes;
    let levels = p.log2().ceil();
    let segment = match cell.method.segment_bytes() {
        0 => m,
        bytes => (bytes as f64).min(m),
    };
    let segments = (m / segment).ceil();
    match cell.method.algorithm().map(|algorithm| algorithm.name()) {
        Some("linear") => (p - 1.0) * message(m),
        Some("pipeline") => (p - 2.0 + segments) * message(segment),
        Some("binomial") => levels * segments * message(segment),
        Some("binary") => (levels + 2.0 * segments - 1.0) * message(segment),
        Some("splitted-binary") => (levels + segments) * message(segment) + message(m / 2.0),
        Some("k-chain" | "k-nomial") => (4.0 + p / 4.0) * message(segment) * segments.sqrt(),
        Some(_) => levels * message(0.0) + 2.0 * 0.084e-6 * m + p * 60e-6,
        None => match cell.bytes {
            0..2048 => levels * message(m),
            2048..524_288 => 1.4 * levels * message(m),
            _ => (p - 1.0) * message(m),
        },
    }
}

fn truth(cell: &Cell) -> f64 {
    let name = cell.method.to_string();
    let phase = name.bytes().map(u32::from).sum::<u32>() % 17;
    let slow = (f64::from(phase) + (cell.bytes as f64).log2() / 4.0).sin();
    cell_seconds(cell) * (0.25 * slow).exp()
}

fn expected(cell: &Cell) -> Vec<Option<f64>> {
    let seconds = cell_seconds(cell);
    match cell.method.algorithm().map(Algorithm::name) {
        Some("k-chain" | "k-nomial") | None => vec![None; 2],
        Some(_) => vec![Some(seconds * 0.9), Some(seconds * 1.1)],
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let grid = Grid {
            ranks: 16,
            collectives: vec![Collective::Bcast],
            procs: vec![2, 4, 6, 11, 16],
            sizes: (0..21).map(|power| 1 << power).collect(),
            segments: vec![0, 1024, 8192, 65536],
            methods: records::openmpi::methods,
            weights: Weights::default(),
            others: Vec::new(),
        };
        let cells = cells(&grid, &grid.sizes);
        World {
            cells,
            random: Pcg64::seed_from_u64(seed),
            rows: Vec::new(),
            spent_seconds: 0.0,
            visits: 0,
        }
    }

    fn measure(&mut self, visits: &[Visit]) {
        for visit in visits {
            self.visits += 1;
            let cell = self.cells[visit.cell as usize].clone();
            let noise = LogNormal::new(0.0, if truth(&cell) < 1e-3 { 0.1 } else { 0.02 });
            let noise = noise.expect("a deviation that is positive");
            for repetition in 0..visit.warmups + visit.repetitions {
                let astray = if self.random.random::<f64>() < 0.01 { 3.0 } else { 1.0 };
                let seconds = truth(&cell) * noise.sample(&mut self.random) * astray;
                self.spent_seconds += seconds;
                let warm = repetition < visit.warmups;
                self.rows.push(CollectiveCall {
                    visit: self.visits,
                    collective: cell.collective,
                    method: cell.method.clone(),
                    ran: String::new(),
                    procs: cell.procs,
                    bytes: cell.bytes,
                    repetition,
                    first_start_seconds: 0.0,
                    last_start_seconds: 0.0,
                    seconds,
                    status: if warm { Status::Warmup } else { Status::Ok },
                });
            }
        }
    }

    /// Measures until nothing is in doubt or the time is used up.
    fn tune(&mut self, seconds: f64) -> Vec<Batch> {
        let mut batches = Vec::new();
        loop {
            let samples = Samples::gather(&self.rows);
            let left = seconds - self.spent_seconds;
            let batch = Focus::new(&self.cells, &expected, &samples).next(left);
            if batch.visits.is_empty() || batches.len() > 60 {
                batches.push(batch);
                return batches;
            }
            self.measure(&batch.visits);
            batches.push(batch);
        }
    }

    /// True time of the decided method over that of the truly best, less 1, at every point.
    fn penalties(&self) -> Vec<f64> {
        let samples = Samples::gather(&self.rows);
        let time = |method: &Method, procs: u32, bytes: u64| {
            truth(&Cell { collective: Collective::Bcast, method: method.clone(), procs, bytes })
        };
        let penalty = |(point, method): (Point, &Method)| {
            let here = |cell: &&Cell| (cell.procs, cell.bytes) == (point.procs, point.bytes);
            let best = self.cells.iter().filter(here).map(truth).fold(f64::INFINITY, f64::min);
            time(method, point.procs, point.bytes) / best - 1.0
        };
        let focus = Focus::new(&self.cells, &expected, &samples);
        focus.decisions().map(penalty).collect()
    }

    /// What measuring every cell five times would take.
    fn exhaustive_seconds(&self) -> f64 {
        self.cells.iter().map(|cell| 5.0 * truth(cell)).sum()
    }
}

fn mean_and_95th(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values[values.len() * 95 / 100])
}

#[test]
fn a_tenth_of_the_time_decides_nearly_as_well() {
    for seed in 0..2 {
        let mut world = World::new(seed);
        let (blind, _) = mean_and_95th(world.penalties());
        let tenth = world.exhaustive_seconds() / 10.0;
        let batches = world.tune(tenth);
        let (mean, high) = mean_and_95th(world.penalties());
        assert!(mean < 0.02 && high < 0.10, "mean {mean}, 95th {high}; by the models {blind}");
        assert!(mean < blind / 3.0);
        assert!(world.spent_seconds < 1.15 * tenth, "{} of {tenth}", world.spent_seconds);
        let regrets: Vec<f64> = batches.iter().map(|batch| batch.regret.mean).collect();
        assert!(regrets.last().unwrap() < &(regrets[0] / 4.0), "{regrets:?}");
    }
}

/// Save one in twenty, which is little slower: for confirming to take out.
#[test]
fn what_is_exported_was_measured_and_beats_the_default() {
    let mut world = World::new(9);
    let seconds = world.exhaustive_seconds() / 10.0;
    world.tune(seconds);
    let samples = Samples::gather(&world.rows);
    let choices = Focus::new(&world.cells, &expected, &samples).choices();
    assert_eq!(choices.len(), 5 * 21, "the default was measured everywhere");
    let replaced = choices.iter().filter(|choice| choice.method != Method::Default);
    let gain = |choice: &Choice| {
        let Point { collective, procs, bytes } = choice.point;
        let cell = |method: &Method| Cell { collective, method: method.clone(), procs, bytes };
        truth(&cell(&Method::Default)) / truth(&cell(&choice.method))
    };
    let gains: Vec<f64> = replaced.map(gain).collect();
    assert!(gains.len() > 5 * 21 / 3);
    let slower: Vec<f64> = gains.iter().copied().filter(|gain| *gain <= 1.0).collect();
    assert!(20 * slower.len() <= gains.len(), "{slower:?}");
    assert!(slower.iter().all(|gain| *gain > 0.9), "{slower:?}");
}

#[test]
fn with_enough_time_the_measuring_ends_by_itself() {
    let mut world = World::new(3);
    let seconds = world.exhaustive_seconds() * 10.0;
    let batches = world.tune(seconds);
    assert!(batches.last().unwrap().visits.is_empty() && batches.len() < 60, "{}", batches.len());
    assert!(batches.last().unwrap().regret.greatest < 0.011);
    assert!(world.spent_seconds < seconds / 20.0, "{} of {seconds}", world.spent_seconds);
}

/// A machine that is fast for some seconds must not make the default fast.
#[test]
fn a_batch_is_measured_in_random_order() {
    let world = World::new(1);
    let batch = Focus::new(&world.cells, &expected, &Samples::gather(&[])).next(60.0);
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
    let is_used = |point: Point| point.procs == 16 && (4096..=65536).contains(&point.bytes);
    let mut world = World::new(5);
    let defaults = |cell: &Cell| cell.method == Method::Default;
    let indexed = world.cells.iter().zip(0..).filter(|(cell, _)| defaults(cell));
    let visit = |(_, cell)| Visit { cell, warmups: 0, repetitions: 2, calls: 1 };
    let visits: Vec<Visit> = indexed.map(visit).collect();
    // As often as is wanted of the shortest default.
    (0..3).for_each(|_| world.measure(&visits));
    let samples = Samples::gather(&world.rows);
    let used: BTreeMap<Point, f64> =
        world.cells.iter().map(Cell::point).map(|at| (at, f64::from(is_used(at)))).collect();
    let focus = || Focus::new(&world.cells, &expected, &samples);
    let weighed = || focus().weighing(Weights::of(&used));
    let seconds = 20.0;
    let visits = |batch: Batch| -> (usize, usize) {
        let here = |visit: &&Visit| is_used(world.cells[visit.cell as usize].point());
        (batch.visits.iter().filter(here).count(), batch.visits.len())
    };
    let (here, all) = visits(weighed().next(seconds));
    assert!(here == all && all > 10, "{here} of {all} visits are where the time is spent");
    let (here, all) = visits(focus().next(seconds));
    assert!(here < all / 2, "{here} of {all} visits without weights");
    assert_ne!(weighed().regret().mean, focus().regret().mean);
    assert_eq!(weighed().regret().greatest, focus().regret().greatest);
}

/// Where the tracer saw that the default runs an algorithm itself, that one is not taken for a better
/// one because its few observations were lucky.
#[test]
fn what_the_default_runs_itself_does_not_replace_it() {
    let binomial: Method = "native:openmpi:binomial".parse().unwrap();
    let cell = |method: &Method, bytes| Cell {
        collective: Collective::Bcast,
        method: method.clone(),
        procs: 8,
        bytes,
    };
    let sizes = || (0..8).map(|power| 1 << power);
    let cells: Vec<Cell> =
        sizes().flat_map(|bytes| [&Method::Default, &binomial].map(|of| cell(of, bytes))).collect();
    let replaced = |ran: &str| {
        let row = |(visit, (cell, seconds)): (u32, (Cell, f64))| CollectiveCall {
            visit,
            collective: cell.collective,
            method: cell.method,
            ran: ran.into(),
            procs: cell.procs,
            bytes: cell.bytes,
            repetition: 0,
            first_start_seconds: 0.0,
            last_start_seconds: 0.0,
            seconds,
            status: Status::Ok,
        };
        let defaults =
            sizes().flat_map(|bytes| [1.0, 1.1].map(|s| (cell(&Method::Default, bytes), s)));
        let lucky =
            [16, 32].into_iter().flat_map(|bytes| [0.5, 0.55].map(|s| (cell(&binomial, bytes), s)));
        let rows: Vec<CollectiveCall> = (0..).zip(defaults.chain(lucky)).map(row).collect();
        let focus = Focus::new(
            &cells,
            &|cell| [0.9, 1.1].map(|of| cell.method.algorithm().map(|_| of)).to_vec(),
            &Samples::gather(&rows),
        );
        let choices = focus.choices();
        assert_eq!(choices.len(), 8);
        choices.iter().filter(|choice| choice.method != Method::Default).count()
    };
    assert_eq!(replaced(""), 2, "it is not known that they are the same");
    assert_eq!(replaced("bcast_intra_binomial(segment=0)"), 0);
}
