//! `colibri verify`: measures decisions and the library's own algorithms, and says what following
//! each decision function costs.

use std::{collections::BTreeMap, ffi::OsString, path::Path, time::Duration};

use anyhow::{Context, Result};
use clap::Args;
use models::{Model, Predictor};
use records::{
    Algorithm, Collective, Method, Point,
    calibration::Calibration,
    decisions::Decisions,
    document,
    observation::CollectiveCall,
    openmpi,
    penalty::Penalties,
    plan::{Cell, Plan},
    profile::REPLACED,
    quantity,
};
use verification::{
    Weights, penalty,
    plan::{self, Extent, Grid, Methods},
    samples::Samples,
    selection::{self, Choice},
};

use crate::{
    commands::{
        decide::{self, Target, default_models},
        platform,
        plugins::{self, PluginOptions},
    },
    error::usage,
    focused,
    options::{GridOptions, ModelOptions, RunOptions, Segments, SiteOptions},
    output,
    run_directory::RunDirectory,
    site::{Setting, Site},
    source::{Source, powers_of_two_and},
};

/// Measures the library's own algorithms and its default, and judges the decision functions
#[derive(Debug, Args)]
pub struct Verify {
    #[command(flatten)]
    run: RunOptions,

    #[command(flatten)]
    site: SiteOptions,

    #[command(flatten)]
    model: ModelOptions,

    #[command(flatten)]
    grid: GridOptions,

    #[command(flatten)]
    plugins: PluginOptions,

    /// Measure within this time; what no model gives a chance is then left out [default: measure
    /// everything]
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration)]
    budget: Option<Duration>,

    /// How often each method is visited at each point when everything is measured
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value_t = 3)]
    rounds: u32,

    /// Seed of the order of the measurements
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How a call is timed: on the ranks' common clock; the longest of the ranks' own times; rank
    /// 0's with a confirming barrier; for bcast, the root's with each rank's reply
    #[arg(long, value_enum, default_value_t = Timing::Global)]
    timing: Timing,

    /// Measure nothing; judge the measurements that are there
    #[arg(long, conflicts_with_all = ["resume", "launcher", "testbed", "budget"])]
    from_record: bool,
}

/// The timing schemes of colibri-measure, by its words for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Timing {
    Global,
    Max,
    Root,
    Bcast,
}

impl Timing {
    const fn name(self) -> &'static str {
        match self {
            Timing::Global => "global",
            Timing::Max => "max",
            Timing::Root => "root",
            Timing::Bcast => "bcast",
        }
    }
}

impl Verify {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let run = RunDirectory::open(&self.run.directory)?;
        let source = Source::load_for(&run, &self.model)?;
        if !self.from_record {
            run.begin(&run.measurements(), self.run.resume)?;
            let site = Site::open(&self.site, &run)?;
            let extent = match self.budget {
                Some(budget) => Extent::Within { seconds: budget.as_secs_f64() },
                None => Extent::Exhaustive { rounds: self.rounds },
            };
            let mut grid = grid(&self.grid, &site)?;
            grid.others = self.plugins.methods(&grid.collectives)?;
            let plan = planned(&run, &source, &grid, extent, self.seed)?;
            let deadline = self.budget.unwrap_or(Duration::from_secs(30 * 24 * 3600));
            measure_by(self.timing, &site, &plan, &run.plan(), &run.measurements(), deadline, &[])?;
        }
        let models = self.model.model.map_or_else(judged_models, |models| models.0);
        let judged = judge(&run, &source, &models)?;
        output::print(&summary(&judged.penalties))?;
        output::print(&plugins::table(&judged.times()))?;
        for figure in &judged.figures {
            eprintln!("written: {figure}");
        }
        Ok(())
    }
}

/// How far a job that turns out to take longer than expected may run over its time, as a factor.
pub const PATIENCE: f64 = 1.3;

