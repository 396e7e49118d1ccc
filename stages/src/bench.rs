//! The bench of a real cluster: a job is a start of the measuring program, and leaves its plan, its
//! record and a file that says that the record is whole.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use records::{
    Root, document,
    plan::Plan,
    summary::{LoadWay, Regret},
    usage::Usage,
};
use tuning::{Bench, BenchJob, FinishedJob, JobName, Load, state::Batch};

use crate::{
    export_formats::{LoadTarget, PROFILES_VARIABLE},
    exporting, loading,
    measurements::{Files, RecordedPlan, files},
    measuring::{self, MeasuringWay},
    source::CalibrationSource,
};
use site::{lazy::LazySite, ranks::JobSetting, run_directory::RunDirectory};

/// Runs jobs at a site; a run's directory keeps what they recorded.
pub struct ClusterBench<'a, 's> {
    pub run: &'a RunDirectory,
    pub site: &'a mut LazySite<'s>,
    pub source: &'a CalibrationSource,
    /// Of collectives that have one: batch after batch, and turn after turn, has the next of them. Not empty.
    pub roots: &'a [Root],
    /// How often confirming has begun, with a greater budget after further measurements; from 1.
    pub generation: u32,
    /// The batches that it ran, or found to have been run before.
    pub batches: Vec<RecordedPlan>,
    /// The run whose own files are loaded; else they are written from what a job is to load.
    pub loads_files_of: Option<&'a RunDirectory>,
}

impl Bench for ClusterBench<'_, '_> {
    type Error = anyhow::Error;

    fn run(&mut self, job: &BenchJob<'_>) -> Result<FinishedJob> {
        let files = self.files(job.name);
        if !files.done.exists() {
            let begun = Instant::now();
            self.run_job(job, &files.plan, &files.record)?;
            document::write_text(&files.done, &begun.elapsed().as_secs_f64().to_string())?;
        }
        let made = RecordedPlan::read(&files)?;
        let took = made.took;
        let rows = match job.name {
            JobName::Batch(_) => {
                let rows = made.record.rows.clone();
                self.batches.push(made);
                rows
            }
            JobName::Confirming { .. } => made.record.rows,
        };
        Ok(FinishedJob { rows, took })
    }

    fn planned(&mut self, name: JobName) -> Result<Option<Plan>> {
        let path = self.files(name).plan;
        Ok(path.exists().then(|| document::read(&path)).transpose()?)
    }

    fn usage(&mut self) -> Result<Option<Usage>> {
        let trace = self.trace();
        Ok(trace.exists().then(|| document::read(&trace)).transpose()?)
    }

    fn receive_batch(&mut self, number: u32, Batch { visits, expected_seconds, regret }: &Batch) {
        let Regret { mean, greatest } = regret;
        let expected =
            format!("expected penalty {:.1} %, greatest {:.0} %", mean * 100.0, greatest * 100.0);
        match visits.len() {
            0 if number == 1 => say!("plan: {expected}; too little time to measure anything"),
            0 => say!("plan: {expected}; nothing more to measure"),
            visits => say!(
                "plan {number}: {expected}; {}, about {expected_seconds:.0} s",
                records::counted(visits, "visit")
            ),
        }
    }
}

impl<'a, 's> ClusterBench<'a, 's> {
    /// For jobs that load what they are given, confirming for the first time.
    pub fn new(
        run: &'a RunDirectory,
        site: &'a mut LazySite<'s>,
        source: &'a CalibrationSource,
        roots: &'a [Root],
    ) -> Self {
        let (batches, loads_files_of) = (Vec::new(), None);
        ClusterBench { run, site, source, roots, generation: 1, batches, loads_files_of }
    }

    /// What the preload library saw in the first turn of the first round. Later it doesn't look, which
    /// would take some 100 ns of each call.
    fn trace(&self) -> PathBuf {
        self.run.file(&format!("{}-1-1-preload.usage.json", confirmation(self.generation)))
    }

    /// The root of a batch or turn by its number, from 1.
    pub fn root(&self, number: u32) -> Root {
        self.roots[(number as usize - 1) % self.roots.len()]
    }

