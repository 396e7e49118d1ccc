//! At 10 Mbit/s and 1 ms, where a call takes milliseconds and a budget lasts for few of them.

use super::*;

/// Four jobs, each with so many seconds.
fn run_jobs(bench: &mut Simulated, cells: &[SizedExperiment], seconds: f64) {
    let mut random = Pcg64::seed_from_u64(1);
    for job in 0..4 {
        (bench.job, bench.spent) = (job, 0.0);
        let rule = Rule { minimum: 2 * (job as usize + 1), ..RULE };
        let mut pace = Pace::new(cells, bench.spent, seconds);
        run(cells, &rule, seconds, &mut random, &mut pace, bench).unwrap();
    }
}

/// At 10 Mbit/s and 1 ms the two trains of any size together take 30 to 190 ms, as they do here.
#[test]
fn on_a_slow_network_a_minute_reaches_large_messages_too() {
    let mut bench = Simulated::new(3.0 * 0.84e-6, 0.01);
    (bench.message, bench.visit, bench.least_of_job) = (3.0 * 70e-6, 5e-3, 2);
    let sizes: Vec<u64> = std::iter::once(0).chain((0..=15).map(|shift| 1 << shift)).collect();
    let cells = SizedExperiment::all_of_pair(&sizes);
    // Of a quarter of a minute what groups, links and the start of the job leave.
    run_jobs(&mut bench, &cells, 6.9);
    let few: Vec<_> = cells.iter().filter(|cell| bench.judged[cell] < 5).collect();
    assert!(few.is_empty(), "{few:?}");
}

/// Trains of 256 KiB take 1.3 s, of all sizes together a minute: what the first job had no time for comes by size.
#[test]
fn on_a_slow_network_jobs_reach_every_size_up_to_64_kib() {
    let mut bench = Simulated::new(0.84e-6, 0.01);
    (bench.message, bench.visit, bench.least_of_job) = (70e-6, 10e-3, 2);
    let cells = SizedExperiment::all_of_pair(&sizes());
    run_jobs(&mut bench, &cells, 5.0);
    for cell in cells.iter().filter(|cell| cell.bytes <= 64 << 10) {
        assert!(bench.judged.get(cell).is_some_and(|judged| *judged >= 3), "{cell:?}");
    }
}

/// Also where the first job had no time for them.
#[test]
fn jobs_on_a_slow_network_tell_whether_messages_share_a_port() {
    let mut bench = Simulated::new(0.84e-6, 0.01);
    (bench.message, bench.visit, bench.least_of_job) = (70e-6, 10e-3, 2);
    let cells = groups();
    run_jobs(&mut bench, &cells, 1.0);
    for cell in cells.iter().filter(|cell| cell.experiment == Experiment::FirstServed) {
        assert!(bench.judged.get(cell).is_some_and(|judged| *judged >= 3), "{cell:?}");
    }
}

/// What a byte costs is not seen in small messages: sizes by factors of 8 come before those between.
#[test]
fn on_a_slow_network_seconds_reach_large_messages_too() {
    for (budget, largest) in [(4.3, 512), (10.0, 32 << 10)] {
        let mut bench = Simulated::new(0.84e-6, 0.01);
        (bench.message, bench.visit) = (70e-6, 10e-3);
        simulate(&mut bench, budget);
        for experiment in Experiment::OF_SIZE {
            let cell = SizedExperiment::of_pair(experiment, largest);
            let judged = bench.judged.get(&cell).copied().unwrap_or_default();
            assert!(judged >= 3, "{budget} s: {judged} of {cell:?}");
        }
        assert!(bench.spent < 1.1 * budget, "{}", bench.spent);
    }
}

/// Half of a round trip bends at a frame of 1.5 KiB, between two sizes by a factor of 8.
#[test]
fn on_a_slow_network_seconds_tell_round_trips_of_all_sizes_around_a_frame() {
    let mut bench = Simulated::new(0.84e-6, 0.01);
    (bench.message, bench.visit) = (70e-6, 10e-3);
    simulate(&mut bench, 6.0);
    for bytes in sizes().into_iter().filter(|bytes| *bytes <= 16 << 10) {
        let judged = bench.judged.get(&SizedExperiment::of_pair(Experiment::RoundTrip, bytes));
        assert!(judged.is_some_and(|judged| *judged >= 3), "{bytes}: {judged:?}");
    }
    let trains = SizedExperiment::of_pair(Experiment::Trains, 2 << 10);
    assert_eq!(bench.judged.get(&trains), None, "which leaves no time for all that sizes have");
}

/// Four calls of 12 to 42 ms tell it, which larger messages of other experiments would leave no time for.
#[test]
fn on_a_slow_network_seconds_tell_whether_messages_share_a_port() {
    let mut bench = Simulated::new(0.84e-6, 0.01);
    (bench.message, bench.visit) = (70e-6, 10e-3);
    let mut cells = [SizedExperiment::all_of_pair(&sizes()), groups()].concat();
    cells.sort_by_key(|cell| cell.bytes);
    let mut random = Pcg64::seed_from_u64(1);
    let mut pace = Pace::new(&cells, bench.spent, 5.0);
    run(&cells, &RULE, 5.0, &mut random, &mut pace, &mut bench).unwrap();
    let served = cells.iter().filter(|cell| cell.experiment == Experiment::FirstServed);
    let judged: Vec<usize> = served.map(|cell| bench.judged[cell]).collect();
    assert_eq!(judged.len(), 4);
    assert!(judged.iter().all(|judged| *judged >= 3), "{judged:?}");
}
