//! Right files of every kind, made by what writes them, and results to compare with.

// As the tests of the figures have them.
#[allow(dead_code, unreachable_pub, missing_docs, reason = "a part of it is used here")]
#[path = "../../../figures/tests/made_up/mod.rs"]
mod made_up;

mod common;
mod others;
mod point_to_point;
mod results;

pub use common::{
    calibration, calibration_of, calibrations, candidates, decisions, learned, loadable_profiles,
    parameters, pgtune, platform, profiles, rules, usages,
};
pub use others::{output_of, scripts};
pub use point_to_point::{clock_errors, groups, links, observations, pair_times, pairs};
pub use results::{
    agreement, check, choices, judged, measurements, penalties, plan, samples, summary, violations,
};
