//! What confirming is to do, and what is left of its time.

use records::observation::CollectiveCall;

use crate::{
    bench::{Bench, BenchJob},
    costs::JobCosts,
};

/// In which time what was chosen is to be confirmed, and on how many ranks.
pub struct ConfirmingTask {
    /// Ranks of a job.
    pub ranks: u32,
    /// What all jobs together may take, starting them included, in seconds.
    pub seconds: f64,
    /// What jobs cost beside their calls, by those that have run.
    pub costs: JobCosts,
    /// Turns of the last round at least, beside what the engine wants: so that each of a bench's states, if
    /// it goes through some in turn, is seen.
    pub min_turns: usize,
    /// Of the order of the measurements.
    pub seed: u64,
}

/// What is left of the time, and what jobs cost beside their calls.
pub(crate) struct TimeLeft {
    pub seconds: f64,
    pub costs: JobCosts,
}

impl TimeLeft {
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
