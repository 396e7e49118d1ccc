//! Where ranks run and what lies there: launchers, programs, run directories. Knows no stage.

pub mod begun;
pub mod config;
pub mod describe;
pub mod launch;
pub mod launcher;
pub mod options;
pub mod process;
pub mod programs;
pub mod ranks;
pub mod run_directory;
pub mod slurm;
pub mod virtual_cluster;
