//! How well the switch serves: what it tells of itself.

use anyhow::Result;
use hdrhistogram::Histogram;
use records::document::Document;
use serde::{Deserialize, Serialize};

use crate::Nanoseconds;

/// What a running switch tells of itself, since it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Whether it runs before all other programs (SCHED_FIFO), with its memory locked.
    pub realtime: bool,
    /// Frames delivered, those of the head as well.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames lost as the wiring asks for.
    pub lost: u64,
    /// Frames that a node's device did not take.
    pub refused: u64,
    /// Frames for nobody, among them every broadcast.
    pub stray: u64,
    /// How much later than due frames between nodes were delivered.
    pub lateness: Percentiles,
    /// How long frames between nodes were in the network, lateness included.
    pub held: Percentiles,
}

impl Document for Service {
    const SCHEMA: &'static str = "colibri/switch-service/1";
}

/// Of a number of durations, in nanoseconds, to three digits; all 0 where there were none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    pub count: u64,
    /// Half of them are at most this.
    pub median: Nanoseconds,
    /// 90 % are at most this.
    pub p90: Nanoseconds,
    /// 99 % are at most this.
    pub p99: Nanoseconds,
    /// 99.9 % are at most this.
    pub p999: Nanoseconds,
    pub most: Nanoseconds,
}

/// Durations as they come, to three digits, in a fixed amount of memory.
#[derive(Debug)]
pub struct Durations(Histogram<u64>);

impl Durations {
    const MOST: Nanoseconds = 100_000_000_000;

    /// None yet.
    ///
    /// # Errors
    /// None that is known: the histogram's bounds are fixed.
    pub fn new() -> Result<Durations> {
        Ok(Durations(Histogram::new_with_bounds(1, Self::MOST, 3)?))
    }

    /// One more; above 100 s it counts as that.
    pub fn add(&mut self, duration: Nanoseconds) {
        self.0.saturating_record(duration);
    }

    /// What they were.
    pub fn percentiles(&self) -> Percentiles {
        if self.0.is_empty() {
            return Percentiles::default();
        }
        let at = |share| self.0.value_at_quantile(share);
        Percentiles {
            count: self.0.len(),
            median: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            most: self.0.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_durations() {
        let mut times = Durations::new().unwrap();
        assert_eq!(times.percentiles(), Percentiles::default());
        for microseconds in 1..=1000 {
            times.add(microseconds * 1000);
        }
        let told = times.percentiles();
        assert_eq!(told.count, 1000);
        for (value, expected) in [
            (told.median, 500e3),
            (told.p90, 900e3),
            (told.p99, 990e3),
            (told.p999, 999e3),
            (told.most, 1e6),
        ] {
            assert!((value as f64 / expected - 1.0).abs() < 2e-3, "{value} for {expected}");
        }
        times.add(Nanoseconds::MAX);
        assert!(times.percentiles().most >= 100_000_000_000);
    }
}
