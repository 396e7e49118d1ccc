//! What ranks that share the memory of one node do to each other.
//!
//! # What is computed
//! - The trip of a message: L + g(m) of a chain of ranks that hand one on, each of which has just written it; the
//!   others wait.
//! - What the sender's processor is busy: g(m, k) / k to all others, since their processors work beside each other.
//!   What the receiver's is: g(m, k) / k from all others, and in messages no longer than those what the trip
//!   leaves beside the sender and the flight, which is what an empty message has left.
//! - The slowdown: the gap of exchanges between pairs, of several pairs at once to that of one.
//! - Copies: the difference of long and short rows, over the copies between.
//!
//! Beyond the sizes at which g(m, k) was measured a byte costs what it costs at the last one, and no more than a
//! byte of the trip.

use records::{
    calibration::{
        CopyKnot, CopyTimes, Estimate, ManyGap, MemoryMessageKnot, MemoryParameters,
        PLogPEstimates, Slowdown, SlowdownKnot,
    },
    group_observation::GroupKind,
};

use super::{
    centres::GroupCentres,
    groups::{GroupSamples, gaps_of_rounds, rounds_of},
    percentiles,
};

/// What ranks that are busy at once do to each other, whatever tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedMemoryTimes {
    pub slowdown: Vec<Slowdown>,
    pub copies: Vec<CopyTimes>,
    /// See [`MemoryParameters`].
    pub combining_start_seconds: Option<Estimate>,
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
        let rounds = rounds_of(centres, GroupKind::PairExchanges);
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
        (!copies.is_empty() && !slowdown.is_empty()).then_some(SharedMemoryTimes {
            slowdown,
            copies,
            combining_start_seconds: None,
        })
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
        let to = PerPartner::new(measured.gap_by_destinations.last()?);
        let from = PerPartner::new(measured.gap_by_sources.last()?);
        let trip_of = |knot: &records::calibration::PLogPKnot| {
            let (latency, gap) = (fitted.latency_seconds, knot.gap_seconds);
            Estimate {
                value: latency.value + gap.value,
                low: latency.low + gap.low,
                high: latency.high + gap.high,
            }
        };
        let first = fitted.knots.first()?;
        let empty = |trip: f64, bytes: u64| {
            trip - to.at(bytes, |knot| knot.value) - from.at(bytes, |knot| knot.value)
        };
        let flight = empty(trip_of(first).value, first.bytes).max(0.0);
        let messages = fitted.knots.iter().map(|knot| {
            let trip = trip_of(knot);
            let part = |of: fn(&Estimate) -> f64| {
                let trip = of(&trip);
                let send = to.at(knot.bytes, of).min(trip);
                let rest = if knot.bytes <= from.last() { trip - send - flight } else { 0.0 };
                (send, from.at(knot.bytes, of).max(rest).clamp(0.0, trip))
            };
            let [value, low, high] = [part(|it| it.value), part(|it| it.low), part(|it| it.high)];
            let estimate = |value: f64, low: f64, high: f64| Estimate {
                value,
                low: low.min(value),
                high: high.max(value),
            };
            MemoryMessageKnot {
                bytes: knot.bytes,
                trip_seconds: trip,
                send_seconds: estimate(value.0, low.0, high.0),
                receive_seconds: estimate(value.1, low.1, high.1),
            }
        });
        let messages = messages.filter(|knot| knot.trip_seconds.value > 0.0).collect();
        let SharedMemoryTimes { slowdown, copies, combining_start_seconds } = self;
        Some(MemoryParameters { messages, slowdown, copies, combining_start_seconds })
    }
}

/// g(m, k) / k for one k.
struct PerPartner<'a>(&'a ManyGap);

impl PerPartner<'_> {
    fn new(gaps: &ManyGap) -> PerPartner<'_> {
        PerPartner(gaps)
    }

    /// The largest size at which it was measured.
    fn last(&self) -> u64 {
        self.0.knots.last().map_or(0, |knot| knot.bytes)
    }

    fn at(&self, bytes: u64, of: impl Fn(&Estimate) -> f64) -> f64 {
        let ManyGap { partners, knots } = self.0;
        let value = |index: usize| of(&knots[index].gap_seconds) / f64::from(*partners);
        let above = knots.partition_point(|knot| knot.bytes <= bytes);
        match (above.checked_sub(1), above < knots.len()) {
            (None, _) => value(0),
            (Some(last), false) => value(last) * bytes as f64 / knots[last].bytes.max(1) as f64,
            (Some(low), true) => {
                let (from, to) = (knots[low].bytes as f64, knots[above].bytes as f64);
                value(low) + (value(above) - value(low)) * (bytes as f64 - from) / (to - from)
            }
        }
    }
}
