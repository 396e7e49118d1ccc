//! What confirming is to do.

use crate::costs::JobCosts;

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
