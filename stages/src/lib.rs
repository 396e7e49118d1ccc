//! The stages of the pipeline, each from files to files; flags and printing are the commands'.

#![warn(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where stdout or stderr is closed or on a full disk"
)]

// For its macros.
#[macro_use]
extern crate site;

pub mod algorithms;
pub mod application;
pub mod bench;
pub mod benchmarking;
pub mod calibrating;
pub mod candidates;
pub mod checking;
pub mod chosen;
pub mod compared;
pub mod confirming;
pub mod deciding;
pub mod disturbance;
pub mod drawing;
pub mod export_formats;
pub mod exporting;
pub mod fitted_trees;
pub mod fitting;
pub mod focused;
pub mod forced_jobs;
pub mod foreign_json;
pub mod guideline_file;
pub mod guideline_jobs;
pub mod headers;
pub mod importing;
pub mod judging;
pub mod kinds;
pub mod layouts;
pub mod learned;
pub mod left_out;
pub mod links;
pub mod loading;
pub mod measurements;
pub mod measuring;
pub mod memory;
pub mod memory_benchmark;
pub mod modulefiles;
pub mod natives;
pub mod pairs;
pub mod progress;
pub mod record_forms;
pub mod repeating;
pub mod replaying;
pub mod roots;
pub mod simulating;
pub mod source;
pub mod spent;
pub mod traced;
