//! All tools: a new one is a file in `tools/` and a line here.

use records::unknown;

use crate::{
    tool::MeasuringTool,
    tools::{Csv, Imb, Osu, Pico, ReproMpi},
};

/// The tools whose output is read.
#[rustfmt::skip]
pub const ALL: &[&dyn MeasuringTool] = &[
    &Osu,
    &Imb,
    &ReproMpi,
    &Pico,
    &Csv,
];

/// The tool of a name.
///
/// # Errors
/// There is none; which there are.
pub fn find(name: &str) -> Result<&'static dyn MeasuringTool, String> {
    ALL.iter().copied().find(|tool| tool.name() == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|tool| tool.name()).collect();
        unknown("tool", name, &names)
    })
}
