//! What other tools have measured, row by row, as Colibri counts sizes and names methods.
//!
//! A [`MeasuringTool`] reads the lines of one file and hands what it finds to a [`Sink`]: the calls of
//! collectives ([`ImportedCall`]), messages between pairs of ranks ([`PairExchange`]), and what is known of the
//! job that made them ([`Job`]). Nothing is kept in memory: files of any length are read.
//!
//! A tool tells single repetitions or summaries of many. [`Made`] says which, and of a summary by
//! which statistic its time is.

#![forbid(unsafe_code)]

mod columns;
mod lines;
mod methods;
mod other_lines;
mod registry;
mod rows;
mod script;
mod sizes;
mod tool;
mod tools;

pub use columns::{ColumnMap, SizeUnit, TimeUnit};
pub use lines::Lines;
pub use registry::{ALL, find};
pub use rows::{ImportedCall, Job, Made, PairExchange, RowLeftOut, Sink, Summary};
pub use script::Script;
pub use sizes::SizeMeaning;
pub use tool::{ImportHints, MeasuringTool};
