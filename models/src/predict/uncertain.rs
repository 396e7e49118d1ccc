//! The parameters that forms are evaluated with: one set for all methods, or one for each.

use records::{
    Collective, Method,
    calibration::{AlgorithmFit, InsideNode, Parameters},
};

use crate::{
    Model,
    parameters::{End, Hockney, Network, ParametersError, PointToPointParameters, at_end},
    simulated::{LevelledNetwork, inside_parameters},
};

/// Parameters, and the same at the ends of their intervals.
#[derive(Debug, Clone)]
pub(crate) struct UncertainNetwork {
    pub(crate) network: Network,
    /// Per uncertain parameter, the network with it at either end of its interval.
    pub(super) ends: Vec<[Network; 2]>,
    /// With no cost above that of `network`, and none that falls while the size grows.
    pub(crate) rising: Network,
    /// As `rising`, with no cost above that at any of the ends either.
    pub(crate) least: Network,
    /// With no cost above that of `network`, and none that a byte has more of in larger messages.
    pub(crate) shrinking: Network,
    /// As `shrinking`, with no cost above that of `least`.
    pub(crate) least_shrinking: Network,
    /// Tells it from others, whose errors are independent of its own.
    pub(super) number: usize,
    /// What is known of nodes that hold several ranks, where these are to be simulated.
    pub(crate) levels: Option<UncertainLevels>,
}

/// Parameters of both levels.
#[derive(Debug, Clone)]
pub(crate) struct UncertainLevels {
    pub(crate) network: LevelledNetwork,
    /// Per uncertain parameter of a level, the networks with it at either end of its interval.
    pub(crate) ends: Vec<[LevelledNetwork; 2]>,
}

/// Relatively; by far more than what two ways of adding up the same times differ by.
const MORE_THAN_ROUNDING: f64 = 1e-9;

impl UncertainNetwork {
    fn new(network: Network, ends: Vec<[Network; 2]>, number: usize) -> Self {
        let least = network.least(&ends.iter().flatten().collect::<Vec<_>>());
        let [shrinking, least_shrinking] = [&network, &least].map(Network::shrinking_per_byte);
        let (rising, levels) = (network.least(&[]), None);
        UncertainNetwork {
            network,
            ends,
            rising,
            least,
            shrinking,
            least_shrinking,
            number,
            levels,
        }
    }

    /// Without intervals.
    fn changed(&mut self, change: impl Fn(&mut Network)) {
        change(&mut self.network);
        *self = UncertainNetwork::new(self.network.clone(), Vec::new(), self.number);
    }

    /// By how much of itself a time may fall, and rise, over all parameters' intervals.
    fn deviations(&self) -> [f64; 2] {
        let of_ends: Vec<[[f64; 2]; 2]> = match &self.levels {
            None => {
                let relative = |end: &Network| end.relative_to(&self.network);
                self.ends.iter().map(|ends| ends.each_ref().map(relative)).collect()
            }
            Some(UncertainLevels { network, ends }) => {
                let relative = |end: &LevelledNetwork| end.relative_to(network);
                ends.iter().map(|ends| ends.each_ref().map(relative)).collect()
            }
        };
        let squares = of_ends.into_iter().map(|[least, most]| {
            let (low, high) = (least[0].min(most[0]), least[1].max(most[1]));
            [(1.0 - low).max(0.0).powi(2), (high - 1.0).max(0.0).powi(2)]
        });
        let sums = squares.fold([0.0; 2], |sum, square| [sum[0] + square[0], sum[1] + square[1]]);
        sums.map(f64::sqrt)
    }
}

/// All parameters of a predictor.
#[derive(Debug, Clone)]
pub(crate) enum ModelParameters {
    /// One set for all methods.
    Common(Box<UncertainNetwork>),
    /// For each algorithm its own; the methods have no segments.
    ByMethod(Vec<(Collective, Method, UncertainNetwork)>),
}

impl ModelParameters {
    /// # Errors
    /// As [`Network::new`].
    pub(super) fn common(model: Model, parameters: &Parameters) -> Result<Self, ParametersError> {
        let network = Network::new(model, parameters)?;
        let ends = Network::ends(model, parameters)?;
        Ok(ModelParameters::Common(Box::new(UncertainNetwork::new(network, ends, 0))))
    }

