//! Predictions by the simulator: an algorithm's schedule, message by message.

mod costs;
mod fewer;
mod levelled_network;
mod through_ports;
mod under_way;

use records::{Algorithm, Collective, Layout, OwnMethod};
use schedules::{
    Call, CallError, Entry, Length, NodesOfRanks,
    shared::{DEFAULT_NODE_BYTES, LINE_BYTES, turn_bytes},
    simulator::{
        self, Activity, LevelledCosts, MemoryCosts as _, Options, Outcome, Ports, SimulationError,
        simulate_alike_nodes, simulate_in_memory,
    },
};

use crate::parameters::{Network, NodeMemory};
use costs::{FreePorts, Savings};
pub(crate) use fewer::Fewer;
pub use levelled_network::LevelledNetwork;
pub(crate) use levelled_network::inside_parameters;
pub use under_way::{UNDER_WAY, UnderWay};

/// More steps take minutes.
const MAX_STEPS: f64 = (1_u64 << 30) as f64;
/// More sends and receives at once, and more rounds that one rank may be ahead of another, take
/// some GB of memory.
const MAX_SLOTS: f64 = (1_u64 << 25) as f64;
const MAX_ROUNDS: u64 = 1 << 25;
/// Of more ranks of one node all calls of a tuning take minutes to simulate by its memory: they are taken as if
/// messages slowed nobody down.
const MAX_MEMORY_RANKS: u32 = 256;
/// From so many steps on it is shown how far a simulation is: they take a second or so.
const STEPS_TO_TELL: f64 = (1_u64 << 23) as f64;

/// A call that takes too long, or too much memory, to simulate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooLong {
    /// The segments are too many; with larger ones it could be simulated.
    #[error("{segments} segments are too many to simulate; take larger --segments")]
    Segments { segments: u64 },
    /// So much is to be done whatever the segments.
    #[error(
        "{collective} by {algorithm} on {procs} ranks is too much to simulate (about {steps} \
         steps); take fewer ranks"
    )]
    Steps {
        /// Of which collective.
        collective: Collective,
        /// By which algorithm.
        algorithm: Algorithm,
        /// On how many processes.
        procs: u32,
        /// Sends and receives of all of them, in words: `1.1e12`.
        steps: String,
    },
}

/// A call gives no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// The simulator gives none.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// It is not begun.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

impl From<CallError> for SimulateError {
    fn from(error: CallError) -> Self {
        SimulateError::Simulation(error.into())
    }
}

/// One call to simulate.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedCall {
    pub entry: &'static Entry,
    /// Number of processes.
    pub procs: u32,
    /// The root; 0 where the collective has none.
    pub root: u32,
    /// Message size; see [`Collective::message_size`].
    pub bytes: u64,
    /// Where the parameters are from.
    pub method: OwnMethod,
    /// None: all messages are eager.
    pub rendezvous: Option<Rendezvous>,
    /// Where the ranks are; none: each on a node of its own, and no algorithm asks.
    pub layout: Option<Layout>,
}

/// Which messages wait for their receive to be posted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rendezvous {
    /// From this size on.
    pub from_bytes: u64,
    /// In seconds, see [`Options::handshake`]; none: the round trip of an empty message.
    pub handshake: Option<f64>,
}

/// How long a call takes, and the messages that were simulated to find it: 0 of a closed form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FoundTime {
    pub(crate) seconds: f64,
    pub(crate) messages: u64,
}

/// Of ranks that copy through the memory that they share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BusyRanks {
    /// On average, over the whole call.
    pub(crate) busy: f64,
    pub(crate) ranks: u32,
    /// Of a message, on average.
    pub(crate) bytes: u64,
    /// By what factor a message takes longer while so many ranks are busy.
    pub(crate) slowdown: f64,
}

/// What a call refers to: its blocks, where it has one count per rank (all are alike), and the nodes
/// of its ranks.
#[derive(Debug, Default)]
pub struct CallTables {
    counts: Vec<u64>,
    displacements: Vec<u64>,
    nodes: Option<NodesOfRanks>,
}

/// By which so many ranks of a network are simulated; none: by messages.
pub(crate) fn memory_of(network: &Network, procs: u32) -> Option<&NodeMemory> {
    network.memory.as_deref().filter(|_| procs <= MAX_MEMORY_RANKS)
}

impl SimulatedCall {
    /// The elements are those with which messages are measured.
    pub fn element_bytes(&self) -> u64 {
        self.entry.collective.element_bytes(self.bytes)
    }

    fn count(&self) -> u64 {
        self.bytes / self.element_bytes()
    }

