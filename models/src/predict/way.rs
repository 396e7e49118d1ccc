//! How a time is found: which closed form, or which schedule for the simulator.

use records::{Algorithm, Collective, Method, Point};
use schedules::Entry;

use super::{PredictError, Predictor, Set, Sets};
use crate::{
    Forms, Model,
    closed_forms::{Form, Shape, algorithms, form, is_candidate, refined},
    parameters::Network,
    simulated::Run,
};

/// How a time is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    Form(&'static Form),
    Simulated(&'static Entry),
}

impl Way {
    #[inline]
    pub(crate) fn segmented(&self) -> bool {
        match self {
            Way::Form(form) => form.segmented,
            Way::Simulated(entry) => entry.segmented,
        }
    }

    fn algorithm(&self) -> Algorithm {
        match self {
            Way::Form(form) => form.algorithm,
            Way::Simulated(entry) => entry.algorithm,
        }
    }

    #[inline]
    fn seconds(&self, network: &Network, shape: &Shape, forms: Forms) -> Result<f64, PredictError> {
        match *self {
            Way::Form(form) => Ok(form.seconds(network, shape, forms)),
            Way::Simulated(entry) => simulate(entry, network, shape),
        }
    }
}

/// What a method's time is found from: how, for which call, with which parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought<'a> {
    pub(crate) way: Way,
    pub(crate) shape: Shape,
    pub(crate) set: &'a Set,
}

impl Sought<'_> {
    /// See [`Form::is_candidate`].
    pub(crate) fn is_candidate(&self) -> bool {
        is_candidate(self.way.algorithm(), &self.shape)
    }

    /// Whether what is simulated surely takes longer; false of a closed form, and where it is not
    /// known.
    pub(crate) fn surely_exceeds(&self, seconds: f64) -> bool {
        match self.way {
            Way::Form(_) => false,
            Way::Simulated(entry) => {
                run(entry, &self.shape).surely_exceeds(&self.set.network, seconds)
            }
        }
    }

    /// With other parameters.
    #[inline]
    pub(crate) fn seconds(&self, network: &Network, forms: Forms) -> Result<f64, PredictError> {
        self.way.seconds(network, &self.shape, forms)
    }
}

#[inline(never)]
fn simulate(entry: &'static Entry, network: &Network, shape: &Shape) -> Result<f64, PredictError> {
    Ok(run(entry, shape).seconds(network)?)
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

impl Predictor {
    /// How the model predicts an algorithm.
    #[inline]
    pub(super) fn way(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        procs: u32,
    ) -> Result<Way, PredictError> {
        let found = match self.model {
            Model::Refined | Model::Simulated => self.way_of_schedule(collective, algorithm, procs),
            _ => form(collective, algorithm).map(Way::Form),
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
    ) -> Option<Way> {
        let forms = match self.model {
            Model::Refined => refined::forms(collective),
            _ => &[],
        };
        forms
            .iter()
            .find(|form| form.algorithm == algorithm && form.holds(procs))
            .map(Way::Form)
            .or_else(|| schedules::find(collective, algorithm).map(Way::Simulated))
    }

    #[cold]
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
    pub(super) fn way_of(
        &self,
        collective: Collective,
        method: &Method,
        procs: u32,
    ) -> Result<Way, PredictError> {
        let refuse = |reason| PredictError::Method { collective, method: method.clone(), reason };
        match method {
            Method::Default => Err(refuse("what the library takes is not known")),
            Method::Mockup(_) => Err(refuse("it is composed of other collectives")),
            Method::Plugin(_) => Err(refuse("what a plug-in does is not known")),
            Method::Native(native) => {
                match (libraries::unlike_its_name(collective, native), self.model) {
                    (None, _) => self.way(collective, native.algorithm, procs),
                    (Some((like, _)), Model::Refined | Model::Simulated) => {
                        self.way(collective, like, procs)
                    }
                    (Some((_, why)), _) => Err(refuse(why)),
                }
            }
            Method::Own { algorithm, .. } => self.way(collective, *algorithm, procs),
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
    ) -> Option<(&'static Form, &Network, Shape)> {
        let Sets::Common(set) = &self.sets else { return None };
        let Point { collective, procs, bytes } = point;
        if matches!(self.model, Model::Refined | Model::Simulated) || check(point).is_err() {
            return None;
        }
        let form = form(collective, algorithm)?;
        let cut = segment_bytes > 0;
        (form.segmented || !cut)
            .then(|| (form, &set.network, Shape::new(procs, bytes, segment_bytes)))
    }

    /// What the time of an algorithm is found from; it is ours where that makes a difference.
    pub(crate) fn look_up(
        &self,
        point: Point,
        algorithm: Algorithm,
        segment_bytes: u64,
    ) -> Result<Sought<'_>, PredictError> {
        self.look_up_method(point, &Method::Own { algorithm, segment_bytes })
    }

    /// What the time of a method is found from.
    pub(crate) fn look_up_method(
        &self,
        point: Point,
        method: &Method,
    ) -> Result<Sought<'_>, PredictError> {
        check(point)?;
        let Point { collective, procs, bytes } = point;
        let segment_bytes = method.segment_bytes();
        let way = self.way_of(collective, method, procs)?;
        let algorithm = way.algorithm();
        if segment_bytes > 0 && !way.segmented() {
            return Err(PredictError::Segments { collective, algorithm });
        }
        let shape = Shape::new(procs, bytes, segment_bytes);
        if matches!(self.model, Model::Refined | Model::Simulated) {
            check_call(collective, algorithm, &shape)?;
        }
        let Some(set) = self.sets.of(collective, method) else {
            let method = method.clone().with_segment(0);
            return Err(PredictError::Constants { collective, method });
        };
        Ok(Sought { way, shape, set })
    }
}

/// Whether the schedule can serve that call.
#[inline(never)]
fn check_call(
    collective: Collective,
    algorithm: Algorithm,
    shape: &Shape,
) -> Result<(), PredictError> {
    if let Some(entry) = schedules::find(collective, algorithm) {
        let run = run(entry, shape);
        entry.check(&run.call(&run.blocks()))?;
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
    let Point { collective, procs, bytes } = point;
    if procs == 0 {
        return Err(PredictError::Procs);
    }
    if collective == Collective::Barrier && bytes > 0 {
        return Err(PredictError::BarrierBytes { bytes });
    }
    Ok(())
}
