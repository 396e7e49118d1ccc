//! What ranks of one node do to each other, by the times of collectives of known algorithms there.
//!
//! # What is computed
//! A message takes alpha + beta m while the others are idle, and its sender's and its receiver's processor a part
//! of that each. While b ranks are busy everything takes (b / 2)^s times as long. Where as many consecutive ranks
//! share a cache, messages between them are not slowed down, and slow nobody down. Searched for are alpha, beta, the
//! two parts and s with which simulations of the schedules ([`MemoryParameters`]) take as long as was measured: the
//! sum of Huber's function of ln(measured / simulated) over [`SPREAD`] is the least, with a wide prior as in
//! [`joint`](super::joint()), whose combining rate it takes. Caches are looked for by all even divisions of the
//! ranks, and believed where they make the times more probable by at least a factor e (Akaike's criterion).
//! What messages between nodes take, alpha and beta, is searched for after that in the same way, by simulations of
//! several nodes with this memory inside: a fit without it takes what ranks of a node do to each other for the network.
//! No algorithm has a factor of its own. Where the times are means over the ranks ([`OverRanks`]), so is what is
//! simulated; what is found holds for the greatest, too.
//!
//! # Intervals
//! None: hundreds of fits would take an hour.

use std::collections::{BTreeMap, BTreeSet};

use records::{
    Collective, Layout, Method, Point,
    calibration::{
        CopyKnot, CopyTimes, Estimate, MemoryMessageKnot, MemoryParameters, Parameters, Slowdown,
        SlowdownKnot,
    },
};
use schedules::simulator::{Outcome, simulate_in_memory};
use statistics::{mean, median};

use super::joint::{JobTime, PARAMETER_SPREAD, SPREAD, of_messages, simulated_call};
use crate::{
    Model,
    minimise::{descend, huber},
    parameters::Network,
    simulated::{CallTables, LevelledNetwork, SimulatedCall},
};

/// On fewer ranks nobody slows others down.
const MIN_RANKS: u32 = 4;
/// Of more ranks, and of calls of more steps, one simulation takes some milliseconds: those of a fit would take an
/// hour.
const MAX_RANKS: u32 = 256;
const MAX_STEPS: f64 = (1_u64 << 14) as f64;
/// A single call is simulated in less than a second.
const MAX_STEPS_OF_ONE: f64 = (1_u64 << 19) as f64;
/// Numbers of ranks that are looked at, from the greatest on by about halves, and sizes of each method: a fit
/// simulates each of their calls some thousand times.
const MAX_PROCS: usize = 4;
const MAX_SIZES: usize = 5;
/// With fewer times five parameters tell nothing.
const MIN_TIMES: usize = 20;
/// Between here and 0 all costs are lines, and beyond they go on.
const FAR: u64 = 1 << 20;
/// Rounds of the search, and of those that begin where the first one ended.
const ROUNDS: usize = 40;
const MORE_ROUNDS: usize = 12;

/// What a time is over the ranks of a call, which all begin at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverRanks {
    /// Until the last one is done.
    #[default]
    Greatest,
    /// The mean of all: OSU's benchmarks tell that.
    Mean,
}

impl OverRanks {
    fn of(self, outcome: &Outcome) -> f64 {
        match self {
            OverRanks::Greatest => outcome.seconds,
            OverRanks::Mean => mean(&outcome.finish).unwrap_or(outcome.seconds),
        }
    }
}

/// What the times say.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeFit {
    pub memory: MemoryParameters,
    /// s: while b ranks are busy a message takes (b / 2)^s times as long.
    pub slowdown_exponent: f64,
    /// Median of |measured / simulated - 1|.
    pub median_error: f64,
    /// Times that it rests on.
    pub times: usize,
    /// What these are, and what is told by it.
    pub over: OverRanks,
    /// What messages between nodes take, where several nodes of several ranks were timed.
    pub between: Option<Parameters>,
    /// With this memory inside its nodes.
    network: LevelledNetwork,
}

