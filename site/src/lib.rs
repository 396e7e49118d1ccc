//! Where ranks run and what lies there: launchers, programs, run directories. Knows no stage.

#![warn(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where stdout or stderr is closed or on a full disk"
)]

// First, for the others to have its macro.
#[macro_use]
mod stderr;

pub mod allocation;
pub mod application;
pub mod batch_script;
pub mod begun;
pub mod cluster;
pub mod config;
mod crash;
pub mod describe;
pub mod error;
pub mod launch;
pub mod launched;
pub mod launcher;
pub mod lazy;
pub mod options;
pub mod process;
pub mod programs;
pub mod ranks;
pub mod run_directory;
pub mod slurm;
pub mod template;
pub mod virtual_cluster;
pub mod where_ranks_run;