    fn options(&self, ports: Ports) -> Options {
        Options {
            element_bytes: self.element_bytes(),
            rendezvous_bytes: self.rendezvous.map(|rendezvous| rendezvous.from_bytes),
            handshake: self.rendezvous.and_then(|rendezvous| rendezvous.handshake),
            ports,
        }
    }

    /// See [`CallTables`]; without counts where all blocks have the call's own.
    pub fn tables(&self) -> CallTables {
        let nodes = self.layout.map(|layout| {
            let labels = layout.nodes_of_ranks().into_iter().map(u64::from);
            NodesOfRanks::new(&labels.collect::<Vec<_>>())
        });
        if !self.entry.collective.has_counts() {
            return CallTables { nodes, ..CallTables::default() };
        }
        let count = self.count();
        // What overflows here is refused by the check of the call.
        let displacements = (0..u64::from(self.procs)).map(|rank| rank.saturating_mul(count));
        CallTables {
            counts: vec![count; self.procs as usize],
            displacements: displacements.collect(),
            nodes,
        }
    }

    /// The call in elements. A segment holds whole elements, at least one.
    pub fn call<'a>(&self, tables: &'a CallTables) -> Call<'a> {
        let segment = match self.method.segment_bytes {
            0 => 0,
            bytes => (bytes / self.element_bytes()).max(1),
        };
        // As the runner divides what a node may share.
        let per_node = tables.nodes.as_ref().map_or(self.procs, NodesOfRanks::most) as usize;
        let elements = |bytes: usize| bytes as u64 / self.element_bytes();
        let [shared, line] = match self.method.shares_memory() {
            true => [elements(turn_bytes(DEFAULT_NODE_BYTES, per_node)), elements(LINE_BYTES)],
            false => [0; 2],
        };
        Call {
            root: self.root,
            segment,
            shared,
            line,
            counts: &tables.counts,
            displacements: &tables.displacements,
            nodes: tables.nodes.as_ref(),
            ..Call::new(self.procs, self.count()).with_method(&self.method)
        }
    }

    /// Seconds that [`SimulatedCall::seconds`] surely is at least; 0 where nothing is known. What is more
    /// than `enough` may be less than what is known.
    pub fn at_least(&self, network: &Network, enough: f64) -> f64 {
        // Programs of many rounds, and those that learn their counts from others, are not looked at.
        let has_few_rounds = match self.entry.algorithm {
            Algorithm::RecursiveDoubling
            | Algorithm::RecursiveHalving
            | Algorithm::Rabenseifner
            | Algorithm::ScatterAllgather => true,
            Algorithm::Bine => self.entry.collective == Collective::Allreduce,
            _ => false,
        };
        let is_short = has_few_rounds && self.method.segment_bytes == 0;
        if !is_short || self.rendezvous.is_some() || memory_of(network, self.procs).is_some() {
            return 0.0;
        }
        let tables = self.tables();
        let call = self.call(&tables);
        let options = self.options(Ports::default());
        match (self.entry.check_everywhere(&call), self.ports(network)) {
            (Err(_), _) => 0.0,
            (Ok(()), Ports::InTurn) => self.entry.at_least(&call, network, options, enough),
            // A message may overtake a longer one that began to leave before it.
            (Ok(()), _) => self.entry.at_least(&call, &FreePorts(network), options, enough),
        }
    }

    /// Seconds that [`SimulatedCall::seconds`] is less at most at an end of a parameter's interval than at its
    /// value; none where that is not known. See [`Entry::saves_at_most`].
    pub fn saves_at_most(&self, value: &Network, end: &Network) -> Option<f64> {
        // Chains of messages that share ports are not known.
        let in_turn = [value, end].iter().all(|network| self.ports(network) == Ports::InTurn);
        let in_memory = [value, end].iter().any(|network| memory_of(network, self.procs).is_some());
        if !in_turn || self.rendezvous.is_some() || in_memory {
            return None;
        }
        let tables = self.tables();
        let call = self.call(&tables);
        self.entry.check_everywhere(&call).ok()?;
        let options = self.options(Ports::InTurn);
        self.entry.saves_at_most(&call, &Savings { value, end }, options)
    }

    /// About how many steps a simulation has.
    ///
    /// # Errors
    /// The algorithm cannot serve the call.
    pub(crate) fn steps(&self) -> Result<f64, CallError> {
        let tables = self.tables();
        let call = self.call(&tables);
        self.entry.check_everywhere(&call)?;
        Ok(self.entry.length(&call).steps)
    }

    /// Whether one simulation takes more than a second or so; also where it takes too long altogether.
    pub(crate) fn takes_long(&self) -> bool {
        let tables = self.tables();
        let call = self.call(&tables);
        let fits = self.entry.check_everywhere(&call).is_ok();
        fits && self.length(&call, 1).map_or(true, |steps| steps.is_some())
    }

    /// About how many steps so many simulations have, where these are many.
    ///
    /// # Errors
    /// They are too many, or too many at once.
    fn length(&self, call: &Call<'_>, times: usize) -> Result<Option<f64>, TooLong> {
        let segments = |count: u64| match self.entry.segmented && call.segment > 0 {
            true => count.div_ceil(call.segment).max(1),
            false => 1,
        };
        let procs = f64::from(self.procs);
        let times = times as f64;
        // No algorithm has more than a few steps per pair of ranks and segment.
        if procs * procs * segments(call.count) as f64 * times <= STEPS_TO_TELL / 8.0 {
            return Ok(None);
        }
        let fits = |length: &Length| {
            let Length { steps, slots, rounds } = *length;
            times * steps <= MAX_STEPS && slots <= MAX_SLOTS && rounds <= MAX_ROUNDS
        };
        let length = self.entry.length(call);
        let steps = times * length.steps;
        if fits(&length) {
            return Ok((steps >= STEPS_TO_TELL).then_some(steps));
        }
        let whole = Call { segment: 0, ..*call };
        let segments = segments(call.count);
        Err(match segments > 1 && fits(&self.entry.length(&whole)) {
            true => TooLong::Segments { segments },
            false => TooLong::Steps {
                collective: self.entry.collective,
                algorithm: self.entry.algorithm,
                procs: self.procs,
                steps: format!("{steps:.1e}"),
            },
        })
    }

    /// Simulates the call with parameters for each level, on the nodes of the layout, whose ports all
    /// messages under way share (without one, each rank has a node of its own), and shows every activity.
    ///
    /// # Errors
    /// The algorithm cannot serve the call, or it takes too long.
    pub fn simulate_levels(
        &self,
        network: &LevelledNetwork,
        observe: impl FnMut(Activity),
    ) -> Result<Outcome, SimulateError> {
        let tables = self.tables();
        let call = self.call(&tables);
        self.entry.check_everywhere(&call)?;
        self.length(&call, 1)?;
        let (entry, mut simulator) = (self.entry, simulator::Simulator::new());
        let (memory, bytes) = (network.memory(tables.nodes.as_ref()), self.element_bytes());
        Ok(match (&tables.nodes, memory) {
            (Some(nodes), Some(memory)) => {
                let costs = (memory, &network.costs(nodes));
                simulate_in_memory(entry, &call, costs, bytes, observe)?
            }
            (None, Some(memory)) => {
                simulate_in_memory(entry, &call, (memory, &network.between), bytes, observe)?
            }
            (Some(nodes), None) => {
                let (network, options) = (network.costs(nodes), self.options(Ports::Shared));
                simulator.run_observed(entry, &call, &network, options, observe)?
            }
            (None, None) => {
                let (network, options) =
                    (&network.between, self.options(self.ports(&network.between)));
                simulator.run_observed(entry, &call, network, options, observe)?
            }
        })
    }

    /// How many ranks of a node are busy at once; none where it is not simulated by the memory that they share, and
    /// where nothing is sent.
    ///
    /// # Errors
    /// As [`SimulatedCall::seconds`].
    pub(crate) fn busy_ranks(
        &self,
        network: &LevelledNetwork,
    ) -> Result<Option<BusyRanks>, SimulateError> {
        let tables = self.tables();
        let Some(memory) = network.memory(tables.nodes.as_ref()) else { return Ok(None) };
        let outcome = self.simulate_levels(network, |_| {})?;
        let Some(busy) = outcome.busy.filter(|_| outcome.messages > 0) else { return Ok(None) };
        let bytes = outcome.bytes / outcome.messages;
        let slowdown = memory.slowdown(bytes, busy);
        let ranks = tables.nodes.map_or(self.procs, |nodes| nodes.most());
        Ok(Some(BusyRanks { busy, ranks, bytes, slowdown }))
    }

    /// Seconds until the last rank is done; [`UNDER_WAY`] tells how far it is where that takes long.
    ///
    /// # Errors
    /// The algorithm cannot serve the call, or it takes too long.
    pub fn seconds(&self, network: &Network) -> Result<f64, SimulateError> {
        Ok(self.times_with_each(&[network], f64::INFINITY)?[0].seconds)
    }

    /// The times with each of several parameters one after the other, of which [`UNDER_WAY`] tells as of one
    /// simulation.
    ///
    /// # Errors
    /// As [`SimulatedCall::seconds`], of all of them together; one by memory is later than `until`, in seconds.
    pub(crate) fn times_with_each(
        &self,
        networks: &[&Network],
        until: f64,
    ) -> Result<Vec<FoundTime>, SimulateError> {
        let costs = networks.iter().map(|&network| match memory_of(network, self.procs) {
            Some(memory) => CostsOf::Memory(memory, network),
            None => CostsOf::Messages(network),
        });
        let ports = |network: &Network| self.ports(network);
        // All are on one node.
        let is_alike = |_: usize, _: usize| true;
        self.with_each(&self.tables(), &costs.collect::<Vec<_>>(), ports, is_alike, until)
    }

    /// Seconds with each of several parameters of both levels, on the nodes of the layout, whose ports all
    /// messages under way share. Without a layout they pass in turn.
    ///
    /// # Errors
    /// As [`SimulatedCall::seconds`], of all of them together.
    pub fn seconds_on_levels(
        &self,
        networks: &[&LevelledNetwork],
    ) -> Result<Vec<f64>, SimulateError> {
        Ok(self
            .times_on_levels(networks, f64::INFINITY)?
            .into_iter()
            .map(|time| time.seconds)
            .collect())
    }

    /// As [`SimulatedCall::seconds_on_levels`].
    ///
    /// # Errors
    /// As there, or one by memory is later than `until`, in seconds.
    pub(crate) fn times_on_levels(
        &self,
        networks: &[&LevelledNetwork],
        until: f64,
    ) -> Result<Vec<FoundTime>, SimulateError> {
        let tables = self.tables();
        let Some(nodes) = &tables.nodes else {
            let between: Vec<&Network> = networks.iter().map(|network| &network.between).collect();
            return self.times_with_each(&between, until);
        };
        let costs: Vec<_> = networks.iter().map(|network| network.costs(nodes)).collect();
        let costs =
            networks.iter().zip(&costs).map(|(network, costs)| match network.memory(Some(nodes)) {
                Some(memory) => CostsOf::Memory(memory, costs),
                None => CostsOf::Messages(costs),
            });
        let is_alike = |one: usize, other: usize| {
            nodes.count() == 1 || networks[one].is_alike_between(networks[other])
        };
        self.with_each(&tables, &costs.collect::<Vec<_>>(), |_| Ports::Shared, is_alike, until)
    }

    /// `is_alike_between`: whether two of them differ in nothing between nodes.
    fn with_each<C: LevelledCosts>(
        &self,
        tables: &CallTables,
        all: &[CostsOf<'_, C>],
        ports: impl Fn(&C) -> Ports,
        is_alike_between: impl Fn(usize, usize) -> bool,
        until: f64,
    ) -> Result<Vec<FoundTime>, SimulateError> {
        let time =
            |outcome: Outcome| FoundTime { seconds: outcome.seconds, messages: outcome.messages };
        let call = self.call(tables);
        self.entry.check_everywhere(&call)?;
        let long = self.length(&call, all.len())?;
        let mut simulator = simulator::Simulator::new();
        // Most ends of intervals leave the memory as it is.
        let combines = self.entry.collective.combines();
        let is_same = |one: &NodeMemory, other: &NodeMemory| {
            if combines { one == other } else { one.moves_as(other) }
        };
        let mut by_memory: Option<(&NodeMemory, usize, FoundTime)> = None;
        if let Some(steps) = long {
            UNDER_WAY.begin(steps);
        }
        let times = all.iter().enumerate().map(|(place, costs)| {
            let options = |network: &C| self.options(ports(network));
            match costs {
                CostsOf::Memory(memory, network) => match by_memory {
                    Some((known, first, time))
                        if is_same(known, memory) && is_alike_between(first, place) =>
                    {
                        Ok(time)
                    }
                    _ => {
                        let (costs, bytes) = ((*memory, *network), self.element_bytes());
                        let found = match long {
                            Some(_) => {
                                let counting = UNDER_WAY.counting();
                                simulate_in_memory(self.entry, &call, costs, bytes, counting)?
                            }
                            None => simulate_alike_nodes(self.entry, &call, costs, bytes, until)?,
                        };
                        let found = time(found);
                        by_memory.get_or_insert((memory, place, found));
                        Ok(found)
                    }
                },
                CostsOf::Messages(network) if long.is_some() => {
                    let (options, counting) = (options(network), UNDER_WAY.counting());
                    Ok(time(
                        simulator.run_observed(self.entry, &call, *network, options, counting)?,
                    ))
                }
                CostsOf::Messages(network) => {
                    Ok(time(simulator.run(self.entry, &call, *network, options(network))?))
                }
            }
        });
        let times = times.collect();
        if long.is_some() {
            UNDER_WAY.end();
        }
        times
    }
}

/// What a call is simulated by.
enum CostsOf<'a, C> {
    /// Messages between ranks and nodes.
    Messages(&'a C),
    /// The memory that the ranks of a node share, and messages between nodes.
    Memory(&'a NodeMemory, &'a C),
}
