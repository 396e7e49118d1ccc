//! How one call of a collective is timed.
//!
//! - *barrier*: a barrier brings the ranks together, as in most programs and benchmarks; the call took from
//!   the first rank's start to the last rank's end by the global clock.
//! - *global*: all ranks sleep to an agreed instant of the global clock (see
//!   [`crate::synchronisation`]), read their clocks, call, and read them again. The call took from
//!   the first rank's start to the last rank's end. It is not counted from the agreed instant,
//!   because every rank wakes a few microseconds after it, which is the machine's doing and not the
//!   collective's. Ranks that have a processor each wake a little earlier and watch the clock for
//!   the rest: beside calls of a microsecond that go through shared memory, waking would be all
//!   that is seen.
//! - *max*: a barrier brings the ranks together, each times its own call, the longest counts. Where ranks
//!   leave the barrier apart, a call in which they wait for little may seem to take next to nothing: a root
//!   that comes late finds all messages there.
//! - *root*: a barrier, then rank 0 times the call and a second barrier that confirms its end
//!   everywhere; the barrier's own median time is subtracted.
//! - *bcast* (MPIBlib's, for bcast alone): once for every rank but the root: a barrier, then the
//!   root times the broadcast and an empty message with which that rank confirms it; half of the
//!   empty round trip between the two is subtracted. The longest over the ranks counts.
//!
//! The barrier is a dissemination barrier of our own: how MPI_Barrier ends would be the library's
//! choice and part of what is timed.
//!
//! Where what is subtracted took longer than usual, a short call may seem to have taken no time, or less: it counts
//! as the clock's unit, which keeps its place among the others in a median and is a time that a record can hold.
//!
//! In every scheme each rank goes from its call into another such barrier, not timed: as in
//! a program that goes on to its next communication, a rank that is through early waits inside MPI,
//! where it drives its messages on. Were it to report its times at once and then look, again and
//! again, for what comes next, that would take processors and links from those that are still
//! calling, and most from pipelines, which some ranks leave long before others.

use std::str::FromStr;

use records::{observation::ObservationStatus, unknown};
use serde::{Deserialize, Serialize};
use statistics::median;

use crate::{
    clock::{Nanos, now, seconds},
    peers::{Peers, Tag},
    sleep::{sleep_until, wait_until},
    synchronisation::ClockLine,
};

/// Starts that are no further apart, in seconds, count as one: so late a rank may wake.
pub(crate) const TOGETHER: f64 = 50e-6;

/// The shortest time of a call: the clock's unit.
const SHORTEST: Nanos = 1;

/// The classical schemes, by what a user calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimingScheme {
    /// After a barrier, from the first start to the last end on a clock that all ranks share or that was
    /// synchronised
    Barrier,
    /// As barrier, but starting at an agreed instant instead
    Global,
    /// The longest of the ranks' own times
    Max,
    /// Rank 0's time of the call and a confirming barrier, less the barrier's
    Root,
    /// For bcast: the root's time of the call and each rank's reply, less half a round trip
    Bcast,
}

impl TimingScheme {
    /// All of them, in the order of their numbers in C.
    pub const ALL: [TimingScheme; 5] = [
        TimingScheme::Barrier,
        TimingScheme::Global,
        TimingScheme::Max,
        TimingScheme::Root,
        TimingScheme::Bcast,
    ];

    /// As flags and records spell it.
    pub const fn name(self) -> &'static str {
        match self {
            TimingScheme::Barrier => "barrier",
            TimingScheme::Global => "global",
            TimingScheme::Max => "max",
            TimingScheme::Root => "root",
            TimingScheme::Bcast => "bcast",
        }
    }
}

impl FromStr for TimingScheme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        let found = Self::ALL.into_iter().find(|scheme| scheme.name() == text);
        found.ok_or_else(|| unknown("timing scheme", text, &names))
    }
}

