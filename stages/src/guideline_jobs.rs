//! The jobs that guidelines are judged by: what they measure, where their records lie, and what they
//! say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use anyhow::{Context, Result};
use choosing::samples::{MethodTimes, Samples};
use records::{
    Collective, FileError, Method, Point,
    choices::{Choices, Chosen},
    confirmed::{Advice, LoadVerdict},
    document::{self, Document},
    plan::Plan,
    profile::{REPLACED, pgtune},
    record,
    violations::Violations,
};
use serde::{Deserialize, Serialize};
use statistics::significance::Test;
use tuning::jobs::JobPlan;
use verification::{
    guidelines::{self, JobMedians, ViolationTest},
    patterns::{self, PatternGuideline},
    profiles, splits,
};

use crate::{headers::platform, measurements};
use site::run_directory::RunDirectory;

/// What all jobs measure; written when the trial is over.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct GuidelinePlan {
    pub jobs: u32,
    pub seed: u64,
    pub ranks: u32,
    #[serde(flatten)]
    pub each: JobPlan,
}

impl Document for GuidelinePlan {
    const SCHEMA: &'static str = "colibri/jobs/1";

    fn validate(&self) -> Result<(), (String, String)> {
        match self.each.cells.len() == self.each.repetitions.len() {
            true => Ok(()),
            false => Err(("repetitions".into(), "expected one number for each cell".into())),
        }
    }
}

pub fn jobs_plan(run: &RunDirectory) -> PathBuf {
    run.file("jobs.json")
}

pub fn trial_plan(run: &RunDirectory) -> PathBuf {
    run.file("trial-plan.json")
}

pub fn trial_record(run: &RunDirectory) -> PathBuf {
    run.file("trial.csv")
}

pub fn job_record(run: &RunDirectory, job: u32) -> PathBuf {
    match jobs_plan(run).exists() || !run.is_imported() {
        true => run.file(&format!("job-{job}.csv")),
        false => measurements::files(run, job as usize).record,
    }
}

/// The jobs of an imported run, of which nobody knows what they were to measure.
pub fn imported_plan(run: &RunDirectory) -> GuidelinePlan {
    let is_there = |job: &u32| measurements::files(run, *job as usize).record.exists();
    let jobs = (1..).take_while(is_there).count() as u32;
    GuidelinePlan { jobs, seed: 0, ranks: 0, each: JobPlan::default() }
}

/// What was made of the jobs' records.
pub struct JudgedJobs {
    /// Where the library breaks the guidelines.
    pub violations: Violations,
    /// The medians of all jobs.
    pub jobs: JobMedians,
}

/// Judges the records, by all mock-ups or by these rules; choices and profiles are written.
///
/// # Errors
/// A record cannot be read, or a result not be written.
pub fn judge(
    run: &RunDirectory,
    plan: &GuidelinePlan,
    settings: &ViolationTest,
    rules: Option<&[PatternGuideline]>,
) -> Result<JudgedJobs> {
    let mut samples = Vec::new();
    let mut warnings = plan.each.notes.clone();
    let mut first = None;
    for job in 1..=plan.jobs {
        let path = job_record(run, job);
        let record = record::read(&path)?;
        let of_job = Samples::gather(&record.rows, libraries::ran_as_asked);
        warnings.extend(of_job.warnings.iter().map(|warning| format!("job {job}: {warning}")));
        let of_platform = platform(&record.header, &path)?;
        warnings.extend(of_platform.busy().map(|busy| format!("job {job}: {busy}")));
        samples.push(of_job);
        first.get_or_insert((of_platform, record.header));
    }
    let (platform, header) = first.context("the plan has no jobs")?;
    let jobs = JobMedians::new(&samples);
    // What others disturbed is reported, and nothing is chosen by it.
    let of_calm = |samples: &Samples| {
        let is_calm = |point, method: &Method| {
            !samples.get(point, method).is_some_and(MethodTimes::is_disturbed)
        };
        samples.among(is_calm)
    };
    let calm = JobMedians::new(&samples.iter().map(of_calm).collect::<Vec<_>>());
    let choices = profiles::choices(&calm, settings);
    let replaced = |choices: &[Chosen]| -> BTreeSet<Point> {
        choices.iter().filter(|one| one.method != Method::Default).map(|one| one.point).collect()
    };
    let left_out =
        replaced(&profiles::choices(&jobs, settings)).difference(&replaced(&choices)).count();
    if left_out > 0 {
        warnings.push(format!(
            "{} left to the default, though a method was significantly faster: other processes used the processors \
             while it was timed; measure again on a calm machine",
            records::counted(left_out, "point")
        ));
    }
    warnings.extend(too_few_jobs(plan.jobs, settings.level));
    let timing = header.get("timing").map_or("", String::as_str);
    let mut violations = match rules {
        Some(rules) => patterns::judge_patterns(&jobs, settings, rules, platform, timing),
        None => guidelines::judge(&jobs, settings, platform, timing),
    };
    violations.warnings = warnings;
    let choices = Choices {
        platform: violations.platform.clone(),
        message_size: violations.message_size.clone(),
        prediction: None,
        choices,
        confirmed: Vec::new(),
    };
    // What cannot be read is replaced without a word, as it serves nobody.
    let before: Option<Choices> = document::read(&run.choices()).ok();
    if before.is_some_and(|before| before.choices != choices.choices) {
        say!(
            "note: {} held other choices, of another command or other flags; now it holds the mock-ups that break \
             a guideline",
            run.choices().display()
        );
    }
    run.write(&run.choices(), &choices)?;
    write_profiles(run, &calm, settings, plan.jobs)?;
    Ok(JudgedJobs { violations, jobs })
}

