//! The parameters that forms are evaluated with: one set for all methods, or one for each.

use records::{
    Collective, Method,
    calibration::{AlgorithmFit, Parameters},
};

use crate::{
    Model,
    parameters::{End, Hockney, Network, ParametersError, PointToPoint, at_end},
};

/// Parameters, and the same at the ends of their intervals.
#[derive(Debug, Clone)]
pub(crate) struct Set {
    pub(crate) network: Network,
    /// Per uncertain parameter, the network with it at either end of its interval.
    pub(super) ends: Vec<[Network; 2]>,
    /// Tells it from others, whose errors are independent of its own.
    pub(super) number: usize,
}

/// All parameters of a predictor.
#[derive(Debug, Clone)]
pub(crate) enum Sets {
    /// The same for all methods.
    Common(Set),
    /// For each algorithm its own; the methods have no segments.
    ByMethod(Vec<(Collective, Method, Set)>),
}

impl Sets {
    /// # Errors
    /// As [`Network::new`].
    pub(super) fn common(model: Model, parameters: &Parameters) -> Result<Self, ParametersError> {
        let network = Network::new(model, parameters)?;
        let ends = Network::ends(model, parameters)?;
        Ok(Sets::Common(Set { network, ends, number: 0 }))
    }

    /// Of the model's constants; combining is as measured, and its error no matter beside theirs.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub(super) fn by_method(
        model: Model,
        fits: &[AlgorithmFit],
        measured: &Parameters,
    ) -> Result<Self, ParametersError> {
        let combining = Network::new(Model::Hockney, measured)?.combining;
        let of_model = fits.iter().filter(|fit| fit.model == model.name());
        let set = |(number, fit): (usize, &AlgorithmFit)| {
            let network = |[alpha, beta]: [Option<End>; 2]| Network {
                model: PointToPoint::Hockney(Hockney {
                    alpha: at_end(fit.alpha_seconds, alpha),
                    beta: at_end(fit.beta_seconds_per_byte, beta),
                }),
                combining: combining.clone(),
            };
            let alphas = [End::Low, End::High].map(|end| network([Some(end), None]));
            let betas = [End::Low, End::High].map(|end| network([None, Some(end)]));
            let set = Set { network: network([None, None]), ends: vec![alphas, betas], number };
            (fit.collective, fit.method.clone(), set)
        };
        Ok(Sets::ByMethod(of_model.enumerate().map(set).collect()))
    }

    /// The set of a method; none where it has no constants.
    pub(super) fn of(&self, collective: Collective, method: &Method) -> Option<&Set> {
        match self {
            Sets::Common(set) => Some(set),
            Sets::ByMethod(sets) => {
                let wanted = method.clone().with_segment(0);
                let found = sets.iter().find(|(of, one, _)| *of == collective && *one == wanted);
                found.map(|(_, _, set)| set)
            }
        }
    }

    pub(super) fn all(&self) -> Box<dyn Iterator<Item = &Set> + '_> {
        match self {
            Sets::Common(set) => Box::new(std::iter::once(set)),
            Sets::ByMethod(sets) => Box::new(sets.iter().map(|(_, _, set)| set)),
        }
    }

    /// The same with every network changed.
    pub(super) fn changed(mut self, change: impl Fn(&mut Network)) -> Self {
        match &mut self {
            Sets::Common(set) => change(&mut set.network),
            Sets::ByMethod(sets) => {
                sets.iter_mut().for_each(|(_, _, set)| change(&mut set.network))
            }
        }
        self
    }
}
