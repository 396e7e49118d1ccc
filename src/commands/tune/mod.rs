//! `colibri tune`: calibrates, decides, measures, exports and confirms, in this order.

mod candidate;
mod confirm;
mod measure;
pub mod tell;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::Args;
use records::{
    Collective,
    document::{self, Document},
    quantity,
};
use serde::{Deserialize, Serialize};

use crate::{
    error::usage,
    judging,
    measurements::Measurements,
    options::{GridOptions, ModelOptions, ParameterSet, RunOptions, Segments, SiteOptions},
    output, programs,
    run_directory::RunDirectory,
    site::{self, LazySite, PRELOAD_LIBRARY},
    source::Source,
    traced,
};

/// Calibrates, decides, measures, exports and confirms; ends with the files to load and what
/// they gain
#[derive(Debug, Args)]
pub struct Tune {
    #[command(flatten)]
    run: RunOptions,

    #[command(flatten)]
    site: SiteOptions,

    #[command(flatten)]
    grid: GridOptions,

    /// Tune what an application uses: its calls as the preload library has recorded them
    /// (COLIBRI_TRACE), each weighted by the time spent in it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["collective", "procs", "sizes"])]
    trace: Option<PathBuf>,

    /// How long it may take
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "5m")]
    budget: Duration,

    /// Measure every method at every point, however long it takes
    #[arg(long, conflicts_with = "budget")]
    exhaustive: bool,

    /// Seed of the order of the measurements
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Shares of the budget. The rest goes to starting jobs and to what the models underestimate.
const CALIBRATION_SHARE: f64 = 0.12;
const MEASURING_SHARE: f64 = 0.43;
const CONFIRMING_SHARE: f64 = 0.25;
/// Confirming may take this of what the steps before it left of the budget, if that is more: the
/// rest starts its jobs.
const CONFIRMING_OF_WHAT_IS_LEFT: f64 = 0.8;

/// The options of a run, so that a resumed one does what was begun.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Options {
    collectives: Vec<Collective>,
    procs: Option<Vec<u32>>,
    sizes: Vec<u64>,
    /// `None` is `auto`.
    segments: Option<Vec<u64>>,
    /// Where what stands in the run's `usage.json` came from.
    #[serde(default)]
    trace: Option<String>,
    budget_seconds: f64,
    exhaustive: bool,
    seed: u64,
    launcher: Option<String>,
    ranks: Option<u32>,
    testbed: Option<String>,
    rate: String,
    #[serde(default)]
    ports: Vec<String>,
    ppn: u32,
}

impl Document for Options {
    const SCHEMA: &'static str = "colibri/tune/1";
}

/// What is settled when confirming begins.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Confirming {
    /// What it may take.
    seconds: f64,
}

impl Document for Confirming {
    const SCHEMA: &'static str = "colibri/confirming/1";
}

impl Tune {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        // What the last stage needs is missed before the first.
        programs::find(PRELOAD_LIBRARY)?;
        let begun = Instant::now();
        let run = RunDirectory::open(&self.run.directory)?;
        self.begin(&run)?;
        if self.run.resume {
            site::clear_up(&run)?;
        }
        let mut site = LazySite::new(&self.site, &run);

        let calibration = self.calibrate(&run, &mut site)?;
        let source = Source::of_run(calibration, &model_options())?;
        self.measure(&run, &mut site, &source)?;
        let (measurements, rows) = Measurements::read_with_rows(&run)?;
        let known = self.known(&run, &source, &measurements.cells, rows)?;
        let (models, choices) = (judging::judged_models(), known.choices());
        let judged = judging::judge(&run, &source, measurements, &models, &[], Some(choices))?;
        for warning in &judged.penalties.warnings {
            eprintln!("note: {warning}");
        }
        let seconds = self.confirming_seconds(&run, begun)?;
        let summary = self.confirm(&run, &mut site, &source, &judged, &known, seconds)?;
        drop(site);

        let told = tell::text(&summary, &run)?;
        let whole = format!("{told}\n{}", judging::summary(&judged.penalties));
        document::write_text(&run.file("summary.txt"), &whole)?;
        output::print(&told)
    }

    /// Writes the options down, or checks that they are those of the run that is to go on.
    fn begin(&self, run: &RunDirectory) -> Result<()> {
        let path = run.options();
        let options = self.options();
        if self.run.resume {
            let begun: Options = document::read(&path)
                .context("there is no run to go on with; leave out --resume to begin one")?;
            if begun != options {
                let changed = changed(&begun, &options)?;
                usage!(
                    "{}: the run was begun with other options ({changed}); give the same ones \
                     with --resume, or begin another run in another directory",
                    run.path().display()
                );
            }
            return Ok(());
        }
        run.begin(&path, false)?;
        run.begin(&run.observations(), false)?;
        run.begin(&run.measurements(), false)?;
        if let Some(trace) = &self.trace {
            // The run's own: the application may write another one meanwhile.
            document::write(&run.usage(), &traced::read(trace)?)?;
        }
        Ok(document::write(&path, &options)?)
    }

    fn options(&self) -> Options {
        Options {
            collectives: self.grid.collective.0.clone(),
            procs: self.grid.procs.as_ref().map(|procs| procs.0.clone()),
            sizes: self.grid.sizes.0.clone(),
            segments: match &self.grid.segments {
                Segments::These(these) => Some(these.clone()),
                Segments::Auto => None,
            },
            trace: self.trace.as_ref().map(|path| path.display().to_string()),
            budget_seconds: self.budget.as_secs_f64(),
            exhaustive: self.exhaustive,
            seed: self.seed,
            launcher: self.site.launcher.clone(),
            ranks: self.site.ranks,
            testbed: self.site.testbed.clone(),
            rate: self.site.rate.to_string(),
            ports: self.site.ports.iter().map(ToString::to_string).collect(),
            ppn: self.site.ppn,
        }
    }

    /// What there is to spend; nothing where everything is measured.
    fn budget(&self) -> Option<Duration> {
        (!self.exhaustive).then_some(self.budget)
    }

    /// What confirming may take. Written down, since its plans follow from it: a run that goes on has
    /// to complete the same ones.
    fn confirming_seconds(&self, run: &RunDirectory, begun: Instant) -> Result<f64> {
        let path = run.file("confirmation.json");
        if path.exists() {
            let Confirming { seconds } = document::read(&path)?;
            return Ok(seconds);
        }
        let share = self.share(CONFIRMING_SHARE);
        let seconds = match self.run.resume || self.exhaustive {
            // A run that goes on does not know how long it went before.
            true => share,
            false => {
                let left = self.budget.saturating_sub(begun.elapsed()).as_secs_f64();
                share.max(CONFIRMING_OF_WHAT_IS_LEFT * left)
            }
        };
        document::write(&path, &Confirming { seconds })?;
        Ok(seconds)
    }

    fn share(&self, share: f64) -> f64 {
        self.budget.as_secs_f64() * share
    }
}

/// The options that differ, by name.
fn changed(begun: &Options, now: &Options) -> Result<String> {
    let (begun, now) = (serde_json::to_value(begun)?, serde_json::to_value(now)?);
    let names = begun.as_object().into_iter().flatten();
    let differing = names.filter(|(name, value)| now.get(name) != Some(value));
    let told = differing.map(|(name, value)| format!("{name} was {value}"));
    Ok(told.collect::<Vec<_>>().join(", "))
}

fn model_options() -> ModelOptions {
    ModelOptions {
        calibration: None,
        model: None,
        forms: models::Forms::Corrected,
        parameters: ParameterSet::Measured,
    }
}
