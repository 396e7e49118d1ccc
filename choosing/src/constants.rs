//! The numbers by which beliefs and choices are steered and of which experiments try others. A number that one
//! function alone needs stands beside it.
//!
//! Noise, errors and doubts are standard deviations of the logarithm of a time: 0.05 is about 5 %. What
//! halving and doubling each of them does: `tuning/tests/engine/constants.rs`.

/// Numbers by which something is steered, as a struct `Constants`; `constants()` gives those in use, `with` does some
/// work with others, for experiments alone.
#[macro_export]
macro_rules! constants {
    ($($(#[$documentation:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        /// The numbers by which this is steered.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Constants {
            $($(#[$documentation])* pub $name: $type,)*
        }

        impl Constants {
            /// Those that are used but in experiments.
            pub const USUAL: Constants = Constants { $($name: $value),* };
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// These constants with the named one multiplied by a factor; a count is rounded down, and at least 1.
            #[must_use]
            pub fn scaled(&self, name: &str, factor: f64) -> Self {
                let mut scaled = self.clone();
                match name {
                    $(stringify!($name) => {
                        scaled.$name = $crate::constants::Scaled::scaled(self.$name, factor);
                    })*
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

        thread_local! {
            static IN_USE: std::cell::Cell<&'static Constants> =
                const { std::cell::Cell::new(&Constants::USUAL) };
        }

        /// Those in use.
        pub fn constants() -> &'static Constants {
            IN_USE.get()
        }

        /// Does some work with other ones than the usual, on this thread: for experiments alone.
        pub fn with<T>(constants: &'static Constants, work: impl FnOnce() -> T) -> T {
            let before = IN_USE.replace(constants);
            let done = work();
            IN_USE.set(before);
            done
        }
    };
}

/// A number that can be multiplied by a factor.
pub trait Scaled {
    #[must_use]
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

crate::constants! {
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

    // What an observation tells.

    /// Distance in sizes over which an observation informs other points, in octaves (factors of two).
    octaves_of_bytes: f64 = 6.0;
    /// Distance in numbers of processes over which an observation informs other points, in octaves: trees change
    /// their shape from one to the next.
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
    min_added: f64 = 0.02;

    // What is decided.

    /// Expected times that differ by less, relatively, count as equal. Among equal methods the default is
    /// chosen, else the first by name: if noise chose, two tunings would differ.
    alike: f64 = 0.02;

    // What is believed of a gain.

    /// What the noise of visits tells of a gain's variance counts as so many turns of jobs do.
    visits_as_turns: f64 = 4.0;
    /// Doubt of the gains of all choices of one method together: what was measured with a method forced may
    /// not hold where a file makes the library take it. Over all choices of a method, jobs with rules
    /// loaded gained what hundreds of visits with it forced had shown but for 0.03 (root mean square), once
    /// what the jobs differed by elsewhere was taken off.
    same_implementation: f64 = 0.03;
    /// As `same_implementation`, where Colibri's schedules are loaded, and the library's algorithms of the same names
    /// were measured.
    other_implementation: f64 = 0.15;
    /// What two jobs differ by, beside the noise of their visits.
    jobs_differ: f64 = 0.02;
    /// What two jobs differ by in short calls, of which each job finds the machine in other states: before it is seen
    /// where both jobs run the default, this of the noise of a visit.
    jobs_differ_of_noise: f64 = 0.5;
    /// Least doubt of a gain.
    min_doubt: f64 = 0.05;
    /// Standard deviations by which a region must be believed to be faster than the default: one of ten
    /// that are no faster would be.
    surely: f64 = 1.28;
}
