//! Shows how far long simulations are.

use models::simulated::UNDER_WAY;

use crate::progress::{self, ProgressGuard, WorkDone};

/// Shows it until what it gives is dropped.
pub fn show() -> ProgressGuard {
    progress::show("simulating", "steps", || match UNDER_WAY.steps() {
        Some((done, of)) => WorkDone::Part(done, of),
        None => WorkDone::Idle,
    })
}