    fn files(&self, name: JobName) -> Files {
        let (round, turn, way) = match name {
            JobName::Batch(number) => return files(self.run, number as usize),
            JobName::Confirming { round, turn, way } => (round, turn, way),
        };
        confirming_files(self.run, self.generation, round, turn, way)
    }

    fn run_job(&mut self, job: &BenchJob<'_>, plan: &Path, record: &Path) -> Result<()> {
        let deadline = Duration::from_secs_f64(job.seconds * measuring::OVERRUN_FACTOR);
        let (JobName::Batch(number) | JobName::Confirming { turn: number, .. }) = job.name;
        // What was planned before is completed as it is: calls of it may be recorded.
        if !plan.exists() {
            document::write(plan, job.plan)?;
        }
        let settings = match job.load {
            Some(load) => self.settings(job.name, load, job.plan.ranks)?,
            None => Vec::new(),
        };
        let root = self.root(number);
        let site = self.site.open(self.run)?;
        let deadline = site.time_for_a_job(deadline)?;
        let calls = MeasuringWay { root, ..MeasuringWay::timed(site.timing()) };
        let measured =
            measuring::run_plan_by(&calls, site, job.plan, plan, record, deadline, &settings);
        match job.name {
            JobName::Batch(_) => measured,
            JobName::Confirming { round, way, .. } => {
                measured.with_context(|| format!("confirmation {round}, {}", way_name(way)))
            }
        }
    }

    /// Writes what a job is to load, and says how.
    fn settings(&self, name: JobName, load: Load<'_>, ranks: u32) -> Result<Vec<JobSetting>> {
        let is_first = matches!(name, JobName::Confirming { round: 1, .. });
        let stage = if is_first { "candidate-" } else { "confirmed-" };
        let mut settings = Vec::new();
        let variable = |(name, value): (String, String)| JobSetting::Variable(name, value.into());
        for &way in load.way.parts() {
            let target = LoadTarget::new(way, &self.source.calibration.platform);
            let of_run = match self.loads_files_of {
                Some(run) => loading::variables_of_run(run, load.way, &target)?,
                None => None,
            };
            if let Some(variables) = of_run {
                settings.extend((way == LoadWay::Preload).then_some(JobSetting::PreloadLibrary));
                settings.extend(variables.into_iter().map(variable));
                continue;
            }
            let path = loading::part_in_run(self.run, load.way, &target, stage)?;
            // What must not be loaded is not among the choices.
            let exporter = target.exporter(true)?;
            let choices = loading::part_of(load.way, way, load.choices);
            let variables = exporting::write(&*exporter, self.source, &choices, &path, ranks)?;
            if way == LoadWay::Preload {
                let profiles =
                    JobSetting::Variable(PROFILES_VARIABLE.into(), path.into_os_string());
                settings.extend([JobSetting::PreloadLibrary, profiles]);
            } else {
                settings.extend(variables.into_iter().map(variable));
            }
        }
        if load.way == LoadWay::Preload
            && matches!(name, JobName::Confirming { round: 1, turn: 1, .. })
        {
            let trace = self.trace().into_os_string();
            settings.push(JobSetting::Variable("COLIBRI_TRACE".into(), trace));
        }
        Ok(settings)
    }
}

/// How the names of the files of jobs that confirm begin.
pub fn confirmation(generation: u32) -> String {
    match generation {
        1 => "confirmation".into(),
        again => format!("confirmation-again{again}"),
    }
}

/// The files of a job that confirms: how often confirming had begun, its round, its turn, and what it loads.
pub fn confirming_files(
    run: &RunDirectory,
    generation: u32,
    round: u32,
    turn: u32,
    way: Option<LoadWay>,
) -> Files {
    let (begin, way) = (confirmation(generation), way_name(way));
    let file = |end: &str| run.file(&format!("{begin}-{round}-{turn}-{way}{end}"));
    Files { plan: file("-plan.json"), record: file(".csv"), done: file(".done") }
}

fn way_name(way: Option<LoadWay>) -> &'static str {
    match way {
        None => "default",
        Some(LoadWay::Rules) => "rules",
        Some(LoadWay::Preload) => "preload",
        Some(LoadWay::Both) => "both",
    }
}
