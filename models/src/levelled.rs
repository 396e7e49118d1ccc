//! What messages cost where nodes hold several ranks.

use records::calibration::{InsideNode, Parameters};
use schedules::{
    NodesOfRanks,
    simulator::{NodeCosts, Options, Simulator},
};

use crate::{
    Model,
    parameters::{Network, ParametersError},
    port_sharing,
    predict::{Prediction, deviations},
    simulated::{Run, RunError},
};

/// Parameters of each level.
#[derive(Debug, Clone)]
pub struct LevelledNetwork {
    /// Between ranks of one node.
    pub inside: Network,
    /// Between ranks of two nodes, as one pair sees it.
    pub between: Network,
    /// Its gaps are those of the port that the ranks of a node share; none: one pair fills it.
    pub port: Option<Network>,
}

impl LevelledNetwork {
    /// By `between` on all levels where a calibration knows no other. Inside, fitted parameters are
    /// taken where `fitted` are wanted and there.
    ///
    /// # Errors
    /// As [`Network::new`], or the gaps of the port are none.
    pub fn new(
        model: Model,
        between: &Parameters,
        inside: Option<&InsideNode>,
        fitted: bool,
    ) -> Result<Self, ParametersError> {
        let between = Network::new(model, between)?;
        let Some(level) = inside else {
            return Ok(LevelledNetwork { inside: between.clone(), between, port: None });
        };
        let inside = Network::new(model, parameters(level, fitted))?;
        let port = port_sharing::of_gaps(&level.port)
            .map_err(|problem| ParametersError { field: "inside.port".into(), problem })?;
        Ok(LevelledNetwork { inside, between, port })
    }

    pub(crate) fn costs<'a>(&'a self, nodes: &'a NodesOfRanks) -> NodeCosts<'a, Network> {
        let LevelledNetwork { inside, between, port } = self;
        NodeCosts { nodes, inside, between, port: port.as_ref().unwrap_or(between) }
    }

    fn seconds(&self, simulator: &mut Simulator, run: &Run) -> Result<f64, RunError> {
        let options = Options { element_bytes: run.element_bytes(), ..Options::default() };
        Ok(run.simulate_levels(simulator, self, options, None)?.seconds)
    }
}

/// Parameters inside a node; fitted ones where these are wanted and there.
fn parameters(inside: &InsideNode, fitted: bool) -> &Parameters {
    inside.fitted.as_ref().filter(|_| fitted).unwrap_or(&inside.measured)
}

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
            let ends_inside = Network::ends(model, parameters(level, fitted))?.into_iter();
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
        let seconds = network.seconds(simulator, run)?;
        let at_ends = ends
            .iter()
            .map(|[low, high]| Ok([low.seconds(simulator, run)?, high.seconds(simulator, run)?]));
        let at_ends: Vec<[f64; 2]> = at_ends.collect::<Result<_, RunError>>()?;
        let [below, above] = deviations(seconds, &at_ends);
        Ok(Prediction { seconds, low: (seconds - below).max(0.0), high: seconds + above })
    }
}
