//! `colibri guidelines`: where the MPI library is slower than it should be by its own means.

mod cells;
mod tables;
mod violations;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use choosing::samples::Samples;
use clap::Args;
use records::{
    Collective, document,
    plan::Plan,
    quantity::{self, format_duration},
    record,
    violations::Violations,
};
use statistics::significance::Test;
use tuning::jobs;
use verification::{guidelines::ViolationTest, patterns::PatternGuideline, splits};

use self::tables::{NamedViolations, ViolationTable};
use crate::commands::shared::{
    options::{List, RunOptions, SiteOptions, collectives, kinds, sizes},
    output,
    plugins::{self, PluginOptions},
    points::PointOptions,
};
use site::{
    allocation::within_allocation,
    ranks::Site,
    run_directory::{RunDirectory, file_or_in_run},
    usage,
};
use stages::{
    guideline_file,
    guideline_jobs::{self, GuidelinePlan, JudgedJobs},
    kinds::MethodKind,
    measuring, memory,
    repeating::RepetitionCounts,
};

/// Measures the library's default against mock-ups, more data and more calls: monotony,
/// split-robustness, pattern; writes violations.json and profiles of what is faster
#[derive(Debug, Args)]
pub struct Guidelines {
    #[command(flatten)]
    pub run: RunOptions,

    #[command(flatten)]
    site: SiteOptions,

    /// Collectives, with commas [default: all that have mock-ups]
    #[arg(long, value_name = "NAMES", value_parser = collectives)]
    collective: Option<List<Collective>>,

    #[command(flatten)]
    points: PointOptions,

    /// Kinds of methods to compare with the default, with commas: mockup; native and own (for
    /// profiles, not guidelines); or all
    #[arg(long, value_name = "KINDS", value_parser = kinds, default_value = "mockup")]
    methods: List<MethodKind>,

    #[command(flatten)]
    plugins: PluginOptions,

    /// Segment sizes of our own algorithms (0: unsegmented)
    #[arg(long, value_name = "LIST", value_parser = sizes, default_value = "0,8KiB", hide_short_help = true)]
    segments: List<u64>,

    /// Number of jobs that repeat the measurements; their medians are compared
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(guideline_jobs::MAX_JOBS)), default_value_t = 6)]
    jobs: u32,

    /// Time limit for the measurements: 90s, 10m, 1h30m; from 1ms to 10000h
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "5m")]
    budget: Duration,

    /// nrep.json of `colibri bench --nrep`: repeat each call in each job so often, in place of as often as the budget
    /// allows
    #[arg(long, value_name = "RUN|FILE", hide_short_help = true)]
    nrep: Option<PathBuf>,

    /// Seed of the random order of measurements
    #[arg(long, default_value_t = 1, hide_short_help = true)]
    seed: u64,

    /// The one-sided test of two samples
    #[arg(long, value_enum, default_value_t = TestName::RankSum, hide_short_help = true)]
    test: TestName,

    /// False discovery rate: greatest share of false ones among the violations of pattern and
    /// monotony
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| quantity::parse_share(text, quantity::BETWEEN_0_AND_1), default_value = "5%", hide_short_help = true)]
    level: f64,

    /// Least relative gain (100%: half the time) for a violation of pattern and monotony, and for a
    /// replacement in a profile [default: 5%, in a profile 10%]
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| quantity::parse_share(text, 0.0..), hide_short_help = true)]
    min_gain: Option<f64>,

    /// Patterns to judge instead of all mock-ups: a TOML file of tables named guideline, each with a rule
    /// such as "MPI_Bcast <= MPI_Scatter + MPI_Allgather"
    #[arg(long, value_name = "RUN|FILE", conflicts_with_all = ["collective", "methods"], hide_short_help = true)]
    guidelines: Option<PathBuf>,

    /// Print this table instead: classes, patterns, or sizes at which each guideline is violated
    #[arg(long, value_enum, value_name = "TABLE", hide_short_help = true)]
    table: Option<ViolationTable>,

    /// Another judged run to show in the table; repeatable
    #[arg(long, value_name = "DIR", requires = "table", hide_short_help = true)]
    beside: Vec<PathBuf>,

    /// Measure nothing; judge the existing records
    #[arg(long, conflicts_with_all = ["resume", "launcher", "testbed"])]
    from_record: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TestName {
    RankSum,
    KolmogorovSmirnov,
}

/// Shares of the budget for the trial, for all jobs together, and for running splits as k calls; the
/// rest goes to starting jobs.
const TRIAL_SHARE: f64 = 0.15;
const JOBS_SHARE: f64 = 0.7;
const SPLITS_SHARE: f64 = 0.08;

