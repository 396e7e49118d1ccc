//! From one set of centres to the parameters: what is there is planned once, the arithmetic is
//! done for every redrawing.

use std::collections::BTreeMap;

use records::{
    observation::PointToPointKind,
    quantity::{format_bytes, format_seconds},
};

use super::{
    breaks::breaks,
    direct::Direct,
    error::FitError,
    lines,
    places::{Between, Train, trains, warn_of_gaps_between, without_waiting},
    samples::Centres,
    words::list_sizes,
};
use crate::parameters::{Hockney, Knot, LinearGap, LogGp, MessageCosts};

/// G is the slope over the sizes from this part of the largest on: below, what a message costs
/// apart from its bytes hides it.
const LARGE: u64 = 64;
/// Sizes that G's line wants.
const LINE: usize = 3;
/// g(m) below os(m) or or(m) by more than this is no measuring error.
const VIOLATION: f64 = 1.05;

/// Every parameter's value.
#[derive(Debug, Clone)]
pub(super) struct ParameterValues {
    /// PLogP's L.
    pub(super) latency: f64,
    /// How far it would have been below 0.
    latency_below_zero: f64,
    pub(super) knots: Vec<Knot>,
    pub(super) loggp: LogGp,
    loggp_latency_below_zero: f64,
    pub(super) hockney: Hockney,
    /// At the sizes of the round trips.
    pub(super) hockney_by_size: Vec<Hockney>,
    /// LogGP measured by itself.
    pub(super) direct: Option<LogGp>,
}

/// Which centres make which parameter: places in [`Centres::seconds`].
#[derive(Debug)]
pub(super) struct CentreIndices {
    clock: Option<usize>,
    empty_round_trip: usize,
    empty_gap: Train,
    /// (bytes, place), ascending.
    pub(super) round_trips: Vec<(u64, usize)>,
    knots: Vec<KnotPlan>,
    direct: Option<Direct>,
    /// The knots at which g(m) leaves one line for another.
    breaks: Vec<usize>,
    /// m = 1 among the knots.
    one_byte: Between,
    /// The first knot of G's line.
    linear_from: usize,
}

#[derive(Debug)]
pub(super) struct KnotPlan {
    pub(super) bytes: u64,
    gap: GapSource,
    send: Between,
    receive: Between,
}

#[derive(Debug, Clone, Copy)]
enum GapSource {
    Train(Train),
    /// By how much longer the round trip at that place takes than another one, of whose size there is
    /// a train: what a message takes apart from its gap is the same in both.
    RoundTrip {
        place: usize,
        base: (usize, Train),
    },
}

/// Where the gap of each size comes from: from its trains, else from its round trip beside the longest one
/// that has trains, else beside the `empty` one.
fn gap_sources(
    trains: BTreeMap<u64, Train>,
    round_trips: &[(u64, usize)],
    empty: (usize, Train),
) -> BTreeMap<u64, GapSource> {
    let of_both = |(bytes, place): &(u64, usize)| Some((*place, *trains.get(bytes)?));
    let base = round_trips.iter().rev().find_map(of_both).unwrap_or(empty);
    let mut gaps: BTreeMap<u64, GapSource> = round_trips
        .iter()
        .filter(|(bytes, _)| !is_between_trains(&trains, *bytes))
        .map(|(bytes, place)| (*bytes, GapSource::RoundTrip { place: *place, base }))
        .collect();
    gaps.extend(trains.into_iter().map(|(bytes, train)| (bytes, GapSource::Train(train))));
    gaps
}

