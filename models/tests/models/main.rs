//! The models against facts that do not come from their own code.

#![allow(clippy::unwrap_used, reason = "tests: a panic is the report")]

mod algorithms;
mod coverage;
mod decisions;
mod extrapolation;
mod fits;
mod formulas;
mod groups;
mod intervals;
mod least;
mod levels;
mod limits;
mod memory;
mod messages;
mod numbers;
mod port_sharing;
mod refined;
mod short_forms;
mod tables;

/// An own method that sends its message whole.
fn unsegmented(algorithm: records::Algorithm) -> records::Method {
    records::Method::own(algorithm)
}