impl NodeFit {
    /// What a method takes where ranks share memory, in seconds; none where its schedule is not known or too long, and on
    /// several nodes where messages between these are not known.
    pub fn seconds(&self, point: Point, method: &Method) -> Option<f64> {
        let Point { layout, .. } = point;
        let call = simulated_call(point, method)?;
        let shares_memory = layout.nodes() == 1 || (self.between.is_some() && !layout.is_flat());
        if !shares_memory || call.steps().ok()? > MAX_STEPS_OF_ONE {
            return None;
        }
        let outcome = call.simulate_levels(&self.network, |_| {}).ok()?;
        Some(self.over.of(&outcome)).filter(|seconds| *seconds > 0.0)
    }
}

/// A call, with its time in seconds.
struct TimedCall {
    call: SimulatedCall,
    tables: CallTables,
    seconds: f64,
}

impl TimedCall {
    fn new(point: Point, method: &Method, seconds: &[f64]) -> Option<Self> {
        let call = simulated_call(point, method)?;
        let tables = call.tables();
        Some(TimedCall { call, tables, seconds: median(seconds)? })
    }

    /// Seconds on one node of this network; none where the algorithm cannot serve the call.
    fn simulated(&self, network: &Network, over: OverRanks) -> Option<f64> {
        let call = self.call.call(&self.tables);
        let costs = (network.memory.as_deref()?, network);
        let bytes = self.call.element_bytes();
        let outcome = simulate_in_memory(self.call.entry, &call, costs, bytes, |_| {}).ok()?;
        Some(over.of(&outcome)).filter(|seconds| *seconds > 0.0)
    }

    /// Seconds on several nodes; none where the algorithm cannot serve the call.
    fn simulated_on_nodes(&self, network: &LevelledNetwork, over: OverRanks) -> Option<f64> {
        let outcome = self.call.simulate_levels(network, |_| {}).ok()?;
        Some(over.of(&outcome)).filter(|seconds| *seconds > 0.0)
    }
}

/// Fits to the times on one node with four ranks and more; none where these are few. `joint` is what was fitted to
/// them without memory: the search begins there, and of messages between nodes, where several were timed, at `between`.
pub fn on_one_node(
    times: &[JobTime],
    over: OverRanks,
    joint: &Parameters,
    between: Option<&Parameters>,
) -> Option<NodeFit> {
    let calls = calls(times, |layout| layout.nodes() == 1);
    let most = calls.iter().map(|call| call.call.procs).max()?;
    if calls.len() < MIN_TIMES {
        return None;
    }
    let network = |memory: MemoryParameters| {
        let parameters = Parameters { memory: Some(memory), ..joint.clone() };
        Network::new(Model::Refined, &parameters).ok()
    };
    let start = Costs {
        alpha: joint.hockney.alpha_seconds.value.max(super::MIN_SECONDS),
        beta: joint.hockney.beta_seconds_per_byte.value.max(super::MIN_SECONDS_PER_BYTE),
        send: 0.5,
        receive: 0.5,
        exponent: 0.5,
    };
    // Sender and receiver one after the other, and both at the same time: what lies between is a ridge.
    let starts = [-0.5, 1.0].map(|odds| [0.0, 0.0, odds, odds, 0.0]);
    let errors = |costs: &Costs, cache: Option<u32>| -> Option<Vec<f64>> {
        let network = network(costs.memory(most, cache))?;
        let error = |call: &TimedCall| Some((call.seconds / call.simulated(&network, over)?).ln());
        Some(calls.iter().filter_map(error).collect())
    };
    let search = |from: &[f64], rounds: usize, cache: Option<u32>| {
        descend(from, rounds, |at| {
            let Some(errors) = errors(&start.moved(at), cache) else { return f64::INFINITY };
            improbability(errors, at)
        })
    };
    let found = starts.iter().map(|start| search(start, ROUNDS, None));
    let (mut least, mut best) = found.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let mut cache = None;
    let without = best.clone();
    let divisions = (2..most).filter(|ranks| most.is_multiple_of(*ranks));
    for ranks in divisions {
        let (sum, at) = search(&without, MORE_ROUNDS, Some(ranks));
        // One parameter more.
        let sum = sum + 1.0;
        if sum < least {
            (least, best, cache) = (sum, at, Some(ranks));
        }
    }
    if cache.is_some() {
        (_, best) = search(&best, ROUNDS, cache);
    }
    let costs = start.moved(&best);
    let errors = errors(&costs, cache)?;
    let relative: Vec<f64> = errors.iter().map(|error| (error.exp() - 1.0).abs()).collect();
    let memory = costs.memory(most, cache);
    let mut network = LevelledNetwork::of_one_level(network(memory.clone())?);
    let between = match between {
        Some(start) => Some(between_nodes(times, over, start, &mut network)?),
        None => None,
    };
    Some(NodeFit {
        memory,
        slowdown_exponent: costs.exponent,
        median_error: median(&relative)?,
        times: relative.len(),
        over,
        between,
        network,
    })
}

