//! `libcolibri.so`: an unmodified MPI application's collectives, by better methods.
//!
//! It stands before the MPI library (`LD_PRELOAD`, or linked before it), is linked to none and
//! serves all of them: functions are found at run time, handles are machine words, and what the
//! headers define differently is a table ([`runner::MpiConstants`]). A call comes in by [`interpose`], for C
//! and for Fortran; [`communicators`] knows the tables that hold on its communicator ([`choice`]),
//! [`runner::Arguments`] its message size; [`carry_out`] has the method run, or the MPI library. What went through
//! shared memory and comes again is known by [`carry_out::RecentCalls`].
//!
//! # What every rank must decide alike
//!
//! A method is chosen on nothing but what is equal on all ranks of the communicator: the size of
//! the message by the call's signature, the operation, and the settings, which the ranks compare
//! before they first use a method on it. What is wrong by MPI's own rules on every rank
//! goes to the library as it came, so that the error is the library's own; so does what it refuses on one
//! rank alone, where the call then did not happen. Whether all processes are here at all says [`roll_call`].
//!
//! # What is kept from call to call
//!
//! | what | found by | file | until |
//! |---|---|---|---|
//! | what holds on a communicator: tables, rank, explorer | its handle | `known_communicators.rs` | it is freed |
//! | a call through shared memory that was carried out | its arguments, before anything is judged | `carry_out/recent.rs` | its communicator is freed |
//! | the steps of a short call | its arguments, method and communicator, once judged | `runner/src/programs.rs` | 16 newer ones, or any communicator is freed |
//! | the layout of a named datatype | its handle | `runner/src/types.rs` | the process ends |
//! | the duplicate of a communicator, with shared memory | an attribute of it | `runner/src/duplicate.rs` | it is freed |
//!
//! The second and the third share one [`runner::MemoryProgram`], but have a key each: recent calls belong to a
//! communicator and are read by all threads without a lock; programs are a thread's own and compare method and
//! communicator, too.
//!
//! # Panics
//!
//! None is meant to happen. One in our own methods is caught and ends the job with a message; elsewhere it ends the
//! process ([`finally::EndOnPanic`]) rather than pass into the application.

#![warn(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where stdout or stderr is closed or on a full disk"
)]

mod carry_out;
mod choice;
mod clock;
mod communicators;
mod exploring;
mod finally;
mod freed_communicators;
#[cfg(test)]
mod fuzz;
mod gpu;
mod interpose;
mod job;
mod known_communicators;
mod library;
mod lifetime;
mod lock;
mod pgmpi_config;
mod report;
mod roll_call;
mod say;
mod settings;
mod trace;
mod usage;
