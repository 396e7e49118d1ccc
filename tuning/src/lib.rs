//! The engine of tuning: decides which method at which point is to be measured next ([`plan`],
//! [`state`]), what to believe of what was seen ([`drift`], [`confirmation`]), which of it to confirm
//! with what was chosen loaded ([`confirm`]), and ends in choices.
//!
//! The engine launches nothing and touches no file: its jobs are run by a [`Bench`]. On a real cluster
//! that starts programs; in tests it replays a record, or makes times up whose truth is known.

#![forbid(unsafe_code)]

mod belief;
mod bench;
mod candidate;
pub mod confirm;
pub mod confirmation;
pub mod constants;
mod costs;
pub mod drift;
pub mod evidence;
pub mod jobs;
pub mod measure;
pub mod nrep;
pub mod plan;
mod round;
pub mod state;
#[cfg(test)]
mod testing;
pub mod verdict;
mod visit_noise;
mod weights;

pub use bench::{Bench, BenchJob, FinishedJob, JobName, Load};
pub use candidate::{WayChoices, WayToLoad};
pub use costs::{JobCosts, JobTime};
pub use weights::Weights;
