//! How a time is found: which closed form, or which schedule for the simulator.

use records::{Algorithm, Collective, Layout, Method, OwnMethod, Point, TreePace};
use schedules::{Entry, find_method, simulator::SimulationError};

use super::{
    ModelParameters, PredictError, Predictor,
    spread::{MAX_ENDS, Spread},
    uncertain::{UncertainLevels, UncertainNetwork},
};
use crate::{
    Evaluator, Forms,
    closed_forms::{CallShape, ClosedForm, algorithms, form, refined},
    parameters::Network,
    simulated::{
        Fewer, FoundTime, LevelledNetwork, Rendezvous, SimulateError, SimulatedCall, memory_of,
    },
};

/// How a time is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CostSource {
    Form(&'static ClosedForm),
    Simulated(&'static Entry),
}

impl CostSource {
    #[inline]
    pub(crate) fn segmented(&self) -> bool {
        match self {
            CostSource::Form(form) => form.segmented,
            CostSource::Simulated(entry) => entry.segmented,
        }
    }

    fn algorithm(&self) -> Algorithm {
        match self {
            CostSource::Form(form) => form.algorithm,
            CostSource::Simulated(entry) => entry.algorithm,
        }
    }
}

/// What a method's time is found from: how, for which call, with which parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evaluation<'a> {
    pub(crate) source: CostSource,
    /// The version of what is a form.
    pub(crate) forms: Forms,
    pub(crate) shape: CallShape,
    pub(crate) set: &'a UncertainNetwork,
    /// With what a fitted tree that is simulated is made for. What is not ours has no parameters but those of
    /// `shape`.
    pub(crate) method: OwnMethod,
    /// Of what is simulated; 0 where the collective has none.
    pub(crate) root: u32,
    /// Of nodes that what is simulated has to do with.
    pub(crate) layout: Option<Layout>,
    /// Of what is simulated.
    pub(crate) rendezvous: Option<Rendezvous>,
    /// What of a long call on nodes is not simulated.
    pub(crate) fewer: Fewer,
}

