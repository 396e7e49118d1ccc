//! A rank's clock as a line: how far it is from the global clock, and how fast it goes away.

use serde::{Deserialize, Serialize};
use statistics::{DEVIATIONS_PER_MEDIAN, upper_median};

use crate::clock::Nanos;

/// One measurement of how far two clocks are apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OffsetMeasurement {
    /// This rank's clock when it was made.
    pub local: Nanos,
    /// This rank's clock less the global one, in nanoseconds.
    pub offset: f64,
    /// Standard error of the offset, in nanoseconds, as far as is known before a fit.
    pub error: f64,
}

/// `local - global = offset + drift (local - origin)`, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockLine {
    origin: Nanos,
    offset: f64,
    drift: f64,
    /// Variance of the offset at the origin, and of the drift; uncorrelated there.
    variance: f64,
    drift_variance: f64,
}

/// How often the weights are taken anew from the misfits, and from how many standard deviations on
/// a misfit counts less.
const REWEIGHTINGS: usize = 3;
const HUBER: f64 = 1.5;

/// Clocks of computers go wrong by less than this before a drift is known (50 ppm).
const UNKNOWN_DRIFT: f64 = 5e-5;

impl ClockLine {
    /// A clock that is the global one.
    pub const EXACT: ClockLine =
        ClockLine { origin: 0, offset: 0.0, drift: 0.0, variance: 0.0, drift_variance: 0.0 };

    /// The line through sightings by weighted least squares; nothing without one.
    ///
    /// The weights are the sightings' own errors, lowered for those that lie far from the line
    /// (Huber). Where the sightings lie further from the line than their errors say, the line's
    /// error is greater by as much.
    pub fn through(sightings: &[OffsetMeasurement]) -> Option<ClockLine> {
        let own = |sighting: &OffsetMeasurement| sighting.error.max(1.0).powi(-2);
        let mut weights: Vec<f64> = sightings.iter().map(own).collect();
        let mut line = Self::weighted(sightings, &weights)?;
        for _ in 0..REWEIGHTINGS {
            let misfit = |one: &OffsetMeasurement| (one.offset - line.offset_at(one.local)).abs();
            let mut relative: Vec<f64> =
                sightings.iter().map(|one| misfit(one) / one.error.max(1.0)).collect();
            let far = |relative: f64, typical: f64| (HUBER * typical / relative).min(1.0);
            let median = upper_median(&mut relative.clone()).unwrap_or_default();
            let typical = (DEVIATIONS_PER_MEDIAN * median).max(1.0);
            relative.iter_mut().for_each(|relative| *relative = far(*relative, typical));
            weights = sightings.iter().zip(&relative).map(|(one, far)| own(one) * far).collect();
            line = Self::weighted(sightings, &weights)?;
        }
        Some(line)
    }

    fn weighted(sightings: &[OffsetMeasurement], weights: &[f64]) -> Option<ClockLine> {
        let first = sightings.first()?;
        let since = |sighting: &OffsetMeasurement| (sighting.local - first.local) as f64;
        let sum = |of: &dyn Fn(&OffsetMeasurement) -> f64| -> f64 {
            sightings.iter().zip(weights).map(|(one, weight)| weight * of(one)).sum()
        };
        let total = sum(&|_| 1.0);
        let (middle, offset) = (sum(&since) / total, sum(&|one| one.offset) / total);
        let spread = sum(&|one| (since(one) - middle).powi(2));
        let origin = first.local + middle as Nanos;
        let (count, variance) = (sightings.len(), 1.0 / total);
        let unknown = UNKNOWN_DRIFT * UNKNOWN_DRIFT;
        if count < 2 || 1.0 / spread > unknown {
            return Some(ClockLine {
                origin,
                offset,
                drift: 0.0,
                variance,
                drift_variance: unknown,
            });
        }
        let drift = sum(&|one| (since(one) - middle) * (one.offset - offset)) / spread;
        let squares = sum(&|one| (one.offset - offset - drift * (since(one) - middle)).powi(2));
        let scale = (squares / (count as f64 - 2.0).max(1.0)).max(1.0);
        let drift_variance = (scale / spread).min(unknown);
        Some(ClockLine { origin, offset, drift, variance: scale * variance, drift_variance })
    }

    /// The global clock when this rank's shows `local`.
    #[inline]
    pub fn global(&self, local: Nanos) -> Nanos {
        local - self.offset_at(local).round() as Nanos
    }

