//! Measures plans of methods at points, by colibri-mpi.

use std::{cell::RefCell, collections::BTreeMap, ffi::OsString, path::Path, time::Duration};

use anyhow::Result;
use models::Predictor;
use records::{
    Collective, Layout, Point, Root, document,
    job_nodes::JobNodes,
    plan::{Cell, Plan},
};
use timing::scheme::TimingScheme;
use tuning::{
    JobCosts, Weights,
    plan::{self, Extent, Grid, Planned},
};

use crate::{
    compared::ComparedKinds,
    deciding::judged_models,
    forced_jobs,
    layouts::{WantedLayouts, powers_of_two_and},
    source::CalibrationSource,
};
use site::{
    ranks::{JobSetting, Site},
    run_directory::RunDirectory,
    usage,
};

/// How many times its expected duration a job may take before its deadline.
pub const OVERRUN_FACTOR: f64 = 1.3;

/// Whether a job at a site holds communicators of these layouts, as far as is known where its ranks run.
///
/// # Errors
/// It has too few ranks, or other nodes.
pub fn check_layouts(layouts: &[Layout], site: &Site) -> Result<()> {
    let ranks = site.ranks();
    if let Some(most) = layouts.iter().find(|layout| layout.procs() > ranks) {
        usage!(
            "layout {most:#} has {} ranks, but a job has {ranks} ranks; give --ranks or fewer",
            most.procs()
        );
    }
    let Some(job) = site.nodes() else { return Ok(()) };
    let nodes = JobNodes::new(&job.nodes_of_ranks());
    match layouts.iter().find_map(|layout| nodes.members(*layout).err()) {
        Some(problem) => usage!("{problem}; give other layouts, or more ranks by --ranks"),
        None => Ok(()),
    }
}

/// The points to measure at a site, and the kinds of methods to compare there.
///
/// # Errors
/// A job has too few ranks, or there is nothing to compare.
pub fn grid(
    site: &Site,
    kinds: &ComparedKinds,
    collectives: &[Collective],
    layouts: &WantedLayouts,
    sizes: Vec<u64>,
    segments: Vec<u64>,
) -> Result<Grid> {
    let ranks = site.ranks();
    let layouts = match site.layout() {
        Some(job) => layouts.in_job(job),
        None => layouts.or(|| powers_of_two_and(ranks)),
    };
    check_layouts(&layouts, site)?;
    let collectives = kinds.measurable(collectives)?;
    Ok(Grid {
        ranks,
        collectives,
        layouts,
        sizes,
        segments,
        methods: kinds.clone().methods(),
        weights: Weights::default(),
        others: Vec::new(),
        rank_bytes: None,
    })
}

/// The run's plan: the one that is there, or a new one.
pub fn planned(
    run: &RunDirectory,
    source: &CalibrationSource,
    grid: &Grid,
    extent: Extent,
    seed: u64,
) -> Result<Plan> {
    let path = run.plan();
    if path.exists() {
        return Ok(document::read(&path)?);
    }
    let planned = plan(source, grid, extent, seed)?;
    tell(&planned);
    document::write(&path, &planned.plan)?;
    Ok(planned.plan)
}

/// A plan, made of what the models expect.
pub fn plan(source: &CalibrationSource, grid: &Grid, extent: Extent, seed: u64) -> Result<Planned> {
    let predictors = predictors(source)?;
    let costs = expected_costs(&predictors);
    Ok(plan::make(grid, extent, seed, &expectations(&predictors), costs))
}

/// Tells what was planned.
pub fn tell(planned: &Planned) {
    for note in &planned.notes {
        say!("plan: {note}");
    }
    say!(
        "plan: {}, {}, about {:.0} s",
        records::counted(planned.plan.cells.len(), "cell"),
        records::counted(planned.plan.visits.len(), "visit"),
        planned.expected_seconds
    );
}

/// The models that say what a cell may cost.
pub fn predictors(source: &CalibrationSource) -> Result<Vec<Predictor>> {
    let models = judged_models().into_iter().filter(|model| source.holds(*model));
    models.map(|model| source.predictor(model)).collect()
}