impl CentreIndices {
    pub(super) fn new(centres: &Centres, warnings: &mut Vec<String>) -> Result<Self, FitError> {
        use PointToPointKind::{Clock, ReceiveOverhead, RoundTrip, SendOverhead, Train};
        let places = |wanted| -> Vec<(u64, usize)> {
            let keys = centres.keys().filter(|((kind, ..), _)| *kind == wanted);
            keys.map(|((_, bytes, _), place)| (bytes, place)).collect()
        };
        let missing = |kind, bytes, purpose| FitError::Missing { kind, bytes, purpose };
        let clock = places(Clock).first().map(|(_, place)| *place);
        if clock.is_none() {
            warnings.push("no clock observations: its own cost is contained in every time".into());
        }
        let round_trips = places(RoundTrip);
        let empty_round_trip = match round_trips.first() {
            Some((0, place)) => *place,
            _ => return Err(missing(RoundTrip, Some(0), "they give L")),
        };
        if round_trips.len() < 2 {
            return Err(FitError::Sizes { kind: RoundTrip, sizes: round_trips.len() });
        }
        let overheads = |kind, purpose| match places(kind) {
            places if places.is_empty() => Err(missing(kind, None, purpose)),
            places => Ok(places),
        };
        let sends = overheads(SendOverhead, "they give os(m)")?;
        let receives = overheads(ReceiveOverhead, "they give or(m)")?;
        let eager_sends = without_waiting("os", &sends, centres, warnings);
        let eager_receives = without_waiting("or", &receives, centres, warnings);
        let trains = trains(centres, warnings);
        let empty_gap =
            *trains.get(&0).ok_or(missing(Train, Some(0), "two lengths of train give g(0)"))?;

        let knots: Vec<KnotPlan> = gap_sources(trains, &round_trips, (empty_round_trip, empty_gap))
            .into_iter()
            .map(|(bytes, gap)| KnotPlan {
                bytes,
                gap,
                send: Between::new(eager_sends, bytes),
                receive: Between::new(eager_receives, bytes),
            })
            .collect();
        for (name, measured) in [("os", &sends), ("or", &receives)] {
            warn_of_gaps_between(name, measured, knots.iter().map(|knot| knot.bytes), warnings);
        }
        let knot_places: Vec<(u64, usize)> =
            knots.iter().enumerate().map(|(index, knot)| (knot.bytes, index)).collect();
        let one_byte = Between::new(&knot_places, 1);
        let mut plan = CentreIndices {
            clock,
            empty_round_trip,
            empty_gap,
            round_trips,
            knots,
            one_byte,
            direct: Direct::new(centres),
            breaks: Vec::new(),
            linear_from: 0,
        };
        plan.breaks = breaks(&plan.gap_points(centres));
        plan.linear_from = plan.last_line(warnings);
        Ok(plan)
    }

    /// The first knot above the last protocol break that counts as large.
    fn last_line(&self, warnings: &mut Vec<String>) -> usize {
        if !self.breaks.is_empty() {
            let places: Vec<String> = self
                .protocol_changes()
                .map(|(below, above)| {
                    format!("{} and {}", format_bytes(below), format_bytes(above))
                })
                .collect();
            warnings.push(format!(
                "the slope of g(m) changes, as by another protocol, between {}; G is the slope \
                 above",
                places.join(", between ")
            ));
        }
        let largest = self.knots.last().map_or(0, |knot| knot.bytes);
        let large = self.knots.partition_point(|knot| knot.bytes < largest / LARGE);
        let from = self.breaks.last().copied().unwrap_or(0).max(large);
        let at_most = self.knots.len().saturating_sub(LINE);
        if from > at_most {
            warnings.push(format!(
                "G rests on the largest {} sizes, since fewer are from {} on",
                self.knots.len() - at_most,
                format_bytes(self.knots[from].bytes)
            ));
        }
        from.min(at_most)
    }

