//! Predictions by simulation on nodes of several ranks.

use records::calibration::{InsideNode, Parameters};
use schedules::simulator::{Options, Simulator};

use crate::{
    model::Model,
    parameters::{Network, ParametersError},
    predict::{Prediction, deviations},
    simulated::{LevelledNetwork, Run, RunError, inside_parameters},
};

/// Predicts by simulation on nodes of several ranks, with what the levels' parameters leave open.
#[derive(Debug)]
pub struct LevelledPredictor {
    network: LevelledNetwork,
    /// Per uncertain parameter of a level, the networks with it at either end of its interval.
    ends: Vec<[LevelledNetwork; 2]>,
    /// Its memory serves one call after the other.
    simulator: Simulator,
}

impl LevelledPredictor {
    /// The parameters are those of [`LevelledNetwork::new`].
    ///
    /// # Errors
    /// As there.
    pub fn new(
        model: Model,
        between: &Parameters,
        inside: Option<&InsideNode>,
        fitted: bool,
    ) -> Result<Self, ParametersError> {
        let network = LevelledNetwork::new(model, between, inside, fitted)?;
        let ends_between = Network::ends(model, between)?.into_iter().map(|ends| {
            // Where one level is known, it is the other's too.
            let inside_as =
                |end: &Network| if inside.is_some() { &network.inside } else { end }.clone();
            ends.map(|end| LevelledNetwork {
                inside: inside_as(&end),
                between: end,
                port: network.port.clone(),
            })
        });
        let mut ends: Vec<[LevelledNetwork; 2]> = ends_between.collect();
        if let Some(level) = inside {
            let ends_inside = Network::ends(model, inside_parameters(level, fitted))?.into_iter();
            ends.extend(
                ends_inside
                    .map(|ends| ends.map(|inside| LevelledNetwork { inside, ..network.clone() })),
            );
        }
        Ok(LevelledPredictor { network, ends, simulator: Simulator::new() })
    }

    /// Seconds of a call, with the interval that the parameters' intervals give; the port's own is not
    /// among them.
    ///
    /// # Errors
    /// As [`Run::simulate`].
    pub fn predict(&mut self, run: &Run) -> Result<Prediction, RunError> {
        let LevelledPredictor { network, ends, simulator } = self;
        let seconds = seconds_of(network, simulator, run)?;
        let at_ends = ends.iter().map(|[low, high]| {
            Ok([seconds_of(low, simulator, run)?, seconds_of(high, simulator, run)?])
        });
        let at_ends: Vec<[f64; 2]> = at_ends.collect::<Result<_, RunError>>()?;
        let [below, above] = deviations(seconds, &at_ends);
        Ok(Prediction { seconds, low: (seconds - below).max(0.0), high: seconds + above })
    }
}

fn seconds_of(
    network: &LevelledNetwork,
    simulator: &mut Simulator,
    run: &Run,
) -> Result<f64, RunError> {
    let options = Options { element_bytes: run.element_bytes(), ..Options::default() };
    Ok(run.simulate_levels(simulator, network, options, None)?.seconds)
}