impl Guidelines {
    /// Runs the subcommand.
    pub fn run(mut self) -> Result<()> {
        self.nrep = self.nrep.map(|path| file_or_in_run(&path, "nrep.json"));
        let in_run = |path: PathBuf| file_or_in_run(&path, guideline_file::FILE);
        self.guidelines = self.guidelines.map(in_run);
        if !self.from_record {
            self.budget = within_allocation(self.budget)?;
        }
        let beside: Vec<NamedViolations> =
            self.beside.iter().map(|run| NamedViolations::read(run)).collect::<Result<_>>()?;
        let (run, site) = match self.from_record {
            true => (RunDirectory::judge(&self.run.directory)?, None),
            false => {
                let (run, site) = self.measured()?;
                (run, Some(site))
            }
        };
        let plan = match run.is_imported() {
            true => guideline_jobs::imported_plan(&run),
            false => document::read(&guideline_jobs::jobs_plan(&run))
                .context("there is no run to judge; leave out --from-record to measure one")?,
        };
        let JudgedJobs { violations: mut found, jobs } =
            guideline_jobs::judge(&run, &plan, &self.settings(), self.patterns(&run)?.as_deref())?;
        violations::draw(&run, &jobs, &found)?;
        if let Some(site) = &site {
            self.run_splits(&run, site, &found)?;
        }
        guideline_jobs::book_splits(&run, &mut found)?;
        run.write(&run.violations(), &found)?;
        if run.is_written_to() {
            say!("written: {}", run.violations().display());
        }
        if let Some(comparison) = self.table {
            let own = NamedViolations::new(run.path(), found);
            let runs: Vec<NamedViolations> = std::iter::once(own).chain(beside).collect();
            return output::print(&tables::table(comparison, &runs));
        }
        output::print(&violations::summary(&found))?;
        output::print(&plugins::table(&guideline_jobs::medians(&jobs)))
    }

    /// The user's guidelines: of the file that is named, else of the one that the run was begun with.
    fn patterns(&self, run: &RunDirectory) -> Result<Option<Vec<PatternGuideline>>> {
        let kept = run.file(guideline_file::FILE);
        let path = self.guidelines.clone().or_else(|| kept.exists().then_some(kept));
        Ok(path.map(|path| guideline_file::read(&path)).transpose()?)
    }

    /// The run, measured; nothing is made before all that can be known of it allows it to begin.
    fn measured(&self) -> Result<(RunDirectory, Site)> {
        if let Some(path) = &self.nrep {
            document::read::<RepetitionCounts>(path)?;
        }
        let mut run = RunDirectory::at(&self.run.directory)?;
        run.begin(&guideline_jobs::trial_record(&run), self.run.resume)?;
        let site = Site::find(&self.site)?;
        let is_planned = self.run.resume && guideline_jobs::trial_plan(&run).exists();
        if !is_planned {
            self.cells(&site)?;
        }
        run.make()?;
        run.begin(&guideline_jobs::trial_record(&run), self.run.resume)?;
        let mut site = site.open(&run)?;
        site.first_job(&run)?;
        // The nodes of the ranks are known only now.
        let cells = match is_planned {
            true => None,
            false => Some(memory::limited(self.cells(&site)?, &run, self.site.memory_share)?),
        };
        run.keep(&self.run, &[guideline_jobs::trial_record(&run)])?;
        if let Some(problem) = guideline_jobs::too_few_jobs(self.jobs, self.level) {
            say!("note: {problem}");
        }
        if let Some(cells) = cells {
            let trial = jobs::trial(cells, site.ranks(), self.seed);
            document::write(&guideline_jobs::trial_plan(&run), &trial)?;
            if let Some(path) = &self.guidelines {
                let text = guideline_file::text(&guideline_file::read(path)?);
                document::write_text(&run.file(guideline_file::FILE), &text)?;
            }
        }
        self.measure(&run, &site)?;
        Ok((run, site))
    }