impl Evaluation<'_> {
    /// See [`CallShape::suits`].
    pub(crate) fn is_candidate(&self) -> bool {
        self.shape.suits(self.source.algorithm())
    }

    /// Whether a lower bound of the simulated time exceeds `seconds`; false of a closed form, and where
    /// there is no bound.
    pub(crate) fn surely_exceeds(&self, seconds: f64) -> bool {
        self.at_least(&self.set.network, seconds) > seconds
    }

    /// A lower bound of the simulated time with other parameters, in seconds, see
    /// [`SimulatedCall::at_least`]; 0 of a closed form, and on nodes of several ranks.
    fn at_least(&self, network: &Network, enough: f64) -> f64 {
        match (self.source, &self.set.levels) {
            (CostSource::Simulated(entry), None) => {
                self.simulated_call(entry).at_least(network, enough)
            }
            _ => 0.0,
        }
    }

    /// An upper bound of the seconds by which the simulated time falls with other parameters; none of a closed
    /// form, and where there is no bound.
    fn saves_at_most(&self, network: &Network) -> Option<f64> {
        match (self.source, &self.set.levels) {
            (CostSource::Simulated(entry), None) => {
                self.simulated_call(entry).saves_at_most(&self.set.network, network)
            }
            _ => None,
        }
    }

    /// Whether what is simulated is surely no tie with `best`, known without simulating it: it takes at
    /// least so much more that the parameters' errors do not make up for it.
    ///
    /// That takes the time for its lower bound. What it exceeds that by, where messages wait for others
    /// that come to a port before them, may be gone at an end: the difference to `best` and what it
    /// falls by there are both less by it, which tells the same unless it is gone at the ends of
    /// several parameters. That is not thought of.
    pub(crate) fn is_surely_no_tie(&self, best: &Spread) -> bool {
        // Enough more for rounding and times that are equal but for that.
        let more = self.at_least(&self.set.network, f64::INFINITY) - best.value * (1.0 + 1e-9);
        if self.set.number != best.set || more <= 0.0 {
            return false;
        }
        let Some(saved) = self.saves_at_most(&self.set.least) else { return false };
        // With all parameters at the cheaper ends at once it is shown of most.
        if best.comes_nearer(saved, self.set) < more {
            return true;
        }
        let mut squares = 0.0;
        for (ends, of_best) in self.set.ends.iter().zip(&best.ends) {
            let mut towards = 0.0_f64;
            for (end, of_best) in ends.iter().zip(of_best) {
                let Some(saved) = self.saves_at_most(end) else { return false };
                towards = towards.max(saved - (best.value - of_best));
            }
            squares += towards * towards;
            if squares.sqrt() >= more {
                return false;
            }
        }
        true
    }

    /// Seconds with the set's parameters.
    #[inline]
    pub(crate) fn seconds(&self) -> Result<f64, PredictError> {
        match &self.set.levels {
            None => self.seconds_on(&self.set.network),
            Some(_) => Ok(self.times(true, false, f64::INFINITY)?[0].seconds),
        }
    }

    /// Whether both are simulated, by the same schedule.
    pub(crate) fn is_same_as(&self, other: &Evaluation<'_>) -> bool {
        match (self.source, other.source) {
            (CostSource::Simulated(one), CostSource::Simulated(of_other)) => {
                self.simulated_call(one).is_same_schedule(&other.simulated_call(of_other))
            }
            _ => false,
        }
    }

    /// About what it takes where it is simulated, in seconds: by a form that knows neither nodes nor memory. Infinite
    /// where there is none.
    pub(crate) fn guess(&self) -> f64 {
        match (self.source, &self.set.levels) {
            (CostSource::Simulated(entry), Some(levels)) => {
                self.simulated_call(entry).form_seconds(&levels.network).unwrap_or(f64::INFINITY)
            }
            _ => 0.0,
        }
    }

    /// [`Evaluation::seconds`], or infinite where that is more than `limit` and known early: by a lower bound,
    /// or since the simulated ranks are still busy then.
    pub(crate) fn seconds_up_to(&self, limit: f64) -> Result<f64, PredictError> {
        if self.surely_exceeds(limit) {
            return Ok(f64::INFINITY);
        }
        match self.times(true, false, limit) {
            Ok(times) => Ok(times[0].seconds),
            Err(PredictError::Simulation(SimulateError::Simulation(SimulationError::Longer))) => {
                Ok(f64::INFINITY)
            }
            Err(error) => Err(error),
        }
    }

    /// With other parameters, each rank on a node of its own.
    #[inline]
    pub(crate) fn seconds_on(&self, network: &Network) -> Result<f64, PredictError> {
        match self.source {
            CostSource::Form(form) => Ok(form.seconds(network, &self.shape, self.forms)),
            CostSource::Simulated(entry) => self.simulate(entry, network),
        }
    }

    #[inline(never)]
    fn simulate(&self, entry: &'static Entry, network: &Network) -> Result<f64, PredictError> {
        Ok(self.simulated_call(entry).seconds(network)?)
    }

    /// `value`, which [`Evaluation::seconds`] gave, with each parameter at the lower and the upper end of its interval.
    pub(crate) fn spread(&self, value: f64) -> Result<Spread, PredictError> {
        if let Some(ends) = self.ends_by_fewer(value)? {
            return Ok(Spread::new(value, &ends, self.set.number));
        }
        Ok(Spread::new(value, &self.times(false, true, f64::INFINITY)?, self.set.number))
    }

    /// As [`Evaluation::spread`], but that at the ends there stand lower bounds: what is no tie by
    /// these is none.
    pub(crate) fn min_spread(&self, value: f64) -> Spread {
        let at_least = |network| self.at_least(network, f64::INFINITY);
        let mut ends = [[value; 2]; MAX_ENDS];
        for (place, [low, high]) in ends.iter_mut().zip(&self.set.ends) {
            *place = [at_least(low), at_least(high)];
        }
        Spread { value, ends, set: self.set.number }
    }

    /// The time, and with each parameter at the ends of its interval.
    pub(super) fn time_and_spread(&self) -> Result<(FoundTime, Spread), PredictError> {
        if self.fewer != Fewer::Nothing {
            let time = self.times(true, false, f64::INFINITY)?[0];
            return Ok((time, self.spread(time.seconds)?));
        }
        let times = self.times(true, true, f64::INFINITY)?;
        Ok((times[0], Spread::new(times[0].seconds, &times[1..], self.set.number)))
    }

    /// The time with its spread, but for the spread where simulating the ends, too, takes many seconds.
    pub(super) fn time_and_spread_in_time(
        &self,
    ) -> Result<(FoundTime, Option<Spread>), PredictError> {
        let has_ends = match &self.set.levels {
            None => !self.set.ends.is_empty(),
            Some(levels) => !levels.ends.is_empty(),
        };
        match self.source {
            CostSource::Simulated(entry) if has_ends && self.simulated_call(entry).takes_long() => {
                Ok((self.times(true, false, f64::INFINITY)?[0], None))
            }
            _ => self.time_and_spread().map(|(time, spread)| (time, Some(spread))),
        }
    }

    /// The times with each parameter at the ends of its interval, where not all of a long call is simulated: as many times
    /// as long as `value` as they are on the fewest nodes. None elsewhere.
    fn ends_by_fewer(&self, value: f64) -> Result<Option<Vec<FoundTime>>, PredictError> {
        let (CostSource::Simulated(entry), Some(levels)) = (self.source, &self.set.levels) else {
            return Ok(None);
        };
        let call = self.simulated_call(entry);
        let is_fewer = match self.fewer {
            Fewer::Nothing => false,
            // How long circulant takes does not grow evenly with its segments: its ends would err by a tenth.
            Fewer::SegmentsAtEnds => {
                entry.algorithm != Algorithm::Circulant && call.is_long_on_nodes()
            }
            Fewer::Segments => call.is_long_on_nodes(),
            Fewer::Nodes => true,
        };
        if !is_fewer {
            return Ok(None);
        }
        let ends = levels.ends.iter().flatten();
        let networks: Vec<_> = std::iter::once(&levels.network).chain(ends).collect();
        let ratios = call.ratios_by_fewer(&networks, self.fewer)?;
        let time = |ratio| FoundTime { seconds: value * ratio, messages: 0 };
        Ok(Some(ratios.into_iter().map(time).collect()))
    }

    /// The time with the set's parameters, if the `value` is wanted; then those with each parameter at the lower and the upper
    /// end of its interval, if the `ends` are.
    /// Unless one is later than `until` (seconds).
    ///
    /// # Errors
    /// As [`Evaluation::seconds`], or [`SimulationError::Longer`] where one is simulated by memory and later than `until`.
    fn times(&self, value: bool, ends: bool, until: f64) -> Result<Vec<FoundTime>, PredictError> {
        /// What of them is wanted.
        fn wanted<'n, N>(value: Option<&'n N>, ends: Option<&'n [[N; 2]]>) -> Vec<&'n N> {
            value.into_iter().chain(ends.into_iter().flatten().flatten()).collect()
        }
        let UncertainNetwork { network, ends: all, levels, .. } = self.set;
        match (self.source, levels) {
            (CostSource::Simulated(entry), Some(UncertainLevels { network, ends: all })) => {
                let networks = wanted(value.then_some(network), ends.then_some(all));
                let call = self.simulated_call(entry);
                Ok(call.times_by_fewer(&networks, self.fewer, until)?)
            }
            (CostSource::Simulated(entry), None) => {
                let networks = wanted(value.then_some(network), ends.then_some(all));
                Ok(self.simulated_call(entry).times_with_each(&networks, until)?)
            }
            (CostSource::Form(form), levels) => {
                let networks = match levels {
                    Some(UncertainLevels { network, ends: all }) => {
                        let networks = wanted(value.then_some(network), ends.then_some(all));
                        networks.into_iter().map(|levelled| &levelled.between).collect()
                    }
                    None => wanted(value.then_some(network), ends.then_some(all)),
                };
                let time = |network: &Network| FoundTime {
                    seconds: form.seconds(network, &self.shape, self.forms),
                    messages: 0,
                };
                Ok(networks.into_iter().map(time).collect())
            }
        }
    }

    pub(crate) fn simulated_call(&self, entry: &'static Entry) -> SimulatedCall {
        SimulatedCall {
            entry,
            procs: self.shape.ranks(),
            root: self.root,
            bytes: self.shape.whole_bytes(),
            method: self.method.with_segment(self.shape.segment()),
            layout: self.layout,
            rendezvous: self.rendezvous,
        }
    }

    /// Whether the schedule can serve that call.
    #[inline(never)]
    fn check_call(&self, collective: Collective) -> Result<(), PredictError> {
        let entry = match self.source {
            CostSource::Simulated(entry) => Some(entry),
            CostSource::Form(form) => schedules::find(collective, form.algorithm),
        };
        if let Some(entry) = entry {
            let call = self.simulated_call(entry);
            entry.check(&call.call(&call.tables()))?;
        }
        Ok(())
    }
}

