//! From observations to choices: what the times of methods tell ([`samples`]), what is believed of them, and which of
//! them to take. Everything works on samples in memory: no files, no plans, no MPI, so that it can run inside an
//! application, too.
//!
//! There are two strategies, and both end in [`Chosen`](records::choices::Chosen):
//!
//! - [`halves`], where every method was observed about equally often (`verify`, imported times): what is best in one
//!   half of the observations, faster than the default in both, and significantly so.
//! - [`expected`], where observations are few and uneven (`tune`): the least expected time by what all observations
//!   there and nearby, and the predictions before them, make believed.
//!
//! While an application runs, [`exploring`] tries methods in its own calls, and says what that may cost.
//!
//! Guidelines compare the medians of several jobs, and choose by the same comparison (in `verification`).
//!
//! What was chosen is then tried, loaded, in pairs of jobs: [`gains`] tells what to give up after a first round,
//! [`evidence`] what a last one confirms, [`harm`] whether anything became slower, [`recheck`] long after whether all of
//! it still holds.

#![forbid(unsafe_code)]

mod belief;
pub mod constants;
pub mod drift;
pub mod evidence;
pub mod expected;
pub mod exploring;
pub mod gains;
pub mod halves;
pub mod harm;
pub mod learned;
pub mod pairs;
pub mod recheck;
pub mod samples;
#[cfg(test)]
mod testing;
mod visit_noise;
mod visits;

pub use belief::{Belief, Prior, similarity};
