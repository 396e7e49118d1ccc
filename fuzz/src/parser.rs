//! What a campaign is told of the parser that it tries.

use std::env;

/// What became of an input that a parser bore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was told what is wrong.
    Refused,
    /// It was read, and all that follows went well.
    Accepted,
}

/// A parser with what is done with what it accepts, and where damaged inputs for it come from.
#[derive(Debug)]
pub struct Parser {
    /// Its name in reports.
    pub name: &'static str,
    /// Right inputs, which are damaged; all must be accepted.
    pub samples: Vec<Vec<u8>>,
    /// Words of the format.
    pub words: &'static [&'static str],
    /// How many inputs a run takes.
    pub inputs: Inputs,
    /// Reads an input and does with it what the program does; what it could not bear it ends by a
    /// panic.
    pub read: fn(&[u8]) -> Answer,
}

/// How many inputs a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs {
    /// With every run of the tests.
    pub short: u64,
    /// When nothing but this is run (`FUZZ=whole`).
    pub whole: u64,
}

impl Inputs {
    /// Of a parser of small files.
    pub const SMALL: Inputs = Inputs { short: 1_000, whole: 1_000_000 };
    /// Of one of large files, or where much is done with what was read.
    pub const LARGE: Inputs = Inputs { short: 25, whole: 50_000 };

    /// `FUZZ=whole`, or a number in it.
    pub(crate) fn wanted(self) -> u64 {
        match env::var("FUZZ") {
            Ok(text) if text == "whole" => self.whole,
            Ok(text) => text
                .parse()
                .unwrap_or_else(|_| panic!("FUZZ={text}: expected `whole` or a number of inputs")),
            Err(_) => self.short,
        }
    }
}
