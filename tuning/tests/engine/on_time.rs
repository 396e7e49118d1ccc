//! Confirming keeps to its time, on a network on which a call costs as much beside its own time as in it.

use records::{Method, plan::Cell};
use tuning::JobCosts;

use crate::{
    on_synthetic::{penalties, task},
    synthetic::{SyntheticBench, SyntheticCluster},
    truth,
    tuned::{BesideCalls, Tuned, TuningTask, mean_and_95th, tune},
};

/// As on 16 nodes with a latency of 1 ms, in seconds: a job's start, and each round of the barriers.
const LATENCY: f64 = 1e-3;
const BESIDE_CALLS: BesideCalls = (1.6, |procs| 5.0 * LATENCY * f64::from(procs).log2());

/// A network a hundred times as slow.
fn slowed(cell: &Cell) -> f64 {
    100.0 * truth::seconds(cell)
}

fn expected(cell: &Cell) -> Vec<Option<f64>> {
    let times = truth::expected(cell).into_iter();
    times.map(|seconds| seconds.map(|seconds| 100.0 * seconds)).collect()
}

/// A tuning with so many seconds to confirm, and what confirming took.
fn confirmed_within(world: &SyntheticCluster, seconds: f64) -> (Tuned, f64) {
    let mut bench = SyntheticBench::new(world);
    bench.beside_calls = Some(BESIDE_CALLS);
    let task = TuningTask {
        expected: &expected,
        costs: JobCosts::expected(LATENCY),
        confirming_seconds: seconds,
        ..task(world, 1)
    };
    let tuned = tune(&mut bench, &task).unwrap();
    let took = bench.confirming_seconds();
    (tuned, took)
}

/// Where not every point can be called in every pair of jobs, those are left out that gain least for what they take,
/// and left to the default. Where there is no time for three pairs of jobs, none is started.
#[test]
fn confirming_keeps_to_its_time() {
    let world = SyntheticCluster { truth: slowed, ..SyntheticCluster::new(2) };
    let mut replaced_before = 0;
    for seconds in [10.0, 30.0, 100.0, 300.0, 1000.0, 6000.0] {
        let (tuned, took) = confirmed_within(&world, seconds);
        assert!(took <= 1.1 * seconds, "{took} of {seconds} s");
        let loading = &tuned.confirmed.loading;
        let replaced = tuned.confirmed.choices.iter().filter(|one| one.method != Method::Default);
        let replaced = replaced.count();
        let unreached = tuned.confirmed.unshown.unreached;
        let (mean, high) = mean_and_95th(&penalties(&world, &tuned.confirmed.choices));
        println!(
            "{seconds} s: took {took:.0}, needed {:.0}, {replaced} replaced, {} gains, {unreached} \
             unreached, mean {mean:.3}, 95th {high:.3}",
            tuned.needed_seconds,
            loading.gains.len()
        );
        assert!(
            replaced >= replaced_before,
            "{replaced} in {seconds} s, {replaced_before} in less"
        );
        assert!(loading.gains.iter().all(|gain| gain.alone.pairs >= 3));
        let longest = loading.gains.iter().map(|gain| gain.default_seconds).fold(0.0, f64::max);
        assert!(longest < seconds / 3.0, "{longest} s is confirmed in {seconds} s");
        if seconds < tuned.needed_seconds {
            assert!(unreached > 0, "{seconds} of {} s", tuned.needed_seconds);
        } else {
            assert!(unreached == 0 && mean < 0.03 && high < 0.2, "{unreached} {mean} {high}");
        }
        replaced_before = replaced;
    }
}
