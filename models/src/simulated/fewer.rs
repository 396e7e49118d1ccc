//! Long calls on many nodes: what is simulated on few of them, and with few segments, goes on as closed forms do.
//!
//! # What is computed
//! T of a call is T of the same on half of its nodes, and the difference between that half and a quarter, times
//! what a closed form of the algorithm, which knows no nodes, grows by from the half to the whole for what it grows by from
//! the quarter to the half:
//!
//! ```text
//! T(N) = T(N/2) + (F(N) - F(N/2)) / (F(N/2) - F(N/4)) * (T(N/2) - T(N/4))
//! ```
//!
//! A tree grows by a step with each doubling, a ring by as many as it has ranks: the form says which, the simulation how
//! much a step takes. Of an algorithm composed by node, the form is that of its part between nodes. Without any form it
//! grows with the ranks where each has a part of its own, and else by a step for each doubling. The same holds of
//! segments, all of one size; without a form each takes as long as the one before. The errors are in the tests.

use records::{Algorithm, Layout, OwnMethod};
use schedules::Round;

use super::{FoundTime, LevelledNetwork, SimulateError, SimulatedCall};
use crate::{
    Forms,
    closed_forms::{CallShape, refined},
};

/// Calls of fewer steps are simulated as they are: some milliseconds.
const MAX_STEPS: f64 = (1_u64 << 13) as f64;
/// At least as many nodes, and half of them, are simulated; more where that is short.
const NODES: u32 = 4;
/// At least as many ranks of each node are simulated to find what the ends of the parameters' intervals do.
const LOCAL_RANKS: u32 = 6;
/// As many segments, and half of them, are simulated.
const SEGMENTS: u64 = 8;
/// The most that a call may grow by for what its half did.
const MOST_GROWTH: f64 = 8.0;

/// What of a long call is not simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fewer {
    /// All of it is.
    Nothing,
    /// Some of its segments, with the parameters at the ends of their intervals: all of it is at their values.
    SegmentsAtEnds,
    /// Some of its segments.
    Segments,
    /// Some of its nodes, too.
    Nodes,
}

impl SimulatedCall {
    /// As [`SimulatedCall::times_on_levels`]; of a long call by fewer nodes and segments, where it can be made less.
    ///
    /// # Errors
    /// As [`SimulatedCall::times_on_levels`], of what is simulated.
    pub(crate) fn times_by_fewer(
        &self,
        networks: &[&LevelledNetwork],
        fewer: Fewer,
        until: f64,
    ) -> Result<Vec<FoundTime>, SimulateError> {
        let is_whole = matches!(fewer, Fewer::Nothing | Fewer::SegmentsAtEnds);
        if is_whole || !self.is_long_on_nodes() {
            return self.times_on_levels(networks, until);
        }
        let on_nodes = |call: &SimulatedCall, until: f64| match fewer {
            Fewer::Nodes => {
                let halves = call.halves(SimulatedCall::half_of_nodes);
                grown(&halves, networks, until, |call, until| call.times_on_levels(networks, until))
            }
            _ => call.times_on_levels(networks, until),
        };
        let half = |call: &SimulatedCall| match fewer {
            Fewer::Segments if call.is_short() => None,
            _ => call.half_of_segments(),
        };
        grown(&self.halves(half), networks, until, on_nodes)
    }

    /// How many times as long as with the first network the call takes with each of the others: by fewer segments, where
    /// only the ends of intervals are wanted so; else on the fewest nodes and with the fewest segments, and where fewer
    /// nodes are simulated, with few ranks on each.
    ///
    /// # Errors
    /// As [`SimulatedCall::seconds`], of what is simulated.
    pub(crate) fn ratios_by_fewer(
        &self,
        networks: &[&LevelledNetwork],
        fewer: Fewer,
    ) -> Result<Vec<f64>, SimulateError> {
        let times = match fewer {
            Fewer::SegmentsAtEnds => {
                self.times_by_fewer(networks, Fewer::Segments, f64::INFINITY)?
            }
            _ => self.fewest(fewer).times_on_levels(networks, f64::INFINITY)?,
        };
        let first = times[0].seconds;
        let ratio = |time: &FoundTime| if first > 0.0 { time.seconds / first } else { 1.0 };
        Ok(times[1..].iter().map(ratio).collect())
    }

    /// On the fewest nodes and with the fewest segments; where fewer nodes are simulated, with few ranks on each.
    fn fewest(&self, fewer: Fewer) -> SimulatedCall {
        let few = self.smallest(SimulatedCall::half_of_segments);
        let few = few.smallest(SimulatedCall::half_of_all_nodes);
        match fewer {
            Fewer::Nodes => few.smallest(SimulatedCall::half_of_local_ranks),
            _ => few,
        }
    }

