//! What others take of the processors while something is measured, and what follows from it.

pub mod allowance;
pub mod sampling;
pub mod stretches;

use crate::{
    clock::{Nanos, now},
    launcher,
    sleep::sleep_until,
};

/// While it is waited, it is looked this often whether the launcher is still there.
const LOOK_AFTER_THE_LAUNCHER: Nanos = 500_000_000;

/// Waits for others to end, asleep.
pub fn wait_for_others(seconds: f64) {
    let until = now() + (seconds * 1e9) as Nanos;
    while now() < until {
        launcher::end_if_gone();
        sleep_until(until.min(now() + LOOK_AFTER_THE_LAUNCHER));
    }
}
