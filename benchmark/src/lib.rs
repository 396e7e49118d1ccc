//! `libcolibri_bench.so`: times a program's own exchanges, any collective, and messages between pairs of ranks,
//! from within the program.
//!
//! What C sees is `include/colibri_bench.h`. What is measured, and how, is the crate `timing`'s, as in
//! `colibri bench`; here are its border to C ([`calls`], [`pair_calls`]), the [MPI library](library) of the process,
//! and how C [gets failures](failure). No panic crosses the border.

#![warn(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where stdout or stderr is closed or on a full disk"
)]

pub mod calls;
mod failure;
mod library;
pub mod pair_calls;
mod pointers;
mod types;