/// Whether a job of so many ranks holds communicators of these sizes.
pub fn check_procs(procs: &[u32], ranks: u32) -> Result<()> {
    if let Some(most) = procs.iter().find(|&&procs| procs > ranks) {
        usage!(
            "--procs asks for {most} processes, but a job has {ranks} ranks; give --ranks or fewer"
        );
    }
    Ok(())
}

/// The points to measure at a site.
pub fn grid(options: &GridOptions, site: &Site) -> Result<Grid> {
    let Segments::These(segments) = &options.segments else {
        usage!("say which segment sizes to measure, as in --segments 0,1KiB,8KiB");
    };
    let ranks = site.ranks();
    let procs = match &options.procs {
        Some(procs) => procs.0.clone(),
        None => powers_of_two_and(ranks),
    };
    check_procs(&procs, ranks)?;
    for &collective in &options.collective.0 {
        check_measurable(site, collective)?;
    }
    // What another library takes by itself can't be told: it is compared with our own.
    let methods: Methods = if site.is_open_mpi() { openmpi::methods } else { own_methods };
    Ok(Grid {
        ranks,
        collectives: options.collective.0.clone(),
        procs,
        sizes: options.sizes.0.clone(),
        segments: segments.clone(),
        methods,
        weights: Weights::default(),
        others: Vec::new(),
    })
}

/// Whether there is anything at a site to compare a collective's default with.
///
/// # Errors
/// There is nothing.
pub fn check_measurable(site: &Site, collective: Collective) -> Result<()> {
    if site.is_open_mpi() && openmpi::algorithms(collective).is_empty() {
        usage!("Open MPI has no algorithms of {collective} that can be forced");
    }
    if !site.is_open_mpi() && !REPLACED.contains(&collective) {
        usage!(
            "the launcher at hand is not known to be Open MPI's, whose algorithms can be forced; \
             our own of {collective} are none that the preload library could put in its place"
        );
    }
    Ok(())
}

/// Our own algorithms of a collective on so many processes: each with every segment size that is
/// less than the message, those without segments once. Of several forms of an algorithm, the plain
/// one.
pub fn own_methods(
    collective: Collective,
    segments: &[u64],
    procs: u32,
    bytes: u64,
) -> Vec<Method> {
    let mut methods = Vec::new();
    for &algorithm in Algorithm::ALL.iter().filter(|algorithm| algorithm.plain().is_none()) {
        let method = |segment_bytes| runner::Method::new(collective, algorithm, segment_bytes);
        let segments: &[u64] = if method(1).is_ok() { segments } else { &[0] };
        for &segment_bytes in segments.iter().filter(|&&segment| segment == 0 || segment < bytes) {
            if method(segment_bytes).is_ok_and(|method| method.check_ranks(procs).is_ok()) {
                methods.push(Method::Own { algorithm, segment_bytes });
            }
        }
    }
    methods
}

/// The run's plan: the one that is there, or a new one.
pub fn planned(
    run: &RunDirectory,
    source: &Source,
    grid: &Grid,
    extent: Extent,
    seed: u64,
) -> Result<Plan> {
    let path = run.plan();
    if path.exists() {
        return Ok(document::read(&path)?);
    }
    let predictors = predictors(source)?;
    let planned = plan::make(grid, extent, seed, &|cell| expectation(&predictors, cell));
    for note in &planned.notes {
        eprintln!("plan: {note}");
    }
    eprintln!(
        "plan: {} cells, {} visits, about {:.0} s",
        planned.plan.cells.len(),
        planned.plan.visits.len(),
        planned.expected_seconds
    );
    document::write(&path, &planned.plan)?;
    Ok(planned.plan)
}

/// The models whose decisions are judged: the paper's, and the one that knows every collective.
pub fn judged_models() -> Vec<Model> {
    [default_models(), vec![Model::Refined]].concat()
}