    /// This rank's clock when the global one shows `global`.
    pub fn local(&self, global: Nanos) -> Nanos {
        let since = (global - self.origin) as f64 + self.offset;
        self.origin + (since / (1.0 - self.drift)).round() as Nanos
    }

    #[inline]
    fn offset_at(&self, local: Nanos) -> f64 {
        self.offset + self.drift * (local - self.origin) as f64
    }

    /// Standard error of the global clock by this line, in nanoseconds.
    pub fn error_at(&self, local: Nanos) -> f64 {
        (self.variance + self.drift_variance * ((local - self.origin) as f64).powi(2)).sqrt()
    }

    /// How long from `local` on the standard error stays below `error` nanoseconds; 0 where it is
    /// above it already.
    pub fn good_for(&self, local: Nanos, error: f64) -> Nanos {
        let left = error * error - self.variance;
        if left <= 0.0 {
            return 0;
        }
        let until = (left / self.drift_variance.max(1e-30)).sqrt().min(1e15) as Nanos;
        (self.origin + until - local).max(0)
    }

    /// How fast this rank's clock goes away from the global one, in seconds per second.
    pub fn drift(&self) -> f64 {
        self.drift
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sightings(offset: f64, drift: f64, times: &[Nanos], error: f64) -> Vec<OffsetMeasurement> {
        let begun = 1_000_000_000_000;
        let sight = |&after: &Nanos| OffsetMeasurement {
            local: begun + after,
            offset: offset + drift * after as f64,
            error,
        };
        times.iter().map(sight).collect()
    }

    #[test]
    fn one_sighting_knows_no_drift_and_says_so() {
        let line = ClockLine::through(&sightings(500.0, 0.0, &[0], 10.0)).unwrap();
        assert_eq!(line.global(1_000_000_000_000), 999_999_999_500);
        assert!((line.error_at(1_000_000_000_000) - 10.0).abs() < 1e-9);
        assert!(line.error_at(1_001_000_000_000) > 49_000.0, "50 us a second");
        assert_eq!(ClockLine::through(&[]), None);
    }

    #[test]
    fn a_bad_sighting_counts_little() {
        let mut seen = sightings(500.0, 1e-5, &[0, 100_000_000, 200_000_000, 300_000_000], 10.0);
        seen[1].offset += 5_000.0;
        seen[1].error = 5_000.0;
        let line = ClockLine::through(&seen).unwrap();
        assert!((line.drift() - 1e-5).abs() < 1e-8, "{}", line.drift());
        let there = seen[3].local;
        assert!((line.offset_at(there) - seen[3].offset).abs() < 1.0);
    }

    #[test]
    fn a_bad_sighting_that_claims_to_be_good_does_not_lead_away() {
        let times: Vec<Nanos> = (0..12).map(|index| index * 50_000_000).collect();
        let mut seen = sightings(500.0, 1e-5, &times, 100.0);
        seen[11].offset -= 10_000.0;
        let line = ClockLine::through(&seen).unwrap();
        assert!((line.drift() - 1e-5).abs() < 1e-6, "{}", line.drift());
    }

    #[test]
    fn sightings_off_the_line_make_it_uncertain() {
        let mut seen = sightings(0.0, 0.0, &[0, 100_000_000, 200_000_000, 300_000_000], 1.0);
        let (first, last) = (ClockLine::through(&seen).unwrap(), seen[3].local);
        seen[0].offset = 100.0;
        seen[2].offset = -100.0;
        let second = ClockLine::through(&seen).unwrap();
        assert!(second.error_at(last) > 20.0 * first.error_at(last));
        assert!(second.good_for(last, 1000.0) < first.good_for(last, 1000.0));
        assert_eq!(second.good_for(last, 0.1), 0);
    }

    proptest! {
        #[test]
        fn the_true_line_is_found_and_leads_both_ways(
            offset in -3e6_f64..3e6,
            drift in -2e-5_f64..2e-5,
            later in 0_i64..100_000_000_000,
        ) {
            let times: Vec<Nanos> = (0..10).map(|index| index * 50_000_000).collect();
            let seen = sightings(offset, drift, &times, 10.0);
            let line = ClockLine::through(&seen).unwrap();
            prop_assert!((line.drift() - drift).abs() < 1e-10);
            let local = seen[0].local + later;
            let global = line.global(local);
            prop_assert!((line.local(global) - local).abs() <= 1);
            let truth = local as f64 - offset - drift * later as f64;
            prop_assert!((global as f64 - truth).abs() < 15.0, "{} {truth}", global);
            let good = line.good_for(local, 500.0);
            prop_assert!(good == 0 || line.error_at(local + good) < 501.0);
        }
    }
}
