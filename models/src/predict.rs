//! Closed forms at a point, with the uncertainty that the parameters give.

use records::{
    Algorithm, Collective, Library, Method, Native, Point, calibration::Parameters, nearest,
};

use schedules::{CallError, Entry, simulator::SimulationError};

use crate::{
    Forms, Model,
    closed_forms::{COLLECTIVES, Form, Shape, algorithms, form, is_candidate, refined},
    parameters::{MOST_PARAMETERS, Network, ParametersError},
    simulated::Run,
};

/// A predicted time with the interval that the parameters' intervals (95 %) give it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The time.
    pub seconds: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// No time can be predicted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PredictError {
    /// The collective has no closed forms.
    #[error("{collective} has no closed forms (there are for: {})", names(&COLLECTIVES))]
    Collective {
        /// Which.
        collective: Collective,
    },
    /// The algorithm has no closed form for that collective.
    #[error(
        "{collective} has no closed form for '{algorithm}'{} (there are for: {})",
        hint(*.collective, *.algorithm),
        names(algorithms(*.collective))
    )]
    Algorithm {
        /// For which collective.
        collective: Collective,
        /// Which.
        algorithm: Algorithm,
    },
    /// The method has no closed form.
    #[error("{collective} by the method '{method}' has no closed form: {reason}")]
    Method {
        /// For which collective.
        collective: Collective,
        /// Which.
        method: Method,
        /// Why not.
        reason: &'static str,
    },
    /// Segments were asked of an algorithm that has none.
    #[error("{collective} by '{algorithm}' has no segments; wanted segment size 0")]
    Segments {
        /// For which collective.
        collective: Collective,
        /// Which.
        algorithm: Algorithm,
    },
    /// The algorithm has no schedule for that collective, so that no model knows it.
    #[error("{0}")]
    Unknown(String),
    /// The algorithm cannot serve that call.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The simulator gives no time.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// No process.
    #[error("0 processes; a communicator has at least 1")]
    Procs,
    /// A barrier with a message size.
    #[error("a barrier of {bytes} bytes; a barrier carries none, wanted 0")]
    BarrierBytes {
        /// How many.
        bytes: u64,
    },
}