    /// The sizes below and above each break in g(m), ascending.
    pub(super) fn protocol_changes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.breaks.iter().map(|index| (self.knots[index - 1].bytes, self.knots[*index].bytes))
    }

    fn gap_points(&self, centres: &Centres) -> Vec<(f64, f64)> {
        let times = ClockedTimes::new(self, centres);
        self.knots.iter().map(|knot| (knot.bytes as f64, times.gap(knot.gap))).collect()
    }

    /// The arithmetic; see the module [`fit`](super).
    pub(super) fn estimate(&self, centres: &Centres) -> ParameterValues {
        let times = ClockedTimes::new(self, centres);
        let knots: Vec<Knot> = self
            .knots
            .iter()
            .map(|knot| Knot {
                bytes: knot.bytes,
                costs: MessageCosts {
                    send: knot.send.interpolate(|place| times.at(place)),
                    receive: knot.receive.interpolate(|place| times.at(place)),
                    gap: times.gap(knot.gap),
                },
            })
            .collect();
        let latency = times.empty_round_trip / 2.0 - times.empty_gap;
        let gaps: Vec<(f64, f64)> = knots[self.linear_from..]
            .iter()
            .map(|knot| (knot.bytes as f64, knot.costs.gap))
            .collect();
        // At least two sizes are there, so there is a line; it may fall by noise.
        let gap_per_byte = lines::robust_relative(&gaps).map_or(0.0, |line| line.slope.max(0.0));
        let one_byte = |of: fn(&MessageCosts) -> f64| {
            self.one_byte.interpolate(|index| of(&knots[index].costs))
        };
        let one_byte = MessageCosts {
            send: one_byte(|costs| costs.send),
            receive: one_byte(|costs| costs.receive),
            gap: one_byte(|costs| costs.gap),
        };
        let message = times.empty_round_trip / 2.0 + gap_per_byte;
        let converted = LinearGap::from_message(message, one_byte, gap_per_byte);
        ParameterValues {
            latency: latency.max(0.0),
            latency_below_zero: (-latency).max(0.0),
            loggp: converted.loggp,
            loggp_latency_below_zero: converted.latency_below_zero,
            hockney: self.hockney(&times),
            hockney_by_size: self.hockney_by_size(&times),
            direct: self.direct.as_ref().map(|direct| self.direct_loggp(direct, &times, &knots)),
            knots,
        }
    }

    /// o from spaced trains, L from the round trip, g and G from the trains' own lines: g of the
    /// line up to the first protocol break, G as converted.
    fn direct_loggp(&self, direct: &Direct, times: &ClockedTimes, knots: &[Knot]) -> LogGp {
        let first_line = self.breaks.first().copied().unwrap_or(knots.len());
        let line = |knots: &[Knot]| {
            let points: Vec<(f64, f64)> = knots
                .iter()
                .map(|knot| ((knot.bytes as f64 - 1.0).max(0.0), knot.costs.gap))
                .collect();
            lines::robust_relative(&points)
        };
        let gap = line(&knots[..first_line]).map_or(0.0, |line| line.intercept.max(0.0));
        let gap_per_byte = line(&knots[self.linear_from..]).map_or(0.0, |line| line.slope.max(0.0));
        let receive = self.one_byte.interpolate(|index| knots[index].costs.receive);
        direct.loggp(|place| times.at(place), receive, gap, gap_per_byte)
    }

    /// The line through the round trips next to each size; where it would begin below 0, from 0.
    fn hockney_by_size(&self, times: &ClockedTimes) -> Vec<Hockney> {
        let empty = times.empty_round_trip / 2.0;
        let one_way =
            |&(bytes, place): &(u64, usize)| (bytes as f64, (times.at(place) - empty).max(0.0));
        let points: Vec<(f64, f64)> = self.round_trips.iter().map(one_way).collect();
        let last = points.len() - 1;
        let around = |(index, &(bytes, seconds)): (usize, &(f64, f64))| {
            let (low, high) = (points[index.saturating_sub(1)], points[(index + 1).min(last)]);
            let slope = ((high.1 - low.1) / (high.0 - low.0)).max(0.0);
            let beta = if bytes > 0.0 { slope.min(seconds / bytes) } else { slope };
            Hockney { alpha: (seconds - beta * bytes).max(0.0), beta }
        };
        points.iter().enumerate().map(around).collect()
    }

    /// alpha from the empty message, beta from the large ones.
    fn hockney(&self, times: &ClockedTimes) -> Hockney {
        let alpha = times.empty_round_trip / 2.0;
        // Fewer than the line's round trips where the budget ended early: then the largest there are.
        let large = self
            .round_trips
            .partition_point(|(bytes, _)| *bytes < self.knots[self.linear_from].bytes)
            .min(self.round_trips.len().saturating_sub(LINE));
        let one_way: Vec<(f64, f64)> = self.round_trips[large..]
            .iter()
            .map(|&(bytes, place)| (bytes as f64, (times.at(place) - alpha).max(0.0)))
            .collect();
        let beta = lines::robust_relative(&one_way).map_or(0.0, |line| line.slope.max(0.0));
        Hockney { alpha, beta }
    }

    /// Says what is doubtful about the values.
    pub(super) fn judge(&self, values: &ParameterValues, warnings: &mut Vec<String>) {
        if values.latency_below_zero > 0.0 {
            warnings.push(format!(
                "L of PLogP, RTT(0)/2 - g(0), is below 0 by {}: taken as 0. Messages in a row \
                 are slower than single ones",
                format_seconds(values.latency_below_zero)
            ));
        }
        if values.loggp_latency_below_zero > 0.0 {
            warnings.push(format!(
                "L of LogGP, RTT(0)/2 + G - os(1) - or(1), is below 0 by {}: taken as 0, and o as \
                 half of a message's time",
                format_seconds(values.loggp_latency_below_zero)
            ));
        }
        if values.loggp.gap_per_byte == 0.0 {
            warnings.push("G is 0: g(m) does not rise over the largest sizes".into());
        }
        let sizes = |of: &dyn Fn(&MessageCosts) -> bool| -> Vec<u64> {
            values.knots.iter().filter(|knot| of(&knot.costs)).map(|knot| knot.bytes).collect()
        };
        let free = sizes(&|costs| costs.gap <= 0.0);
        if !free.is_empty() {
            warnings.push(format!("g(m) is not above 0 at {}: taken as 0", list_sizes(&free)));
        }
        for (name, sizes) in [
            ("os", sizes(&|costs| costs.send > VIOLATION * costs.gap)),
            ("or", sizes(&|costs| costs.receive > VIOLATION * costs.gap)),
        ] {
            if !sizes.is_empty() {
                warnings.push(format!(
                    "{name}(m) exceeds g(m), which PLogP excludes, at {}: a single call costs more \
                     than one of many in a row",
                    list_sizes(&sizes)
                ));
            }
        }
    }
}

