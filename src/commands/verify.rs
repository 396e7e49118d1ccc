//! `colibri verify`: measures decisions and the library's own algorithms, and says what following
//! each decision function costs.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use choosing::samples::Samples;
use clap::Args;
use models::Model;
use records::{document, observation::CollectiveCall, plan::Plan, quantity, record};
use timing::{operations::UnevenBlocks, scheme::TimingScheme};
use tuning::plan::{self, Extent, Grid};

use crate::commands::shared::{
    budget::ChangedBudget,
    options::{
        GridOptions, List, ListedSegments, MethodOptions, ModelOptions, RunOptions, SiteOptions,
        measured_procs, roots, timing_scheme, usual_models, with_a_path,
    },
    output, penalties,
    plugins::{self, PluginOptions},
    rivals,
};
use site::{allocation::within_allocation, ranks::Site, run_directory::RunDirectory, usage};
use stages::{
    benchmarking, chosen,
    compared::ComparedKinds,
    deciding::judged_models,
    fitted_trees::with_calibrated_trees,
    judging::{self, CandidateMethods, ForeignDecisions, JudgedModels},
    links,
    measurements::{self, Measurements},
    measuring::{self, MeasuringWay, planned, run_plan_by},
    memory,
    roots::{self, WantedRoot},
    source::CalibrationSource,
    spent,
};

/// Measures the library's own algorithms and its default, and judges the decision functions
#[derive(Debug, Args)]
#[command(mut_arg("procs", measured_procs), mut_arg("model", |model| usual_models(model, &judged_models(), "")))]
pub struct Verify {
    #[command(flatten)]
    pub run: RunOptions,

    #[command(flatten)]
    site: SiteOptions,

    #[command(flatten)]
    model: ModelOptions,

    #[command(flatten)]
    grid: GridOptions<ListedSegments>,

    #[command(flatten)]
    methods: MethodOptions,

    #[command(flatten)]
    plugins: PluginOptions,

    /// Measure within this time (1ms to 10000h); methods that no model finds competitive are then skipped
    /// [default: measure everything]
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration)]
    budget: Option<Duration>,

    /// Visits to each method at each point when everything is measured
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value_t = 3, hide_short_help = true)]
    rounds: u32,

    /// Visit a method only twice where it takes more than this many times the best one's time, such
    /// as 1.3
    /// [default: everything in every round]
    #[arg(long, value_name = "FACTOR", conflicts_with = "budget", value_parser = factor_above_one, hide_short_help = true)]
    give_up_beyond: Option<f64>,

    /// Seed of the random order of measurements
    #[arg(long, default_value_t = 1, hide_short_help = true)]
    seed: u64,

    /// Roots of the collectives that have one, with commas: ranks, last, random. Root 0, for which
    /// methods are chosen, is always measured
    #[arg(long, value_name = "LIST", value_parser = roots, default_value = "0", hide_short_help = true)]
    roots: List<WantedRoot>,

    /// File with a factor for each rank, to which its block is proportional (allgatherv, gatherv,
    /// scatterv); sizes are the mean block
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    factors: Option<PathBuf>,

    /// How a call is timed [default: barrier; global where a barrier leaves the ranks apart]
    #[arg(long, value_parser = timing_scheme(), hide_short_help = true)]
    timing: Option<TimingScheme>,

    /// Measure nothing; judge the existing measurements
    #[arg(long, conflicts_with_all = ["resume", "launcher", "testbed", "budget"])]
    from_record: bool,

    /// Also judge these decisions by the measurements, under this name: an Open MPI rules file, a
    /// decisions.json, or a tuning run's directory (its openmpi.rules); repeatable
    #[arg(long = "judge", value_name = "NAME=FILE", value_parser = with_a_path(judging::other))]
    others: Vec<ForeignDecisions>,

    /// Compare two of the judged decisions (default, measured, a model, a name given by --judge):
    /// where they differ, and what that costs
    #[arg(long, value_name = "NAME,NAME", value_parser = two_names, hide_short_help = true)]
    compare: Option<[String; 2]>,
}

const NO_DEADLINE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Rounds after which it is known what can be given up.
const FIRST_ROUNDS: u32 = 2;

/// The batch that measures on without what was given up.
const HOPEFUL_BATCH: usize = 2;

