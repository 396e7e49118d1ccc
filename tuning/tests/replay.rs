//! Focused tuning replayed against a record in which everything was measured: what it would have
//! measured is drawn from one half of that record's observations, and what it decides is judged by
//! the other half.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    ops::Range,
    path::{Path, PathBuf},
};

use colibri_verification::{
    Weights,
    agreement::agreement,
    confirmation::Confirmation,
    drift::steadied,
    focus::{Focus, START_SECONDS, spent},
    functions::DecisionFunction,
    plan::{Grid, Repeated, cells, repeat},
    samples::{Samples, Times},
    selection::Choice,
    statistics::quantile,
};
use flate2::read::GzDecoder;
use models::{Forms, Model, Predictor};
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;
use records::{
    Collective, Method, Point,
    calibration::Calibration,
    document,
    observation::{CollectiveCall, Status},
    plan::{Cell, Visit},
    platform::Platform,
    record,
};

/// 16 nodes at 100 Mbit/s, bcast and reduce: everything measured by `colibri verify`.
fn data(name: &str) -> (String, PathBuf) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../figures/data/testbed-16").join(name);
    let mut text = String::new();
    GzDecoder::new(File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
    (text, path)
}

/// The calls of each visit.
type Visits = Vec<Vec<CollectiveCall>>;

/// The record of everything, and what the models say.
struct Reference {
    cells: Vec<Cell>,
    predictors: Vec<Predictor>,
    /// The visits that a tuning may see, by cell.
    drawn_from: BTreeMap<(Point, Method), Visits>,
    /// The same, and those by which it is judged.
    seen: Samples,
    judging: Samples,
    seconds: f64,
}

impl Reference {
    fn read() -> Self {
        let mut rows = Vec::new();
        for name in [
            "measurements.csv.gz",
            "measurements-2.csv.gz",
            "measurements-3.csv.gz",
            "measurements-4.csv.gz",
            "measurements-5.csv.gz",
            "measurements-6.csv.gz",
        ] {
            let (text, path) = data(name);
            rows.extend(record::parse::<CollectiveCall>(&text, &path).unwrap().rows);
        }
        let (text, path) = data("calibration.json.gz");
        let calibration: Calibration = document::parse(&text, &path).unwrap();
        let models = [Model::Hockney, Model::LogGp, Model::PLogP, Model::Refined];
        let predictor =
            |model| Predictor::new(model, Forms::Corrected, &calibration.measured).unwrap();
        let mut by_cell: BTreeMap<(Point, Method), Vec<CollectiveCall>> = BTreeMap::new();
        for row in &rows {
            let point = Point { collective: row.collective, procs: row.procs, bytes: row.bytes };
            by_cell.entry((point, row.method.clone())).or_default().push(row.clone());
        }
        // The first, third, ... visit may be seen, the others judge.
        let mut drawn_from: BTreeMap<_, Visits> = BTreeMap::new();
        let (mut seen, mut judging) = (Vec::new(), Vec::new());
        for (cell, rows) in by_cell {
            let visits = rows.chunk_by(|one, next| one.visit == next.visit);
            for (number, visit) in visits.enumerate() {
                match number % 2 {
                    0 => {
                        seen.extend_from_slice(visit);
                        drawn_from.entry(cell.clone()).or_default().push(visit.to_vec());
                    }
                    _ => judging.extend_from_slice(visit),
                }
            }
        }
        Reference {
            cells: cells(&grid(), &grid().sizes),
            predictors: models.map(predictor).into(),
            drawn_from: shared_between_the_same(drawn_from),
            seen: Samples::gather(&seen),
            judging: Samples::gather(&judging),
            seconds: spent(&rows),
        }
    }

    fn expected(&self, cell: &Cell) -> Vec<Option<f64>> {
        let seconds = |predictor: &Predictor| {
            predictor.predict_method_seconds(cell.point(), &cell.method).ok()
        };
        self.predictors.iter().map(seconds).collect()
    }

