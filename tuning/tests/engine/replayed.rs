//! A record in which everything was measured, as a bench: what a tuning would have measured is drawn
//! from one half of the record's observations, and what it decides is judged by the other half.

use std::{collections::BTreeMap, convert::Infallible, ops::Range};

use choosing::samples::{MethodTimes, Samples};
use models::{Forms, Model, Predictor};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use records::{
    Collective, Layout, Method, Point,
    calibration::Calibration,
    choices::Chosen,
    observation::{CollectiveCall, ObservationStatus},
    plan::{Cell, Visit},
};
use tuning::{
    Bench, BenchJob, FinishedJob, JobCosts, Weights,
    plan::{Grid, cells, left_out, thinned},
    state::spent_seconds,
};

use crate::{
    record_files::{judged_by_few, read_calibration, read_rows},
    tuned::{BesideCalls, Tuned, TuningTask, job_time, mean_and_95th, tune},
};

/// 16 nodes at 100 Mbit/s, bcast and reduce: everything measured by `colibri verify`.
const FAST_NETWORK: &str = "testbed-16";

/// The calls of each visit.
type Visits = Vec<Vec<CollectiveCall>>;

/// The record of everything, and what the models say.
pub struct Reference {
    grid: Grid,
    pub cells: Vec<Cell>,
    predictors: Vec<Predictor>,
    /// The visits that a tuning may see, by cell.
    drawn_from: BTreeMap<(Point, Method), Visits>,
    /// The same, and those by which it is judged.
    seen: Samples,
    pub judging: Samples,
    /// The same, each cell's first visit, second visit, and so on, in place of jobs: the record is one job's.
    pub rounds: Vec<Samples>,
    pub seconds: f64,
    /// What starting a job takes, and what a call takes beside its own time by its processes, in seconds; nothing:
    /// as the engine expects it.
    pub beside_calls: Option<BesideCalls>,
}

impl Reference {
    /// What these files of the fast network hold of a grid.
    pub fn read(names: &[&str], grid: &Grid) -> Self {
        Self::of(FAST_NETWORK, names, "calibration.json.gz", grid)
    }

    /// What these files of a record hold of a grid, and the models by that calibration.
    pub fn of(record: &str, names: &[&str], calibration: &str, grid: &Grid) -> Self {
        let mut rows = read_rows(record, names);
        rows.retain(|row| {
            grid.collectives.contains(&row.point.collective)
                && grid.layouts.contains(&row.point.layout)
        });
        let cells = cells(grid, &grid.sizes);
        Self::of_rows(rows, &read_calibration(record, calibration), grid, cells)
    }

    /// What these rows hold of these cells of a grid.
    pub fn of_rows(
        rows: Vec<CollectiveCall>,
        calibration: &Calibration,
        grid: &Grid,
        cells: Vec<Cell>,
    ) -> Self {
        let models = [Model::Hockney, Model::LogGp, Model::PLogP, Model::Refined];
        let predictor = |model| {
            let between = &calibration.measured;
            let flat = Predictor::new(model, Forms::Corrected, between).unwrap();
            flat.on_nodes(between, calibration.inside.as_ref(), false).unwrap()
        };
        let mut by_cell: BTreeMap<(Point, Method), Vec<CollectiveCall>> = BTreeMap::new();
        for row in &rows {
            by_cell.entry((row.point, row.method.clone())).or_default().push(row.clone());
        }
        // The first, third, ... visit may be seen, the others judge.
        let mut drawn_from: BTreeMap<_, Visits> = BTreeMap::new();
        let (mut seen, mut judging) = (Vec::new(), Vec::new());
        let mut rounds: Vec<Vec<CollectiveCall>> = Vec::new();
        for (cell, rows) in by_cell {
            let visits = rows.chunk_by(|one, next| one.visit == next.visit);
            if visits.clone().count() == 1 {
                // Given up after it: far too slow, by whichever half.
                judging.extend_from_slice(&rows);
            }
            for (number, visit) in visits.enumerate() {
                match number % 2 {
                    0 => {
                        seen.extend_from_slice(visit);
                        drawn_from.entry(cell.clone()).or_default().push(visit.to_vec());
                    }
                    _ => {
                        judging.extend_from_slice(visit);
                        rounds.resize_with(rounds.len().max(number / 2 + 1), Vec::new);
                        rounds[number / 2].extend_from_slice(visit);
                    }
                }
            }
        }
        let few = judged_by_few(&judging);
        let of_few = |row: &&CollectiveCall| few.contains(&(row.point, row.method.clone()));
        judging.extend(seen.iter().filter(of_few).cloned().collect::<Vec<_>>());
        Reference {
            grid: grid.clone(),
            cells,
            predictors: models.map(predictor).into(),
            drawn_from: shared_between_the_same(drawn_from),
            seen: Samples::gather(&seen, libraries::ran_as_asked),
            judging: Samples::gather(&judging, libraries::ran_as_asked),
            rounds: rounds
                .iter()
                .map(|rows| Samples::gather(rows, libraries::ran_as_asked))
                .collect(),
            seconds: spent_seconds(&rows),
            beside_calls: None,
        }
    }

