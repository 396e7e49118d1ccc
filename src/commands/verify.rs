//! `colibri verify`: measures decisions and the library's own algorithms, and says what following
//! each decision function costs.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use clap::Args;
use records::quantity;
use tuning::plan::{Extent, Grid};
use verification::selection::Choice;

use crate::{
    commands::shared::{
        options::{GridOptions, MethodOptions, ModelOptions, RunOptions, SiteOptions, with_a_path},
        output, penalties,
        plugins::{self, PluginOptions},
    },
    site::{allocation::within_allocation, ranks::Site, run_directory::RunDirectory},
    stages::{
        chosen,
        compared::ComparedKinds,
        deciding::judged_models,
        judging::{self, Other},
        links,
        measurements::Measurements,
        measuring::{TimingOption, grid, measure_by, planned},
        memory,
        source::CalibrationSource,
    },
};

/// Measures the library's own algorithms and its default, and judges the decision functions
#[derive(Debug, Args)]
pub struct Verify {
    #[command(flatten)]
    pub run: RunOptions,

    #[command(flatten)]
    site: SiteOptions,

    #[command(flatten)]
    model: ModelOptions,

    #[command(flatten)]
    grid: GridOptions,

    #[command(flatten)]
    methods: MethodOptions,

    #[command(flatten)]
    plugins: PluginOptions,

    /// Measure within this time; methods that no model finds competitive are then skipped
    /// [default: measure everything]
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration)]
    budget: Option<Duration>,

    /// Visits to each method at each point when everything is measured
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value_t = 3)]
    rounds: u32,

    /// Seed of the order of the measurements
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How a call is timed
    #[arg(long, value_enum, default_value_t = TimingOption::Barrier)]
    timing: TimingOption,

    /// Measure nothing; judge the existing measurements
    #[arg(long, conflicts_with_all = ["resume", "launcher", "testbed", "budget"])]
    from_record: bool,

    /// Also judge these decisions by the measurements, under this name: an Open MPI rules file, a
    /// decisions.json, or a tuning run's directory (its openmpi.rules); repeatable
    #[arg(long = "judge", value_name = "NAME=FILE", value_parser = with_a_path(judging::other))]
    others: Vec<Other>,

    /// Compare two of the judged decisions (default, measured, a model, a name given by --judge):
    /// where they differ, and what that costs
    #[arg(long, value_name = "NAME,NAME", value_parser = two_names)]
    compare: Option<[String; 2]>,
}

fn two_names(text: &str) -> Result<[String; 2], String> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    names.try_into().map_err(|_| "expected two names, as in default,measured".into())
}

impl Verify {
    /// Runs the subcommand.
    pub fn run(mut self) -> Result<()> {
        if !self.from_record {
            self.budget = self.budget.map(within_allocation).transpose()?;
        }
        let (run, source) = match self.from_record {
            true => {
                let run = RunDirectory::judge(&self.run.directory)?;
                let source = self.parameters(&run)?;
                (run, source)
            }
            false => {
                let (run, source) = self.measured()?;
                (run, Some(source))
            }
        };
        let models = self.model.model.map_or_else(judged_models, |models| models.0);
        let measurements = Measurements::read(&run)?;
        // What a tuning run has confirmed stays: it rests on more than the measurements alone.
        let kept = match run.choices().exists() {
            true => Some(chosen::read(&run.choices())?).filter(|there| !there.confirmed.is_empty()),
            false => None,
        };
        let choices = kept.as_ref().map(|kept| kept.choices.iter().map(Choice::from).collect());
        let judged =
            judging::judge(&run, source.as_ref(), measurements, &models, &self.others, choices)?;
        if kept.is_none() {
            let next = |choice: &Choice| chosen::next_measured(&judged.samples, choice);
            let (penalties, doubts) = (&judged.penalties, BTreeMap::new());
            let choices =
                chosen::measured(penalties, &judged.samples, &judged.choices, &next, &doubts);
            run.write(&run.choices(), &choices)?;
        }
        let mut text = penalties::summary(&judged.penalties);
        text += &penalties::text(&judged.penalties);
        text += &judged.above_limit.as_ref().map(penalties::above_limit).unwrap_or_default();
        if let Some(names) = &self.compare {
            text += &penalties::agreement_text(&judged.agreement(&run, names)?);
        }
        output::print(&text)?;
        output::print(&plugins::table(&judged.times()))?;
        for figure in &judged.figures {
            eprintln!("written: {figure}");
        }
        Ok(())
    }

    /// The parameters by which models decide; none where an imported run has none.
    fn parameters(&self, run: &RunDirectory) -> Result<Option<CalibrationSource>> {
        let is_there = self.model.calibration.is_some() || run.calibration().exists();
        if !is_there && run.is_imported() {
            eprintln!(
                "note: no model is judged, since there are no parameters; `colibri fit` takes them from \
                 the run, --calibration from elsewhere"
            );
            return Ok(None);
        }
        CalibrationSource::load_for(run, &self.model).map(Some)
    }

    /// The run, measured; nothing is made before all that can be known of it allows it to begin.
    fn measured(&self) -> Result<(RunDirectory, CalibrationSource)> {
        let mut run = RunDirectory::at(&self.run.directory)?;
        run.begin(&run.measurements(), self.run.resume)?;
        let source = CalibrationSource::load_for(&run, &self.model)?;
        let site = Site::find(&self.site)?;
        let kinds = ComparedKinds::at(&site, self.methods.kinds())?;
        let others = self.plugins.methods(&grid(&self.grid, &kinds, &site)?.collectives)?;
        run.make()?;
        run.begin(&run.measurements(), self.run.resume)?;
        let mut site = site.open(&run)?;
        run.keep(&self.run, &[run.measurements(), run.plan()])?;
        site.first_job(&run)?;
        // The nodes of the ranks are known only now.
        let mut grid = Grid { others, ..grid(&self.grid, &kinds, &site)? };
        memory::limit(&mut grid, &run, self.site.memory_share)?;
        links::measure(&site, &run, &grid.procs(), self.seed, self.budget)?;
        let extent = match self.budget {
            Some(budget) => Extent::Within { seconds: budget.as_secs_f64() },
            None => Extent::Exhaustive { rounds: self.rounds },
        };
        let plan = planned(&run, &source, &grid, extent, self.seed)?;
        let deadline = self.budget.unwrap_or(Duration::from_secs(30 * 24 * 3600));
        measure_by(self.timing, &site, &plan, &run.plan(), &run.measurements(), deadline, &[])?;
        Ok((run, source))
    }
}
