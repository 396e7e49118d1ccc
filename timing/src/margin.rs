//! How far ahead a start is agreed.

use crate::{
    clock::{Nanos, now},
    scheme::CallReport,
};

/// How far ahead an instant is agreed: long enough that every rank has heard of it, as learnt
/// from how much time the ranks had left.
#[derive(Debug, Clone, Copy)]
pub struct Margin {
    nanos: Nanos,
    least: Nanos,
}

impl Margin {
    const MOST: Nanos = 100_000_000;

    /// For so many processes: rank 0 tells them one after the other.
    pub fn new(procs: u32) -> Self {
        let least = 200_000 + 20_000 * Nanos::from(procs);
        Margin { nanos: 2 * least, least }
    }

    /// The instant of a call that is agreed upon now, by rank 0's clock, which is the global one.
    pub fn agree(&self) -> Nanos {
        now() + self.nanos
    }

    /// Learns from one call.
    pub fn learn(&mut self, reports: &[CallReport]) {
        let Some(slack) = reports.iter().map(|report| report.slack).min() else { return };
        if slack < self.nanos / 5 {
            // So long the last rank took to hear: the next call is in time, on a slow network too.
            let heard_after = self.nanos - slack;
            self.nanos = (self.nanos * 3 / 2).max(heard_after * 5 / 4).min(Self::MOST);
        } else if slack > self.nanos / 2 {
            self.nanos = (self.nanos * 19 / 20).max(self.least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_grows_with_lateness_and_shrinks_with_leisure() {
        let mut margin = Margin::new(8);
        let begun = margin.nanos;
        margin.learn(&[CallReport { start: 0, end: 0, slack: -5 }]);
        assert!(margin.nanos > begun);
        for _ in 0..1000 {
            margin.learn(&[CallReport { start: 0, end: 0, slack: margin.nanos }]);
        }
        assert_eq!(margin.nanos, margin.least);
        for _ in 0..1000 {
            margin.learn(&[CallReport { start: 0, end: 0, slack: -1 }]);
        }
        assert_eq!(margin.nanos, Margin::MOST);
    }

    /// Each job begins anew, and its first visits of a number of processes make three calls: on a network of
    /// 1 ms all of them were late.
    #[test]
    fn after_one_late_call_the_next_is_in_time() {
        let mut margin = Margin::new(16);
        let heard_after = 4_000_000;
        margin.learn(&[CallReport { start: 0, end: 0, slack: margin.nanos - heard_after }]);
        assert!(margin.nanos > heard_after && margin.nanos < 2 * heard_after, "{}", margin.nanos);
    }
}