/// Of errors, ln(measured / simulated), with parameters so far from where they were looked for first: the sum that is
/// to be the least.
fn improbability(errors: impl IntoIterator<Item = f64>, moved: &[f64]) -> f64 {
    let prior = moved.iter().map(|moved| (moved / PARAMETER_SPREAD).powi(2) / 2.0);
    errors.into_iter().map(|error| huber(error / SPREAD).0).chain(prior).sum()
}

/// What messages between nodes take with this memory inside, which `network` gets, too. As `start` says where few
/// times of several nodes are simulated.
fn between_nodes(
    times: &[JobTime],
    over: OverRanks,
    start: &Parameters,
    network: &mut LevelledNetwork,
) -> Option<Parameters> {
    let calls = calls(times, |layout| layout.nodes() > 1 && !layout.is_flat());
    let moved = |at: &[f64]| {
        let estimate =
            |from: Estimate, least: f64, by: f64| Estimate::exact(from.value.max(least) * by.exp());
        let hockney = &start.hockney;
        let alpha = estimate(hockney.alpha_seconds, super::MIN_SECONDS, at[0]);
        let beta = estimate(hockney.beta_seconds_per_byte, super::MIN_SECONDS_PER_BYTE, at[1]);
        let gamma_seconds_per_byte = start.gamma_seconds_per_byte;
        Parameters { gamma_seconds_per_byte, ..of_messages(alpha, beta) }
    };
    let sum = |at: &[f64]| {
        let Ok(between) = Network::new(Model::Refined, &moved(at)) else { return f64::INFINITY };
        let network = LevelledNetwork { between, ..network.clone() };
        let error =
            |call: &TimedCall| Some((call.seconds / call.simulated_on_nodes(&network, over)?).ln());
        improbability(calls.iter().filter_map(error), at)
    };
    let found = match calls.len() < MIN_TIMES {
        true => start.clone(),
        false => moved(&descend(&[0.0; 2], ROUNDS, sum).1),
    };
    network.between = Network::new(Model::Refined, &found).ok()?;
    Some(found)
}

/// The calls that are simulated: medians over jobs, of some numbers of ranks and some sizes.
fn calls(times: &[JobTime], is_wanted: impl Fn(Layout) -> bool) -> Vec<TimedCall> {
    let of_layout = |time: &&JobTime| {
        let Point { layout, bytes, .. } = time.point;
        is_wanted(layout)
            && (MIN_RANKS..=MAX_RANKS).contains(&layout.procs())
            && bytes > 0
            && time.seconds > 0.0
    };
    let mut cells: BTreeMap<(Point, &Method), Vec<f64>> = BTreeMap::new();
    for time in times.iter().filter(of_layout) {
        cells.entry((time.point, &time.method)).or_default().push(time.seconds);
    }
    let known: Vec<TimedCall> = cells
        .into_iter()
        .filter_map(|((point, method), seconds)| TimedCall::new(point, method, &seconds))
        .filter(|timed| timed.call.steps().is_ok_and(|steps| steps <= MAX_STEPS))
        .collect();
    let procs: BTreeSet<u32> = known.iter().map(|call| call.call.procs).collect();
    let procs = halving(&procs);
    let mut sizes: BTreeMap<(Collective, usize), BTreeSet<u64>> = BTreeMap::new();
    let line =
        |call: &SimulatedCall| (call.entry.collective, std::ptr::from_ref(call.entry).addr());
    for TimedCall { call, .. } in &known {
        sizes.entry(line(call)).or_default().insert(call.bytes);
    }
    let sizes: BTreeMap<_, Vec<u64>> =
        sizes.into_iter().map(|(line, sizes)| (line, spread_out(&sizes))).collect();
    let is_wanted = |TimedCall { call, .. }: &TimedCall| {
        procs.contains(&call.procs) && sizes[&line(call)].contains(&call.bytes)
    };
    known.into_iter().filter(is_wanted).collect()
}

