//! Predictions by the simulator: an algorithm's schedule, message by message.

mod costs;
mod levelled_network;
mod through_ports;
mod under_way;

use records::{Algorithm, Collective, Layout, OwnMethod};
use schedules::{
    Call, CallError, Entry, Length, NodesOfRanks,
    simulator::{self, Activity, LevelledCosts, Options, Outcome, Ports, SimulationError},
};

use crate::parameters::Network;
use costs::{FreePorts, Savings};
pub use levelled_network::LevelledNetwork;
pub(crate) use levelled_network::inside_parameters;
pub use under_way::{UNDER_WAY, UnderWay};

/// More steps take minutes.
const MAX_STEPS: f64 = (1_u64 << 30) as f64;
/// More sends and receives at once, and more rounds that one rank may be ahead of another, take
/// some GB of memory.
const MAX_SLOTS: f64 = (1_u64 << 25) as f64;
const MAX_ROUNDS: u64 = 1 << 25;
/// From so many steps on it is told how far a simulation is: they take a second or so.
const STEPS_TO_TELL: f64 = (1_u64 << 23) as f64;

/// A call that takes too long, or too much memory, to simulate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooLong {
    /// The segments are too many; with larger ones it could be simulated.
    #[error("{segments} segments are too many to simulate; take larger --segments")]
    Segments { segments: u64 },
    /// So much is to be done whatever the segments.
    #[error(
        "{collective} by {algorithm} on {procs} processes is too much to simulate (about {steps} \
         steps); take fewer processes"
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
    /// Where the ranks are; none: each on a node of its own, and no algorithm asks.
    pub layout: Option<Layout>,
}

/// What a call refers to: its blocks, where it has one count per rank (all are alike), and the nodes
/// of its ranks.
#[derive(Debug, Default)]
pub struct CallTables {
    counts: Vec<u64>,
    displacements: Vec<u64>,
    nodes: Option<NodesOfRanks>,
}

impl SimulatedCall {
    /// The elements are those with which messages are measured.
    pub fn element_bytes(&self) -> u64 {
        self.entry.collective.element_bytes(self.bytes)
    }

