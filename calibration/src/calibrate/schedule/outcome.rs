//! What a schedule leaves undone.

use crate::calibrate::cells::SizedExperiment;

/// Where the schedule ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScheduleOutcome {
    /// Cells without the least number of visits.
    pub unreached: Vec<SizedExperiment>,
    /// Cells that have it but are less certain than wanted, with their uncertainty; the least
    /// certain first.
    pub uncertain: Vec<(SizedExperiment, f64)>,
}

impl ScheduleOutcome {
    /// Adds another schedule's.
    pub fn add(&mut self, other: ScheduleOutcome) {
        self.unreached.extend(other.unreached);
        self.uncertain.extend(other.uncertain);
        self.uncertain.sort_by(|one, other| other.1.total_cmp(&one.1));
    }
}