/// The models that say what a cell may cost.
pub fn predictors(source: &Source) -> Result<Vec<Predictor>> {
    judged_models().into_iter().map(|model| source.predictor(model)).collect()
}

/// The least and the greatest time that the models predict for a cell, in seconds.
pub fn expectation(predictors: &[Predictor], cell: &Cell) -> Option<(f64, f64)> {
    let point = cell.point();
    let times = predictors
        .iter()
        .filter_map(|predictor| Some(predictor.predict_method(point, &cell.method).ok()?.seconds));
    times.fold(None, |range, seconds| match range {
        None => Some((seconds, seconds)),
        Some((low, high)) => Some((f64::min(low, seconds), f64::max(high, seconds))),
    })
}

/// Measures a plan, or goes on measuring it, on the ranks' common clock.
pub fn measure(
    site: &Site,
    plan: &Plan,
    plan_path: &Path,
    record: &Path,
    deadline: Duration,
    settings: &[Setting],
) -> Result<()> {
    measure_by(Timing::Global, site, plan, plan_path, record, deadline, settings)
}

fn measure_by(
    timing: Timing,
    site: &Site,
    plan: &Plan,
    plan_path: &Path,
    record: &Path,
    deadline: Duration,
    settings: &[Setting],
) -> Result<()> {
    if plan.ranks != site.ranks() {
        usage!(
            "{} is for {} ranks, but {} are to be started; give --ranks {}",
            plan_path.display(),
            plan.ranks,
            site.ranks(),
            plan.ranks
        );
    }
    let arguments: Vec<OsString> = vec![
        "--plan".into(),
        plan_path.into(),
        "--record".into(),
        record.into(),
        "--deadline-seconds".into(),
        deadline.as_secs_f64().to_string().into(),
        "--timing".into(),
        timing.name().into(),
    ];
    site.run("measure", "colibri-measure", plan.ranks, &arguments, settings)
}

/// What was made of a run's measurements.
pub struct Judged {
    pub penalties: Penalties,
    pub choices: Vec<Choice>,
    /// What was measured.
    pub samples: Samples,
    /// The figures written.
    pub figures: Vec<String>,
}

impl Judged {
    /// The methods of each point with the number and the median of their times.
    fn times(&self) -> BTreeMap<Point, Vec<(&Method, usize, f64)>> {
        let of = |point| {
            let methods = self
                .samples
                .at(point)
                .filter_map(|(method, times)| Some((method, times.count(), times.median()?)));
            (point, methods.collect())
        };
        self.samples.points().map(of).collect()
    }
}

/// Judges the run's measurements: decisions, penalties and figures are written.
pub fn judge(run: &RunDirectory, source: &Source, models: &[Model]) -> Result<Judged> {
    let records = focused::records(run)?;
    let (first_plan, first) = records.first().context("the run has no measurements")?;
    let decisions = decisions(source, &first_plan.cells, models)?;
    document::write(&run.decisions(), &decisions)?;
    let timing = first.header.get("timing").cloned().unwrap_or_default();
    let platform = platform(&first.header, &run.measurements())?;
    let unreached: Vec<String> =
        records.iter().filter_map(|(plan, record)| unreached(plan, &record.rows)).collect();
    let samples = Samples::gather(&focused::rows(records));
    let choices = selection::choose(&samples);
    let mut penalties =
        penalty::penalties(&samples, &decisions.decisions, &choices, platform, &timing);
    penalties.warnings.extend(penalties.platform.busy());
    penalties.warnings.extend(unreached);
    document::write(&run.penalty(), &penalties)?;
    let figures = draw(run, &source.calibration, &decisions, &penalties)?;
    Ok(Judged { penalties, choices, samples, figures })
}

