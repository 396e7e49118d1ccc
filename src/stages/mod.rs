//! The stages of the pipeline, each from files to files; flags and printing are the commands'.

pub mod algorithms;
pub mod bench;
pub mod calibrating;
pub mod chosen;
pub mod confirming;
pub mod disturbance;
pub mod export;
pub mod focused;
pub mod judging;
pub mod measurements;
pub mod regions;
pub mod simulating;
pub mod source;
pub mod traced;
