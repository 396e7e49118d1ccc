//! Where the models' parameters come from: a calibration file or a preset.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use anyhow::Result;
use models::{
    Forms, Model, Predictor, Reach,
    explain::Explainer,
    presets::{self, PresetError},
    simulated::{LevelledNetwork, Rendezvous},
};
use records::{
    Collective, Layout, Root,
    calibration::{Algorithms, Calibration, InsideNode, Parameters},
    choices::{Choices, Chosen, PredictionSource},
    document,
};
use verification::penalty::message_sizes;

use crate::layouts::{WantedLayouts, powers_of_two_and};
use site::{error::WrongUse, run_directory::file_or_in_run, usage};

/// A name that is none is the user's fault; parameters that contradict each other are Colibri's.
fn blamed(error: PresetError) -> anyhow::Error {
    match error {
        PresetError::Unknown(problem) => WrongUse(problem).into(),
        PresetError::NotDerived(_) => error.into(),
    }
}

/// Which of a calibration's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterSet {
    Measured,
    Fitted,
    Algorithms,
}

impl ParameterSet {
    pub const ALL: [ParameterSet; 3] =
        [ParameterSet::Measured, ParameterSet::Fitted, ParameterSet::Algorithms];

    pub fn name(self) -> &'static str {
        match self {
            ParameterSet::Measured => "measured",
            ParameterSet::Fitted => "fitted",
            ParameterSet::Algorithms => "algorithms",
        }
    }
}

/// A calibration, and how it is to be used.
#[derive(Clone)]
pub struct CalibrationSource {
    /// As the user named it.
    pub name: String,
    /// The calibration.
    pub calibration: Calibration,
    /// Which parameters of it.
    pub parameters: ParameterSet,
    forms: Forms,
    /// Of collectives that have one.
    root: Root,
    /// Whether models take the number of processes for all there is to a layout.
    ignores_nodes: bool,
    /// Where simulations were asked for.
    simulation: Option<SimulationCosts>,
}

/// What messages cost in a simulation that was asked for.
#[derive(Debug, Clone, Copy)]
pub struct SimulationCosts {
    /// The model whose parameters they cost.
    pub model: Model,
    pub rendezvous: Option<Rendezvous>,
}

/// Name of a run's own calibration.
const OF_RUN: &str = "calibration.json";

impl CalibrationSource {
    /// Loads a run's calibration, a file or a preset by its name.
    ///
    /// # Errors
    /// Nothing is named, no such preset or file, or the file is wrong.
    pub fn load(named: Option<&OsStr>, forms: Forms, parameters: ParameterSet) -> Result<Self> {
        let Some(name) = named else {
            usage!(
                "no calibration given; use --calibration RUN or FILE (`colibri calibrate` makes one), \
                 --calibration preset:frodo or preset:boba"
            );
        };
        if let Some(preset) = name.to_str().and_then(|name| name.strip_prefix("preset:")) {
            let calibration = presets::preset(preset).map_err(blamed)?;
            return Self::new(&name.to_string_lossy(), calibration, forms, parameters);
        }
        let path = file_or_in_run(Path::new(name), OF_RUN);
        Self::new(&path.to_string_lossy(), document::read(&path)?, forms, parameters)
    }

