//! What ranks that share the memory of one node do to each other.
//!
//! # What is computed
//! - The trip of a message: L + g(m) of a chain of ranks that hand one on, each of which has just written it; the
//!   others wait.
//! - What the sender's processor is busy: g(m, k) / k to all others, since their processors work beside each other.
//!   What the receiver's is: g(m, k) / k from all others, and in messages no longer than those what the trip
//!   leaves beside the sender and the flight, which is what an empty message has left.
//! - The slowdown: the time of a round of shifts, among several ranks to that between two. In these, as in
//!   collectives, partners change and each round waits for the last: a pair that repeats its own exchange is
//!   hardly slowed down by others when messages are short.
//! - Copies: the difference of long and short rows, over the copies between.
//! - A flag: a barrier of two ranks by shared memory, which exchange theirs; of more than two, half a barrier. Each
//!   further one that a rank looks at: what the barrier of most ranks takes beside two flags, over these.
//! - Reads: a round of writing, reading and a barrier, without the barrier, the flag that tells that all is written, and
//!   the writing. That takes what a copy does that one rank makes alone. Where reading takes longer than that, beside
//!   what the shortest takes, so does writing: what others have read before comes back from their caches.
//!
//! Beyond the sizes at which g(m, k) was measured a byte costs what it costs at the last one, and no more than a
//! byte of the trip.

use records::{
    calibration::{
        CopyKnot, CopyTimes, Estimate, GapKnot, ManyGap, MemoryMessageKnot, MemoryParameters,
        PLogPEstimates, PLogPKnot, SharedAccess, Slowdown, SlowdownKnot,
    },
    group_observation::GroupKind,
};
use schedules::shared::flags_of_a_barrier;

use super::{
    centres::GroupCentres,
    groups::{GroupSamples, Rounds, gaps_of_rounds, rounds_of},
    percentiles,
};
use crate::parameters::Sizes;

/// What ranks that are busy at once do to each other, whatever tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedMemoryTimes {
    pub slowdown: Vec<Slowdown>,
    pub copies: Vec<CopyTimes>,
    /// See [`MemoryParameters`].
    pub combining_start_seconds: Option<Estimate>,
    /// See [`MemoryParameters`].
    pub shared: Option<SharedAccess>,
}

impl GroupSamples {
    /// As far as it was measured: on one node of four ranks or more, each with a processor.
    pub fn shared_memory_times(&self) -> Option<SharedMemoryTimes> {
        let GroupSamples { centres, redrawn, .. } = self;
        let estimate = |of: &dyn Fn(&GroupCentres) -> f64| percentiles(centres, redrawn, of);
        let positive = |estimate: &Estimate| estimate.value > 0.0;
        let copies = gaps_of_rounds(centres, GroupKind::Copies, estimate).into_iter();
        let copies = copies.map(|(procs, knots)| {
            let knots = knots.into_iter().filter(|knot| positive(&knot.gap_seconds));
            let copy = knots.map(|knot| CopyKnot { bytes: knot.bytes, seconds: knot.gap_seconds });
            CopyTimes { busy_ranks: procs, knots: copy.collect() }
        });
        let copies: Vec<CopyTimes> = copies.filter(|row| !row.knots.is_empty()).collect();
        let rounds = rounds_of(centres, GroupKind::Shifts);
        let mut slowdown: Vec<Slowdown> = Vec::new();
        for (&(procs, bytes), many) in rounds.iter().filter(|((procs, _), _)| *procs > 2) {
            let Some(alone) = rounds.get(&(2, bytes)) else { continue };
            let of = |centres: &GroupCentres| {
                let alone = alone.gap(centres);
                if alone > 0.0 { many.gap(centres) / alone } else { 1.0 }
            };
            let knot = SlowdownKnot { bytes, factor: estimate(&of) };
            if !positive(&knot.factor) {
                continue;
            }
            match slowdown.last_mut() {
                Some(row) if row.busy_ranks == procs => row.knots.push(knot),
                _ => slowdown.push(Slowdown { busy_ranks: procs, knots: vec![knot] }),
            }
        }
        (!copies.is_empty() && !slowdown.is_empty()).then(|| SharedMemoryTimes {
            shared: self.shared_access(),
            slowdown,
            copies,
            combining_start_seconds: None,
        })
    }

