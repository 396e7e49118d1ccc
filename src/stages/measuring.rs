//! Measures plans of methods at points, by colibri-mpi.

use std::{ffi::OsString, path::Path, time::Duration};

use anyhow::Result;
use models::Predictor;
use records::{
    Algorithm, Collective, Layout, Method, document,
    plan::{Cell, Plan},
    profile::REPLACED,
};
use tuning::{
    Weights,
    plan::{self, Extent, Grid, MethodsOf},
};

use crate::{
    error::usage,
    site::{
        ranks::{JobSetting, Site},
        run_directory::RunDirectory,
    },
    stages::{
        deciding::judged_models,
        options::{GridOptions, SegmentOption, powers_of_two_and},
        source::CalibrationSource,
    },
};

/// The timing schemes of colibri-mpi, by its words for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TimingOption {
    Barrier,
    Global,
    Max,
    Root,
    Bcast,
}

impl TimingOption {
    pub const fn name(self) -> &'static str {
        match self {
            TimingOption::Barrier => "barrier",
            TimingOption::Global => "global",
            TimingOption::Max => "max",
            TimingOption::Root => "root",
            TimingOption::Bcast => "bcast",
        }
    }
}

/// How far a job that turns out to take longer than expected may run over its time, as a factor.
pub const PATIENCE: f64 = 1.3;

/// Whether a job of so many ranks holds communicators of these layouts.
pub fn check_layouts(layouts: &[Layout], ranks: u32) -> Result<()> {
    match layouts.iter().find(|layout| layout.procs() > ranks) {
        Some(most) if most.is_flat() => usage!(
            "--procs asks for {most} processes, but a job has {ranks} ranks; give --ranks or fewer"
        ),
        Some(most) => usage!(
            "--layouts asks for {most}, which is {} processes, but a job has {ranks} ranks; give \
             --ranks or fewer",
            most.procs()
        ),
        None => {}
    }
    Ok(())
}

/// The points to measure at a site.
pub fn grid(options: &GridOptions, site: &Site) -> Result<Grid> {
    let SegmentOption::These(segments) = &options.segments else {
        usage!("say which segment sizes to measure, as in --segments 0,1KiB,8KiB");
    };
    let ranks = site.ranks();
    let layouts = match site.layout() {
        Some(job) => options.layouts_in(job),
        None => options.layouts_or(|| powers_of_two_and(ranks)),
    };
    check_layouts(&layouts, ranks)?;
    for &collective in &options.collective.0 {
        check_measurable(site, collective)?;
    }
    // What another library takes by itself can't be told: it is compared with our own.
    let methods: MethodsOf = site.natives().unwrap_or(own_methods);
    Ok(Grid {
        ranks,
        collectives: options.collective.0.clone(),
        layouts,
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
    let forced = site.library().filter(|_| site.natives().is_some());
    if let Some(library) = forced
        && library.algorithms(collective).is_empty()
    {
        usage!("{} has no algorithms of {collective} that can be forced", library.title());
    }
    if forced.is_none() && !REPLACED.contains(&collective) {
        usage!(
            "not known to be Open MPI, whose algorithms can be forced, and the preload library \
             replaces no calls of {collective}; nothing could be loaded"
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
        let method = |segment_bytes| runner::OwnMethod::new(collective, algorithm, segment_bytes);
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
    source: &CalibrationSource,
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

/// The models that say what a cell may cost.
pub fn predictors(source: &CalibrationSource) -> Result<Vec<Predictor>> {
    let models = judged_models().into_iter().filter(|model| source.holds(*model));
    models.map(|model| source.predictor(model)).collect()
}

/// What each model predicts for a cell, in seconds.
pub fn expectation(predictors: &[Predictor], cell: &Cell) -> Vec<Option<f64>> {
    let of = |predictor: &Predictor| predictor.predict_method_seconds(cell.point(), &cell.method);
    predictors.iter().map(|predictor| of(predictor).ok()).collect()
}

/// Measures a plan, or goes on measuring it, as programs and the usual benchmarks call: at once after
/// a barrier. What ranks that sleep to an agreed instant owe to that, no program would see. The longest of
/// the ranks' own times would not do: where ranks leave the barrier apart, short calls seem to take
/// next to nothing at times.
pub fn measure(
    site: &Site,
    plan: &Plan,
    plan_path: &Path,
    record: &Path,
    deadline: Duration,
    settings: &[JobSetting],
) -> Result<()> {
    measure_by(TimingOption::Barrier, site, plan, plan_path, record, deadline, settings)
}

/// The same by another timing scheme.
pub fn measure_by(
    timing: TimingOption,
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
    site.run("measure", plan.ranks, &arguments, settings)
}
