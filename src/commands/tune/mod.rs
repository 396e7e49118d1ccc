//! `colibri tune`: calibrates, decides, measures, exports and confirms, in this order.

mod candidate;
mod confirm;
pub mod tell;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use clap::Args;
use records::{
    Collective,
    calibration::Calibration,
    document::{self, Document},
    plan::Plan,
    quantity,
    usage::Usage,
};
use serde::{Deserialize, Serialize};
use verification::{
    Weights,
    plan::{Extent, Grid},
};

use crate::{
    commands::{calibrate, verify},
    error::usage,
    focused,
    options::{GridOptions, ModelOptions, ParameterSet, RunOptions, Segments, SiteOptions},
    output, programs,
    run_directory::RunDirectory,
    site::{self, PRELOAD_LIBRARY, Site},
    source::Source,
    traced::{self, Traced},
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
const MEASURING_SHARE: f64 = 0.48;
const CONFIRMING_SHARE: f64 = 0.18;

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

impl Tune {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        // What the last stage needs is missed before the first.
        programs::find(PRELOAD_LIBRARY)?;
        let run = RunDirectory::open(&self.run.directory)?;
        self.begin(&run)?;
        if self.run.resume {
            site::clear_up(&run)?;
        }
        let mut site = LazySite { options: &self.site, run: &run, site: None };

        let calibration = self.calibrate(&run, &mut site)?;
        let source = Source::of_run(calibration, &model_options())?;
        self.measure(&run, &mut site, &source)?;
        let judged = verify::judge(&run, &source, &verify::judged_models())?;
        for warning in &judged.penalties.warnings {
            eprintln!("note: {warning}");
        }
        let summary = self.confirm(&run, &mut site, &source, &judged)?;
        drop(site);

        let mut text = verify::summary(&judged.penalties);
        text += &tell::text(&summary, &run)?;
        document::write_text(&run.file("summary.txt"), &text)?;
        output::print(&text)
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

    fn share(&self, share: f64) -> f64 {
        self.budget.as_secs_f64() * share
    }

    /// The calibration is written when its measuring is over, so that one that is there is whole.
    fn calibrate(&self, run: &RunDirectory, site: &mut LazySite) -> Result<Calibration> {
        if !run.calibration().exists() {
            let site = site.open()?;
            if site.ranks() < 2 {
                usage!(
                    "tuning needs at least 2 ranks; give --ranks, or --testbed 8 for a virtual cluster"
                );
            }
            // Whether anything can be measured at the points wanted is known before the first job.
            self.points(run, site)?;
            let budget = Duration::from_secs_f64(self.share(CALIBRATION_SHARE).min(60.0));
            let wanted = calibrate::Wanted::within(budget, self.seed);
            calibrate::measure(site, run, &wanted, budget)?;
        }
        let calibration = calibrate::fit(run)?;
        eprint!("{}", calibrate::summary(&calibration));
        Ok(calibration)
    }

    /// The penalties are written when the measuring is over.
    fn measure(&self, run: &RunDirectory, site: &mut LazySite, source: &Source) -> Result<()> {
        if run.penalty().exists() {
            return Ok(());
        }
        let site = site.open()?;
        if !site.is_open_mpi() {
            eprintln!(
                "plan: the launcher at hand is not known to be Open MPI's, whose own algorithms can \
                 be forced: Colibri's are compared with the default, for the preload library alone"
            );
        }
        let grid = self.points(run, site)?;
        if !self.exhaustive {
            let seconds = self.share(MEASURING_SHARE);
            return focused::measure(run, site, source, &grid, seconds, self.seed);
        }
        let plan =
            verify::planned(run, source, &grid, Extent::Exhaustive { rounds: 3 }, self.seed)?;
        let deadline = Duration::from_secs(30 * 24 * 3600);
        verify::measure(site, &plan, &run.plan(), &run.measurements(), deadline, &[])
    }

    /// The points to tune: the grid that the flags name, or what an application uses.
    fn points(&self, run: &RunDirectory, site: &Site) -> Result<Grid> {
        match self.traced(run, site.ranks())? {
            Some(traced) => traced.grid(&self.grid, site),
            None => verify::grid(&self.grid, site),
        }
    }

    fn traced(&self, run: &RunDirectory, ranks: u32) -> Result<Option<Traced>> {
        if self.trace.is_none() {
            return Ok(None);
        }
        let usage: Usage = document::read(&run.usage())?;
        Traced::new(&usage, ranks).map(Some)
    }

    /// As what is measured was planned.
    fn traced_as_planned(&self, run: &RunDirectory) -> Result<Option<Traced>> {
        let plan: Plan = document::read(&run.plan())?;
        self.traced(run, plan.ranks)
    }
}

/// The weights of the points, where an application says them.
fn weights(traced: Option<&Traced>) -> Weights {
    traced.map(Traced::weights).unwrap_or_default()
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

/// A site that is opened when the first job needs it: a run whose records are whole needs none.
struct LazySite<'a> {
    options: &'a SiteOptions,
    run: &'a RunDirectory,
    site: Option<Site>,
}

impl LazySite<'_> {
    fn open(&mut self) -> Result<&Site> {
        if self.site.is_none() {
            self.site = Some(Site::open(self.options, self.run)?);
        }
        self.site.as_ref().context("the site was opened")
    }
}
