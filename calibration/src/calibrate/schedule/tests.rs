use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
};

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use statistics::stopping::Criterion;

use super::*;
use crate::calibrate::cells::Experiment;

mod slow_network;

/// A visitor in virtual time: a fixed time, and for each message a time and a time per byte, with noise.
struct Simulated {
    spent: f64,
    message: f64,
    per_byte: f64,
    noise: f64,
    random: Pcg64,
    /// What every visit takes besides.
    visit: f64,
    job: u32,
    least_of_job: usize,
    /// (job, median) of the visits.
    series: HashMap<SizedExperiment, Vec<(u32, f64)>>,
    /// Observations that count.
    judged: HashMap<SizedExperiment, usize>,
    order: Vec<SizedExperiment>,
    /// When each visit began.
    instants: Vec<f64>,
}

impl Simulated {
    fn new(per_byte: f64, noise: f64) -> Self {
        Simulated {
            spent: 0.0,
            message: 10e-6,
            per_byte,
            noise,
            random: Pcg64::seed_from_u64(7),
            visit: 0.0,
            job: 0,
            least_of_job: 0,
            series: HashMap::new(),
            judged: HashMap::new(),
            order: Vec::new(),
            instants: Vec::new(),
        }
    }
}

impl CellVisitor for Simulated {
    type Error = Infallible;

    fn prepare(&mut self, _: &SizedExperiment) -> Result<(), Infallible> {
        Ok(())
    }

    fn measure(&mut self, cell: &SizedExperiment, visit: VisitTimes) -> Result<(), Infallible> {
        self.instants.push(self.spent);
        self.spent += self.visit;
        let mut judged = Vec::new();
        for repetition in 0..visit.repetitions() {
            let message = self.message + self.per_byte * cell.bytes as f64;
            let plain = 100e-6 + message * f64::from(cell.messages);
            let seconds = plain * (1.0 + self.noise * self.random.random::<f64>());
            self.spent += seconds;
            if repetition >= visit.unjudged {
                judged.push(seconds);
            }
        }
        self.order.push(*cell);
        *self.judged.entry(*cell).or_default() += judged.len();
        if !judged.is_empty() {
            judged.sort_by(f64::total_cmp);
            self.series.entry(*cell).or_default().push((self.job, judged[judged.len() / 2]));
        }
        Ok(())
    }

    fn spent_seconds(&self) -> f64 {
        self.spent
    }

    fn visits(&self, cell: &SizedExperiment) -> usize {
        self.series.get(cell).map_or(0, Vec::len)
    }

    fn visits_of_job(&self, cell: &SizedExperiment) -> usize {
        let visits = self.series.get(cell).into_iter().flatten();
        visits.filter(|(job, _)| *job == self.job).count()
    }

    fn least_of_job(&self) -> usize {
        self.least_of_job
    }

    fn call_seconds(&self, cell: &SizedExperiment) -> f64 {
        self.series.get(cell).and_then(|visits| visits.last()).map_or(0.0, |(_, seconds)| *seconds)
    }

    fn uncertainty(&self, cell: &SizedExperiment, rule: &Rule) -> f64 {
        let visits = self.series.get(cell).into_iter().flatten();
        rule.uncertainty(&visits.map(|(_, seconds)| *seconds).collect::<Vec<_>>())
    }
}

const RULE: Rule = Rule {
    criterion: Criterion::MedianInterval,
    minimum: 8,
    maximum: usize::MAX,
    confidence: 0.95,
    relative_error: 0.025,
    resolution_seconds: 1e-9,
};

fn sizes() -> Vec<u64> {
    std::iter::once(0).chain((0..=20).map(|shift| 1 << shift)).collect()
}

fn simulate(visitor: &mut Simulated, budget: f64) -> ScheduleOutcome {
    let mut random = Pcg64::seed_from_u64(1);
    let cells = SizedExperiment::all_of_pair(&sizes());
    let mut pace = Pace::new(&cells, visitor.spent, budget);
    run(&cells, &RULE, budget, &mut random, &mut pace, visitor).unwrap()
}

#[test]
fn a_quiet_machine_is_measured_to_the_end_in_random_order() {
    let mut visitor = Simulated::new(84e-9, 0.01);
    assert_eq!(simulate(&mut visitor, 60.0), ScheduleOutcome::default());
    let all = SizedExperiment::all_of_pair(&sizes());
    let others = |cells: &[SizedExperiment]| -> Vec<SizedExperiment> {
        cells.iter().filter(|cell| !cell.is_decisive()).copied().collect()
    };
    let looks = FirstLooks::new(&all, &[0, 1], |_| false);
    let all = others(&[looks.thirds, looks.round_trips, looks.between].concat().concat());
    let order = others(&visitor.order);
    let mut seen = HashSet::new();
    let first: Vec<_> = order.iter().filter(|cell| seen.insert(**cell)).copied().collect();
    assert_eq!(first, all, "every third size first, from small ones up");
    assert!(order[2 * all.len()..].windows(2).any(|pair| pair[0].bytes > pair[1].bytes));
    assert!(visitor.spent < 30.0, "{} s spent where all is certain at once", visitor.spent);
}

