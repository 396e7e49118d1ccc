//! The subcommands: a file or folder each, none importing another; what several share lies in
//! `shared`.

pub mod bench;
pub mod calibrate;
pub mod check;
pub mod decide;
pub mod draw;
pub mod explain;
pub mod export;
pub mod fit;
pub mod guidelines;
pub mod import;
pub mod pages;
pub mod platform;
pub mod predict;
pub mod report;
pub mod shared;
pub mod testbed;
pub mod tune;
pub mod verify;