/// By which scheme a job times its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    pub timing: TimingScheme,
    /// Ranks watch for the agreed instant, as each has a processor; else they sleep to it.
    pub watched: bool,
}

impl Scheme {
    /// For the record.
    pub fn description(self, clock_shared: bool) -> String {
        let clock = match clock_shared {
            true => "the clock that they share",
            false => "their synchronised clocks",
        };
        let wait = if self.watched { "watch for" } else { "sleep to" };
        let way = match self.timing {
            TimingScheme::Global => format!(
                "global: all ranks {wait} an agreed instant of {clock}; seconds = last end - first \
                 start; starts are in seconds after that instant; late: last start - first start > \
                 10 % of seconds + 50 us"
            ),
            TimingScheme::Barrier => format!(
                "barrier: a dissemination barrier; seconds = last end - first start by {clock}; starts \
                 are in seconds after the first; late: last start > 10 % of seconds + 50 us"
            ),
            TimingScheme::Max => {
                "max: a dissemination barrier, then every rank times its own call; \
                            seconds = the longest; starts are not known (0)"
                    .into()
            }
            TimingScheme::Root => {
                "root: a dissemination barrier, then rank 0 times its call and a \
                             second barrier; seconds = that less the median time of such a \
                             barrier; starts are not known (0)"
                    .into()
            }
            TimingScheme::Bcast => {
                "bcast: for every rank but the root: a dissemination barrier, then \
                              the root times its call and an empty reply from that rank; seconds = \
                              the longest of these, each less half of the median empty round trip; \
                              starts are not known (0)"
                    .into()
            }
        };
        format!("{way}; after each call a dissemination barrier, not timed")
    }

    /// Whether ranks compare their clocks.
    pub fn compares_clocks(self) -> bool {
        matches!(self.timing, TimingScheme::Global | TimingScheme::Barrier)
    }

    /// Whether ranks need no word from rank 0 between the calls of a visit, as a barrier brings them
    /// together.
    pub fn calls_in_a_row(self) -> bool {
        matches!(self.timing, TimingScheme::Barrier | TimingScheme::Max)
    }

    /// Whether a visit begins with [`baseline`].
    pub fn needs_baseline(self) -> bool {
        matches!(self.timing, TimingScheme::Root | TimingScheme::Bcast)
    }
}

/// When and how one call is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// When, by the global clock (scheme global).
    pub agreed: Nanos,
    /// Which rank confirms the call's end (scheme bcast); 0 is none.
    pub reply: u32,
}

/// What one rank saw of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallReport {
    /// The clock before the call; the global one where the scheme compares clocks.
    pub start: Nanos,
    /// The clock after it.
    pub end: Nanos,
    /// Time between hearing of the agreed instant and the instant; negative where it was too late.
    pub slack: Nanos,
}

/// Makes one call of a collective; each of the first `procs` ranks of `comm` must.
///
/// `clock` leads from this rank's clock to the global one.
///
/// # Errors
/// The MPI library refuses.
pub fn call<P: Peers>(
    scheme: Scheme,
    comm: &P,
    procs: u32,
    clock: &ClockLine,
    Start { agreed, reply }: Start,
    collective: impl FnOnce() -> Result<(), P::Error>,
) -> Result<CallReport, P::Error> {
    let slack = match scheme.timing {
        TimingScheme::Global => {
            let instant = clock.local(agreed);
            let slack = instant - now();
            if scheme.watched {
                wait_until(instant)
            } else {
                sleep_until(instant)
            }
            slack
        }
        TimingScheme::Barrier | TimingScheme::Max | TimingScheme::Root | TimingScheme::Bcast => {
            disseminate(comm, procs)?;
            0
        }
    };
    let start = now();
    collective()?;
    match scheme.timing {
        TimingScheme::Global | TimingScheme::Barrier | TimingScheme::Max => {}
        TimingScheme::Root => disseminate(comm, procs)?,
        TimingScheme::Bcast if comm.rank() == 0 => comm.receive(&mut [], reply, Tag::Signal)?,
        TimingScheme::Bcast if comm.rank() == reply => comm.send(&[], 0, Tag::Signal)?,
        TimingScheme::Bcast => {}
    }
    let end = now();
    disseminate(comm, procs)?;
    Ok(match scheme.compares_clocks() {
        true => CallReport { start: clock.global(start), end: clock.global(end), slack },
        false => CallReport { start, end, slack },
    })
}