    /// What ranks do with memory that they share; none where it was not measured.
    fn shared_access(&self) -> Option<SharedAccess> {
        let GroupSamples { centres, redrawn, .. } = self;
        let estimate = |of: &dyn Fn(&GroupCentres) -> f64| percentiles(centres, redrawn, of);
        let mut barriers = rounds_of(centres, GroupKind::SharedFlags);
        barriers.retain(|(procs, _), _| *procs > 1);
        let copies = rounds_of(centres, GroupKind::Copies);
        let ((few, _), least) = barriers.first_key_value()?;
        let ((many, _), most) = barriers.last_key_value()?;
        let in_turn = |procs: u32| f64::from(flags_of_a_barrier(procs));
        let flag = |centres: &GroupCentres| least.gap(centres) / in_turn(*few);
        let further = |centres: &GroupCentres| {
            let longer = (most.gap(centres) - in_turn(*many) * flag(centres)).max(0.0);
            longer / f64::from((many - few).max(1))
        };
        let written = |centres: &GroupCentres, bytes: u64| {
            let alone = copies.iter().filter(|((procs, _), _)| *procs == 1);
            let knot =
                |((_, bytes), row): (&(u32, u64), &Rounds)| (*bytes as f64, row.gap(centres));
            let knots: Vec<(f64, f64)> =
                std::iter::once((0.0, 0.0)).chain(alone.map(knot)).collect();
            Sizes(knots).growing(bytes as f64)
        };
        let mut reads: Vec<CopyTimes> = Vec::new();
        let rows = rounds_of(centres, GroupKind::SharedReads);
        for (key, row) in &rows {
            let &(procs, bytes) = key;
            let Some(barrier) = barriers.get(&(procs, 0)) else { continue };
            let both = |centres: &GroupCentres, row: &Rounds| {
                row.gap(centres) - barrier.gap(centres) - flag(centres)
            };
            let (first, shortest) = rows.range((procs, 0)..).next().unwrap_or((key, row));
            let read = |centres: &GroupCentres| {
                let begun = both(centres, shortest) - written(centres, first.1);
                let both = both(centres, row);
                (both - written(centres, bytes)).min((both + begun) / 2.0).max(0.0)
            };
            let knot = CopyKnot { bytes, seconds: estimate(&read) };
            match reads.last_mut() {
                _ if knot.seconds.value <= 0.0 => {}
                Some(row) if row.busy_ranks == procs - 1 => row.knots.push(knot),
                _ => reads.push(CopyTimes { busy_ranks: procs - 1, knots: vec![knot] }),
            }
        }
        let (flag_seconds, further_flag_seconds) = (estimate(&flag), estimate(&further));
        let is_known = flag_seconds.value > 0.0 && !reads.is_empty();
        is_known.then_some(SharedAccess { flag_seconds, further_flag_seconds, reads })
    }
}

impl SharedMemoryTimes {
    /// With what single messages take: by chains (`fitted`), to and from all others (`measured`). None where that
    /// was not measured.
    pub fn with_messages(
        self,
        fitted: &PLogPEstimates,
        measured: &PLogPEstimates,
    ) -> Option<MemoryParameters> {
        let (to, from) = (measured.gap_by_destinations.last()?, measured.gap_by_sources.last()?);
        let longest = from.knots.last()?.bytes;
        let trip_of = |knot: &PLogPKnot, of: fn(&Estimate) -> f64| {
            of(&fitted.latency_seconds) + of(&knot.gap_seconds)
        };
        let value = |estimate: &Estimate| estimate.value;
        let first = fitted.knots.first()?;
        let busy = |gaps| per_partner(gaps, value).growing(first.bytes as f64);
        let flight = (trip_of(first, value) - busy(to) - busy(from)).max(0.0);
        // Trip, send and receive of all sizes.
        let parts = |of: fn(&Estimate) -> f64| -> Vec<[f64; 3]> {
            let [to, from] = [to, from].map(|gaps| per_partner(gaps, of));
            let part = |knot: &PLogPKnot| {
                let (bytes, trip) = (knot.bytes as f64, trip_of(knot, of));
                let send = to.growing(bytes).min(trip);
                let rest = if knot.bytes <= longest { trip - send - flight } else { 0.0 };
                [trip, send, from.growing(bytes).max(rest).clamp(0.0, trip)]
            };
            fitted.knots.iter().map(part).collect()
        };
        let (values, lows, highs) =
            (parts(value), parts(|estimate| estimate.low), parts(|estimate| estimate.high));
        let messages = fitted.knots.iter().enumerate().map(|(index, knot)| {
            let estimate = |part: usize| {
                let value = values[index][part];
                let (low, high) = (lows[index][part].min(value), highs[index][part].max(value));
                Estimate { value, low, high }
            };
            MemoryMessageKnot {
                bytes: knot.bytes,
                trip_seconds: estimate(0),
                send_seconds: estimate(1),
                receive_seconds: estimate(2),
            }
        });
        let messages = messages.filter(|knot| knot.trip_seconds.value > 0.0).collect();
        let SharedMemoryTimes { slowdown, copies, combining_start_seconds, shared } = self;
        Some(MemoryParameters {
            messages,
            slowdown,
            copies,
            combining_start_seconds,
            ranks_per_cache: None,
            shared,
        })
    }
}

/// g(m, k) / k for one k: its value or an end of its interval.
fn per_partner(gaps: &ManyGap, of: impl Fn(&Estimate) -> f64) -> Sizes {
    let knot =
        |knot: &GapKnot| (knot.bytes as f64, of(&knot.gap_seconds) / f64::from(gaps.partners));
    Sizes(gaps.knots.iter().map(knot).collect())
}
