//! Plans and judges measurements: what is to be measured ([`plan`]), what was measured
//! ([`samples`]), which method was best and where it should replace the default ([`selection`]),
//! what following a decision function costs ([`functions`], [`penalty`]) and how much of that is
//! noise ([`noise`]), what is left of it when it is loaded ([`confirmation`]), whether that does harm ([`harm`]), and the ranges that a rules file
//! states ([`rules`]).
//!
//! Nothing here measures; everything is computed from records and can be computed again.

#![forbid(unsafe_code)]

pub mod agreement;
mod belief;
pub mod confirmation;
mod costs;
pub mod drift;
pub mod focus;
pub mod functions;
pub mod guidelines;
pub mod harm;
pub mod jobs;
pub mod links;
pub mod noise;
pub mod nrep;
pub mod pairs;
pub mod penalty;
pub mod plan;
pub mod profiles;
pub mod rules;
pub mod samples;
pub mod selection;
pub mod splits;
mod visit_noise;
mod weights;

pub use statistics::{self, significance, stopping};
pub use weights::Weights;