/// Decisions at the points of these cells among the methods that can be loaded.
pub fn decisions(source: &Source, cells: &[Cell], models: &[Model]) -> Result<Decisions> {
    let mut collectives: Vec<Collective> = cells.iter().map(|cell| cell.collective).collect();
    collectives.sort_unstable();
    collectives.dedup();
    let distinct = |of: fn(&Cell) -> u64| {
        let mut values: Vec<u64> = cells.iter().map(of).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let procs: Vec<u32> =
        distinct(|cell| cell.procs.into()).into_iter().map(|procs| procs as u32).collect();
    let predictors = models.iter().map(|model| source.predictor(*model));
    let predictors = predictors.collect::<Result<Vec<_>>>()?;
    let modelled = |cell: &&Cell| {
        predictors.iter().any(|predictor| predictor.knows(cell.collective, &cell.method))
    };
    let mut segments: Vec<u64> =
        cells.iter().filter(modelled).map(|cell| cell.method.segment_bytes()).collect();
    segments.sort_unstable();
    segments.dedup();
    let is_own = |cell: &Cell| matches!(cell.method, Method::Own { .. });
    let target = if cells.iter().any(is_own) { Target::Any } else { Target::Openmpi };
    let mut all: Option<Decisions> = None;
    for &model in models {
        let known: Vec<Collective> =
            collectives.iter().copied().filter(|&of| !model.algorithms(of).is_empty()).collect();
        let of_model = decide::decisions(
            source,
            &decide::Wanted {
                collectives: &known,
                procs: &procs,
                sizes: &distinct(|cell| cell.bytes),
                segments: &Segments::These(segments.clone()),
                models: &[model],
                target,
            },
        )?;
        match &mut all {
            None => all = Some(of_model),
            Some(all) => {
                all.decisions.extend(of_model.decisions);
                all.message_size.extend(of_model.message_size);
            }
        }
    }
    all.context("there is no model to decide")
}

/// What the plan asked for and the record does not hold.
fn unreached(plan: &Plan, rows: &[CollectiveCall]) -> Option<String> {
    let wanted: u64 = plan.visits.iter().map(|visit| u64::from(visit.repetitions)).sum();
    let warm = records::observation::Status::Warmup;
    let made = rows.iter().filter(|row| row.status != warm).count() as u64;
    (made < wanted).then(|| format!("{made} of {wanted} planned observations were made"))
}

fn draw(
    run: &RunDirectory,
    calibration: &Calibration,
    decisions: &Decisions,
    penalties: &Penalties,
) -> Result<Vec<String>> {
    let mut drawn = vec![("parameters".to_owned(), figures::parameters(calibration)?)];
    for collective in penalties.message_size.keys().copied() {
        let map = figures::penalty_map(penalties, collective)?;
        drawn.push((format!("penalty-{collective}"), map));
        let map = figures::decision_map(decisions, Some(penalties), collective)?;
        drawn.push((format!("decisions-{collective}"), map));
    }
    save(run, &drawn)
}

/// Writes figures into the run's directory and names the files.
pub fn save(run: &RunDirectory, drawn: &[(String, figures::Figure)]) -> Result<Vec<String>> {
    let directory = run.figures()?;
    let mut written = Vec::new();
    for (name, figure) in drawn {
        let paths = figures::save(figure, &directory.join(name))?;
        written.extend(paths.iter().map(|path| path.display().to_string()));
    }
    Ok(written)
}

/// The penalties, for people.
pub fn summary(penalties: &Penalties) -> String {
    let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
    let rows = penalties.summaries.iter().map(|summary| {
        vec![
            summary.collective.to_string(),
            summary.decided_by.clone(),
            summary.points.to_string(),
            percent(summary.mean),
            percent(summary.median),
            percent(summary.percentile_95),
            percent(summary.greatest),
        ]
    });
    let heading = ["collective", "decided by", "points", "mean", "median", "95th", "greatest"];
    let mut text = format!("Penalty against the measured best ({})\n\n", penalties.best);
    text += &output::aligned(&heading, rows);
    for warning in &penalties.warnings {
        text += &format!("note: {warning}\n");
    }
    text
}