    /// Whether both are one schedule under two names: so are compositions by node none of whose phases has an algorithm of
    /// the name between nodes. All rounds of some ranks are compared, with the fewest segments.
    pub(crate) fn is_same_schedule(&self, other: &SimulatedCall) -> bool {
        let named_alike = |call: &SimulatedCall| {
            let method = OwnMethod { inter: None, ..call.method };
            (call.entry.collective, method, call.bytes, call.root, call.layout)
        };
        if !self.entry.algorithm.is_node_aware() || named_alike(self) != named_alike(other) {
            return false;
        }
        let [one, other] = [self, other].map(|call| call.smallest(SimulatedCall::half_of_segments));
        let tables = one.tables();
        let calls = [one.call(&tables), other.call(&tables)];
        let mut ranks = [0, self.root, self.procs / 2, self.procs - 1].to_vec();
        ranks.dedup();
        ranks.into_iter().all(|rank| {
            let mut rounds = [Round::default(), Round::default()];
            (0..).find_map(|index| {
                let mut next = |place: usize| {
                    let is_there = self.entry.round(&calls[place], rank, index, &mut rounds[place]);
                    is_there && !rounds[place].is_last()
                };
                let goes_on = [next(0), next(1)];
                let is_same = goes_on[0] == goes_on[1]
                    && rounds[0].steps() == rounds[1].steps()
                    && rounds[0].destinations() == rounds[1].destinations();
                (!is_same || !goes_on[0]).then_some(is_same)
            }) == Some(true)
        })
    }

    /// Whether [`SimulatedCall::times_by_fewer`] takes less.
    pub(crate) fn is_long_on_nodes(&self) -> bool {
        self.rendezvous.is_none() && self.steps().is_ok_and(|steps| steps > MAX_STEPS)
    }

    /// The call, its half, the half of that, as far as it goes.
    fn halves(&self, half: impl Fn(&SimulatedCall) -> Option<SimulatedCall>) -> Vec<SimulatedCall> {
        std::iter::successors(Some(*self), half).collect()
    }

    /// The last of its halves.
    fn smallest(&self, half: impl Fn(&SimulatedCall) -> Option<SimulatedCall>) -> SimulatedCall {
        self.halves(half).pop().unwrap_or(*self)
    }

    /// Whether half of it would be less than needs to be.
    fn is_short(&self) -> bool {
        self.steps().is_ok_and(|steps| steps <= MAX_STEPS / 2.0)
    }

    /// On half of the nodes, where all hold as many ranks and it is not short.
    fn half_of_nodes(&self) -> Option<SimulatedCall> {
        if self.is_short() { None } else { self.half_of_all_nodes() }
    }

    fn half_of_all_nodes(&self) -> Option<SimulatedCall> {
        let layout = self.layout.filter(|layout| layout.nodes() >= NODES)?;
        self.on_nodes(layout.nodes() / 2, layout.per_node()?)
    }

    /// With half of the ranks on each node, where these are not few.
    fn half_of_local_ranks(&self) -> Option<SimulatedCall> {
        let layout = self.layout?;
        let per_node = layout.per_node().filter(|ranks| *ranks >= 2 * LOCAL_RANKS)?;
        self.on_nodes(layout.nodes(), per_node / 2)
    }

    /// With as many ranks on each of so many nodes.
    fn on_nodes(&self, nodes: u32, per_node: u32) -> Option<SimulatedCall> {
        let layout = self.layout?;
        let half = Layout::even(nodes, per_node, layout.placement()?).ok()?;
        let procs = half.procs();
        // As far among its ranks.
        let root = (u64::from(self.root) * u64::from(procs) / u64::from(self.procs)) as u32;
        // Of algorithms that scatter the message first, the parts stay as long.
        let bytes = match self.entry.algorithm {
            Algorithm::ScatterAllgather | Algorithm::ScatterAllgatherRing => self.bytes / 2,
            _ => self.bytes,
        };
        Some(SimulatedCall { layout: Some(half), procs, root, bytes, ..*self })
    }

    /// With half of the segments, where these are not few.
    fn half_of_segments(&self) -> Option<SimulatedCall> {
        let segment = self.method.segment_bytes;
        let is_cut = self.entry.segmented && segment > 0;
        let whole = segment * self.parts_cut();
        let bytes = self.bytes / 2 / whole.max(1) * whole;
        (is_cut && 2 * bytes >= SEGMENTS * whole).then_some(SimulatedCall { bytes, ..*self })
    }

