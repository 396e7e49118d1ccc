//! `colibri calibrate`: measures the platform point to point.

mod compare;
mod flags;
mod pairs;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::Args;
use records::{Collective, calibration::Calibration, quantity};

use self::flags::CalibrationFlags;
use crate::commands::shared::{
    budget::ChangedBudget,
    calibration,
    options::{List, RunOptions, SiteOptions, collectives},
    output::{self, TableFormat},
};
use site::{allocation::within_allocation, ranks::Site, run_directory::RunDirectory};
use stages::{algorithms, calibrating, drawing};

/// Measures Hockney's, LogGP's and PLogP's parameters between two nodes, and inside one
#[derive(Debug, Args)]
pub struct Calibrate {
    #[command(flatten)]
    pub run: RunOptions,

    #[command(flatten)]
    site: SiteOptions,

    #[command(flatten)]
    pub(crate) wanted: CalibrationFlags,

    /// Time limit: 90s, 10m, 1h30m; from 1ms to 10000h
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = USUAL_BUDGET)]
    budget: Duration,

    /// Do not measure the links between all pairs of nodes
    #[arg(long, hide_short_help = true)]
    no_pairs: bool,

    /// Also time each algorithm of these collectives (with commas) and fit constants to each; with
    /// --from-record, use what verify or tune has timed in the directory
    #[arg(long, value_name = "NAMES", value_parser = collectives, hide_short_help = true)]
    algorithms_of: Option<List<Collective>>,

    /// Measure nothing; fit the parameters to the existing observations
    #[arg(long, conflicts_with_all = ["resume", "launcher", "testbed"])]
    from_record: bool,

    /// Measure nothing; list what changed significantly between two calibrations
    #[arg(long, num_args = 2, value_name = "RUN|FILE", conflicts_with_all = ["resume", "launcher", "testbed", "from_record"])]
    compare: Option<Vec<PathBuf>>,

    /// Output format of the comparison
    #[arg(long, value_enum, default_value_t = TableFormat::Table, requires = "compare", hide_short_help = true)]
    format: TableFormat,
}

/// What is spent where nothing else is said.
const USUAL_BUDGET: &str = "60s";

/// Of the budget, for the links between all pairs.
const PAIRS_SHARE: f64 = 0.25;
const PAIRS_MOST: Duration = Duration::from_secs(8);
/// Large enough that a byte's time shows beside a message's, on networks of 10 Gbit/s too.
const PAIRS_BYTES: u64 = 64 << 10;

/// The part of the budget that is measured in even where setting up took longer than all of it.
const MIN_MEASURING_SHARE: f64 = 0.1;
/// Kept for fitting and drawing: what they take whatever was measured, and of the budget what they
/// take to go through the observations made in it.
const ANALYSIS: Duration = Duration::from_millis(500);
const ANALYSIS_SHARE: f64 = 0.05;

impl Calibrate {
    /// Runs the subcommand.
    pub fn run(mut self) -> Result<()> {
        if let Some(paths) = &self.compare {
            return compare::run(paths, self.format);
        }
        if !self.from_record {
            self.budget = within_allocation(self.budget)?;
        }
        let run = match self.from_record {
            true => RunDirectory::judge(&self.run.directory)?,
            false => self.measured(Instant::now())?,
        };
        let asked = self.algorithms_of.as_ref().map(|List(collectives)| collectives.as_slice());
        let calibration = calibrating::fit(&run, asked, self.from_record)?;
        let mut text = calibration::summary(&calibration);
        if let Some(map) = stages::pairs::judge(&run)? {
            text += &pairs::summary(&map);
        }
        let figures = draw(&run, &calibration)?;
        output::print(&text)?;
        let parameters = run.is_written_to().then(|| run.calibration().display().to_string());
        for path in parameters.into_iter().chain(figures) {
            say!("written: {path}");
        }
        Ok(())
    }

    /// The run, measured; nothing is made before all that can be known of it allows it to begin.
    fn measured(&self, begun: Instant) -> Result<RunDirectory> {
        let mut run = RunDirectory::at(&self.run.directory)?;
        self.begin(&run)?;
        let site = Site::find(&self.site)?;
        calibrating::check(&site, &self.wanted.options())?;
        if let Some(List(collectives)) = &self.algorithms_of {
            algorithms::check(&site, collectives)?;
        }
        run.make()?;
        self.begin(&run)?;
        if let Some(changed) = ChangedBudget::of(&run, &self.run, Some(USUAL_BUDGET))? {
            changed.refuse_spent(calibrating::recorded_seconds(&run)?)?;
        }
        let mut site = site.open(&run)?;
        let setting_up = begun.elapsed();
        site.first_job(&run)?;
        let records = [run.observations(), run.pair_observations(), run.algorithm_times()];
        let inside = [run.inside_observations(), run.inside_groups()];
        let with_them = [run.groups(), run.algorithm_plan()];
        run.keep(&self.run, &[&records[..], &inside, &with_them].concat())?;
        self.measure(&run, site, begun, setting_up)?;
        Ok(run)
    }

    fn begin(&self, run: &RunDirectory) -> Result<()> {
        run.begin(&run.observations(), self.run.resume)?;
        run.begin(&run.pair_observations(), self.run.resume)?;
        run.begin(&run.algorithm_times(), self.run.resume)
    }

    /// Of the budget, that began to run out when the command `begun`; the site took some time to be set up.
    fn measure(
        &self,
        run: &RunDirectory,
        site: Site,
        begun: Instant,
        setting_up: Duration,
    ) -> Result<()> {
        // Taking a virtual cluster down takes about as long as setting it up.
        let kept = setting_up + ANALYSIS + self.budget.mul_f64(ANALYSIS_SHARE);
        let mut starting = None;
        if !self.no_pairs && site.ranks() > 1 {
            let share = self.budget.mul_f64(PAIRS_SHARE).min(PAIRS_MOST);
            starting =
                Some(stages::pairs::time_pairs(&site, run, PAIRS_BYTES, self.wanted.seed, share)?);
        }
        let left = self.budget.saturating_sub(begun.elapsed() + kept);
        let left = left.max(self.budget.mul_f64(MIN_MEASURING_SHARE));
        let Some(List(collectives)) = &self.algorithms_of else {
            return calibrating::run_jobs(&site, run, &self.wanted.options(), left, starting);
        };
        let of_algorithms = left.mul_f64(algorithms::SHARE);
        calibrating::run_jobs(&site, run, &self.wanted.options(), left - of_algorithms, starting)?;
        // What the others left is theirs too.
        let left = self.budget.saturating_sub(begun.elapsed() + kept).max(of_algorithms);
        algorithms::time_algorithms(&site, run, collectives, self.wanted.seed, left)
    }
}

fn draw(run: &RunDirectory, calibration: &Calibration) -> Result<Vec<String>> {
    let mut drawn = vec![("parameters".to_owned(), figures::parameters(calibration)?)];
    if !calibration.fits.is_empty() {
        drawn.push(("fits".to_owned(), figures::fits(calibration)?));
    }
    let of_algorithms = calibration.algorithms.iter().flat_map(|algorithms| &algorithms.fits);
    for collective in of_algorithms.map(|fit| fit.collective).collect::<BTreeSet<Collective>>() {
        let figure = figures::algorithm_fits(calibration, collective)?;
        drawn.push((format!("algorithms-{collective}"), figure));
    }
    drawing::save(run, &drawn)
}
