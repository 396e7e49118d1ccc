//! Every number by which the engine is steered, in one place.
//!
//! Noise, errors and doubts are standard deviations of the logarithm of a time: 0.05 is about 5 %. What
//! halving and doubling each of them does: `tuning/tests/engine/constants.rs`.

use std::cell::Cell;

macro_rules! constants {
    ($($(#[$documentation:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        /// The numbers by which the engine is steered.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Constants {
            $($(#[$documentation])* pub $name: $type,)*
        }

        impl Constants {
            /// Those that every tuning uses.
            pub const USUAL: Constants = Constants { $($name: $value),* };
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The same with the named one multiplied by a factor; a count is rounded down, and at least 1.
            #[must_use]
            pub fn scaled(&self, name: &str, factor: f64) -> Self {
                let mut scaled = self.clone();
                match name {
                    $(stringify!($name) => scaled.$name = Scaled::scaled(self.$name, factor),)*
                    _ => {}
                }
                scaled
            }

            /// One of them, by its name.
            pub fn get(&self, name: &str) -> Option<f64> {
                match name {
                    $(stringify!($name) => Some(self.$name as f64),)*
                    _ => None,
                }
            }
        }
    };
}

trait Scaled {
    fn scaled(self, factor: f64) -> Self;
}

impl Scaled for f64 {
    fn scaled(self, factor: f64) -> Self {
        self * factor
    }
}

impl Scaled for usize {
    fn scaled(self, factor: f64) -> Self {
        ((self as f64 * factor) as usize).max(1)
    }
}

constants! {
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

    // The noise of a visit.

    /// Noise of one visit where too few were made to tell.
    visit_noise: f64 = 0.1;
    /// Noise that visits don't take away.
    lasting_noise: f64 = 0.005;
    /// Pairs of visits that tell their noise, at least.
    min_pairs: usize = 8;

    // The machine's state of the moment.

    /// Seconds after which a state of the machine is over, on average.
    state_seconds: f64 = 0.5;
    /// How many visits at the same time weigh as much as the belief that nothing was the matter.
    calm_weight: f64 = 8.0;
    /// Limit to what one visit adds to the estimated state, in standard deviations of its noise: single
    /// visits are outliers.
    max_noise: f64 = 2.0;
    /// Iterations that separate the times of cells from what the machine's state adds to them.
    drift_sweeps: usize = 8;

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

    // What an observation tells.

    /// Distance in sizes over which an observation informs other points, in octaves (factors of two).
    octaves_of_bytes: f64 = 6.0;
    /// The same in numbers of processes: trees change their shape from one to the next.
    octaves_of_procs: f64 = 1.0;
    /// Prior share of visits that are outliers.
    stray_share: f64 = 0.15;
    /// Weight of that prior, in visits: outliers are rare, and a few pairs that agree say little.
    stray_visits: f64 = 40.0;
    /// Noise of outliers. Visits to calls of 3 ms and more agree within 1 to 8 %, but one visit in ten was
    /// off by 7 to 30 %.
    straying: f64 = 0.2;
    /// Added to it: this multiple of the usual noise.
    straying_of_noise: f64 = 2.0;
    /// Iterations over all visits that estimate which of them are outliers.
    visit_sweeps: usize = 12;
    /// Share of the way that each iteration goes to what a visit is now taken for: all of it, beliefs swing.
    visit_step: f64 = 0.5;
    /// Least weight of a visit, relative to what is known without it; at most the weight of an outlier.
    least_added: f64 = 0.02;

    // What is measured next.

    /// Expected regret, relative to the time decided for, below which a method is not measured.
    tolerance: f64 = 0.01;
    /// Expected times that differ by less, relatively, count as equal. Among equal methods the default is
    /// chosen, else the first by name: if noise chose, two tunings would differ.
    alike: f64 = 0.02;
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

    // What is believed of a gain.

    /// What the noise of visits tells of a gain's variance counts as so many turns of jobs do.
    visits_as_turns: f64 = 4.0;
    /// Doubt of the gains of all choices of one method together: what was measured with a method forced may
    /// not hold where a file makes the library take it. Over all choices of a method, jobs with rules
    /// loaded gained what hundreds of visits with it forced had shown but for 0.03 (root mean square), once
    /// what the jobs differed by elsewhere was taken off.
    same_implementation: f64 = 0.03;
    /// The same where Colibri's schedules are loaded, and the library's algorithms of the same names were
    /// measured.
    other_implementation: f64 = 0.15;
    /// What two jobs differ by, beside the noise of their visits.
    jobs_differ: f64 = 0.02;
    /// The same of short calls, of which each job finds the machine in other states: before it is seen
    /// where both jobs run the default, this of the noise of a visit.
    jobs_differ_of_noise: f64 = 0.5;
    /// Least doubt of a gain.
    min_doubt: f64 = 0.05;
    /// Standard deviations by which a region must be believed to be faster than the default: one of ten
    /// that are no faster would be.
    surely: f64 = 1.28;
}

thread_local! {
    static IN_USE: Cell<&'static Constants> = const { Cell::new(&Constants::USUAL) };
}

/// Those in use.
pub(crate) fn constants() -> &'static Constants {
    IN_USE.get()
}

/// Does some work with other ones than the usual, on this thread: for experiments alone.
pub fn with<T>(constants: &'static Constants, work: impl FnOnce() -> T) -> T {
    let before = IN_USE.replace(constants);
    let done = work();
    IN_USE.set(before);
    done
}
