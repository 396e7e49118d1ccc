//! The stages of the pipeline, each from files to files; flags and printing are the commands'.

pub mod algorithms;
pub mod bench;
pub mod calibrating;
pub mod chosen;
pub mod confirming;
pub mod deciding;
pub mod disturbance;
pub mod drawing;
pub mod export;
pub mod exporting;
pub mod focused;
pub mod guided;
pub mod headers;
pub mod importing;
pub mod judging;
pub mod links;
pub mod loading;
pub mod measurements;
pub mod measuring;
pub mod modulefiles;
pub mod options;
pub mod pairs;
pub mod progress;
pub mod simulating;
pub mod source;
pub mod traced;
