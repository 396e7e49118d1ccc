//! Jobs one after the other, in the time that is left.

use records::observation::CollectiveCall;

use crate::{
    bench::{Bench, BenchJob},
    costs::JobCosts,
};

/// How many times what jobs are expected to take one of them may: each of its points is seen once in it, however short
/// the time.
pub const JOB_OVERRUN: f64 = 2.0;

/// What is left of the time, and what jobs cost beside their calls.
pub struct TimeLeft {
    pub seconds: f64,
    pub costs: JobCosts,
}

impl TimeLeft {
    /// Runs a job; the time is over when it runs, and what it costs is known better.
    ///
    /// # Errors
    /// The bench's.
    pub fn run<B: Bench>(
        &mut self,
        bench: &mut B,
        job: &BenchJob<'_>,
    ) -> Result<Vec<CollectiveCall>, B::Error> {
        let made = bench.run(job)?;
        self.seconds -= self.costs.take_in(made.took, &made.rows);
        Ok(made.rows)
    }
}

/// The order of so many jobs in a turn, the other way round than in the turn before: drift must favour none.
pub fn job_order(jobs: usize, turn: usize) -> Vec<usize> {
    match turn % 2 {
        0 => (0..jobs).collect(),
        _ => (0..jobs).rev().collect(),
    }
}
