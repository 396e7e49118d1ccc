//! What several tests need.

use rand::SeedableRng;
use rand_distr::{Distribution, LogNormal};
use rand_pcg::Pcg64;
use records::{Collective, Method, Point, observation::CollectiveCall, plan::Cell};

/// A broadcast on 8 processes that took so many seconds, of a visit 0.
pub fn call(method: &str, ran: &str, bytes: u64, seconds: f64) -> CollectiveCall {
    let method = method.parse().unwrap();
    let cell = Cell { point: Point::flat(Collective::Bcast, 8, bytes), method };
    CollectiveCall { ran: ran.into(), ..CollectiveCall::timed(&cell, seconds) }
}

/// Where it does not matter what ran.
pub fn any(_: Collective, _: &Method, _: &str) -> bool {
    true
}

/// What a call takes without and with something loaded, in seconds, in each of so many turns of two jobs; for points at
/// which it takes `factors` times as long with it. Jobs differ by an effect that all their points have in common, and by
/// as much at each point: its logarithm has this deviation.
pub fn paired_jobs(
    seed: u64,
    turns: usize,
    deviation: f64,
    factors: impl Iterator<Item = f64>,
) -> Vec<Vec<[f64; 2]>> {
    let mut random = Pcg64::seed_from_u64(seed);
    let effects = LogNormal::new(0.0, deviation).unwrap();
    let jobs: Vec<[f64; 2]> =
        (0..turns).map(|_| [(); 2].map(|()| effects.sample(&mut random))).collect();
    let mut turn = |job: &[f64; 2], factor: f64| {
        let [without, with] = job.map(|effect| 1e-3 * effect * effects.sample(&mut random));
        [without, factor * with]
    };
    factors.map(|factor| jobs.iter().map(|job| turn(job, factor)).collect()).collect()
}
