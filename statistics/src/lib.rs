//! What every stage computes of observations, each once: robust summaries ([`median`], [`midmean`],
//! [`quantile`], trimmed means), where the truth lies ([`median_interval`], [`percentile_interval`]), whether
//! one sample is smaller than another ([`significance`]), what jobs say of a ratio ([`PairedJobs`]), what is left of many such tests
//! ([`false_discovery_control`], [`family_wise_control`]), and when there are enough observations
//! ([`stopping`], [`nrep`]).
//!
//! Values are in the caller's unit. What too few values don't determine is `None`. Values must not be
//! NaN; infinite ones are ordered as such.

#![forbid(unsafe_code)]

mod corrections;
mod intervals;
mod jobs;
pub mod nrep;
mod running;
pub mod significance;
pub mod stopping;
mod summaries;

pub use corrections::{false_discovery_control, family_wise_control};
pub use intervals::{
    bootstrap_widening, mean_interval, median_interval, percentile_interval, students_t,
};
pub use jobs::{PairedJobs, ratio_estimate};
pub use significance::is_smaller;
pub use summaries::{
    DEVIATIONS_PER_MEDIAN, geometric_mean, mean, median, midmean, quantile, r_squared,
    serial_rank_correlation, standard_deviation, trimmed_mean, trimmed_mean_of_counts,
    trimmed_mean_squared_error, upper_median, variance,
};
