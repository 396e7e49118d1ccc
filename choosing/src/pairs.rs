//! What pairs of jobs observed at a point: one job as it is, and one with what was chosen loaded, right after each
//! other.

use std::collections::BTreeMap;

use records::{Method, Point};
use statistics::PairedJobs;

/// A point with the times that pairs of jobs observed there.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedTimes {
    pub point: Point,
    /// What is loaded there; [`Method::Default`]: nothing.
    pub method: Method,
    /// The default's time and that with the choice loaded, in seconds, for each turn of two jobs in which others left
    /// both alone.
    pub turns: BTreeMap<usize, [f64; 2]>,
    /// In how many turns both jobs called it, whether others disturbed them or not.
    pub made: usize,
}

impl PairedTimes {
    /// The logarithm of the default's time over that with the choice loaded, by turn; without turns in which a time is
    /// not above 0.
    pub fn gains(&self) -> impl Iterator<Item = (usize, f64)> {
        let positive = self.turns.iter().filter(|(_, both)| both.iter().all(|time| *time > 0.0));
        positive.map(|(&turn, [default, loaded])| (turn, (default / loaded).ln()))
    }

    /// The ratios of the default's times to those with the choice loaded.
    pub fn speed_ups(&self) -> PairedJobs {
        PairedJobs::from_logarithms(self.gains().map(|(_, logarithm)| logarithm).collect())
    }

    /// The ratios of the times with the choice loaded to the default's.
    pub fn slowdowns(&self) -> PairedJobs {
        PairedJobs::new(&self.turns.values().copied().collect::<Vec<_>>())
    }
}