#[test]
fn too_small_a_budget_goes_to_the_small_sizes() {
    let mut visitor = Simulated::new(840e-9, 0.1); // the largest size alone takes 30 s
    let outcome = simulate(&mut visitor, 5.0);
    let unreached: Vec<u64> = outcome.unreached.iter().map(|cell| cell.bytes).collect();
    assert!(unreached.contains(&(1 << 20)) && !unreached.contains(&64), "{unreached:?}");
    let least = unreached.iter().min().unwrap();
    for cell in SizedExperiment::all_of_pair(&sizes()).iter().filter(|cell| cell.bytes < *least) {
        assert!(visitor.visits(cell) >= RULE.minimum, "{cell:?}");
    }
    assert!(visitor.spent <= 5.5, "{}", visitor.spent);
}

#[test]
fn a_finished_record_asks_for_nothing_more() {
    let mut visitor = Simulated::new(84e-9, 0.01);
    simulate(&mut visitor, 60.0);
    let spent = visitor.spent;
    assert_eq!(simulate(&mut visitor, 60.0), ScheduleOutcome::default());
    assert_eq!(visitor.spent, spent);
}

/// Where telling the other rank takes a time slice.
#[test]
fn a_short_budget_gives_something_of_every_small_size() {
    let mut visitor = Simulated { visit: 5e-3, ..Simulated::new(84e-9, 0.5) };
    simulate(&mut visitor, 3.0);
    for bytes in sizes().into_iter().filter(|bytes| *bytes <= 16 << 10) {
        for experiment in Experiment::OF_SIZE {
            assert!(
                visitor.visits(&SizedExperiment::of_pair(experiment, bytes)) > 0,
                "{experiment:?} {bytes}"
            );
        }
    }
    assert!(visitor.spent < 3.3, "{}", visitor.spent);

    let mut visitor = Simulated::new(84e-9, 0.5);
    simulate(&mut visitor, 1e-6);
    let least = |bytes| visitor.visits(&SizedExperiment::of_pair(Experiment::Trains, bytes));
    assert_eq!([0, 1, 2].map(least), [1, 1, 0], "without these there are no parameters");

    // Where everything takes its time there are still as many observations as fits want.
    let mut visitor = Simulated { visit: 5e-3, ..Simulated::new(84e-9, 0.5) };
    simulate(&mut visitor, 0.2);
    for cell in SizedExperiment::all_of_pair(&[0, 1]) {
        assert!(visitor.judged[&cell] >= 3, "{cell:?}: {}", visitor.judged[&cell]);
    }
}

/// A further job measures anew what is cheap, and the rest only as far as it is uncertain.
#[test]
fn every_job_visits_small_messages() {
    let mut visitor = Simulated::new(84e-9, 0.01);
    simulate(&mut visitor, 60.0);
    let first = visitor.order.len();
    visitor.job = 1;
    let (before, budget) = (visitor.spent, visitor.spent + 60.0);
    assert_eq!(simulate(&mut visitor, budget), ScheduleOutcome::default());
    assert!(visitor.order[first..].iter().all(|cell| cell.bytes <= 1024));
    let round_trip = SizedExperiment::of_pair(Experiment::RoundTrip, 8);
    assert_eq!(visitor.visits_of_job(&round_trip), 4);
    assert!(visitor.spent - before < 2.0, "{}", visitor.spent - before);
}

/// A machine that is slow for some seconds shall not be all that is known of a message size.
#[test]
fn the_least_number_of_visits_is_spread_over_the_jobs() {
    const JOBS: u32 = 4;
    let mut visitor = Simulated { least_of_job: 2, ..Simulated::new(84e-9, 0.8) };
    let mut random = Pcg64::seed_from_u64(1);
    let cells = SizedExperiment::all_of_pair(&sizes());
    let mut pace = Pace::new(&cells, 0.0, 40.0);
    for job in 0..JOBS {
        visitor.job = job;
        let rule = Rule { minimum: 2 * (job as usize + 1), ..RULE };
        let until = 10.0 * f64::from(job + 1);
        run(&cells, &rule, until, &mut random, &mut pace, &mut visitor).unwrap();
    }
    for cell in cells.iter().filter(|cell| cell.bytes >= 64 << 10) {
        let of_job = |job| visitor.series[cell].iter().filter(|(of, _)| *of == job).count();
        let visits: Vec<usize> = (0..JOBS).map(of_job).collect();
        assert!(visits.iter().all(|visits| *visits >= 2), "{cell:?}: {visits:?}");
    }
}

#[test]
fn the_least_certain_cells_get_the_rest_of_the_budget() {
    let mut visitor = Simulated::new(84e-9, 0.8);
    let outcome = simulate(&mut visitor, 20.0);
    assert!(outcome.unreached.is_empty());
    let of = |bytes| visitor.visits(&SizedExperiment::of_pair(Experiment::RoundTrip, bytes));
    assert!(of(8) > RULE.minimum);
}

