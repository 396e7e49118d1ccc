//! The command as a user calls it: what it prints, what it answers to wrong use, what survives a
//! kill.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod lost_output;
mod skipped;
mod support;

mod algorithms;
mod all;
mod benchmarking;
mod checking;
mod choices;
mod damaged;
mod deciding;
mod docs;
mod drawing;
mod exploring;
mod exported_records;
mod exports;
mod fitting;
mod frozen;
mod guidelines;
mod help;
mod importing;
mod installing;
mod killed;
mod layouts;
mod links;
mod native_messages;
mod nodes;
mod other_libraries;
mod plugins;
mod predictions;
mod refused;
mod releasing;
mod required;
mod resuming;
mod slurm;
mod strange_files;
mod strange_scripts;
mod strange_tables;
mod strange_versions;
mod streams;
mod tapless;
mod tracing;
mod tuning;
mod wrong_use;