/// What a scheme subtracts, measured beforehand; every rank of `comm` must. Rank 0 learns it: for
/// scheme root the median time of a barrier, for scheme bcast for each rank the median empty round
/// trip (0 for itself).
///
/// # Errors
/// The MPI library refuses.
pub fn baseline<P: Peers>(scheme: Scheme, comm: &P) -> Result<Vec<Nanos>, P::Error> {
    match scheme.timing {
        TimingScheme::Global | TimingScheme::Barrier | TimingScheme::Max => Ok(Vec::new()),
        TimingScheme::Root => Ok(vec![median_of(|| disseminate(comm, comm.size()))?]),
        TimingScheme::Bcast => {
            let others = 1..comm.size();
            if comm.rank() != 0 {
                for _ in 0..BASELINE {
                    comm.receive(&mut [], 0, Tag::Signal)?;
                    comm.send(&[], 0, Tag::Signal)?;
                }
                return Ok(Vec::new());
            }
            let round_trip = |rank| {
                median_of(|| {
                    comm.send(&[], rank, Tag::Signal)?;
                    comm.receive(&mut [], rank, Tag::Signal)
                })
            };
            std::iter::once(Ok(0)).chain(others.map(round_trip)).collect()
        }
    }
}

/// Repetitions of what is subtracted.
const BASELINE: usize = 11;

fn median_of<E>(mut act: impl FnMut() -> Result<(), E>) -> Result<Nanos, E> {
    let mut times = [0.0; BASELINE];
    for time in &mut times {
        let begun = now();
        act()?;
        *time = (now() - begun) as f64;
    }
    Ok(median(&times).unwrap_or_default() as Nanos)
}

/// The dissemination barrier of the first `procs` ranks: in round k every rank signals the one 2^k
/// above, until each has heard, by way of others, from all.
fn disseminate<P: Peers>(comm: &P, procs: u32) -> Result<(), P::Error> {
    let rank = comm.rank();
    let mut distance = 1;
    while distance < procs {
        comm.exchange_signals((rank + distance) % procs, (rank + procs - distance) % procs)?;
        distance *= 2;
    }
    Ok(())
}

/// One call as all ranks together saw it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedCall {
    /// The first rank's start after the agreed instant, where there is one.
    pub first_start_seconds: f64,
    /// The last rank's.
    pub last_start_seconds: f64,
    /// What the call took, by the scheme.
    pub seconds: f64,
    /// Whether the ranks started together.
    pub status: ObservationStatus,
}