    /// What a tuning measures that has so many seconds for it, and how long that takes.
    fn tune(&self, world: &mut World<'_>, seconds: f64) -> (Vec<CollectiveCall>, f64) {
        let (mut rows, mut jobs) = (Vec::new(), 0.0);
        loop {
            jobs += 1.0;
            let left = seconds - spent(&rows) - jobs * START_SECONDS;
            let seen = Samples::gather(&steadied(rows.clone()));
            let focus = Focus::new(&self.cells, &|cell| self.expected(cell), &seen);
            let batch = focus.next(left);
            if batch.visits.is_empty() || left <= 0.0 {
                let spent = spent(&rows);
                return (rows, spent);
            }
            let of = |visit: &Visit| {
                let cell = &self.cells[visit.cell as usize];
                (cell.point(), &cell.method)
            };
            world.job(&batch.visits, of, &mut rows);
        }
    }

    /// What confirming leaves of what was chosen, where it may take so many seconds.
    fn confirm(&self, focus: &Focus, world: &mut World<'_>, seconds: f64) -> Vec<Choice> {
        let mut choices = focus.choices();
        let mut confirmation = Confirmation::new(&choices, &focus.doubts(), SAME_IMPLEMENTATION);
        for is_last in [false, true] {
            let replaced: Vec<Choice> =
                choices.iter().filter(|of| of.method != Method::Default).cloned().collect();
            let points = replaced.iter().map(|choice| choice.point).collect();
            let cell = |choice: &Choice| {
                let Point { collective, procs, bytes } = choice.point;
                Cell { collective, method: Method::Default, procs, bytes }
            };
            let cells: Vec<Cell> = replaced.iter().map(cell).collect();
            let times = [
                replaced.iter().map(|choice| Some(choice.default_seconds)).collect(),
                replaced.iter().map(|choice| Some(choice.seconds)).collect(),
            ];
            let Repeated { plans, .. } = repeat(&cells, &times, 16, seconds / 2.0, (1, 1));
            let [default, loaded] = [false, true].map(|is_loaded| {
                let mut rows = Vec::new();
                let of = |visit: &Visit| {
                    let choice = &replaced[visit.cell as usize];
                    (choice.point, if is_loaded { &choice.method } else { &Method::Default })
                };
                world.job(&plans[usize::from(is_loaded)][0].visits, of, &mut rows);
                // Whatever ran, the default was called.
                rows.iter_mut().for_each(|row| row.method = Method::Default);
                Samples::gather(&rows)
            });
            confirmation.observe(&default, &loaded, &points);
            for choice in &mut choices {
                if confirmation.taken_out(choice.point, is_last).is_some() {
                    choice.method = Method::Default;
                }
            }
        }
        choices
    }

    /// What is fastest, if by more than `tune` takes for a gain, by every second of the visits
    /// that may be seen.
    fn quarter(&self, quarter: usize) -> Vec<Choice> {
        let visits = self.drawn_from.iter().flat_map(|((_, method), visits)| {
            let of_quarter = visits.iter().skip(quarter).step_by(2);
            of_quarter.flatten().map(|row| CollectiveCall { method: method.clone(), ..row.clone() })
        });
        let samples = Samples::gather(&visits.collect::<Vec<_>>());
        let choice = |point: Point| {
            let default_seconds = samples.get(point, &Method::Default)?.midmean()?;
            let (best, times) = samples.least(point, Times::midmean)?;
            let seconds = times.midmean()?;
            let method = match seconds * GAIN < default_seconds {
                true => best.clone(),
                false => Method::Default,
            };
            Some(Choice { point, method, seconds, default_seconds })
        };
        samples.points().filter_map(choice).collect()
    }