/// That so many jobs cannot show anything at this level, where that is so.
pub fn too_few_jobs(jobs: u32, level: f64) -> Option<String> {
    let least = |jobs: u32| Test::least_p_value(jobs as usize, jobs as usize);
    if least(jobs) <= level {
        return None;
    }
    // At the level itself all comparisons would have to be as clear as can be, since they are corrected together.
    let advice = match (1..=MAX_JOBS).find(|&jobs| least(jobs) < level) {
        Some(enough) => format!("it takes {enough} jobs or more"),
        None => "it takes a greater --level".into(),
    };
    Some(format!(
        "nothing can be significant: the smallest p-value possible with {} is {:.2e}, above the level of {level}; {advice}",
        records::counted(jobs, "job"),
        least(jobs)
    ))
}

/// As many as `--jobs` may be.
pub const MAX_JOBS: u32 = 100;

/// Books what k calls really took, where they were run.
pub fn book_splits(run: &RunDirectory, violations: &mut Violations) -> Result<()> {
    let (plan, path) = (run.file("splits-plan.json"), run.file("splits.csv"));
    if plan.exists() && path.exists() {
        let plan: Plan = document::read(&plan)?;
        let rows = record::read(&path)?.rows;
        splits::book(&mut violations.violations, &plan, &rows);
    }
    Ok(())
}

/// Profiles in Colibri's form, and as pgtune text where that can express them.
fn write_profiles(
    run: &RunDirectory,
    jobs: &JobMedians,
    settings: &ViolationTest,
    count: u32,
) -> Result<()> {
    if !run.is_written_to() {
        return Ok(());
    }
    let directory = run.file("profiles");
    if directory.exists() {
        // Made anew from the records: what an earlier judgement left must not be loaded.
        fs::remove_dir_all(&directory).map_err(|e| FileError::io(&directory, "empty", &e))?;
    }
    let unreplaced = jobs.points().map(|point| point.collective);
    let unreplaced: BTreeSet<&str> =
        unreplaced.filter(|one| !REPLACED.contains(one)).map(Collective::name).collect();
    for name in unreplaced {
        say!("note: no profile of {name}: the preload library does not replace it");
    }
    let verdict = LoadVerdict {
        advice: Advice::Tune,
        reason: format!(
            "Its methods were significantly faster over {} when they were measured; no job has loaded it.",
            records::counted(count, "job")
        ),
    };
    for mut profile in profiles::profiles(jobs, settings) {
        profile.about = vec![format!("Verdict: {verdict}")];
        for directory in [&directory, &run.file("profiles/pgtune")] {
            fs::create_dir_all(directory)
                .map_err(|e| FileError::io(directory, "make this directory", &e))?;
        }
        let name = profile.file_stem();
        let path = directory.join(format!("{name}.json"));
        document::write(&path, &profile)?;
        say!("written: {}", path.display());
        match pgtune::format(&profile) {
            Ok(text) => document::write_text(&directory.join(format!("pgtune/{name}.prf")), &text)?,
            Err(reason) => say!("note: no pgtune form of {name}: {reason}"),
        }
    }
    Ok(())
}

/// The methods of each point with the number and the median of the jobs' medians.
pub fn medians(jobs: &JobMedians) -> BTreeMap<Point, Vec<(&Method, usize, f64)>> {
    let of = |point| {
        let methods = jobs.at(point).filter_map(move |(method, medians)| {
            Some((method, medians.len(), jobs.median(point, method)?))
        });
        (point, methods.collect())
    };
    jobs.points().map(of).collect()
}