    /// What no algorithm gets below.
    fn limits(&self) -> BTreeMap<Point, f64> {
        let refined = self.predictors.last().unwrap();
        let limit = |cell: &Cell| Some((cell.point, refined.limit(cell.point)?.seconds));
        self.cells.iter().filter_map(limit).collect()
    }

    /// As `colibri tune` expects them.
    fn costs(&self) -> JobCosts {
        let refined = self.predictors.last().unwrap();
        let message = refined.limit(Point::flat(Collective::Bcast, 2, 1)).unwrap();
        JobCosts::expected(message.seconds)
    }

    fn expected(&self, cell: &Cell) -> Vec<Option<f64>> {
        let seconds =
            |predictor: &Predictor| predictor.predict_method_seconds(cell.point, &cell.method).ok();
        self.predictors.iter().map(seconds).collect()
    }

    /// Tunes in so many seconds, from some time of the record on.
    pub fn tune(&self, measuring_seconds: f64, confirming_seconds: f64, seed: u64) -> Tuned {
        let expected = |cell: &Cell| self.expected(cell);
        let task = TuningTask {
            cells: &self.cells,
            left_out: &[],
            expected: &expected,
            limits: &BTreeMap::new(),
            ranks: self.grid.ranks,
            costs: self.costs(),
            measuring_seconds,
            confirming_seconds,
            seed,
        };
        let Ok(tuned) = tune(&mut ReplayBench::new(self, seed), &task);
        let spent = spent_seconds(&tuned.rows);
        assert!(spent < 1.1 * measuring_seconds, "{spent} of {measuring_seconds} s");
        tuned
    }

    /// The same as `colibri tune` does it with a budget too short for all sizes: some are left out, and what
    /// is loaded there is predicted.
    pub fn tune_thinned(&self, seconds: (f64, f64), seed: u64) -> Tuned {
        let expected = |cell: &Cell| self.expected(cell);
        let (cells, _) = thinned(&self.grid, seconds.0, &expected, &self.costs());
        self.tune_with_limits(&cells, &left_out(&cells, &self.grid.sizes), seconds, seed)
    }

    /// The same where no size is left out, and every cell of the reference is a candidate.
    pub fn tune_all_sizes(&self, seconds: (f64, f64), seed: u64) -> Tuned {
        self.tune_with_limits(&self.cells, &[], seconds, seed)
    }

    /// With so many seconds to measure, and to confirm.
    fn tune_with_limits(
        &self,
        cells: &[Cell],
        left_out: &[Cell],
        (measuring_seconds, confirming_seconds): (f64, f64),
        seed: u64,
    ) -> Tuned {
        let expected = |cell: &Cell| self.expected(cell);
        let limits = self.limits();
        let task = TuningTask {
            cells,
            left_out,
            expected: &expected,
            limits: &limits,
            ranks: self.grid.ranks,
            costs: self.costs(),
            measuring_seconds,
            confirming_seconds,
            seed,
        };
        let mut bench = ReplayBench::new(self, seed);
        let Ok(tuned) = tune(&mut bench, &task);
        let (spent, budget) = (bench.spent, measuring_seconds + confirming_seconds);
        assert!(spent <= 1.1 * budget, "{spent} of {budget} s");
        tuned
    }