    fn count(&self) -> u64 {
        self.bytes / self.element_bytes()
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
        Call {
            root: self.root,
            segment,
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
        let is_short = self.method.segment_bytes == 0
            && matches!(
                self.entry.algorithm,
                Algorithm::RecursiveDoubling
                    | Algorithm::RecursiveHalving
                    | Algorithm::Rabenseifner
                    | Algorithm::ScatterAllgather
            );
        if !is_short {
            return 0.0;
        }
        let tables = self.tables();
        let call = self.call(&tables);
        let options = Options { element_bytes: self.element_bytes(), ..Options::default() };
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
        if [value, end].iter().any(|network| self.ports(network) != Ports::InTurn) {
            return None;
        }
        let tables = self.tables();
        let call = self.call(&tables);
        self.entry.check_everywhere(&call).ok()?;
        let options = Options { element_bytes: self.element_bytes(), ..Options::default() };
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

    /// Simulates the call with the simulator and options given, and shows every activity, if
    /// somebody wants to see them; [`UNDER_WAY`] tells how far it is where that takes long.
    ///
    /// # Errors
    /// The algorithm cannot serve the call, or it takes too long.
    pub fn simulate(
        &self,
        simulator: &mut simulator::Simulator,
        network: &Network,
        options: Options,
        observe: Option<&mut dyn FnMut(Activity)>,
    ) -> Result<Outcome, SimulateError> {
        let tables = self.tables();
        self.simulate_call(simulator, &self.call(&tables), network, options, observe)
    }

    /// As [`SimulatedCall::simulate`], with parameters for each level, on the nodes of the layout, whose ports
    /// all messages under way share (without one, each rank has a node of its own).
    ///
    /// # Errors
    /// As [`SimulatedCall::simulate`].
    pub fn simulate_levels(
        &self,
        simulator: &mut simulator::Simulator,
        network: &LevelledNetwork,
        options: Options,
        observe: Option<&mut dyn FnMut(Activity)>,
    ) -> Result<Outcome, SimulateError> {
        let tables = self.tables();
        let call = self.call(&tables);
        match &tables.nodes {
            Some(nodes) => {
                let options = Options { ports: Ports::Shared, ..options };
                self.simulate_call(simulator, &call, &network.costs(nodes), options, observe)
            }
            None => {
                let options = Options { ports: self.ports(&network.between), ..options };
                self.simulate_call(simulator, &call, &network.between, options, observe)
            }
        }
    }

    fn simulate_call(
        &self,
        simulator: &mut simulator::Simulator,
        call: &Call<'_>,
        network: &impl LevelledCosts,
        options: Options,
        observe: Option<&mut dyn FnMut(Activity)>,
    ) -> Result<Outcome, SimulateError> {
        self.entry.check_everywhere(call)?;
        let long = self.length(call, 1)?;
        if let (None, None) = (long, &observe) {
            return Ok(simulator.run(self.entry, call, network, options)?);
        }
        let mut ignore = |_| {};
        let observe = observe.unwrap_or(&mut ignore);
        UNDER_WAY.begin(long.unwrap_or_default());
        let counting = UNDER_WAY.counting(observe);
        let outcome = simulator.run_observed(self.entry, call, network, options, counting);
        UNDER_WAY.end();
        Ok(outcome?)
    }

    /// Seconds until the last rank is done, all messages eager.
    ///
    /// # Errors
    /// As [`SimulatedCall::simulate`].
    pub fn seconds(&self, network: &Network) -> Result<f64, SimulateError> {
        let ports = self.ports(network);
        let options = Options { element_bytes: self.element_bytes(), ports, ..Options::default() };
        let mut simulator = simulator::Simulator::new();
        Ok(self.simulate(&mut simulator, network, options, None)?.seconds)
    }

    /// As [`SimulatedCall::seconds`], with each of several parameters one after the other, of which
    /// [`UNDER_WAY`] tells as of one simulation.
    ///
    /// # Errors
    /// As [`SimulatedCall::simulate`], of all of them together.
    pub fn seconds_with_each(&self, networks: &[&Network]) -> Result<Vec<f64>, SimulateError> {
        self.with_each(&self.tables(), networks, |network| self.ports(network))
    }

    /// As [`SimulatedCall::seconds_with_each`], with parameters for each level, on the nodes of the layout,
    /// whose ports all messages under way share. Without a layout they pass in turn.
    ///
    /// # Errors
    /// As there.
    pub fn seconds_on_levels(
        &self,
        networks: &[&LevelledNetwork],
    ) -> Result<Vec<f64>, SimulateError> {
        let tables = self.tables();
        match &tables.nodes {
            Some(nodes) => {
                let costs: Vec<_> = networks.iter().map(|network| network.costs(nodes)).collect();
                self.with_each(&tables, &costs.iter().collect::<Vec<_>>(), |_| Ports::Shared)
            }
            None => {
                let between = networks.iter().map(|network| &network.between);
                let ports = |network: &Network| self.ports(network);
                self.with_each(&tables, &between.collect::<Vec<_>>(), ports)
            }
        }
    }

    fn with_each<C: LevelledCosts>(
        &self,
        tables: &CallTables,
        networks: &[&C],
        ports: impl Fn(&C) -> Ports,
    ) -> Result<Vec<f64>, SimulateError> {
        let element_bytes = self.element_bytes();
        let options =
            |network| Options { element_bytes, ports: ports(network), ..Options::default() };
        let call = self.call(tables);
        self.entry.check_everywhere(&call)?;
        let long = self.length(&call, networks.len())?;
        let mut simulator = simulator::Simulator::new();
        let Some(steps) = long else {
            let seconds = networks.iter().map(|&network| {
                let options = options(network);
                Ok(simulator.run(self.entry, &call, network, options)?.seconds)
            });
            return seconds.collect();
        };
        UNDER_WAY.begin(steps);
        let seconds = networks.iter().map(|&network| {
            let counting = UNDER_WAY.counting(|_| {});
            let options = options(network);
            let outcome = simulator.run_observed(self.entry, &call, network, options, counting)?;
            Ok(outcome.seconds)
        });
        let seconds = seconds.collect();
        UNDER_WAY.end();
        seconds
    }
}