impl Predictor {
    #[inline]
    pub(super) fn follows_schedules(&self) -> bool {
        self.model.evaluator().follows_schedules() || self.sees_nodes()
    }

    /// Whether it simulates nodes that hold several ranks: so does what [`Predictor::at`] gives there.
    #[inline]
    pub fn sees_nodes(&self) -> bool {
        self.levels().is_some()
    }

    /// Whether it simulates the memory that so many ranks of one node share.
    fn simulates_memory(&self, procs: u32) -> bool {
        match &self.parameters {
            ModelParameters::Common(set) => memory_of(&set.network, procs).is_some(),
            ModelParameters::ByMethod(_) => false,
        }
    }

    /// Whether it simulates algorithms of shared memory, on nodes whose ranks it sees.
    pub fn knows_shared_memory(&self) -> bool {
        let network = match (&self.parameters, self.levels()) {
            (_, Some(levels)) => Some(&levels.inside),
            (ModelParameters::Common(set), None) => Some(&set.network),
            (ModelParameters::ByMethod(_), None) => None,
        };
        let memory = network.and_then(|network| network.memory.as_ref());
        self.follows_schedules() && memory.is_some_and(|memory| memory.knows_shared())
    }

    /// Whether it simulates that some of so many ranks of one node share a cache.
    pub(super) fn sees_caches(&self, procs: u32) -> bool {
        let has_caches = |set: &UncertainNetwork| {
            set.network.memory.as_ref().is_some_and(|memory| memory.has_caches())
        };
        match &self.parameters {
            ModelParameters::Common(set) => self.simulates_memory(procs) && has_caches(set),
            ModelParameters::ByMethod(_) => false,
        }
    }

