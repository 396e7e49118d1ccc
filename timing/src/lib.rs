//! How long an exchange of messages takes: clocks and their [synchronisation], the [schemes](scheme) that
//! time a call, and how often it is repeated.
//!
//! The MPI program and the benchmarking library for users' programs share all of it, so that a
//! scheme means the same in both. MPI is reached through [`peers::Peers`], or through the runner's table of
//! functions: nothing here links MPI.

pub mod adaptive;
pub mod clock;
mod error;
pub mod exchanges;
pub mod factors;
pub mod margin;
pub mod operations;
pub mod pairs;
pub mod peers;
pub mod repeating;
pub mod scheme;
pub mod sleep;
pub mod starts;
pub mod stopwatch;
pub mod synchronisation;
pub mod table_communicator;
pub mod tournament;

pub use error::{Error, Result};