/// As [`expectation`], of any cell; each is found once, since on nodes of several ranks it is simulated.
pub fn expectations(predictors: &[Predictor]) -> impl Fn(&Cell) -> Vec<Option<f64>> {
    let known = RefCell::new(BTreeMap::new());
    move |cell| {
        let mut known = known.borrow_mut();
        let place = known.entry((cell.point, cell.method.clone()));
        place.or_insert_with(|| expectation(predictors, cell)).clone()
    }
}

/// What jobs cost beside their calls: barriers, as the network's latency lets expect.
pub fn expected_costs(predictors: &[Predictor]) -> JobCosts {
    let short = Point::flat(Collective::Bcast, 2, 1);
    let message = predictors.iter().rev().find_map(|predictor| predictor.limit(short));
    JobCosts::expected(message.map_or(0.0, |limit| limit.seconds))
}

/// What each model predicts for a cell, in seconds.
pub fn expectation(predictors: &[Predictor], cell: &Cell) -> Vec<Option<f64>> {
    let of = |predictor: &Predictor| predictor.predict_method_seconds(cell.point, &cell.method);
    predictors.iter().map(|predictor| of(predictor).ok()).collect()
}

/// Runs the job of a plan, or goes on with it, timed as the first job reported: as programs and the usual benchmarks
/// call, at once after a barrier, unless that leaves the ranks apart. The longest of the ranks' own times
/// would not do then: short calls seem to take next to nothing at times.
pub fn run_plan(
    site: &Site,
    plan: &Plan,
    plan_path: &Path,
    record: &Path,
    deadline: Duration,
    settings: &[JobSetting],
) -> Result<()> {
    let way = MeasuringWay::timed(site.timing());
    run_plan_by(&way, site, plan, plan_path, record, deadline, settings)
}

/// How all calls of a plan are made and timed.
#[derive(Debug, Clone)]
pub struct MeasuringWay {
    pub timing: TimingScheme,
    /// Where the collective has one.
    pub root: Root,
    /// Of every rank, as [`factors_of`](super::benchmarking::factors_of) gives them; none: equal blocks.
    pub factors: Option<OsString>,
}

impl MeasuringWay {
    /// With equal blocks and root 0.
    pub fn timed(timing: TimingScheme) -> Self {
        MeasuringWay { timing, root: Root::default(), factors: None }
    }
}

/// Runs the job of a plan, or goes on with it: one for each of its parts where the library forces by job. `settings`
/// are what the MPI library is to load.
///
/// # Errors
/// The plan is for another number of ranks, or a job fails; its record is kept.
pub fn run_plan_by(
    way: &MeasuringWay,
    site: &Site,
    plan: &Plan,
    plan_path: &Path,
    record: &Path,
    deadline: Duration,
    settings: &[JobSetting],
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
    let job = |plan: &Plan, plan_path: &Path, record: &Path, settings: &[JobSetting]| {
        run_job(way, site, plan, plan_path, record, deadline, settings)
    };
    match forced_jobs::parts(site, plan) {
        None => job(plan, plan_path, record, settings),
        Some(parts) => forced_jobs::run(&parts, (plan_path, record), settings, &job),
    }
}

/// One start of the measuring program.
fn run_job(
    way: &MeasuringWay,
    site: &Site,
    plan: &Plan,
    plan_path: &Path,
    record: &Path,
    deadline: Duration,
    settings: &[JobSetting],
) -> Result<()> {
    let mut arguments: Vec<OsString> = vec![
        "--plan".into(),
        plan_path.into(),
        "--record".into(),
        record.into(),
        "--deadline-seconds".into(),
        deadline.as_secs_f64().to_string().into(),
        "--timing".into(),
        way.timing.name().into(),
    ];
    if way.root != Root::default() {
        arguments.extend(["--root".into(), way.root.to_string().into()]);
    }
    if let Some(factors) = &way.factors {
        arguments.extend(["--factors".into(), factors.clone()]);
    }
    site.run("measure", plan.ranks, &arguments, settings)
}
