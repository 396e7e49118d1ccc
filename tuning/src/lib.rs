//! The engine of tuning: decides which method at which point is to be measured next ([`plan`],
//! [`state`]) and what to confirm with what was chosen loaded ([`confirm`]), and ends in choices. What is believed of
//! what was seen, and chosen by that, is [`choosing`]'s.
//!
//! The engine launches nothing and touches no file: its jobs are run by a [`Bench`]. On a real cluster
//! that starts programs; in tests it replays a record, or makes times up whose truth is known.

#![forbid(unsafe_code)]

mod bench;
mod candidate;
pub mod check;
pub mod confirm;
pub mod constants;
mod costs;
pub mod jobs;
pub mod measure;
pub mod nrep;
pub mod plan;
mod round;
pub mod state;
mod time_left;
pub mod verdict;
mod weights;

pub use bench::{Bench, BenchJob, FinishedJob, JobName, Load};
pub use candidate::{LoadCandidate, WayChoices};
pub use costs::{JobCosts, JobTime};
pub use weights::Weights;