/// Trains whose sizes are not farther from each other, as a factor: between them g(m) is taken to be
/// their line. Farther apart a change of protocol would be missed.
const NEAR: u64 = 16;

/// Whether there are trains of a smaller size and of a larger one near by. Their line is nearer to g(m)
/// than what a round trip tells: a switch may take as long again to take in a message that is not longer
/// than a frame.
fn is_between_trains(trains: &BTreeMap<u64, Train>, bytes: u64) -> bool {
    let below = trains.range(..bytes).next_back();
    let above = trains.range(bytes..).next();
    match (below, above) {
        (Some((below, _)), Some((above, _))) => *above <= NEAR * below,
        _ => false,
    }
}

/// The centres with the clock's cost taken off once.
struct ClockedTimes<'a> {
    centres: &'a Centres<'a>,
    clock: f64,
    empty_round_trip: f64,
    empty_gap: f64,
}

impl<'a> ClockedTimes<'a> {
    fn new(plan: &CentreIndices, centres: &'a Centres) -> Self {
        let clock = plan.clock.map_or(0.0, |place| centres.seconds[place]);
        let mut times = ClockedTimes { centres, clock, empty_round_trip: 0.0, empty_gap: 0.0 };
        times.empty_round_trip = times.at(plan.empty_round_trip);
        times.empty_gap = times.train_gap(plan.empty_gap);
        times
    }

    fn at(&self, place: usize) -> f64 {
        (self.centres.seconds[place] - self.clock).max(0.0)
    }

    fn gap(&self, gap: GapSource) -> f64 {
        match gap {
            GapSource::Train(train) => self.train_gap(train),
            GapSource::RoundTrip { place, base: (base, train) } => {
                (self.at(place) - self.at(base) + self.train_gap(train)).max(0.0)
            }
        }
    }

    fn train_gap(&self, Train { difference, short, long }: Train) -> f64 {
        let longer = match difference {
            Some(place) => self.centres.seconds[place],
            None => self.at(long.1) - self.at(short.1),
        };
        (longer / f64::from(long.0 - short.0)).max(0.0)
    }
}
