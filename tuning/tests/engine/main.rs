//! The engine on two benches that need no cluster: a world that is made up, whose truth is known, and the
//! record of a real cluster on which everything was measured.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod by_jobs;
mod constants;
mod levels_replay;
mod long_replay;
mod more_methods;
mod on_synthetic;
mod on_time;
mod record_files;
mod replayed;
mod short_replay;
mod slowed_replay;
mod state;
mod synthetic;
mod truth;
mod tuned;