    /// The parameters are those of [`LevelledNetwork::new`]. The port's own error is not among the ends.
    ///
    /// # Errors
    /// As there.
    pub(super) fn on_levels(
        model: Model,
        between: &Parameters,
        inside: Option<&InsideNode>,
        fitted: bool,
    ) -> Result<Self, ParametersError> {
        let network = LevelledNetwork::new(model, between, inside, fitted)?;
        let ends_between = Network::ends(model, between)?;
        let at_end = |between: &Network| LevelledNetwork {
            // Where one level is known, it is the other's too.
            inside: if inside.is_some() { network.inside.clone() } else { between.clone() },
            between: between.clone(),
            port: network.port.clone(),
        };
        let mut ends: Vec<[LevelledNetwork; 2]> =
            ends_between.iter().map(|ends| ends.each_ref().map(at_end)).collect();
        if let Some(level) = inside {
            let at_end = |inside| LevelledNetwork { inside, ..network.clone() };
            let of_inside = Network::ends(model, inside_parameters(level, fitted))?;
            ends.extend(of_inside.into_iter().map(|ends| ends.map(at_end)));
        }
        let (between, levels) = (network.between.clone(), UncertainLevels { network, ends });
        let set = UncertainNetwork {
            levels: Some(levels),
            ..UncertainNetwork::new(between, ends_between, 0)
        };
        Ok(ModelParameters::Common(Box::new(set)))
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
                model: PointToPointParameters::Hockney(Hockney {
                    alpha: at_end(fit.alpha_seconds, alpha),
                    beta: at_end(fit.beta_seconds_per_byte, beta),
                }),
                combining: combining.clone(),
                memory: None,
            };
            let alphas = [End::Low, End::High].map(|end| network([Some(end), None]));
            let betas = [End::Low, End::High].map(|end| network([None, Some(end)]));
            let set = UncertainNetwork::new(network([None, None]), vec![alphas, betas], number);
            (fit.collective, fit.method.clone(), set)
        };
        Ok(ModelParameters::ByMethod(of_model.enumerate().map(set).collect()))
    }

    /// The set of a method; none where it has no constants.
    pub(super) fn find(
        &self,
        collective: Collective,
        method: &Method,
    ) -> Option<&UncertainNetwork> {
        match self {
            ModelParameters::Common(set) => Some(set),
            ModelParameters::ByMethod(sets) => {
                let wanted = method.clone().with_segment(0);
                let found = sets.iter().find(|(of, one, _)| *of == collective && *one == wanted);
                found.map(|(_, _, set)| set)
            }
        }
    }

    pub(super) fn all(&self) -> Box<dyn Iterator<Item = &UncertainNetwork> + '_> {
        match self {
            ModelParameters::Common(set) => Box::new(std::iter::once(&**set)),
            ModelParameters::ByMethod(sets) => Box::new(sets.iter().map(|(_, _, set)| set)),
        }
    }

    /// (1 + S) / (1 - R), see [`Predictor::tie_limit`](super::Predictor); 1, but for rounding,
    /// where no parameter has an interval.
    pub(super) fn tie_factor(&self) -> f64 {
        let [below, above] =
            self.all().map(UncertainNetwork::deviations).fold([0.0; 2], |most, of_set| {
                [f64::max(most[0], of_set[0]), f64::max(most[1], of_set[1])]
            });
        let factor = if below < 1.0 { (1.0 + above) / (1.0 - below) } else { f64::INFINITY };
        factor * (1.0 + MORE_THAN_ROUNDING)
    }

    /// These parameters with every network changed, without intervals.
    pub(super) fn changed(mut self, change: impl Fn(&mut Network)) -> Self {
        match &mut self {
            ModelParameters::Common(set) => set.changed(change),
            ModelParameters::ByMethod(sets) => {
                sets.iter_mut().for_each(|(_, _, set)| set.changed(&change))
            }
        }
        self
    }
}
