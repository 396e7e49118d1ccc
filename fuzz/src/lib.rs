//! Damaged files and words, fed to every parser of Colibri.
//!
//! A [`Parser`] is a function that reads an input and does with it what the program does: writes it
//! back and reads that again, looks things up in it, computes with it. A campaign
//! ([`run`]) damages right inputs by chance, the same ones for the same seed, and asks of each:
//! no panic, no more than a second, no more than 1 GiB. What is accepted is damaged further. Files of lines
//! are read from the middle on, too ([`run_cut`]).
//!
//! Parsers of packages that other packages use are here ([`parsers`]); those of the command, of the
//! preload library and of the testbed are beside what they test, in each one's `fuzz.rs`.
//!
//! `FUZZ=whole` takes as many inputs as a release wants, `FUZZ=5000` so many, `FUZZ_SEED` others.

#![allow(clippy::unwrap_used, reason = "what can't be borne is told by a panic")]

// By the name that the figures' own tests have for it, whose results are used here.
extern crate figures as colibri_figures;

mod campaign;
mod cuts;
pub mod files;
pub mod memory;
mod mutate;
mod parser;
pub mod parsers;
pub mod runs;
mod tokens;
mod trial;
mod watchdog;

pub use campaign::{run, run_cut};
pub use parser::{Answer, Inputs, Parser};

/// Every test program counts its memory by thread.
#[global_allocator]
static COUNTING: memory::Counting = memory::Counting;

/// A test for each parser of lines, of its samples from the middle on: `cargo test damaged` runs them all.
#[macro_export]
macro_rules! fuzz_cut {
    ($($name:ident: $parser:expr,)*) => {
        mod damaged_by_cuts {
            use super::*;

            $(#[test]
            fn $name() {
                $crate::run_cut(&$parser);
            })*
        }
    };
}

/// A test for each parser, in a module of its own: `cargo test damaged` runs them all.
#[macro_export]
macro_rules! fuzz {
    ($($name:ident: $parser:expr,)*) => {
        mod damaged {
            use super::*;

            $(#[test]
            fn $name() {
                $crate::run(&$parser);
            })*
        }
    };
}
