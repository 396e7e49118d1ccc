//! What of a platform is to be measured.

use std::time::Duration;

use records::RankPair;
use statistics::stopping::Criterion;

/// Of a median, by default.
pub const PRECISION: f64 = 0.025;

/// What to measure.
#[derive(Debug, Clone)]
pub struct CalibrationOptions {
    /// Message sizes in bytes.
    pub sizes: Vec<u64>,
    /// The two ranks to measure between.
    pub pair: RankPair,
    /// By which a measurement is precise enough and no longer repeated.
    pub stop_by: Criterion,
    /// Greatest value of that criterion, as a share of the time.
    pub precision: f64,
    /// Of the order of the measurements.
    pub seed: u64,
    /// Whether more than two ranks are measured, too.
    pub groups: bool,
}

impl CalibrationOptions {
    /// With less time, what is measured between two ranks would suffer from the groups.
    const MIN_FOR_GROUPS: Duration = Duration::from_secs(20);

    /// What is measured in that time where nothing is said.
    pub fn within(budget: Duration, seed: u64) -> Self {
        let sizes = std::iter::once(0).chain((0..=20).map(|power| 1 << power)).collect();
        CalibrationOptions {
            sizes,
            pair: RankPair::BetweenNodes,
            stop_by: Criterion::MedianInterval,
            precision: PRECISION,
            seed,
            groups: budget >= Self::MIN_FOR_GROUPS,
        }
    }
}
