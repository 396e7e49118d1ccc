//! Plans and judges measurements: what is to be measured ([`plan`]), what was measured
//! ([`samples`]), which method was best and where it should replace the default ([`selection`]),
//! what following a decision function costs ([`penalty`]), and the ranges that a rules file
//! states ([`rules`]).
//!
//! Nothing here measures; everything is computed from records and can be computed again.

#![forbid(unsafe_code)]

mod belief;
pub mod focus;
pub mod guidelines;
pub mod jobs;
mod noise;
pub mod nrep;
pub mod pairs;
pub mod penalty;
pub mod plan;
pub mod profiles;
pub mod rules;
pub mod samples;
pub mod selection;
pub mod significance;
pub mod statistics;
pub mod stopping;
mod weights;

pub use weights::Weights;