/// What eight ranks measure together, and one alone, by size.
fn groups() -> Vec<SizedExperiment> {
    let mut cells = SizedExperiment::all_of_groups(&sizes()[..18], 8);
    cells.extend(SizedExperiment::all_of_combining());
    cells.sort_by_key(|cell| cell.bytes);
    cells
}

/// Whatever is measured, large messages, many ranks: where the machine is now faster, now slower, each
/// moment has its share in the smallest messages' times.
#[test]
fn the_smallest_messages_are_visited_evenly_over_the_time() {
    let mut visitor = Simulated { visit: 1e-3, ..Simulated::new(84e-9, 0.8) };
    let mut random = Pcg64::seed_from_u64(1);
    let pair = SizedExperiment::all_of_pair(&sizes());
    let groups = groups();
    let mut pace = Pace::new(&pair, 0.0, 12.0);
    for (cells, until) in [(&pair, 7.2), (&groups, 12.0), (&pair, 12.0)] {
        run(cells, &RULE, until, &mut random, &mut pace, &mut visitor).unwrap();
    }
    assert!((11.5..=12.1).contains(&visitor.spent), "{}", visitor.spent);
    for decisive in pair.iter().filter(|cell| cell.is_decisive()) {
        let visits = visitor.order.iter().zip(&visitor.instants);
        let instants: Vec<f64> =
            visits.filter(|(cell, _)| *cell == decisive).map(|(_, instant)| *instant).collect();
        let by_second = |second: usize| {
            let within = second as f64..(second + 1) as f64;
            instants.iter().filter(|instant| within.contains(instant)).count()
        };
        let counts: Vec<usize> = (0..12).map(by_second).collect();
        assert!(counts.iter().all(|count| (2..=8).contains(count)), "{decisive:?}: {counts:?}");
    }
}

/// What cannot be made certain has all the time that there is.
#[test]
fn a_long_budget_is_spent_where_something_is_uncertain() {
    let mut visitor = Simulated::new(1e-9, 3.0);
    let mut random = Pcg64::seed_from_u64(1);
    let cells = SizedExperiment::all_of_pair(&[0, 1, 64]);
    let finest = Rule { relative_error: 1e-4, ..RULE };
    let mut pace = Pace::new(&cells, 0.0, 30.0);
    let outcome = run(&cells, &finest, 30.0, &mut random, &mut pace, &mut visitor).unwrap();
    assert!(!outcome.uncertain.is_empty());
    assert!((29.0..=30.5).contains(&visitor.spent), "{}", visitor.spent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn the_budget_is_kept_on_any_network(
        budget in 2.0_f64..60.0,
        per_byte in prop::sample::select(vec![0.1e-9, 8e-9, 84e-9, 837e-9]),
        noise in 0.0_f64..1.0,
    ) {
        let mut visitor = Simulated::new(per_byte, noise);
        simulate(&mut visitor, budget);
        prop_assert!(visitor.spent <= budget * 1.1, "{} of {budget}", visitor.spent);
    }
}

proptest! {
    /// However slow a loaded machine is: without two sizes there are no parameters.
    #[test]
    fn the_two_least_sizes_are_always_seen_as_often_as_fits_want(
        budget in 0.01_f64..2.0, message in -5.0_f64..-1.3, visit in -4.0_f64..-0.7,
    ) {
        let (message, visit) = (10f64.powf(message), 10f64.powf(visit));
        let mut visitor = Simulated { message, visit, ..Simulated::new(84e-9, 0.5) };
        simulate(&mut visitor, budget);
        for cell in SizedExperiment::all_of_pair(&[0, 1]) {
            let judged = visitor.judged.get(&cell).copied().unwrap_or(0);
            prop_assert!(judged >= 3, "{cell:?}: {judged}");
        }
    }
}

/// Messages of 64 KiB to and from seven others, in rows, take many times what the chains do.
#[test]
fn what_takes_too_long_of_a_size_keeps_nothing_else_from_being_looked_at() {
    let cells = groups();
    let look = |budget| {
        let mut visitor = Simulated::new(10e-6, 0.01);
        let mut pace = Pace::new(&[], 0.0, budget);
        run(&cells, &RULE, budget, &mut Pcg64::seed_from_u64(1), &mut pace, &mut visitor).unwrap();
        let visited = |experiment, bytes| {
            let mut of = cells.iter().filter(|of| (of.experiment, of.bytes) == (experiment, bytes));
            of.all(|cell| visitor.visits(cell) > 0)
        };
        let large = 64 << 10;
        [Experiment::ChainBcast, Experiment::FanOut, Experiment::FanIn]
            .map(|one| visited(one, large))
    };
    assert_eq!(look(1e3), [true; 3]);
    assert_eq!(look(305.0), [true, false, false]);
}