fn factor_above_one(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 1.0);
    factor.ok_or_else(|| "expected a number above 1, as in 1.3".into())
}

/// Plans a batch after those of a run, for the time by which its budget has grown.
fn plan_further(
    run: &RunDirectory,
    source: &CalibrationSource,
    grid: &Grid,
    growth: Duration,
    seed: u64,
) -> Result<()> {
    let batches = (1..).map(|batch| measurements::files(run, batch).plan);
    let (before, path) = (1_u64..)
        .zip(batches)
        .find(|(_, plan)| !plan.exists())
        .context("there is an end of a run's batches")?;
    let extent = Extent::Within { seconds: growth.as_secs_f64() };
    let planned = measuring::plan(source, grid, extent, seed.wrapping_add(before))?;
    measuring::tell(&planned);
    Ok(document::write(&path, &planned.plan)?)
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
        self.others.iter().try_for_each(ForeignDecisions::find)?;
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
        let choices = kept.as_ref().map(|kept| kept.choices.clone());
        // What a record did not time cannot be judged by it.
        let candidates = match self.from_record {
            true => CandidateMethods::Measured,
            false => CandidateMethods::Loadable,
        };
        let models = JudgedModels { source: source.as_ref(), models: &models, candidates };
        let judged = judging::judge(&run, &models, measurements, &self.others, choices)?;
        if kept.is_none() {
            let choices = chosen::measured(&judged.penalties, &judged.samples, &judged.choices);
            run.write(&run.choices(), &choices)?;
        }
        let mut text = penalties::summary(&judged.penalties);
        text += &penalties::text(&judged.penalties);
        text += &penalties::prediction_errors(&judged.penalties);
        text += &judged.above_limit.as_ref().map(penalties::above_limit).unwrap_or_default();
        text += &rivals::text(&judged.own_against_native(), &judged.limits());
        if let Some(names) = &self.compare {
            text += &penalties::agreement_text(&judged.agreement(&run, names)?);
        }
        text += &penalties::at_roots(&judged.at_roots(&run)?);
        output::print(&text)?;
        output::print(&plugins::table(&judged.times()))?;
        for figure in &judged.figures {
            say!("written: {figure}");
        }
        Ok(())
    }

    /// The parameters by which models decide; none where an imported run has none.
    fn parameters(&self, run: &RunDirectory) -> Result<Option<CalibrationSource>> {
        let is_there = self.model.calibration.is_some() || run.calibration().exists();
        if !is_there && run.is_imported() {
            say!(
                "note: no model is judged, since there are no parameters; `colibri fit` takes them from \
                 the run, --calibration from elsewhere"
            );
            return Ok(None);
        }
        self.model.load_for(run).map(Some)
    }

    /// The run, measured; nothing is made before all that can be known of it allows it to begin.
    fn measured(&self) -> Result<(RunDirectory, CalibrationSource)> {
        let mut run = RunDirectory::at(&self.run.directory)?;
        run.begin(&run.measurements(), self.run.resume)?;
        let source = self.model.load_for(&run)?;
        let site = Site::find(&self.site)?;
        let roots = roots::beside_zero(&self.roots.0, site.ranks(), self.seed)?;
        let mut way = self.way(&site)?;
        let kinds = ComparedKinds::at(&site, self.methods.kinds())?;
        let others = self.plugins.methods(&self.grid.measured(&site, &kinds)?.collectives)?;
        run.make()?;
        run.begin(&run.measurements(), self.run.resume)?;
        let mut site = site.open(&run)?;
        site.first_job(&run)?;
        // Which ranks share memory is known only now.
        let kinds = ComparedKinds::at(&site, self.methods.kinds())?;
        way.timing = self.timing.unwrap_or(site.timing());
        // The nodes of the ranks are known only now.
        let mut grid = Grid { others, ..self.grid.measured(&site, &kinds)? };
        grid.methods = with_calibrated_trees(grid.methods, source.predictor(Model::Refined)?);
        memory::limit(&mut grid, &run, self.site.memory_share)?;
        let growth = self.growth(&run)?;
        if growth.is_none() {
            run.keep(&self.run, &[run.measurements(), run.plan()])?;
        }
        links::time_all_links(&site, &run, &grid.layouts, self.seed, self.budget)?;
        // Each root has its part.
        let budget = self.budget.map(|budget| budget / (1 + roots.len() as u32));
        let extent = match budget {
            Some(budget) => Extent::Within { seconds: budget.as_secs_f64() },
            None if self.give_up_beyond.is_some() => {
                Extent::Exhaustive { rounds: self.rounds.min(FIRST_ROUNDS) }
            }
            None => Extent::Exhaustive { rounds: self.rounds },
        };
        let plan = planned(&run, &source, &grid, extent, self.seed)?;
        if let Some(growth) = growth {
            plan_further(&run, &source, &grid, growth, self.seed)?;
            run.keep(&self.run, &[])?;
        }
        let deadline = budget.unwrap_or(NO_DEADLINE);
        run_plan_by(&way, &site, &plan, &run.plan(), &run.measurements(), deadline, &[])?;
        if let Some(beyond) = self.give_up_beyond.filter(|_| self.rounds > FIRST_ROUNDS) {
            self.measure_hopeful(&run, &way, &site, &plan, beyond)?;
        } else if self.budget.is_some() {
            let further = (2..).map(|batch| measurements::files(&run, batch));
            for files in further.take_while(|files| files.plan.exists()) {
                let plan: Plan = document::read(&files.plan)?;
                run_plan_by(&way, &site, &plan, &files.plan, &files.record, deadline, &[])?;
            }
        }
        for root in roots {
            let (path, record) = roots::files(&run, root);
            let (plan, way) = (roots::planned(&path, &plan)?, MeasuringWay { root, ..way.clone() });
            if plan.visits.is_empty() {
                continue;
            }
            say!("plan: root {root}");
            run_plan_by(&way, &site, &plan, &path, &record, deadline, &[])?;
        }
        Ok((run, source))
    }

    /// By how much the budget of a run that goes on has grown.
    fn growth(&self, run: &RunDirectory) -> Result<Option<Duration>> {
        let Some(changed) = ChangedBudget::of(run, &self.run, None)? else { return Ok(None) };
        changed.refuse_spent(spent::by_jobs(run, &["measurements"])?)?;
        if changed.growth().is_some() && self.roots.0 != [WantedRoot::ZERO] {
            usage!(
                "--budget: that of a run with --roots cannot grow; begin one in another directory"
            );
        }
        Ok(changed.growth())
    }

    /// How calls are made and timed with root 0.
    fn way(&self, site: &Site) -> Result<MeasuringWay> {
        let factors = self.factors.as_ref();
        let others =
            self.grid.collective.0.iter().find(|of| !UnevenBlocks::COLLECTIVES.contains(of));
        if let (Some(_), Some(other)) = (factors, others) {
            usage!("--factors is for allgatherv, gatherv and scatterv, not for {other}");
        }
        roots::check_wanted(&self.roots.0, &self.grid.collective.0)?;
        if let (Some(timing), true) = (self.timing, self.roots.0 != [WantedRoot::ZERO]) {
            roots::check_timing(timing, "--roots")?;
        }
        // Where nobody says, the first job will.
        let timing = self.timing.unwrap_or(TimingScheme::Barrier);
        let factors = factors.map(|path| benchmarking::factors_of(path, site.ranks()));
        Ok(MeasuringWay { factors: factors.transpose()?, ..MeasuringWay::timed(timing) })
    }

    /// The further rounds, without what the first ones have shown to be far from the best.
    fn measure_hopeful(
        &self,
        run: &RunDirectory,
        way: &MeasuringWay,
        site: &Site,
        first: &Plan,
        beyond: f64,
    ) -> Result<()> {
        let files = measurements::files(run, HOPEFUL_BATCH);
        let plan: Plan = match files.plan.exists() {
            true => document::read(&files.plan)?,
            false => {
                let seen = record::read::<CollectiveCall>(&run.measurements())?;
                let further = self.rounds - FIRST_ROUNDS;
                let planned = plan::hopeful(
                    first,
                    &Samples::gather(&seen.rows, libraries::ran_as_asked),
                    beyond,
                    further,
                );
                measuring::tell(&planned);
                document::write(&files.plan, &planned.plan)?;
                planned.plan
            }
        };
        run_plan_by(way, site, &plan, &files.plan, &files.record, NO_DEADLINE, &[])
    }
}
