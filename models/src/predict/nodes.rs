//! Predictions where nodes hold several ranks.

use std::sync::Arc;

use records::{
    Layout, Method, Point,
    calibration::{InsideNode, Parameters},
};

use super::{CostSource, ModelParameters, NodePredictors, PredictError, Predictor};
use crate::{
    Evaluator,
    parameters::ParametersError,
    simulated::{Fewer, inside_parameters},
};

/// More ranks take minutes to simulate, with all methods and sizes: fewer nodes are, and what these take is carried on.
pub(super) const MAX_RANKS_IN_FULL: u32 = 128;

impl Predictor {
    /// This predictor, knowing what messages inside a node cost and what ranks get of their node's port:
    /// on one node the model's forms hold with the costs inside; on several nodes schedules are
    /// simulated, whatever the model's evaluator. Where one level is known, it is the other's too.
    ///
    /// Of more than 128 ranks fewer nodes are simulated unless it is [`Predictor::simulating`]; where nodes hold different
    /// numbers of so many ranks they are ignored, as where each algorithm has constants of its own; see
    /// [`Predictor::found_by`]. Inside, fitted parameters are taken where `fitted` are
    /// wanted and there.
    ///
    /// # Errors
    /// As [`Predictor::new`], or the gaps of the port are none.
    pub fn on_nodes(
        self,
        between: &Parameters,
        inside: Option<&InsideNode>,
        fitted: bool,
    ) -> Result<Self, ParametersError> {
        let Predictor { model, costs, forms, .. } = self;
        if self.is_by_method() {
            return Ok(self);
        }
        let of_inside =
            |level| Predictor::with_costs(model, costs, forms, inside_parameters(level, fitted));
        let nodes = NodePredictors {
            inside: inside.map(of_inside).transpose()?,
            several: Self::from_parameters(
                model,
                costs,
                forms,
                ModelParameters::on_levels(costs, between, inside, fitted)?,
            ),
        };
        Ok(Predictor { nodes: Some(Arc::new(nodes)), ..self }.propagate_to_nodes())
    }

    /// Its reach, root and rendezvous are those of all. A copy has nodes of its own from then on.
    pub(super) fn propagate_to_nodes(mut self) -> Self {
        let Predictor { reach, root, rendezvous, most_ranks_in_full, .. } = self;
        if let Some(nodes) = self.nodes.as_mut().map(Arc::make_mut) {
            let inside = nodes.inside.iter_mut();
            for predictor in inside.chain([&mut nodes.several]) {
                (predictor.reach, predictor.root, predictor.rendezvous) = (reach, root, rendezvous);
                predictor.most_ranks_in_full = most_ranks_in_full;
            }
        }
        self
    }

    /// What predicts on a layout: itself where each rank has a node of its own and it doesn't
    /// simulate. The simulation is the same on all layouts of a cluster whose nodes are known.
    #[inline]
    pub fn at(&self, layout: Layout) -> &Predictor {
        match layout.is_flat() {
            true if self.model.evaluator() == Evaluator::Simulation && self.knows_inside() => {
                self.with_nodes_of(layout).unwrap_or(self)
            }
            true => self,
            false => self.with_nodes(layout).unwrap_or(self),
        }
    }

    /// What of a long call of so many ranks is not simulated.
    pub(super) fn fewer(&self, procs: u32) -> Fewer {
        let has_memory = || self.levels().is_some_and(|levels| levels.inside.memory.is_some());
        match self.most_ranks_in_full {
            u32::MAX => Fewer::Nothing,
            most if procs > most => Fewer::Nodes,
            _ if has_memory() => Fewer::Segments,
            _ => Fewer::SegmentsAtEnds,
        }
    }

    /// Whether long calls on a layout are simulated on fewer nodes than it has.
    pub fn takes_fewer_nodes(&self, layout: Layout) -> bool {
        self.sees_nodes() && self.fewer(layout.procs()) == Fewer::Nodes
    }

    fn knows_inside(&self) -> bool {
        self.nodes.as_ref().is_some_and(|nodes| nodes.inside.is_some())
    }

    fn with_nodes(&self, layout: Layout) -> Option<&Predictor> {
        match layout.nodes() {
            1 => self.nodes.as_ref()?.inside.as_ref(),
            _ => self.with_nodes_of(layout),
        }
    }

    /// What simulates nodes, however many there are.
    pub(super) fn with_nodes_of(&self, layout: Layout) -> Option<&Predictor> {
        let nodes = self.nodes.as_ref()?;
        // Half of such nodes is another layout of the kind.
        let can_be_less = !layout.is_flat() && layout.per_node().is_some();
        (can_be_less || layout.procs() <= self.most_ranks_in_full).then_some(&nodes.several)
    }

    /// In words, what a method's time is found by: `closed form`, `simulated`, that fewer nodes are simulated, and
    /// that nodes of several ranks are ignored.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn found_by(&self, point: Point, method: &Method) -> Result<&'static str, PredictError> {
        let evaluation = self.look_up_method(point, method)?;
        let layout = point.layout;
        let sees_nodes = evaluation.set.levels.is_some() || !std::ptr::eq(self.at(layout), self);
        let sees_nodes = layout.is_flat() || sees_nodes || self.sees_nodes();
        let is_long = |entry| {
            evaluation.set.levels.is_some() && evaluation.simulated_call(entry).is_long_on_nodes()
        };
        Ok(match (evaluation.source, sees_nodes) {
            (CostSource::Form(_), true) => "closed form",
            (CostSource::Form(_), false) => "closed form, nodes ignored",
            (CostSource::Simulated(entry), true)
                if evaluation.fewer == Fewer::Nodes && is_long(entry) =>
            {
                "simulated, on fewer nodes"
            }
            (CostSource::Simulated(entry), true)
                if evaluation.fewer == Fewer::Segments
                    && is_long(entry)
                    && evaluation.shape.segment() > 0 =>
            {
                "simulated, with fewer segments"
            }
            (CostSource::Simulated(_), true) => "simulated",
            (CostSource::Simulated(_), false) => "simulated, nodes ignored",
        })
    }
}