    /// Mean and 95th percentile of what following the choices costs against the method that is best
    /// by what a tuning may see, both timed by what it may not.
    fn penalty(&self, choices: &[Choice], sizes: Range<u64>) -> (f64, f64) {
        let penalty = |choice: &Choice| {
            let (best, _) = self.seen.least(choice.point, Times::midmean).unwrap();
            let seconds =
                |method| self.judging.get(choice.point, method).unwrap().midmean().unwrap();
            seconds(&choice.method) / seconds(best) - 1.0
        };
        let counts = |choice: &&Choice| sizes.contains(&choice.point.bytes);
        let penalties: Vec<f64> = choices.iter().filter(counts).map(penalty).collect();
        let mean = penalties.iter().sum::<f64>() / penalties.len() as f64;
        (mean, quantile(&penalties, 0.95).unwrap())
    }
}

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

fn grid() -> Grid {
    Grid {
        ranks: 16,
        collectives: vec![Collective::Bcast, Collective::Reduce],
        procs: vec![2, 3, 4, 6, 8, 11, 16],
        sizes: (0..=20).map(|power| 1 << power).collect(),
        segments: vec![0, 1 << 10, 8 << 10, 64 << 10],
        methods: records::openmpi::methods,
        weights: Weights::default(),
        others: Vec::new(),
    }
}

/// Visits dealt out in the order in which they were made, from some time of the record on: a tuning
/// meets the machine in the states of its few minutes, not in those of all of the record.
struct World<'a> {
    reference: &'a Reference,
    random: Pcg64,
    /// Share of the record's time that is over.
    now: f64,
    /// How many of each cell's visits are over.
    dealt: BTreeMap<(Point, Method), usize>,
    visits: u32,
}

impl<'a> World<'a> {
    fn new(reference: &'a Reference, seed: u64) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        let now = random.random();
        World { reference, random, now, dealt: BTreeMap::new(), visits: 0 }
    }

    /// All visits of a job, each at some time of it.
    fn job<'c>(
        &mut self,
        visits: &[Visit],
        of: impl Fn(&Visit) -> (Point, &'c Method),
        rows: &mut Vec<CollectiveCall>,
    ) {
        let mut order: Vec<&Visit> = visits.iter().collect();
        order.shuffle(&mut self.random);
        for visit in order {
            let (point, method) = of(visit);
            let before = rows.len();
            self.visit(point, method, visit, rows);
            self.now += spent(&rows[before..]) / self.reference.seconds;
        }
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
            let of_status = drawn.iter().filter(|row| (row.status == Status::Warmup) == status);
            let taken = of_status.take(count as usize);
            rows.extend(taken.map(|row| CollectiveCall {
                visit: self.visits,
                method: method.clone(),
                ..row.clone()
            }));
        }
    }
}

/// Times of smaller messages vary by a fifth from visit to visit: there the best by one half of the record
/// costs itself 4 to 6 % at the 95th percentile against the best by the other half.
const LARGE: u64 = 8 << 10;
/// Of the measuring time of everything: what `colibri tune` measures in, and confirms one way of
/// loading in, if a tenth is its budget.
const SHARE: f64 = 0.043;
const CONFIRMING_SHARE: f64 = 0.02;
/// As `colibri tune` has it for rules files.
const SAME_IMPLEMENTATION: f64 = 0.03;

/// As `tune` has it: what is faster by less is alike.
const GAIN: f64 = 1.02;

/// Tunings that begin at different times of the record, of which one is luckier than another.
const TUNINGS: u64 = 4;

