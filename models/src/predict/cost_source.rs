//! How a time is found: which closed form, or which schedule for the simulator.

use records::{Algorithm, Collective, Method, Point, TreePace};
use schedules::Entry;

use super::{PredictError, Predictor, Set, Sets};
use crate::{
    Evaluator, Forms,
    closed_forms::{CallShape, ClosedForm, algorithms, form, is_candidate, refined},
    parameters::Network,
    simulated::{Run, RunLevels},
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
    pub(crate) set: &'a Set,
    /// Of a fitted tree that is simulated.
    pub(crate) pace: TreePace,
}

impl Evaluation<'_> {
    /// See [`ClosedForm::is_candidate`].
    pub(crate) fn is_candidate(&self) -> bool {
        is_candidate(self.way.algorithm(), &self.shape)
    }

    /// Whether what is simulated surely takes longer; false of a closed form, and where it is not
    /// known.
    pub(crate) fn surely_exceeds(&self, seconds: f64) -> bool {
        self.at_least(&self.set.network, seconds) > seconds
    }

    /// Seconds that what is simulated surely takes at least with other parameters, see
    /// [`Run::at_least`]; 0 of a closed form.
    pub(crate) fn at_least(&self, network: &Network, enough: f64) -> f64 {
        match self.way {
            CostSource::Form(_) => 0.0,
            CostSource::Simulated(entry) => self.run(entry).at_least(network, enough),
        }
    }

    /// Seconds that what is simulated takes less at most with other parameters; none of a closed form,
    /// and where that is not known.
    pub(crate) fn saves_at_most(&self, network: &Network) -> Option<f64> {
        match self.way {
            CostSource::Form(_) => None,
            CostSource::Simulated(entry) => {
                self.run(entry).saves_at_most(&self.set.network, network)
            }
        }
    }

    /// With each of several other parameters.
    pub(crate) fn seconds_with_each(
        &self,
        networks: &[&Network],
        forms: Forms,
    ) -> Result<Vec<f64>, PredictError> {
        match self.way {
            CostSource::Form(form) => {
                let seconds = |network: &&Network| form.seconds(network, &self.shape, forms);
                Ok(networks.iter().map(seconds).collect())
            }
            CostSource::Simulated(entry) => Ok(self.run(entry).seconds_with_each(networks)?),
        }
    }

    /// With other parameters.
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

    fn run(&self, entry: &'static Entry) -> Run {
        Run { pace: self.pace, ..run(entry, &self.shape) }
    }
}

fn run(entry: &'static Entry, shape: &CallShape) -> Run {
    Run {
        entry,
        procs: shape.ranks(),
        root: 0,
        fan_out: Some(shape.fan_out()),
        pace: TreePace::EVEN,
        bytes: shape.whole_bytes(),
        segment_bytes: shape.segment(),
        levels: RunLevels::default(),
    }
}

impl Predictor {
    #[inline]
    fn follows_schedules(&self) -> bool {
        self.model.evaluator().follows_schedules()
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
            Evaluator::Refined => refined::forms(collective),
            _ => &[],
        };
        forms
            .iter()
            .find(|form| form.algorithm == algorithm && form.holds(procs))
            .map(CostSource::Form)
            .or_else(|| schedules::find(collective, algorithm).map(CostSource::Simulated))
    }

    #[cold]
    fn unknown(&self, collective: Collective, algorithm: Algorithm) -> PredictError {
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
            Method::NodeAware(_) => {
                Err(refuse("it depends on the nodes of the ranks, which this model doesn't know"))
            }
            Method::Other(_) => Err(refuse("what another's method does is not known")),
            Method::Native(native) => {
                match (libraries::unlike_its_name(collective, native), self.follows_schedules()) {
                    (None, _) => self.way(collective, native.algorithm, procs),
                    (Some((like, _)), true) => self.way(collective, like, procs),
                    (Some((_, why)), false) => Err(refuse(why)),
                }
            }
            Method::Own { algorithm, .. } => self.way(collective, *algorithm, procs),
            Method::Shaped(_) if !self.follows_schedules() => {
                Err(refuse("the tables' forms know no other fan-outs"))
            }
            // The forms know trees that are made for the network, not for another one.
            Method::Shaped(shaped) if shaped.pace != TreePace::EVEN => {
                schedules::find(collective, shaped.algorithm)
                    .map(CostSource::Simulated)
                    .ok_or_else(|| self.unknown(collective, shaped.algorithm))
            }
            Method::Shaped(shaped) => match schedules::find(collective, shaped.algorithm) {
                Some(entry) if !entry.fanned => Err(refuse("it has no fan-out")),
                _ => self.way(collective, shaped.algorithm, procs),
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
        let Sets::Common(set) = &self.sets else { return None };
        let Point { collective, layout, bytes } = point;
        if self.follows_schedules() || check(point).is_err() {
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
        self.look_up_method(point, &Method::Own { algorithm, segment_bytes })
    }

    /// What the time of a method is found from.
    pub(crate) fn look_up_method(
        &self,
        point: Point,
        method: &Method,
    ) -> Result<Evaluation<'_>, PredictError> {
        check(point)?;
        let Point { collective, layout, bytes } = point;
        let segment_bytes = method.segment_bytes();
        let way = self.way_of(collective, method, layout.procs())?;
        let algorithm = way.algorithm();
        if segment_bytes > 0 && !way.segmented() {
            return Err(PredictError::Segments { collective, algorithm });
        }
        let shape = CallShape::new(layout.procs(), bytes, segment_bytes);
        let shape = shape.with_fan_out(method.fan_out());
        if self.follows_schedules() {
            check_call(collective, algorithm, &shape)?;
        }
        let Some(set) = self.sets.find(collective, method) else {
            let method = method.clone().with_segment(0);
            return Err(PredictError::Constants { collective, method });
        };
        let pace = match method.pace() {
            TreePace::EVEN if algorithm == Algorithm::Fitted && self.follows_schedules() => {
                refined::pace(&set.network, &shape, collective)
            }
            pace => pace,
        };
        Ok(Evaluation { way, shape, set, pace })
    }
}

/// Whether the schedule can serve that call.
#[inline(never)]
fn check_call(
    collective: Collective,
    algorithm: Algorithm,
    shape: &CallShape,
) -> Result<(), PredictError> {
    if let Some(entry) = schedules::find(collective, algorithm) {
        let run = run(entry, shape);
        entry.check(&run.call(&run.tables()))?;
    }
    Ok(())
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
