//! How one call of a collective is timed.
//!
//! Where all ranks read one clock (scheme *global*), they sleep to an agreed instant, read the
//! clock, call, and read it again. The call took from the first rank's start to the last rank's
//! end. It is not counted from the agreed instant, because every rank wakes a few microseconds
//! after it, which is the machine's doing and not the collective's. Ranks that have a processor
//! each wake a little earlier and watch the clock for the rest: beside calls of a microsecond that
//! go through shared memory, waking would be all that is seen.
//!
//! Elsewhere (scheme *max*) a dissemination barrier of our own brings the ranks together, each
//! times its own call, and the longest counts. MPI_Barrier is not used: how it ends would be the
//! library's choice and part of what is timed.

use records::observation::Status;
use serde::{Deserialize, Serialize};

use crate::{
    Result,
    clock::{Nanos, now, seconds},
    exchange::Communicator,
    sleep::{sleep_until, wait_until},
};

/// By which scheme a job times its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// From the first start to the last end on a clock that all ranks read, to which they sleep.
    Global,
    /// The same where there is a processor for every rank: started to the microsecond.
    GlobalExact,
    /// The longest of the ranks' own times.
    Max,
}

impl Scheme {
    /// For the record.
    pub const fn description(self) -> &'static str {
        match self {
            Scheme::Global => {
                "global: all ranks sleep to an agreed instant of the clock that they share; \
                 seconds = last end - first start; starts are in seconds after that instant; late: \
                 last start - first start > 10 % of seconds + 50 us"
            }
            Scheme::GlobalExact => {
                "global: all ranks watch for an agreed instant of the clock that they share; \
                 seconds = last end - first start; starts are in seconds after that instant; late: \
                 last start - first start > 10 % of seconds + 50 us"
            }
            Scheme::Max => {
                "max: the clocks are not shared; a dissemination barrier, then every rank times \
                 its own call; seconds = the longest; starts are not known (0)"
            }
        }
    }
}

/// What one rank saw of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The clock before the call.
    pub start: Nanos,
    /// The clock after it.
    pub end: Nanos,
    /// Time between hearing of the agreed instant and the instant; negative where it was too late.
    pub slack: Nanos,
}

/// Makes one call of a collective; every rank of `comm` must.
///
/// `agreed` is when, for scheme global.
///
/// # Errors
/// The MPI library refuses.
pub fn call(
    scheme: Scheme,
    comm: &Communicator,
    agreed: Nanos,
    collective: impl FnOnce() -> Result<()>,
) -> Result<Report> {
    let slack = match scheme {
        Scheme::Global | Scheme::GlobalExact => {
            let slack = agreed - now();
            match scheme {
                Scheme::GlobalExact => wait_until(agreed),
                _ => sleep_until(agreed),
            }
            slack
        }
        Scheme::Max => {
            disseminate(comm)?;
            0
        }
    };
    let start = now();
    collective()?;
    let end = now();
    Ok(Report { start, end, slack })
}

/// The dissemination barrier: in round k every rank signals the one 2^k above, until each has
/// heard, by way of others, from all.
fn disseminate(comm: &Communicator) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut distance = 1;
    while distance < size {
        comm.exchange_signals((rank + distance) % size, (rank + size - distance) % size)?;
        distance *= 2;
    }
    Ok(())
}

/// One call as all ranks together saw it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// The first rank's start after the agreed instant.
    pub first_start_seconds: f64,
    /// The last rank's.
    pub last_start_seconds: f64,
    /// What the call took, by the scheme.
    pub seconds: f64,
    /// Whether the ranks started together.
    pub status: Status,
}

/// Puts the ranks' reports together; nothing without a report.
pub fn combine(scheme: Scheme, agreed: Nanos, reports: &[Report]) -> Option<Timed> {
    match scheme {
        Scheme::Max => {
            let longest = reports.iter().map(|report| report.end - report.start).max()?;
            Some(Timed {
                first_start_seconds: 0.0,
                last_start_seconds: 0.0,
                seconds: seconds(longest),
                status: Status::Ok,
            })
        }
        Scheme::Global | Scheme::GlobalExact => {
            let first = reports.iter().map(|report| report.start).min()?;
            let last = reports.iter().map(|report| report.start).max()?;
            let end = reports.iter().map(|report| report.end).max()?;
            let took = seconds(end - first);
            let late = seconds(last - first) > 0.1 * took + 50e-6;
            Some(Timed {
                first_start_seconds: seconds(first - agreed),
                last_start_seconds: seconds(last - agreed),
                seconds: took,
                status: if late { Status::Late } else { Status::Ok },
            })
        }
    }
}

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

    /// The instant of a call that is agreed upon now.
    pub fn agree(&self) -> Nanos {
        now() + self.nanos
    }

    /// Learns from one call.
    pub fn learn(&mut self, reports: &[Report]) {
        let Some(slack) = reports.iter().map(|report| report.slack).min() else { return };
        if slack < self.nanos / 5 {
            self.nanos = (self.nanos * 3 / 2).min(Self::MOST);
        } else if slack > self.nanos / 2 {
            self.nanos = (self.nanos * 19 / 20).max(self.least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn report(start: Nanos, end: Nanos) -> Report {
        Report { start, end, slack: 0 }
    }

    #[test]
    fn a_call_lasts_from_the_first_start_to_the_last_end() {
        let reports = [report(1_005_000, 1_300_000), report(1_020_000, 3_005_000)];
        let timed = combine(Scheme::Global, 1_000_000, &reports).unwrap();
        assert_eq!(timed.seconds, 2e-3);
        assert_eq!((timed.first_start_seconds, timed.last_start_seconds), (5e-6, 20e-6));
        assert_eq!(timed.status, Status::Ok);
        assert_eq!(combine(Scheme::Global, 0, &[]), None);
    }

    #[test]
    fn a_late_start_is_marked_where_it_matters() {
        let late = |start, end| combine(Scheme::Global, 0, &[report(0, end), report(start, end)]);
        assert_eq!(late(100_000, 200_000).unwrap().status, Status::Late);
        assert_eq!(late(100_000, 2_000_000).unwrap().status, Status::Ok);
    }

    #[test]
    fn without_a_shared_clock_the_longest_call_counts() {
        let reports = [report(7_000_000_000, 7_000_300_000), report(5, 500_005)];
        let timed = combine(Scheme::Max, 0, &reports).unwrap();
        assert_eq!((timed.seconds, timed.last_start_seconds), (5e-4, 0.0));
    }

    #[test]
    fn the_margin_grows_with_lateness_and_shrinks_with_leisure() {
        let mut margin = Margin::new(8);
        let begun = margin.nanos;
        margin.learn(&[Report { start: 0, end: 0, slack: -5 }]);
        assert!(margin.nanos > begun);
        for _ in 0..1000 {
            margin.learn(&[Report { start: 0, end: 0, slack: margin.nanos }]);
        }
        assert_eq!(margin.nanos, margin.least);
        for _ in 0..1000 {
            margin.learn(&[Report { start: 0, end: 0, slack: -1 }]);
        }
        assert_eq!(margin.nanos, Margin::MOST);
    }
}