    fn measure(&self, run: &RunDirectory, site: &Site) -> Result<()> {
        let plan = match guideline_jobs::jobs_plan(run).exists() {
            true => document::read(&guideline_jobs::jobs_plan(run))?,
            false => self.plan(run, site)?,
        };
        for job in 1..=plan.jobs {
            let done = run.file(&format!("job-{job}.done"));
            if done.exists() {
                continue;
            }
            let path = run.file(&format!("job-{job}-plan.json"));
            if !path.exists() {
                let seed = plan.seed.wrapping_add(job.into());
                document::write(&path, &plan.each.plan(plan.ranks, seed))?;
            }
            let of_job: Plan = document::read(&path)?;
            let deadline = Duration::from_secs_f64(
                self.seconds_per_job(plan.jobs) * measuring::OVERRUN_FACTOR,
            );
            say!("job {job} of {}", plan.jobs);
            measuring::run_plan(
                site,
                &of_job,
                &path,
                &guideline_jobs::job_record(run, job),
                deadline,
                &[],
            )
            .with_context(|| format!("job {job}"))?;
            document::write_text(&done, "")?;
        }
        Ok(())
    }

    fn seconds_per_job(&self, jobs: u32) -> f64 {
        self.budget.as_secs_f64() * JOBS_SHARE / f64::from(jobs)
    }

    /// Tries every cell, and plans from what that took.
    fn plan(&self, run: &RunDirectory, site: &Site) -> Result<GuidelinePlan> {
        let path = guideline_jobs::trial_plan(run);
        let trial: Plan = document::read(&path)?;
        let deadline = self.budget.mul_f64(TRIAL_SHARE);
        let begun = Instant::now();
        measuring::run_plan(site, &trial, &path, &guideline_jobs::trial_record(run), deadline, &[])
            .context("trying every method")?;
        let record = record::read(&guideline_jobs::trial_record(run))?;
        let samples = Samples::gather(&record.rows, libraries::ran_as_asked);
        // What the user asks for by name is measured however slow it is.
        let skipped = match self.guidelines {
            Some(_) => f64::INFINITY,
            None => jobs::SKIPPED_AFTER_TRIAL,
        };
        // What a busy machine or a slow network takes to agree on starts, seen in the trial.
        let calls: f64 = record.rows.iter().map(|row| row.seconds).sum();
        let elapsed = begun.elapsed().as_secs_f64();
        let overhead = (elapsed - calls) / record.rows.len().max(1) as f64;
        let mut each =
            jobs::repeated(&trial, &samples, self.seconds_per_job(self.jobs), overhead, skipped);
        if each.cells.is_empty() {
            let needed = Duration::from_secs_f64((2.0 * elapsed / TRIAL_SHARE).ceil());
            usage!(
                "{}: a budget of {} leaves {:.1} s to try every method once, in which none was reached; continue it \
                 by --resume --budget {}, or more",
                run.path().display(),
                format_duration(self.budget),
                deadline.as_secs_f64(),
                format_duration(needed)
            );
        }
        each.notes.extend(samples.warnings);
        if let Some(path) = &self.nrep {
            let counts: RepetitionCounts = document::read(path)?;
            each.notes.extend(counts.replace(&each.cells, &mut each.repetitions));
        }
        each.notes.iter().for_each(|note| say!("plan: {note}"));
        say!(
            "plan: {}, {} of about {:.0} s",
            records::counted(each.cells.len(), "cell"),
            records::counted(self.jobs, "job"),
            each.expected_seconds
        );
        let plan = GuidelinePlan { jobs: self.jobs, seed: self.seed, ranks: site.ranks(), each };
        document::write(&guideline_jobs::jobs_plan(run), &plan)?;
        Ok(plan)
    }

    /// Runs as k calls what k calls are predicted to do faster, in a job of its own.
    fn run_splits(&self, run: &RunDirectory, site: &Site, violations: &Violations) -> Result<()> {
        let path = run.file("splits-plan.json");
        if !path.exists() {
            let (plan, left_out) = splits::plan(&violations.violations, site.ranks(), self.seed);
            if left_out > 0 {
                say!("plan: too many calls to be run: {}", records::counted(left_out, "split"));
            }
            let Some(plan) = plan else { return Ok(()) };
            document::write(&path, &plan)?;
        }
        let plan: Plan = document::read(&path)?;
        let deadline = self.budget.mul_f64(SPLITS_SHARE);
        measuring::run_plan(site, &plan, &path, &run.file("splits.csv"), deadline, &[])
            .context("running splits as k calls")
    }

    /// By what is judged.
    fn settings(&self) -> ViolationTest {
        let defaults = ViolationTest::default();
        ViolationTest {
            test: match self.test {
                TestName::RankSum => Test::RankSum,
                TestName::KolmogorovSmirnov => Test::KolmogorovSmirnov,
            },
            level: self.level,
            least_gain: self.min_gain.unwrap_or(defaults.least_gain),
            replacement_gain: self.min_gain.unwrap_or(defaults.replacement_gain),
            ..defaults
        }
    }
}
