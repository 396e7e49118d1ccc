//! The MPI program `colibri-mpi`, with a subcommand for each task: `calibrate` measures a platform
//! point to point, `bench` times one collective or pairs of ranks by any scheme, `measure` times methods of collectives by a plan, `pairs` measures the link between
//! every two ranks, `links` all of them at once, `clocks` tells how well the ranks' clocks can be
//! synchronised, `platform` where the ranks run.
//!
//! It writes raw observations and judges nothing. This is the only package that links MPI, so it
//! is built once per MPI library; everything that computes lives elsewhere.
//!
//! Two rules shape the code. A rank that has nothing to do sleeps: ranks may outnumber cores many
//! times, and a rank that spins takes time from the one that is measured. And rank 0 alone
//! touches files; the others receive from it what to do.

#![warn(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where stdout or stderr is closed or on a full disk"
)]

pub mod bench;
pub mod calibrate;
pub mod clocks;
mod disturbance;
mod error;
pub mod exchange;
pub mod first_job;
pub mod flags;
pub mod launcher;
pub mod linked;
pub mod links;
pub mod measure;
pub mod pairs;
pub mod platform;
pub mod polling_pause;
pub mod proc_stat;
pub mod program;
mod progress;
pub mod recording;
pub mod serving;
pub mod table;
pub mod transport;
pub mod world;

pub use error::{Error, Result};
pub use timing::{clock, sleep, synchronisation};
