//! Speed of the simulator: prints messages per second on one core.
//!
//! All runs of a line are by one reused simulator, which keeps its memory; the first run, which has
//! fresh memory, is one of those counted. Best and median of five. Last comes the most memory that
//! the process has held so far (Linux).
//!
//! `cargo bench -p colibri-schedules`; an argument runs the lines whose name contains it.

use std::{hint::black_box, time::Instant};

use colibri_schedules::{
    Call, find,
    simulator::{LogGpCosts, Options, Simulator},
};
use records::{Algorithm, Collective};

/// Runs of each line.
const RUNS: usize = 5;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let model = LogGpCosts {
        latency: 30.40e-6,
        overhead: 8.15e-6,
        gap: 8.683e-6,
        gap_per_byte: 0.015e-6,
        combine_per_byte: 0.001e-6,
    };
    let large = 65_536;
    let chain = Call { segment: 8192, ..Call::new(4096, 8192 * 1000) };
    let tree = Call { segment: 8192, ..Call::new(4096, 8192 * 100) };
    let cases = [
        ("binomial 65536", Collective::Bcast, Algorithm::Binomial, Call::new(large, 8)),
        ("linear 65536", Collective::Bcast, Algorithm::Linear, Call::new(large, 8)),
        ("linear reduce 65536", Collective::Reduce, Algorithm::Linear, Call::new(large, 8)),
        ("binomial reduce 65536", Collective::Reduce, Algorithm::Binomial, Call::new(large, 8)),
        ("dissemination 65536", Collective::Barrier, Algorithm::Bruck, Call::new(large, 0)),
        ("dissemination 1048576", Collective::Barrier, Algorithm::Bruck, Call::new(1 << 20, 0)),
        ("pipeline 4096 x 1000", Collective::Bcast, Algorithm::Pipeline, chain),
        ("pairwise alltoall 2048", Collective::Alltoall, Algorithm::Pairwise, Call::new(2048, 8)),
        ("ring allreduce 1024", Collective::Allreduce, Algorithm::Ring, Call::new(1024, 1 << 20)),
        // Ports here have to be told in which order messages came.
        ("binary reduce 4096 x 100", Collective::Reduce, Algorithm::Binary, tree),
        ("linear alltoall 2048", Collective::Alltoall, Algorithm::Linear, Call::new(2048, 8)),
    ];
    for (name, collective, algorithm, call) in cases {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let Some(entry) = find(collective, algorithm) else {
            println!("{name}: not registered");
            continue;
        };
        let mut simulator = Simulator::new();
        let mut times = [0.0; RUNS];
        let mut outcome = None;
        for time in &mut times {
            let start = Instant::now();
            outcome = Some(simulator.run(entry, black_box(&call), &model, Options::default()));
            *time = start.elapsed().as_secs_f64();
        }
        times.sort_by(f64::total_cmp);
        let (best, median) = (times[0], times[RUNS / 2]);
        match outcome {
            Some(Ok(outcome)) => println!(
                "{name}: {:.2} ms (median {:.2}) for {} messages, {:.1} M messages/s (median \
                 {:.1}), simulated {:.6} s, at most {}",
                best * 1e3,
                median * 1e3,
                outcome.messages,
                outcome.messages as f64 / best / 1e6,
                outcome.messages as f64 / median / 1e6,
                outcome.seconds,
                peak_memory()
            ),
            Some(Err(error)) => println!("{name}: {error}"),
            None => {}
        }
    }
}

/// `VmHWM` of this process, as the kernel writes it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("unknown".into(), |peak| peak.trim().into())
}
