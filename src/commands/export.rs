//! `colibri export`: writes what an MPI library loads.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use models::{Model, Predictor};
use records::{
    Collective, Method, Point,
    decisions::{Decision, Decisions},
    document,
};
use verification::{
    rules::rules,
    samples::Samples,
    selection::{self, Choice},
};

use crate::{
    error::usage,
    export::{Export as Exported, Format},
    focused,
    options::ModelOptions,
    output,
    run_directory::RunDirectory,
    source::Source,
};

/// Writes what was measured best in the form that an MPI library loads
#[derive(Debug, Args)]
pub struct Export {
    /// Directory of a run that has measured (`colibri verify`, `colibri tune`)
    #[arg(default_value = "colibri-run", value_name = "DIR")]
    directory: PathBuf,

    /// For which library
    #[arg(long, value_enum)]
    format: Format,

    /// The file to write [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Instead of what was measured write what --model decided in this file (made by `decide
    /// --target openmpi --output FILE`); no measurement has confirmed it
    #[arg(long, value_name = "FILE", requires = "model", requires = "calibration")]
    decisions: Option<PathBuf>,

    #[command(flatten)]
    model: ModelOptions,
}

impl Export {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let text = match &self.decisions {
            Some(path) => self.decided(path)?,
            None => self.measured()?,
        };
        match &self.output {
            Some(path) => {
                document::write_text(path, &text)?;
                eprintln!("{}", self.format.how_to_load(&path.display().to_string()));
                Ok(())
            }
            None => output::print(&text),
        }
    }

    fn measured(&self) -> Result<String> {
        let run = RunDirectory::open(&self.directory)?;
        let source = Source::load_for(&run, &self.model)?;
        let rows = focused::rows(focused::records(&run)?);
        let choices = selection::choose(&Samples::gather(&rows));
        text(&source, &choices, self.format, "measured best, the default where nothing beats it")
    }

    fn decided(&self, path: &Path) -> Result<String> {
        let source = Source::load(&self.model)?;
        let decisions: Decisions = document::read(path)?;
        let model = match self.model.model.as_ref().map(|models| models.0.as_slice()) {
            Some([model]) => *model,
            _ => usage!("say which one model's decisions to write, as in --model plogp"),
        };
        let of_model = |decision: &&Decision| decision.model == model.name();
        let choices: Vec<Choice> =
            decisions.decisions.iter().filter(of_model).map(choice).collect();
        if choices.is_empty() {
            usage!("{}: holds no decisions of the model {model}", path.display());
        }
        text(&source, &choices, self.format, &format!("decided by the model {model}, not measured"))
    }
}

fn choice(decision: &Decision) -> Choice {
    let Decision { collective, procs, bytes, seconds, .. } = *decision;
    let point = Point { collective, procs, bytes };
    Choice { point, method: decision.method.clone(), seconds, default_seconds: seconds }
}

/// Writes what a run has chosen.
pub fn write(source: &Source, choices: &[Choice], format: Format, path: &Path) -> Result<()> {
    let how = "measured best, the default where nothing beats it";
    Ok(document::write_text(path, &text(source, choices, format, how)?)?)
}

fn text(source: &Source, choices: &[Choice], format: Format, how: &str) -> Result<String> {
    // The model with the most to say of a size between two measured ones.
    let predictor = source.predictor(Model::PLogP)?;
    let rules = rules(choices, &|collective, procs, below, above, low, high| {
        crossing(&predictor, (collective, procs), [below, above], [low, high])
    });
    let origin = [source.calibration.platform.summary(), how.into()];
    format.text(&Exported { rules: &rules, origin: &origin })
}

/// The first size in (`low`, `high`] at which the second method is predicted to be faster, if the
/// first one is at `low` and the second at `high`.
fn crossing(
    predictor: &Predictor,
    (collective, procs): (Collective, u32),
    [first, second]: [&Method; 2],
    [mut low, mut high]: [u64; 2],
) -> Option<u64> {
    let second_is_faster = |bytes| {
        let seconds = |method| {
            let point = Point { collective, procs, bytes };
            predictor.predict_method(point, method).ok().map(|prediction| prediction.seconds)
        };
        Some(seconds(second)? < seconds(first)?)
    };
    if second_is_faster(low)? || !second_is_faster(high)? {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if second_is_faster(middle)? { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_lies_where_the_predictions_cross() {
        let frodo = models::presets::preset("frodo").unwrap();
        let predictor =
            Predictor::new(Model::PLogP, models::Forms::Corrected, &frodo.measured).unwrap();
        let [linear, pipeline] = ["linear", "pipeline,segment=1KiB"]
            .map(|name| format!("native:openmpi:{name}").parse::<Method>().unwrap());
        let seconds = |bytes, method| {
            let point = Point { collective: Collective::Bcast, procs: 8, bytes };
            predictor.predict_method(point, method).unwrap().seconds
        };
        let at = (Collective::Bcast, 8);
        let crossed = crossing(&predictor, at, [&linear, &pipeline], [1, 1 << 20]).unwrap();
        assert!(seconds(crossed, &pipeline) < seconds(crossed, &linear));
        assert!(seconds(crossed - 1, &pipeline) >= seconds(crossed - 1, &linear));
        assert_eq!(crossing(&predictor, at, [&pipeline, &linear], [1, 1 << 20]), None);
        assert_eq!(crossing(&predictor, at, [&Method::Default, &linear], [1, 1 << 20]), None);
    }
}