    /// What is fastest, if by more than `tune` takes for a gain, by every second of the visits
    /// that may be seen.
    pub fn quarter(&self, quarter: usize) -> Vec<Chosen> {
        let visits = self.drawn_from.iter().flat_map(|((_, method), visits)| {
            let of_quarter = visits.iter().skip(quarter).step_by(2);
            of_quarter.flatten().map(|row| CollectiveCall { method: method.clone(), ..row.clone() })
        });
        let samples = Samples::gather(&visits.collect::<Vec<_>>(), libraries::ran_as_asked);
        let choice = |point: Point| {
            let default_seconds = samples.get(point, &Method::Default)?.midmean()?;
            let (best, times) = samples.least(point, MethodTimes::midmean)?;
            let seconds = times.midmean()?;
            let method = match seconds * GAIN < default_seconds {
                true => best.clone(),
                false => Method::Default,
            };
            Some(Chosen::measured(point, method, seconds, default_seconds))
        };
        samples.points().filter_map(choice).collect()
    }

    /// Mean and 95th percentile of what following the choices costs against the method that is best
    /// by what a tuning may see, both timed by what it may not.
    pub fn penalty(&self, choices: &[Chosen], sizes: Range<u64>) -> (f64, f64) {
        let counts = |choice: &&Chosen| sizes.contains(&choice.point.bytes);
        let penalties: Vec<f64> =
            choices.iter().filter(counts).map(|choice| self.penalty_of(choice)).collect();
        mean_and_95th(&penalties)
    }

    pub fn penalty_of(&self, choice: &Chosen) -> f64 {
        self.penalty_of_method(choice.point, &choice.method)
    }

    /// How many models there are.
    pub fn models(&self) -> usize {
        self.predictors.len()
    }

    /// What a model decides for at each point among the methods of the record that it knows.
    pub fn decided_by(&self, model: usize, ignores_nodes: bool) -> BTreeMap<Point, Method> {
        let mut least: BTreeMap<Point, (f64, &Method)> = BTreeMap::new();
        for cell in &self.cells {
            let point = cell.point;
            let layout = if ignores_nodes { Layout::flat(point.procs()) } else { point.layout };
            let as_seen = Point { layout, ..point };
            let predicted = self.predictors[model].predict_method_seconds(as_seen, &cell.method);
            let Ok(seconds) = predicted else { continue };
            let best = least.entry(point).or_insert((seconds, &cell.method));
            *best = if seconds < best.0 { (seconds, &cell.method) } else { *best };
        }
        least.into_iter().map(|(point, (_, method))| (point, method.clone())).collect()
    }

    pub fn penalty_of_method(&self, point: Point, method: &Method) -> f64 {
        let seconds = |method| self.judging.get(point, method).unwrap().midmean().unwrap();
        seconds(method) / seconds(self.best(point)) - 1.0
    }

    pub fn best(&self, point: Point) -> &Method {
        self.seen.least(point, MethodTimes::midmean).unwrap().0
    }
}

/// As `tune` has it: what is faster by less is alike.
const GAIN: f64 = 1.02;

