//! Judges measurements: what following a decision function costs ([`functions`], [`penalty`]), how much of that is noise
//! ([`noise`]), and where an MPI library breaks guidelines ([`guidelines`]).
//!
//! Nothing here measures or plans; everything is computed from records and can be computed again.

#![forbid(unsafe_code)]

pub mod agreement;
pub mod functions;
pub mod guidelines;
pub mod links;
pub mod noise;
pub mod own_against_native;
pub mod pairs;
pub mod patterns;
pub mod penalty;
pub mod prediction;
pub mod profiles;
pub mod splits;
#[cfg(test)]
mod testing;
mod violation_counts;
