//! What messages cost where nodes hold several ranks.

use records::calibration::{InsideNode, Parameters};
use schedules::{NodesOfRanks, simulator::NodeCosts};

use crate::{
    model::Model,
    parameters::{Network, NodeMemory, ParametersError},
    port_sharing,
};

/// Parameters of each level.
#[derive(Debug, Clone, PartialEq)]
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
            return Ok(LevelledNetwork::of_one_level(between));
        };
        let inside = Network::new(model, inside_parameters(level, fitted))?;
        let port = port_sharing::of_gaps(&level.port, &between)?;
        Ok(LevelledNetwork { inside, between, port })
    }

    /// A network whose two levels cost alike.
    pub(crate) fn of_one_level(network: Network) -> Self {
        LevelledNetwork { inside: network.clone(), between: network, port: None }
    }

    /// With all ranks on one node.
    #[must_use]
    pub fn of_one_node(self) -> Self {
        LevelledNetwork { between: self.inside.clone(), ..self }
    }

    /// Whether it is known what algorithms of shared memory take inside a node.
    pub fn knows_shared_memory(&self) -> bool {
        self.inside.memory.as_ref().is_some_and(|memory| memory.knows_shared())
    }

    /// The least and the most of a cost of a level relative to the same cost of another network.
    pub(crate) fn relative_to(&self, other: &LevelledNetwork) -> [f64; 2] {
        let [inside, between] =
            [self.inside.relative_to(&other.inside), self.between.relative_to(&other.between)];
        [inside[0].min(between[0]), inside[1].max(between[1])]
    }

    pub(super) fn costs<'a>(&'a self, nodes: &'a NodesOfRanks) -> NodeCosts<'a, Network> {
        let LevelledNetwork { inside, between, .. } = self;
        NodeCosts { nodes, inside, between, port: self.shared_port() }
    }

    /// What the ranks of a node share, by which they are simulated; none where each is alone on its node, and where it
    /// is not known. Without nodes all ranks are on one.
    pub(super) fn memory(&self, nodes: Option<&NodesOfRanks>) -> Option<&NodeMemory> {
        let level = match nodes {
            Some(nodes) if nodes.most() > 1 => &self.inside,
            Some(_) => return None,
            None => &self.between,
        };
        level.memory.as_deref()
    }

    /// Whether nothing but the inside may differ. What combining costs is of the memory inside.
    pub(super) fn is_alike_between(&self, other: &LevelledNetwork) -> bool {
        (&self.between.model, &self.port) == (&other.between.model, &other.port)
    }

    /// Its gaps are those of the port that the ranks of a node share.
    pub(crate) fn shared_port(&self) -> &Network {
        self.port.as_ref().unwrap_or(&self.between)
    }

    /// The message sizes between which all costs are lines.
    pub(crate) fn knots(&self) -> Vec<u64> {
        let networks = [&self.inside, &self.between].into_iter().chain(&self.port);
        networks.flat_map(Network::knots).collect()
    }
}

/// Parameters inside a node; fitted ones where these are wanted and there.
pub(crate) fn inside_parameters(inside: &InsideNode, fitted: bool) -> &Parameters {
    inside.fitted.as_ref().filter(|_| fitted).unwrap_or(&inside.measured)
}