/// The greatest, and those next to a half, a quarter, ... of it.
fn halving(procs: &BTreeSet<u32>) -> Vec<u32> {
    let most = procs.last().copied().unwrap_or_default();
    let mut chosen: Vec<u32> = (0..MAX_PROCS)
        .filter_map(|half| procs.iter().copied().min_by_key(|one| one.abs_diff(most >> half)))
        .collect();
    chosen.dedup();
    chosen
}

/// At most so many, among them the least and the greatest.
fn spread_out(sizes: &BTreeSet<u64>) -> Vec<u64> {
    let sizes: Vec<u64> = sizes.iter().copied().collect();
    if sizes.len() <= MAX_SIZES {
        return sizes;
    }
    (0..MAX_SIZES).map(|place| sizes[place * (sizes.len() - 1) / (MAX_SIZES - 1)]).collect()
}

/// What is searched for.
#[derive(Debug, Clone, Copy)]
struct Costs {
    /// Seconds.
    alpha: f64,
    /// Seconds per byte.
    beta: f64,
    /// Parts of a message's time.
    send: f64,
    receive: f64,
    exponent: f64,
}

impl Costs {
    /// By so much on a logarithmic scale; parts stay between 0 and 1.
    fn moved(self, by: &[f64]) -> Self {
        let part = |from: f64, by: f64| {
            let odds = from / (1.0 - from) * by.exp();
            odds / (1.0 + odds)
        };
        Costs {
            alpha: self.alpha * by[0].exp(),
            beta: self.beta * by[1].exp(),
            send: part(self.send, by[2]),
            receive: part(self.receive, by[3]),
            exponent: self.exponent * by[4].exp(),
        }
    }