    /// A run's own calibration, named without its directory, which may be moved.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn of_run(
        calibration: Calibration,
        forms: Forms,
        parameters: ParameterSet,
    ) -> Result<Self> {
        Self::new(OF_RUN, calibration, forms, parameters)
    }

    /// Whether it is the run's own calibration.
    pub fn is_of_run(&self) -> bool {
        self.name == OF_RUN
    }

    /// Takes a calibration that is at hand.
    ///
    /// # Errors
    /// The parameters that are wanted are not there, or not with these forms.
    fn new(
        name: &str,
        calibration: Calibration,
        forms: Forms,
        parameters: ParameterSet,
    ) -> Result<Self> {
        let source = CalibrationSource {
            name: name.into(),
            calibration,
            parameters,
            forms,
            root: Root::default(),
            ignores_nodes: false,
            simulation: None,
        };
        match source.parameters {
            ParameterSet::Fitted if source.calibration.fitted.is_none() => {
                usage!("{name} holds no fitted parameters; use --parameters measured");
            }
            ParameterSet::Algorithms if source.calibration.algorithms.is_none() => usage!(
                "{name} holds no constants of algorithms; `colibri calibrate DIR --algorithms-of \
                 bcast,reduce` measures them"
            ),
            ParameterSet::Algorithms if source.forms == Forms::Printed => usage!(
                "the constants of algorithms are those of the corrected forms; leave out --forms \
                 printed"
            ),
            _ => {}
        }
        Ok(source)
    }

    /// This source with a set of parameters, where the calibration has it.
    pub fn with(&self, parameters: ParameterSet) -> Option<Self> {
        let there = match parameters {
            ParameterSet::Measured => true,
            ParameterSet::Fitted => self.calibration.fitted.is_some(),
            ParameterSet::Algorithms => {
                self.calibration.algorithms.is_some() && self.forms == Forms::Corrected
            }
        };
        there.then(|| CalibrationSource { parameters, ..self.clone() })
    }

    /// This source as it would be if nobody knew of nodes that hold several ranks, where it does know of
    /// them: what that is worth shows beside it.
    pub fn ignoring_nodes(&self) -> Option<Self> {
        let knows = self.calibration.inside.is_some() && !self.ignores_nodes;
        knows.then(|| CalibrationSource { ignores_nodes: true, ..self.clone() })
    }

    /// The parameters of messages that are wanted.
    ///
    /// # Errors
    /// Wanted are constants of whole collectives.
    pub fn chosen(&self) -> Result<&Parameters> {
        match (self.parameters, &self.calibration.fitted) {
            (ParameterSet::Measured, _) => Ok(&self.calibration.measured),
            (ParameterSet::Fitted, Some(fitted)) => Ok(fitted),
            _ => usage!(
                "constants of algorithms give the cost of whole collectives, not of messages; use \
                 --parameters measured or fitted"
            ),
        }
    }

    /// The parameters of each level that are wanted; where one level is known, it is every level's.
    ///
    /// # Errors
    /// As [`chosen`](Self::chosen), or the parameters are none.
    pub fn levelled(&self, model: Model) -> Result<LevelledNetwork> {
        let (inside, fitted) = self.inside();
        Ok(LevelledNetwork::new(model, self.chosen()?, inside, fitted)?)
    }

    /// What is known of messages inside a node, and whether fitted parameters are wanted.
    fn inside(&self) -> (Option<&InsideNode>, bool) {
        (self.calibration.inside.as_ref(), self.parameters == ParameterSet::Fitted)
    }

    /// This source with what another calibration (a file or a preset), if one is named, says of messages
    /// inside a node.
    ///
    /// # Errors
    /// As [`load`](Self::load), of the other.
    pub fn with_inside(mut self, named: &Option<OsString>) -> Result<Self> {
        if named.is_some() {
            let other = Self::load(named.as_deref(), self.forms, self.parameters)?;
            let own = self.calibration.inside.take();
            self.calibration.inside = Some(InsideNode {
                measured: other.chosen()?.clone(),
                fitted: None,
                fits: Vec::new(),
                port: own.map(|inside| inside.port).unwrap_or_default(),
            });
        }
        Ok(self)
    }

    /// This source with another root, where the collective has one.
    pub fn with_root(self, root: Root) -> Self {
        CalibrationSource { root, ..self }
    }

    /// This source with messages that cost something else by [`Model::Simulated`], which then simulates nodes however
    /// many ranks there are.
    pub fn with_simulation(self, simulation: SimulationCosts) -> Self {
        CalibrationSource { simulation: Some(simulation), ..self }
    }

    /// What models decided with these parameters, of these collectives. The root is named where that is another than 0.
    pub fn predicted_choices(
        &self,
        collectives: impl IntoIterator<Item = Collective>,
        choices: Vec<Chosen>,
    ) -> Choices {
        let name = self.parameters.name();
        let parameters = match self.root == Root::default() {
            true => name.into(),
            false => format!("{name}, root {}", self.root),
        };
        let (calibration, forms) = (self.name.clone(), self.forms.to_string());
        Choices {
            platform: self.calibration.platform.clone(),
            message_size: message_sizes(collectives),
            prediction: Some(PredictionSource { calibration, forms, parameters }),
            choices,
            confirmed: Vec::new(),
        }
    }

    /// The constants of algorithms, if these are wanted.
    pub fn algorithms(&self) -> Option<&Algorithms> {
        let wanted = self.parameters == ParameterSet::Algorithms;
        self.calibration.algorithms.as_ref().filter(|_| wanted)
    }

    /// Whether the parameters wanted hold this model's.
    pub fn holds(&self, model: Model) -> bool {
        self.parameters != ParameterSet::Algorithms
            || matches!(model, Model::Hockney | Model::Refined)
    }

    /// Those of the models for which there are parameters; of constants of algorithms those of
    /// both models.
    pub fn models(&self, usual: Vec<Model>) -> Vec<Model> {
        match self.algorithms() {
            Some(_) => vec![Model::Hockney, Model::Refined],
            None => usual,
        }
    }

    /// Which closed forms.
    pub fn forms(&self) -> Forms {
        self.forms
    }

    /// One model with these parameters, and with those of both levels where nodes hold several ranks.
    ///
    /// # Errors
    /// The parameters are none, or not of this model.
    pub fn predictor(&self, model: Model) -> Result<Predictor> {
        let simulation = self.simulation.filter(|_| model == Model::Simulated);
        let predictor = match self.algorithms() {
            None => {
                let ((inside, fitted), between) = (self.inside(), self.chosen()?);
                let costs = simulation.map_or(model, |simulation| simulation.model);
                let flat = Predictor::with_costs(model, costs, self.forms, between)?;
                match self.ignores_nodes {
                    true => flat,
                    false => flat.on_nodes(between, inside, fitted)?,
                }
            }
            Some(_) if !self.holds(model) => usage!(
                "the constants of algorithms are alpha and beta of Hockney's model; use --model \
                 hockney or refined"
            ),
            Some(Algorithms { fits, .. }) => {
                Predictor::of_algorithms(model, fits, &self.calibration.measured)?
            }
        };
        let predictor = match simulation {
            Some(simulation) => predictor.simulating(simulation.rendezvous),
            None => predictor,
        };
        Ok(predictor.within(self.reach()).with_root(self.root))
    }

    /// What explains this predictor's times.
    ///
    /// # Errors
    /// As [`predictor`](Self::predictor).
    pub fn explainer(&self, predictor: &Predictor) -> Result<Explainer> {
        let parameters = match self.algorithms() {
            Some(_) => &self.calibration.measured,
            None => self.chosen()?,
        };
        let (inside, fitted) = self.inside();
        Ok(Explainer::new(predictor, parameters, inside, fitted)?)
    }

    /// How far the measurements reach.
    pub fn reach(&self) -> Reach {
        match (self.algorithms(), &self.calibration.fitted) {
            (Some(algorithms), _) => Reach::of_algorithms(&algorithms.fits),
            (None, Some(fitted)) if self.parameters == ParameterSet::Fitted => {
                Reach::from_calibration(&self.calibration, fitted)
            }
            _ => Reach::from_calibration(&self.calibration, &self.calibration.measured),
        }
    }

    /// The communicators wanted: those named, else the powers of two up to the platform's size and
    /// that size itself; up to 32 where the calibration names no hosts.
    pub fn layouts(&self, wanted: &WantedLayouts) -> Vec<Layout> {
        match self.calibration.platform.layout() {
            Some(job) => wanted.in_job(job),
            None => wanted.or(|| powers_of_two_and(self.reach().procs.unwrap_or(32))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_a_preset_is_not_the_users() {
        let unknown = presets::preset("frod").unwrap_err();
        assert!(blamed(unknown).is::<WrongUse>());
        assert!(!blamed(PresetError::NotDerived("frodo".into())).is::<WrongUse>());
    }
}
