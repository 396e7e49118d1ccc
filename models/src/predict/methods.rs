//! Which methods a model knows, and in which ways an algorithm can be one.

use records::{Algorithm, Collective, Method, OwnMethod};

use super::{ModelParameters, PredictError, Predictor, cost_source::Evaluation};
use crate::Point;

/// Fan-outs that are candidates beside the standard one. The trees of the libraries' own broadcasts and
/// reductions have none: what another fan-out would do there, fitted trees do better.
pub fn fan_outs(collective: Collective, algorithm: Algorithm) -> &'static [u32] {
    match (collective, algorithm) {
        (Collective::Bcast | Collective::Reduce, Algorithm::Fitted) => &[1, 2, 3, 4],
        (Collective::Bcast | Collective::Reduce, Algorithm::Circulant) => &[2, 4],
        (Collective::Gather | Collective::Scatter, Algorithm::KNomial)
        | (_, Algorithm::RecursiveMultiplying | Algorithm::KBruck) => &[3, 8, 16],
        // Groups: ranks that share a cache are 4 to 16 in most processors.
        (_, Algorithm::SharedFlags) => &[4, 8, 16],
        _ => &[],
    }
}

impl Predictor {
    /// Whether each algorithm has constants of its own.
    pub fn is_by_method(&self) -> bool {
        matches!(self.parameters, ModelParameters::ByMethod(_))
    }

    /// The algorithms of a collective that the model covers with these parameters, those that look at nodes aside.
    pub fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        let shared = schedules::shared_of_collective(collective);
        let shared = shared.filter(|_| self.knows_shared_memory());
        let mut known = self.model.algorithms(collective);
        known.extend(shared.map(|entry| entry.algorithm));
        known
    }

    /// In which ways an algorithm can be carried out, as far as predictions differ, without
    /// segments: as ours, which stands for all, where the parameters are the same for all; else
    /// as the library's and as ours, if they have constants.
    pub fn methods(&self, collective: Collective, algorithm: Algorithm) -> Vec<Method> {
        let ModelParameters::ByMethod(sets) = &self.parameters else {
            let plain = OwnMethod::plain(algorithm);
            let others = match self.model.evaluator().follows_schedules() {
                true => fan_outs(collective, algorithm),
                false => &[],
            };
            let others = others.iter().map(|&fan_out| OwnMethod { fan_out, ..plain });
            return std::iter::once(plain).chain(others).map(Method::Own).collect();
        };
        let of_collective = sets.iter().filter(|(of, ..)| *of == collective);
        let methods = of_collective.map(|(_, method, _)| method);
        methods
            .filter(|method| method.algorithm() == Some(algorithm))
            .filter(|method| self.knows(collective, method))
            .cloned()
            .collect()
    }

    /// A method with what it is made for at a point: a fitted tree with the numbers of its network, which
    /// a profile holds.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn made_for(&self, point: Point, method: &Method) -> Result<Method, PredictError> {
        Ok(self.look_up_method(point, method)?.made(point, method.clone()))
    }

    /// Whether the model knows a method, so that it can be a candidate.
    pub fn knows(&self, collective: Collective, method: &Method) -> bool {
        self.source_of(collective, method, 1).is_ok()
            && self.parameters.find(collective, method).is_some()
    }

    /// Whether a method may cut its message into segments.
    ///
    /// # Errors
    /// The model does not know the method.
    pub fn segmented(&self, collective: Collective, method: &Method) -> Result<bool, PredictError> {
        Ok(self.source_of(collective, method, 1)?.segmented())
    }
}

impl Evaluation<'_> {
    /// The method that is looked up; a fitted tree with what it is made for.
    pub(crate) fn made(&self, point: Point, method: Method) -> Method {
        match method {
            Method::Own(fitted)
                if fitted.algorithm == Algorithm::Fitted
                    && !fitted.by_node
                    && point.procs() > 1 =>
            {
                Method::Own(fitted.with_pace(self.method.pace))
            }
            _ => method,
        }
    }
}
