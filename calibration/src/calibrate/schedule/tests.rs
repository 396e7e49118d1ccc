use std::{collections::HashMap, convert::Infallible};

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::calibrate::cells::Experiment;

/// A bench in virtual time: a fixed time, and for each message a time and a time per byte, with noise.
struct Simulated {
    spent: f64,
    per_byte: f64,
    noise: f64,
    random: Pcg64,
    series: HashMap<Cell, Vec<f64>>,
    warm_ups: Vec<Cell>,
    order: Vec<Cell>,
}

impl Simulated {
    fn new(per_byte: f64, noise: f64) -> Self {
        Simulated {
            spent: 0.0,
            per_byte,
            noise,
            random: Pcg64::seed_from_u64(7),
            series: HashMap::new(),
            warm_ups: Vec::new(),
            order: Vec::new(),
        }
    }
}

impl Bench for Simulated {
    type Error = Infallible;

    fn measure(&mut self, cell: &Cell, count: u32, warm_up: bool) -> Result<(), Infallible> {
        for _ in 0..count {
            let message = 10e-6 + self.per_byte * cell.bytes as f64;
            let plain = 100e-6 + message * f64::from(cell.messages);
            let seconds = plain * (1.0 + self.noise * self.random.random::<f64>());
            self.spent += seconds;
            if warm_up {
                self.warm_ups.push(*cell);
            } else {
                self.series.entry(*cell).or_default().push(seconds);
                self.order.push(*cell);
            }
        }
        Ok(())
    }

    fn spent_seconds(&self) -> f64 {
        self.spent
    }

    fn observations(&self, cell: &Cell) -> usize {
        self.series.get(cell).map_or(0, Vec::len)
    }

    fn uncertainty(&self, cell: &Cell, rule: &Rule) -> f64 {
        rule.uncertainty(self.series.get(cell).map_or(&[], Vec::as_slice))
    }
}

const RULE: Rule = Rule {
    minimum: 8,
    maximum: 400,
    confidence: 0.95,
    relative_error: 0.025,
    resolution_seconds: 1e-9,
};

fn sizes() -> Vec<u64> {
    std::iter::once(0).chain((0..=20).map(|shift| 1 << shift)).collect()
}

fn simulate(bench: &mut Simulated, budget: f64) -> Outcome {
    let mut random = Pcg64::seed_from_u64(1);
    run(&Cell::all_of_pair(&sizes()), &RULE, budget, &mut random, bench).unwrap()
}

#[test]
fn a_quiet_machine_is_measured_to_the_end_in_random_order() {
    let mut bench = Simulated::new(84e-9, 0.01);
    assert_eq!(simulate(&mut bench, 60.0), Outcome::default());
    assert_eq!(bench.warm_ups, Cell::all_of_pair(&sizes()), "each cell once, from small sizes up");
    assert!(bench.order.windows(2).any(|pair| pair[0].bytes > pair[1].bytes));
    assert!(bench.spent < 30.0, "{} s spent where all is certain at once", bench.spent);
}

#[test]
fn too_small_a_budget_goes_to_the_small_sizes() {
    let mut bench = Simulated::new(840e-9, 0.1); // the largest size alone takes 30 s
    let outcome = simulate(&mut bench, 5.0);
    let unreached: Vec<u64> = outcome.unreached.iter().map(|cell| cell.bytes).collect();
    assert!(unreached.contains(&(1 << 20)) && !unreached.contains(&64), "{unreached:?}");
    let least = unreached.iter().min().unwrap();
    for cell in Cell::all_of_pair(&sizes()).iter().filter(|cell| cell.bytes < *least) {
        assert!(bench.observations(cell) >= RULE.minimum, "{cell:?}");
    }
    assert!(bench.spent <= 5.5, "{}", bench.spent);
}

#[test]
fn a_finished_record_asks_for_nothing_more() {
    let mut bench = Simulated::new(84e-9, 0.01);
    simulate(&mut bench, 60.0);
    let spent = bench.spent;
    assert_eq!(simulate(&mut bench, 60.0), Outcome::default());
    assert_eq!(bench.spent, spent);
}

#[test]
fn the_least_certain_cells_get_the_rest_of_the_budget() {
    let mut bench = Simulated::new(84e-9, 0.8);
    let outcome = simulate(&mut bench, 20.0);
    assert!(outcome.unreached.is_empty());
    let of = |bytes| bench.observations(&Cell::of_pair(Experiment::RoundTrip, bytes));
    assert!(of(8) > RULE.minimum);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn the_budget_is_kept_on_any_network(
        budget in 2.0_f64..120.0,
        per_byte in prop::sample::select(vec![0.1e-9, 8e-9, 84e-9, 837e-9]),
        noise in 0.0_f64..1.0,
    ) {
        let mut bench = Simulated::new(per_byte, noise);
        simulate(&mut bench, budget);
        prop_assert!(bench.spent <= budget * 1.1, "{} of {budget}", bench.spent);
    }
}