#[test]
#[ignore = "takes minutes without optimisation: cargo test --release -p colibri-verification --test replay -- --ignored"]
fn a_tenth_of_the_exhaustive_time_decides_nearly_as_well() {
    let reference = Reference::read();
    let seconds = reference.seconds * SHARE;
    let mut sums = [[0.0; 4]; 2];
    let mut functions = [Vec::new(), Vec::new()];
    for seed in 1..=TUNINGS {
        let mut world = World::new(&reference, seed);
        let (rows, spent) = reference.tune(&mut world, seconds);
        assert!(spent < 1.1 * seconds, "{spent} of {seconds} s");
        let expected = |cell: &Cell| reference.expected(cell);
        let seen = Samples::gather(&steadied(rows));
        let focus = Focus::new(&reference.cells, &expected, &seen);
        let candidate = focus.choices();
        assert_eq!(candidate.len(), 2 * 7 * 21, "every point is decided");
        let confirming = reference.seconds * CONFIRMING_SHARE;
        let confirmed = reference.confirm(&focus, &mut world, confirming);
        let stages = sums.iter_mut().zip(&mut functions);
        for ((sum, functions), choices) in stages.zip([&candidate, &confirmed]) {
            functions.push(DecisionFunction::measured(choices));
            let (mean, high) = reference.penalty(choices, 0..u64::MAX);
            let (mean_of_large, high_of_large) = reference.penalty(choices, LARGE..u64::MAX);
            let one = [mean, high, mean_of_large, high_of_large];
            println!(
                "seed {seed}: mean {mean:.3}, 95th {high:.3}; large: {mean_of_large:.3}, {high_of_large:.3}"
            );
            *sum = std::array::from_fn(|of| sum[of] + one[of] / TUNINGS as f64);
        }
    }
    for (sum, stage) in sums.iter().zip(["chosen", "confirmed"]) {
        println!("{stage}, mean of {TUNINGS}: {sum:.3?}");
    }
    let [chosen, confirmed] = sums;
    assert!(chosen[0] < 0.011 && chosen[1] < 0.085, "{chosen:?}");
    assert!(confirmed[0] < 0.014 && confirmed[1] < 0.1, "{confirmed:?}");
    for of_large in [&chosen[2..], &confirmed[2..]] {
        assert!(of_large[0] < 0.012 && of_large[1] < 0.065, "{of_large:?}");
    }
    for (functions, stage) in functions.iter().zip(["chosen", "confirmed"]) {
        let beyond = mean_disagreement(&reference, functions, stage);
        assert!(beyond <= 12.0, "{stage}: {beyond} points");
    }
}

/// How often everything measured twice, for a quarter of the record each, leads to other decisions: what
/// two focused tunings can be asked to agree in.
#[test]
#[ignore = "takes minutes without optimisation: cargo test --release -p colibri-verification --test replay -- --ignored"]
fn two_exhaustive_measurements_of_26_minutes_differ_too() {
    let reference = Reference::read();
    let functions = [0, 1].map(|quarter| DecisionFunction::measured(&reference.quarter(quarter)));
    let two = agreement(&reference.judging, [&functions[0], &functions[1]], Platform::default());
    let (differing, beyond) = (two.differing, two.beyond);
    let significantly = two.significantly_beyond;
    println!(
        "{differing} points differ, {beyond} by over 5 %, {significantly} significantly, {:.3} at most",
        two.greatest
    );
    assert!((15..=45).contains(&beyond) && significantly <= 5, "{beyond} {significantly}");
}

/// The points at which two tunings differ by significantly more than 5 %, as a mean over all pairs.
fn mean_disagreement(reference: &Reference, functions: &[DecisionFunction], stage: &str) -> f64 {
    let (mut pairs, mut sums) = (0.0, [0.0; 3]);
    for (number, one) in functions.iter().enumerate() {
        for other in &functions[number + 1..] {
            let two = agreement(&reference.judging, [one, other], Platform::default());
            assert_eq!((two.points, two.not_measured), (2 * 7 * 21, 0));
            let counts = [two.differing, two.beyond, two.significantly_beyond];
            sums = std::array::from_fn(|of| sums[of] + f64::from(counts[of]));
            pairs += 1.0;
        }
    }
    let [differ, beyond, significantly] = sums.map(|sum| sum / pairs);
    println!(
        "{stage}: {differ} points differ, {beyond} by over 5 %, {significantly} significantly"
    );
    significantly
}