/// What was seen to run the very same at a point (the default, and the algorithm that it takes) has
/// its visits in common, in the order in which they were made: a record may have few by one of the names.
fn shared_between_the_same(
    visits: BTreeMap<(Point, Method), Visits>,
) -> BTreeMap<(Point, Method), Visits> {
    // What was not seen is only itself.
    let what_ran = |point: Point, visits: &Visits| match &visits[0][0] {
        call if call.ran.is_empty() => (point, call.method.to_string()),
        call => (point, call.ran.clone()),
    };
    let mut same: BTreeMap<(Point, String), Vec<(f64, _)>> = BTreeMap::new();
    for ((point, _), visits) in &visits {
        let times = (0..visits.len()).map(|number| number as f64 / visits.len() as f64);
        let timed = times.zip(visits.iter().cloned());
        same.entry(what_ran(*point, visits)).or_default().extend(timed);
    }
    same.values_mut().for_each(|visits| visits.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let shared = visits.into_iter().map(|((point, method), visits)| {
        let all = same[&what_ran(point, &visits)].iter().map(|(_, visit)| visit.clone());
        ((point, method), all.collect())
    });
    shared.collect()
}

/// All that the record holds.
pub fn grid() -> Grid {
    Grid {
        ranks: 16,
        collectives: vec![Collective::Bcast, Collective::Reduce],
        layouts: [2, 3, 4, 6, 8, 11, 16].map(Layout::flat).into(),
        sizes: (0..=20).map(|power| 1 << power).collect(),
        segments: vec![0, 1 << 10, 8 << 10, 64 << 10],
        methods: tuning::plan::MethodsOf::new(|point, segments| {
            libraries::openmpi::methods(point.collective, segments, point.procs(), point.bytes)
        }),
        weights: Weights::default(),
        others: Vec::new(),
        rank_bytes: None,
    }
}

/// Visits dealt out in the order in which they were made, from some time of the record on: a tuning
/// meets the machine in the states of its few minutes, not in those of all of the record.
struct ReplayBench<'a> {
    reference: &'a Reference,
    /// Share of the record's time that is over.
    now: f64,
    /// How many of each cell's visits are over.
    dealt: BTreeMap<(Point, Method), usize>,
    visits: u32,
    /// What all jobs took so far, in seconds.
    spent: f64,
}

impl<'a> ReplayBench<'a> {
    fn new(reference: &'a Reference, seed: u64) -> Self {
        let now = Pcg64::seed_from_u64(seed).random();
        ReplayBench { reference, now, dealt: BTreeMap::new(), visits: 0, spent: 0.0 }
    }

    fn visit(
        &mut self,
        point: Point,
        method: &Method,
        visit: &Visit,
        rows: &mut Vec<CollectiveCall>,
    ) {
        let cell = (point, method.clone());
        let Some(known) = self.reference.drawn_from.get(&cell) else { return };
        let next = self.dealt.entry(cell).or_default();
        *next = (*next).max((self.now * known.len() as f64) as usize) + 1;
        let drawn = &known[(*next - 1) % known.len()];
        self.visits += 1;
        for (status, count) in [(true, visit.warmups), (false, visit.repetitions)] {
            let of_status =
                drawn.iter().filter(|row| (row.status == ObservationStatus::Warmup) == status);
            let taken = of_status.take(count as usize);
            rows.extend(taken.map(|row| CollectiveCall {
                visit: self.visits,
                method: method.clone(),
                ..row.clone()
            }));
        }
    }
}

impl Bench for ReplayBench<'_> {
    type Error = Infallible;

    /// Whatever a loaded decision makes run, the default is called.
    fn run(&mut self, job: &BenchJob<'_>) -> Result<FinishedJob, Infallible> {
        let mut rows = Vec::new();
        for visit in &job.plan.visits {
            let cell = &job.plan.cells[visit.cell as usize];
            let loaded = job
                .load
                .and_then(|load| load.choices.iter().find(|choice| choice.point == cell.point));
            let method = loaded.map_or(&cell.method, |choice| &choice.method);
            let before = rows.len();
            self.visit(cell.point, method, visit, &mut rows);
            rows[before..].iter_mut().for_each(|row| row.method = cell.method.clone());
            self.now += spent_seconds(&rows[before..]) / self.reference.seconds;
        }
        let took = self.reference.beside_calls.map(|beside| job_time(beside, &rows));
        self.spent += took.map_or(0.0, |took| took.seconds());
        Ok(FinishedJob { rows, took })
    }
}