    /// The network of both levels, if it simulates nodes that hold several ranks.
    #[inline]
    pub(crate) fn levels(&self) -> Option<&LevelledNetwork> {
        match &self.parameters {
            ModelParameters::Common(set) => set.levels.as_ref().map(|levels| &levels.network),
            ModelParameters::ByMethod(_) => None,
        }
    }

    /// What an algorithm's time is found from.
    pub(super) fn source_of_algorithm(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        procs: u32,
    ) -> Result<CostSource, PredictError> {
        let form = match self.model.evaluator() {
            _ if self.sees_nodes() => None,
            Evaluator::Tables => form(collective, algorithm),
            Evaluator::Refined if !self.simulates_memory(procs) => {
                refined::form(collective, algorithm, procs)
            }
            Evaluator::Refined | Evaluator::Simulation => None,
        };
        let scheduled = || match self.follows_schedules() {
            true => schedules::find(collective, algorithm).map(CostSource::Simulated),
            false => None,
        };
        let found = form.map(CostSource::Form).or_else(scheduled);
        found.ok_or_else(|| self.unknown(collective, algorithm))
    }

    #[cold]
    pub(super) fn unknown(&self, collective: Collective, algorithm: Algorithm) -> PredictError {
        if let Some(why) = schedules::why_not_modelled(&[collective], algorithm) {
            return PredictError::Unknown(why);
        }
        match self.follows_schedules() {
            true => match schedules::find_named(collective, algorithm.name()) {
                Err(problem) => PredictError::Unknown(problem),
                Ok(_) => PredictError::Algorithm { collective, algorithm },
            },
            false => no_form(collective, algorithm),
        }
    }