    /// Parts of the message that are cut into segments each by itself: those of the lanes, and those that a segmented ring
    /// of ranks, or of nodes, combines.
    fn parts_cut(&self) -> u64 {
        let OwnMethod { algorithm, inter, .. } = self.method;
        let nodes = self.layout.map_or(self.procs, |layout| layout.nodes());
        let lanes = match algorithm {
            Algorithm::MultiLane => self.layout.map_or(1, |layout| layout.max_per_node()),
            _ => 1,
        };
        let in_ring = match (algorithm, inter) {
            (Algorithm::SegmentedRing, _) => self.procs,
            (_, Some(Algorithm::SegmentedRing)) => nodes,
            _ => 1,
        };
        u64::from(lanes) * u64::from(in_ring)
    }

    /// Whether each rank has a part of its own.
    fn grows_with_ranks(&self) -> bool {
        self.entry.collective.data_bytes(1, 2) > 1
    }

    /// What a closed form takes that grows as the call does, in seconds; none where there is none.
    pub(crate) fn form_seconds(&self, network: &LevelledNetwork) -> Option<f64> {
        let algorithm = self.entry.algorithm;
        let (algorithm, ranks) = match algorithm.is_node_aware() {
            true => (self.method.inter?, self.layout?.nodes()),
            false => (algorithm, self.procs),
        };
        let form = refined::form(self.entry.collective, algorithm, ranks)?;
        let segment = if form.segmented { self.method.segment_bytes } else { 0 };
        let shape = CallShape::new(ranks, self.bytes, segment).with_fan_out(self.method.fan_out);
        Some(form.seconds(&network.between, &shape, Forms::Corrected))
    }
}

/// The times of the first call by those of the last two, each half of the one before; of a single one, or two, its own.
/// No call takes less than its half.
fn grown(
    halves: &[SimulatedCall],
    networks: &[&LevelledNetwork],
    until: f64,
    times: impl Fn(&SimulatedCall, f64) -> Result<Vec<FoundTime>, SimulateError>,
) -> Result<Vec<FoundTime>, SimulateError> {
    let [half, quarter] = match halves.split_last_chunk::<2>() {
        Some((rest, last)) if !rest.is_empty() => last,
        _ => return times(&halves[0], until),
    };
    let forms: Vec<GrowingForms> =
        networks.iter().map(|network| GrowingForms::of(halves, network)).collect();
    let of_quarter = times(quarter, until)?;
    // The call takes longer than `until` if its half takes longer than this.
    let most = |(form, quarter): (&GrowingForms, &FoundTime)| {
        let growth = form.of_difference();
        (until + growth * quarter.seconds) / (1.0 + growth)
    };
    let until = if until.is_finite() {
        forms.iter().zip(&of_quarter).map(most).fold(0.0, f64::max)
    } else {
        until
    };
    let of_half = times(half, until)?;
    let of_network = |place: usize| {
        let (mut at, mut before) = (of_half[place].seconds, of_quarter[place].seconds);
        for growth in &forms[place].0 {
            (before, at) = (at, at + growth * (at - before).max(0.0));
        }
        let messages = of_half[place].messages + of_quarter[place].messages;
        FoundTime { seconds: at, messages }
    };
    Ok((0..networks.len()).map(of_network).collect())
}

/// From a call's half on, how many times as much it grows by with each doubling as with the one before.
struct GrowingForms(Vec<f64>);

impl GrowingForms {
    /// The first of `halves` is the call; at least three.
    fn of(halves: &[SimulatedCall], network: &LevelledNetwork) -> Self {
        let forms: Vec<Option<f64>> =
            halves.iter().map(|call| call.form_seconds(network)).collect();
        let growth = |place: usize| {
            let [call, half, quarter] = [0, 1, 2].map(|further| &halves[place + further]);
            match (forms[place], forms[place + 1], forms[place + 2]) {
                (Some(here), Some(half), Some(quarter)) if half > quarter => {
                    ((here - half) / (half - quarter)).clamp(0.0, MOST_GROWTH)
                }
                // Each segment takes as long as the one before.
                _ if call.procs == half.procs => {
                    let more = (call.bytes - half.bytes) as f64;
                    more / (half.bytes - quarter.bytes).max(1) as f64
                }
                // What is moved grows with the ranks, or a message hears of each doubling.
                _ if call.grows_with_ranks() => 2.0,
                _ => 1.0,
            }
        };
        GrowingForms((0..halves.len() - 2).rev().map(growth).collect())
    }

    /// How many times what the half takes more than the quarter the call takes more than its half.
    fn of_difference(&self) -> f64 {
        let products = self.0.iter().scan(1.0, |product, growth| {
            *product *= growth;
            Some(*product)
        });
        products.sum()
    }
}
