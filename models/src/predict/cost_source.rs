//! How a time is found: which closed form, or which schedule for the simulator.

use records::{Algorithm, Collective, Layout, Method, OwnMethod, Point, TreePace};
use schedules::{Entry, find_method};

use super::{ModelParameters, PredictError, Predictor, UncertainNetwork};
use crate::{
    Evaluator, Forms,
    closed_forms::{CallShape, ClosedForm, algorithms, form, is_candidate, refined},
    parameters::Network,
    simulated::{LevelledNetwork, MAX_MEMORY_RANKS, Rendezvous, SimulatedCall, SimulatedTime},
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
    pub(crate) way: CostSource,
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
}

/// How long a call takes, and the messages that were simulated to tell that; none of a closed form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FoundTime {
    pub(super) seconds: f64,
    pub(super) messages: Option<u64>,
}

impl From<SimulatedTime> for FoundTime {
    fn from(SimulatedTime { seconds, messages }: SimulatedTime) -> Self {
        FoundTime { seconds, messages: Some(messages) }
    }
}

impl Evaluation<'_> {
    /// See [`ClosedForm::is_candidate`].
    pub(crate) fn is_candidate(&self) -> bool {
        is_candidate(self.way.algorithm(), &self.shape)
    }

    /// Whether a lower bound of the simulated time exceeds `seconds`; false of a closed form, and where
    /// there is no bound.
    pub(crate) fn surely_exceeds(&self, seconds: f64) -> bool {
        self.at_least(&self.set.network, seconds) > seconds
    }

    /// A lower bound of the simulated time with other parameters, in seconds, see
    /// [`SimulatedCall::at_least`]; 0 of a closed form, and on nodes of several ranks.
    pub(crate) fn at_least(&self, network: &Network, enough: f64) -> f64 {
        match (self.way, &self.set.levels) {
            (CostSource::Simulated(entry), None) => self.run(entry).at_least(network, enough),
            _ => 0.0,
        }
    }

    /// An upper bound of the seconds by which the simulated time falls with other parameters; none of a closed
    /// form, and where there is no bound.
    pub(crate) fn saves_at_most(&self, network: &Network) -> Option<f64> {
        match (self.way, &self.set.levels) {
            (CostSource::Simulated(entry), None) => {
                self.run(entry).saves_at_most(&self.set.network, network)
            }
            _ => None,
        }
    }

    /// With the set's parameters, and with each of them at the lower and the upper end of its interval; without
    /// the ends where simulating them, too, takes many seconds.
    pub(super) fn value_and_ends_in_time(
        &self,
        forms: Forms,
    ) -> Result<(FoundTime, Option<Vec<f64>>), PredictError> {
        let has_ends = match &self.set.levels {
            None => !self.set.ends.is_empty(),
            Some(levels) => !levels.ends.is_empty(),
        };
        match self.way {
            CostSource::Simulated(entry) if has_ends && self.run(entry).takes_long() => {
                Ok((self.found(forms)?, None))
            }
            _ => {
                let (value, ends) = self.value_and_ends(forms)?;
                Ok((value, Some(ends)))
            }
        }
    }

    /// With the set's parameters, and with each of them at the lower and the upper end of its interval.
    pub(super) fn value_and_ends(
        &self,
        forms: Forms,
    ) -> Result<(FoundTime, Vec<f64>), PredictError> {
        let mut times = match &self.set.levels {
            None => {
                let ends = self.set.ends.iter().flatten();
                let networks: Vec<&Network> =
                    std::iter::once(&self.set.network).chain(ends).collect();
                self.with_each(&networks, forms)?
            }
            Some(levels) => {
                let ends = levels.ends.iter().flatten();
                let networks = std::iter::once(&levels.network).chain(ends);
                self.on_levels(&networks.collect::<Vec<_>>(), forms)?
            }
        };
        let ends = times.split_off(1).into_iter().map(|end| end.seconds).collect();
        Ok((times[0], ends))
    }

    /// The same without the set's parameters themselves.
    pub(crate) fn ends(&self, forms: Forms) -> Result<Vec<f64>, PredictError> {
        let ends = match &self.set.levels {
            None => self.with_each(&self.set.ends.iter().flatten().collect::<Vec<_>>(), forms),
            Some(levels) => {
                self.on_levels(&levels.ends.iter().flatten().collect::<Vec<_>>(), forms)
            }
        };
        Ok(ends?.into_iter().map(|end| end.seconds).collect())
    }

    fn with_each(
        &self,
        networks: &[&Network],
        forms: Forms,
    ) -> Result<Vec<FoundTime>, PredictError> {
        match self.way {
            CostSource::Form(form) => {
                let time = |network: &&Network| FoundTime {
                    seconds: form.seconds(network, &self.shape, forms),
                    messages: None,
                };
                Ok(networks.iter().map(time).collect())
            }
            CostSource::Simulated(entry) => {
                let times = self.run(entry).times_with_each(networks)?;
                Ok(times.into_iter().map(FoundTime::from).collect())
            }
        }
    }

    fn on_levels(
        &self,
        networks: &[&LevelledNetwork],
        forms: Forms,
    ) -> Result<Vec<FoundTime>, PredictError> {
        match self.way {
            CostSource::Form(_) => {
                let between = networks.iter().map(|network| &network.between);
                self.with_each(&between.collect::<Vec<_>>(), forms)
            }
            CostSource::Simulated(entry) => {
                let times = self.run(entry).times_on_levels(networks)?;
                Ok(times.into_iter().map(FoundTime::from).collect())
            }
        }
    }

    fn found(&self, forms: Forms) -> Result<FoundTime, PredictError> {
        Ok(match &self.set.levels {
            None => self.with_each(&[&self.set.network], forms)?[0],
            Some(levels) => self.on_levels(&[&levels.network], forms)?[0],
        })
    }

    /// With the set's parameters.
    #[inline]
    pub(crate) fn value(&self, forms: Forms) -> Result<f64, PredictError> {
        match &self.set.levels {
            None => self.seconds(&self.set.network, forms),
            Some(levels) => Ok(self.on_levels(&[&levels.network], forms)?[0].seconds),
        }
    }

    /// With other parameters, each rank on a node of its own.
    #[inline]
    pub(crate) fn seconds(&self, network: &Network, forms: Forms) -> Result<f64, PredictError> {
        match self.way {
            CostSource::Form(form) => Ok(form.seconds(network, &self.shape, forms)),
            CostSource::Simulated(entry) => self.simulate(entry, network),
        }
    }

    #[inline(never)]
    fn simulate(&self, entry: &'static Entry, network: &Network) -> Result<f64, PredictError> {
        Ok(self.run(entry).seconds(network)?)
    }

    pub(super) fn run(&self, entry: &'static Entry) -> SimulatedCall {
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
        let entry = match self.way {
            CostSource::Simulated(entry) => Some(entry),
            CostSource::Form(form) => schedules::find(collective, form.algorithm),
        };
        if let Some(entry) = entry {
            let run = self.run(entry);
            entry.check(&run.call(&run.tables()))?;
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
            ModelParameters::Common(set) => {
                set.network.memory.is_some() && procs <= MAX_MEMORY_RANKS
            }
            ModelParameters::ByMethod(_) => false,
        }
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

    /// How the model predicts an algorithm.
    #[inline]
    pub(super) fn way(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        procs: u32,
    ) -> Result<CostSource, PredictError> {
        let found = match self.follows_schedules() {
            true => self.way_of_schedule(collective, algorithm, procs),
            false => form(collective, algorithm).map(CostSource::Form),
        };
        match found {
            Some(way) => Ok(way),
            None => Err(self.unknown(collective, algorithm)),
        }
    }

    /// How a model that follows the schedules predicts an algorithm.
    #[inline(never)]
    fn way_of_schedule(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        procs: u32,
    ) -> Option<CostSource> {
        let forms = match self.model.evaluator() {
            Evaluator::Refined if !self.sees_nodes() && !self.simulates_memory(procs) => {
                refined::forms(collective)
            }
            _ => &[],
        };
        forms
            .iter()
            .find(|form| form.algorithm == algorithm && form.holds(procs))
            .map(CostSource::Form)
            .or_else(|| schedules::find(collective, algorithm).map(CostSource::Simulated))
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

    /// How the model predicts a method.
    pub(super) fn way_of(
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
            method if method.shares_memory() => {
                Err(refuse("what memory costs that ranks share is not known"))
            }
            Method::Own(own) if own.is_node_aware() => {
                match find_method(collective, own).filter(|_| self.sees_nodes()) {
                    Some(entry) => Ok(CostSource::Simulated(entry)),
                    None => Err(refuse("it looks at nodes, and there are none of several ranks")),
                }
            }
            Method::Other(_) => Err(refuse("what another's method does is not known")),
            Method::Native(native) => self.way_of_native(collective, native, procs),
            Method::Own(own) if !own.is_parametrized() => {
                self.way(collective, own.algorithm, procs)
            }
            Method::Own(_) if !self.follows_schedules() => {
                Err(refuse("the tables' forms know no other fan-outs"))
            }
            Method::Own(own) => match schedules::find(collective, own.algorithm) {
                Some(entry) if !entry.fanned => Err(refuse("it has no fan-out")),
                // The forms know trees that are made for the network, not for another one.
                Some(entry) if own.pace != TreePace::EVEN => Ok(CostSource::Simulated(entry)),
                _ => self.way(collective, own.algorithm, procs),
            },
        }
    }

    /// The same as [`Predictor::look_up`] where that gives one of the tables' forms.
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

    /// What the time of an algorithm is found from; it is ours where that makes a difference.
    pub(crate) fn look_up(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<Evaluation<'_>, PredictError> {
        self.look_up_method(point, &Method::own(algorithm).with_segment(segment_bytes))
    }

    /// What the time of a method is found from.
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
        let way = predictor.way_of(collective, method, layout.procs())?;
        let algorithm = way.algorithm();
        if segment_bytes > 0 && !way.segmented() {
            return Err(PredictError::Segments { collective, algorithm });
        }
        let shape = CallShape::new(layout.procs(), bytes, segment_bytes);
        let shape = shape.with_fan_out(method.fan_out());
        let Some(set) = predictor.parameters.find(collective, method) else {
            let method = method.clone().with_segment(0);
            return Err(PredictError::Constants { collective, method });
        };
        let root = if collective.is_rooted() { predictor.root.among(layout.procs()) } else { 0 };
        let layout = predictor.sees_nodes().then_some(layout);
        let method = match method {
            Method::Own(own) => *own,
            _ => OwnMethod::plain(algorithm),
        };
        let rendezvous = predictor.rendezvous;
        let mut evaluation = Evaluation { way, shape, set, method, root, layout, rendezvous };
        if predictor.follows_schedules() {
            evaluation.check_call(collective)?;
            if algorithm == Algorithm::Fitted && method.pace == TreePace::EVEN {
                evaluation.method.pace = refined::pace(&set.network, &shape, collective);
            }
            evaluation.way = evaluation.by_frames(collective);
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
