//! Where the models' parameters come from: a calibration file or a preset.

use std::path::Path;

use anyhow::Result;
use models::{Model, Predictor, Reach, presets};
use records::{
    calibration::{Calibration, Parameters},
    document,
};

use crate::{
    error::{Usage, usage},
    options::{GridOptions, ModelOptions, ParameterSet},
    run_directory::RunDirectory,
};

/// A calibration, and how it is to be used.
#[derive(Clone)]
pub struct Source {
    /// As the user named it.
    pub name: String,
    /// The calibration.
    pub calibration: Calibration,
    /// Which parameters of it.
    pub parameters: ParameterSet,
    forms: models::Forms,
}

impl Source {
    /// Loads what the flags name.
    ///
    /// # Errors
    /// Nothing is named, no such preset or file, or the file is wrong.
    pub fn load(options: &ModelOptions) -> Result<Self> {
        let Some(name) = &options.calibration else {
            usage!(
                "which platform? Name its calibration by --calibration FILE (`colibri calibrate` \
                 makes one), or take --calibration preset:frodo or preset:boba"
            );
        };
        let calibration = match name.strip_prefix("preset:") {
            Some(preset) => presets::preset(preset).map_err(Usage)?,
            None => document::read(Path::new(name))?,
        };
        Self::new(name, calibration, options)
    }

    /// Loads what the flags name, or else the run's own calibration.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_for(run: &RunDirectory, options: &ModelOptions) -> Result<Self> {
        match options.calibration {
            Some(_) => Self::load(options),
            None => Self::of_run(document::read(&run.calibration())?, options),
        }
    }

    /// A run's own calibration, named without its directory, which may be moved.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn of_run(calibration: Calibration, options: &ModelOptions) -> Result<Self> {
        Self::new("calibration.json", calibration, options)
    }

    /// Takes a calibration that is at hand.
    ///
    /// # Errors
    /// Fitted parameters are wanted and there are none.
    fn new(name: &str, calibration: Calibration, options: &ModelOptions) -> Result<Self> {
        let source = Source {
            name: name.into(),
            calibration,
            parameters: options.parameters,
            forms: options.forms,
        };
        if source.parameters == ParameterSet::Fitted && source.calibration.fitted.is_none() {
            usage!("{name} holds no fitted parameters; take --parameters measured");
        }
        Ok(source)
    }

    /// The same with a set of parameters, where the calibration has it.
    pub fn with(&self, parameters: ParameterSet) -> Option<Self> {
        let there = parameters == ParameterSet::Measured || self.calibration.fitted.is_some();
        there.then(|| Source { parameters, ..self.clone() })
    }

    /// The parameters wanted.
    pub fn chosen(&self) -> &Parameters {
        match (&self.calibration.fitted, self.parameters) {
            (Some(fitted), ParameterSet::Fitted) => fitted,
            _ => &self.calibration.measured,
        }
    }

    /// Which closed forms.
    pub fn forms(&self) -> models::Forms {
        self.forms
    }

    /// One model with these parameters.
    ///
    /// # Errors
    /// The parameters are none.
    pub fn predictor(&self, model: Model) -> Result<Predictor> {
        Ok(Predictor::new(model, self.forms, self.chosen())?.within(self.reach()))
    }

    /// How far the measurements reach.
    pub fn reach(&self) -> Reach {
        Reach::of(&self.calibration, self.chosen())
    }

    /// The communicator sizes wanted: those named, else the powers of two up to the platform's
    /// size and that size itself; up to 32 where the calibration names no hosts.
    pub fn procs(&self, grid: &GridOptions) -> Vec<u32> {
        match &grid.procs {
            Some(procs) => procs.0.clone(),
            None => powers_of_two_and(self.reach().procs.unwrap_or(32)),
        }
    }
}

/// 2, 4, 8, ... below `most`, and `most`.
pub fn powers_of_two_and(most: u32) -> Vec<u32> {
    let powers = std::iter::successors(Some(2_u32), |power| power.checked_mul(2));
    powers.take_while(|&power| power < most).chain([most]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communicator_sizes_end_with_the_full_size() {
        assert_eq!(powers_of_two_and(8), [2, 4, 8]);
        assert_eq!(powers_of_two_and(11), [2, 4, 8, 11]);
        assert_eq!(powers_of_two_and(2), [2]);
        assert_eq!(powers_of_two_and(1), [1]);
    }
}
