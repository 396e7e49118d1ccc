//! Right files of every kind, made by what writes them, and results to compare with.

// As the tests of the figures have them.
#[allow(dead_code, unreachable_pub, missing_docs, reason = "a part of it is used here")]
#[path = "../../../figures/tests/made_up/mod.rs"]
mod made_up;

mod common;
mod point_to_point;
mod results;

pub use common::*;
pub use point_to_point::*;
pub use results::*;