    /// What a method's time is found from.
    pub(super) fn source_of(
        &self,
        collective: Collective,
        method: &Method,
        procs: u32,
    ) -> Result<CostSource, PredictError> {
        let refuse = |reason| PredictError::Method { collective, method: method.clone(), reason };
        match method {
            Method::Default => Err(refuse("the library's algorithm is not known")),
            Method::Mockup(_) => Err(refuse("it is composed of other collectives")),
            Method::Plugin(_) => Err(refuse("what a plug-in does is not known")),
            method if method.shares_memory() && !self.knows_shared_memory() => {
                Err(refuse("what memory costs that ranks share was not measured"))
            }
            Method::Own(own) if own.algorithm.shares_memory() => {
                let found = schedules::find_shared(collective, own.algorithm);
                found
                    .map(CostSource::Simulated)
                    .ok_or_else(|| self.unknown(collective, own.algorithm))
            }
            Method::Own(own) if own.is_node_aware() => {
                match find_method(collective, own).filter(|_| self.sees_nodes()) {
                    Some(entry) => Ok(CostSource::Simulated(entry)),
                    None => Err(refuse("it looks at nodes, and there are none of several ranks")),
                }
            }
            Method::Other(_) => Err(refuse("what another's method does is not known")),
            Method::Native(native) => self.source_of_native(collective, native, procs),
            Method::Own(own) if !own.is_parametrized() => {
                self.source_of_algorithm(collective, own.algorithm, procs)
            }
            Method::Own(_) if !self.follows_schedules() => {
                Err(refuse("the tables' forms know no other fan-outs"))
            }
            Method::Own(own) => match schedules::find(collective, own.algorithm) {
                Some(entry) if !entry.fanned => Err(refuse("it has no fan-out")),
                // The forms know trees that are made for the network, not for another one.
                Some(entry) if own.pace != TreePace::EVEN => Ok(CostSource::Simulated(entry)),
                _ => self.source_of_algorithm(collective, own.algorithm, procs),
            },
        }
    }

    /// What [`Predictor::look_up_method`] finds, where that is one of the tables' forms.
    ///
    /// A prediction takes tens of nanoseconds: room for an error alone, laid out and moved about
    /// on the way, would take a third of them.
    #[inline]
    pub(super) fn form_of_tables(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Option<(&'static ClosedForm, &Network, CallShape)> {
        let ModelParameters::Common(set) = &self.parameters else { return None };
        let Point { collective, layout, bytes } = point;
        let has_nodes = self.nodes.is_some() && !layout.is_flat();
        if has_nodes || self.follows_schedules() || check(point).is_err() {
            return None;
        }
        let form = form(collective, algorithm)?;
        let cut = segment_bytes > 0;
        (form.segmented || !cut)
            .then(|| (form, &set.network, CallShape::new(layout.procs(), bytes, segment_bytes)))
    }

    /// All that a method's time at a point is found from.
    pub(crate) fn look_up_method(
        &self,
        point: Point,
        method: &Method,
    ) -> Result<Evaluation<'_>, PredictError> {
        check(point)?;
        let Point { collective, layout, bytes } = point;
        let predictor = match method {
            method if method.is_node_aware() => self.with_nodes_of(layout).unwrap_or(self),
            _ => self.at(layout),
        };
        let segment_bytes = method.segment_bytes();
        let source = predictor.source_of(collective, method, layout.procs())?;
        let algorithm = source.algorithm();
        if segment_bytes > 0 && !source.segmented() {
            return Err(PredictError::Segments { collective, algorithm });
        }
        let shape = CallShape::new(layout.procs(), bytes, segment_bytes);
        let shape = shape.with_fan_out(method.fan_out());
        let Some(set) = predictor.parameters.find(collective, method) else {
            let method = method.clone().with_segment(0);
            return Err(PredictError::Constants { collective, method });
        };
        let root = if collective.is_rooted() { predictor.root.among(layout.procs()) } else { 0 };
        let fewer = predictor.fewer(layout.procs());
        let layout = predictor.sees_nodes().then_some(layout);
        let method = match method {
            Method::Own(own) => *own,
            _ => OwnMethod::plain(algorithm),
        };
        let &Predictor { forms, rendezvous, .. } = predictor;
        let mut evaluation =
            Evaluation { source, forms, shape, set, method, root, layout, rendezvous, fewer };
        if predictor.follows_schedules() {
            evaluation.check_call(collective)?;
            if algorithm == Algorithm::Fitted && method.pace == TreePace::EVEN {
                evaluation.method.pace = refined::pace(&set.network, &shape, collective);
            }
            evaluation.source = evaluation.by_frames(collective);
        }
        Ok(evaluation)
    }
}

fn no_form(collective: Collective, algorithm: Algorithm) -> PredictError {
    if algorithms(collective).is_empty() {
        PredictError::Collective { collective }
    } else {
        PredictError::Algorithm { collective, algorithm }
    }
}

/// Whether the point is one.
#[inline]
pub(crate) fn check(point: Point) -> Result<(), PredictError> {
    let Point { collective, layout, bytes } = point;
    if layout.procs() == 0 {
        return Err(PredictError::Procs);
    }
    if collective == Collective::Barrier && bytes > 0 {
        return Err(PredictError::BarrierBytes { bytes });
    }
    Ok(())
}
