//! Judges measurements: what was measured ([`samples`]), which method was best and where it should replace
//! the default ([`selection`]), what following a decision function costs ([`functions`],
//! [`penalty`]) and how much of that is noise ([`noise`]), whether what is loaded does harm
//! ([`harm`]), and the ranges that a rules file states ([`rules`]).
//!
//! Nothing here measures or plans; everything is computed from records and can be computed again.

#![forbid(unsafe_code)]

pub mod agreement;
pub mod functions;
pub mod guidelines;
pub mod harm;
pub mod links;
pub mod noise;
pub mod own_against_native;
pub mod pairs;
pub mod patterns;
pub mod penalty;
pub mod prediction;
pub mod profiles;
pub mod rules;
pub mod samples;
pub mod selection;
pub mod splits;
mod violation_counts;

pub use statistics::{self, significance, stopping};