/// Puts the ranks' reports of one call together, rank 0's first; nothing without a report.
pub fn combine(
    scheme: Scheme,
    Start { agreed, reply }: Start,
    baseline: &[Nanos],
    reports: &[CallReport],
) -> Option<TimedCall> {
    let root = reports.first()?;
    let subtract = |rank: u32| baseline.get(rank as usize).copied().unwrap_or_default();
    let of_span = |span: Nanos| TimedCall {
        first_start_seconds: 0.0,
        last_start_seconds: 0.0,
        seconds: seconds(span.max(SHORTEST)),
        status: ObservationStatus::Ok,
    };
    Some(match scheme.timing {
        TimingScheme::Max => of_span(reports.iter().map(|report| report.end - report.start).max()?),
        TimingScheme::Root => of_span(root.end - root.start - subtract(0)),
        TimingScheme::Bcast => of_span(root.end - root.start - subtract(reply) / 2),
        TimingScheme::Global | TimingScheme::Barrier => {
            let first = reports.iter().map(|report| report.start).min()?;
            let last = reports.iter().map(|report| report.start).max()?;
            let end = reports.iter().map(|report| report.end).max()?;
            let took = seconds((end - first).max(SHORTEST));
            let late = seconds(last - first) > 0.1 * took + TOGETHER;
            let agreed = if scheme.timing == TimingScheme::Global { agreed } else { first };
            TimedCall {
                first_start_seconds: seconds(first - agreed),
                last_start_seconds: seconds(last - agreed),
                seconds: took,
                status: if late { ObservationStatus::Late } else { ObservationStatus::Ok },
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Start = Start { agreed: 0, reply: 0 };

    const fn by(timing: TimingScheme) -> Scheme {
        Scheme { timing, watched: false }
    }

    const fn report(start: Nanos, end: Nanos) -> CallReport {
        CallReport { start, end, slack: 0 }
    }

    #[test]
    fn a_call_lasts_from_the_first_start_to_the_last_end() {
        let reports = [report(1_005_000, 1_300_000), report(1_020_000, 3_005_000)];
        let start = Start { agreed: 1_000_000, ..START };
        let timed = combine(by(TimingScheme::Global), start, &[], &reports).unwrap();
        assert_eq!(timed.seconds, 2e-3);
        assert_eq!((timed.first_start_seconds, timed.last_start_seconds), (5e-6, 20e-6));
        assert_eq!(timed.status, ObservationStatus::Ok);
        assert_eq!(combine(by(TimingScheme::Global), START, &[], &[]), None);
    }

    #[test]
    fn after_a_barrier_starts_count_from_the_first() {
        let reports = [report(1_005_000, 1_300_000), report(1_020_000, 3_005_000)];
        let timed = combine(by(TimingScheme::Barrier), START, &[], &reports).unwrap();
        assert_eq!((timed.seconds, timed.first_start_seconds), (2e-3, 0.0));
        assert_eq!((timed.last_start_seconds, timed.status), (15e-6, ObservationStatus::Ok));
    }

    #[test]
    fn a_late_start_is_marked_where_it_matters() {
        let late = |start, end| {
            let reports = [report(0, end), report(start, end)];
            combine(by(TimingScheme::Global), START, &[], &reports).unwrap().status
        };
        assert_eq!(late(100_000, 200_000), ObservationStatus::Late);
        assert_eq!(late(100_000, 2_000_000), ObservationStatus::Ok);
    }

    #[test]
    fn the_classical_schemes_take_what_they_say() {
        let reports = [report(7_000_000_000, 7_000_300_000), report(5, 500_005)];
        let timed = combine(by(TimingScheme::Max), START, &[], &reports).unwrap();
        assert_eq!((timed.seconds, timed.last_start_seconds), (5e-4, 0.0));
        let timed = combine(by(TimingScheme::Root), START, &[100_000], &reports).unwrap();
        assert_eq!(timed.seconds, 2e-4);
        let start = Start { reply: 1, ..START };
        let timed = combine(by(TimingScheme::Bcast), start, &[0, 100_000], &reports).unwrap();
        assert_eq!(timed.seconds, 2.5e-4);
        let timed = combine(by(TimingScheme::Root), START, &[900_000], &reports).unwrap();
        assert_eq!(timed.seconds, 1e-9, "a barrier that was slower beforehand makes no past");
        let start = Start { reply: 1, ..START };
        let timed = combine(by(TimingScheme::Bcast), start, &[0, 900_000], &reports).unwrap();
        assert_eq!(timed.seconds, 1e-9, "nor does a slower reply");
        let at_once = [report(7, 7), report(5, 5)];
        let timed = combine(by(TimingScheme::Max), START, &[], &at_once).unwrap();
        assert_eq!(timed.seconds, 1e-9, "a record holds times above 0");
    }
}