fn names<T: std::fmt::Display>(known: &[T]) -> String {
    known.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn hint(collective: Collective, given: Algorithm) -> String {
    nearest(given.name(), algorithms(collective).iter().map(|algorithm| algorithm.name()))
        .map(|name| format!("; the nearest is '{name}'"))
        .unwrap_or_default()
}

/// One model with its parameters and its version of the closed forms.
#[derive(Debug, Clone)]
pub struct Predictor {
    model: Model,
    forms: Forms,
    network: Network,
    /// Per uncertain parameter, the network with it at either end of its interval.
    ends: Vec<[Network; 2]>,
}

/// How a time is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    Form(&'static Form),
    Simulated(&'static Entry),
}

impl Way {
    pub(crate) fn segmented(&self) -> bool {
        match self {
            Way::Form(form) => form.segmented,
            Way::Simulated(entry) => entry.segmented,
        }
    }

    /// See [`Form::is_candidate`].
    pub(crate) fn is_candidate(&self, shape: &Shape) -> bool {
        let algorithm = match self {
            Way::Form(form) => form.algorithm,
            Way::Simulated(entry) => entry.algorithm,
        };
        is_candidate(algorithm, shape)
    }

    #[inline]
    fn seconds(&self, network: &Network, shape: &Shape, forms: Forms) -> Result<f64, PredictError> {
        match *self {
            Way::Form(form) => Ok(form.seconds(network, shape, forms)),
            Way::Simulated(entry) => Ok(run(entry, shape).seconds(network)?),
        }
    }
}

fn run(entry: &'static Entry, shape: &Shape) -> Run {
    Run {
        entry,
        procs: shape.ranks(),
        root: 0,
        fan_out: None,
        bytes: shape.whole_bytes(),
        segment_bytes: shape.segment(),
    }
}

impl Model {
    /// The algorithms of a collective that the model predicts: those of the paper's table, in its
    /// order, or those that have a schedule, the paper's first.
    pub fn algorithms(self, collective: Collective) -> Vec<Algorithm> {
        let mut known = algorithms(collective).to_vec();
        if matches!(self, Model::Refined | Model::Simulated) {
            for entry in schedules::of_collective(collective) {
                if !known.contains(&entry.algorithm) {
                    known.push(entry.algorithm);
                }
            }
        }
        known
    }

    /// Whether the model's algorithm can do with so many processes (neighbor-exchange needs an
    /// even number); those of the tables all can.
    pub fn serves(self, collective: Collective, algorithm: Algorithm, procs: u32) -> bool {
        let even =
            || schedules::find(collective, algorithm).is_some_and(|entry| entry.requirements.even);
        Model::TABLES.contains(&self) || procs == 1 || procs.is_multiple_of(2) || !even()
    }
}

impl Predictor {
    /// Prepares a model: cheap, but not to be done per prediction.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn new(
        model: Model,
        forms: Forms,
        parameters: &Parameters,
    ) -> Result<Self, ParametersError> {
        let network = Network::new(model, parameters)?;
        Ok(Predictor { model, forms, network, ends: Network::ends(model, parameters)? })
    }

    /// The model.
    pub fn model(&self) -> Model {
        self.model
    }

    /// The version of the closed forms.
    pub fn forms(&self) -> Forms {
        self.forms
    }

    /// The parameters' values.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Seconds that `algorithm` takes with segments of `segment_bytes` (0: unsegmented); the
    /// lower bound where the paper has two.
    ///
    /// # Errors
    /// The model does not know the algorithm (the nearest that it knows is named), the algorithm
    /// has no segments, or the point is none.
    pub fn predict(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<f64, PredictError> {
        let (way, shape) = self.look_up(point, algorithm, segment_bytes)?;
        way.seconds(&self.network, &shape, self.forms)
    }

    /// The upper bound in seconds where the paper has two (flat-tree barrier), else none.
    ///
    /// # Errors
    /// As [`Predictor::predict`].
    pub fn predict_greatest(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<Option<f64>, PredictError> {
        let (way, shape) = self.look_up(point, algorithm, segment_bytes)?;
        Ok(match way {
            Way::Form(form) => form.greatest_seconds(&self.network, &shape, self.forms),
            Way::Simulated(_) => None,
        })
    }

    /// As [`Predictor::predict`], with the interval that the parameters' intervals give.
    ///
    /// Each parameter is put to either end of its interval, the others kept; the deviations are
    /// added in quadrature, as errors of parameters measured separately add. See
    /// [`Network::ends`] for what counts as one parameter. At most 11 evaluations.
    ///
    /// # Errors
    /// As [`Predictor::predict`].
    pub fn predict_with_interval(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<Prediction, PredictError> {
        let (way, shape) = self.look_up(point, algorithm, segment_bytes)?;
        Ok(self.spread(way, &shape)?.prediction())
    }

    /// As [`Predictor::predict_with_interval`], for a method with a closed form.
    ///
    /// # Errors
    /// As [`Predictor::predict`]; the default and mock-ups have no closed form.
    pub fn predict_method(
        &self,
        point: Point,
        method: &Method,
    ) -> Result<Prediction, PredictError> {
        let (way, shape) = self.look_up_method(point, method)?;
        Ok(self.spread(way, &shape)?.prediction())
    }

    /// Whether a method may be decided for at a point: splitted-binary needs two segments.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn is_candidate(&self, point: Point, method: &Method) -> Result<bool, PredictError> {
        let (way, shape) = self.look_up_method(point, method)?;
        Ok(way.is_candidate(&shape))
    }

    /// Seconds of a method, without their interval.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn predict_method_seconds(
        &self,
        point: Point,
        method: &Method,
    ) -> Result<f64, PredictError> {
        let (way, shape) = self.look_up_method(point, method)?;
        self.seconds(way, &shape)
    }

    pub(crate) fn seconds(&self, way: Way, shape: &Shape) -> Result<f64, PredictError> {
        way.seconds(&self.network, shape, self.forms)
    }

    pub(crate) fn spread(&self, way: Way, shape: &Shape) -> Result<Spread, PredictError> {
        let seconds = |network| way.seconds(network, shape, self.forms);
        let value = seconds(&self.network)?;
        let mut ends = [[value; 2]; MOST_PARAMETERS];
        for (place, [low, high]) in ends.iter_mut().zip(&self.ends) {
            *place = [seconds(low)?, seconds(high)?];
        }
        Ok(Spread { value, ends })
    }

    /// Whether the model knows a method, so that it can be a candidate.
    pub fn knows(&self, collective: Collective, method: &Method) -> bool {
        self.way_of(collective, method, 1).is_ok()
    }

    /// Whether an algorithm cuts its message into segments.
    ///
    /// # Errors
    /// The model does not know the algorithm.
    pub fn segmented(
        &self,
        collective: Collective,
        algorithm: Algorithm,
    ) -> Result<bool, PredictError> {
        Ok(self.way(collective, algorithm, 1)?.segmented())
    }

    /// How the model predicts an algorithm.
    fn way(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        procs: u32,
    ) -> Result<Way, PredictError> {
        let found = match self.model {
            Model::Refined => refined::forms(collective)
                .iter()
                .find(|form| form.algorithm == algorithm && form.holds(procs))
                .map(Way::Form)
                .or_else(|| schedules::find(collective, algorithm).map(Way::Simulated)),
            Model::Simulated => schedules::find(collective, algorithm).map(Way::Simulated),
            _ => form(collective, algorithm).map(Way::Form),
        };
        found.ok_or_else(|| self.unknown(collective, algorithm))
    }

    fn unknown(&self, collective: Collective, algorithm: Algorithm) -> PredictError {
        match self.model {
            Model::Refined | Model::Simulated => {
                match schedules::find_named(collective, algorithm.name()) {
                    Err(problem) => PredictError::Unknown(problem),
                    Ok(_) => PredictError::Algorithm { collective, algorithm },
                }
            }
            _ => no_form(collective, algorithm),
        }
    }

    /// How the model predicts a method.
    fn way_of(
        &self,
        collective: Collective,
        method: &Method,
        procs: u32,
    ) -> Result<Way, PredictError> {
        let refuse = |reason| PredictError::Method { collective, method: method.clone(), reason };
        match method {
            Method::Default => Err(refuse("what the library takes is not known")),
            Method::Mockup(_) => Err(refuse("it is composed of other collectives")),
            Method::Native(Native {
                library: Library::OpenMpi,
                algorithm: Algorithm::Linear,
                ..
            }) if collective == Collective::Alltoall => match self.model {
                Model::Refined => Ok(Way::Form(&refined::ALLTOALL_CONCURRENT)),
                Model::Simulated => schedules::find_named(collective, "linear-concurrent")
                    .map(Way::Simulated)
                    .map_err(PredictError::Unknown),
                _ => Err(refuse(
                    "it posts all messages at once, the paper's linear one after the other",
                )),
            },
            Method::Native(Native { algorithm, .. }) | Method::Own { algorithm, .. } => {
                self.way(collective, *algorithm, procs)
            }
        }
    }

    /// The way and what it is to be evaluated at.
    pub(crate) fn look_up(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<(Way, Shape), PredictError> {
        check(point)?;
        let way = self.way(point.collective, algorithm, point.procs)?;
        self.shaped(point, way, algorithm, segment_bytes)
    }

    pub(crate) fn look_up_method(
        &self,
        point: Point,
        method: &Method,
    ) -> Result<(Way, Shape), PredictError> {
        check(point)?;
        let way = self.way_of(point.collective, method, point.procs)?;
        let algorithm = match way {
            Way::Form(form) => form.algorithm,
            Way::Simulated(entry) => entry.algorithm,
        };
        self.shaped(point, way, algorithm, method.segment_bytes())
    }

    #[inline]
    fn shaped(
        &self,
        point: Point,
        way: Way,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<(Way, Shape), PredictError> {
        let Point { collective, procs, bytes } = point;
        if segment_bytes > 0 && !way.segmented() {
            return Err(PredictError::Segments { collective, algorithm });
        }
        let shape = Shape::new(procs, bytes, segment_bytes);
        if matches!(self.model, Model::Refined | Model::Simulated)
            && let Some(entry) = schedules::find(collective, algorithm)
        {
            let run = run(entry, &shape);
            entry.check(&run.call(&run.blocks()))?;
        }
        Ok((way, shape))
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
pub(crate) fn check(point: Point) -> Result<(), PredictError> {
    let Point { collective, procs, bytes } = point;
    if procs == 0 {
        return Err(PredictError::Procs);
    }
    if collective == Collective::Barrier && bytes > 0 {
        return Err(PredictError::BarrierBytes { bytes });
    }
    Ok(())
}

/// A time at the parameters' values and with each parameter at either end of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) value: f64,
    ends: [[f64; 2]; MOST_PARAMETERS],
}

impl Spread {
    pub(crate) fn prediction(&self) -> Prediction {
        let squares = |deviation: fn(f64, f64) -> f64| {
            let square = |[low, high]: &[f64; 2]| {
                let a = deviation(*low, self.value);
                let b = deviation(*high, self.value);
                a.max(b).max(0.0).powi(2)
            };
            self.ends.iter().map(square).sum::<f64>().sqrt()
        };
        let (below, above) = (squares(|end, value| value - end), squares(|end, value| end - value));
        Prediction {
            seconds: self.value,
            low: (self.value - below).max(0.0),
            high: self.value + above,
        }
    }

    /// Whether the parameters' uncertainty lets this be as cheap as `best`, which is cheaper at
    /// their values.
    ///
    /// Both are evaluated at the same ends of the same parameters, and what is added up are the
    /// deviations of their difference: an error that both share does not make them a tie.
    pub(crate) fn may_be_as_cheap_as(&self, best: &Spread) -> bool {
        let difference = self.value - best.value;
        let square = |(this, other): (&[f64; 2], &[f64; 2])| {
            let towards =
                f64::max(difference - (this[0] - other[0]), difference - (this[1] - other[1]));
            towards.max(0.0).powi(2)
        };
        let spread = self.ends.iter().zip(&best.ends).map(square).sum::<f64>().sqrt();
        difference <= spread || equal(self.value, best.value)
    }
}

/// Equal but for rounding: the same time, reached by another order of additions.
pub(crate) fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}
