//! What the ranks of a node get of its port when several of them send at the same time.
//!
//! Measured by pairs of ranks of two nodes (`osu_mbw_mr` and the like): k pairs send streams of
//! messages at once. One pair starts a message every g(m); k pairs together get one through the
//! port of their node every G(m), so that each starts one every max(g(m), k G(m)). That is what the
//! simulator does with the ports of [`LevelledNetwork`](crate::simulated::LevelledNetwork).

use std::collections::BTreeMap;

use records::calibration::PortGap;
use schedules::simulator::Costs as _;
use statistics::median;

use crate::parameters::{
    Combining, Knot, MessageCosts, Network, PLogP, ParametersError, PointToPointParameters,
};

/// What several pairs did in one job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairsRate {
    /// Pairs of ranks that send at once, from one node to another.
    pub pairs: u32,
    pub bytes: u64,
    /// Of all pairs together.
    pub messages_per_second: f64,
}

/// The port at one message size.
#[derive(Debug, Clone, PartialEq)]
pub struct PortKnot {
    /// The message size.
    pub bytes: u64,
    /// g(m): seconds between two messages of a pair that is alone.
    pub pair_gap: f64,
    /// G(m): seconds that a message takes the port, at most `pair_gap`.
    pub port_gap: f64,
    /// For each number of pairs, how much longer they took than that says: 0.1 is a tenth.
    pub deviations: Vec<(u32, f64)>,
}

impl PortKnot {
    /// Seconds between two messages of each of so many pairs.
    pub fn seconds(&self, pairs: u32) -> f64 {
        self.pair_gap.max(f64::from(pairs) * self.port_gap)
    }
}

/// The port at each message size, ascending: the two gaps that make the least sum of deviations
/// (their logarithms' absolute values) over all numbers of pairs, each given by the median of its jobs.
///
/// # Errors
/// A rate or a number of pairs is not above 0, or a size was measured with one number of pairs only.
pub fn fit(rates: &[PairsRate]) -> Result<Vec<PortKnot>, ParametersError> {
    let mut by_size: BTreeMap<u64, BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for rate in rates {
        let PairsRate { pairs, bytes, messages_per_second } = *rate;
        if pairs == 0 || !(messages_per_second.is_finite() && messages_per_second > 0.0) {
            return Err(wrong(format!(
                "{pairs} pairs with {messages_per_second} messages of {bytes} bytes a second; \
                 expected more than 0 of both"
            )));
        }
        let seconds = f64::from(pairs) / messages_per_second;
        by_size.entry(bytes).or_default().entry(pairs).or_default().push(seconds);
    }
    by_size.into_iter().map(|(bytes, jobs)| knot(bytes, &jobs)).collect()
}

/// The port's gaps are those of a node's level.
fn wrong(problem: String) -> ParametersError {
    ParametersError { field: "inside.port".into(), problem }
}

fn knot(bytes: u64, jobs: &BTreeMap<u32, Vec<f64>>) -> Result<PortKnot, ParametersError> {
    let of_pairs = |(pairs, jobs): (&u32, &Vec<f64>)| median(jobs).map(|seconds| (*pairs, seconds));
    let times: Vec<(u32, f64)> = jobs.iter().filter_map(of_pairs).collect();
    if times.len() < 2 {
        return Err(wrong(format!(
            "messages of {bytes} bytes with one number of pairs only; expected two or more"
        )));
    }
    // The sum is convex between the points at which one of its terms vanishes: the least is at some.
    let mut best: Option<(f64, PortKnot)> = None;
    for (_, pair_gap) in &times {
        for (pairs, seconds) in &times {
            let port_gap = (seconds / f64::from(*pairs)).min(*pair_gap);
            let mut knot =
                PortKnot { bytes, pair_gap: *pair_gap, port_gap, deviations: Vec::new() };
            let ratios =
                times.iter().map(|(pairs, seconds)| (*pairs, seconds / knot.seconds(*pairs)));
            let ratios: Vec<(u32, f64)> = ratios.collect();
            let sum = ratios.iter().map(|(_, ratio)| ratio.ln().abs()).sum();
            if best.as_ref().is_none_or(|(least, _)| sum < *least) {
                knot.deviations =
                    ratios.iter().map(|(pairs, ratio)| (*pairs, ratio - 1.0)).collect();
                best = Some((sum, knot));
            }
        }
    }
    best.map(|(_, knot)| knot).ok_or_else(|| wrong(format!("no times of {bytes} bytes")))
}

/// The port from a calibration's gaps, those of one way; none where no two numbers of ranks were
/// measured at any size. Beyond the sizes measured a message takes the same part of what one pair
/// takes by `between`.
///
/// # Errors
/// A number of ranks is 0.
pub fn of_gaps(gaps: &[PortGap], between: &Network) -> Result<Option<Network>, ParametersError> {
    let one_way = gaps.iter().filter(|gap| !gap.both_ways);
    let rates = one_way.flat_map(|gap| {
        gap.knots.iter().map(|knot| PairsRate {
            pairs: gap.ranks,
            bytes: knot.bytes,
            messages_per_second: f64::from(gap.ranks) / knot.gap_seconds.value,
        })
    });
    // A gap of 0, lost in noise, tells nothing.
    let rates: Vec<PairsRate> = rates.filter(|rate| rate.messages_per_second.is_finite()).collect();
    let is_shared = |rate: &&PairsRate| {
        rates.iter().any(|other| other.bytes == rate.bytes && other.pairs != rate.pairs)
    };
    let shared: Vec<PairsRate> = rates.iter().filter(is_shared).copied().collect();
    if shared.is_empty() {
        return Ok(None);
    }
    let mut knots = fit(&shared)?;
    if let (Some(first), Some(last)) = (knots.first().cloned(), knots.last().cloned()) {
        /// Costs are lines beyond the last size of a calibration.
        const FAR: u64 = 1 << 40;
        let sizes = || between.knots().into_iter().chain([0, FAR]);
        let below = sizes().filter(|bytes| *bytes < first.bytes);
        let beyond = sizes().filter(|bytes| *bytes > last.bytes);
        let with = |like: &PortKnot, bytes: u64| {
            let pair_gap = between.gap(bytes, 1);
            let port_gap = pair_gap * like.port_gap / like.pair_gap;
            PortKnot { bytes, pair_gap, port_gap, deviations: Vec::new() }
        };
        let below: Vec<PortKnot> = below.map(|bytes| with(&first, bytes)).collect();
        knots.extend(below.into_iter().chain(beyond.map(|bytes| with(&last, bytes))));
        knots.sort_by_key(|knot| knot.bytes);
        knots.dedup_by_key(|knot| knot.bytes);
    }
    Ok(Some(network(&knots)?))
}

/// The port as [`LevelledNetwork::port`](crate::simulated::LevelledNetwork::port) has it: between the
/// sizes its gap is linear.
///
/// # Errors
/// There is no knot.
pub fn network(knots: &[PortKnot]) -> Result<Network, ParametersError> {
    let costs = |gap| MessageCosts { send: 0.0, receive: 0.0, gap };
    let knots = knots.iter().map(|knot| Knot { bytes: knot.bytes, costs: costs(knot.port_gap) });
    let knots: Vec<Knot> = knots.collect();
    let port = PLogP::new(0.0, &knots).map_err(|error| wrong(error.to_string()))?;
    let model = PointToPointParameters::PLogP(port);
    Ok(Network { model, combining: Combining::per_byte(0.0), memory: None })
}
