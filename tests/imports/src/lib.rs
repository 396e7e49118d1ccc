//! Checks that imports run one way: no circle between the files of a package, and none of a package
//! against the order of the table in CONTRIBUTING.md.
//!
//! In the root package none runs upwards between its layers or from one command to another.
//!
//! A file imports another one where it names something that is defined there: by `use`, or by a path
//! that begins with `crate`, `super`, `self` or one of its modules. What is named through a re-export
//! counts as an import from the file that defines it; declaring a module and re-exporting from
//! one's own modules does not count. So a module's file may hand on what its children define, and these
//! may use what it defines, but not both ways. Test modules are left out.

#![forbid(unsafe_code)]

mod files;
mod graph;
mod layers;
mod names;
mod packages;
mod source;
mod tokens;

pub use files::imports;
pub use graph::{Imports, problems};
pub use layers::layer_problems;
pub use names::DefinedTypes;
pub use packages::{order, order_problems};
