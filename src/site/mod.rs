//! Where ranks run and what lies there: launchers, programs, run directories. Knows no stage.

pub mod allocation;
pub mod batch_script;
pub mod begun;
pub mod cluster;
pub mod config;
mod crash;
pub mod describe;
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
