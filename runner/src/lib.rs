//! Executes Colibri's own collective algorithms on MPI.
//!
//! An algorithm is a schedule (crate `colibri_schedules`); an [`Executor`] carries out one rank's
//! part of it with point-to-point messages, or through memory that ranks of a node share. MPI is reached through a table of its
//! functions ([`Mpi`]) that the program fills, so that this library links none and one build of it
//! serves every MPI library.
//!
//! - [`Mpi`], [`MpiConstants`]: the table, with handles as machine words; [`Mpi::call`] calls the library's
//!   own collective;
//! - [`Session`]: the table in use, and the duplicates of the application's communicators;
//! - [`ScheduledMethod`]: a method of ours with its schedule; [`Runnable`]: that, or a mock-up;
//! - [`Arguments`]: a collective call, in one form for whatever carries it out;
//! - [`MemoryProgram`]: what a rank does in calls of an algorithm of shared memory that are like an earlier one;
//! - [`MethodRunner`]: carries it out by a method: an algorithm by [`Executor`], a mock-up by [`mockups`];
//! - [`SubstituteBuffer`]: memory to receive in, where the application's will not do.
//!
//! A call goes through these files, in this order:
//!
//! | file | what it does |
//! |---|---|
//! | `method_runner.rs` | an algorithm or a mock-up |
//! | `executor.rs`, `run` | whether this rank can do it, and all can |
//! | `programs.rs`, `carrying.rs` (`follow`) | a call like an earlier one follows the steps that were kept, or `memory/program.rs` |
//! | `carrying.rs` (`move_data`, `combine`, `execute`) | any other: round after round of the schedule |
//! | `execution.rs` (`steps`) | each step becomes a message, a copy, or a flag of `memory/` |
//!
//! What is in a message differs by kind of collective. Where data is only moved, ranks may
//! describe it by different types of one signature, so it travels as bytes, and whatever isn't one
//! of MPI's named types without gaps is packed first. Where data is combined, all ranks have the
//! same type and the operation needs its layout, so elements stay as they are.

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("handles as machine words need a little-endian machine of 64 bits");

mod agreed;
mod arguments;
mod arithmetic;
mod call;
mod carrying;
mod constants;
mod duplicate;
mod element_rows;
mod error;
mod execution;
mod executor;
mod layout;
mod limit;
mod memory;
mod message;
mod method;
mod method_runner;
pub mod mockups;
mod packing;
pub mod process;
mod programs;
mod runnable;
mod scratch;
mod sides;
mod substitute_buffer;
mod table;
mod tags;
mod types;
mod window;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use arguments::{Arguments, Counts, RankArray, Side, SignificantSide, SignificantSides};
pub use arithmetic::ArithmeticHandles;
pub use call::function_name;
pub use constants::{AbiFamily, Handle, MissingSymbol, MpiConstants};
pub use duplicate::Session;
pub use error::{Error, Result};
pub use executor::Executor;
pub use memory::{MemoryProgram, SHARED_MEMORY};
pub use method::ScheduledMethod;
pub use method_runner::MethodRunner;
pub use runnable::Runnable;
pub use substitute_buffer::SubstituteBuffer;
pub use table::{CopyAttribute, DeleteAttribute, Mpi};
pub use types::spread;
