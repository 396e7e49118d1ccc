//! The numbers by which measuring and confirming are steered and of which experiments try others; those of what is
//! believed are in [`choosing`](mod@choosing::constants). A number that one function alone needs stands beside it.
//!
//! Errors are standard deviations of the logarithm of a time: 0.05 is about 5 %. What halving and doubling each of them
//! does: `tuning/tests/engine/constants.rs`.

choosing::constants! {
    // What measuring costs.

    /// Seconds that starting a job takes.
    start_seconds: f64 = 3.0;
    /// Seconds that waking the ranks of a visit takes.
    waking_seconds: f64 = 2e-3;
    /// Seconds, for each process, that the barriers before and after a call take.
    synchronisation_seconds: f64 = 0.1e-3;
    /// Calls below so many seconds are observed twice in a visit: they are noisy and cheap.
    two_calls_seconds: f64 = 20e-3;
    /// Longer calls than so many seconds are not warmed up: another call costs more than it could change.
    warm_up_seconds: f64 = 0.5;

    // What is believed before anything was observed.

    /// Error of the models together.
    modelled_error: f64 = 0.3;
    /// Error for a method that no model knows.
    unknown_error: f64 = 1.0;
    /// Error of a method at one point that its neighbours don't share. If it were as large as the models
    /// disagree, one unlucky visit would rule a method out at one size among others at which it is
    /// the best.
    own_error: f64 = 0.015;
    /// Least number of observed cells of a collective from which the models' error is estimated.
    min_cells: usize = 10;
    /// Weight of all methods' error in the estimate of one method's, in observed cells of that method.
    others_cells: f64 = 4.0;
    /// Prior error of one model, once for all methods of a point in common and once for each by itself.
    model_doubt: f64 = 0.3;
    /// Observed cells that weigh as much as that.
    model_doubt_cells: f64 = 4.0;
    /// Greatest error of a model that one observation counts as: an outlier is no model's error.
    max_model_error: f64 = 1.0;

    // What is measured next.

    /// Expected regret, relative to the time decided for, below which a method is not measured.
    tolerance: f64 = 0.01;
    /// Seconds below which calls are very noisy: what matters is then visited three times.
    very_short_seconds: f64 = 2e-3;
    /// Seconds below which calls are noisy: it is then visited twice.
    short_seconds: f64 = 20e-3;
    /// Time kept for the visits that exported choices still need, as a multiple of what the current choices
    /// need: choices still change.
    spare: f64 = 2.0;
    /// Share of the time left that one batch takes. Smaller batches are planned with more knowledge, but
    /// each starts a job.
    batch_share: f64 = 1.0 / 3.0;
    /// Starts of a job that the first batch takes at most; each later one, as much as all before it together.
    first_batch_starts: f64 = 5.0;
    /// Seconds that a batch that explores takes at least: a single visit would outrun a shorter one, and use
    /// up what is kept for settling.
    min_batch_seconds: f64 = 1.0;

    // The jobs that confirm.

    /// How often a cell is visited at most in a round. Two visits of a short call differ by a third: the
    /// medians of so many, by some per cent.
    max_visits: f64 = 96.0;
    /// Seconds up to which two visits of a call differ by much the same, relatively; beyond, their variance
    /// falls as the time grows.
    noisy_seconds: f64 = 1e-3;
    /// Points at most at which the jobs are compared where nothing is replaced.
    max_controls: usize = 32;
    /// Seconds that a job's turn takes at least: a second of it goes to its start.
    turn_seconds: f64 = 5.0;
    /// Turns of a job at most: as many are enough for jobs to have met much the same.
    max_turns: usize = 6;
    /// What of the last round's time goes to the turns that it begins with; the rest is for further ones where
    /// these leave it open whether a call gains or is harmed.
    share_at_last: f64 = 0.7;
    /// Time is kept for further turns where it lasts for so many starts of all jobs: half of it goes to two of these.
    min_further_starts: f64 = 4.0;
    /// Visits of a short call in each job of a turn, for which time is looked for: a pair of jobs then tells its ratio to
    /// some 5 %.
    visits_of_short: f64 = 4.0;
}