    /// Of so many ranks at most.
    fn memory(self, most: u32, ranks_per_cache: Option<u32>) -> MemoryParameters {
        let Costs { alpha, beta, send, receive, exponent } = self;
        let exact = Estimate::exact;
        let message = |bytes: u64| {
            let trip = alpha + beta * bytes as f64;
            MemoryMessageKnot {
                bytes,
                trip_seconds: exact(trip),
                send_seconds: exact(send * trip),
                receive_seconds: exact(receive * trip),
            }
        };
        let factor = |busy: u32| (f64::from(busy.max(2)) / 2.0).powf(exponent);
        // The next power of two, too: up to there lines lead.
        let busy: Vec<u32> =
            (2..32).map(|power| 1 << power).take_while(|it| *it < 2 * most).collect();
        let slowdown = busy.iter().map(|&busy_ranks| Slowdown {
            busy_ranks,
            knots: vec![SlowdownKnot { bytes: FAR, factor: exact(factor(busy_ranks)) }],
        });
        // A message is copied twice.
        let copies = [1].iter().chain(&busy).map(|&busy_ranks| {
            let copy = |bytes: u64| CopyKnot {
                bytes,
                seconds: exact(beta / 2.0 * bytes as f64 * factor(busy_ranks)),
            };
            CopyTimes { busy_ranks, knots: vec![copy(1), copy(FAR)] }
        });
        MemoryParameters {
            messages: vec![message(0), message(FAR)],
            slowdown: slowdown.collect(),
            copies: copies.collect(),
            combining_start_seconds: None,
            ranks_per_cache,
            shared: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Forms, Predictor, presets::preset};

    /// Times by the simulation with known costs are met by what is found, whatever the search began with.
    #[test]
    fn what_a_node_does_is_found_again() {
        let joint = Parameters { memory: None, ..preset("frodo").unwrap().measured };
        for cache in [None, Some(4)] {
            let truth = Costs { alpha: 3e-7, beta: 1e-10, send: 0.6, receive: 0.4, exponent: 0.8 };
            let with = Parameters { memory: Some(truth.memory(32, cache)), ..joint.clone() };
            let predictor = Predictor::new(Model::Refined, Forms::Corrected, &with).unwrap();
            let mut times = Vec::new();
            for name in ["linear", "binomial", "pipeline", "binary", "k-chain"] {
                for procs in [8, 16, 32] {
                    for bytes in [1 << 12, 1 << 14, 1 << 16] {
                        let point = Point {
                            layout: format!("1x{procs}").parse().unwrap(),
                            ..Point::flat(Collective::Bcast, procs, bytes)
                        };
                        let method: Method = format!("native:openmpi:{name}").parse().unwrap();
                        let seconds = predictor.predict_method_seconds(point, &method).unwrap();
                        times.push(JobTime { point, method, seconds, job: 0 });
                    }
                }
            }
            let fit = on_one_node(&times, OverRanks::Greatest, &joint, None).unwrap();
            assert_eq!((fit.times, fit.memory.ranks_per_cache), (45, cache));
            assert!(fit.median_error < 0.03, "{cache:?}: {fit:?}");
            assert!((fit.slowdown_exponent - 0.8).abs() < 0.1, "{cache:?}: {fit:?}");
            let far = fit.memory.messages[1].trip_seconds.value;
            assert!((far / (1e-10 * f64::from(1 << 20))).ln().abs() < 0.1, "{cache:?}: {fit:?}");
        }
    }

    /// Messages between nodes are found beside the copies inside, wherever the search begins.
    #[test]
    fn what_a_message_between_nodes_takes_is_found_beside_the_memory() {
        let joint = Parameters { memory: None, ..preset("frodo").unwrap().measured };
        let memory = Costs { alpha: 3e-7, beta: 1e-10, send: 0.6, receive: 0.4, exponent: 0.8 };
        let inside = Parameters { memory: Some(memory.memory(16, None)), ..joint.clone() };
        let inside = Network::new(Model::Refined, &inside).unwrap();
        let of = |alpha: f64, beta: f64| of_messages(Estimate::exact(alpha), Estimate::exact(beta));
        let between = Network::new(Model::Refined, &of(2e-6, 2e-10)).unwrap();
        let network = LevelledNetwork { inside, between, port: None };
        let mut times = Vec::new();
        for name in ["linear", "binomial", "pipeline", "binary", "k-chain"] {
            for layout in ["1x8", "1x16", "2x4", "2x8", "2x8:cyclic"] {
                for bytes in [1 << 12, 1 << 14, 1 << 16] {
                    let layout: Layout = layout.parse().unwrap();
                    let point =
                        Point { layout, ..Point::flat(Collective::Bcast, layout.procs(), bytes) };
                    let method: Method = format!("native:openmpi:{name}").parse().unwrap();
                    let call = simulated_call(point, &method).unwrap();
                    let seconds = call.simulate_levels(&network, |_| {}).unwrap().seconds;
                    times.push(JobTime { point, method, seconds, job: 0 });
                }
            }
        }
        for start in [of(2e-7, 1e-11), of(1e-5, 1e-9)] {
            let fit = on_one_node(&times, OverRanks::Greatest, &joint, Some(&start)).unwrap();
            let found = fit.between.unwrap().hockney;
            let near = |found: Estimate, truth: f64| (found.value / truth).ln().abs() < 0.1;
            assert!(near(found.alpha_seconds, 2e-6), "{found:?}");
            assert!(near(found.beta_seconds_per_byte, 2e-10), "{found:?}");
        }
    }

    #[test]
    fn several_nodes_and_few_times_tell_nothing() {
        let joint = preset("frodo").unwrap().measured;
        let time = |layout: &str, bytes: u64| {
            let layout: Layout = layout.parse().unwrap();
            let point = Point { layout, ..Point::flat(Collective::Bcast, layout.procs(), bytes) };
            let method = "native:openmpi:binomial".parse().unwrap();
            JobTime { point, method, seconds: 1e-5, job: 0 }
        };
        let of = |layout: &str| -> Vec<JobTime> {
            (1..=40).map(|size| time(layout, size * 64)).collect()
        };
        let fit = |times: &[JobTime]| on_one_node(times, OverRanks::Greatest, &joint, None);
        for layout in ["2x8", "16", "1x2"] {
            assert_eq!(fit(&of(layout)), None, "{layout}");
        }
        assert_eq!(fit(&of("1x8")[..10]), None);
    }
}
